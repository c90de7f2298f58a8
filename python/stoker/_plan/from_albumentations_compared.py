# SPDX-License-Identifier: Apache-2.0
"""Whether the engine's steps give the bytes of the Albumentations that is installed: they are compared, not its version."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .._steps import single
from .._steps.base import Transform
from .from_albumentations import cannot

Pair = tuple[dict[str, Any], Transform]  # options of Albumentations' class, and what is to have the same results
_compared: dict[Any, bool] = {}  # by the class and what was compared


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


def _agrees(kind: type, pairs: Iterable[Pair], images: list[Any]) -> bool:
    for options, ours in pairs:
        theirs = kind(**options, p=1.0)
        for image in images:
            wanted = theirs(image=image.copy())["image"]
            got = single.run(ours._spec(), image, 0, seed=0, dtype=None, memory_format=None, pillow=13)
            if wanted.dtype != np.uint8 or not np.array_equal(wanted, got.transpose(1, 2, 0)):
                return False
    return True


def compare(t: Any, what: Any, pairs: Callable[[], Iterable[Pair]], images: Callable[[], list[Any]] = samples) -> None:
    """Raise if a step without anything to draw does not give the bytes of Albumentations' class with these options."""
    key = type(t), what
    if key not in _compared:
        try:
            _compared[key] = _agrees(type(t), pairs(), images())
        except Exception:  # a version with other options
            _compared[key] = False
    if not _compared[key]:
        raise cannot(t, "the versions of Albumentations and OpenCV that are installed calculate in another way than the engine")
