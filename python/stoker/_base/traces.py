# SPDX-License-Identifier: Apache-2.0
"""Tracebacks of a script that `python -m stoker` runs look as if python ran it: without our frames."""

from __future__ import annotations

import os
import sys
import traceback
from types import TracebackType
from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STARTS = os.path.join(_PACKAGE, "__main__.py")


def without_ours(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback from the script's first frame on, and without calls that only pass through this package. What
    this package raises itself keeps the frames at its end."""
    entries = []
    while trace is not None:
        entries.append(trace)
        trace = trace.tb_next
    files = [entry.tb_frame.f_code.co_filename for entry in entries]
    begin = max((n + 1 for n, file in enumerate(files) if file == _STARTS), default=0)
    end = len(entries)
    while end > begin and files[end - 1].startswith(_PACKAGE):
        end -= 1
    kept: TracebackType | None = None
    for n in range(len(entries) - 1, begin - 1, -1):
        if n >= end or not files[n].startswith(_PACKAGE):
            kept = TracebackType(kept, entries[n].tb_frame, entries[n].tb_lasti, entries[n].tb_lineno)
    return kept


def _shortened(error: BaseException | None) -> None:
    """Shorten the tracebacks of an exception and of those that it came from."""
    seen = set()
    errors = [error]
    while errors:
        one = errors.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            one.__traceback__ = without_ours(one.__traceback__) or one.__traceback__
            errors += [one.__cause__, one.__context__]


def hide_ours() -> None:
    """Shorten what Python prints of exceptions, and what the module traceback writes, also in workers that are forked."""
    plain: Any = traceback.TracebackException.__init__

    def init(self: Any, kind: Any, value: Any, trace: Any, *args: Any, **kwargs: Any) -> None:
        plain(self, kind, value, without_ours(trace) or trace, *args, **kwargs)

    def uncaught(kind: Any, value: Any, trace: Any) -> None:
        _shortened(value)
        sys.__excepthook__(kind, value, value.__traceback__)

    traceback.TracebackException.__init__ = init  # type: ignore[method-assign,assignment]
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = uncaught
