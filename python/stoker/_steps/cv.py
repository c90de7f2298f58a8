# SPDX-License-Identifier: Apache-2.0
"""OpenCV's functions for uint8 arrays, with the same arguments and the same bytes, made by the engine.

What the engine does not have, such as other types of arrays, is left to OpenCV. OpenCV's arithmetic depends on its
version and on the CPU, so `functions()` compares each operation with the installed OpenCV before it is used.
"""

from __future__ import annotations

import contextlib
import math
import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from .. import _ext
from .._base.unmodified import original_of

_SIDE = 32766  # pixels at most
_CHANNELS = 4
_VECTORS = ("avx2", "avx512")  # with which the engine is faster than OpenCV
_GREY = 1

Array = np.ndarray[Any, Any]


class Call(NamedTuple):
    """One operation of the engine on an array."""

    op: str
    src: Array
    height: int
    width: int
    channels: int
    numbers: tuple[float, ...] = ()
    tables: tuple[Array, ...] = ()
    pays: bool = True  # OpenCV is not faster

    def run(self) -> Array:
        shape = (self.height, self.width) if self.channels == 1 else (self.height, self.width, self.channels)
        out: Array = np.empty(shape, np.uint8)
        _ext.cv_run(self.op, self.numbers, self.tables, self.src, out)
        return out


def _channels(src: Any) -> int:
    """Return the number of channels of an array that the engine can read, else 0."""
    if type(src) is not np.ndarray or src.dtype != np.uint8 or not 2 <= src.ndim <= 3:
        return 0
    shape, strides = src.shape, src.strides
    channels = shape[2] if src.ndim == 3 else 1
    if not (1 <= shape[0] <= _SIDE and 1 <= shape[1] <= _SIDE and 1 <= channels <= _CHANNELS):
        return 0
    whole = (shape[1] == 1 or strides[1] == channels) and (channels == 1 or strides[2] == 1)
    return channels if whole else 0


def _size(size: Any) -> tuple[int, int] | None:
    """Return the width and height that OpenCV reads from a sequence."""
    if not isinstance(size, (tuple, list)) or len(size) != 2:
        return None
    if not all(isinstance(side, (int, np.integer)) and 1 <= side <= _SIDE for side in size):
        return None
    return int(size[0]), int(size[1])


_RESIZES = {0: "resize_nearest", 1: "resize_linear", 3: "resize_area"}


def _resize(
    src: Any, dsize: Any, dst: Any = None, fx: Any = 0, fy: Any = 0, interpolation: Any = 1
) -> Call | None:
    op, size, channels = _RESIZES.get(interpolation), _size(dsize), _channels(src)
    if op is None or type(interpolation) is not int or fx or fy or size is None or not channels or dst is not None:
        return None
    return Call(op, src, size[1], size[0], channels, pays=op != "resize_nearest" or _ext.cv_level() == "avx512")


def _border(mode: Any, value: Any) -> tuple[float, ...] | None:
    """Return the numbers of a border: its kind, and a value for each of four channels."""
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    if type(mode) is not int or mode not in _BORDERS or len(values) > _CHANNELS or not all(isinstance(v, (int, float)) for v in values):
        return None
    numbers = (*map(float, values), *(_CHANNELS - len(values)) * (0.0,))
    return (float(mode), *numbers) if all(map(math.isfinite, numbers)) else None


_BORDERS = (0, 1, 2, 3, 4)  # constant, replicate, reflect, wrap, reflect 101
_INVERSE = 16  # the flag WARP_INVERSE_MAP


def _warp(op: str, rows: int, args: tuple[Any, ...], dst: Any, flags: Any, mode: Any, value: Any) -> Call | None:
    src, matrix, dsize = args
    channels, size, border = _channels(src), _size(dsize), _border(mode, value)
    if size is None or border is None or channels not in _WARPED or dst is not None or type(flags) is not int:
        return None
    if flags & ~_INVERSE not in (_NEAREST, _LINEAR) or type(matrix) is not np.ndarray or matrix.shape != (rows, 3):
        return None
    if matrix.dtype not in (np.float32, np.float64) or not np.isfinite(matrix).all():
        return None
    numbers = (*matrix.ravel().tolist(), float(flags & _INVERSE != 0), *border)
    if flags & ~_INVERSE == _NEAREST:  # OpenCV is faster: for masks in pipelines alone
        return Call(f"{op}_nearest", src, size[1], size[0], channels, numbers, pays=False)
    return Call(op, src, size[1], size[0], channels, numbers, pays=channels != _GREY)


