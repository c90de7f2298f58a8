# SPDX-License-Identifier: Apache-2.0
"""Files with which an installed wheel is tested, and what Pillow makes of the images.

    packaging/make_samples.py FOLDER
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parent.parent
SOUNDS = ("float.wav", "ima_adpcm.wav", "pcm_16.wav", "pcm_16.flac", "vorbis.ogg", "opus.ogg", "mpeg_layer_iii.mp3")
KINDS = {
    "baseline.jpg": {"quality": 90},
    "progressive.jpg": {"quality": 75, "progressive": True},
    "plain.png": {},
    "lossy.webp": {"quality": 80},
    "lossless.webp": {"lossless": True},
    "plain.bmp": {},
    "plain.ppm": {},
    **{f"{name}.tif": {"compression": name} for name in
       ("raw", "packbits", "tiff_lzw", "tiff_adobe_deflate", "jpeg", "lzma", "zstd")},
}  # fmt: skip


def picture(seed: int, width: int, height: int) -> Image.Image:
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    values = 128 + x[..., None] * rng.uniform(-1, 1, 3) + y[..., None] * rng.uniform(-1, 1, 3)
    return Image.fromarray(np.clip(values + rng.normal(0, 9, (height, width, 3)), 0, 255).astype(np.uint8))


def main() -> None:
    root = Path(sys.argv[1])
    shutil.rmtree(root, ignore_errors=True)
    (root / "images").mkdir(parents=True)
    for number, (name, options) in enumerate(KINDS.items()):
        path = root / "images" / name
        picture(number, 90, 70).save(path, **options)
        np.save(path.with_name(f"{name}.npy"), np.asarray(Image.open(path).convert("RGB")))
    for number in range(24):
        path = root / "train" / "abc"[number % 3] / f"{number:02}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(100 + number, 64, 48).save(path)
    for name in SOUNDS:
        path = root / "sounds" / name.rpartition(".")[2] / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "tests" / "fuzz" / "corpus" / "audio" / name, path)
    shutil.copy(ROOT / "tests" / "data" / "hdf5" / "filters.h5", root)


if __name__ == "__main__":
    main()
