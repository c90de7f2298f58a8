# SPDX-License-Identifier: Apache-2.0
"""timm's Mixup as a transform of batches: timm's results to the bit for what timm draws, and draws that follow from the
batch. RepeatAugSampler in a compiled loader."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import stoker
import torch
from stoker import transforms as T
from stoker._steps.mix import DrawKey, compile_batch
from stoker._steps.timm_mix import Draws
from test_transform_draws import same_distribution

timm_data = pytest.importorskip("timm.data")
from timm.data.distributed_sampler import RepeatAugSampler  # noqa: E402
from timm.data.mixup import FastCollateMixup  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402

CLASSES = 7
Mixup = timm_data.Mixup


class NumPys:
    """The draws as timm makes them."""

    share = staticmethod(np.random.rand)
    below = staticmethod(np.random.randint)

    @staticmethod
    def beta(alpha):
        return np.random.beta(alpha, alpha)


KINDS = {
    "mixup": {"mixup_alpha": 0.8},
    "cutmix": {"mixup_alpha": 0.0, "cutmix_alpha": 1.0},
    "both": {"mixup_alpha": 0.8, "cutmix_alpha": 1.0, "switch_prob": 0.4, "prob": 0.7},
    "uncorrected": {"mixup_alpha": 0.0, "cutmix_alpha": 1.0, "correct_lam": False, "label_smoothing": 0.0},
    "minmax": {"cutmix_minmax": (0.2, 0.8), "label_smoothing": 0.3},
    "minmax alone": {"mixup_alpha": 0.0, "cutmix_minmax": (0.25, 0.5), "prob": 0.9},
    "never": {"prob": 0.0},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("mode", ["batch", "pair", "elem"])
@pytest.mark.parametrize("kind", KINDS)
def test_equal_to_timm_for_its_draws(kind, mode, dtype):
    mixup = Mixup(mode=mode, num_classes=CLASSES, **KINDS[kind])
    ours = compile_batch(mixup)
    for seed in range(12):
        generator = torch.Generator().manual_seed(seed)
        images = torch.rand((8, 3, 19, 24), generator=generator).to(dtype)
        if seed % 2:
            images = images.to(memory_format=torch.channels_last)
        labels = torch.randint(CLASSES, (8,), generator=generator)
        np.random.seed(seed)
        expected = mixup(images.clone(), labels)
        np.random.seed(seed)
        got = ours._mixed(images.clone(), labels, NumPys)
        assert all(a.dtype == b.dtype and torch.equal(a, b) for a, b in zip(got, expected, strict=True)), seed


def test_dense_labels_and_the_switch_of_the_training_loop():
    mixup = Mixup(num_classes=CLASSES, multi_label=True)
    images, labels = torch.rand(4, 3, 5, 5), torch.rand(4, CLASSES)
    np.random.seed(1)
    expected = mixup(images.clone(), labels)
    np.random.seed(1)
    assert all(map(torch.equal, compile_batch(mixup)._mixed(images.clone(), labels, NumPys), expected))
    mixup.mixup_enabled = False
    assert torch.equal(compile_batch(mixup)(images, labels)[0], images)


def test_distribution_of_the_draws():
    count = 100_000
    keys = (DrawKey(7, 1, batch) for batch in range(count // 4))
    shares, betas, numbers = [], [], []
    for key in keys:
        draws = Draws(key)
        for _ in range(4):
            shares.append(draws.share())
            betas.append(draws.beta(0.3))
            numbers.append(draws.below(3, 9))
    generator = np.random.default_rng(0)
    same_distribution(shares, generator.random(count), "share")
    same_distribution(betas, generator.beta(0.3, 0.3, count), "beta")
    same_distribution(numbers, generator.integers(3, 9, count), "below")
    assert abs(np.corrcoef(shares[:-1], shares[1:])[0, 1]) < 4 / math.sqrt(count)
    assert len(set(shares)) == count


def floats():
    return T.Compose([T.RandomResizedCrop(24), T.ToTensor()])


def collect(loader):
    return [(images.clone(), labels.clone()) for images, labels in loader]


def same(left, right):
    return len(left) == len(right) and all(
        torch.equal(a, b) and torch.equal(c, d) for (a, c), (b, d) in zip(left, right, strict=True)
    )


@pytest.mark.parametrize("mode", ["batch", "pair", "elem"])
def test_in_a_loader(tree, mode):
    """The same for any number of threads, in every run, and from a saved position; NumPy's generator is not touched."""
    mixup = Mixup(0.8, 1.0, mode=mode, num_classes=CLASSES)
    options = {"shuffle": True, "seed": 5, "drop_last": True, "batch_transforms": mixup}
    data = stoker.datasets.ImageFolder(tree, floats())
    np.random.seed(1)
    before = repr(np.random.get_state())
    loader = stoker.DataLoader(data, 4, **options)
    first, second = collect(loader), collect(loader)
    assert not same(first, second)
    assert all(labels.shape == (4, CLASSES) and torch.allclose(labels.sum(1), torch.ones(4)) for _, labels in first)
    for workers in (0, 2):
        assert same(collect(stoker.DataLoader(data, 4, num_workers=workers, **options)), first)
    plain = collect(stoker.DataLoader(data, 4, **(options | {"batch_transforms": None})))
    assert any(not torch.equal(a, b) for (a, _), (b, _) in zip(first, plain, strict=True))
    iterator = iter(again := stoker.DataLoader(data, 4, **options))
    next(iterator)
    state = copy.deepcopy(again.state_dict())
    resumed = stoker.DataLoader(data, 4, **options)
    resumed.load_state_dict(state)
    assert same(collect(resumed), first[1:])
    assert repr(np.random.get_state()) == before


