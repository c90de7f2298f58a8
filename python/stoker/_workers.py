# SPDX-License-Identifier: Apache-2.0
"""Epochs of data sets written in Python: in this process, or in worker processes.

Batch i goes to worker i mod n, and batches come in order, as from torch's DataLoader: samplers, seeds and
get_worker_info() give the same batches in both. Tasks and batches travel in the slots of an exchange.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import pickle
import signal
import sys
import time
import warnings
from multiprocessing import reduction
from typing import Any

import torch
from torch.utils.data import IterDataPipe, MapDataPipe
from torch.utils.data import dataloader as _torch
from torch.utils.data._utils import pin_memory as _pinning

from . import _ext
from ._parcel import unpack
from ._process import DATA, END, ERROR, FETCH, RESUME, Fetcher, Job, worker_main

_LOOK_FOR_WORKERS = 0.25  # seconds between looks at whether they live
_PATIENCE = 0.15  # for a worker that is to end, before it is terminated
_KEPT = 32  # batches that a consumer may keep before further ones are copied out of their slots


class _Iterator(_torch._BaseDataLoaderIter):
    """What both kinds have in common: torch's draws of seeds and its warnings."""

    def _job(self, loader: Any) -> Job:
        return Job(
            dataset=self._dataset,
            iterable=self._dataset_kind == _torch._DatasetKind.Iterable,
            batched=self._auto_collation,
            collate_fn=self._collate_fn,
            drop_last=self._drop_last,
            base_seed=self._base_seed,
            shared_seed=self._shared_seed,
            init_fn=loader.worker_init_fn,
            workers=self._num_workers,
            parent=os.getpid(),
        )

    def _pinned(self, data: Any) -> Any:
        if not self._pin_memory:
            return data
        return _pinning.pin_memory(data, self._pin_memory_device)


class SingleIterator(_Iterator):
    """An epoch in the calling process."""

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            torch.utils.data.graph_settings.apply_sharding(self._dataset, self._world_size, self._rank)
        self._fetcher = Fetcher(self._job(loader), self._dataset, self._collate_fn)

    def _next_data(self) -> Any:
        return self._pinned(self._fetcher.fetch(self._next_index()))


