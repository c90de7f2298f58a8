# SPDX-License-Identifier: Apache-2.0
"""Functions of torchvision and Pillow that change values: on a lazy image, what they do is recorded instead."""

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

MOST = 1e6  # the greatest factor that the engine takes
_Numbers = tuple[float, ...]


def blend(low: float) -> Callable[[Any], _Numbers | None]:
    def read(factor: Any) -> _Numbers | None:
        return (factor,) if isinstance(factor, (int, float)) and low <= factor <= MOST else None

    return read


def _shift(factor: Any) -> _Numbers | None:
    """torchvision multiplies in double precision: the factor must be one that the engine's float32 represents."""
    if not isinstance(factor, (int, float)) or not -0.5 <= factor <= 0.5:
        return None
    return (factor,) if struct.unpack("f", struct.pack("f", factor))[0] == factor else None


def threshold(value: Any) -> _Numbers | None:
    known = isinstance(value, (int, float)) and -MOST <= value <= MOST
    return (value,) if known else None


def bits(count: Any) -> _Numbers | None:
    return (count,) if type(count) is int and 1 <= count <= 8 else None


def _order(permutation: Any) -> _Numbers | None:
    numbers = permutation.tolist() if hasattr(permutation, "tolist") else permutation
    known = isinstance(numbers, list) and sorted(numbers) == [0, 1, 2]
    return tuple(numbers) if known else None


class Colour:
    """A function that changes values, and what records it in a lazy image.

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

    def record(self, image: Any, values: tuple[Any, ...]) -> Any:
        """Return the changed image; None if the engine has no such change."""
        if image._mode not in self._modes or len(values) != len(self._samples[0]):
            return None
        numbers = self._read(*values)
        return None if numbers is None else image.recoloured(self._kind, *numbers, keeps_info=self._keeps_info)

    def agrees_with(self, original: Callable[..., Any]) -> bool:
        """Return whether the engine computes what the installed version computes, tried once on small images."""
        if self._agrees is None:
            size = (64, 64)
            bands = {mode: 64 * 64 * len(mode) for mode in self._modes}
            images = [Image.frombytes(mode, size, random.Random(1).randbytes(count)) for mode, count in bands.items()]
            self._agrees = True
            for values, image in ((values, image) for values in self._samples for image in images):
                lazy = self.record(deferred(Decoded(image), (), image.mode, size, {}), values)
                if lazy is None or lazy.tobytes() != original(image, *values).tobytes():
                    self._agrees = False
        return self._agrees

    def wrapped(self, original: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(original)

        def function(*args: Any, **named: Any) -> Any:
            try:
                image, *values = _with_defaults(signature, args, named)
            except TypeError:
                return original(*args, **named)
            if isinstance(image, Lazy) and self.agrees_with(original):
                out = self.record(image, tuple(values))
                if out is not None:
                    return out
            return original(*args, **named)

        return in_place_of(original, function)


def _with_defaults(signature: inspect.Signature, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """Return all arguments in their order; TypeError if the function does not take them."""
    if not named and len(args) == len(signature.parameters):
        return args
    bound = signature.bind(*args, **named)
    bound.apply_defaults()
    return tuple(bound.arguments.values())


FACTORS = [(0.0,), (0.25,), (0.46,), (1.1,), (1.7,)]  # rounding shows with the uneven ones
_SHIFTS = [(struct.unpack("f", struct.pack("f", shift))[0],) for shift in (-0.5, -0.125, 0.25, 0.46)]

COLOURS = {
    "adjust_brightness": Colour(_ext.EDIT_BRIGHTNESS, blend(0.0), FACTORS, keeps_info=False),
    "adjust_contrast": Colour(_ext.EDIT_CONTRAST, blend(0.0), FACTORS, keeps_info=False),
    "adjust_saturation": Colour(_ext.EDIT_SATURATION, blend(0.0), FACTORS, keeps_info=True),
    "adjust_sharpness": Colour(_ext.EDIT_SHARPNESS, blend(-MOST), [*FACTORS, (-0.7,)], keeps_info=True),
    "adjust_hue": Colour(_ext.EDIT_HUE, _shift, _SHIFTS, keeps_info=False, takes_grey=False),
    "autocontrast": Colour(_ext.EDIT_AUTOCONTRAST, lambda: (), [()], keeps_info=True),
    "equalize": Colour(_ext.EDIT_EQUALIZE, lambda: (), [()], keeps_info=True),
    "invert": Colour(_ext.EDIT_SOLARIZE, lambda: (0.0,), [()], keeps_info=True),
    "permute_channels": Colour(
        _ext.EDIT_PERMUTE, _order, [([1, 2, 0],), ([0, 2, 1],)], keeps_info=False, takes_grey=False
    ),
    "posterize": Colour(_ext.EDIT_POSTERIZE, bits, [(1,), (3,), (8,)], keeps_info=True),
    "solarize": Colour(_ext.EDIT_SOLARIZE, threshold, [(-1.0,), (100,), (128.5,)], keeps_info=True),
    "to_grayscale": Colour(
        _ext.EDIT_GREY, lambda channels: () if channels == 3 else None, [(3,)], keeps_info=False, takes_grey=False
    ),
}
