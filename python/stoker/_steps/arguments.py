# SPDX-License-Identifier: Apache-2.0
"""Checks of the transforms' arguments, with torchvision's messages, and the arguments in the engine's notation."""

from __future__ import annotations

import enum
import math
import numbers
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np


class InterpolationMode(enum.Enum):
    """The interpolation of Resize and RandomResizedCrop. They also accept torchvision's enum, the names as strings,
    and Pillow's numbers."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_PILLOW_MODES = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
_PADDING_MODES = ("constant", "edge", "reflect", "symmetric")


def interpolation_mode(mode: Any) -> InterpolationMode:
    name = _PILLOW_MODES.get(mode) if isinstance(mode, int) else getattr(mode, "value", mode)
    try:
        return InterpolationMode(name)
    except ValueError:
        known = ", ".join(m.value for m in InterpolationMode)
        raise ValueError(f"interpolation={mode!r} is not one of {known}") from None


def number_text(value: Any) -> str:
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{value!r} is not a number")
    return repr(int(value)) if isinstance(value, numbers.Integral) else repr(float(value))


def value_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, (Sequence, np.ndarray)) or getattr(value, "ndim", 0) == 1:
        return "[" + ",".join(number_text(v) for v in value) + "]"
    return number_text(value)


def op(name: str, **params: Any) -> str:
    """Return one op of a pipeline's text. Parameters that are None keep their defaults."""
    given = []
    for key, value in params.items():
        try:
            given += [] if value is None else [f"{key}={value_text(value)}"]
        except TypeError as error:
            raise TypeError(f"{name}: {key}={value!r}: {error}") from None
    return f"{name}({', '.join(given)})" if given else name


def pair(size: Any, message: str) -> Any:
    if isinstance(size, str) or not (isinstance(size, numbers.Number) or hasattr(size, "__len__")):
        raise TypeError(f"{message} Got {size!r}, a {type(size).__name__}")
    if isinstance(size, numbers.Real) and not math.isfinite(size):
        raise ValueError(f"{message} Got {size!r}")
    if isinstance(size, numbers.Number):
        return int(size), int(size)  # type: ignore[call-overload]
    if isinstance(size, Sequence) and len(size) == 1:
        return size[0], size[0]
    if len(size) != 2:
        raise ValueError(message)
    return size


SIZE_MESSAGE = "Please provide only two dimensions (h, w) for size."


def check_sequence(value: Any, name: str, lengths: Sequence[int]) -> None:
    text = " or ".join(map(str, lengths))
    if not isinstance(value, Sequence):
        raise TypeError(f"{name} should be a sequence of length {text}.")
    if len(value) not in lengths:
        raise ValueError(f"{name} should be a sequence of length {text}.")


def check_ranges(scale: Any, ratio: Any) -> None:
    if not isinstance(scale, Sequence):
        raise TypeError("Scale should be a sequence")
    if not isinstance(ratio, Sequence):
        raise TypeError("Ratio should be a sequence")
    for name, value in (("scale", scale), ("ratio", ratio)):
        if len(value) != 2 or not all(isinstance(v, numbers.Real) for v in value):
            raise ValueError(f"{name}={value!r} is not a pair of numbers (min, max)")
    if scale[0] > scale[1] or ratio[0] > ratio[1]:
        warnings.warn("Scale and ratio should be of kind (min, max)", stacklevel=3)


def check_padding(padding: Any, fill: Any, padding_mode: str) -> None:
    if not isinstance(padding, (numbers.Number, tuple, list)):
        raise TypeError("Got inappropriate padding arg")
    if not isinstance(fill, (numbers.Number, tuple, list)):
        raise TypeError("Got inappropriate fill arg")
    if padding_mode not in _PADDING_MODES:
        raise ValueError("Padding mode should be either constant, edge, reflect or symmetric")
    if isinstance(padding, Sequence) and len(padding) not in (1, 2, 4):
        raise ValueError(
            f"Padding must be an int or a 1, 2, or 4 element tuple, not a {len(padding)} element tuple"
        )


def four_sides(padding: Any) -> list[Any] | None:
    """Return left, top, right and bottom, from the short forms that torchvision allows."""
    if padding is None:
        return None
    sides = [padding] if isinstance(padding, numbers.Number) else list(padding)
    return {1: sides * 4, 2: sides * 2, 4: sides}[len(sides)]


def filter_word(mode: InterpolationMode) -> str:
    """Return the engine's name of a filter. For images, torchvision's two kinds of "nearest" are the same."""
    return "nearest" if mode is InterpolationMode.NEAREST_EXACT else mode.value
