# SPDX-License-Identifier: Apache-2.0
"""Locks that a forked child can use, whatever the threads of its parent were doing.

A child has only the thread that forked. What another thread had locked would stay locked there for ever, and what it was
changing would stay half changed. Every lock that a module of this package keeps is therefore one of these.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator


class Lock:
    """A reentrant lock. In a forked child it is free, unless the thread that forked holds it.

    `repair` is called in the child to make what the lock guards consistent: another thread may have been in the middle
    of a change, and is gone.
    """

    def __init__(self, repair: Callable[[], None] | None = None) -> None:
        self._lock = threading.RLock()
        self._holder: int | None = None
        self._repair = repair
        os.register_at_fork(after_in_child=self._begin_child)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        with self._lock:
            before, self._holder = self._holder, threading.get_ident()
            try:
                yield
            finally:
                self._holder = before

    def _begin_child(self) -> None:
        if self._holder == threading.get_ident():
            return
        self._lock, self._holder = threading.RLock(), None
        if self._repair is not None:
            self._repair()
