# SPDX-License-Identifier: Apache-2.0
"""Pillow images whose pixels are not made yet.

Pillow's open reads the header. The image keeps its attributes and is an instance of a subclass defined here until
somebody accesses its pixels. Then they are made, by the engine if it gives Pillow's bytes, and the image becomes what
Pillow would have made of it, including its class. convert(), copy(), crop(), resize() and transpose() access no pixels:
they record an edit, and the engine then decodes only the part of the file that is left. Files in which anything is
unusual are left to Pillow, and raise its errors when Pillow would raise them: so a file is checked before its decoding
is deferred.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import io
import operator
from collections.abc import Callable
from typing import Any

from PIL import Image, ImageEnhance, JpegImagePlugin

from .. import _ext

_set_class = object.__dict__["__class__"].__set__  # the classes here override __class__
Edits = tuple[tuple[float, ...], ...]  # as _ext.Single takes them


def _fuses() -> bool:
    """Return whether this build of Pillow rounds a blend once, as on aarch64: 100 - float32(0.73) * 100 is 26.9999…"""
    return Image.blend(Image.new("L", (1, 1), 100), Image.new("L", (1, 1), 0), 0.73).getpixel((0, 0)) == 26


# Whether Pillow's internals are as expected; with any other version nothing is deferred.
KNOWN_PILLOW = "_im" in vars(Image.Image()) and isinstance(vars(Image.Image).get("im"), property)
PILLOW = 12 if int(Image.__version__.split(".")[0]) < 13 else 13  # the version whose resizing to match
REFUSALS = (_ext.StokerError, ValueError, MemoryError, OSError)  # what the engine raises when it cannot do something
_FUSED = _fuses()
_EDITS_MOST = 32  # recorded in one image; then its pixels are made
_PIXELS_MOST = 1 << 26  # of a resize that is deferred: Pillow refuses sizes that need too much memory at once
_FILTERS = {
    Image.Resampling.NEAREST: 0,
    Image.Resampling.BOX: 1,
    Image.Resampling.BILINEAR: 2,
    Image.Resampling.HAMMING: 3,
    Image.Resampling.BICUBIC: 4,
    Image.Resampling.LANCZOS: 5,
}
_TURNS: dict[int, Edits] = {
    Image.Transpose.FLIP_LEFT_RIGHT: ((_ext.EDIT_MIRROR,),),
    Image.Transpose.FLIP_TOP_BOTTOM: ((_ext.EDIT_FLIP,),),
    Image.Transpose.ROTATE_180: ((_ext.EDIT_MIRROR,), (_ext.EDIT_FLIP,)),
}


def single_of(text: str, layout: str) -> _ext.Single:
    """Return what runs this pipeline with the arithmetic of the Pillow that is installed."""
    return _ext.Single(_ext.Pipeline(text), layout=layout, pillow=PILLOW, fused=int(_FUSED))


@functools.cache
def _decoder(mode: str) -> _ext.Single:
    """Return what decodes an image to this mode."""
    return single_of(text_of_mode(mode), "nhwc")


def text_of_mode(mode: str) -> str:
    """Return the step that ends in this mode: edits are made in RGB, where grey images have three equal channels."""
    return "grayscale(num_output_channels=1)" if mode == "L" else ""


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
    """Return the bytes of an RGB or L image, and how many there are for each pixel: what tobytes() returns, but faster."""
    if image.mode == "L":
        return image.tobytes(), 1
    if type(image).tobytes is Image.Image.tobytes:
        image.load()
        with contextlib.suppress(ValueError, MemoryError):
            if _exports(image.im):
                return _ext.pillow_read(image.im.__arrow_c_array__()), 3
    return image.tobytes("raw", "RGBX"), 4


# ---- what a lazy image is made from ----


class Encoded:
    """A JPEG that was read but not decoded."""

    __slots__ = ("_data",)

    def __init__(self, data: bytes) -> None:
        self._data = data

    def check(self) -> None:
        """Nothing can fail: the file is regular."""

    def run(self, single: _ext.Single, edits: Edits) -> Any:
        """Return what the engine makes of it."""
        return single.run(self._data, edits)

    def picture(self) -> Image.Image:
        """Return it as Pillow decodes it."""
        return JpegImagePlugin.JpegImageFile(io.BytesIO(self._data))


class Decoded:
    """An RGB or L image with pixels, which nobody changes while a lazy image refers to it."""

    __slots__ = ("_image",)

    def __init__(self, image: Image.Image) -> None:
        self._image = image

    def check(self) -> None:
        """Decode it now if that has not happened: so errors are raised where Pillow raises them."""
        self._image.load()

    def run(self, single: _ext.Single, edits: Edits) -> Any:
        pixels, channels = pixels_of(self._image)
        return single.run(pixels, edits, (*self._image.size, channels))

    def picture(self) -> Image.Image:
        return self._image


Source = Encoded | Decoded


def _pixels(source: Source, edits: Edits, mode: str) -> Any:
    """Return the bytes of the edited image; None if the engine cannot make them."""
    source.check()  # Pillow's errors are no refusals
    try:
        return source.run(_decoder(mode), edits)
    except REFUSALS:
        return None


def _shift_hue(image: Image.Image, shift: float) -> Image.Image:
    from torchvision.transforms import functional

    return functional.adjust_hue(image, shift)


# Each edit as Pillow makes it.
_BY_PILLOW: dict[int, Callable[..., Image.Image]] = {
    _ext.EDIT_CROP: lambda image, x, y, width, height: image.crop((x, y, x + width, y + height)),
    _ext.EDIT_RESIZE: lambda image, width, height, number: image.resize(
        (width, height), next(resample for resample, own in _FILTERS.items() if own == number)
    ),
    _ext.EDIT_MIRROR: lambda image: image.transpose(Image.Transpose.FLIP_LEFT_RIGHT),
    _ext.EDIT_FLIP: lambda image: image.transpose(Image.Transpose.FLIP_TOP_BOTTOM),
    _ext.EDIT_BRIGHTNESS: lambda image, factor: ImageEnhance.Brightness(image).enhance(factor),
    _ext.EDIT_CONTRAST: lambda image, factor: ImageEnhance.Contrast(image).enhance(factor),
    _ext.EDIT_SATURATION: lambda image, factor: ImageEnhance.Color(image).enhance(factor),
    _ext.EDIT_HUE: _shift_hue,
    _ext.EDIT_GREY: lambda image: image.convert("L").convert("RGB"),
}


def _core(source: Source, edits: Edits, mode: str, size: tuple[int, int]) -> Any:
    """Return Pillow's internal image of the edited image."""
    pixels = _pixels(source, edits, mode)
    if pixels is not None:
        return core_of(mode, size, pixels)
    image = source.picture().convert("RGB")
    for kind, *numbers in edits:
        image = _BY_PILLOW[int(kind)](image, *numbers)
    return image.convert(mode).im