def test_a_bad_sample_has_no_class():
    images, labels = torch.rand(4, 3, 5, 5), torch.tensor([1, -100, 2, 3])
    mixed = compile_batch(Mixup(num_classes=CLASSES, prob=0.0))(images, labels)[1]
    assert mixed[1].tolist() == [0.0] * CLASSES and torch.allclose(mixed.sum(1), torch.tensor([1.0, 0, 1, 1]))


def test_what_is_refused(tree):
    data = stoker.datasets.ImageFolder(tree, floats())

    def batch(mixup, size=4, dataset=data):
        return next(iter(stoker.DataLoader(dataset, size, batch_transforms=mixup)))

    with pytest.raises(ValueError, match="an even number of images, but this batch has 5.*drop_last"):
        batch(Mixup(num_classes=CLASSES), 5)
    with pytest.raises(ValueError, match="num_classes=2, but the dataset has"):
        batch(Mixup(num_classes=2))
    with pytest.raises(ValueError, match="mixup_alpha or cutmix_alpha above 0"):
        batch(Mixup(0.0, 0.0, num_classes=CLASSES))
    with pytest.raises(TypeError, match="cannot be one of batch_transforms"):
        batch(FastCollateMixup(num_classes=CLASSES))
    with pytest.raises(TypeError, match="mixes floats, not bytes"):
        batch(Mixup(num_classes=CLASSES), dataset=stoker.datasets.ImageFolder(tree, T.RandomResizedCrop(9)))
    changed = Mixup(num_classes=CLASSES)
    changed._mix_batch = lambda images: 1.0
    with pytest.raises(TypeError, match="_mix_batch was set on this Mixup"):
        batch(changed)


def test_repeated_augmentation(tree):
    """timm's sampler has its order; each rank its share; and repeats of a sample are not augmented alike, also not on
    different ranks."""
    data = ImageFolder(tree, floats())
    of_sample = {}
    for rank in range(2):
        options = {"num_replicas": 2, "rank": rank, "selected_round": 0, "selected_ratio": 1}
        ours, theirs = RepeatAugSampler(data, **options), RepeatAugSampler(data, **options)
        loader = stoker.DataLoader(data, 4, sampler=ours, seed=3)
        assert all(row.where.startswith("engine") for row in loader.explain().rows if row.stage in ("read", "decode"))
        for epoch in range(2):
            ours.set_epoch(epoch), theirs.set_epoch(epoch)
            batches = collect(loader)
            labels = [data.targets[index] for index in theirs]
            assert torch.cat([labels for _, labels in batches]).tolist() == labels
            for index, image in zip(theirs, torch.cat([images for images, _ in batches]), strict=True):
                of_sample.setdefault((epoch, index), []).append(image.numpy().tobytes())
    assert any(len(images) == 3 for images in of_sample.values())
    assert all(len(set(images)) == len(images) for images in of_sample.values())
