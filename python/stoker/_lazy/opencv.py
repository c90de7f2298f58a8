# SPDX-License-Identifier: Apache-2.0
"""OpenCV's functions in the engine: images in bytes, of which `_steps/cv.py` knows the arithmetic, and ordinary JPEGs, which
its decoder makes in about half of OpenCV's time.

An array's memory can be read by any library at any time, so an array cannot be lazy as an image of Pillow can: it is
decoded at once, and whole. Only regular colour JPEGs that are upright are decoded here. Everything else (other formats
and flags, damaged or missing files) is left to OpenCV, with its result and its messages.
"""

from __future__ import annotations

import functools
import os
import stat
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _ext
from .._base.unmodified import in_place_of, original_of
from .._steps import cv
from .patches import IsOn, Patch, function_patches

_BYTES_MOST = 1 << 26  # of a file that is read whole before it is known to be for the engine
_PIXELS_MOST = 1 << 26
_JPEG = b"\xff\xd8\xff"
_LIMITS = ("OPENCV_IO_MAX_IMAGE_WIDTH", "OPENCV_IO_MAX_IMAGE_HEIGHT", "OPENCV_IO_MAX_IMAGE_PIXELS")
_REFUSALS = (_ext.StokerError, ValueError, MemoryError, OSError)
# OpenCV's flags for which a colour JPEG becomes an array of three channels, and whether red is the last one.
_COLOR, _UNCHANGED, _IGNORE_ORIENTATION, _COLOR_RGB = 1, -1, 128, 256
_IS_BGR = {
    _COLOR: True,
    _UNCHANGED: True,
    _COLOR | _IGNORE_ORIENTATION: True,
    _COLOR_RGB: False,
    _COLOR_RGB | _IGNORE_ORIENTATION: False,
}


# ---- files ----


def _read(name: Any) -> bytes | None:
    """Return the contents of a file that begins as a JPEG; None if it is something else, or cannot be read."""
    if type(name) is not str:
        if not isinstance(name, os.PathLike) or not _takes_paths():
            return None
        name = os.fspath(name)
    try:
        path = name.encode()  # as OpenCV does, whatever the encoding of the file system
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_size > _BYTES_MOST:
            return None
        with open(path, "rb", buffering=0) as file:
            data = file.read(found.st_size + 1)
    except (OSError, ValueError, AttributeError):
        return None
    return data if len(data) == found.st_size and data.startswith(_JPEG) else None


@functools.cache
def _takes_paths() -> bool:
    """Return whether this OpenCV takes objects of pathlib."""
    from pathlib import Path

    try:
        sys.modules["cv2"].haveImageReader(Path(os.devnull))
    except Exception:
        return False
    return True


_ORIENTATION = 0x0112
_SHORT = 3
_APP1, _SCAN = 0xE1, 0xDA
_TIFF_AT = 6  # in an APP1 segment: after "Exif" and two zeros, which OpenCV does not look at
_ORDERS = {b"II": "<", b"MM": ">"}
_DIRECTORIES_MOST = 4


def is_upright(data: bytes) -> bool:
    """Return whether no reader of EXIF finds an orientation other than 1 in a JPEG, or something that others may read
    in another way."""
    at = 2
    try:
        while True:
            lead, marker, length = struct.unpack_from(">BBH", data, at)
            if lead != 0xFF or length < 2:
                return False
            if marker == _SCAN:
                return True
            if marker == _APP1 and not _is_upright_tiff(data[at + 4 + _TIFF_AT : at + 2 + length]):
                return False
            at += 2 + length
    except struct.error:
        return False


def _is_upright_tiff(tiff: bytes) -> bool:
    """Return the same for one segment. What does not begin as TIFF, such as XMP, is no EXIF."""
    order = _ORDERS.get(tiff[:2])
    if order is None:
        return True
    (at,) = struct.unpack_from(order + "I", tiff, 4)
    for _ in range(_DIRECTORIES_MOST):
        if at < 8:
            return at == 0
        (count,) = struct.unpack_from(order + "H", tiff, at)
        for entry in range(at + 2, at + 2 + 12 * count, 12):
            tag, *found = struct.unpack_from(order + "HHIH", tiff, entry)
            if tag == _ORIENTATION and found != [_SHORT, 1, 1]:
                return False
        (at,) = struct.unpack_from(order + "I", tiff, at + 2 + 12 * count)
    return False


# ---- decoding ----


@functools.cache
def _decoder() -> _ext.Single:
    return _ext.Single(_ext.Pipeline(""), layout="nhwc", pixel_limit=_PIXELS_MOST)