_WARPED = (1, 3, 4)  # channels: OpenCV warps two with other arithmetic
_NEAREST, _LINEAR = 0, 1


def _warp_affine(
    src: Any, M: Any, dsize: Any, dst: Any = None, flags: Any = 1, borderMode: Any = 0, borderValue: Any = 0
) -> Call | None:
    return _warp("warp_affine", 2, (src, M, dsize), dst, flags, borderMode, borderValue)


def _warp_perspective(
    src: Any, M: Any, dsize: Any, dst: Any = None, flags: Any = 1, borderMode: Any = 0, borderValue: Any = 0
) -> Call | None:
    return _warp("warp_perspective", 3, (src, M, dsize), dst, flags, borderMode, borderValue)


def _is_map(array: Any, dimensions: int) -> bool:
    known = type(array) is np.ndarray and array.dtype == np.float32 and array.ndim == dimensions
    return known and array.flags.c_contiguous and all(1 <= side <= _SIDE for side in array.shape[:2])


def _remap(
    src: Any, map1: Any, map2: Any, interpolation: Any, dst: Any = None, borderMode: Any = 0, borderValue: Any = 0
) -> Call | None:
    channels, border = _channels(src), _border(borderMode, borderValue)
    if channels not in _WARPED or border is None or dst is not None:
        return None
    if type(interpolation) is not int or interpolation not in (_NEAREST, _LINEAR):
        return None
    if map2 is None:
        if not _is_map(map1, 3) or map1.shape[2] != 2:
            return None
    elif not _is_map(map1, 2) or not _is_map(map2, 2) or map1.shape != map2.shape:
        return None
    tables = (map1,) if map2 is None else (map1, map2)
    height, width = map1.shape[:2]
    if interpolation == _NEAREST:  # for masks in pipelines alone
        return Call("remap_nearest", src, height, width, channels, border, tables, pays=False)
    return Call("remap", src, height, width, channels, border, tables, channels != _GREY)


def _arrays(*sizes: tuple[int, int]) -> list[Array]:
    """Return noise, smooth in parts, of one and of three channels for each height and width."""
    chance = random.Random(1)
    out = []
    for height, width in sizes:
        for channels in (1, 3):
            shape = (height, width, channels)
            noise = np.frombuffer(chance.randbytes(height * width * channels), np.uint8).reshape(shape)
            smooth = np.cumsum(noise % 7, axis=1).astype(np.uint8)
            both = np.where(np.arange(height)[:, None, None] % 8 < 4, noise, smooth)
            out.append(both[:, :, 0].copy() if channels == 1 else both)
    return out


def _resize_samples() -> list[tuple[Any, ...]]:
    sizes = [(31, 40), (61, 97), (48, 64), (150, 130), (96, 33)]
    return [
        (array, size, None, 0, 0, interpolation)
        for interpolation in _RESIZES
        for array in _arrays((96, 128), (61, 97))
        for size in sizes
    ]


def _warp_samples(rows: int) -> list[tuple[Any, ...]]:
    maps = ([[0.83, 0.31, -9.7], [-0.27, 1.13, 11.3]], [[1.71, -0.4, 3.1], [0.6, 0.52, -7.9]], [[1, 0, 3], [0, 1, -2]])
    bottom = [] if rows == 2 else [[0.0011, -0.0007, 1]]
    return [
        (array, np.array(matrix + bottom, np.float64), (141, 117), None, flags, border, (7, 250, 99, 0))
        for flags in (_LINEAR, _LINEAR | _INVERSE, _NEAREST)
        for array in _arrays((96, 128), (40, 1))
        for matrix in maps
        for border in _BORDERS
    ]