# ---- lazy images ----


class _Alike(abc.ABCMeta):
    """The class of classes that pass for one of Pillow's: also to code that compares types, looks for a type in a dict
    or prints it. `__class__` of an instance is Pillow's class, too."""

    _own: type

    def __new__(
        mcs, name: str, bases: tuple[type, ...], state: dict[str, Any], own: type = Image.Image
    ) -> _Alike:
        state = {**state, "__class__": property(lambda self: own)}
        cls = super().__new__(mcs, name, bases, state)
        cls._own = own
        for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(cls, attribute, getattr(own, attribute))
        return cls

    def __init__(
        cls, name: str, bases: tuple[type, ...], state: dict[str, Any], own: type = Image.Image
    ) -> None:
        super().__init__(name, bases, state)

    # ABCMeta, the class of some of Pillow's classes, would look for `__class__` in sets of classes.
    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__

    def __eq__(cls, other: object) -> bool:
        return (other._own if type(other) is _Alike else other) is cls._own

    def __hash__(cls) -> int:
        return hash(cls._own)


def is_lazy(value: Any) -> bool:
    """Return whether it is an image that came from a file and was not accessed yet, for patched transforms."""
    return type(type(value)) is _Alike


class Lazy(Image.Image, metaclass=_Alike):
    """Base class of lazy images. `_stoker` is the source and the edits that make the image of it."""

    _stoker: tuple[Source, Edits] | None

    def _become(self) -> None:
        """Make the pixels. From then on the image is Pillow's."""
        raise NotImplementedError

    def source(self) -> tuple[Source, Edits] | None:
        """Return what the image will be made from; None if Pillow decodes it."""
        raise NotImplementedError

    def _put_off(self, source: Source, edits: Edits, mode: str, size: tuple[int, int]) -> Image.Image:
        """Return what Pillow's _new() returns, without pixels."""
        copy_info = getattr(self, "_copy_info", self.info.copy)
        return deferred(source, edits, mode, size, copy_info())

    def _edited(self, more: Edits, size: tuple[int, int] | None = None, mode: str | None = None) -> Image.Image | None:
        """Return the image with more edits; None if Pillow has to make them."""
        found = self.source()
        if found is None or len(found[1]) + len(more) > _EDITS_MOST:
            return None
        found[0].check()
        return self._put_off(found[0], found[1] + more, mode or self._mode, size or self._size)

    def recoloured(self, kind: int, *factor: float, keeps_info: bool) -> Image.Image | None:
        """Return an RGB image with changed colours; None if Pillow has to make it."""
        new = self._edited(((kind, *factor),)) if self._mode == "RGB" else None
        if new is not None and not keeps_info:
            new.info = {}
        return new

    def convert(self, mode: str | None = None, matrix: Any = None, *args: Any, **kwargs: Any) -> Image.Image:
        new = None
        if not matrix and mode in (None, "RGB", "L", self._mode) and "transparency" not in self.info:
            grey: Edits = ((_ext.EDIT_GREY,),) if mode == "L" and self._mode == "RGB" else ()
            new = self._edited(grey, mode=mode)
        if new is None:
            self.load()
            return self.convert(mode, matrix, *args, **kwargs)
        return new

    def copy(self) -> Image.Image:
        new = self._edited(())
        return self.copy() if new is None else new

    __copy__ = copy

    def crop(self, box: Any = None) -> Image.Image:
        if box is None or box == (0, 0, *self._size):
            return self.copy()
        inside = _inside(box, self._size)
        new = self._edited(((_ext.EDIT_CROP, *inside),), inside[2:]) if inside else None
        if new is None:
            self.load()
            return self.crop(box)
        return new

    def resize(self, size: Any, resample: Any = None, box: Any = None, reducing_gap: Any = None) -> Image.Image:
        wanted = _whole_size(size)
        number = _filter_number(resample)
        whole = box is None or (type(box) is tuple and box == (0, 0, *self._size))
        new = None
        if wanted and number is not None and whole and reducing_gap is None:
            same = wanted == self._size
            new = self._edited(() if same else ((_ext.EDIT_RESIZE, *wanted, number),), wanted)
        if new is None:
            self.load()
            return self.resize(size, resample, box, reducing_gap)
        return new

    def transpose(self, method: Any) -> Image.Image:
        turn = _TURNS.get(method) if isinstance(method, int) else None
        new = None if turn is None else self._edited(turn)
        if new is None:
            self.load()
            return self.transpose(method)
        return new

    def tobytes(self, encoder_name: str = "raw", *args: Any) -> bytes:
        found = self.source() if encoder_name == "raw" and not args else None
        pixels = _pixels(*found, self._mode) if found else None
        if pixels is not None:
            return bytes(pixels)
        self.load()
        return self.tobytes(encoder_name, *args)

    def load(self) -> Any:
        self._become()
        return self.load()

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._become()
        return self.__reduce_ex__(protocol)


