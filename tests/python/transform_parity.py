# SPDX-License-Identifier: Apache-2.0
"""Images, and what a transform makes of one, for tests that compare transforms with torchvision's."""

from __future__ import annotations

import numpy as np
import PIL
from PIL import Image
from stoker import transforms as T

PILLOW = 13 if int(PIL.__version__.split(".")[0]) >= 13 else 12


def pictures(count: int, seed: int, largest: int = 120) -> list[np.ndarray]:
    """Images of many sizes: noise, slopes, flat ones, one pixel wide ones."""
    rng = np.random.default_rng(seed)
    made = []
    for k in range(count):
        height, width = (int(v) for v in rng.integers(1, largest, 2))
        if k % 17 == 3:
            height = 1
        if k % 17 == 7:
            width = 1
        if k % 3 == 0:
            image = rng.integers(0, 256, (height, width, 3))
        elif k % 3 == 1:
            y, x = np.mgrid[0:height, 0:width]
            slopes = rng.uniform(-4, 4, (2, 3))
            image = 128 + x[..., None] * slopes[0] + y[..., None] * slopes[1] + rng.normal(0, 8, 3)
        else:
            image = np.broadcast_to(rng.integers(0, 256, 3), (height, width, 3))
        made.append(np.clip(image, 0, 255).astype(np.uint8))
    return made


def apply(transform, image: np.ndarray, **options) -> np.ndarray:
    return T.functional_apply(transform, image, pillow=PILLOW, **options)


def chw(image: Image.Image) -> np.ndarray:
    array = np.asarray(image)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


def coordinates(width: int, height: int) -> np.ndarray:
    """Red says the column and green the row, both counted from 1; zeros are the border of a padding."""
    y, x = np.mgrid[1:height + 1, 1:width + 1]
    return np.stack([x, y, x * 0], -1).astype(np.uint8)
