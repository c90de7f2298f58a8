# SPDX-License-Identifier: Apache-2.0
"""Ranks: which share of the samples this process gets, and samplers with an epoch."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from .._ext import order_indices
from .._base.tensors import to_numpy, torch_if_installed
from .._base.warn import warn_user

_DEPTH = 5  # of samplers inside samplers
_AT_ONCE = 1 << 16  # samples of an order that are Python's numbers at a time
_warned = False


class Share(NamedTuple):
    """The share of this process."""

    rank: int
    world_size: int
    whole: bool  # drop the last samples if world_size does not divide their number; otherwise repeat some


def find_share(
    shard: bool,
    rank: int | None,
    world_size: int | None,
    sampler: Any,
    batch_sampler: Any,
    drop_last: bool,
) -> Share | None:
    """Return the share that the arguments of a loader request; None: all samples."""
    if (rank is None) != (world_size is None):
        raise ValueError(f"rank={rank} and world_size={world_size}: give both or neither")
    if shard is not True and shard is not False:
        raise TypeError(f"shard={shard!r} is neither True nor False")
    if not shard and rank is None:
        return None
    option = "shard=True is" if shard else "rank and world_size are"
    if shard and rank is not None:
        raise ValueError(
            "shard=True is mutually exclusive with rank and world_size: it takes them from torch.distributed or "
            "from torchrun's environment"
        )
    if sampler is not None or batch_sampler is not None:
        # Frameworks that rebuild a loader pass its own sampler back, which knows the share.
        if any(getattr(s, "shares_for_stoker", False) for s in samplers_in(sampler, batch_sampler)):
            return None
        raise ValueError(
            f"{option} mutually exclusive with sampler and batch_sampler, which decide what each rank gets"
        )
    if shard:
        return Share(*_this_rank(), drop_last)
    assert rank is not None and world_size is not None
    if not 0 <= rank < world_size:
        raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {world_size - 1}]")
    return Share(rank, world_size, False)


def _this_rank() -> tuple[int, int]:
    found = process_group()
    if found is not None:
        return found
    try:
        rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    except KeyError:
        raise ValueError(
            "shard=True: torch.distributed is not initialized, and the environment has no RANK and WORLD_SIZE. Start "
            "the script with torchrun, call torch.distributed.init_process_group() before creating the loader, or give "
            "rank= and world_size=. A single process does not need shard="
        ) from None
    except ValueError as error:
        raise ValueError(f"shard=True: RANK or WORLD_SIZE in the environment is not a number: {error}") from None
    if not 0 <= rank < world_size:
        raise ValueError(
            f"shard=True: the environment has RANK={rank} and WORLD_SIZE={world_size}, but RANK must be less than that"
        )
    return rank, world_size


def process_group() -> tuple[int, int] | None:
    """Return rank and world size if torch.distributed is initialized, else None."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def warn_of_shuffling_alone() -> None:
    """Warn once if several ranks shuffle without a sampler: each of them gets all samples."""
    global _warned
    group = None if _warned else process_group()
    if group is None or group[1] < 2:
        return
    _warned = True
    warn_user(
        f"shuffle=True without a sampler in a process group of {group[1]} ranks: every rank gets all samples, as with "
        "torch's DataLoader. To divide them among the ranks, use DataLoader(..., shard=True), or pass a "
        "torch.utils.data.distributed.DistributedSampler as sampler="
    )


# ---- samplers ----


def samplers_in(*samplers: Any) -> Iterator[Any]:
    """Yield these samplers and those inside them: BatchSampler.sampler, and what frameworks wrap."""
    seen: set[int] = set()
    layer = list(samplers)
    for _ in range(_DEPTH):
        following = []
        for sampler in layer:
            if sampler is None or id(sampler) in seen:
                continue
            seen.add(id(sampler))
            yield sampler
            following += [getattr(sampler, name, None) for name in ("sampler", "batch_sampler")]
        layer = following


def sampler_epoch(*samplers: Any) -> int | None:
    """Return the epoch that was set with a sampler's set_epoch; None if there is no such sampler, or no epoch."""
    for sampler in samplers_in(*samplers):
        epoch = getattr(sampler, "epoch", None)
        if isinstance(epoch, int) and epoch >= 0 and callable(getattr(sampler, "set_epoch", None)):
            return epoch
    return None


def set_sampler_epoch(epoch: int, *samplers: Any) -> None:
    """Call set_epoch of every sampler that has it."""
    for sampler in samplers_in(*samplers):
        if callable(getattr(sampler, "set_epoch", None)):
            sampler.set_epoch(epoch)


if torch_if_installed() is not None:
    from torch.utils.data import RandomSampler, SequentialSampler
    from torch.utils.data.distributed import DistributedSampler

    class Shuffled(RandomSampler):
        """torch's RandomSampler, with an epoch for the engine to read."""

        epoch: int | None = None  # None: not set

        def set_epoch(self, epoch: int) -> None:
            self.epoch = int(epoch)

    class Keyed(Shuffled):
        """The engine's shuffle for a loader whose dataset runs in Python, which sets the epoch. Without an epoch it is
        torch's, for frameworks that put it into loaders of their own."""

        is_keyed = True

        def __init__(self, dataset: Any, generator: Any, seed: int | None) -> None:
            super().__init__(dataset, generator=generator)
            self._seed = seed

        def __iter__(self) -> Iterator[int]:
            if self.epoch is None:
                return super().__iter__()
            seed = self._seed
            if seed is None:
                seed = int((self.generator or sys.modules["torch"]).initial_seed()) % 2**64
            order = to_numpy(order_indices(len(self.data_source), kind="shuffle", seed=seed, epoch=self.epoch))
            parts = (order[at : at + _AT_ONCE].tolist() for at in range(0, len(order), _AT_ONCE))
            return itertools.chain.from_iterable(parts)

    class InOrder(SequentialSampler):
        """torch's SequentialSampler, with an epoch for the engine to read."""

        epoch: int | None = None

        def set_epoch(self, epoch: int) -> None:
            self.epoch = int(epoch)

    class Shared(DistributedSampler):
        """torch's DistributedSampler, for a loader that counts epochs."""

        shares_for_stoker = True


def engine_sampler(dataset: Any, shuffle: bool | None, generator: Any, order: str, seed: int | None) -> Any:
    """Return loader.sampler for a loader whose order the engine draws: frameworks inspect it and set its epoch."""
    if torch_if_installed() is None:
        return None
    if shuffle and order == "stoker":
        return Keyed(dataset, generator, seed)
    return Shuffled(dataset, generator=generator) if shuffle else InOrder(dataset)


def share_sampler(dataset: Any, share: Share, shuffle: bool | None, seed: int | None) -> Any:
    """Return a DistributedSampler for one share."""
    if torch_if_installed() is None:
        return None
    if isinstance(dataset, sys.modules["torch"].utils.data.IterableDataset):
        raise ValueError(
            "shard=True, rank and world_size are for datasets with indices. An IterableDataset decides itself what it "
            "yields: in its __iter__, yield every world_size-th sample beginning with the rank (and take "
            "torch.utils.data.get_worker_info() into account if there are workers)"
        )
    return Shared(
        dataset, share.world_size, share.rank, shuffle=bool(shuffle), seed=seed or 0, drop_last=share.whole
    )
