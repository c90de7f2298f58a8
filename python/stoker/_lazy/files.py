# SPDX-License-Identifier: Apache-2.0
"""What Pillow's open() returns while lazy images are on: lazy JPEGs, and files that Pillow decodes, marked as opened."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from PIL import Image, JpegImagePlugin

from .. import _ext
from .images import Alike, Lazy, set_class
from .pixels import Edits, Encoded, Source, made_core


class LazyJpeg(Lazy, JpegImagePlugin.JpegImageFile, own=JpegImagePlugin.JpegImageFile):
    """What open() returns for a JPEG. Its file is read when somebody converts, copies or crops it."""

    _stoker = None

    def source(self) -> tuple[Source, Edits] | None:
        if self._stoker is None:
            data = self._read()
            if data is None:
                self._leave_to_pillow()
                set_class(self, _opened_kind(JpegImagePlugin.JpegImageFile))
                return None
            self._close_as_loaded()
            self._stoker = (Encoded(data), ())
        return self._stoker

    def _read(self) -> bytes | None:
        """Return the whole file, if the image is as it was opened and the file is regular."""
        fp = self.fp
        if fp is None or len(self.tile) != 1 or self.decoderconfig or getattr(self, "_ended", False):
            return None
        try:
            fp.seek(0)
            data = fp.read()
        except (OSError, ValueError):
            return None
        found = _ext.jpeg_is_regular(data) if type(data) is bytes else None
        expected = (*self._size, 1 if self._mode == "L" else 3)
        return data if found == expected and self.tile[0][1] == (0, 0, *self._size) else None

    def _close_as_loaded(self) -> None:
        """Do what Pillow's load() does after decoding."""
        if self._exclusive_fp and self._close_exclusive_fp_after_loading and self.fp is not None:
            self.fp.close()
        self.fp = None
        self.tile = []
        self.readonly = 0

    def _leave_to_pillow(self) -> None:
        self.__dict__.pop("_stoker", None)
        self.__dict__.setdefault("_im", None)
        set_class(self, JpegImagePlugin.JpegImageFile)

    def _become(self) -> None:
        found = self.source()
        if found is None:
            return
        self._replaced(made_core(*found, self._mode, self._size))

    def _made(self) -> Any:
        if self._stoker is None:
            return self.__dict__.get("_im")  # not loaded, as in Pillow
        self._become()
        return self.__dict__["_im"]

    def _replaced(self, core: Any) -> None:
        self.__dict__["_im"] = core
        self._leave_to_pillow()

    _im = property(_made, _replaced)

    def release(self) -> None:
        if self._stoker is None:
            self._leave_to_pillow()
        else:
            self._become()

    def draft(self, mode: Any, size: Any) -> Any:
        self.release()
        return self.draft(mode, size)


class _Opened(Image.Image, metaclass=Alike):
    """A Pillow image in every respect. Its class tells transforms that it came from a file, so that they may still run
    in the engine."""

    def release(self) -> None:
        set_class(self, type(self)._own)

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.release()
        return self.__reduce_ex__(protocol)


class OpenedImage(_Opened):
    """What convert(), copy() and crop() return."""


class _OpenedFile(_Opened):
    def convert(self, *args: Any, **kwargs: Any) -> Image.Image:
        return as_opened(super().convert(*args, **kwargs))

    def copy(self) -> Image.Image:
        return as_opened(super().copy())

    __copy__ = copy

    def crop(self, *args: Any, **kwargs: Any) -> Image.Image:
        return as_opened(super().crop(*args, **kwargs))


def as_opened(image: Image.Image) -> Image.Image:
    """Mark an image as one that came from a file, whose transforms the engine may run."""
    if type(image) is Image.Image:
        set_class(image, OpenedImage)
    return image


@functools.cache
def _opened_kind(kind: type) -> type:
    """Return the class for files of one of Pillow's classes."""
    return Alike(kind.__name__, (_OpenedFile, kind), {}, own=kind)


_FORMATS = {"JPEG", "PNG", "WEBP", "BMP", "PPM"}


def make_open(original: Callable[..., Any], is_on: Callable[[], bool]) -> Callable[..., Any]:
    """Return Pillow's open with lazy JPEGs while `is_on()`."""

    @functools.wraps(original)
    def open(*args: Any, **kwargs: Any) -> Any:
        image = original(*args, **kwargs)
        if image.format in _FORMATS and is_on():
            kind = type(image)
            usual = image._mode in ("RGB", "L") and "progressive" not in image.info
            if kind is JpegImagePlugin.JpegImageFile and usual:
                set_class(image, LazyJpeg)
            elif kind.__module__.startswith("PIL."):
                set_class(image, _opened_kind(kind))
        return image

    return open
