# SPDX-License-Identifier: Apache-2.0
"""Functions in which Albumentations spends its time, done by the engine with the same bytes.

Albumentations runs as it is: it draws its numbers and calls its own functions, in its order. Functions of two kinds are
replaced here. Those that turn each byte into a float that depends on nothing else (Normalize, ToFloat): what they do is
read from Albumentations itself, by giving it an image of all 256 values, and then looked up. And the copy that it makes
of each array that is not contiguous, after rotations by right angles for instance. Each is first compared with the
result of Albumentations, and left alone if that differs.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _ext
from .._base.unmodified import in_place_of
from .patches import IsOn, Patch, function_patches

_LEAST = 1 << 12  # bytes of an image; smaller ones are as fast without this
_TABLES_MOST = 64


def _is_plain(image: Any) -> bool:
    """Return whether this is an ordinary array of bytes that is worth the trouble."""
    return type(image) is np.ndarray and image.dtype == np.uint8 and image.size >= _LEAST


def _is_same(ours: Any, wanted: Any) -> bool:
    """Return whether two arrays are equal in every respect, to the bit."""
    return (
        type(wanted) is np.ndarray
        and (ours.dtype, ours.shape, ours.strides) == (wanted.dtype, wanted.shape, wanted.strides)
        and ours.flags.owndata == wanted.flags.owndata
        and ours.flags.writeable == wanted.flags.writeable
        and ours.tobytes() == wanted.tobytes()
    )


# ---- floats for bytes ----


def _frozen(value: Any) -> Any:
    """Return an argument as part of a key. TypeError if it is of a kind not known here."""
    if type(value) in (int, str, type(None)):
        return type(value), value
    if type(value) is float:
        return float, struct.pack("d", value)  # zeros of both signs are equal, and divide differently
    if type(value) is np.ndarray or isinstance(value, np.number):
        if value.dtype.hasobject:
            raise TypeError(value)
        return type(value), value.dtype.str, value.shape, value.tobytes()
    raise TypeError(value)


def _looked_up(image: Any, table: Any) -> Any:
    out = np.empty(image.shape, np.float32)
    _ext.through_table(out, image, table)
    return out


def _table(original: Any, image: Any, wanted: Any, args: Any, named: Any) -> Any:
    """Return the float for each value and channel; None if that is not what the function does."""
    levels = np.arange(256, dtype=np.uint8).reshape(256, *[1] * (image.ndim - 1))
    levels = np.ascontiguousarray(np.broadcast_to(levels, (256, 1, *image.shape[2:])))
    table = original(levels, *args, **named)
    if type(table) is not np.ndarray or table.dtype != np.float32 or table.shape != levels.shape:
        return None
    table = np.ascontiguousarray(table)
    return table if _is_same(_looked_up(image, table), wanted) else None


def _by_table(original: Any, is_on: IsOn) -> Any:
    tables: dict[Any, Any] = {}  # by the arguments; None: Albumentations' function is called

    def first(key: Any, image: Any, args: Any, named: Any) -> Any:
        wanted = original(image, *args, **named)
        while len(tables) >= _TABLES_MOST:
            tables.pop(next(iter(tables)), None)
        try:
            tables[key] = _table(original, image, wanted, args, named)
        except Exception:  # it does not take such an image
            tables[key] = None
        return wanted

    def function(*args: Any, **named: Any) -> Any:
        if not (args and _is_plain(args[0]) and _has_channels(args[0]) and is_on()):
            return original(*args, **named)
        image, rest = args[0], args[1:]
        try:
            key = image.shape[2:], *map(_frozen, rest), *((name, _frozen(named[name])) for name in sorted(named))
        except TypeError:
            return original(*args, **named)
        if key not in tables:
            return first(key, image, rest, named)
        table = tables.get(key)
        return original(*args, **named) if table is None else _looked_up(image, table)

    return in_place_of(original, function)


def _has_channels(image: Any) -> bool:
    return image.flags.c_contiguous and (image.ndim == 2 or (image.ndim == 3 and image.shape[2] in (1, 3)))


# ---- copies ----


def _packed(image: Any) -> Any:
    """Return a contiguous copy of pixels of three bytes; None if it is not made here."""
    out = np.empty(image.shape, np.uint8)
    return out if _ext.copy_packed(out, image) else None


def _is_turned(image: Any) -> bool:
    """Return whether the pixels of a row do not follow each other. Where they do, NumPy copies whole rows as well."""
    return image.ndim == 3 and image.shape[2] == 3 and image.strides[1:] != (3, 1)


def _contiguous(original: Any, is_on: IsOn) -> Any:
    agrees: list[bool] = []  # empty until the first comparison

    def function(*args: Any, **named: Any) -> Any:
        if not (len(args) == 1 and not named and _is_plain(args[0]) and _is_turned(args[0]) and is_on()):
            return original(*args, **named)
        if not agrees:
            wanted, ours = original(*args), _packed(args[0])
            agrees.append(ours is not None and _is_same(ours, wanted))
            return wanted
        ours = _packed(args[0]) if agrees[0] else None
        return original(*args) if ours is None else ours

    return in_place_of(original, function)


# By module and name.
_FUNCTIONS: dict[str, dict[str, Callable[[Any, IsOn], Any]]] = {
    "albucore.functions": {"normalize_lut": _by_table, "to_float_lut": _by_table},
    "albumentations.core.transforms_interface": {"ensure_contiguous_output": _contiguous},
}


@functools.cache
def patches(module_name: str, is_on: IsOn) -> list[Patch]:
    """Return the patches of a module, which must be imported."""
    return function_patches(module_name, _FUNCTIONS[module_name], is_on)
