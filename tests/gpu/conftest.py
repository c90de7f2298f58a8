# SPDX-License-Identifier: Apache-2.0
"""Image folders and loaders for the tests that need a GPU; elsewhere all of them are skipped, with the reason."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import stoker
import torch
from PIL import Image
from stoker import transforms as T
from stoker.synth import make_folder

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SEED = 5


def pytest_collection_modifyitems(items):
    if not torch.cuda.is_available():
        for item in items:
            item.add_marker(pytest.mark.skip(reason="torch finds no GPU that it can use"))


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """Photographs as they come (grey, progressive and all samplings among them), and some odd shapes."""
    root = make_folder(tmp_path_factory.mktemp("gpu") / "set", count=80, seed=3, classes=4)
    rng = np.random.default_rng(0)
    odd = root / "class_900"
    odd.mkdir()
    for width, height in [(5, 7), (1, 90), (700, 9), (333, 41), (64, 64), (2, 2), (1200, 900)]:
        noise = rng.integers(0, 256, (height, width, 3), np.uint8)
        Image.fromarray(noise).save(odd / f"{width}x{height}.png")
    return root


@pytest.fixture(scope="session")
def bad_folder(tmp_path_factory) -> Path:
    """24 photographs, of which two are broken."""
    root = make_folder(tmp_path_factory.mktemp("bad") / "set", count=24, seed=4, classes=3)
    files = sorted(root.rglob("*.jpg"))
    files[3].write_bytes(files[3].read_bytes()[:900])
    files[17].write_bytes(b"this is no image" * 20)
    return root


def training(size=96):
    return T.Compose(
        [T.RandomResizedCrop(size), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]
    )


def load(root, transform=None, **options):
    """A loader with a fixed seed; on the GPU unless device=None is given. Without the JPEG hardware unless asked for:
    they take a second to open, and a loader that closes waits for that."""
    options = {"batch_size": 16, "shuffle": True, "seed": SEED, "device": "cuda", **options}
    if options["device"]:
        options.setdefault("jpeg_hardware", "off")
    return stoker.DataLoader(stoker.datasets.ImageFolder(root, transform or training()), **options)


def wait_for_hardware(loader, seconds=20.0):
    """Until both threads for the JPEG hardware have opened it, or cannot."""
    until = time.monotonic() + seconds
    device = loader.stats()["device"]
    while device["jpeg_hardware_open"] < 2 and not device["jpeg_hardware_note"] and time.monotonic() < until:
        time.sleep(0.02)
        device = loader.stats()["device"]


def on_cpu(batches):
    """Copies in the CPU's memory."""
    return [(images.cpu().clone(), labels.cpu().clone()) for images, labels in batches]


def reference(root, transform=None, **options):
    return on_cpu(load(root, transform, **{**options, "device": None}))


_BITS = {torch.float32: torch.int32, torch.float16: torch.int16, torch.bfloat16: torch.int16}


def bits(tensor):
    """The bits of each value: -0 is not 0, and a NaN is itself."""
    return tensor.contiguous().view(_BITS.get(tensor.dtype, tensor.dtype))


def assert_same(got, want):
    assert len(got) == len(want)
    for number, ((a, c), (b, d)) in enumerate(zip(got, want, strict=True)):
        assert a.dtype == b.dtype and a.shape == b.shape and c.dtype == d.dtype
        wrong = (bits(a) != bits(b)).nonzero()
        assert not len(wrong), f"batch {number}: {len(wrong)} of {a.numel()} values differ, first at {wrong[0].tolist()}"
        assert torch.equal(c, d), f"the labels of batch {number} differ"
