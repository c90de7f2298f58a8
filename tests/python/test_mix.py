# SPDX-License-Identifier: Apache-2.0
"""MixUp and CutMix give torchvision's batches for the same draws, and draw the same after any restart."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import stoker
import torch
from stoker import _ext
from stoker import transforms as T
from torchvision.transforms import v2

CLASSES = 3


def floats():
    return T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ToTensor()])


def loader(tree, mixing, **options):
    data = stoker.datasets.ImageFolder(tree, options.pop("transform", floats()))
    return stoker.DataLoader(data, 5, shuffle=True, seed=11, batch_transforms=mixing, **options)


def collect(batches):
    return [(images.clone(), labels.clone()) for images, labels in batches]


def same(left, right):
    return len(left) == len(right) and all(
        torch.equal(a, b) and torch.equal(c, d) for (a, c), (b, d) in zip(left, right, strict=True)
    )


def theirs(kind, images, labels, draw, monkeypatch):
    """What torchvision makes of a batch when it draws what the engine drew."""
    lam, _, x, y = draw
    transform = getattr(v2, kind)(num_classes=CLASSES)
    transform._dist = SimpleNamespace(sample=lambda shape: lam)
    centre = iter([int(x * images.shape[-1]), int(y * images.shape[-2])])
    with monkeypatch.context() as patch:
        patch.setattr(torch, "randint", lambda *args, **kwargs: torch.tensor([next(centre)]))
        return transform(images, labels)


@pytest.mark.parametrize("memory_format", [None, "channels_last"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "uint8"])
@pytest.mark.parametrize("kind", ["MixUp", "CutMix"])
@pytest.mark.parametrize("alpha", [0.2, 1.0])
def test_equal_to_torchvision_bit_for_bit(tree, kind, dtype, memory_format, alpha, monkeypatch):
    if kind == "MixUp" and dtype == "uint8":
        return
    options = {"dtype": dtype, "memory_format": memory_format}
    if dtype == "uint8":
        options["transform"] = T.Compose([T.RandomResizedCrop(24), T.PILToTensor()])
    plain = loader(tree, None, **options)
    mixed = loader(tree, getattr(T, kind)(alpha=alpha), **options)
    changed = 0
    for epoch in range(2):
        for number, (before, after) in enumerate(zip(plain, mixed, strict=True)):
            draw = _ext.mix_draw(11, epoch, number, 0, alpha)
            images, labels = theirs(kind, *before, draw, monkeypatch)
            assert torch.equal(after[0], images) and after[0].dtype == images.dtype
            assert torch.equal(after[1], labels) and after[1].dtype == labels.dtype == torch.float32
            if memory_format:
                assert after[0].is_contiguous(memory_format=torch.channels_last)
            changed += not torch.equal(before[0], after[0])
    assert changed > 5


def test_draws_follow_beta():
    for alpha in (0.1, 0.4, 1.0, 3.0):
        draws = np.array([_ext.mix_draw(5, 0, batch, 0, alpha) for batch in range(20000)])
        lam = draws[:, 0]
        assert abs(lam.mean() - 0.5) < 5 * math.sqrt(lam.var() / len(lam))
        assert abs(lam.var() * 4 * (2 * alpha + 1) - 1) < 0.05
        assert ((draws[:, 1:] >= 0) & (draws[:, 1:] < 1)).all()
        assert abs(np.corrcoef(draws.T) - np.eye(4)).max() < 0.04
    even = np.sort([_ext.mix_draw(5, 0, batch, 0, 1.0)[0] for batch in range(20000)])
    assert abs(even - (np.arange(20000) + 0.5) / 20000).max() < 1.63 / math.sqrt(20000)


def test_draws_are_functions_of_all_their_arguments():
    base = (1, 2, 3, 4, 0.5)
    assert _ext.mix_draw(*base) == _ext.mix_draw(*base)
    for other in ((0, 2, 3, 4), (1, 0, 3, 4), (1, 2, 0, 4), (1, 2, 3, 0)):
        assert _ext.mix_draw(*other, 0.5) != _ext.mix_draw(*base)
    assert 0 <= _ext.mix_draw(1, 2, 3, 4, 1e-9)[0] <= 1
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="alpha"):
            _ext.mix_draw(1, 2, 3, 4, wrong)


def test_several_in_a_row_and_any_number_of_threads(tree):
    mixing = [T.MixUp(alpha=0.3), T.RandomChoice([T.CutMix(), T.MixUp()])]
    want = collect(loader(tree, mixing, num_workers=0))
    for workers in (1, 3):
        assert same(collect(loader(tree, mixing, num_workers=workers)), want)
    assert not same(collect(loader(tree, mixing[:1])), want)
    sums = torch.cat([labels.sum(1) for _, labels in want])
    assert torch.allclose(sums, torch.ones_like(sums))


def test_resume_at_every_batch(tree):
    mixing = T.RandomChoice([T.CutMix(), T.MixUp()])
    whole = loader(tree, mixing)
    whole.set_epoch(3)
    want = collect(whole)
    for stop in range(len(want)):
        first = loader(tree, mixing)
        first.set_epoch(3)
        batches = iter(first)
        for _ in range(stop):
            next(batches)
        second = loader(tree, mixing, num_workers=2)
        second.load_state_dict(first.state_dict())
        assert same(collect(second), want[stop:])


def test_ranks_and_epochs_draw_apart(even_tree):
    draws = set()
    for rank in range(2):
        ranked = loader(even_tree, T.MixUp(), rank=rank, world_size=2)
        for _ in range(2):
            draws |= {round(labels[(labels > 0) & (labels < 1)].max().item(), 6) for _, labels in ranked}
    assert len(draws) == 8


def test_choice_keeps_to_its_chances():
    class Note(T.MixUp):
        def _apply(self, images, labels, chance):
            return self, None

    mixing = T.RandomChoice([Note(num_classes=2), Note(num_classes=3)], p=[1, 3])
    from stoker._steps.mix import DrawKey

    picked = [mixing._apply(None, None, DrawKey(1, 0, n))[0].num_classes for n in range(4000)]
    assert abs(picked.count(3) / 4000 - 0.75) < 0.03


def test_bad_samples_have_empty_rows(bad_tree):
    data = stoker.datasets.ImageFolder(bad_tree, T.Compose([T.Resize((24, 24)), T.ToTensor()]))
    plain = stoker.DataLoader(data, 12, seed=1, on_error="replace")
    mixed = stoker.DataLoader(data, 12, seed=1, on_error="replace", batch_transforms=T.MixUp())
    ((_, labels),) = collect(plain)
    ((images, soft),) = collect(mixed)
    lam = _ext.mix_draw(1, 0, 0, 0, 1.0)[0]
    good = (labels >= 0).float()
    assert (labels == -100).sum() == 2
    assert torch.allclose(soft.sum(1), lam * good + (1 - lam) * good.roll(1))
    assert torch.isfinite(images).all()


def test_called_with_a_batch_as_torchvisions_are():
    images, labels = torch.rand(4, 3, 8, 8), torch.tensor([0, 1, 2, 1])
    kept = images.clone()
    mixed, soft = T.MixUp(num_classes=3)(images, labels)
    again, _ = T.MixUp(num_classes=3)(images, labels)
    assert torch.equal(images, kept) and mixed.shape == images.shape and soft.shape == (4, 3)
    assert not torch.equal(mixed, again)
    with pytest.raises(ValueError, match="num_classes must be passed"):
        T.MixUp()(images, labels)


def test_torchvisions_own_are_taken(tree):
    ours = loader(tree, T.RandomChoice([T.CutMix(), T.MixUp(alpha=0.2)], p=[0.25, 0.75]))
    them = v2.RandomChoice(
        [v2.CutMix(num_classes=CLASSES), v2.MixUp(num_classes=CLASSES, alpha=0.2)], p=[0.25, 0.75]
    )
    assert same(collect(ours), collect(loader(tree, them)))


def test_one_sample_alone(tree):
    data = stoker.datasets.ImageFolder(tree, T.Compose([T.Resize((24, 24)), T.ToTensor()]))
    plain = collect(stoker.DataLoader(data, 1))
    for kind in (T.MixUp, T.CutMix):
        for (a, _), (b, labels) in zip(plain, stoker.DataLoader(data, 1, batch_transforms=kind()), strict=True):
            assert torch.allclose(a, b, atol=1e-6) and labels.max() > 0.999


@pytest.mark.parametrize(
    "options, text",
    [
        ({"batch_size": None, "batch_transforms": T.MixUp()}, "single samples"),
        ({"output": "numpy", "batch_transforms": T.MixUp()}, "torch tensors"),
        ({"batch_transforms": T.MixUp(num_classes=2)}, "the dataset has 3"),
        ({"batch_transforms": [T.ToTensor()]}, "cannot be one of batch_transforms"),
    ],
)
def test_refusals_of_the_loader(tree, options, text):
    with pytest.raises((ValueError, TypeError), match=text):
        stoker.DataLoader(stoker.datasets.ImageFolder(tree, floats()), **options)


def test_other_refusals(tree, even_tree):
    for arguments in ({"alpha": 0}, {"alpha": -1.0}, {"alpha": math.inf}):
        with pytest.raises(ValueError, match="positive"):
            T.MixUp(**arguments)
    with pytest.raises(ValueError, match="Length of p"):
        T.RandomChoice([T.MixUp()], p=[1, 2])
    with pytest.raises(ValueError, match="RandomChoice in a RandomChoice"):
        T.RandomChoice([T.RandomChoice([T.MixUp()])])
    with pytest.raises(TypeError, match="batch_transforms"):
        stoker.DataLoader(stoker.datasets.ImageFolder(tree, T.Compose([T.ToTensor(), T.MixUp()])))
    with pytest.raises(ValueError, match="differ"):
        next(iter(loader(tree, T.MixUp(), transform=T.ToTensor())))
    with pytest.raises(TypeError, match="bytes"):
        next(iter(loader(even_tree, T.MixUp(), transform=T.PILToTensor())))
    unnamed = stoker.datasets.ImageBytes(*zip(*_encoded(tree), strict=True), T.ToTensor())
    with pytest.raises(ValueError, match="does not have named classes"):
        stoker.DataLoader(unnamed, 4, batch_transforms=T.MixUp())


def _encoded(tree):
    return [(path.read_bytes(), 0) for path in sorted(tree.rglob("*.png"))]
