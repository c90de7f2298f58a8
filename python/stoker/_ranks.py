# SPDX-License-Identifier: Apache-2.0
"""Ranks: which share of the samples this process gets, and samplers that can be told the epoch."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from ._convert import torch_if_installed

_DEPTH = 5  # of samplers inside samplers
_warned = False


class Share(NamedTuple):
    """What this process gets."""

    rank: int
    world_size: int
    whole: bool  # drop the last samples where they are no multiple of world_size; otherwise repeat some


def find_share(
    shard: bool,
    rank: int | None,
    world_size: int | None,
    sampler: Any,
    batch_sampler: Any,
    drop_last: bool,
) -> Share | None:
    """The share that the arguments of a loader ask for; None: everything."""
    if (rank is None) != (world_size is None):
        raise ValueError("rank and world_size belong together")
    if shard is not True and shard is not False:
        raise TypeError(f"shard={shard!r} is neither True nor False")
    if not shard and rank is None:
        return None
    asked = "shard=True is" if shard else "rank and world_size are"
    if shard and rank is not None:
        raise ValueError(
            "shard=True is mutually exclusive with rank and world_size: it takes them from torch.distributed or "
            "from torchrun's environment"
        )
    if sampler is not None or batch_sampler is not None:
        # Frameworks that make a loader anew hand its own sampler back, which knows the share.
        if any(getattr(s, "shares_for_stoker", False) for s in samplers_in(sampler, batch_sampler)):
            return None
        raise ValueError(
            f"{asked} mutually exclusive with sampler and batch_sampler, which decide themselves what each rank "
            "gets"
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
            "shard=True: torch.distributed is not initialised, and the environment has no RANK and WORLD_SIZE. Start "
            "the script by torchrun, call torch.distributed.init_process_group() before the loader is made, or give "
            "rank= and world_size=; a single process wants no shard="
        ) from None
    except ValueError as error:
        raise ValueError(f"shard=True: RANK or WORLD_SIZE in the environment is no number: {error}") from None
    if not 0 <= rank < world_size:
        raise ValueError(f"shard=True: the environment has RANK={rank} and WORLD_SIZE={world_size}")
    return rank, world_size


def process_group() -> tuple[int, int] | None:
    """Rank and world size, where torch.distributed is initialised."""
    distributed: Any = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return None
    return distributed.get_rank(), distributed.get_world_size()


def warn_of_shuffling_alone() -> None:
    """Says once that ranks which shuffle without a sampler get everything, each for itself."""
    global _warned
    group = None if _warned else process_group()
    if group is None or group[1] < 2:
        return
    _warned = True
    warnings.warn(
        f"shuffle=True without a sampler in a process group of {group[1]} ranks: every rank gets all samples, as with "
        "torch's DataLoader. To share them out, give DataLoader(..., shard=True), or a "
        "torch.utils.data.distributed.DistributedSampler as sampler=",
        stacklevel=3,
    )


# ---- samplers ----


def samplers_in(*samplers: Any) -> Iterator[Any]:
    """These samplers, and those inside of them: BatchSampler.sampler, and what frameworks wrap."""
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


def epoch_told(*samplers: Any) -> int | None:
    """The epoch that a sampler was told by set_epoch; None if there is no such sampler, or no epoch."""
    for sampler in samplers_in(*samplers):
        epoch = getattr(sampler, "epoch", None)
        if isinstance(epoch, int) and epoch >= 0 and callable(getattr(sampler, "set_epoch", None)):
            return epoch
    return None


def tell_epoch(epoch: int, *samplers: Any) -> None:
    for sampler in samplers_in(*samplers):
        if callable(getattr(sampler, "set_epoch", None)):
            sampler.set_epoch(epoch)


if torch_if_installed() is not None:
    from torch.utils.data import RandomSampler, SequentialSampler
    from torch.utils.data.distributed import DistributedSampler

    class Shuffled(RandomSampler):
        """torch's RandomSampler, which the engine asks for the epoch."""

        epoch: int | None = None  # None: nobody said

        def set_epoch(self, epoch: int) -> None:
            self.epoch = int(epoch)

    class InOrder(SequentialSampler):
        """torch's SequentialSampler, which the engine asks for the epoch."""

        epoch: int | None = None

        def set_epoch(self, epoch: int) -> None:
            self.epoch = int(epoch)

    class Shared(DistributedSampler):
        """torch's DistributedSampler, for a loader that counts the epochs."""

        shares_for_stoker = True


def engine_sampler(dataset: Any, shuffle: bool | None, generator: Any) -> Any:
    """What loader.sampler is where the engine draws the order: frameworks look at it, and set its epoch."""
    if torch_if_installed() is None:
        return None
    return Shuffled(dataset, generator=generator) if shuffle else InOrder(dataset)


def share_sampler(dataset: Any, share: Share, shuffle: bool | None, seed: int | None) -> Any:
    """A DistributedSampler for one share."""
    if torch_if_installed() is None:
        return None
    if isinstance(dataset, sys.modules["torch"].utils.data.IterableDataset):
        raise ValueError(
            "shard=True, rank and world_size are for data sets with indices. An IterableDataset decides itself what "
            "it gives: take every world_size-th sample in its __iter__, counted from the rank (and from "
            "torch.utils.data.get_worker_info() where there are workers)"
        )
    return Shared(
        dataset, share.world_size, share.rank, shuffle=bool(shuffle), seed=seed or 0, drop_last=share.whole
    )
