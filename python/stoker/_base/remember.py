# SPDX-License-Identifier: Apache-2.0
"""Results that are remembered for a moment: while a dataset and its transforms are looked at, nobody changes them."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

_Called = TypeVar("_Called", bound=Callable[..., Any])


class _Memory(threading.local):
    results: dict[tuple[Any, ...], tuple[Any, Any]] | None = None  # outside of `remembering` there is none


_memory = _Memory()


@contextlib.contextmanager
def remembering() -> Iterator[None]:
    """Let functions that are `remembered` return what they returned before for the same objects, in this thread, until the
    end of the block, or of the one around it."""
    if _memory.results is not None:
        yield
        return
    _memory.results = {}
    try:
        yield
    finally:
        _memory.results = None


def remembered(called: _Called) -> _Called:
    """Let `remembering` know a function. Arguments are told apart by identity; errors are not remembered."""

    @functools.wraps(called)
    def once(*things: Any) -> Any:
        results = _memory.results
        if results is None:
            return called(*things)
        key = (called, *map(id, things))
        if key not in results:
            results[key] = things, called(*things)  # the objects are kept, so that no other ones get their ids
        return results[key][1]

    return cast(_Called, once)
