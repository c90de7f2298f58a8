# SPDX-License-Identifier: Apache-2.0
"""Pillow images whose pixels are not decoded yet.

Pillow's open reads the header. The image keeps its attributes and is an instance of a subclass defined here until
somebody accesses its pixels. Then they are decoded, by the engine's decoder if it gives Pillow's bytes, and the image
becomes what Pillow would have made of it, including its class. convert("RGB"), copy() and crop() access no pixels.
Files in which anything is unusual are left to Pillow, and raise its errors when Pillow would raise them: so a file is
checked before its decoding is deferred.
"""

from __future__ import annotations

import contextlib
import functools
import io
from collections.abc import Callable
from typing import Any

from PIL import Image, JpegImagePlugin

from . import _ext

_set_class = object.__dict__["__class__"].__set__  # the classes here override __class__
_Box = tuple[int, int, int, int]  # x, y, width, height

# Whether Pillow's internals are as expected; with any other version nothing is deferred.
KNOWN_PILLOW = "_im" in vars(Image.Image()) and isinstance(vars(Image.Image).get("im"), property)
PILLOW = 12 if int(Image.__version__.split(".")[0]) < 13 else 13  # the version whose resizing to match
REFUSALS = (_ext.StokerError, ValueError, MemoryError, OSError)  # what the engine raises when it cannot do something


@functools.cache
def _decoder(mode: str) -> _ext.Single:
    """Return what decodes an image to this mode."""
    text = "grayscale(num_output_channels=1)" if mode == "L" else ""  # grey images are decoded to RGB, then back
    return _ext.Single(_ext.Pipeline(text), layout="nhwc")


def _exports(core: Any) -> bool:
    """Return whether Pillow (11.2 or newer) exports the memory of an internal image, and its rows have no gaps."""
    return hasattr(core, "__arrow_c_array__") and Image.core.get_alignment() == 1


def core_of(mode: str, size: tuple[int, int], pixels: Any) -> Any:
    """Return Pillow's internal image with these pixels."""
    if mode == "RGB":
        core = Image.core.new(mode, size)
        with contextlib.suppress(ValueError, MemoryError):  # large images are not in one piece
            if _exports(core):
                _ext.pillow_write(core.__arrow_c_array__(), pixels)
                return core
    return Image.frombytes(mode, size, pixels).im


def pixels_of(image: Image.Image) -> tuple[bytes, int]:
    """Return the bytes of an RGB image, and how many there are for each pixel: what tobytes() returns, but faster."""
    if type(image).tobytes is Image.Image.tobytes:
        image.load()
        with contextlib.suppress(ValueError, MemoryError):
            if _exports(image.im):
                return _ext.pillow_read(image.im.__arrow_c_array__()), 3
    return image.tobytes("raw", "RGBX"), 4


class Source:
    """A file that was read but not decoded."""

    __slots__ = ("data", "mode")

    def __init__(self, data: bytes, mode: str) -> None:
        self.data = data
        self.mode = mode  # Pillow's mode for it

    def pixels(self, box: _Box | None, mode: str) -> Any:
        """Return the bytes of a part of the image; None if the engine cannot decode them."""
        try:
            return _decoder(mode).run(self.data, 0, 0, 0, box)
        except REFUSALS:
            return None

    def core(self, size: tuple[int, int], box: _Box | None, mode: str) -> Any:
        """Return the same as Pillow's internal image."""
        pixels = self.pixels(box, mode)
        if pixels is not None:
            return core_of(mode, size, pixels)
        image: Any = JpegImagePlugin.JpegImageFile(io.BytesIO(self.data))
        image = image.convert(mode)
        if box is not None:
            image = image.crop((box[0], box[1], box[0] + box[2], box[1] + box[3]))
        return image.im


class Lazy(Image.Image):
    """Base class of lazy images. `_stoker` is the source and the part of it that the image shows."""

    _stoker: tuple[Source, _Box | None] | None

    def _become(self) -> None:
        """Decode the pixels. From then on the image is Pillow's."""
        raise NotImplementedError

    def source(self) -> tuple[Source, _Box | None] | None:
        """Return what the image will be decoded from; None if Pillow decodes it."""
        raise NotImplementedError

    def _put_off(self, mode: str, box: _Box | None, size: tuple[int, int]) -> Image.Image:
        """Return what Pillow's _new() returns, without pixels."""
        assert self._stoker is not None
        new = Image.Image()
        state = new.__dict__
        del state["_im"]
        state["_mode"] = mode
        state["_size"] = size
        copy_info = getattr(self, "_copy_info", self.info.copy)
        state["info"] = copy_info()
        state["_stoker"] = (self._stoker[0], box)
        _set_class(new, LazyImage)
        return new

    def convert(self, mode: str | None = None, matrix: Any = None, *args: Any, **kwargs: Any) -> Image.Image:
        if matrix or (mode and mode not in ("RGB", self._mode)) or "transparency" in self.info:
            self.load()
            return self.convert(mode, matrix, *args, **kwargs)
        found = self.source()
        if found is None:
            return self.convert(mode, matrix, *args, **kwargs)
        return self._put_off(mode or self._mode, found[1], self._size)

    def copy(self) -> Image.Image:
        found = self.source()
        return self.copy() if found is None else self._put_off(self._mode, found[1], self._size)

    __copy__ = copy

    def crop(self, box: Any = None) -> Image.Image:
        if box is None or box == (0, 0, *self._size):
            return self.copy()
        inside = _inside(box, self._size)
        found = self.source() if inside else None
        if inside is None or found is None:
            self.load()
            return self.crop(box)
        x, y = (0, 0) if found[1] is None else found[1][:2]
        return self._put_off(self._mode, (x + inside[0], y + inside[1], inside[2], inside[3]), inside[2:])

    def tobytes(self, encoder_name: str = "raw", *args: Any) -> bytes:
        found = self.source() if encoder_name == "raw" and not args else None
        pixels = found[0].pixels(found[1], self._mode) if found else None
        if pixels is not None:
            return bytes(pixels)
        self.load()
        return self.tobytes(encoder_name, *args)

    def load(self) -> Any:
        self._become()
        return self.load()

    def release(self) -> None:
        """Make it Pillow's in its type, too, for code that checks the type. No error is raised earlier because of it."""
        self._become()

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._become()
        return self.__reduce_ex__(protocol)