def _decoded(data: bytes, is_bgr: bool) -> Any:
    """Return the array that OpenCV makes of a regular colour JPEG; None if the engine refuses it."""
    try:
        pixels = np.from_dlpack(_decoder().run(data))
    except _REFUSALS:
        return None
    out = np.empty(pixels.shape, np.uint8)
    return out if _ext.copy_packed(out, pixels[..., ::-1] if is_bgr else pixels) else None


def _made(data: bytes, flags: int) -> Any:
    """Return the array for these flags; None if it is for OpenCV to make."""
    regular = _ext.jpeg_is_regular(data)
    if regular is None or regular[2] != 3 or regular[0] * regular[1] > _PIXELS_MOST:
        return None
    turns = flags in (_COLOR, _COLOR_RGB)
    return None if turns and not is_upright(data) else _decoded(data, _IS_BGR[flags])


def _is_equal(flags: int) -> bool:
    """Return whether this OpenCV decodes as the engine does: compared with a small picture, in both samplings of colour."""
    cv2 = sys.modules["cv2"]
    y, x = np.mgrid[0:37, 0:53]
    picture = np.stack([x * 5 % 256, (x * y) % 256, 255 - y * 6 % 256], 2).astype(np.uint8)
    for sampling in (0x221111, 0x111111):
        options = [cv2.IMWRITE_JPEG_QUALITY, 87, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, sampling]
        done, file = cv2.imencode(".jpg", picture, options)
        if not done:
            return False
        wanted, ours = original_of(cv2.imdecode)(file, flags), _made(file.tobytes(), flags)
        if wanted is None or ours is None or ours.shape != wanted.shape or not np.array_equal(ours, wanted):
            return False
    return True


@functools.cache
def _agrees(flags: int) -> bool:
    """Return whether files are decoded here for these flags."""
    try:
        return not any(name in os.environ for name in _LIMITS) and _is_equal(flags)
    except Exception:  # an OpenCV that lacks something of this: its own function then says so, if it is called
        return False


def _takes(flags: Any) -> bool:
    """Return whether these flags are ours, with this OpenCV."""
    return type(flags) is int and flags in _IS_BGR and _agrees(flags)


# ---- the functions that take the place of OpenCV's ----


def _imread(original: Any, is_on: IsOn) -> Any:
    def imread(*args: Any, **named: Any) -> Any:
        out = None
        if 1 <= len(args) <= 2 and (not named or (len(args) == 1 and named.keys() == {"flags"})) and is_on():
            flags = args[1] if len(args) == 2 else named.get("flags", _COLOR)
            data = _read(args[0]) if _takes(flags) else None
            out = None if data is None else _made(data, flags)
        return original(*args, **named) if out is None else out

    return in_place_of(original, imread)


def _imdecode(original: Any, is_on: IsOn) -> Any:
    def imdecode(*args: Any, **named: Any) -> Any:
        out = None
        if len(args) == 2 and not named and is_on() and _is_file(args[0]) and _takes(args[1]):
            out = _made(args[0].tobytes(), args[1])
        return original(*args, **named) if out is None else out

    return in_place_of(original, imdecode)


def _is_file(data: Any) -> bool:
    """Return whether this is an array of bytes that begin as a JPEG."""
    if type(data) is not np.ndarray or data.dtype != np.uint8 or data.ndim != 1 or data.size > _BYTES_MOST:
        return False
    return data[: len(_JPEG)].tobytes() == _JPEG


def _settings() -> Any:
    """Return what OpenCV's arithmetic depends on, and scripts can change."""
    cv2: Any = sys.modules["cv2"]
    return cv2.useOptimized(), *(getattr(getattr(cv2, "ipp", None), name, bool)() for name in _IPP)


_IPP = ("useIPP", "useIPP_NotExact")


@functools.cache
def _kernels(settings: Any) -> dict[str, Any]:
    """Return the functions that the engine has, compared with these settings. With others nothing is replaced."""
    try:
        return cv.functions() if _kernels.cache_info().currsize == 0 else {}
    except Exception:  # an OpenCV that has other functions: they stay its own
        return {}


def _by_kernel(name: str) -> Callable[[Any, IsOn], Any]:
    def wrap(original: Any, is_on: IsOn) -> Any:
        def function(*args: Any, **named: Any) -> Any:
            ours = _kernels(_settings()).get(name, original) if is_on() else original
            return ours(*args, **named)

        return in_place_of(original, function)

    return wrap


_FUNCTIONS: dict[str, Callable[[Any, IsOn], Any]] = {
    "imread": _imread,
    "imdecode": _imdecode,
    **{name: _by_kernel(name) for name in cv.names()},
}


@functools.cache
def patches(module_name: str, is_on: IsOn) -> list[Patch]:
    """Return the patches of a module, which must be imported."""
    return function_patches(module_name, _FUNCTIONS, is_on)
