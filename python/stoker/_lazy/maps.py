# SPDX-License-Identifier: Apache-2.0
"""Affine and perspective maps of lazy images, with the numbers that Pillow's transform() was given."""

from __future__ import annotations

import functools
import math
from typing import Any

from PIL import Image

from .. import _ext
from .pixels import FILTERS, Decoded, made_pixels

_KINDS = {
    Image.Transform.AFFINE: (_ext.EDIT_AFFINE, 6),
    Image.Transform.PERSPECTIVE: (_ext.EDIT_PERSPECTIVE, 8),
}
_RESAMPLES = (Image.Resampling.NEAREST, Image.Resampling.BILINEAR, Image.Resampling.BICUBIC)
# Of two pixels, 100 and 0, a thousand mixtures: some are a level lower where Pillow's build rounds only once, as on
# aarch64.
_TELLING = (0.001, 0.0, 0.4995, 0.0, 1.0, 0.0)


def _fill(mode: str, colour: Any) -> tuple[int, ...] | None:
    """Return red, green and blue of a colour given as numbers."""
    if colour is None:
        return 0, 0, 0
    values = [colour] if isinstance(colour, int) else list(colour) if isinstance(colour, (tuple, list)) else []
    if mode == "L" and len(values) == 1:
        values *= 3
    if len(values) == 3 and all(type(value) is int and 0 <= value <= 255 for value in values):
        return tuple(values)
    return None


def map_edit(
    mode: str, size: tuple[int, int], method: Any, data: Any, resample: Any, colour: Any
) -> tuple[float, ...] | None:
    """Return the edit that does what transform() does; None if the engine has none."""
    if not isinstance(method, int) or method not in _KINDS or resample not in _RESAMPLES:
        return None
    kind, count = _KINDS[Image.Transform(method)]
    fill = _fill(mode, colour)
    if fill is None or mode not in ("RGB", "L") or not isinstance(data, (tuple, list)) or len(data) < count:
        return None
    numbers = data[:count]
    if not all(isinstance(number, (int, float)) and math.isfinite(number) for number in numbers):
        return None
    return (kind, *size, FILTERS[Image.Resampling(resample)], *fill, *map(float, numbers))


@functools.cache
def maps_agree() -> bool:
    """Return whether the engine rounds as this build of Pillow does."""
    image = Image.new("RGB", (2, 1))
    image.putpixel((0, 0), (100, 100, 100))
    arguments = (1000, 1), Image.Transform.AFFINE, _TELLING, Image.Resampling.BILINEAR
    edit = map_edit("RGB", *arguments, None)
    pixels = made_pixels(Decoded(image), (edit,), "RGB") if edit else None
    return pixels is not None and bytes(pixels) == image.transform(*arguments).tobytes()
