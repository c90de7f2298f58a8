# SPDX-License-Identifier: Apache-2.0
"""Samples that the engine cannot read or decode: Pillow decodes them, or says why it cannot.

A script that loads files with Pillow works with whatever Pillow opens, under its settings (LOAD_TRUNCATED_IMAGES,
MAX_IMAGE_PIXELS), and handles its exceptions. So a file that the engine refuses is given to Pillow: what Pillow makes of
it goes through the pipeline in the engine, and what Pillow raises is a base class of the error that is raised.
"""

from __future__ import annotations

import functools
import importlib.util
import io
import os
import re
import sys
from typing import Any

from .. import _ext
from .._steps.single import as_pnm

_PILLOWS_LIMIT = 1024 * 1024 * 1024 // 4 // 3  # Image.MAX_IMAGE_PIXELS as long as nobody has set it
_ANONYMOUS = re.compile(r"<_io\.BytesIO object at 0x[0-9a-f]+>")
_REMEMBERED = 1024  # errors, as many as the engine's ledger has


@functools.cache
def _has_pillow() -> bool:
    return importlib.util.find_spec("PIL") is not None


def max_image_pixels() -> int | None:
    """Return Pillow's Image.MAX_IMAGE_PIXELS as it is now."""
    return getattr(sys.modules.get("PIL.Image"), "MAX_IMAGE_PIXELS", _PILLOWS_LIMIT)


def pixel_limit(asks_pillow: bool, warns: bool = False) -> int | None:
    """Return the engine's pixel_limit that MAX_IMAGE_PIXELS requires; None: its default, twice Pillow's default. Above
    MAX_IMAGE_PIXELS Pillow warns, above twice that number it raises an error: where it is asked, it does both itself.
    `warns`: it is asked even if nobody has set MAX_IMAGE_PIXELS."""
    most = max_image_pixels()
    if most == _PILLOWS_LIMIT and not warns:
        return None
    return (most or 0) if asks_pillow and _has_pillow() else 2 * (most or 0)


def rescue_for(handle: _ext.Dataset, *, exif_rotate: bool = False, own_limit: bool = False) -> Rescue | None:
    """Return what the engine asks about samples of a dataset; None without Pillow."""
    return Rescue(handle, exif_rotate, own_limit) if _has_pillow() else None


class Rescue:
    """What the engine asks about samples that it cannot read or decode."""

    def __init__(self, handle: _ext.Dataset, exif_rotate: bool, own_limit: bool) -> None:
        self._handle = handle
        self._exif_rotate = exif_rotate
        self._own_limit = own_limit  # pixel_limit was given: Pillow shall not decode what exceeds it
        self._errors: dict[str, tuple[Exception, str]] = {}  # and their messages, by those of the engine

    def __call__(self, sample: int, data: bytes | None, error: _ext.StokerError) -> bytes | None:
        """Return the image as a PPM file; None if Pillow cannot decode it either."""
        if self._own_limit and isinstance(error, _ext.LimitReached):
            return None
        try:
            if data is None:
                path = self._handle.name(sample)
                if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
                    return None  # a pipe or a device may have no end
                with open(path, "rb") as file:
                    data = file.read()
            return self._decoded(data)
        except Exception as reason:
            if len(self._errors) >= _REMEMBERED:
                del self._errors[next(iter(self._errors))]
            self._errors[str(error)] = reason.with_traceback(None), self._words(reason, sample)
        return None

    def _words(self, reason: Exception, sample: int) -> str:
        """Return Pillow's message, in which the file is not anonymous."""
        return _ANONYMOUS.sub(lambda _: f"<_io.BufferedReader name={self._handle.name(sample)!r}>", str(reason))

    def _decoded(self, data: bytes) -> bytes:
        from PIL import Image, ImageOps

        with Image.open(io.BytesIO(data)) as image:
            return as_pnm(ImageOps.exif_transpose(image) if self._exif_rotate else image)

    def as_pillows(self, error: Exception) -> Exception:
        """Return the error as an instance of what Pillow or Python raised for the same sample, too."""
        cause, words = self._errors.get(str(error), (error, ""))
        if cause is error:
            return error
        if isinstance(cause, OSError) and cause.errno is not None:
            arguments: tuple[Any, ...] = (cause.errno, cause.strerror, cause.filename)
        else:
            arguments = (f"{error} (Pillow: {words})",)
        try:
            return _made(type(error), type(cause), arguments)
        except TypeError:  # Pillow's exception takes other arguments
            return error


def _made(kind: type[Exception], other: type[Exception], arguments: tuple[Any, ...]) -> Exception:
    return _both(kind, other)(*arguments)


def _reduced(error: Any) -> Any:
    """Return what pickle stores of an instance of such a class."""
    kind, other = type(error).__bases__
    more = (error.filename,) if isinstance(error, OSError) and error.errno is not None else ()
    return _made, (kind, other, error.args + more)


@functools.cache
def _both(kind: type[Exception], other: type[Exception]) -> Any:
    """Return a class that is derived from both."""
    if issubclass(kind, other):
        return kind
    members: dict[str, Any] = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__reduce__": _reduced}
    if issubclass(other, OSError):
        members["__init__"] = OSError.__init__  # RuntimeError's would drop errno and filename
    try:
        return type(kind.__name__, (kind, other), members)
    except TypeError:  # their instances have different layouts
        return kind