def deferred(source: Source, edits: Edits, mode: str, size: tuple[int, int], info: Any) -> Image.Image:
    """Return an image that will be made from the source."""
    new = Image.Image()
    state = new.__dict__
    del state["_im"]
    state["_mode"] = mode
    state["_size"] = size
    state["info"] = info
    state["_stoker"] = (source, edits)
    _set_class(new, LazyImage)
    return new


def _inside(box: Any, size: tuple[int, int]) -> tuple[int, int, int, int] | None:
    """Return x, y, width and height of a box as Pillow rounds it; None if it is not a part of the image."""
    try:
        left, top, right, bottom = (int(round(side)) for side in box)
    except (TypeError, ValueError, OverflowError):
        return None
    if 0 <= left < right <= size[0] and 0 <= top < bottom <= size[1]:
        return left, top, right - left, bottom - top
    return None


def _whole_size(size: Any) -> tuple[int, int] | None:
    """Return the size of a resize that may be deferred."""
    try:
        width, height = (operator.index(side) for side in size)
    except (TypeError, ValueError):
        return None
    return (width, height) if width > 0 and height > 0 and width * height <= _PIXELS_MOST else None


def _filter_number(resample: Any) -> int | None:
    """Return the engine's number of one of Pillow's filters; None for any other value."""
    if resample is None:
        resample = Image.Resampling.BICUBIC
    return _FILTERS.get(resample) if isinstance(resample, int) else None


class LazyImage(Lazy):
    """What convert(), copy(), crop(), resize() and transpose() return: a plain Pillow image once it is made."""

    def source(self) -> tuple[Source, Edits] | None:
        found = self.__dict__.get("_stoker")
        if found is None:  # another thread has decoded it in the meantime
            _set_class(self, Image.Image)
        return found

    def _made(self) -> Any:
        found = self.source()
        state = self.__dict__
        if found is not None:
            state.setdefault("_im", _core(*found, self._mode, self._size))
            state.pop("_stoker", None)
            _set_class(self, Image.Image)
        return state["_im"]

    _become = _made

    def _replaced(self, core: Any) -> None:
        self.__dict__["_im"] = core
        self.__dict__.pop("_stoker", None)
        _set_class(self, Image.Image)

    _im = property(_made, _replaced)


class LazyJpeg(Lazy, JpegImagePlugin.JpegImageFile, own=JpegImagePlugin.JpegImageFile):
    """What open() returns for a JPEG. Its file is read when somebody converts, copies or crops it."""

    _stoker = None

    def source(self) -> tuple[Source, Edits] | None:
        if self._stoker is None:
            data = self._read()
            if data is None:
                self._leave_to_pillow()
                _set_class(self, _opened_kind(JpegImagePlugin.JpegImageFile))
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
        _set_class(self, JpegImagePlugin.JpegImageFile)

    def _become(self) -> None:
        found = self.source()
        if found is None:
            return
        self._replaced(_core(*found, self._mode, self._size))

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


class _Opened(Image.Image, metaclass=_Alike):
    """A Pillow image in every respect. Its class tells transforms that it came from a file, so that they may still run
    in the engine."""

    def release(self) -> None:
        _set_class(self, type(self)._own)

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.release()
        return self.__reduce_ex__(protocol)


class OpenedImage(_Opened):
    """What convert(), copy() and crop() return."""


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
    return _Alike(kind.__name__, (_OpenedFile, kind), {}, own=kind)


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
