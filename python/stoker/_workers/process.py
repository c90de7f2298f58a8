# SPDX-License-Identifier: Apache-2.0
"""The code of a worker process: it takes tasks from its lane, fetches samples, and puts batches into slots."""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import IterDataPipe
from torch.utils.data._utils import signal_handling
from torch.utils.data._utils import worker as _torch_worker
from torch.utils.data.graph_settings import apply_random_seed

from .. import _ext
from .._lazy import switch as lazy
from .collate import avoid_shared_files, collator
from .fetch import Fetcher, Job
from .parcel import Room, pack
from .seeds import seed_worker

# What a slot carries.
FETCH, RESUME = 0, 1  # to a worker: indices; a seed for the next epoch
DATA, ERROR, END, RESUMED = 0, 1, 2, 3  # from a worker

_LOOK_FOR_PARENT = 1.0  # seconds
_SEEDING_MOST = 10.0  # seconds
STUCK = -signal.SIGALRM  # how a worker ends if it cannot be seeded
_PR_SET_PDEATHSIG = 1  # of prctl
_SNAPSHOT_SHARE = 0.02  # of a worker's time may be spent on states of datasets


class Stopped(BaseException):
    """The loader is closed: no further sample is to be made."""


@dataclass
class Snapshots:
    """Decides when to ask a dataset for its state: often, but at little cost."""

    every: int | None  # batches; None: as often as is cheap
    always: bool  # if batches cannot be skipped to reach a position between two states
    batches: int = 0
    working: float = 0.0
    asking: float = 0.0
    clock: float = field(default_factory=time.monotonic)

    def due(self) -> bool:
        self.batches += 1
        if self.always:
            return True
        if self.every is not None:
            return self.every <= 1 or self.batches % self.every == 0
        now = time.monotonic()
        self.working += now - self.clock
        self.clock = now
        return self.batches == 1 or self.asking <= _SNAPSHOT_SHARE * self.working

    def took(self, seconds: float) -> None:
        self.asking += seconds
        self.clock = time.monotonic()


class _Worker:
    def __init__(self, exchange: _ext.Exchange, number: int, job: Job, start: dict[str, Any] | None) -> None:
        self.exchange = exchange
        self.number = number
        self.job = job
        self.start = start  # the position in its part of a resumed epoch
        self.fetcher: Fetcher | None = None
        self.broken: ExceptionWrapper | None = None  # what init_fn raised, to be reported with the first task
        self.ended = False  # an iterable dataset has no more samples
        self.batch = 0  # the one that was requested last
        self.dataset = job.dataset
        self.collate = collator(job.collate_fn)
        self.parent = multiprocessing.parent_process()
        self.snapshots = Snapshots(job.snapshot_every, not job.iterable)

    def begin(self) -> None:
        with _ended_if_stuck():
            seed = seed_worker(self.job.base_seed, self.number)
        self._seed_pipe(self.job.shared_seed)
        _torch_worker._worker_info = _torch_worker.WorkerInfo(
            id=self.number, num_workers=self.job.workers, seed=seed, dataset=self.dataset
        )
        try:
            if self.job.init_fn is not None:
                self.job.init_fn(self.number)
            self.fetcher = self._new_fetcher(self.start)
        except Exception:
            self.broken = self._wrapped()

    def _new_fetcher(self, start: dict[str, Any] | None) -> Fetcher:
        return Fetcher(self.job, self.dataset, self.collate, start, self._progress)

    def _progress(self, sample: int) -> None:
        if self.exchange.progress(self.number, sample):
            raise Stopped

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
                if self.parent is not None and not self.parent.is_alive():
                    return
                continue
            slot, kind, self.batch, message = task
            if kind == RESUME:
                self._resume(slot, pickle.loads(message))
            else:
                self._fetch(slot, *pickle.loads(message))

    def _resume(self, slot: int, seed: int | None) -> None:
        self.ended = False
        self._seed_pipe(seed)
        try:
            self.fetcher = self._new_fetcher(None)
        except Exception:
            self.broken = self._wrapped()
        self.exchange.post(slot, RESUMED, 0, 0)

    def _fetch(self, slot: int, indices: Any, key: Any) -> None:
        if self.ended:
            self._post(slot, END, {})
            return
        try:
            if self.broken is not None:
                broken, self.broken = self.broken, None
                self._post_error(slot, broken)
                return
            assert self.fetcher is not None
            room = Room(self.exchange, slot)
            data = self.fetcher.fetch(indices, key, room)
            where = pack(room, (data, self._aside()))
        except StopIteration:
            if self.job.iterable:
                self.ended = True
                self._post(slot, END, self._aside(at_the_end=True))
            else:
                self._post_error(slot, self._wrapped())
        except Exception:
            self._post_error(slot, self._wrapped())
        else:
            self.exchange.post(slot, DATA, *where)

    def _aside(self, at_the_end: bool = False) -> dict[str, Any]:
        """Return what the loader gets besides a batch: the dataset's state, and samples that failed."""
        fetcher = self.fetcher
        assert fetcher is not None
        out: dict[str, Any] = {}
        if fetcher.has_state and (self.snapshots.due() or at_the_end):
            began = time.monotonic()
            out["state"] = fetcher.state()
            out["ended"] = fetcher.ended
            self.snapshots.took(time.monotonic() - began)
        if fetcher.bad:
            out["bad"], fetcher.bad = fetcher.bad, []
        return out

    def _post(self, slot: int, kind: int, value: Any) -> None:
        self.exchange.post(slot, kind, *pack(Room(self.exchange, slot), value))

    def _post_error(self, slot: int, error: ExceptionWrapper) -> None:
        try:
            pickle.loads(pickle.dumps(error.exc_type))  # classes defined in a function cannot be pickled
            self._post(slot, ERROR, error)
        except Exception:
            name = error.exc_type.__name__
            error.exc_msg = f"{name}, raised as a RuntimeError because it cannot be pickled: {error.exc_msg}"
            error.exc_type = RuntimeError
            self._post(slot, ERROR, error)


