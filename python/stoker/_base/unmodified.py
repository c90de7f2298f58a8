# SPDX-License-Identifier: Apache-2.0
"""Checks whether an object of a library still behaves as in the library: nothing overridden by a subclass, set on the
instance, or patched in the class."""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import Any

from .remember import remembered

_LOOKED_UP = ("__getattribute__", "__getattr__")
# What a derived class may define without changing what an object does once it is made.
_HARMLESS = {
    "__annotations__",
    "__doc__",
    "__firstlineno__",
    "__init__",
    "__module__",
    "__qualname__",
    "__repr__",
    "__static_attributes__",
    "extra_repr",
}
_DECORATORS = {"albumentations": "albucore"}  # packages whose decorators a library's own functions have
_LOOKS_FOR_LAZY = "_stoker_original"  # the attribute in which our patched functions keep the original


def in_place_of(original: Callable[..., Any], ours: Callable[..., Any]) -> Callable[..., Any]:
    """Return our function with the names of the library's, whose place it takes."""
    for name in ("__name__", "__qualname__", "__doc__", "__module__"):
        setattr(ours, name, getattr(original, name))
    setattr(ours, _LOOKS_FOR_LAZY, original)
    return ours


def original_of(function: Any) -> Any:
    """Return the library's function, whether ours has taken its place or not."""
    return getattr(function, _LOOKS_FOR_LAZY, function)


def _functions(found: Any) -> Iterator[Any]:
    """Yield the functions behind an entry of a class; for our patches for lazy images, the originals."""
    if isinstance(found, property):
        yield from filter(None, (found.fget, found.fset))
    else:
        function = getattr(found, "__func__", found)
        yield vars(function).get(_LOOKS_FOR_LAZY, function) if isinstance(function, FunctionType) else function


def is_from(package: str, function: Any) -> bool:
    """Return whether the code of the function is in the package's folder. Names and modules can be copied from one
    function to another, as functools.wraps does, but not the file of the code."""
    if not isinstance(function, FunctionType):
        return True
    decorators = _DECORATORS.get(package)
    if decorators in sys.modules and _is_in(decorators, function):
        return hasattr(function, "__wrapped__") and is_from(package, function.__wrapped__)
    return _is_in(package, function)


def _is_in(package: str, function: FunctionType) -> bool:
    file = getattr(sys.modules.get(package), "__file__", None) or ""
    return function.__code__.co_filename.startswith(os.path.dirname(file) + os.sep)


def as_of_library(thing: Any, package: str) -> Any:
    """Return an object of a derived class that only makes objects in its own way as one of the library's class: a copy.
    Return any other object as it is."""
    kinds = type(thing).__mro__
    at = next((n for n, kind in enumerate(kinds) if kind.__module__.startswith(package + ".")), 0)
    if not at or any(vars(kind).keys() - _HARMLESS for kind in kinds[:at]) or kinds[at:] != kinds[at].__mro__:
        return thing
    try:
        plain = copy.copy(thing)
        object.__setattr__(plain, "__class__", kinds[at])
    except (TypeError, AttributeError, ValueError):
        return thing
    return plain


def changes_of_class(kind: type, base: type, methods: Iterable[str], attributes: Iterable[str]) -> list[str]:
    """Return what a class changes compared with its library's `base`: `methods` that it overrides or that were patched,
    and `attributes` that are computed."""
    package = base.__module__.partition(".")[0]
    found = []
    for name in (*methods, *_LOOKED_UP):
        owner = next((c for c in kind.__mro__ if name in vars(c)), None)
        if owner is None or owner is object:
            continue
        if owner in kind.__mro__[: kind.__mro__.index(base)]:
            found.append(f"{owner.__qualname__} overrides {name}, which the engine would not call")
        elif not all(is_from(package, f) for f in _functions(vars(owner)[name])):
            found.append(f"{owner.__qualname__}.{name} has been replaced: it is not the function of {package}")
    for name in attributes:
        owner = next((c for c in kind.__mro__ if name in vars(c)), None)
        if owner is not None and hasattr(vars(owner)[name], "__get__"):
            found.append(f"{owner.__qualname__} computes {name}, which the engine would not call")
    return found


def changes_of_instance(thing: Any, methods: Iterable[str]) -> list[str]:
    """Return methods that were set on the object itself."""
    own = getattr(thing, "__dict__", {})
    return [f"{name} was set on this {type(thing).__qualname__} object" for name in methods if name in own]


def changes_of_step(step: Any, package: str) -> list[str]:
    """Return the same for one step of a pipeline, for which all methods matter."""
    kind = type(step)
    found = [
        f"{name} was set on this {kind.__qualname__} object"
        for name, value in vars(step).items()
        if callable(value) and callable(getattr(kind, name, None))
    ]
    if getattr(step, "_forward_hooks", None) or getattr(step, "_forward_pre_hooks", None):
        found.append(f"this {kind.__qualname__} object has hooks")
    return found + [why for owner in kind.__mro__ for why in _replaced(owner, package)]


@remembered
def _replaced(owner: type, package: str) -> list[str]:
    """Return the methods of a library's class that were patched."""
    if owner.__module__.partition(".")[0] != package:
        return []
    return [
        f"{owner.__qualname__}.{name} has been replaced: it is not the function of {package}"
        for name, entry in vars(owner).items()
        if not all(is_from(package, f) for f in _functions(entry))
    ]
