# SPDX-License-Identifier: Apache-2.0
"""torchvision's functions that change values: on a lazy image, what they do is recorded instead."""

from __future__ import annotations

import inspect
import random
import struct
from collections.abc import Callable
from typing import Any

from PIL import Image

from .. import _ext
from .._base.unmodified import in_place_of
from .images import Lazy, deferred
from .pixels import Decoded

_MOST = 1e6  # the greatest factor that the engine takes
_Numbers = tuple[float, ...]


def _blend(low: float) -> Callable[[Any], _Numbers | None]:
    def read(factor: Any) -> _Numbers | None:
        return (factor,) if isinstance(factor, (int, float)) and low <= factor <= _MOST else None

    return read


def _shift(factor: Any) -> _Numbers | None:
    """torchvision multiplies in double precision: the factor must be one that the engine's float32 represents."""
    if not isinstance(factor, (int, float)) or not -0.5 <= factor <= 0.5:
        return None
    return (factor,) if struct.unpack("f", struct.pack("f", factor))[0] == factor else None


def _threshold(threshold: Any) -> _Numbers | None:
    known = isinstance(threshold, (int, float)) and -_MOST <= threshold <= _MOST
    return (threshold,) if known else None


def _bits(bits: Any) -> _Numbers | None:
    return (bits,) if type(bits) is int and 1 <= bits <= 8 else None


def _order(permutation: Any) -> _Numbers | None:
    numbers = permutation.tolist() if hasattr(permutation, "tolist") else permutation
    known = isinstance(numbers, list) and sorted(numbers) == [0, 1, 2]
    return tuple(numbers) if known else None


class Colour:
    """A function of torchvision that changes values, and what records it in a lazy image.

    `read` returns the edit's numbers for the arguments behind the image, and None for arguments that are left to the
    function. `samples` are arguments with which both are compared.
    """

    def __init__(
        self,
        kind: int,
        read: Callable[..., _Numbers | None],
        samples: list[tuple[Any, ...]],
        *,
        keeps_info: bool,
        takes_grey: bool = True,
    ) -> None:
        self._kind = kind
        self._read = read
        self._samples = samples
        self._modes = ("RGB", "L") if takes_grey else ("RGB",)
        self._keeps_info = keeps_info
        self._agrees: bool | None = None

    def _record(self, image: Any, values: tuple[Any, ...]) -> Any:
        if image._mode not in self._modes or len(values) != len(self._samples[0]):
            return None
        numbers = self._read(*values)
        return None if numbers is None else image.recoloured(self._kind, *numbers, keeps_info=self._keeps_info)

    def _same_as(self, original: Callable[..., Any]) -> bool:
        """Return whether the engine computes what the installed version computes, tried once on small images."""
        if self._agrees is None:
            size = (64, 64)
            bands = {mode: 64 * 64 * len(mode) for mode in self._modes}
            images = [Image.frombytes(mode, size, random.Random(1).randbytes(count)) for mode, count in bands.items()]
            self._agrees = True
            for values, image in ((values, image) for values in self._samples for image in images):
                lazy = self._record(deferred(Decoded(image), (), image.mode, size, {}), values)
                if lazy is None or lazy.tobytes() != original(image, *values).tobytes():
                    self._agrees = False
        return self._agrees

    def wrapped(self, original: Callable[..., Any]) -> Callable[..., Any]:
        names = set(inspect.signature(original).parameters)

        def function(img: Any, *args: Any, **named: Any) -> Any:
            if isinstance(img, Lazy) and self._same_as(original):
                out = self._record(img, (*args, *named.values())) if named.keys() <= names else None
                if out is not None:
                    return out
            return original(img, *args, **named)

        return in_place_of(original, function)


_FACTORS = [(0.0,), (0.25,), (0.46,), (1.1,), (1.7,)]  # rounding shows with the uneven ones
_SHIFTS = [(struct.unpack("f", struct.pack("f", shift))[0],) for shift in (-0.5, -0.125, 0.25, 0.46)]

COLOURS = {
    "adjust_brightness": Colour(_ext.EDIT_BRIGHTNESS, _blend(0.0), _FACTORS, keeps_info=False),
    "adjust_contrast": Colour(_ext.EDIT_CONTRAST, _blend(0.0), _FACTORS, keeps_info=False),
    "adjust_saturation": Colour(_ext.EDIT_SATURATION, _blend(0.0), _FACTORS, keeps_info=True),
    "adjust_sharpness": Colour(_ext.EDIT_SHARPNESS, _blend(-_MOST), [*_FACTORS, (-0.7,)], keeps_info=True),
    "adjust_hue": Colour(_ext.EDIT_HUE, _shift, _SHIFTS, keeps_info=False, takes_grey=False),
    "autocontrast": Colour(_ext.EDIT_AUTOCONTRAST, lambda: (), [()], keeps_info=True),
    "equalize": Colour(_ext.EDIT_EQUALIZE, lambda: (), [()], keeps_info=True),
    "invert": Colour(_ext.EDIT_SOLARIZE, lambda: (0.0,), [()], keeps_info=True),
    "permute_channels": Colour(
        _ext.EDIT_PERMUTE, _order, [([1, 2, 0],), ([0, 2, 1],)], keeps_info=False, takes_grey=False
    ),
    "posterize": Colour(_ext.EDIT_POSTERIZE, _bits, [(1,), (3,), (8,)], keeps_info=True),
    "solarize": Colour(_ext.EDIT_SOLARIZE, _threshold, [(-1.0,), (100,), (128.5,)], keeps_info=True),
    "to_grayscale": Colour(
        _ext.EDIT_GREY, lambda channels: () if channels == 3 else None, [(3,)], keeps_info=False, takes_grey=False
    ),
}
