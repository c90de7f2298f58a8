# SPDX-License-Identifier: Apache-2.0
"""A worker process: it takes tasks from its lane, fetches samples, and puts batches into slots."""

from __future__ import annotations

import contextlib
import os
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import IterDataPipe
from torch.utils.data._utils import signal_handling
from torch.utils.data._utils import worker as _torch_worker
from torch.utils.data.graph_settings import apply_random_seed

from . import _ext
from ._collate import avoid_shared_files, collator
from ._parcel import Room, pack

# What a slot carries.
FETCH, RESUME = 0, 1  # to a worker: indices; a seed, for the next epoch
DATA, ERROR, END, RESUMED = 0, 1, 2, 3  # from it

_LOOK_FOR_PARENT = 1.0  # seconds


@dataclass
class Job:
    """All that the workers of one iterator have in common."""

    dataset: Any
    iterable: bool
    batched: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    base_seed: int
    shared_seed: int | None  # of DataPipes
    init_fn: Callable[[int], None] | None
    workers: int
    parent: int


class Fetcher:
    """Samples by their indices, or the next of an iterable data set, as torch fetches them."""

    def __init__(self, job: Job, dataset: Any, collate: Callable[..., Any]) -> None:
        self._job = job
        self._dataset = dataset
        self._collate = collate
        self._iterator = iter(dataset) if job.iterable else None
        self._ended = False

    def fetch(self, indices: Any, *room: Room) -> Any:
        return self._collate(self._samples(indices), *room)

    def _samples(self, indices: Any) -> Any:
        if self._iterator is not None:
            return self._next_samples(indices)
        if not self._job.batched:
            return self._dataset[indices]
        if getattr(self._dataset, "__getitems__", None):
            return self._dataset.__getitems__(indices)
        return [self._dataset[index] for index in indices]

    def _next_samples(self, indices: Any) -> Any:
        assert self._iterator is not None
        if self._ended:
            raise StopIteration
        if not self._job.batched:
            return next(self._iterator)
        samples = []
        for _ in indices:
            try:
                samples.append(next(self._iterator))
            except StopIteration:
                self._ended = True
                break
        if not samples or self._job.drop_last and len(samples) < len(indices):
            raise StopIteration
        return samples


def _numpy_seed(base_seed: int, worker: int) -> Any:
    """The same words that torch seeds NumPy with."""
    words = getattr(_torch_worker, "_generate_state", None)
    if words is not None:
        return words(base_seed, worker)
    return np.random.SeedSequence(base_seed, spawn_key=(worker,)).generate_state(4)


class _Worker:
    def __init__(self, exchange: _ext.Exchange, number: int, job: Job) -> None:
        self.exchange = exchange
        self.number = number
        self.job = job
        self.fetcher: Fetcher | None = None
        self.broken: ExceptionWrapper | None = None  # what init_fn raised, for the first task
        self.ended = False  # of an iterable data set
        self.dataset = job.dataset
        self.collate = collator(job.collate_fn)

    def seed(self) -> int:
        seed = self.job.base_seed + self.number
        random.seed(seed)
        torch.manual_seed(seed)
        np.random.seed(_numpy_seed(self.job.base_seed, self.number))
        return seed

    def begin(self) -> None:
        seed = self.seed()
        self._seed_pipe(self.job.shared_seed)
        _torch_worker._worker_info = _torch_worker.WorkerInfo(
            id=self.number, num_workers=self.job.workers, seed=seed, dataset=self.dataset
        )
        try:
            if self.job.init_fn is not None:
                self.job.init_fn(self.number)
            self.fetcher = Fetcher(self.job, self.dataset, self.collate)
        except Exception:
            self.broken = self._wrapped()

    def _seed_pipe(self, seed: int | None) -> None:
        if isinstance(self.dataset, IterDataPipe):
            assert seed is not None
            generator = torch.Generator()
            generator.manual_seed(seed)
            self.dataset = apply_random_seed(self.dataset, generator)

    def _wrapped(self) -> ExceptionWrapper:
        return ExceptionWrapper(where=f"in DataLoader worker process {self.number}")

    def run(self) -> None:
        while True:
            task = self.exchange.take(self.number, _LOOK_FOR_PARENT)
            if task is False:
                return
            if task is None:
                if os.getppid() != self.job.parent:
                    return
                continue
            slot, kind, _, message = task
            if kind == RESUME:
                self._resume(slot, pickle.loads(message))
            else:
                self._fetch(slot, pickle.loads(message))

    def _resume(self, slot: int, seed: int | None) -> None:
        self.ended = False
        self._seed_pipe(seed)
        try:
            self.fetcher = Fetcher(self.job, self.dataset, self.collate)
        except Exception:
            self.broken = self._wrapped()
        self.exchange.post(slot, RESUMED, 0, 0)

    def _fetch(self, slot: int, indices: Any) -> None:
        if self.ended:
            self.exchange.post(slot, END, 0, 0)
            return
        room = Room(self.exchange, slot)
        try:
            if self.broken is not None:
                broken, self.broken = self.broken, None
                self._post_error(slot, broken)
                return
            assert self.fetcher is not None
            where = pack(room, self.fetcher.fetch(indices, room))
        except StopIteration:
            if self.job.iterable:
                self.ended = True
                self.exchange.post(slot, END, 0, 0)
            else:
                self._post_error(slot, self._wrapped())
        except Exception:
            self._post_error(slot, self._wrapped())
        else:
            self.exchange.post(slot, DATA, *where)

    def _post_error(self, slot: int, error: ExceptionWrapper) -> None:
        room = Room(self.exchange, slot)
        try:
            pickle.loads(pickle.dumps(error.exc_type))  # classes of a function or a lambda cannot travel
            where = pack(room, error)
        except Exception:
            error.exc_msg = f"{error.exc_type.__name__}, as a RuntimeError because it cannot be pickled: {error.exc_msg}"
            error.exc_type = RuntimeError
            room = Room(self.exchange, slot)
            where = pack(room, error)
        self.exchange.post(slot, ERROR, *where)


def worker_main(exchange: Any, number: int, job: Job) -> None:
    """What the process runs. `exchange` is the loader's own (fork), or its descriptor (spawn)."""
    try:
        signal_handling._set_worker_signal_handlers()
        name = getattr(torch.multiprocessing, "_set_thread_name", None)
        if name is not None:
            name("stoker-worker")
        torch.set_num_threads(1)
        avoid_shared_files()
        if not isinstance(exchange, _ext.Exchange):
            exchange = _ext.Exchange(fd=exchange.detach())
        worker = _Worker(exchange, number, job)
        worker.begin()
        worker.run()
    except KeyboardInterrupt:
        pass  # the loader's process has it as well, and says so
    finally:
        with contextlib.suppress(Exception):
            _torch_worker._worker_info = None
