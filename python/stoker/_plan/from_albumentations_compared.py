# SPDX-License-Identifier: Apache-2.0
"""Whether the engine's steps give the bytes of the Albumentations that is installed: they are compared, not its version."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._steps.base import Transform
from .compare import gives, samples
from .from_albumentations import cannot

Pair = tuple[dict[str, Any], Transform]  # options of Albumentations' class, and what is to have the same results
_compared: dict[Any, bool] = {}  # by the class and what was compared


def _agrees(kind: type, pairs: Iterable[Pair], images: list[Any]) -> bool:
    for options, ours in pairs:
        theirs = kind(**options, p=1.0)
        for image in images:
            if not gives(ours, image, theirs(image=image.copy())["image"]):
                return False
    return True


def compare(t: Any, what: Any, pairs: Callable[[], Iterable[Pair]], images: Callable[[], list[Any]] = samples) -> None:
    """Raise if a step without anything to draw does not give the bytes of Albumentations' class with these options."""
    judge(t, what, lambda: _agrees(type(t), pairs(), images()))


def judge(t: Any, what: Any, agrees: Callable[[], bool]) -> None:
    """Raise unless it agrees, which is asked once for each class and `what`."""
    key = type(t), what
    if key not in _compared:
        try:
            _compared[key] = agrees()
        except Exception:  # a version with other options
            _compared[key] = False
    if not _compared[key]:
        raise cannot(t, "the versions of Albumentations and OpenCV that are installed calculate in another way than the engine")
