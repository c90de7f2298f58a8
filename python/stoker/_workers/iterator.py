# SPDX-License-Identifier: Apache-2.0
"""Epochs of datasets written in Python, run by worker processes.

Batch i goes to worker i mod n, and batches arrive in order, as in torch's DataLoader: samplers, seeds and
get_worker_info() give the same batches in both. Tasks and batches are passed in the slots of an exchange.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import reprlib
import time
from typing import Any, NamedTuple

from .. import _ext
from .._base.tables import counted
from .._engine.gpu_copies import PinnedSlots
from .epoch import PythonIterator
from .fetch import gets_at_once, plain_index
from .parcel import unpack
from .pool import Pool
from .process import DATA, END, ERROR, FETCH, RESUME

_LOOK_FOR_WORKERS = 0.25  # seconds between checks whether they are alive
_AHEAD = 8192  # tasks at once, however large prefetch_factor is
_KEPT = 32  # batches that a consumer may keep before further ones are copied out of their slots
_REPLACED = 64  # workers that may die in an epoch with on_error="skip", unless error_limit is given


class _Task(NamedTuple):
    worker: int
    slot: int
    message: bytes
    index: Any
    mark: tuple[int, Any]


class WorkerIterator(PythonIterator):
    """An epoch run by worker processes, or, with persistent_workers, one after another."""

    _pool: Pool | None = None  # until the workers are started

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        if self._prefetch_factor <= 0:  # torch's message; its constructor accepts 0
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        self._ahead = min(self._prefetch_factor * self._num_workers, max(_AHEAD, self._num_workers))
        self._exchange, self._slots = self._take_exchange()
        job = self._job(loader)
        self._iterable = job.iterable
        self._skip_errors = job.skip_errors
        self._at_once = gets_at_once(job, job.dataset)
        self._free_choice = self._seed is not None and not job.iterable  # any worker makes the same batch
        self._tasks: dict[int, _Task] = {}  # in order
        self._each = self._starts()
        pool = Pool(loader.multiprocessing_context, job, self._exchange, (self._world_size, self._rank))
        self._pool = pool
        pool.start(self._each)
        self._workers = pool.processes
        self._reset(loader, first_iter=True)

    def _take_exchange(self) -> tuple[_ext.Exchange, PinnedSlots | None]:
        """Return the exchange of an earlier epoch, with its memory, if one fits. Iterators never share an exchange."""
        # A slot for each task in progress, for each worker's resume, and for what the consumer keeps.
        count = self._ahead + self._num_workers + _KEPT
        pinned = self._pin_memory_device == "cuda"
        while self._epochs.exchanges:
            exchange, slots = self._epochs.exchanges.pop()
            fits = (exchange.workers, exchange.slots, exchange.owner) == (self._num_workers, count, os.getpid())
            if fits and pinned == (slots is not None) and exchange.lent() <= _KEPT:
                return exchange, slots
        exchange = _ext.Exchange(self._num_workers, count)
        exchange.regular = self._ahead + 2
        return exchange, PinnedSlots(exchange) if pinned else None

    def _starts(self) -> list[dict[str, Any]]:
        """Return the position of each worker at the beginning, which is updated from then on."""
        then = (self._start or {}).get("workers", {})
        each = then.get("each", [])
        if each and len(each) != self._num_workers:
            raise ValueError(
                f"the state was saved with {counted(len(each), 'worker')}, each at its own position in the data, but this loader has "
                f"{self._num_workers}. Resume with num_workers={len(each)}"
            )
        if (self._start or {}).get("fetcher"):
            raise ValueError(
                "the state was saved with num_workers=0, and includes the position of the dataset in one process, but "
                f"this loader has {counted(self._num_workers, 'worker')}. Resume with num_workers=0"
            )
        if then.get("finished") and not self._persistent_workers:
            each = []  # each epoch has new workers, with a copy of the dataset in this process
        return [dict(one) for one in each] or [{} for _ in range(self._num_workers)]

    # ---- epochs ----

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        assert self._pool is not None
        if not first_iter and self._pool.is_shut:
            raise RuntimeError("the workers of this DataLoader were shut down: create a new iterator")
        left = [task.slot for task in self._tasks.values()]
        super()._reset(loader, first_iter)
        self._send_idx = self._received_idx = self._delivered
        self._tasks = {}
        self._beyond: dict[int, tuple[int, Any]] = {}  # delivered out of order, with in_order=False
        self._failed_task: tuple[int, _Task] | None = None
        self._workers_status = [True] * self._num_workers
        self._workers_num_tasks = [0] * self._num_workers
        if not first_iter:
            self._each = [{} for _ in range(self._num_workers)]
            self._resume(left)
        self._send_first((self._start or {}).get("workers", {}) if first_iter else {})

    def _send_first(self, then: dict[str, Any]) -> None:
        """Send the first tasks; in a resumed epoch to the workers that had them before, if it matters."""
        turn = 0
        assigned: list[int] = []
        if then.get("count") == self._num_workers and not then.get("finished"):
            turn = then["turn"]
            assigned = then.get("assigned", [])
            for worker in then.get("ended", []):
                self._workers_status[worker] = False
        self._turn = turn
        beyond = set((self._start or {}).get("beyond", []))
        for worker in assigned:
            self._send_next(worker, beyond)
        while len(self._tasks) < self._ahead and self._send_next(None, beyond):
            pass

    def _resume(self, left: list[int]) -> None:
        """Tell the workers that another epoch begins, and wait until they have finished their remaining tasks."""
        message = pickle.dumps(self._shared_seed)
        acks = []
        for worker in range(self._num_workers):
            slot = self._free_slot()
            self._exchange.send(worker, slot, RESUME, 0, message)
            acks.append(slot)
        for slot in (*left, *acks):
            self._wait((slot,), of_all=True)
            self._exchange.release(slot)

    def _free_slot(self) -> int:
        slot = self._exchange.free()
        if slot < 0 and self._slots is not None:
            self._slots.free_finished(wait=True)
            slot = self._exchange.free()
        if slot < 0:
            raise RuntimeError("internal error: all slots of the exchange are in use")  # pragma: no cover
        return slot

    def _choose(self) -> int | None:
        """Return the worker for the next task."""
        active = sum(self._workers_status)
        if self._free_choice and active:
            return min(range(self._num_workers), key=self._workers_num_tasks.__getitem__)
        for _ in range(self._num_workers):
            worker, self._turn = self._turn, (self._turn + 1) % self._num_workers
            if self._workers_status[worker] and (
                self._in_order or self._workers_num_tasks[worker] < self._ahead // active
            ):
                return worker
        return None

    def _send_next(self, worker: int | None = None, beyond: set[int] | None = None) -> bool:
        """Send the next task, if there is one. Those in `beyond` were done before the epoch was interrupted."""
        while True:
            try:
                index = self._next_index()
            except StopIteration:
                return False
            if not beyond or self._send_idx not in beyond:
                break
            self._beyond[self._send_idx] = self._draws.mark()
            self._key(index, self._send_idx)  # counts the occurrences of its samples
            self._send_idx += 1
        if worker is None:
            worker = self._choose()
        if worker is None:
            return False
        key = self._key(index, self._send_idx)
        message = pickle.dumps((index, key), pickle.HIGHEST_PROTOCOL)
        self._send(self._send_idx, _Task(worker, self._free_slot(), message, index, self._draws.mark()))
        self._send_idx += 1
        return True

    def _send(self, number: int, task: _Task) -> None:
        self._exchange.send(task.worker, task.slot, FETCH, number, task.message)
        self._tasks[number] = task
        self._workers_num_tasks[task.worker] += 1

    # ---- workers that die ----

    def _check_workers(self) -> None:
        """Handle workers that died with tasks to do: replace them, or end the epoch with an error."""
        assert self._pool is not None
        busy = {task.worker for task in self._tasks.values()}
        gone = [number for number in self._pool.gone() if number in busy]
        # What a worker posted right before it died counts.
        if not gone or self._exchange.wait(self._due(), 0) >= 0:
            return
        stuck = [number for number in gone if self._pool.was_stuck(number)]
        for number in stuck:
            self._begin_again(number)
        gone = [number for number in gone if number not in stuck]
        if not gone:
            return
        sentence = self._pool.how_it_ended(gone[0], self._what_it_did(gone[0])[1])
        if self._skip_errors and not self._iterable:
            for number in gone:
                self._replace(number)
            return
        for number in gone:
            self._workers_status[number] = False
            self._forget_tasks(number)
        raise RuntimeError(sentence)

    def _what_it_did(self, worker: int) -> tuple[Any, str]:
        """Return the sample that a worker was making when it died, and a sentence about it."""
        slot, place = self._exchange.doing(worker)
        for number, task in self._tasks.items():
            if task.worker == worker and task.slot == slot and self._exchange.wait((slot,), 0) < 0:
                index = task.index
                if self._iterable:
                    return None, f" It was making batch {number}."
                if self._at_once:
                    return None, f" It was making batch {number}, one of the samples {reprlib.repr(index)}."
                if isinstance(index, (list, tuple)) and place < len(index):
                    index = index[place]
                sample = self._tried(worker, plain_index(index))
                return sample, f" It was making batch {number}, sample {sample}."
        return None, ""

    def _tried(self, worker: int, sample: Any) -> Any:
        """Return the sample that a worker tried in place of one that it avoids."""
        avoid = self._each[worker].get("avoid", [])
        while isinstance(sample, int) and sample in avoid and len(avoid) < len(self._dataset):
            sample = (sample + 1) % len(self._dataset)
        return sample

    def _replace(self, worker: int) -> None:
        """Let a new process do the tasks of a worker that died, without the sample that killed it."""
        assert self._pool is not None
        sample, sentence = self._what_it_did(worker)
        ended = self._pool.how_it_ended(worker, sentence)
        if sample is None or self._failed >= _REPLACED and self._error_limit is None:
            raise RuntimeError(ended)
        self._report([{"sample": sample, "status": "killed", "reason": ended}])
        avoid = [*self._each[worker].get("avoid", []), sample]
        self._each[worker]["avoid"] = avoid
        self._begin_again(worker)

    def _begin_again(self, worker: int) -> None:
        """Let a new process do the tasks of a worker that is gone."""
        assert self._pool is not None
        again = {n: t for n, t in self._tasks.items() if t.worker == worker}
        again = {n: t for n, t in again.items() if self._exchange.wait((t.slot,), 0) < 0}
        self._pool.replace(worker, {**self._each[worker]})
        self._workers_num_tasks[worker] -= len(again)
        for number, task in again.items():
            self._send(number, task)

    def _forget_tasks(self, worker: int) -> None:
        """Forget the unfinished tasks of a worker that died."""
        for number, task in list(self._tasks.items()):
            if task.worker == worker and self._exchange.wait((task.slot,), 0) < 0:
                del self._tasks[number]
                self._exchange.release(task.slot)

    # ---- batches ----

    def _wait(self, slots: tuple[int, ...], of_all: bool = False) -> int:
        """Wait until one of the slots is done, and return it. `of_all`: every worker must be alive, not only those with
        tasks."""
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
            if of_all and self._pool is not None and self._pool.gone():
                raise RuntimeError(self._pool.how_it_ended(self._pool.gone()[0], " It was waiting for the next epoch."))
            self._check_workers()

    def _due(self) -> tuple[int, ...]:
        """Return the slots that may be delivered next; none at the end of the epoch."""
        if self._in_order:
            return tuple(task.slot for task in itertools.islice(self._tasks.values(), 1))
        return tuple(task.slot for task in self._tasks.values())

    def _next_data(self) -> Any:
        assert self._pool is not None
        while True:
            slots = self._due()
            if not slots:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            if self._pool.is_shut:
                raise RuntimeError("the workers of this DataLoader were shut down: create a new iterator")
            if not self._pool.is_mine():
                raise RuntimeError(
                    "this iterator belongs to the process that made it, whose batches a forked child would take away: "
                    "create a new iterator in the child"
                )
            self._pass_failed()
            slot = self._wait(slots)
            kind, number, offset, length, lease = self._exchange.collect(slot)
            task = self._tasks.pop(number)
            self._workers_num_tasks[task.worker] -= 1
            if self._exchange.lent() > _KEPT:
                lease = bytearray(memoryview(lease)[: offset + length])
            elif self._slots is not None and kind == DATA:
                self._slots.free_finished()
                self._slots.register(slot, offset + length)
            data = unpack(lease, offset, length)
            del lease
            if kind == END:
                self._worker_ended(task.worker, data)
                continue
            self._send_next()
            if kind == ERROR:
                self._failed_task = number, task
                data.reraise()
            assert kind == DATA
            self._advance(number, task)
            batch, aside = data
            held = [batch]
            del data, batch
            self._note(task.worker, aside)
            return self._finished(held)

    def _pass_failed(self) -> None:
        """Move past a batch that failed. This is done when the next one is requested; until then the epoch can be
        resumed at the failed batch."""
        if self._failed_task is not None:
            self._advance(*self._failed_task)
            self._failed_task = None

    def _worker_ended(self, worker: int, aside: dict[str, Any]) -> None:
        self._workers_status[worker] = False
        self._each[worker]["ended"] = True
        if "state" in aside:
            self._each[worker].update(at=self._each[worker].get("batches", 0), state=aside["state"])
        if not self._persistent_workers and not self._workers_num_tasks[worker]:
            self._exchange.stop(worker)
        self._send_next()

    def _advance(self, number: int, task: _Task) -> None:
        """Note that a batch is delivered: an epoch that is interrupted now is resumed after it."""
        self._beyond[number] = task.mark
        while self._delivered in self._beyond:
            self._mark = self._beyond.pop(self._delivered)
            self._delivered += 1
        if self._iterable:
            self._delivered = number + 1
            self._beyond.clear()
        part = self._each[task.worker]
        part["batches"] = part.get("batches", 0) + 1

    def _note(self, worker: int, aside: dict[str, Any]) -> None:
        part = self._each[worker]
        if "state" in aside:
            part.update(at=part["batches"], state=aside["state"], ended=aside["ended"])
        if "bad" in aside:
            self._report(aside["bad"])

    # ---- position ----

    def state(self) -> dict[str, Any]:
        out = super().state()
        if self._beyond:
            out["beyond"] = sorted(self._beyond)
        workers: dict[str, Any] = {"count": self._num_workers, "turn": self._delivered % self._num_workers}
        if self._iterable:
            workers["turn"] = self._turn
            workers["assigned"] = [task.worker for task in self._tasks.values()]
            workers["ended"] = [n for n, active in enumerate(self._workers_status) if not active]
        if self._iterable or any("state" in part for part in self._each):
            workers["each"] = [_without(part, "avoid", "finished") for part in self._each]
        return {**out, "workers": workers}

    def _left_behind(self) -> dict[str, Any]:
        if not self._persistent_workers or not any("state" in part for part in self._each):
            return {}
        each = [{**_without(part, "avoid", "ended"), "finished": True} for part in self._each]
        return {"workers": {"count": self._num_workers, "each": each, "finished": True}}

    # ---- the end ----

    def _shutdown_workers(self) -> None:
        if self._pool is not None and not self._pool.is_shut:
            self._pool.shut()
            if all(not process.is_alive() for process in self._pool.processes):
                self._exchange.reset()
                self._epochs.exchanges[:] = [(self._exchange, self._slots)]

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            if self._pool is not None and not self._pool.is_shut:
                self._note_where_left()
            self._shutdown_workers()


def _without(part: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in names}
