# SPDX-License-Identifier: Apache-2.0
"""Compares what libraries make of images with what the engine makes of them, before the engine takes their place."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._steps import single
from .._steps.base import Transform


def samples() -> list[Any]:
    """Return small images: noise, a smooth one, one of few values, and one with many ends of rows, where OpenCV has other
    loops."""
    rng = np.random.default_rng(5)
    y, x = np.mgrid[:61, :83]
    smooth = np.stack([x * 3, y * 4, 255 - x - 2 * y], 2).astype(np.uint8)
    noise = rng.integers(0, 256, (37, 150, 3), np.uint8)
    few = rng.integers(100, 109, (16, 19, 3), np.uint8) * np.array([1, 2, 1], np.uint8)
    narrow = rng.integers(0, 256, (211, 5, 3), np.uint8)
    return [noise, smooth, few, narrow]


def gives(step: Transform, image: Any, wanted: Any) -> bool:
    """Return whether the engine's result for an array of an image is this one, of bytes."""
    got = single.run(step._spec(), image, 0, seed=0, dtype=None, memory_format=None, pillow=13)
    return bool(wanted.dtype == np.uint8 and np.array_equal(wanted, got.transpose(1, 2, 0)))