@contextlib.contextmanager
def _ended_if_stuck() -> Iterator[None]:
    """End this process if what follows takes long. torch's and NumPy's generators have locks; one that another thread of
    the loader's process held when this one was forked is never released here."""
    before = signal.getsignal(signal.SIGALRM)
    if before is None:  # set by C code, and could not be restored
        yield
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # no handler would run while this thread waits for a lock
    signal.setitimer(signal.ITIMER_REAL, _SEEDING_MOST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _die_with_parent() -> None:
    """Let the kernel kill this process when the loader's process dies, even in the middle of a long sample."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    parent = multiprocessing.parent_process()
    if parent is not None and not parent.is_alive():
        os._exit(1)  # it died before the call


def _leave_ctrl_c_to_the_loader() -> None:
    """Ignore SIGINT, which Ctrl-C sends to all processes of a terminal: the loader's process reports it, and stops the
    workers, which may finish their samples. Programs that a dataset starts are interrupted as usual, since they do not
    inherit a handler; one that the script has set is kept."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: None)


def worker_main(exchange: Any, number: int, job: Job, start: dict[str, Any] | None, child: bool) -> None:
    """Run a worker process. `exchange` is the loader's own (fork), or its descriptor (spawn); `start` is the position at
    which the worker's part of a resumed epoch begins; `child`: the main thread of the loader's process is its parent."""
    try:
        if child:
            _die_with_parent()
        _leave_ctrl_c_to_the_loader()
        signal_handling._set_worker_signal_handlers()
        name = getattr(torch.multiprocessing, "_set_thread_name", None)
        if name is not None:
            name("stoker-worker")
        torch.set_num_threads(1)
        avoid_shared_files()
        if job.lazy:
            lazy.everywhere()
        if not isinstance(exchange, _ext.Exchange):
            exchange = _ext.Exchange(fd=exchange.detach())
        worker = _Worker(exchange, number, job, start)
        worker.begin()
        worker.run()
    except (Stopped, KeyboardInterrupt):
        pass  # KeyboardInterrupt: the loader's process gets the signal as well, and reports it
    finally:
        with contextlib.suppress(Exception):
            _torch_worker._worker_info = None


if "_stoker_watch" in sys.modules:  # under `stoker run`
    sys.modules["_stoker_watch"].attach()
