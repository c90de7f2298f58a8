# SPDX-License-Identifier: Apache-2.0
"""OpenCV's functions for uint8 arrays, with the same arguments and the same bytes, made by the engine.

What the engine does not have, such as other types of arrays, is left to OpenCV. OpenCV's arithmetic depends on its
version and on the CPU, so `functions()` compares each operation with the installed OpenCV before it is used.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _ext
from .._base.unmodified import original_of

_SIDE = 32766  # pixels at most
_CHANNELS = 4
_VECTORS = ("avx2", "avx512")  # with which the engine is faster than OpenCV

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
    if op is None or size is None or not channels or dst is not None:
        return None
    return Call(op, src, size[1], size[0], channels)


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


class Function:
    """A function of OpenCV.

    `read` takes its arguments and returns the engine's call, or None for what is left to OpenCV; `samples` returns
    arguments with which every operation is compared.
    """

    def __init__(
        self, name: str, read: Callable[..., Call | None], samples: Callable[[], list[tuple[Any, ...]]]
    ) -> None:
        self.__name__ = name
        self._read = read
        self._samples = samples
        self._original: Callable[..., Any] | None = None
        self._differ: set[str] = set()  # operations that give other bytes than the installed OpenCV

    def __repr__(self) -> str:
        return f"<cv2.{self.__name__} of the engine>"

    def _call(self, args: tuple[Any, ...], named: dict[str, Any]) -> Call | None:
        try:
            call = self._read(*args, **named)
        except TypeError:  # arguments that the function does not have: OpenCV says which
            return None
        return None if call is None or call.op in self._differ else call

    def exact(self, *args: Any, **named: Any) -> bool:
        """Return whether the engine would make this, and not OpenCV. Nothing is computed."""
        return self._call(args, named) is not None

    def __call__(self, *args: Any, **named: Any) -> Any:
        call = self._call(args, named)
        if call is not None:
            return call.run()
        assert self._original is not None
        return self._original(*args, **named)

    def compare(self, original: Callable[..., Any]) -> bool:
        """Leave out operations that give other bytes than OpenCV's function; return whether any is left."""
        self._original = original
        left = set()
        for args in self._samples():
            call = self._read(*args)
            assert call is not None
            left.add(call.op)
            ours, theirs = call.run(), original(*args)
            if ours.shape != theirs.shape or ours.tobytes() != theirs.tobytes():
                self._differ.add(call.op)
        return bool(left - self._differ)


_FUNCTIONS = [Function("resize", _resize, _resize_samples)]
_compared: dict[str, Function] | None = None


def names() -> list[str]:
    """Return the functions of cv2 that the engine may have. Nothing is compared."""
    return [function.__name__ for function in _FUNCTIONS]


def functions() -> dict[str, Function]:
    """Return the functions of cv2, by name, that the engine makes faster and with the bytes of the installed OpenCV.

    Each takes what OpenCV's takes, and calls that for arguments that are not the engine's. The first call compares
    them.
    """
    global _compared
    if _compared is None:
        import cv2

        level = next(detail for kind, detail, *_ in _ext.features() if kind == "kernels")
        usable = [f for f in _FUNCTIONS if f.compare(original_of(getattr(cv2, f.__name__)))] if level in _VECTORS else []
        _compared = {function.__name__: function for function in usable}
    return _compared
