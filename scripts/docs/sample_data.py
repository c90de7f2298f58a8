# SPDX-License-Identifier: Apache-2.0
"""The small data that the examples of the site run on: images, shards, sounds, a table, arrays."""

from __future__ import annotations

import io
import json
import tarfile
import wave
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = ("cat", "dog", "owl")


def picture(number: int, width: int = 96, height: int = 72) -> Image.Image:
    """A slope, an edge and some noise; the class shows in the colour, so that a model can learn it."""
    rng = np.random.default_rng(number)
    y, x = np.mgrid[0:height, 0:width]
    image = 110 + 0.4 * x[..., None] + 0.3 * y[..., None] + rng.normal(0, 10, (height, width, 3))
    image[..., number % len(CLASSES)] += 60
    image[height // 3 :, width // 2 :] -= 40
    return Image.fromarray(np.clip(image, 0, 255).astype(np.uint8))


def jpeg(number: int) -> bytes:
    out = io.BytesIO()
    picture(number, 96 + number % 5, 72 + number % 3).save(out, "JPEG", quality=90)
    return out.getvalue()


def image_folder(root: Path, count: int) -> Path:
    """A folder of JPEG files with one sub-folder for each class."""
    for number in range(count):
        path = root / CLASSES[number % len(CLASSES)] / f"{number:04}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(jpeg(number))
    return root


def _shard(path: Path, numbers: range) -> None:
    with tarfile.open(path, "w") as archive:
        for number in numbers:
            boxes = {"boxes": [[0.1, 0.1, 0.5, 0.4]] * (1 + number % 2), "labels": [1] * (1 + number % 2)}
            members = {"jpg": jpeg(number), "cls": str(number % 3).encode(), "json": json.dumps(boxes).encode()}
            for suffix, data in members.items():
                info = tarfile.TarInfo(f"{number:06}.{suffix}")
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))


def _sound(path: Path, number: int) -> None:
    rate, seconds = 16000, 1.1 + 0.1 * (number % 3)
    time = np.arange(int(rate * seconds)) / rate
    samples = (8000 * np.sin(2 * np.pi * (220 + 40 * number) * time)).astype("<i2")
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, rate, len(samples), "NONE", ""))
        file.writeframes(samples.tobytes())


def _mnist(root: Path) -> None:
    """The files of MNIST, with noise for digits."""
    raw = root / "MNIST" / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name, count in (("train", 64), ("t10k", 32)):
        images = rng.integers(0, 256, (count, 28, 28), np.uint8)
        labels = rng.integers(0, 10, count).astype(np.uint8)
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            sizes = np.array(array.shape, ">u4").tobytes()
            (raw / f"{name}-{kind}-ubyte").write_bytes(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes())


def make(root: Path) -> Path:
    root.mkdir(parents=True)
    image_folder(root / "images", 24)
    image_folder(root / "imagenet" / "train", 24)
    image_folder(root / "imagenet" / "val", 12)
    (root / "shards").mkdir()
    for shard in range(2):
        _shard(root / "shards" / f"train-{shard:03}.tar", range(12 * shard, 12 * shard + 12))
    for number in range(12):
        _sound(root / "speech" / "train" / ("yes" if number % 2 else "no") / f"{number:03}.wav", number)
    rows = [f"images/{CLASSES[n % 3]}/{n:04}.jpg,{CLASSES[n % 3]}" for n in range(24)]
    (root / "photos.csv").write_text("\n".join(["path,label", *rows]) + "\n")
    _mnist(root / "mnist")
    pixels = np.stack([np.asarray(picture(n, 32, 32)) for n in range(24)])
    np.savez(root / "small.npz", x=pixels, y=np.arange(24) % 3)
    return root
