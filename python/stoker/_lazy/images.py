# SPDX-License-Identifier: Apache-2.0
"""Pillow images whose pixels are not made yet.

Pillow's open reads the header. The image keeps its attributes and is an instance of a subclass defined here until
somebody accesses its pixels. Then they are made, by the engine if it gives Pillow's bytes, and the image becomes what
Pillow would have made of it, including its class. convert(), copy(), crop(), resize(), transpose(), transform(),
rotate(), filter() and point() access no pixels: they record an edit, and the engine then decodes only the part of the
file that is left.
Files in which anything is unusual are left to Pillow, and raise its errors when Pillow would raise them: so a file is
checked before its decoding is deferred.
"""

from __future__ import annotations

import abc
import operator
from typing import Any

from PIL import Image

from .. import _ext
from .filters import blur_edit, blurs_agree, point_edit
from .maps import map_edit, maps_agree
from .pixels import FILTERS, Edits, Source, made_core, made_pixels

set_class = object.__dict__["__class__"].__set__  # the classes here override __class__
_EDITS_MOST = 32  # recorded in one image; then its pixels are made
PIXELS_MOST = 1 << 26  # of a size that is deferred: Pillow refuses sizes that need too much memory at once
_TURNS: dict[int, Edits] = {
    Image.Transpose.FLIP_LEFT_RIGHT: ((_ext.EDIT_MIRROR,),),
    Image.Transpose.FLIP_TOP_BOTTOM: ((_ext.EDIT_FLIP,),),
    Image.Transpose.ROTATE_180: ((_ext.EDIT_MIRROR,), (_ext.EDIT_FLIP,)),
}


class Alike(abc.ABCMeta):
    """The class of classes that pass for one of Pillow's: also to code that compares types, looks for a type in a dict
    or prints it. `__class__` of an instance is Pillow's class, too."""

    _own: type

    def __new__(
        mcs, name: str, bases: tuple[type, ...], state: dict[str, Any], own: type = Image.Image
    ) -> Alike:
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
        return (other._own if type(other) is Alike else other) is cls._own

    def __hash__(cls) -> int:
        return hash(cls._own)


def is_lazy(value: Any) -> bool:
    """Return whether it is an image that came from a file and was not accessed yet, for patched transforms."""
    return type(type(value)) is Alike


class Lazy(Image.Image, metaclass=Alike):
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
        """Return an image with changed values; None if Pillow has to make it."""
        new = self._edited(((kind, *factor),))
        if new is not None and not keeps_info:
            new.info = {}
        return new

    def placed(self, left: int, top: int, size: tuple[int, int], fill: Any) -> Image.Image | None:
        """Return the image at this place of an area of this size, filled; None if Pillow has to make it."""
        data = (1, 0, -left, 0, 1, -top)
        edit = map_edit(self._mode, size, Image.Transform.AFFINE, data, Image.Resampling.NEAREST, fill)
        return self._edited((edit,), size) if edit and maps_agree() else None

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
        around = None if inside else _around(box)
        if inside:
            new = self._edited(((_ext.EDIT_CROP, *inside),), inside[2:])
        else:
            new = self.placed(-around[0], -around[1], around[2:], None) if around else None
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

    def transform(
        self,
        size: Any,
        method: Any,
        data: Any = None,
        resample: Any = Image.Resampling.NEAREST,
        fill: Any = 1,
        fillcolor: Any = None,
    ) -> Image.Image:
        wanted = _whole_size(size)
        edit = map_edit(self._mode, wanted, method, data, resample, fillcolor) if wanted else None
        new = self._edited((edit,), wanted) if edit and maps_agree() else None
        if new is None:
            self.load()
            return self.transform(size, method, data, resample, fill, fillcolor)
        return new

    def filter(self, filter: Any) -> Image.Image:
        edit = blur_edit(self._mode, filter)
        new = self._edited((edit,)) if edit and blurs_agree() else None
        if new is None:
            self.load()
            return self.filter(filter)
        return new

    def point(self, lut: Any, mode: str | None = None) -> Image.Image:
        if callable(lut) and self._mode in ("RGB", "L") and not isinstance(lut, Image.ImagePointHandler):
            lut = [lut(value) for value in range(256)] * len(self._mode)
        edit = point_edit(self._mode, lut) if mode is None else None
        new = self._edited((edit,)) if edit else None
        if new is None:
            self.load()
            return self.point(lut, mode)
        return new

    def tobytes(self, encoder_name: str = "raw", *args: Any) -> bytes:
        found = self.source() if encoder_name == "raw" and not args else None
        pixels = made_pixels(*found, self._mode) if found else None
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
    set_class(new, LazyImage)
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


def _around(box: Any) -> tuple[int, int, int, int] | None:
    """Return the same of a box that may lie outside the image, where Pillow makes zeros; None if it is not deferred."""
    try:
        left, top, right, bottom = (int(round(side)) for side in box)
    except (TypeError, ValueError, OverflowError):
        return None
    size = _whole_size((right - left, bottom - top))
    return (left, top, *size) if size and max(map(abs, (left, top, right, bottom))) <= PIXELS_MOST else None


def _whole_size(size: Any) -> tuple[int, int] | None:
    """Return the size of a resize that may be deferred."""
    try:
        width, height = (operator.index(side) for side in size)
    except (TypeError, ValueError):
        return None
    return (width, height) if width > 0 and height > 0 and width * height <= PIXELS_MOST else None


def _filter_number(resample: Any) -> int | None:
    """Return the engine's number of one of Pillow's filters; None for any other value."""
    if resample is None:
        resample = Image.Resampling.BICUBIC
    return FILTERS.get(resample) if isinstance(resample, int) else None


class LazyImage(Lazy):
    """What convert(), copy(), crop() and the like return: a plain Pillow image once it is made."""

    def source(self) -> tuple[Source, Edits] | None:
        found = self.__dict__.get("_stoker")
        if found is None:  # another thread has decoded it in the meantime
            set_class(self, Image.Image)
        return found

    def _made(self) -> Any:
        found = self.source()
        state = self.__dict__
        if found is not None:
            state.setdefault("_im", made_core(*found, self._mode, self._size))
            state.pop("_stoker", None)
            set_class(self, Image.Image)
        return state["_im"]

    _become = _made

    def _replaced(self, core: Any) -> None:
        self.__dict__["_im"] = core
        self.__dict__.pop("_stoker", None)
        set_class(self, Image.Image)

    _im = property(_made, _replaced)
