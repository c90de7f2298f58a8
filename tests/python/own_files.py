# SPDX-License-Identifier: Apache-2.0
"""The files that the datasets of own_images.py and own_datasets.py read."""

from __future__ import annotations

import csv
import io
import json
import random
import tarfile
import wave
import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import numpy as np
from conftest import picture
from PIL import Image

COUNT = 24


def make_files(root: Path) -> Path:
    """Photographs in two classes, and beside them what the datasets want."""
    rows, boxes = [], {}
    for number in range(COUNT):
        name = f"{number:03}"
        image = picture(number, 60 + 5 * (number % 6), 76 - 3 * (number % 7))
        path = root / "images" / ("cat", "dog")[number % 2] / f"{name}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        options = {"progressive": True} if number % 8 == 7 else {}
        image.save(path, quality=88, **options)
        save_mask(root / "masks" / f"{name}.png", image)
        rows.append([path.relative_to(root), number % 2, number * 1.5])
        boxes[path.name] = [[3 + n, 4, 20 + n, 30 + number % 9, 1 + n] for n in range(1 + number % 3)]
        save_annotation(root / "annotations" / f"{name}.xml", path.name, boxes[path.name])
    with open(root / "labels.csv", "w", newline="") as file:
        csv.writer(file).writerows([["path", "label", "score"], *rows])
    (root / "boxes.json").write_text(json.dumps(boxes))
    words = "a small large old black white cat dog runs sleeps jumps on the grass bed street".split()
    chance = random.Random(3)
    texts = {}
    for number in range(COUNT):
        texts[f"{number:03}"] = [" ".join(chance.choices(words, k=chance.randint(3, 9))) for _ in range(3)]
    (root / "captions.json").write_text(json.dumps(texts))
    np.save(root / "arrays.npy", np.random.default_rng(0).integers(0, 256, (COUNT, 32, 32, 3), np.uint8))
    make_sounds(root)
    make_archives(root)
    return root


def save_mask(path, image):
    path.parent.mkdir(exist_ok=True)
    mask = Image.fromarray((np.asarray(image.convert("L")) > 120).astype(np.uint8))
    mask.putpalette([0, 0, 0, 255, 255, 255])
    mask.save(path)


def save_annotation(path, name, boxes):
    path.parent.mkdir(exist_ok=True)
    root = ET.Element("annotation")
    ET.SubElement(root, "filename").text = name
    for box in boxes:
        thing = ET.SubElement(root, "object")
        ET.SubElement(thing, "name").text = f"kind{box[4]}"
        place = ET.SubElement(thing, "bndbox")
        for key, value in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=False):
            ET.SubElement(place, key).text = str(value)
    ET.ElementTree(root).write(path)


def make_sounds(root):
    (root / "sounds").mkdir()
    for number in range(COUNT):
        samples = np.random.default_rng(number).normal(0, 4000, 900 + 70 * number).astype("<i2")
        with wave.open(str(root / "sounds" / f"{number:03}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes(samples.tobytes())


def make_archives(root):
    paths = photographs(root)
    with zipfile.ZipFile(root / "images.zip", "w") as archive:
        for path in paths:
            archive.write(path, f"{path.parent.name}/{path.name}")
    for shard in range(4):
        with tarfile.open(root / f"shard-{shard}.tar", "w") as archive:
            for path in paths[shard::4]:
                archive.add(path, f"{path.stem}.jpg")
                label = str(int(path.parent.name == "dog")).encode()
                member = tarfile.TarInfo(f"{path.stem}.cls")
                member.size = len(label)
                archive.addfile(member, io.BytesIO(label))
        np.savez(root / f"shard-{shard}.npz", x=np.arange(24).reshape(6, 4) + shard, y=np.arange(6) % 2)


def photographs(root):
    return sorted((root / "images").glob("*/*.jpg"), key=lambda path: path.name)
