# SPDX-License-Identifier: Apache-2.0
"""Epochs of datasets written in Python: their numbers and positions, and the iterator for the calling process."""

from __future__ import annotations

import contextlib
import copy
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import IterDataPipe, MapDataPipe
from torch.utils.data import dataloader as _torch
from torch.utils.data._utils import pin_memory as _pinning

from .._base.tables import counted
from .._base.tensors import device_name, has_cuda
from .._engine.device_batches import DeviceBatches, why_no_device_batches
from .._engine.gpu_copies import Copier
from .._engine.stats import Stats
from .._order.position import VERSION, Draws, start_of_epoch
from .._plan.options import resolved
from .early_copies import lent
from .fetch import Fetcher, Job
from .seeds import Occurrences, generators_kept, sample_seed

_BAD_KEPT = 1024


def _device(device: Any) -> str | None:
    """Return the device that batches are copied to."""
    name = resolved(device_name(device))
    if name is not None and not has_cuda():
        raise RuntimeError(f"device={device!r}: torch finds no GPU, or was built without CUDA")
    return name


class Epochs:
    """The epochs of one loader. An epoch begins with the first next(), so that an unused iterator does not count."""

    def __init__(self) -> None:
        self.next = 0
        self.pending: dict[str, Any] | None = None  # the state at which the next iterator begins
        self.left: dict[str, Any] | None = None  # the state at which the latest iterator was dropped
        self.finished: dict[str, Any] = {}  # states of datasets at the end of the latest finished epoch
        self.bad: list[dict[str, Any]] = []
        self.made = 0  # number of iterators
        self.batches = 0
        self.waited_seconds = self.first_batch_seconds = 0.0
        self.device_batches = DeviceBatches("no epoch has begun", 0)
        self._switched_off = "no epoch has begun"
        self.exchanges: list[Any] = []  # that of the latest finished iterator, for the next one to reuse
        self._current: Callable[[], PythonIterator | None] = lambda: None

    def pins(self, loader: Any, pinned: bool) -> None:
        """Begin an epoch whose batches are pinned, or are not."""
        why_not = why_no_device_batches(loader, pinned, one_engine=False)
        if why_not or self._switched_off:
            self.device_batches, self._switched_off = DeviceBatches(why_not, 0), why_not

    def start(self, iterator: PythonIterator) -> dict[str, Any] | None:
        """Register a new iterator, and return the state at which it begins, if one was loaded."""
        self._current = weakref.ref(iterator)
        self.made += 1
        start, self.pending = self.pending, None
        return start

    def set(self, epoch: int) -> None:
        self.next = epoch
        self.left = None
        if self.pending is not None and self.pending["epoch"] != epoch:
            self.pending = None

    def begun(self, iterator: PythonIterator) -> None:
        self.next = iterator.epoch + 1
        self.left = None

    def dropped(self, iterator: PythonIterator) -> None:
        if iterator.number == self.made:
            self.left = iterator.state()

    def state(self, loader: Any) -> dict[str, Any]:
        current = self._current()
        if self.pending is not None:
            return copy.deepcopy(self.pending)
        if current is not None and not current.finished:
            return current.state()
        if self.left is not None:
            return copy.deepcopy(self.left)
        return copy.deepcopy({**start_of_epoch(loader, self.next), **self.finished})

    def resume(self, state: dict[str, Any]) -> None:
        if not isinstance(state, dict) or state.get("stoker_python") != VERSION:
            raise ValueError(
                "this is not a state of a stoker.DataLoader whose dataset runs in Python, or is of another version"
            )
        self.pending = copy.deepcopy(state)
        self.next = int(state["epoch"])
        self.left = None

    def waited(self, seconds: float) -> None:
        if not self.batches:
            self.first_batch_seconds = seconds
        self.batches += 1
        self.waited_seconds += seconds

    def stats(self, workers: int, notes: list[str]) -> Stats:
        """Return those of the engine's statistics that exist for Python."""
        return Stats(
            batches=self.batches,
            bad_samples=len(self.bad),
            waited_seconds=self.waited_seconds,
            first_batch_seconds=self.first_batch_seconds,
            workers=workers,
            notes=notes,
        )

    def report(self, epoch: int, samples: list[dict[str, Any]]) -> None:
        self.bad.extend({**sample, "epoch": epoch} for sample in samples)
        del self.bad[:-_BAD_KEPT]


