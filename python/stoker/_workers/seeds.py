# SPDX-License-Identifier: Apache-2.0
"""Seeds of Python's, NumPy's and torch's generators, per worker as in torch, or per sample."""

from __future__ import annotations

import contextlib
import hashlib
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import BatchSampler, DistributedSampler, RandomSampler, SequentialSampler
from torch.utils.data._utils import worker as _torch_worker

from .._order.ranks import InOrder, Keyed


def seed_worker(base_seed: int, worker: int) -> int:
    """Seed a worker process as torch does."""
    seed = base_seed + worker
    random.seed(seed)
    torch.manual_seed(seed)
    np.random.seed(_numpys_words(base_seed, worker))
    return seed


def _numpys_words(base_seed: int, worker: int) -> Any:
    words = getattr(_torch_worker, "_generate_state", None)
    if words is not None:
        return words(base_seed, worker)
    return np.random.SeedSequence(base_seed, spawn_key=(worker,)).generate_state(4)


def sample_seed(loader: Any) -> int | None:
    """Return the seed of a loader with seed_by="sample"; None for seed_by="worker"."""
    if loader.seed_by != "sample":
        return None
    if loader.seed is not None:
        return int(loader.seed)
    return int((loader.generator or torch).initial_seed())


def seed_sample(*key: Any) -> None:
    """Seed the generators for one sample, from a key that identifies it."""
    words = np.frombuffer(hashlib.blake2b(repr(key).encode(), digest_size=16).digest(), np.uint32)
    number = int.from_bytes(words[:2].tobytes(), "little")
    random.seed(number)
    np.random.seed(words)
    torch.default_generator.manual_seed(number)


@contextlib.contextmanager
def generators_kept() -> Iterator[None]:
    """Restore the generators afterwards, for seeding samples in the caller's process."""
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        torch.set_rng_state(before[0])
        random.setstate(before[1])
        np.random.set_state(before[2])


class Occurrences:
    """Counts how often a sampler gave each sample before, so that repetitions of a sample get different seeds. For a
    sampler that saves its own position (`kept`) this is unknown after a resume; the position in the epoch is used
    instead."""

    def __init__(self, sampler: Any, kept: bool) -> None:
        self._kept = kept
        inner = sampler.sampler if type(sampler) is BatchSampler else sampler
        kind = type(inner)
        self._never = kind in (SequentialSampler, InOrder, Keyed) or kind is RandomSampler and not inner.replacement
        # It repeats samples only at the end of an epoch, on another rank.
        self._never = self._never or kind is DistributedSampler
        self._count: Counter[Any] = Counter()

    def count(self, index: Any, batch: int) -> Any:
        """Return the counts for a batch of indices, or one index; None if no sample can be repeated."""
        if self._never:
            return None
        if self._kept:
            return [f"{batch}.{n}" for n in range(len(index))] if isinstance(index, (list, tuple)) else batch
        if not isinstance(index, (list, tuple)):
            return self._one(index)
        return [self._one(each) for each in index]

    def _one(self, index: Any) -> int:
        key = index if isinstance(index, (int, str)) else repr(index)
        self._count[key] += 1
        return self._count[key] - 1
