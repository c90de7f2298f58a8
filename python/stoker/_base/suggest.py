# SPDX-License-Identifier: Apache-2.0
"""Suggestions for names that were misspelt."""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, TypeVar, Unpack, cast, get_args, get_origin, get_type_hints

_Called = TypeVar("_Called", bound=Callable[..., Any])


def similar(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like `name`, ignoring case; None if none is.

    >>> similar("Dataloader", ["DataLoader", "datasets"]), similar("x", ["y"])
    ('DataLoader', None)
    """
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.75)
    return by_lower[found[0]] if found else None


def suggests_keywords(called: _Called) -> _Called:
    """Make a function or an __init__ suggest the right name if a keyword argument is unknown."""
    parameters = inspect.signature(called).parameters
    takes_more = any(parameter.kind == parameter.VAR_KEYWORD for parameter in parameters.values())

    @functools.wraps(called)
    def checked(*args: Any, **options: Any) -> Any:
        for name in options:
            if name not in parameters:
                _check(name, called, args, takes_more)
        return called(*args, **options)

    return cast(_Called, checked)


def _keys_of(called: Callable[..., Any], name: str) -> list[str] | None:
    """Return the keys of `**name: Unpack[...]`; None if it takes any, or its type is unknown here."""
    try:
        hint = get_type_hints(called).get(name)
        return list(get_type_hints(get_args(hint)[0])) if get_origin(hint) is Unpack else None
    except Exception:  # names that only a type checker knows
        return None


@functools.cache
def _keywords_of(called: Callable[..., Any], takes_more: bool) -> list[str] | None:
    """Return all keyword arguments; None if it takes any."""
    known = [each for each in inspect.signature(called).parameters if each not in ("self", "cls")]
    if not takes_more:
        return known
    more = _keys_of(called, known.pop())
    return None if more is None else known + more


def _check(name: str, called: Callable[..., Any], args: tuple[Any, ...], takes_more: bool) -> None:
    known = _keywords_of(called, takes_more)
    if known is None or name in known:
        return
    meant = similar(name, known)
    if takes_more and meant is None:  # what is like nothing, `called` refuses itself
        return
    where = called.__name__
    if where in ("__init__", "__new__"):
        made = args[0] if isinstance(args[0], type) else type(args[0])
        where = f"{made.__name__}.__init__"
    error = TypeError(f"{where}() got an unexpected keyword argument '{name}'")
    if meant is not None:
        error.add_note(f"Did you mean '{meant}'?")  # the message stays Python's
    raise error


class SuggestsKeywords:
    """Base of classes whose __init__, and that of each class derived from them, suggests keywords."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        init = vars(cls).get("__init__")
        if isinstance(init, FunctionType):
            cls.__init__ = suggests_keywords(init)  # type: ignore[method-assign]


def no_attribute(module: str, name: str, known: Iterable[str], library: str = "") -> AttributeError:
    """Return the error for an attribute that a module does not have. `library`: the module whose names it follows."""
    text = f"module '{module}' has no attribute '{name}'"
    meant = similar(name, known)
    if hasattr(sys.modules.get(library), name):
        text += f": {library}.{name} can be used in its place, and runs in Python"
    elif meant is not None:
        text += f". Did you mean '{meant}'?"
    return AttributeError(text, name=name)