class PythonIterator(_torch._BaseDataLoaderIter):
    """One epoch, or, with persistent workers, one after another. Seeds and warnings are torch's."""

    finished = False
    _begun = False

    def __init__(self, loader: Any) -> None:
        self._epochs: Epochs = loader._epochs
        self._start = self._epochs.start(self)
        self.number = self._epochs.made
        self._draws = Draws(loader, self._start)
        before = torch.get_rng_state()
        super().__init__(loader)
        if self._start is not None and not self._draws.has_own_seeds:
            self._base_seed = self._start["base_seed"]
            if self._start.get("begun", True):
                torch.set_rng_state(before)  # the base seed was drawn when the epoch began
        device = _device(loader.device)
        self._epochs.pins(loader, self._pin_memory)
        self._copier = None if device is None else Copier(device)
        self._pin_memory = self._pin_memory or device is not None
        self._pin_memory_device = self._pin_memory_device or (device and "cuda")
        self._open(loader)
        self._take_up(loader)

    def _open(self, loader: Any) -> None:
        """Prepare the dataset, before the sampler draws: both may use the same generator."""

    def _take_up(self, loader: Any) -> None:
        """Begin the next epoch, or resume one."""
        start = self._start or {}
        self.epoch = start.get("epoch", self._epochs.next)
        self.finished = self._begun = False
        self._delivered = start.get("batches", 0)
        self._mark: tuple[int, Any] | None = None
        self._seed = sample_seed(loader)
        self._draws.begin(self._sampler_iter)
        self._occurrences = Occurrences(loader._index_sampler, self._draws.is_kept)
        self._draws.replay(lambda index: self._key(index, 0))
        self._error_limit = loader.error_limit
        self._failed = 0

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        if not first_iter:
            self._start = None
            self._draws = Draws(loader, None)
            self._take_up(loader)

    def _next_index(self) -> Any:
        return self._draws.next()

    def _key(self, index: Any, number: int) -> Any:
        """Return what determines the seeds of a batch's samples; None: the worker's seed."""
        if self._seed is None:
            return None
        return self._seed, self.epoch, self._occurrences.count(index, number)

    def __next__(self) -> Any:
        if not self._begun:
            self._begun = True
            self._epochs.begun(self)
        began = time.perf_counter()
        try:
            batch = super().__next__()
            self._epochs.waited(time.perf_counter() - began)
            return batch
        except StopIteration:
            if not self.finished:
                self.finished = True
                self._epochs.finished = self._left_behind()
            raise

    def _left_behind(self) -> dict[str, Any]:
        """Return states of the dataset with which the next epoch begins."""
        return {}

    def _report(self, samples: list[dict[str, Any]]) -> None:
        self._epochs.report(self.epoch, samples)
        self._failed += len(samples)
        if self._error_limit is not None and self._failed > self._error_limit:
            raise RuntimeError(
                f"{self._failed} sample{'' if self._failed == 1 else 's'} failed in this epoch, more than "
                f"error_limit={self._error_limit} allows; the latest is sample {samples[-1]['sample']}: "
                f"{samples[-1]['reason']}"
            )

    def state(self) -> dict[str, Any]:
        """Return the position after the batch that was delivered last."""
        self._draws.peek()
        return {
            "stoker_python": VERSION,
            "epoch": self.epoch,
            "batches": self._delivered,
            "base_seed": self._base_seed,
            **self._draws.state(self._mark),
        }

    def _job(self, loader: Any) -> Job:
        return Job(
            dataset=self._dataset,
            iterable=self._dataset_kind == _torch._DatasetKind.Iterable,
            batched=self._auto_collation,
            batch_size=loader.batch_size,
            collate_fn=self._collate_fn,
            drop_last=self._drop_last,
            base_seed=self._base_seed,
            shared_seed=self._shared_seed,
            init_fn=loader.worker_init_fn,
            workers=self._num_workers,
            snapshot_every=loader.snapshot_every_n_steps,
            skip_errors=loader.on_error == "skip",
            lazy=getattr(loader, "compile", True) is not False,
        )

    def _finished(self, held: list[Any]) -> Any:
        """Return the only batch in `held` as the caller gets it: in pinned memory or on the device, if requested. Nobody
        else holds a reference to it, so that its slot is released where it was copied."""
        if self._pin_memory:
            held[0] = _pinning.pin_memory(held[0], self._pin_memory_device)
        if self._copier is not None:
            return self._copier.copy(held)
        return lent(held.pop(), self._epochs.device_batches)

    def _note_where_left(self) -> None:
        if self._begun and not self.finished and not sys.is_finalizing():
            with contextlib.suppress(Exception):  # a dataset whose state_dict fails is treated as having none
                self._epochs.dropped(self)