def _remap_samples() -> list[tuple[Any, ...]]:
    y, x = np.mgrid[:117, :141].astype(np.float32)
    xs = (x + 5 * np.sin(y / 7)).astype(np.float32)
    ys = (y * 0.9 + 4 * np.cos(x / 9)).astype(np.float32)
    return [
        (array, *maps, interpolation, None, border, (7, 250, 99, 0))
        for interpolation in (_LINEAR, _NEAREST)
        for array in _arrays((96, 128), (40, 1))
        for maps in ((xs, ys), (np.dstack([xs, ys]), None))
        for border in _BORDERS
    ]


class Function:
    """A function of OpenCV.

    `ops` are the operations that it has; `read` takes its arguments and returns the engine's call, or None for what is left to OpenCV; `samples` returns
    arguments with which every operation is compared.
    """

    def __init__(
        self,
        name: str,
        ops: Iterable[str],
        read: Callable[..., Call | None],
        samples: Callable[[], list[tuple[Any, ...]]],
    ) -> None:
        self.__name__ = name
        self.ops = set(ops)
        self._read = read
        self._samples = samples
        self._original: Callable[..., Any] | None = None
        self._differ: set[str] = set()  # what gives other bytes than the installed OpenCV

    def __repr__(self) -> str:
        return f"<cv2.{self.__name__} of the engine>"

    def _call(self, args: tuple[Any, ...], named: dict[str, Any]) -> Call | None:
        try:
            call = self._read(*args, **named)
        except (TypeError, ValueError):  # arguments that the function does not have: OpenCV says which
            return None
        return None if call is None or call.op in self._differ else call

    def exact(self, *args: Any, **named: Any) -> bool:
        """Return whether the engine has this with OpenCV's bytes. Nothing is computed: points of a warp that are far
        outside of the image, or no numbers, are found later, and left to OpenCV."""
        return self._call(args, named) is not None

    def __call__(self, *args: Any, **named: Any) -> Any:
        call = self._call(args, named)
        if call is not None and call.pays:
            with contextlib.suppress(_ext.Unsupported):
                return call.run()
        assert self._original is not None
        return self._original(*args, **named)

    def compare(self, original: Callable[..., Any]) -> bool:
        """Leave out operations that give other bytes than OpenCV's function; return whether any is left. Only the first
        call compares."""
        if self._original is None:
            for args in self._samples():
                call = self._read(*args)
                assert call is not None and call.op in self.ops
                ours, theirs = call.run(), original(*args)
                if ours.shape != theirs.shape or ours.tobytes() != theirs.tobytes():
                    self._differ.add(call.op)
            self._original = original
        return bool(self.ops - self._differ)

    def agrees(self, op: str) -> bool:
        """Return whether an operation gives OpenCV's bytes, after `compare`."""
        return op in self.ops - self._differ


_FUNCTIONS = [
    Function("remap", ["remap", "remap_nearest"], _remap, _remap_samples),
    Function("resize", _RESIZES.values(), _resize, _resize_samples),
    Function("warpAffine", ["warp_affine", "warp_affine_nearest"], _warp_affine, lambda: _warp_samples(2)),
    Function("warpPerspective", ["warp_perspective", "warp_perspective_nearest"], _warp_perspective, lambda: _warp_samples(3)),
]
_compared: dict[str, Function] | None = None


def names() -> list[str]:
    """Return the functions of cv2 that the engine may have. Nothing is compared."""
    return [function.__name__ for function in _FUNCTIONS]


def agrees(op: str) -> bool:
    """Return whether an operation of the engine gives the bytes of the installed OpenCV, no matter which is faster."""
    try:
        import cv2
    except ImportError:
        return False
    function = next(one for one in _FUNCTIONS if op in one.ops)
    function.compare(original_of(getattr(cv2, function.__name__)))
    return function.agrees(op)


def functions() -> dict[str, Function]:
    """Return the functions of cv2, by name, that the engine makes faster and with the bytes of the installed OpenCV.

    Each takes what OpenCV's takes, and calls that for arguments that are not the engine's. The first call compares
    them.
    """
    global _compared
    if _compared is None:
        import cv2

        known = _FUNCTIONS if _ext.cv_level() in _VECTORS else []
        usable = [function for function in known if function.compare(original_of(getattr(cv2, function.__name__)))]
        _compared = {function.__name__: function for function in usable}
    return _compared
