# SPDX-License-Identifier: Apache-2.0
"""Pixels move between Pillow's memory and the engine's as Pillow moves them."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import picture
from PIL import Image
from stoker import _ext
from stoker._lazy.pixels import core_of, pixels_of


@pytest.mark.parametrize("size", [(1, 1), (2, 1), (7, 5), (224, 224), (2100, 2100)])
def test_pixels_are_moved_as_pillow_moves_them(size):
    image = Image.fromarray(np.random.default_rng(4).integers(0, 256, (*size[::-1], 3), np.uint8))
    pixels, channels = pixels_of(image)
    assert pixels == image.tobytes("raw", "RGB" if channels == 3 else "RGBX")
    made = Image.Image()._new(core_of("RGB", size, image.tobytes()))
    assert made.tobytes("raw", "RGBX") == image.tobytes("raw", "RGBX")
    made.putpixel((0, 0), (1, 2, 3))
    assert made.getpixel((0, 0)) == (1, 2, 3)


def test_rows_with_gaps_are_left_to_pillow():
    image = picture(5, 7, 5)
    Image.core.set_alignment(64)
    try:
        padded = image.copy()
        assert pixels_of(padded) == (image.tobytes("raw", "RGBX"), 4)
        made = Image.Image()._new(core_of("RGB", image.size, image.tobytes()))
    finally:
        Image.core.set_alignment(1)
    assert made.tobytes() == image.tobytes()


@pytest.mark.skipif(not hasattr(Image.Image, "__arrow_c_array__"), reason="Pillow exports its memory from 11.2 on")
def test_memory_that_is_not_an_rgb_image_is_refused():
    rgb, grey = Image.new("RGB", (4, 3)), Image.new("L", (4, 3))
    for wrong in (None, b"bytes", grey.im.__arrow_c_array__(), rgb.im.__arrow_c_schema__()):
        with pytest.raises(ValueError):
            _ext.pillow_read(wrong)
        with pytest.raises(ValueError):
            _ext.pillow_write(wrong, bytes(36))
    for size in (0, 35, 37, 48):
        with pytest.raises(ValueError, match="12 pixels"):
            _ext.pillow_write(rgb.im.__arrow_c_array__(), bytes(size))
