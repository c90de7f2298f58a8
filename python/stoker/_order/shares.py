# SPDX-License-Identifier: Apache-2.0
"""What a position that one rank has saved means on another rank, and for another number of ranks.

All ranks have made the same number of batches when a state is saved, so any rank's state tells where all of them are.
torch's DistributedSampler deals one order out to the ranks: where it stands in that order can be continued by any number
of ranks. Of other samplers that have a rank only the orders of all ranks of the same number are known.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from numbers import Integral
from typing import Any, NamedTuple

import torch
from torch.utils.data import BatchSampler, DistributedSampler

from .._base.tables import counted
from .ranks import Shared, process_group, samplers_in

DEALERS = (DistributedSampler, Shared)
_NAMES = (("rank", "num_replicas"), ("process_index", "num_processes"))  # torch's and Accelerate's


class Ranked(NamedTuple):
    """The rank whose samples a sampler gives."""

    rank: int
    world: int
    holder: Any = None  # the sampler that has the rank as an attribute; None: it is the process's
    name: str = ""


def innermost(sampler: Any) -> Any:
    return sampler.sampler if type(sampler) is BatchSampler else sampler


def rank_of(sampler: Any) -> Ranked | None:
    """Return the rank of a sampler, or of this process; None if there is only one process."""
    for each in samplers_in(sampler):
        for rank, world in _NAMES:
            found = getattr(each, rank, None), getattr(each, world, None)
            if all(isinstance(number, Integral) for number in found):
                return Ranked(*map(int, found), each, rank)  # type: ignore[arg-type]
    group = process_group() or _by_environment()
    return None if group is None else Ranked(*group)


def _by_environment() -> tuple[int, int] | None:
    try:
        rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except (KeyError, ValueError):
        return None
    return (rank, world) if world > 1 else None


@contextlib.contextmanager
def as_rank(ranked: Ranked | None, rank: int) -> Iterator[None]:
    """Let a sampler give what another rank gets."""
    if ranked is None or ranked.holder is None or ranked.rank == rank:
        yield
        return
    with contextlib.suppress(AttributeError):  # a property: the order is then found to be another one
        setattr(ranked.holder, ranked.name, rank)
    try:
        yield
    finally:
        with contextlib.suppress(AttributeError):
            setattr(ranked.holder, ranked.name, ranked.rank)


# ---- one order that is dealt out ----


class Dealt(NamedTuple):
    """A part of an epoch that a number of ranks share: the samples from `before` on, dealt out in turn."""

    world: int
    batch_size: int
    before: int  # samples of the order that were used up before this part, by all ranks
    since: int  # batches that each rank had made by then

    def used(self, batches: int, samples: int, whole: bool) -> int:
        """Return how many samples of the order are used up when each rank has made this many batches in all."""
        each = self.each(samples, whole)
        return self.before + min((batches - self.since) * self.batch_size, each) * self.world

    def each(self, samples: int, whole: bool) -> int:
        """Return how many samples each rank gets."""
        rest = max(samples - self.before, 0)
        return rest // self.world if whole else -(-rest // self.world)


def order_of(dealer: Any) -> list[int]:
    """Return the order that a DistributedSampler deals out in this epoch."""
    whole = DistributedSampler(dealer.dataset, 1, 0, shuffle=dealer.shuffle, seed=dealer.seed)
    whole.set_epoch(dealer.epoch)
    return list(whole)


def share_of(dealer: Any, order: list[int], dealt: Dealt, rank: int) -> list[int]:
    """Return the samples of one rank. If the last ones do not suffice for all ranks, those at the beginning are
    repeated, as a DistributedSampler does."""
    each = dealt.each(len(order), dealer.drop_last)
    return [order[(dealt.before + rank + n * dealt.world) % len(order)] for n in range(each)]


def in_batches(sampler: Any, samples: list[int]) -> Iterator[Any]:
    """Yield samples as the loader's sampler does: one by one, or in batches."""
    if type(sampler) is not BatchSampler:
        return iter(samples)
    return iter(BatchSampler(samples, sampler.batch_size, sampler.drop_last))  # type: ignore[arg-type]


def seeds_of(generators: list[torch.Generator]) -> dict[str, Any]:
    """Return what shows whether two ranks draw the same random numbers."""
    return {"torch": torch.initial_seed(), "generators": [generator.initial_seed() for generator in generators]}


def refuse_other_epoch(then: dict[str, Any], dealer: Any) -> None:
    if (then["epoch"], then["seed"]) != (dealer.epoch, dealer.seed):
        raise ValueError(
            f"the state was saved in epoch {then['epoch']} of a DistributedSampler with seed {then['seed']}, but now it "
            f"has epoch {dealer.epoch} and seed {dealer.seed}: call its set_epoch first, and use the same seed"
        )
    if then["of"] != len(dealer.dataset):
        raise ValueError(
            f"the state was saved when the dataset had {counted(then['of'], 'sample')}, but now it has "
            f"{len(dealer.dataset):,}: an epoch can be resumed only with the same data"
        )


def refuse_other_world(then: dict[str, Any], ranked: Ranked | None) -> None:
    """Raise an error if the ranks have shared an epoch in a way that they cannot continue."""
    world, holder = then.get("world", 1), None if ranked is None else ranked.holder
    then_ranks = counted(world, "rank")
    if "before" in then and world > 1:
        raise ValueError(
            f"the state was saved by {then_ranks} that shared the samples by a DistributedSampler (or shard=True), and "
            f"this loader has none: use it again, with any number of ranks"
        )
    if holder is not None and ranked is not None and then.get("world", ranked.world) != ranked.world:
        raise ValueError(
            f"the state was saved by {then_ranks} in the middle of an epoch, and now there are {ranked.world}, but what a "
            f"{type(holder).__name__} gives to another number of ranks is not known. Resume with {then_ranks}, save "
            "at the end of an epoch, or use shard=True or torch's DistributedSampler"
        )


def other_order(then: dict[str, Any], ranked: Ranked | None) -> ValueError:
    """Return the error for a sampler that does not give what it gave."""
    if ranked is not None and then.get("rank", ranked.rank) != ranked.rank:
        return ValueError(
            f"the state was saved on rank {then['rank']}, and does not tell where rank {ranked.rank} is: the sampler gives "
            "each rank an order of its own, or another one than when the state was saved. Save a state on each rank and "
            "load it there; or use shard=True or torch's DistributedSampler (with the same seed and epoch), whose state "
            "every rank can load"
        )
    return ValueError(
        "the sampler gives another order than when the state was saved, so the epoch cannot be resumed. Give it "
        "the same seed (or generator state) and epoch as when the state was saved"
    )


def count_batches(iterator: Iterator[Any], batches: int) -> Iterator[Any]:
    """Yield the next batches; islice() would fetch one more of some iterators."""
    for _ in range(batches):
        yield from itertools.islice(iterator, 1)
