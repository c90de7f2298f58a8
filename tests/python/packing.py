# SPDX-License-Identifier: Apache-2.0
"""The program `stoker`, and what other libraries read of what it packed."""

from __future__ import annotations

import io
import os
import subprocess
import sysconfig
import tarfile
from pathlib import Path

import numpy as np
import pytest
import sources
from conftest import picture
from PIL import Image

PROGRAM = Path(os.environ.get("STOKER_PROGRAM") or Path(sysconfig.get_path("scripts")) / "stoker")


def stoker(*arguments, **more):
    more = {"capture_output": True, "text": True, "timeout": 600, "check": False, **more}
    return subprocess.run([str(PROGRAM), *map(str, arguments)], **more)


def pack(*arguments, code=0, **more):
    got = stoker("pack", *arguments, **more)
    assert got.returncode == code, got.stderr + got.stdout
    return got


def pixels(data: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def folder_samples(root: Path):
    """As ImageFolder: (file's bytes, class)."""
    classes = sorted(p.name for p in root.iterdir())
    return [(p.read_bytes(), classes.index(p.parent.name)) for c in classes for p in sorted((root / c).rglob("*.*"))]


def tar_samples(folder: Path):
    """(image's bytes, label) as webdataset reads them."""
    wds = pytest.importorskip("webdataset")
    found = []
    for shard in sorted(folder.glob("shard-*.tar")):
        for s in wds.WebDataset(str(shard), shardshuffle=False):
            image = next(v for k, v in s.items() if k in ("jpg", "png", "bmp"))
            found.append((image, int(s["cls"])))
    return found


def members(path: Path):
    with tarfile.open(path) as tar:
        return [(m.name, m.offset_data, m.size) for m in tar]


def big_tree(root: Path, count=40, size=(400, 300), **options) -> Path:
    for i in range(count):
        (root / f"c{i % 3}").mkdir(parents=True, exist_ok=True)
        picture(i, *size).save(root / f"c{i % 3}" / f"{i:04}.jpg", **{"quality": 95, **options})
    return root


def archive(path: Path, count: int, bad: set[int] | frozenset[int] = frozenset(), size=(8, 6)) -> Path:
    """A tar file of small PNGs with labels; those in `bad` hold no image."""
    images = []
    for i in range(16):
        buffer = io.BytesIO()
        picture(i, *size).save(buffer, "png")
        images.append(buffer.getvalue())
    with tarfile.open(path, "w") as tar:
        for i in range(count):
            fields = {"png": b"no image" if i in bad else images[i * 7 % 16], "cls": str(i).encode()}
            for suffix, data in fields.items():
                info = tarfile.TarInfo(f"{i:05}.{suffix}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    return path


# ---- what other libraries read: (image, label), the image encoded or as pixels ------------------


def read_tar(folder: Path):
    wds = pytest.importorskip("webdataset")
    for shard in sorted(folder.glob("shard-*.tar")):
        for s in wds.WebDataset(str(shard), shardshuffle=False):
            fields = {name: value for name, value in s.items() if not name.startswith("__")}
            image = next(v for k, v in fields.items() if k.split(".")[-1] in ("png", "npy", "jpg"))
            yield image, int(fields["cls"])


def read_tfrecord(folder: Path):
    reader = pytest.importorskip("tfrecord")
    for shard in sorted(folder.glob("shard-*.tfrecord")):
        for example in reader.tfrecord_loader(str(shard), None):
            image = next(v for k, v in example.items() if k in ("image/encoded", "png", "images", "row", "image", "path"))
            number = [v for k, v in example.items() if k in ("image/class/label", "cls", "labels", "label")]
            yield bytes(image), int(number[0][0]) if number else None


def datum(value: bytes) -> dict[int, int | bytes]:
    """The fields of one protocol buffer."""
    at, found = 0, {}

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            byte, at = value[at], at + 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while at < len(value):
        tag = varint()
        number = varint()
        if tag & 7 == 2:
            found[tag >> 3], at = value[at:at + number], at + number
        else:
            found[tag >> 3] = number
    return found


def read_lmdb(folder: Path):
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(folder), readonly=True, lock=False) as env, env.begin() as txn:
        for _, value in txn.cursor():
            fields = datum(bytes(value))
            yield fields[4], fields[5]


def read_hdf5(folder: Path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(folder / "data.h5") as file:
        sets = {name: found[()] for name, found in file.items()}
    yield from read_arrays(sets)


def read_npy(folder: Path):
    yield from read_arrays({path.stem: np.load(path) for path in folder.glob("*.npy")})


def read_arrays(sets: dict[str, np.ndarray]):
    images = next(a for a in sets.values() if a.ndim == 4)
    labels = next((a for a in sets.values() if a.ndim == 1), [None] * len(images))
    yield from zip(images, labels, strict=True)


READERS = {"tar": read_tar, "tfrecord": read_tfrecord, "lmdb": read_lmdb, "hdf5": read_hdf5, "npy": read_npy}


def as_pixels(image) -> np.ndarray:
    if isinstance(image, np.ndarray):
        return image
    if image.startswith(b"\x93NUMPY"):
        return np.load(io.BytesIO(image))
    if len(image) == sources.HEIGHT * sources.WIDTH * 3:  # as it stands in a TFRecord
        return np.frombuffer(image, np.uint8).reshape(sources.HEIGHT, sources.WIDTH, 3)
    return pixels(image)
