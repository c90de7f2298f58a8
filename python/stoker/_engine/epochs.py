# SPDX-License-Identifier: Apache-2.0
"""The iterator over an epoch that the engine makes."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .. import _ext
from .._order.place import Place
from .._order.samplers import Given
from .._plan.compile import Compiled


class EpochIterator:
    """One epoch. It begins with the first next(), so that an unused iterator does not count as an epoch."""

    _engine: _ext.Loader | None = None
    _place: Place | None = None
    _compiled: Compiled
    _next: Callable[[], Any] | None = None
    _rescue: Any = None
    _draw: Callable[[], object] | None = None
    _key: Any
    _done = False
    _delivered = False

    _given: Given

    def __init__(self, native: Any, number: int) -> None:
        self._native = native
        self._number = number
        self._draws = native.new_draws(number > 1)

    def __iter__(self) -> Iterator[list[Any]]:
        return self

    def __len__(self) -> int:
        return self._native.length()

    def __next__(self) -> list[Any]:
        if self._next is None:
            if self._done:
                raise StopIteration
            self._begin()
        assert self._next is not None
        if self._draw is not None:
            self._draw()
        self._follow()
        try:
            batch = self._next()
        except _ext.OutOfMemory as error:
            if self._key[-1] is None:
                raise
            self._native.device_batches.out_of_memory(error)
            return self.__next__()
        except _ext.StokerError as error:
            if self._rescue is None:
                raise
            raise self._rescue.as_pillows(error) from None
        if batch is None:
            self._leave()
            if self._place is None or not self._place.more:
                self._done = True
                raise StopIteration
            self._begin()
            return self.__next__()
        assert self._place is not None and self._engine is not None
        if not self._delivered:
            self._delivered = True
            self._native.warn_of_slow_copies(self._engine)
        if self._native.device_batches.is_on() and (type(batch) is list or self._key[-1] is not None):
            return self._native.device_batches.lent(batch, self._compiled.handle)
        return batch if type(batch) is list else self._native.deliver(batch, self._place.seed, self._compiled)

    def _follow(self) -> None:
        """Continue where batches are to be made now: on a GPU, or in memory."""
        native = self._native
        native.device_batches.decide()
        if native.device_batches.place == self._key[-1]:
            return
        moved = native.move(self._key, self._engine, self._given)
        if moved is not None:
            self._key, self._engine = moved
            self._take_from_engine()

    def _begin(self) -> None:
        native = self._native
        self._compiled = native.compiled  # the dataset may be changed for later epochs
        self._key, self._engine, self._place, self._given = native.begin(self._draws)
        self._draw = self._draws.ahead()
        self._rescue = native.rescue
        self._take_from_engine()

    def _take_from_engine(self) -> None:
        assert self._engine is not None
        self._next = self._engine.next
        if self._native.take is not None and self._key[-1] is None:
            self._next = functools.partial(self._engine.next_pair, self._native.take)

    def origin(self) -> dict[str, Any] | None:
        """Return how to draw the order again, if it was drawn and the epoch has not begun."""
        return self._draws.origin()

    def is_under_way(self) -> bool:
        return self._engine is not None

    def place_now(self) -> Place:
        assert self._engine is not None and self._place is not None
        return self._place.at(self._engine.save())

    def _leave(self) -> None:
        engine, self._engine = self._engine, None
        self._next = None  # it holds a reference to the engine
        if engine is not None:
            self._native.give_back(self._key, engine)

    def __del__(self) -> None:
        if self._engine is None or self._engine.closed or sys.is_finalizing():
            return
        if self._key[0] == os.getpid() and self._native.iterators == self._number:
            self._native.left = self.place_now()
        self._leave()
