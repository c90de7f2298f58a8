# SPDX-License-Identifier: Apache-2.0
"""Small copies of torchvision's datasets, read from files of their own formats by torchvision's own code."""

from __future__ import annotations

import hashlib
import pickle
import struct

import numpy as np
from torchvision import datasets


def _pickled(path, value):
    data = pickle.dumps(value)
    path.write_bytes(data)
    return hashlib.md5(data).hexdigest()


def cifar(folder, count=37, base=datasets.CIFAR10, **options):
    """`count` images in two files, as torchvision's class finds them."""
    rng = np.random.default_rng(count)
    root = folder / base.base_folder
    root.mkdir(parents=True, exist_ok=True)
    key = "labels" if base is datasets.CIFAR10 else "fine_labels"
    files = []
    for number, part in enumerate(np.array_split(np.arange(count), 2)):
        name = f"data_{number}"
        pixels = rng.integers(0, 256, (len(part), 3072), np.uint8)
        entry = {"data": pixels, key: [int(i) % 10 for i in part]}
        files.append([name, _pickled(root / name, entry)])
    names = {base.meta["key"]: [f"class {i}" for i in range(10)]}
    meta = {**base.meta, "md5": _pickled(root / base.meta["filename"], names)}
    kind = type(base.__name__, (base,), {"train_list": files, "test_list": files, "meta": meta})
    return kind(folder, **options)


def mnist(folder, count=29, base=datasets.MNIST, **options):
    rng = np.random.default_rng(count)
    raw = folder / base.__name__ / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    images = rng.integers(0, 256, (count, 28, 28), np.uint8)
    labels = (np.arange(count) * 7 % 10).astype(np.uint8)
    for train in ("train", "t10k"):
        header = struct.pack(">IIII", 0x803, count, 28, 28)
        (raw / f"{train}-images-idx3-ubyte").write_bytes(header + images.tobytes())
        (raw / f"{train}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x801, count) + labels.tobytes())
    return base(folder, **options)