class SingleIterator(PythonIterator):
    """An epoch in the calling process. Datasets of tensors are gathered in whole batches."""

    _workers: list[Any] = []  # for code that inspects torch's iterators

    def _take_up(self, loader: Any) -> None:
        super()._take_up(loader)
        self._gather = loader._gathered()
        # With workers, torch draws from the sampler for as many batches when the iterator is made.
        self._ahead: deque[tuple[Any, Any]] = deque()
        while len(self._ahead) < self._num_workers * (loader.prefetch_factor or 0) and self._draw_one():
            pass

    def _open(self, loader: Any) -> None:
        if isinstance(self._dataset, (IterDataPipe, MapDataPipe)):
            torch.utils.data.graph_settings.apply_sharding(self._dataset, self._world_size, self._rank)
        start = (self._start or {}).get("fetcher")
        each = (self._start or {}).get("workers", {}).get("each", [])
        if each:
            raise ValueError(
                f"the state was saved with {counted(len(each), 'worker')}, each at its own position in the data, but this loader has "
                f"none. Resume with num_workers={len(each)}"
            )
        self._fetcher = Fetcher(self._job(loader), self._dataset, self._collate_fn, start)

    def _draw_one(self) -> bool:
        try:
            index = self._next_index()
        except StopIteration:
            return False
        self._ahead.append((index, self._draws.mark()))
        return True

    def _next_data(self) -> Any:
        self._draw_one()
        if not self._ahead:
            raise StopIteration
        index, mark = self._ahead.popleft()
        held = [None if self._gather is None else self._gather.fetch(index)]
        if held[0] is None:
            held[0] = self._fetched(index)
        if self._fetcher.bad:
            bad, self._fetcher.bad = self._fetcher.bad, []
            self._report(bad)
        self._mark = mark
        self._delivered += 1
        return self._finished(held)

    def _fetched(self, index: Any) -> Any:
        key = self._key(index, self._delivered)
        if key is None:
            return self._fetcher.fetch(index, None)
        with generators_kept():
            return self._fetcher.fetch(index, key)

    def state(self) -> dict[str, Any]:
        return {**super().state(), **self._fetchers(finished=False)}

    def _left_behind(self) -> dict[str, Any]:
        return self._fetchers(finished=True)

    def _fetchers(self, finished: bool) -> dict[str, Any]:
        fetcher = self._fetcher
        if not fetcher.has_state and (finished or self._dataset_kind != _torch._DatasetKind.Iterable):
            return {}
        at = self._delivered if fetcher.has_state else 0
        states = copy.deepcopy(fetcher.state())
        part = {"state": states, "batches": self._delivered, "at": at}
        return {"fetcher": {**part, **({"finished": True} if finished else {"ended": fetcher.ended})}}

    def __del__(self) -> None:
        if hasattr(self, "_fetcher"):
            self._note_where_left()