class WorkerIterator(_Iterator):
    """An epoch by worker processes; with persistent_workers, one after the other."""

    _shutdown = True  # until the workers are there

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        self._ahead = self._prefetch_factor * self._num_workers
        # A slot for each task under way, for each worker's resume, and for what the consumer keeps.
        self._exchange = _ext.Exchange(self._num_workers, self._ahead + self._num_workers + _KEPT)
        self._exchange.regular = self._ahead + 2
        self._owner = os.getpid()
        self._workers: list[Any] = []
        self._start(loader)
        self._reset(loader, first_iter=True)

    # ---- workers ----

    def _start(self, loader: Any) -> None:
        context = loader.multiprocessing_context or torch.multiprocessing.get_context()
        job = self._job(loader)
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            job.init_fn = functools.partial(
                _torch._sharding_worker_init_fn, job.init_fn, self._world_size, self._rank
            )
        self._shutdown = False
        self._exchange.harmless_forks(True)
        try:
            for number in range(self._num_workers):
                self._workers.append(self._start_one(context, number, job))
        except BaseException:
            self._shutdown_workers()
            raise
        finally:
            self._exchange.harmless_forks(False)

    def _start_one(self, context: Any, number: int, job: Job) -> Any:
        forks = context.get_start_method() == "fork"
        process = context.Process(
            target=worker_main,
            args=(self._exchange if forks else _Descriptor(self._exchange.fileno()), number, job),
            daemon=True,
        )
        try:
            process.start()
        except (TypeError, AttributeError, pickle.PicklingError):
            warnings.warn(
                "Got pickle error when attempting to start a worker Process. This might be because the "
                "worker Process arguments are not picklable, which every start method but 'fork' needs. "
                "You can also try multiprocessing.set_start_method('fork').",
                stacklevel=2,
            )
            raise
        return process

    def _check_workers(self) -> None:
        """Raises when a worker that has work to do is gone."""
        busy = {number for number, _ in self._tasks.values()}
        gone = [
            (number, worker)
            for number, worker in enumerate(self._workers)
            if number in busy and not worker.is_alive()
        ]
        if not gone:
            return
        sentence = self._how_it_ended(*gone[0])
        for number, _ in gone:
            self._workers_status[number] = False
            self._forget_tasks(number)
        raise RuntimeError(sentence)

    def _forget_tasks(self, worker: int) -> None:
        """Those that a worker which is gone will never do."""
        for task, (owner, slot) in list(self._tasks.items()):
            if owner == worker and self._exchange.wait((slot,), 0) < 0:
                del self._tasks[task]
                self._exchange.release(slot)

    def _how_it_ended(self, number: int, worker: Any) -> str:
        code = worker.exitcode
        tasks = [str(task) for task, (owner, _) in self._tasks.items() if owner == number][:1]
        doing = f" It was making batch {tasks[0]}." if tasks else ""
        if code is not None and code < 0:
            try:
                name = f"{signal.strsignal(-code)}"
            except ValueError:
                name = f"signal {-code}"
            hint = (
                " The system's OOM killer ends processes so when memory runs out: use fewer workers or smaller "
                "batches."
                if code == -signal.SIGKILL
                else ""
            )
            return f"DataLoader worker (pid {worker.pid}) is killed by signal: {name}.{doing}{hint}"
        return (
            f"DataLoader worker (pid(s) {worker.pid}) exited unexpectedly with exit code {code}."
            f"{doing} Details are lost due to multiprocessing. Rerunning with num_workers=0 may give better "
            "error trace."
        )

    # ---- epochs ----

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        if not first_iter and self._shutdown:
            raise RuntimeError("the workers of this DataLoader were shut down")
        super()._reset(loader, first_iter)
        self._send_idx = 0  # the next task to be sent
        left = [] if first_iter else [slot for _, slot in self._tasks.values()]
        self._tasks: dict[int, tuple[int, int]] = {}  # in order: the worker and the slot of each
        self._workers_status = [True] * self._num_workers
        self._workers_num_tasks = [0] * self._num_workers
        self._turns = itertools.cycle(range(self._num_workers))
        if not first_iter:
            self._resume(left)
        for _ in range(self._ahead):
            self._send_next()

    def _resume(self, left: list[int]) -> None:
        """Tells the workers that another epoch begins; what they still had to do is done by then."""
        message = pickle.dumps(self._shared_seed)
        acks = []
        for worker in range(self._num_workers):
            slot = self._free_slot()
            self._exchange.send(worker, slot, RESUME, 0, message)
            acks.append(slot)
        for slot in (*left, *acks):
            self._wait((slot,))
            self._exchange.release(slot)

    def _free_slot(self) -> int:
        slot = self._exchange.free()
        if slot < 0:
            raise RuntimeError("all slots of the exchange are in use")  # pragma: no cover
        return slot

    def _send_next(self) -> None:
        try:
            index = self._next_index()
        except StopIteration:
            return
        active = sum(self._workers_status)
        for worker in itertools.islice(self._turns, self._num_workers):
            if self._workers_status[worker] and (
                self._in_order or self._workers_num_tasks[worker] < self._ahead // active
            ):
                break
        else:
            return
        slot = self._free_slot()
        self._exchange.send(worker, slot, FETCH, self._send_idx, pickle.dumps(index, pickle.HIGHEST_PROTOCOL))
        self._tasks[self._send_idx] = (worker, slot)
        self._workers_num_tasks[worker] += 1
        self._send_idx += 1

    # ---- batches ----

    def _wait(self, slots: tuple[int, ...]) -> int:
        """One of the slots that is done."""
        deadline = time.monotonic() + self._timeout if self._timeout > 0 else None
        while True:
            seconds = _LOOK_FOR_WORKERS
            if deadline is not None:
                seconds = min(seconds, deadline - time.monotonic())
                if seconds <= 0:
                    raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds")
            slot = self._exchange.wait(slots, seconds)
            if slot >= 0:
                return slot
            self._check_workers()
            # What a worker posted right before it ended counts.

    def _due(self) -> tuple[int, ...]:
        """The slots of which one is to be handed out next; none at the end of the epoch."""
        slots = tuple(slot for _, slot in self._tasks.values())
        return slots[:1] if self._in_order else slots

    def _next_data(self) -> Any:
        while True:
            slots = self._due()
            if not slots:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            if self._shutdown:
                raise RuntimeError("the workers of this DataLoader were shut down")
            kind, task, offset, length, lease = self._exchange.collect(self._wait(slots))
            worker, _ = self._tasks.pop(task)
            self._workers_num_tasks[worker] -= 1
            if kind == END:
                self._workers_status[worker] = False
                if not self._persistent_workers and not self._workers_num_tasks[worker]:
                    self._exchange.stop(worker)
                self._send_next()
                continue
            if self._exchange.lent() > _KEPT:
                lease = bytearray(memoryview(lease)[: offset + length])
            data = unpack(lease, offset, length)
            del lease
            self._send_next()
            if kind == ERROR:
                data.reraise()
            assert kind == DATA
            return self._pinned(data)

    # ---- the end ----

    def _shutdown_workers(self) -> None:
        if self._shutdown or sys.is_finalizing() or self._owner != os.getpid():
            return
        self._shutdown = True
        self._exchange.stop(-1)
        deadline = time.monotonic() + _PATIENCE
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()))
        for worker in self._workers:
            if worker.is_alive():
                worker.terminate()
        for worker in self._workers:
            worker.join(1)
            if worker.is_alive():
                worker.kill()
                worker.join()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self._shutdown_workers()


class _Descriptor:
    """A descriptor that goes along when a process is started by spawn or forkserver."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def __reduce__(self) -> Any:
        return _identity, (reduction.DupFd(self._fd),)


def _identity(received: Any) -> Any:
    return received
