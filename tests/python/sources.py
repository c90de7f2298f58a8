# SPDX-License-Identifier: Apache-2.0
"""The same samples in every format: 23 images of 24 x 20 pixels with labels, as the format's own library
writes them."""

from __future__ import annotations

import io
import json
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import picture
from stoker import datasets

COUNT, WIDTH, HEIGHT = 23, 24, 20


def pixels(i: int) -> np.ndarray:
    return np.asarray(picture(i, WIDTH, HEIGHT))


def encoded(i: int) -> bytes:
    """A PNG: what it holds is what is read."""
    file = io.BytesIO()
    picture(i, WIDTH, HEIGHT).save(file, "PNG")
    return file.getvalue()


def label(i: int) -> int:
    return (i * 7) % 5


def write_tar(path: Path, members: list[tuple[str, bytes]]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def make_tar(root: Path) -> str:
    """Three shards, with fields of every type."""
    for shard in range(3):
        members = []
        for i in range(shard * 8, min(COUNT, shard * 8 + 8)):
            fields = {
                "png": encoded(i),
                "cls": b"%d" % label(i),
                "txt": f"Bild {i} für dich".encode(),
                "json": json.dumps({"number": i, "list": [1.5, None]}).encode(),
                "npy": npy(np.arange(6, dtype=np.float32).reshape(2, 3) + i),
                "rag.npy": npy(np.arange(i % 3, dtype=np.int32)),
                "bin": bytes(range(i)),
            }
            members += [(f"{i:04}.{suffix}", data) for suffix, data in fields.items()]
        write_tar(root / f"s-{shard}.tar", members)
    return str(root / "s-{0..2}.tar")


def _crc_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


_TABLE = _crc_table()


def masked_crc(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _tagged(number: int, data: bytes) -> bytes:
    size = len(data)
    length = b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + data


def record(image: bytes, number: int) -> bytes:
    """A framed tf.train.Example."""
    features = {
        b"image/encoded": _tagged(1, _tagged(1, image)),
        b"image/class/label": _tagged(3, _tagged(1, bytes([number]))),
    }
    entries = b"".join(
        _tagged(1, _tagged(1, name) + _tagged(2, value)) for name, value in features.items()
    )
    data = _tagged(1, entries)
    head = struct.pack("<Q", len(data))
    return head + masked_crc(head) + data + masked_crc(data)


def make_tfrecord(root: Path) -> list[str]:
    for shard in range(2):
        rows = range(shard * 12, min(COUNT, shard * 12 + 12))
        (root / f"s-{shard}.tfrecord").write_bytes(b"".join(record(encoded(i), label(i)) for i in rows))
    return [str(root / f"s-{shard}.tfrecord") for shard in range(2)]


def make_hdf5(root: Path) -> str:
    h5py = pytest.importorskip("h5py")
    with h5py.File(root / "x.h5", "w") as file:
        images = np.stack([pixels(i) for i in range(COUNT)])
        file.create_dataset("images", data=images, chunks=(4, HEIGHT, WIDTH, 3), compression="gzip")
        file["labels"] = [label(i) for i in range(COUNT)]
        file["more/boxes"] = np.arange(COUNT * 4, dtype=np.float64).reshape(COUNT, 4)
        file["scores"] = np.linspace(0, 1, COUNT, dtype=np.float32)
        file["deep"] = np.arange(COUNT * 32, dtype=np.int16).reshape(COUNT, 2, 2, 2, 2, 2)
    return str(root / "x.h5")


def datum(i: int) -> bytes:
    """Caffe's: encoded image, label, and that it is encoded."""
    return _tagged(4, encoded(i)) + bytes([5 << 3, label(i)]) + bytes([7 << 3, 1])


def make_lmdb(root: Path, value: Callable[[int], bytes] = datum) -> str:
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(str(root / "x.lmdb"), map_size=1 << 22) as env, env.begin(write=True) as txn:
        for i in range(COUNT):
            txn.put(b"%04d" % i, value(i))
    return str(root / "x.lmdb")


def make_zip(root: Path) -> str:
    with zipfile.ZipFile(root / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(5):
            for i in range(COUNT):
                if label(i) == number:
                    archive.writestr(f"data/class{number}/{i:04}.png", encoded(i))
    return str(root / "x.zip")


def make_npz(root: Path) -> str:
    images = np.stack([pixels(i) for i in range(COUNT)])
    np.savez(root / "x.npz", images=images, labels=np.array([label(i) for i in range(COUNT)], np.int16))
    return str(root / "x.npz")


def make_manifest(root: Path) -> str:
    lines = ["path,label"]
    for i in range(COUNT):
        (root / f"{i}.png").write_bytes(encoded(i))
        lines.append(f"{i}.png,{label(i)}")
    (root / "x.csv").write_text("\n".join(lines) + "\n")
    return str(root / "x.csv")


Opener = Callable[[Any], datasets.EngineDataset]
# How each is made, and opened with a transform so that a sample is an image and a label.
FORMATS: dict[str, tuple[Callable[[Path], Any], Callable[[Any, Any], datasets.EngineDataset]]] = {
    "tar": (make_tar, lambda path, t: datasets.WebDataset(path, ("png", "cls"), t)),
    "tfrecord": (make_tfrecord, lambda path, t: datasets.TFRecord(path, transform=t)),
    "hdf5": (make_hdf5, lambda path, t: datasets.HDF5(path, transform=t)),
    "lmdb": (make_lmdb, lambda path, t: datasets.LMDB(path, "datum", t)),
    "zip": (make_zip, lambda path, t: datasets.Zip(path, transform=t)),
    "npz": (make_npz, lambda path, t: datasets.Npz(path, ("images", "labels"), t)),
    "manifest": (make_manifest, lambda path, t: datasets.Manifest(path, transform=t)),
}


def order_of(kind: str) -> list[int]:
    """Which of the samples comes at which place: a zip archive goes by classes."""
    return sorted(range(COUNT), key=label) if kind == "zip" else list(range(COUNT))
