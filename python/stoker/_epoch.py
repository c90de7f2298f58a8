# SPDX-License-Identifier: Apache-2.0
"""What iter(loader) gives: one epoch of a stoker.DataLoader."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from . import _ext

if TYPE_CHECKING:
    from .dataloader import DataLoader
    from .state import Place


class EpochIterator:
    """One epoch."""

    _engine: _ext.Loader | None = None
    _done = False
    _delivered = False

    def __init__(self, loader: DataLoader, number: int) -> None:
        self._loader = loader
        self._number = number
        self._key, self._engine, self._place = loader._begin()
        self._length = self._engine.batches
        self._next: Callable[[], Any] | None = self._engine.next
        if loader._take is not None:
            self._next = functools.partial(self._engine.next_pair, loader._take)

    def __iter__(self) -> Iterator[list[Any]]:
        return self

    def __len__(self) -> int:
        return self._length

    def __next__(self) -> list[Any]:
        if self._next is None:
            raise StopIteration
        batch = self._next()
        if batch is None:
            self._done = True
            self._leave()
            raise StopIteration
        if not self._delivered and self._engine is not None:
            self._delivered = True
            self._loader._warn_of_pageable(self._engine)
        return batch if type(batch) is list else self._loader._deliver(batch, self._place.seed)

    def _place_now(self) -> Place:
        assert self._engine is not None
        return self._place.at(self._engine.save())

    def _leave(self) -> None:
        engine, self._engine = self._engine, None
        self._next = None  # what it calls would keep the engine
        if engine is not None:
            self._loader._give_back(self._key, engine)

    def __del__(self) -> None:
        if self._engine is None or self._engine.closed or sys.is_finalizing():
            return
        if self._key[0] == os.getpid() and self._loader._iterators == self._number:
            self._loader._left = self._place_now()
        self._leave()
