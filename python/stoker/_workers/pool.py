# SPDX-License-Identifier: Apache-2.0
"""The worker processes of one iterator: starting, watching and stopping them."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import pickle
import signal
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from multiprocessing import reduction
from typing import Any

import torch
from torch.utils.data import IterDataPipe, MapDataPipe, _utils
from torch.utils.data import dataloader as _torch

from .. import _ext
from .._base.warn import warn_user
from .._lazy import switch as lazy
from .fetch import Job
from .handles import warn_of_handles
from .process import STUCK, worker_main

_LOOK_FOR_END = 0.05  # seconds
_STUCK_MOST = 64  # workers of a pool that may be stuck before they begin
_open: weakref.WeakSet[Pool] = weakref.WeakSet()


@atexit.register
def _shut_all() -> None:
    """Stop all workers before the interpreter ends: multiprocessing would terminate them in the middle of a sample."""
    pools = [pool for pool in _open if pool.is_mine()]
    for pool in pools:
        pool.exchange.stop(-1)
    for pool in pools:
        pool.shut()


class Pool:
    """Worker processes, and the exchange they share with the loader."""

    def __init__(self, context: Any, job: Job, exchange: _ext.Exchange, shares: tuple[int, int]) -> None:
        self.exchange = exchange
        self.processes: list[Any] = []
        self.is_shut = False
        self._stuck = 0  # workers that were, so far
        self._context = context or torch.multiprocessing.get_context()
        self._forks = self._context.get_start_method() == "fork"
        self._owner = os.getpid()
        self._job = job
        _open.add(self)
        if isinstance(job.dataset, (IterDataPipe, MapDataPipe)):
            job.init_fn = functools.partial(_torch._sharding_worker_init_fn, job.init_fn, *shares)
        if self._forks:
            warn_of_handles(job.dataset)
        if self._forks and job.lazy:
            lazy.prepare()

    def start(self, starts: list[dict[str, Any] | None]) -> None:
        """Start all workers, each at the position where its part of the epoch begins."""
        try:
            for number, start in enumerate(starts):
                self.processes.append(self._start_one(number, start))
        except BaseException:
            self.shut()
            raise

    def replace(self, number: int, start: dict[str, Any] | None) -> None:
        """Replace a worker that has died."""
        self.processes[number].join()
        self.exchange.empty(number)
        self.processes[number] = self._start_one(number, start)

    @contextlib.contextmanager
    def _harmless_fork(self) -> Iterator[None]:
        self.exchange.harmless_forks(True)
        try:
            yield
        finally:
            self.exchange.harmless_forks(False)

    def _start_one(self, number: int, start: dict[str, Any] | None) -> Any:
        process = self._context.Process(
            target=worker_main,
            args=(
                self.exchange if self._forks else _Descriptor(self.exchange.fileno()),
                number,
                self._job,
                start,
                self._is_parent(),
            ),
            daemon=True,
        )
        try:
            with self._harmless_fork():
                process.start()
        except (TypeError, AttributeError, pickle.PicklingError):
            warn_user(
                "Got pickle error when attempting to start a worker Process. This might be because the "
                "worker Process arguments are not picklable, which every start method but 'fork' needs. "
                "You can also try multiprocessing.set_start_method('fork')."
            )
            raise
        return process

    def _is_parent(self) -> bool:
        """Return whether the main thread of this process is the parent of a worker that is started now. The kernel
        notices the end of the thread that started it; others may end long before the process does."""
        is_main = threading.current_thread() is threading.main_thread()
        return is_main and self._context.get_start_method() != "forkserver"

    def gone(self) -> list[int]:
        return [number for number, process in enumerate(self.processes) if not process.is_alive()]

    def was_stuck(self, number: int) -> bool:
        """Return whether a worker ended itself because a lock was held for ever when it was forked, so that another one
        may do better. It has not called any code of the user's."""
        stuck = self.processes[number].exitcode == STUCK and self.exchange.doing(number)[0] < 0
        self._stuck += stuck
        return stuck and self._stuck <= _STUCK_MOST

    def how_it_ended(self, number: int, doing: str) -> str:
        process = self.processes[number]
        code = process.exitcode
        if code is not None and code < 0:
            try:
                name = f"{signal.strsignal(-code)}"
            except ValueError:
                name = f"signal {-code}"
            hint = (
                " The system's OOM killer does this when memory runs out: use fewer workers or smaller batches."
                if code == -signal.SIGKILL
                else ""
            )
            return f"DataLoader worker (pid {process.pid}) is killed by signal: {name}.{doing}{hint}"
        return (
            f"DataLoader worker (pid(s) {process.pid}) exited unexpectedly with exit code {code}."
            f"{doing} Details are lost due to multiprocessing. Rerunning with num_workers=0 may give better "
            "error trace."
        )

    def is_mine(self) -> bool:
        """Return whether this process has started the workers, rather than inherited them by a fork."""
        return self._owner == os.getpid()

    def shut(self) -> None:
        """Stop the workers. Each finishes the sample that it is making, and begins no other; one that takes longer than
        torch waits is terminated."""
        if self.is_shut or sys.is_finalizing() or not self.is_mine():
            return
        self.is_shut = True
        _open.discard(self)
        self.exchange.stop(-1)
        try:
            for process in self.processes:
                _wait_for(process)
        finally:  # also if Ctrl-C is pressed again
            late = [process for process in self.processes if process.is_alive()]
            for process in late:
                process.terminate()
            for process in late:
                _wait_for(process)
                if process.is_alive():
                    process.kill()
                    process.join()


def _wait_for(process: Any) -> None:
    """Wait until a process has ended, for as long as torch does. join() alone would not notice its end while a process
    lives that another thread forked at the same moment, and that holds the other end of its pipe."""
    deadline = time.monotonic() + _utils.MP_STATUS_CHECK_INTERVAL
    while process.is_alive() and (left := deadline - time.monotonic()) > 0:
        process.join(min(left, _LOOK_FOR_END))


class _Descriptor:
    """A file descriptor that is passed to a process started by spawn or forkserver."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __reduce__(self) -> Any:
        return _identity, (reduction.DupFd(self._fd),)


def _identity(received: Any) -> Any:
    return received
