# SPDX-License-Identifier: Apache-2.0
"""Later epochs decode JPEGs from the marks that earlier ones left: the pixels are those of a loader that has none, from
every kind of source, also when a file changes in between."""

from __future__ import annotations

import io
import os
import tarfile

import numpy as np
import pytest
import stoker
import torch
from PIL import Image
from stoker import transforms as T

CROP = T.Compose([T.RandomResizedCrop(64), T.RandomHorizontalFlip(), T.PILToTensor()])
FILES, EPOCHS = 12, 4


def photograph(seed, **options):
    random = np.random.default_rng(seed)
    coarse = Image.fromarray(random.integers(0, 256, (30, 40, 3), dtype=np.uint8))
    pixels = np.asarray(coarse.resize((500 - seed, 375 + seed), Image.BICUBIC), np.int16)
    noisy = np.clip(pixels + random.integers(-20, 20, pixels.shape), 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(noisy).save(file, "JPEG", **options)
    return file.getvalue()


@pytest.fixture(scope="module")
def files():
    kinds = [{"quality": 90}, {"quality": 75, "subsampling": 0}, {"progressive": True}, {"quality": 95, "optimize": True}]
    return [photograph(k, **kinds[k % len(kinds)]) for k in range(FILES)]


@pytest.fixture(params=["folder", "tar", "memory"])
def source(request, files, tmp_path):
    """Opens the dataset."""
    folder = tmp_path / "images" / "a"
    folder.mkdir(parents=True)
    for k, file in enumerate(files):
        (folder / f"{k:02}.jpg").write_bytes(file)
    if request.param == "folder":
        return lambda: stoker.datasets.ImageFolder(tmp_path / "images", CROP)
    if request.param == "memory":
        return lambda: stoker.datasets.ImageBytes(files, range(FILES), transform=CROP)
    with tarfile.open(tmp_path / "images.tar", "w") as tar:
        for k, path in enumerate(sorted(folder.iterdir())):
            tar.add(path, f"{k:02}.jpg")
            label = tarfile.TarInfo(f"{k:02}.cls")
            label.size = 1
            tar.addfile(label, io.BytesIO(b"0"))
    return lambda: stoker.datasets.WebDataset(str(tmp_path / "images.tar"), transform=CROP)


def open_loader(data, workers=2):
    return stoker.DataLoader(data, 5, shuffle=True, seed=4, num_workers=workers)


def epoch_of(loader, number):
    loader.set_epoch(number)
    return [images.clone() for images, _ in loader]


def same(one, other):
    return len(one) == len(other) and all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def kept_bytes(loader):
    return loader.stats()["memory"]["dataset_bytes"]


@pytest.mark.parametrize("workers", [0, 2])
def test_epochs_are_those_of_a_new_loader(source, workers):
    loader = open_loader(source(), workers)
    before = kept_bytes(loader)
    for epoch in range(EPOCHS):
        assert same(epoch_of(loader, epoch), epoch_of(open_loader(source(), workers), epoch))
    assert before + FILES * 100 < kept_bytes(loader) < before + FILES * 1000 + 100_000


def test_a_file_that_changes(files, tmp_path):
    folder = tmp_path / "images" / "a"
    folder.mkdir(parents=True)
    for k, file in enumerate(files):
        (folder / f"{k:02}.jpg").write_bytes(file)
    data = stoker.datasets.ImageFolder(tmp_path / "images", CROP)
    loader = open_loader(data)
    first = epoch_of(loader, 0)
    epoch_of(loader, 1)
    # Of the same size and time, with other bits in its upper half: only the contents say so.
    path, old = folder / "00.jpg", bytearray(files[0])
    stat = path.stat()
    for at in range(len(old) // 4, len(old) // 2, 301):
        if 0xFF not in old[at - 1 : at + 2]:
            old[at] ^= 0x04
    path.write_bytes(old)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    changed = [epoch_of(loader, epoch) for epoch in range(EPOCHS)]
    assert not same(changed[0], first)
    for epoch in range(EPOCHS):
        assert same(changed[epoch], epoch_of(open_loader(stoker.datasets.ImageFolder(tmp_path / "images", CROP)), epoch))
