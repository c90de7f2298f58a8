# SPDX-License-Identifier: Apache-2.0
"""Attributes of libraries that are replaced while images are lazy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

IsOn = Callable[[], bool]  # whether the thread that asks runs a loader's dataset


class Patch:
    """An attribute that is replaced while images are lazy. It is created once and applied many times: in a process that
    fetches samples itself, for every batch."""

    def __init__(self, owner: Any, attribute: str, wrap: Callable[[Any], Any]) -> None:
        self._owner = owner
        self._attribute = attribute
        self._before = getattr(owner, attribute)
        self._inherited = attribute not in vars(owner)
        self._ours = wrap(self._before)

    def do(self) -> bool:
        """Apply it, and return whether that was possible."""
        if getattr(self._owner, self._attribute) is not self._before:  # somebody else has patched it
            return False
        setattr(self._owner, self._attribute, self._ours)
        return True

    def undo(self) -> None:
        if vars(self._owner).get(self._attribute) is not self._ours:
            return
        if self._inherited:
            delattr(self._owner, self._attribute)
        else:
            setattr(self._owner, self._attribute, self._before)


def applied(patches: Sequence[Any]) -> Callable[[], None]:
    """Apply patches, which have `do` and `undo`. Return a function that undoes them."""
    for one in patches:
        one.do()

    def undo() -> None:
        for one in patches:
            one.undo()

    return undo


def function_patches(
    module_name: str, wraps: Mapping[str, Callable[[Any, IsOn], Any]], is_on: IsOn
) -> list[Patch]:
    """Return the patches of those functions that the module has."""

    def patch(name: str) -> Patch:
        return Patch(module, name, lambda original: wraps[name](original, is_on))

    module = sys.modules[module_name]
    return [patch(name) for name in wraps if callable(getattr(module, name, None))]
