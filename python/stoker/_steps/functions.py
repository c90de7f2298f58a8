# SPDX-License-Identifier: Apache-2.0
"""Users' functions as steps, such as `lambda image: image.convert("RGB")`, where it can be proved what they do.

A function that uses nothing but its argument and constants is called with objects that note what is done to them. That
it uses nothing else is seen in its code: no globals, no closure, no exceptions caught, and no names of attributes but
those below. Then it does to an image or a tensor what it did to the object. Whatever the object lacks proves nothing.
"""

from __future__ import annotations

import dis
import inspect
from types import CodeType, FunctionType
from typing import Any

from .arguments import op
from .base import Compose, Transform
from .blockers import TRANSFORM, Blocked, Blocker
from .colours import Grayscale
from .traced import Stand

_NAMES = {"mode", "convert", "repeat", "expand", "mul", "div", "add", "sub"}
_FLAGS = (
    inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)
_OTHER_PLACES = ("GLOBAL", "_NAME", "DEREF", "IMPORT", "BUILD_CLASS", "FUNCTION", "STORE_ATTR", "DELETE_ATTR")
_WHOLE_MOST = 1 << 24  # whole numbers up to here are float32
_MOST = 1e30  # the greatest number that the engine takes


# ---- steps ----


class Nothing(Transform):
    """A step that does nothing in the engine."""

    def _spec(self) -> str:
        return ""

    def _of_v2(self, v2: Any) -> Any:
        return v2.Identity()


class _Looks(Nothing):
    """Does nothing, but looks at the image's mode, which tensors do not have."""

    _wants_image = True


class ToRGB(Nothing):
    """Three channels. Decoded images already have them, unless the image was or has become grey."""

    def _spec_of_grey(self) -> str:
        return op("grayscale", num_output_channels=3)

    def _of_v2(self, v2: Any) -> Any:
        return v2.RGB()


class _Converts(ToRGB):
    _wants_image = True


class _Grey(Grayscale):
    _wants_image = True


class _Triple(Transform):
    """Makes three equal channels of a tensor's one."""

    _makes_tensor = _wants_tensor = _triples = True

    def _spec(self) -> str:
        raise Blocked([Blocker(TRANSFORM, "repeat(3, 1, 1) is compiled for images with one channel only")])

    def _spec_of_grey(self) -> str:
        return ""  # the image gets its channels before it becomes a tensor


class _Arithmetic(Transform):
    """A calculation with each value of a float32 tensor."""

    _makes_tensor = _wants_tensor = True

    def __init__(self, what: str, by: float) -> None:
        self._what = what
        self._by = by

    def _spec(self) -> str:
        return op("arithmetic", what=self._what, by=self._by)


# ---- what functions are called with ----


class _Picture(Stand):
    """An image. It never changes, and neither do the others."""

    def __init__(self, mode: str, was_grey: bool = False) -> None:
        self.mode = mode
        self.was_grey = was_grey

    def convert(self, mode: Any) -> _Picture:
        if mode not in ("RGB", "L"):
            raise ValueError
        return _Picture(mode, self.was_grey or mode == "L")


class _Values(Stand):
    def __init__(self, steps: tuple[Transform, ...] = ()) -> None:
        self.steps = steps

    def _then(self, step: Transform) -> _Values:
        return _Values((*self.steps, step))

    def _calculated(self, what: str, by: Any) -> _Values:
        known = (type(by) is int and abs(by) <= _WHOLE_MOST) or (type(by) is float and abs(by) <= _MOST)
        return self._then(_Arithmetic(what, by)) if known else self._stoker_refuse()

    def add(self, by: Any) -> _Values:
        return self._calculated("subtract", -by)

    def sub(self, by: Any) -> _Values:
        return self._calculated("subtract", by)

    def mul(self, by: Any) -> _Values:
        return self._calculated("multiply", by)

    def div(self, by: Any) -> _Values:
        return self._calculated("divide", by)

    __add__ = __radd__ = add
    __sub__, __truediv__ = sub, div
    __mul__ = __rmul__ = mul
    # They change the tensor, which another variable may name.
    __iadd__ = __isub__ = __imul__ = __itruediv__ = Stand._stoker_refuse

    def repeat(self, *sizes: Any) -> _Values:
        return self._then(_Triple()) if sizes == (3, 1, 1) else self._stoker_refuse()

    def expand(self, *sizes: Any) -> _Values:
        return self._then(_Triple()) if sizes == (3, -1, -1) else self._stoker_refuse()


# ---- proofs ----


def _uses_only_its_argument(function: FunctionType) -> bool:
    code: CodeType = function.__code__
    if code.co_argcount != 1 or code.co_kwonlyargcount or code.co_flags & _FLAGS or function.__defaults__:
        return False
    if code.co_freevars or code.co_cellvars or code.co_exceptiontable or not _NAMES.issuperset(code.co_names):
        return False
    names = {one.opname for one in dis.get_instructions(code)} - {"KW_NAMES"}  # of arguments
    return not any(word in name for name in names for word in _OTHER_PLACES)


def _made(function: FunctionType, stand: Any) -> Any:
    """Return what the function makes of it; None if it does something else."""
    try:
        out = function(stand)
    except Exception:
        return None
    return out if type(out) is type(stand) else None


def _step_for_images(rgb: _Picture, grey: _Picture) -> Transform | None:
    steps: dict[Any, Transform] = {
        ("RGB", False, "L"): _Looks(),
        ("RGB", False, "RGB"): _Converts(),
        ("L", True, "L"): _Grey(1),
        ("RGB", True, "RGB"): _Grey(3),
    }
    return steps.get((rgb.mode, rgb.was_grey, grey.mode))


def step_of(function: Any) -> Transform | None:
    """Return what a function does; None if that cannot be proved."""
    if type(function) is not FunctionType or not _uses_only_its_argument(function):
        return None
    values = _made(function, _Values())
    if values is not None:
        return Compose(values.steps) if values.steps else Nothing()
    rgb, grey = _made(function, _Picture("RGB")), _made(function, _Picture("L", True))
    return None if rgb is None or grey is None else _step_for_images(rgb, grey)
