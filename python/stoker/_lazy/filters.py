# SPDX-License-Identifier: Apache-2.0
"""Blurs and tables of values, as Pillow's filter() and point() take them, as edits of lazy images."""

from __future__ import annotations

import functools
import random
from typing import Any

from PIL import Image, ImageFilter

from .. import _ext
from .pixels import Decoded, made_pixels

_BLURS: dict[Any, int] = {ImageFilter.GaussianBlur: _ext.EDIT_GAUSSIAN_BLUR, ImageFilter.BoxBlur: _ext.EDIT_BOX_BLUR}
_RADIUS_MOST = 65535
_SAMPLES = (0.1, 0.73, (1.0, 0), 1.79, 2.85, (4.1, 17.3))


def blur_edit(mode: str, blur: Any) -> tuple[float, ...] | None:
    """Return the edit that does what filter() does; None if the engine has none."""
    kind = _BLURS.get(type(blur))
    if kind is None or mode not in ("RGB", "L"):
        return None
    radius = blur.radius
    radii = (radius, radius) if isinstance(radius, (int, float)) else radius
    if not isinstance(radii, (list, tuple)) or len(radii) != 2:
        return None
    if not all(isinstance(one, (int, float)) and 0 <= one <= _RADIUS_MOST for one in radii):
        return None
    return (kind, float(radii[0]), float(radii[1]))


def point_edit(mode: str, table: Any) -> tuple[Any, ...] | None:
    """Return the edit that does what point() does with this table; None if the engine has none."""
    if mode not in ("RGB", "L") or not isinstance(table, (list, tuple)) or len(table) != 256 * len(mode):
        return None
    try:
        values = [round(value) for value in table]
    except (TypeError, ValueError, OverflowError):
        return None
    if set(map(type, values)) != {int}:
        return None
    if min(values) < 0 or max(values) > 255:
        if min(values) < -(2**31) or max(values) >= 2**31:
            return None  # Pillow refuses these
        values = [min(max(value, 0), 255) for value in values]
    return _ext.EDIT_POINT, bytes(values) * (3 // len(mode))


@functools.cache
def blurs_agree() -> bool:
    """Return whether the engine blurs as this version of Pillow does, tried once on small images."""
    for mode in ("RGB", "L"):
        image = Image.frombytes(mode, (64, 48), random.Random(1).randbytes(64 * 48 * len(mode)))
        for kind in _BLURS:
            for radius in _SAMPLES:
                blur = kind(radius)
                edit = blur_edit(mode, blur)
                pixels = made_pixels(Decoded(image), (edit,), mode) if edit else None
                if pixels is None or bytes(pixels) != image.filter(blur).tobytes():
                    return False
    return True
