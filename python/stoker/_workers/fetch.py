# SPDX-License-Identifier: Apache-2.0
"""Fetching samples of a dataset written in Python, and collating them to batches."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch.utils.data import Subset, default_collate

from .._data.base import EngineDataset
from .._data.fields import collated
from .._lazy import switch as lazy
from .._lazy.late import filling_rows
from .._order.position import has_state
from .collate import stacks_as_torch
from .early_rows import Rows
from .seeds import seed_sample

_SUBSTITUTES = 64  # how many samples are tried in place of one that fails


@dataclass
class Job:
    """What all workers of one iterator share."""

    dataset: Any
    iterable: bool
    batched: bool
    batch_size: int | None
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    base_seed: int
    shared_seed: int | None  # for DataPipes
    init_fn: Callable[[int], None] | None
    workers: int
    snapshot_every: int | None
    skip_errors: bool  # replace a sample that fails by another one
    lazy: bool  # make images that it opens lazy


def _nothing(sample: int) -> None:
    pass


def _as_it_is(sample: Any, row: int) -> Any:
    return sample


class Fetcher:
    """Fetches samples by index, or the next ones of an iterable dataset, as torch does.

    `start` is the position at which an epoch is resumed: states of the dataset and its iterator ("state"), how many
    batches came before ("batches"), and how many of those the states include ("at"). "ended": the dataset had no more
    samples; "finished": neither had those of the other workers, and this is the next epoch; "avoid": samples that
    killed a worker.
    """

    def __init__(
        self,
        job: Job,
        dataset: Any,
        collate: Callable[..., Any],
        start: dict[str, Any] | None = None,
        progress: Callable[[int], None] = _nothing,
    ) -> None:
        self._job = job
        self._dataset = dataset
        self._collate = collate
        self._progress = progress
        self._avoid: set[Any] = set()
        self.bad: list[dict[str, Any]] = []  # not reported yet
        start = start or {}
        self.ended = start.get("ended", False)
        states = start.get("state", {})
        self._avoid.update(start.get("avoid", ()))
        if "dataset" in states and has_state(dataset):
            dataset.load_state_dict(states["dataset"])
        self._iterator = iter(dataset) if job.iterable else None
        if "iterator" in states and has_state(self._iterator):
            self._iterator.load_state_dict(states["iterator"])  # type: ignore[union-attr]
        self.has_state = has_state(dataset) or has_state(self._iterator)
        if start.get("finished"):
            self._iterator = iter(dataset) if job.iterable else None
        elif self._iterator is not None:
            self._pass_over(start.get("batches", 0) - start.get("at", 0))

    def _pass_over(self, batches: int) -> None:
        try:
            for _ in range(batches):
                self._next_samples([None] * (self._job.batch_size or 1))
        except StopIteration:
            self.ended = True

    def state(self) -> dict[str, Any]:
        """Return the states of the dataset and its iterator, if they have any."""
        out = {}
        if has_state(self._iterator):
            out["iterator"] = self._iterator.state_dict()  # type: ignore[union-attr]
        if has_state(self._dataset) and self._dataset is not self._iterator:
            out["dataset"] = self._dataset.state_dict()
        return out

    def fetch(self, indices: Any, key: Any, *room: Any) -> Any:
        """Return a batch. `key` is None, or (seed, epoch, occurrences) if each sample is seeded separately."""
        with lazy.fetching() if self._job.lazy else contextlib.nullcontext():
            return self._fetch(indices, key, *room)

    def _fetch(self, indices: Any, key: Any, *room: Any) -> Any:
        put = _as_it_is
        if room and self._job.batched and self._job.collate_fn is default_collate and stacks_as_torch():
            room[0].rows = Rows(room[0], len(indices))
            put = room[0].rows.put
        with filling_rows() if put is not _as_it_is and self._may_be_late() else contextlib.nullcontext():
            samples = self._samples(indices, key, put)
        if key is not None:
            first = indices[0] if isinstance(indices, (list, tuple)) else indices
            seed_sample(key[0], key[1], "collate", plain_index(first))
        try:
            return self._collated(samples, *room)
        finally:
            if room:
                room[0].rows = None  # a reference cycle would keep the batch's memory mapped until a collection

    def _may_be_late(self) -> bool:
        """Return whether samples may be made when they are put into their rows. It is no failure of a sample then, and
        the doctor would take it for collating."""
        one_by_one = not gets_at_once(self._job, self._dataset)
        return one_by_one and not self._job.skip_errors and "_stoker_watch" not in sys.modules

    def _collated(self, samples: Any, *room: Any) -> Any:
        """Return a batch; of a dataset of stoker.datasets with the structure that the engine gives it."""
        own = isinstance(self._dataset, EngineDataset) and type(self._dataset).__getitem__.__module__.startswith("stoker.")
        if not own or not self._job.batched or self._job.collate_fn is not default_collate or not samples:
            return self._collate(samples, *room)
        kinds = self._dataset._kinds()
        if any(type(sample) is not tuple or len(sample) != len(kinds) for sample in samples):
            return self._collate(samples, *room)  # of sounds, for example
        return collated(kinds, samples, lambda column: self._collate(column, *room))

    def _samples(self, indices: Any, key: Any, put: Callable[[Any, int], Any]) -> Any:
        if self._iterator is not None:
            return self._next_samples(indices, put)
        if not self._job.batched:
            return self._sample(indices, 0, key)
        if gets_at_once(self._job, self._dataset):
            if key is not None:
                seed_sample(key[0], key[1], plain_index(indices[0]), 0 if key[2] is None else key[2][0])
            return self._dataset.__getitems__(indices)
        return [put(self._sample(index, n, key), n) for n, index in enumerate(indices)]

    def _sample(self, index: Any, number: int, key: Any) -> Any:
        self._progress(number)  # raises an exception if the loader has been closed
        if key is not None:
            again = 0 if key[2] is None else key[2][number] if self._job.batched else key[2]
            seed_sample(key[0], key[1], plain_index(index), again)
        if not self._job.skip_errors:
            return self._dataset[index]
        return self._sample_or_substitute(index, number)

    def _sample_or_substitute(self, index: Any, place: int) -> Any:
        """Return the sample, or the next one that does not fail."""
        plain = plain_index(index)
        failure: Exception = RuntimeError(f"sample {plain} and the {_SUBSTITUTES - 1} after it kill their worker")
        for number in range(_SUBSTITUTES):
            other = plain if not number else (plain + number) % len(self._dataset)
            if other in self._avoid:
                continue
            try:
                return self._dataset[other if number else index]
            except Exception as error:
                failure = error
                self._progress(place)
                reason = "".join(traceback.format_exception_only(error)).strip()
                self.bad.append({"sample": other, "status": type(error).__name__, "reason": reason})
                if not isinstance(plain, int):
                    break
        raise failure

    def _next_samples(self, indices: Any, put: Callable[[Any, int], Any] = _as_it_is) -> Any:
        assert self._iterator is not None
        if self.ended:
            raise StopIteration
        if not self._job.batched:
            return next(self._iterator)
        samples: list[Any] = []
        for _ in indices:
            self._progress(len(samples))
            try:
                samples.append(put(next(self._iterator), len(samples)))
            except StopIteration:
                self.ended = True
                break
        if not samples or self._job.drop_last and len(samples) < len(indices):
            raise StopIteration
        return samples


def gets_at_once(job: Job, dataset: Any) -> bool:
    """Return whether __getitems__ fetches whole batches. Only if samples are fetched one by one can a sample that fails
    be replaced, and one that kills its worker be named. torch's Subset has a __getitems__ that does just that for a
    dataset without one."""
    if job.iterable or not job.batched or job.skip_errors:
        return False
    while type(dataset) is Subset and "__getitems__" not in vars(dataset):
        dataset = dataset.dataset
    return bool(getattr(dataset, "__getitems__", None))


def plain_index(index: Any) -> Any:
    """Return an index in a form whose repr does not depend on its type."""
    try:
        return int(index.__index__())
    except (AttributeError, TypeError):
        return repr(index)
