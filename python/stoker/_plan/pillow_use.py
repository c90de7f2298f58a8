# SPDX-License-Identifier: Apache-2.0
"""Whether the code of a dataset opens images with Pillow, as far as its functions show."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_OPENERS = ("PIL", "torchvision.datasets.folder")
_LIBRARIES = {"torch", "stoker", "numpy", "builtins", *sys.stdlib_module_names}
_MOST = 500  # functions that are looked at


def opens_images(dataset: Any) -> bool:
    """Return whether the dataset, or one inside it, refers to Pillow or to torchvision's loaders of images."""
    inner = [*getattr(dataset, "datasets", ()), getattr(dataset, "dataset", None)]
    if any(part is not None and part is not dataset and opens_images(part) for part in inner):
        return True
    waiting = [*_methods(type(dataset)), *filter(_is_function, getattr(dataset, "__dict__", {}).values())]
    seen: set[CodeType] = set()
    while waiting and len(seen) < _MOST:
        function = waiting.pop()
        function = function.__func__ if isinstance(function, MethodType) else function
        if _belongs(function.__module__, _OPENERS):
            return True
        if function.__code__ in seen or (function.__module__ or "").partition(".")[0] in _LIBRARIES:
            continue
        seen.add(function.__code__)
        for name in _names(function.__code__):
            value = function.__globals__.get(name)
            if _belongs(value.__name__ if isinstance(value, ModuleType) else name, _OPENERS):
                return True
            if _is_function(value):
                waiting.append(value)
    return False


def _is_function(value: Any) -> bool:
    return isinstance(value, FunctionType | MethodType)


def _methods(kind: type) -> Iterator[FunctionType]:
    for owner in kind.__mro__:
        yield from (value for value in vars(owner).values() if isinstance(value, FunctionType))


def _names(code: CodeType) -> Iterator[str]:
    """Yield the global names and imports of a function, and of those inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _belongs(name: str | None, packages: tuple[str, ...]) -> bool:
    return any(name == package or (name or "").startswith(f"{package}.") for package in packages)
