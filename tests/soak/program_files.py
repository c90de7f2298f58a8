# SPDX-License-Identifier: Apache-2.0
"""Image files for the programs of programs.py: ordinary, odd and damaged ones, and masks, made from a seed."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
from PIL import Image


def pixels(rng, width, height):
    """Slopes, an edge and some noise."""
    y, x = np.mgrid[0:height, 0:width]
    slope = rng.uniform(-3, 3, (2, 3))
    image = 128 + x[..., None] * slope[0] + y[..., None] * slope[1] + rng.normal(0, 14, (height, width, 3))
    image[height // 3 :, width // 2 :] += rng.uniform(-70, 70, 3)
    return np.clip(image, 0, 255).astype(np.uint8)


def save_ordinary(path, image, chance):
    """A baseline JPEG, with the options that cameras and programs use."""
    options = {"quality": chance.choice([60, 75, 90, 95, 100]), "subsampling": chance.choice([0, 1, 2])}
    if chance.random() < 0.2:
        options["optimize"] = True
    if chance.random() < 0.2:
        options["restart_marker_rows"] = 1
    if chance.random() < 0.2:
        options["comment"] = b"made by a test"
    if chance.random() < 0.2:
        options["dpi"] = (72, 72)
    image.save(path.with_suffix(".jpg"), **options)


def save_turned(path, image, chance):
    exif = Image.Exif()
    exif[0x0112] = chance.randint(1, 8)
    image.save(path.with_suffix(".jpg"), quality=90, exif=exif)


def save_damaged(path, image, chance):
    """A JPEG or PNG with a cut end, changed bytes, something behind its end, or nothing of an image at all."""
    path = path.with_suffix(chance.choice([".jpg", ".jpg", ".png"]))
    image.save(path)
    data = bytearray(path.read_bytes())
    how = chance.randrange(6)
    if how == 0:
        del data[chance.randrange(20, len(data)) :]
    elif how == 1:
        del data[-chance.randint(1, 12) :]
    elif how == 2:
        for _ in range(chance.randint(1, 8)):
            data[chance.randrange(len(data) // 3, len(data))] = chance.randrange(256)
    elif how == 3:
        data += bytes(chance.randrange(256) for _ in range(chance.randint(1, 60)))
    elif how == 4:
        data = bytearray(b"this is no image\n" * 9)
    else:
        data.clear()
    path.write_bytes(data)


def save_odd(path, image, chance):
    """Formats and modes that are not RGB JPEGs."""
    how = chance.randrange(13)
    if how == 0:
        image.save(path.with_suffix(".jpg"), quality=85, progressive=True)
    elif how == 1:
        image.convert("L").save(path.with_suffix(".jpg"), quality=85)
    elif how == 2:
        image.convert("CMYK").save(path.with_suffix(".jpg"), quality=85)
    elif how == 3:
        image.save(path.with_suffix(".png"))
    elif how == 4:
        alpha = Image.linear_gradient("L").resize(image.size)
        image.putalpha(alpha)
        image.save(path.with_suffix(chance.choice([".png", ".webp", ".tiff"])))
    elif how == 5:
        image.quantize(31).save(path.with_suffix(".png"))
    elif how == 6:
        image.quantize(17).save(path.with_suffix(".png"), transparency=3)
    elif how == 7:
        image.convert("L").save(path.with_suffix(chance.choice([".png", ".bmp", ".webp"])))
    elif how == 8:
        deep = np.asarray(image.convert("L")).astype(np.uint16) * 257
        Image.fromarray(deep).save(path.with_suffix(".png"))
    elif how == 9:
        image.convert("1").save(path.with_suffix(".png"))
    elif how == 10:
        image.save(path.with_suffix(chance.choice([".bmp", ".webp", ".tiff", ".ppm"])))
    elif how == 11:
        image.quantize(40).save(path.with_suffix(".gif"))
    else:
        image.convert("LA").save(path.with_suffix(".png"))


SAVERS = {
    "ordinary": [save_ordinary],
    "photos": [save_ordinary, save_ordinary, save_ordinary, save_turned],
    "mixed": [save_ordinary, save_ordinary, save_turned, save_odd],
    "odd": [save_odd],
    "damaged": [save_ordinary, save_ordinary, save_ordinary, save_damaged],
}


def make_files(folder, kind, count, seed, small=24, large=72):
    """Write images to folder/images/CLASS, and masks with the same stems to folder/masks."""
    chance, rng = random.Random(seed), np.random.default_rng(seed)
    images, masks = Path(folder) / "images", Path(folder) / "masks"
    masks.mkdir(parents=True)
    for number in range(count):
        place = images / "abc"[number % 3]
        place.mkdir(parents=True, exist_ok=True)
        width, height = chance.randint(small, large), chance.randint(small, large)
        image = Image.fromarray(pixels(rng, width, height))
        chance.choice(SAVERS[kind])(place / f"{number:03}", image, chance)
        mask = Image.fromarray((np.asarray(image.convert("L")) // 64).astype(np.uint8))
        if number % 2:
            mask.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0, 128, 128, 0])
        mask.save(masks / f"{number:03}.png")


def images_of(folder):
    return sorted((Path(folder) / "images").glob("*/*"), key=lambda path: path.stem)


def masks_of(folder):
    return sorted((Path(folder) / "masks").glob("*.png"))