def _inside(box: Any, size: tuple[int, int]) -> _Box | None:
    """Return the box as Pillow rounds it; None if it is not a part of the image."""
    try:
        left, top, right, bottom = (int(round(side)) for side in box)
    except (TypeError, ValueError, OverflowError):
        return None
    if 0 <= left < right <= size[0] and 0 <= top < bottom <= size[1]:
        return left, top, right - left, bottom - top
    return None


class LazyImage(Lazy):
    """What convert(), copy() and crop() return: a plain Pillow image once it is decoded."""

    __class__ = property(lambda self: Image.Image)  # type: ignore[assignment]

    def source(self) -> tuple[Source, _Box | None] | None:
        found = self.__dict__.get("_stoker")
        if found is None:  # another thread has decoded it in the meantime
            _set_class(self, Image.Image)
        return found

    def _made(self) -> Any:
        found = self.source()
        state = self.__dict__
        if found is not None:
            state.setdefault("_im", found[0].core(self._size, found[1], self._mode))
            state.pop("_stoker", None)
            _set_class(self, Image.Image)
        return state["_im"]

    _become = _made

    def _replaced(self, core: Any) -> None:
        self.__dict__["_im"] = core
        self.__dict__.pop("_stoker", None)
        _set_class(self, Image.Image)

    _im = property(_made, _replaced)


class LazyJpeg(Lazy, JpegImagePlugin.JpegImageFile):
    """What open() returns for a JPEG. Its file is read when somebody converts, copies or crops it."""

    __class__ = property(lambda self: JpegImagePlugin.JpegImageFile)  # type: ignore[assignment]
    _stoker = None

    def source(self) -> tuple[Source, _Box | None] | None:
        if self._stoker is None:
            data = self._read()
            if data is None:
                self._leave_to_pillow()
                _set_class(self, _opened_kind(JpegImagePlugin.JpegImageFile))
                return None
            self._close_as_loaded()
            self._stoker = (Source(data, self._mode), None)
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
        _set_class(self, JpegImagePlugin.JpegImageFile)

    def _become(self) -> None:
        found = self.source()
        if found is None:
            return
        self._replaced(found[0].core(self._size, found[1], self._mode))

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


# ---- files that Pillow decodes ----


class _Opened(Image.Image):
    """A Pillow image in every respect. Its class tells transforms that it came from a file, so that they may still run
    in the engine."""

    _own: type  # Pillow's class

    def release(self) -> None:
        _set_class(self, self._own)

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.release()
        return self.__reduce_ex__(protocol)


class OpenedImage(_Opened):
    """What convert(), copy() and crop() return."""

    __class__ = property(lambda self: Image.Image)  # type: ignore[assignment]
    _own = Image.Image


class _OpenedFile(_Opened):
    def convert(self, *args: Any, **kwargs: Any) -> Image.Image:
        return _opened(super().convert(*args, **kwargs))

    def copy(self) -> Image.Image:
        return _opened(super().copy())

    __copy__ = copy

    def crop(self, *args: Any, **kwargs: Any) -> Image.Image:
        return _opened(super().crop(*args, **kwargs))


def _opened(image: Image.Image) -> Image.Image:
    if type(image) is Image.Image:
        _set_class(image, OpenedImage)
    return image


@functools.cache
def _opened_kind(kind: type) -> type:
    """Return the class for files of one of Pillow's classes."""
    state = {"__class__": property(lambda self: kind), "__doc__": kind.__doc__, "_own": kind}
    made = type(kind)(kind.__name__, (_OpenedFile, kind), state)
    LAZY.add(made)
    return made


LAZY: set[type] = {LazyImage, LazyJpeg, OpenedImage}  # what patched transforms recognize
_FORMATS = {"JPEG", "PNG", "WEBP", "BMP"}


def make_open(original: Callable[..., Any], is_on: Callable[[], bool]) -> Callable[..., Any]:
    """Return Pillow's open with lazy JPEGs while `is_on()`."""

    @functools.wraps(original)
    def open(*args: Any, **kwargs: Any) -> Any:
        image = original(*args, **kwargs)
        if image.format in _FORMATS and is_on():
            kind = type(image)
            usual = image._mode in ("RGB", "L") and "progressive" not in image.info
            if kind is JpegImagePlugin.JpegImageFile and usual:
                _set_class(image, LazyJpeg)
            elif kind.__module__.startswith("PIL."):
                _set_class(image, _opened_kind(kind))
        return image

    return open
