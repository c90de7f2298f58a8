# SPDX-License-Identifier: Apache-2.0
"""stoker.DataLoader gives torch's batches, in torch's order, and says what happened."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pytest
import stoker
import torch
import torch.utils.data as tud
import torchvision.transforms as TV
from loading import augmenting, collect, evaluation, same
from PIL import Image
from stoker import transforms as T
from torchvision.datasets import ImageFolder


# ---- the same as torch ----


@pytest.mark.parametrize("workers", [0, 2, "auto"])
@pytest.mark.parametrize("drop_last", [False, True])
def test_equal_to_torch_bit_for_bit(tree, workers, drop_last):
    ours = stoker.DataLoader(
        stoker.datasets.ImageFolder(tree, evaluation(T)),
        batch_size=5,
        num_workers=workers,
        drop_last=drop_last,
    )
    theirs = tud.DataLoader(ImageFolder(tree, evaluation(TV)), batch_size=5, drop_last=drop_last)
    assert len(ours) == len(theirs)
    batches = list(ours)
    assert type(batches[0]) is type(next(iter(theirs))) is list
    assert same(batches, list(theirs))


@pytest.mark.parametrize("interpolation", list(TV.InterpolationMode))
def test_resize_filters_equal_to_torch(tree, interpolation):
    ours = T.Compose([T.Resize((30, 26), interpolation), T.PILToTensor()])
    theirs = TV.Compose([TV.Resize((30, 26), interpolation), TV.PILToTensor()])
    assert same(
        list(stoker.DataLoader(stoker.datasets.ImageFolder(tree, ours), 4)),
        list(tud.DataLoader(ImageFolder(tree, theirs), 4)),
    )


def test_single_samples(tree):
    ours = list(stoker.DataLoader(stoker.datasets.ImageFolder(tree, evaluation(T)), batch_size=None))
    theirs = list(tud.DataLoader(ImageFolder(tree, evaluation(TV)), batch_size=None))
    assert len(ours) == len(theirs) == 23
    for (a, c), (b, d) in zip(ours, theirs, strict=True):
        assert torch.equal(a, b) and c == d and type(c) is type(d)


# ---- types, layouts, shapes ----


@pytest.mark.parametrize("dtype", [torch.float32, "float16", torch.bfloat16, np.float16])
def test_types(tree, dtype):
    images, labels = next(
        iter(stoker.DataLoader(stoker.datasets.ImageFolder(tree, evaluation(T)), 23, dtype=dtype))
    )
    reference = next(iter(tud.DataLoader(ImageFolder(tree, evaluation(TV)), 23)))[0]
    wanted = torch.float16 if dtype in ("float16", np.float16) else dtype
    assert images.dtype == wanted and labels.dtype == torch.int64
    assert torch.equal(images, reference.to(wanted))


def test_channels_last(tree):
    data = stoker.datasets.ImageFolder(tree, evaluation(T))
    plain = next(iter(stoker.DataLoader(data, 4)))[0]
    last = next(iter(stoker.DataLoader(data, 4, memory_format=torch.channels_last)))[0]
    assert plain.is_contiguous()
    assert last.is_contiguous(memory_format=torch.channels_last) and last.shape == plain.shape
    assert torch.equal(plain, last)


def test_numpy_output(tree):
    data = stoker.datasets.ImageFolder(tree, evaluation(T))
    images, labels = next(iter(stoker.DataLoader(data, 4, output="numpy")))
    assert isinstance(images, np.ndarray) and images.dtype == np.float32 and labels.dtype == np.int64
    assert (images == next(iter(stoker.DataLoader(data, 4)))[0].numpy()).all()


def test_ragged(tree):
    data = stoker.datasets.ImageFolder(tree, T.PILToTensor())
    images, labels = next(iter(stoker.DataLoader(data, 6)))
    reference = [ImageFolder(tree, TV.PILToTensor())[i][0] for i in range(6)]
    assert isinstance(images, list) and len(images) == len(labels) == 6
    assert all(torch.equal(a, b) for a, b in zip(images, reference, strict=True))
    padded, _ = next(iter(stoker.DataLoader(data, 6, ragged="pad")))
    assert padded.shape == (6, 3, *np.max([image.shape[1:] for image in images], axis=0))
    for image, row in zip(images, padded, strict=True):
        assert torch.equal(row[:, : image.shape[1], : image.shape[2]], image)
        assert row.sum() == image.sum()


def test_without_transform_the_pixels_come_as_they_are(even_tree):
    images, _ = next(iter(stoker.DataLoader(stoker.datasets.ImageFolder(even_tree), 3)))
    assert images.dtype == torch.uint8 and images.shape == (3, 3, 40, 48)


# ---- bad samples ----


def bad_loader(root, policy, **options):
    transform = T.Compose([T.CenterCrop(32), T.ToTensor()])
    return stoker.DataLoader(stoker.datasets.ImageFolder(root, transform), 4, on_error=policy, **options)


def test_bad_sample_raises_and_the_next_batch_follows(bad_tree):
    iterator = iter(bad_loader(bad_tree, "raise"))
    next(iterator)
    with pytest.raises((stoker.CorruptSample, stoker.Unsupported), match="004.jpg"):
        next(iterator)
    with pytest.raises((stoker.CorruptSample, stoker.Unsupported), match="002.jpg"):
        next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)


def test_bad_sample_skipped(bad_tree):
    runs = [collect(bad_loader(bad_tree, "skip", num_workers=workers)) for workers in (0, 1, 3)]
    assert [len(labels) for _, labels in runs[0]] == [4, 4, 4]
    assert same(runs[0], runs[1]) and same(runs[0], runs[2])
    loader = bad_loader(bad_tree, "skip")
    list(loader)
    assert {bad["sample"] for bad in loader.bad_samples()} == {4, 9}
    assert all({"epoch", "status", "reason"} <= set(bad) for bad in loader.bad_samples())
    assert "004.jpg" in str(loader.bad_samples())
    assert loader.stats()["bad_samples"] == 2


def test_bad_sample_replaced(bad_tree):
    batches = collect(bad_loader(bad_tree, "replace"))
    labels = torch.cat([labels for _, labels in batches]).tolist()
    assert [i for i, label in enumerate(labels) if label == -100] == [4, 9]
    assert batches[1][0][0].abs().sum() == 0 < batches[1][0][1].abs().sum()


def test_error_limit(bad_tree):
    with pytest.raises(stoker.LimitReached, match=r"^2 bad samples in epoch 0, more than error_limit \(1\); the last one: "):
        list(bad_loader(bad_tree, "skip", error_limit=1))
    with pytest.raises(stoker.LimitReached, match=r"^1 bad sample in epoch 0, more than error_limit \(0\); the last one: "):
        list(bad_loader(bad_tree, "skip", error_limit=0))
    list(bad_loader(bad_tree, "skip", error_limit=2))


@pytest.mark.parametrize("workers", [0, 2])
def test_max_memory(tree, workers):
    data = stoker.datasets.ImageFolder(tree, T.Compose([T.CenterCrop(32), T.ToTensor()]))
    with pytest.raises(stoker.LimitReached, match="max_memory"):
        list(stoker.DataLoader(data, 4, max_memory=200_000, num_workers=workers))
    assert (
        len(
            [
                labels.tolist()
                for _, labels in stoker.DataLoader(
                    data, 4, max_memory=600_000, num_workers=workers, prefetch_factor=None
                )
            ]
        )
        == 6
    )


def test_max_memory_is_a_number_of_bytes(tree):
    data = stoker.datasets.ImageFolder(tree, T.Compose([T.CenterCrop(32), T.ToTensor()]))
    for given, bytes_ in [
        (1 << 28, 1 << 28),
        ("256MiB", 1 << 28),
        (" 1.5 GB ", 1_500_000_000),
        ("4096KiB", 1 << 22),
        ("5000000", 5_000_000),
    ]:
        loader = stoker.DataLoader(data, 4, max_memory=given)
        assert loader.stats()["memory"]["allowed_bytes"] == bytes_
    for wrong, error in [
        ("256 megs", ValueError),
        ("256iB", ValueError),
        ("-1MiB", ValueError),
        ("", ValueError),
        (0, ValueError),
        (-5, ValueError),
        (1 << 64, ValueError),
        (2.5, TypeError),
        (True, TypeError),
    ]:
        with pytest.raises(error, match="max_memory=.*positive number of bytes.*256MiB"):
            stoker.DataLoader(data, 4, max_memory=wrong)


def test_wrong_arguments_name_the_argument_and_its_value(tree):
    plain = stoker.datasets.ImageFolder(tree)
    data = stoker.datasets.ImageFolder(tree, T.ToTensor())

    def used(*steps):
        return stoker.DataLoader(stoker.datasets.ImageFolder(tree, T.Compose([*steps, T.ToTensor()])))

    for call, sentence in [
        (lambda: stoker.DataLoader(data, timeout="x"), "timeout='x' is not a number of seconds"),
        (lambda: stoker.DataLoader(data, prefetch_factor="x"), "prefetch_factor='x' is neither a whole number"),
        (lambda: stoker.DataLoader(data, seed="x"), "seed='x' is not an integer"),
        (lambda: stoker.DataLoader(data).set_epoch("x"), "epoch='x' is not a whole number"),
        (lambda: plain[10**6], f"sample 1000000 is out of range: the dataset has {len(plain)} samples"),
        (lambda: plain[-len(plain) - 1], "is out of range"),
        (lambda: T.RandomHorizontalFlip("x"), "p='x' is not a probability"),
        (lambda: T.RandomResizedCrop(224, ratio="x"), "ratio='x' is not a pair of numbers"),
        (lambda: T.ToTensor()(None), "the image is None; a PIL image"),
        (lambda: used(T.Resize(-1)), r"resize: size=-1 is out of range \(1 to 1048576\)"),
        (lambda: stoker.datasets.Subset(data, [0, -999]), f"Subset contain -999, but the dataset has {len(data)} samples"),
        (lambda: used(T.Resize("x")), "Size should be int or sequence. Got <class 'str'>"),
        (lambda: used(T.CenterCrop([1, None])), r"center_crop: size=\[1, None\]: None is not a number"),
    ]:
        with pytest.raises((TypeError, ValueError, IndexError), match=sentence):
            call()


def test_memory_in_stats(tree):
    data = stoker.datasets.ImageFolder(tree, T.Compose([T.CenterCrop(32), T.ToTensor()]))
    loader = stoker.DataLoader(data, 4, num_workers=2)
    list(loader)
    memory = loader.stats()["memory"]
    assert 0 < memory["held_bytes"] <= memory["peak_bytes"] <= memory["allowed_bytes"]
    assert memory["peak_bytes"] < 32 << 20  # allocated, not the memory reserved for files of unknown size
    parts = ("batches_bytes", "scratch_bytes", "read_bytes", "dataset_bytes")
    assert sum(memory[part] for part in parts) == memory["held_bytes"]
    assert memory["scratch_bytes"] > 0 and memory["waited_seconds"] == 0


def test_too_little_memory_for_a_sample_names_it(tmp_path):
    (tmp_path / "a").mkdir()
    for k in range(4):
        Image.new("RGB", (2000, 2000), (k, 20, 30)).save(tmp_path / "a" / f"{k}.png")
    data = stoker.datasets.ImageFolder(tmp_path, T.Compose([T.Resize((64, 64)), T.ToTensor()]))
    with pytest.raises(stoker.LimitReached, match=r"a/[01].png: this sample takes .* max_memory"):
        list(stoker.DataLoader(data, 2, max_memory="2MiB", num_workers=2))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_a_sample_that_cannot_fit_is_a_bad_sample(tmp_path, policy, workers):
    (tmp_path / "a").mkdir()
    for k in range(4):
        size = 3000 if k == 1 else 40
        Image.new("RGB", (size, size), (k, 20, 30)).save(tmp_path / "a" / f"{k}.png")
    data = stoker.datasets.ImageFolder(tmp_path, T.Compose([T.Resize((64, 64)), T.ToTensor()]))
    loader = stoker.DataLoader(data, 2, max_memory="2MiB", num_workers=workers, on_error=policy)
    labels = [int(label) for _, batch in loader for label in batch]
    assert labels == ([0, -100, 0, 0] if policy == "replace" else [0, 0, 0, 0])
    ((entry,),) = [loader.bad_samples()]
    assert entry["sample"] == 1
    assert re.search(r"a/1.png: this sample takes [\d.]+ MB .* max_memory \(2.1 MB\) .* raise max_memory", entry["reason"])


def test_file_that_vanished(tree, tmp_path):
    data = stoker.datasets.ImageFolder(tree, T.ToTensor())
    path = data.samples[3][0]
    (tmp_path / "c").mkdir()
    target = tmp_path / "c" / "x.jpg"
    target.write_bytes(Path(path).read_bytes())
    gone = stoker.datasets.ImageFolder(tmp_path, T.ToTensor())
    target.unlink()
    with pytest.raises(OSError, match="x.jpg"):
        list(stoker.DataLoader(gone))


# ---- waiting ----


def test_timeout(slow_image):
    loader = stoker.DataLoader(
        stoker.datasets.ImageFolder(slow_image, T.ToTensor()), num_workers=1, timeout=0.15
    )
    iterator = iter(loader)
    start = time.monotonic()
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.15 seconds"):
        next(iterator)
    waited = time.monotonic() - start
    for _ in range(400):  # the batch was not lost
        try:
            assert next(iterator)[1].tolist() == [0]
            break
        except RuntimeError:
            pass
    else:
        pytest.fail("the batch never came")
    assert waited < (time.monotonic() - start) / 2


# ---- what happened ----


def test_stats(tree):
    loader = stoker.DataLoader(stoker.datasets.ImageFolder(tree, evaluation(T)), 5, num_workers=2)
    list(loader)
    stats = loader.stats()
    assert stats["samples"] == 23 and stats["batches"] == 5 and stats["workers"] == 2
    assert sum(worker["samples"] for worker in stats["per_worker"]) == 23
    assert stats["bytes_read"] > 10_000 and stats["first_batch_seconds"] > 0
    assert stats["stages"]["decode"]["seconds"] > 0
    assert sum(stage["share"] for stage in stats["stages"].values()) == pytest.approx(1)
    assert stats["memory"]["batches_bytes"] > 0


@pytest.mark.parametrize("given, prefetch, read_ahead", [({}, 2, 64), ({"prefetch_factor": 5, "read_ahead": 70}, 5, 70)])
def test_stats_say_what_the_engine_has_tuned(tree, given, prefetch, read_ahead):
    loader = stoker.DataLoader(stoker.datasets.ImageFolder(tree, evaluation(T)), 5, num_workers=2, **given)
    list(loader)
    assert loader.stats()["tuning"] == {
        "workers": 2,
        "prefetch": prefetch,
        "read_ahead": read_ahead,
        "moves": 0,
        "reverted": 0,
        "limit": "nothing observed yet",
        "last": "",
    }


def test_repr(tree):
    loader = stoker.DataLoader(
        stoker.datasets.ImageFolder(tree, evaluation(T)), 5, shuffle=True, num_workers=2
    )
    assert repr(loader) == (
        "DataLoader(ImageFolder of 23, batch_size=5, shuffle=True, num_workers=2 "
        "(2 threads), order='stoker', next epoch 0)"
    )


def test_epochs_count_up_and_set_epoch_repeats(tree):
    data = stoker.datasets.ImageFolder(tree, augmenting())
    loader = stoker.DataLoader(data, 6, shuffle=True, seed=1)
    epochs = [collect(loader) for _ in range(3)]
    loader.set_epoch(1)
    assert same(collect(loader), epochs[1])
    assert same(collect(loader), epochs[2])
    assert loader.state_dict()["epoch"] == 3


def test_pin_memory_warns_as_torch_does(tree):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    data = stoker.datasets.ImageFolder(tree, evaluation(T))
    with pytest.warns(
        UserWarning, match="'pin_memory' argument is set as true but no accelerator is found"
    ):
        assert len(list(stoker.DataLoader(data, 6, pin_memory=True))) == 4
