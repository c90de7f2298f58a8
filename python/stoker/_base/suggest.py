# SPDX-License-Identifier: Apache-2.0
"""Suggestions for names that were misspelt."""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

_Init = TypeVar("_Init", bound=Callable[..., None])


def similar(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like `name`, ignoring case; None if none is.

    >>> similar("Dataloader", ["DataLoader", "datasets"]), similar("x", ["y"])
    ('DataLoader', None)
    """
    by_lower = {each.lower(): each for each in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.75)
    return by_lower[found[0]] if found else None


def suggests_keywords(init: _Init) -> _Init:
    """Make an __init__ suggest the right name if a keyword argument is unknown."""
    known = inspect.signature(init).parameters

    @functools.wraps(init)
    def checked(self: Any, *args: Any, **options: Any) -> None:
        for name in options:
            if name not in known:
                error = TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'")
                meant = similar(name, known)
                if meant is not None:
                    error.add_note(f"Did you mean '{meant}'?")  # the message stays Python's
                raise error
        init(self, *args, **options)

    return cast(_Init, checked)


def no_attribute(module: str, name: str, known: Iterable[str], library: str = "") -> AttributeError:
    """Return the error for an attribute that a module does not have. `library`: the module whose names it follows."""
    text = f"module '{module}' has no attribute '{name}'"
    meant = similar(name, known)
    if hasattr(sys.modules.get(library), name):
        text += f": {library}.{name} can be used in its place, and runs in Python"
    elif meant is not None:
        text += f". Did you mean '{meant}'?"
    return AttributeError(text, name=name)
