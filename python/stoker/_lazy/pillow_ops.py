# SPDX-License-Identifier: Apache-2.0
"""Pillow's ImageOps and ImageEnhance on lazy images: what looks at pixels only to change values is recorded instead.

The other functions of ImageOps need nothing here: they call methods that a lazy image overrides, or access its pixels.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from PIL import Image, ImageEnhance, ImageOps

from .. import _ext
from .._base.unmodified import in_place_of
from .colours import FACTORS, MOST, Colour, bits, blend, threshold
from .images import PIXELS_MOST, Alike, Lazy, set_class
from .patches import Patch, applied

_FUNCTIONS = {
    "autocontrast": Colour(
        _ext.EDIT_AUTOCONTRAST,
        lambda cutoff, ignore, mask, tone: () if not (cutoff or mask or tone) and ignore is None else None,
        [(0, None, None, False)],
        keeps_info=True,
    ),
    "equalize": Colour(_ext.EDIT_EQUALIZE, lambda mask: () if mask is None else None, [(None,)], keeps_info=True),
    "invert": Colour(_ext.EDIT_SOLARIZE, lambda: (0.0,), [()], keeps_info=True),
    "posterize": Colour(_ext.EDIT_POSTERIZE, bits, [(1,), (3,), (8,)], keeps_info=True),
    "solarize": Colour(_ext.EDIT_SOLARIZE, threshold, [(-1.0,), (100,), (128.5,)], keeps_info=True),
}
_ENHANCERS = {
    "Brightness": Colour(_ext.EDIT_BRIGHTNESS, blend(0.0), FACTORS, keeps_info=False),
    "Color": Colour(_ext.EDIT_SATURATION, blend(0.0), FACTORS, keeps_info=True),
    "Contrast": Colour(_ext.EDIT_CONTRAST, blend(0.0), FACTORS, keeps_info=False),
    "Sharpness": Colour(_ext.EDIT_SHARPNESS, blend(-MOST), [*FACTORS, (-0.7,)], keeps_info=True),
}
_BORDER_MOST = 1 << 20


def _expanded(image: Lazy, border: Any, fill: Any) -> Image.Image | None:
    """Return the image with a border; None if Pillow has to make it."""
    sides = border if isinstance(border, tuple) else (border, border)
    if len(sides) not in (2, 4) or not all(type(side) is int and abs(side) <= _BORDER_MOST for side in sides):
        return None
    left, top, right, bottom = (sides * (4 // len(sides)))[:4]
    width, height = left + image._size[0] + right, top + image._size[1] + bottom
    if min(width, height) < 1 or width * height > PIXELS_MOST:
        return None
    new = image.placed(left, top, (width, height), None if type(fill) is int and fill == 0 else fill)
    if new is not None:
        new.info = {}
    return new


def _wrapped_expand(original: Any) -> Any:
    def expand(image: Any, border: Any = 0, fill: Any = 0) -> Any:
        new = _expanded(image, border, fill) if isinstance(image, Lazy) else None
        return original(image, border, fill) if new is None else new

    return in_place_of(original, expand)


def _enhancer(own: Any, colour: Colour) -> Any:
    """Return the class of enhancers of lazy images that have not computed what Pillow's have: a second image."""

    class Enhancer(own, metaclass=Alike, own=own):
        def enhance(self, factor: Any) -> Image.Image:
            image = self.__dict__["image"]
            out = colour.record(image, (factor,)) if isinstance(image, Lazy) else None
            if out is None:
                self._become()
                return self.enhance(factor)
            return out

        def _become(self) -> None:
            """Make it Pillow's, of the image as it was."""
            state = self.__dict__
            state["_stoker"].load()
            set_class(self, own)
            image = state["image"]
            own.__init__(self, state.pop("_stoker"))
            self.image = image

        def __getattr__(self, name: str) -> Any:
            self._become()
            return getattr(self, name)

        def __setattr__(self, name: str, value: Any) -> None:
            self._become()
            setattr(self, name, value)

        def __reduce_ex__(self, protocol: Any) -> Any:
            self._become()
            return self.__reduce_ex__(protocol)

    return Enhancer


def _wrapped_init(own: Any, colour: Colour) -> Callable[[Any], Any]:
    kind = _enhancer(own, colour)

    def enhanced(image: Image.Image, factor: float) -> Image.Image:
        return own(image).enhance(factor)

    def wrap(original: Any) -> Any:
        def __init__(self: Any, image: Any) -> None:
            kept = None
            if type(self) is own and isinstance(image, Lazy) and colour.agrees_with(enhanced):
                kept = image._edited(())
            if kept is None:
                original(self, image)
                return
            self.__dict__.update(image=image, _stoker=kept)
            set_class(self, kind)

        return in_place_of(original, __init__)

    return wrap


@functools.cache
def _patches(module_name: str) -> list[Patch]:
    if module_name == "PIL.ImageOps":
        found = [Patch(ImageOps, name, colour.wrapped) for name, colour in _FUNCTIONS.items()]
        return [*found, Patch(ImageOps, "expand", _wrapped_expand)]
    kinds = ((getattr(ImageEnhance, name), colour) for name, colour in _ENHANCERS.items())
    return [Patch(own, "__init__", _wrapped_init(own, colour)) for own, colour in kinds]


def patch(module_name: str) -> Callable[[], None]:
    """Make the functions or classes of this module recognize lazy images. Return a function that undoes it."""
    return applied(_patches(module_name))
