# SPDX-License-Identifier: Apache-2.0
"""The order of an epoch where Python has a say in it: samplers, and the draws that torch would make."""

from __future__ import annotations

import operator
import sys
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._convert import torch_if_installed
from .state import Place

if TYPE_CHECKING:
    from .dataloader import DataLoader


class Given(NamedTuple):
    """What the engine is told about an epoch."""

    indices: np.ndarray | None  # None: the engine knows the order itself
    sizes: np.ndarray | None  # of the batches, where they differ
    largest: int  # batch size
    origin: dict[str, Any] | None  # how to get the same again, for the saved state


def engine_kind(loader: DataLoader) -> str:
    """The engine's name for the loader's order."""
    if loader.sampler is not None or loader.batch_sampler is not None or _as_random_sampler(loader):
        return "given"
    if not loader.shuffle:
        return "sequential"
    return "torch" if loader.order == "torch" else "shuffle"


def _as_random_sampler(loader: DataLoader) -> bool:
    """Whether torch's generator draws the order, as in torch's RandomSampler."""
    return (
        loader.shuffle
        and loader.order == "torch"
        and loader.world_size == 1
        and (loader.generator is not None or loader.seed is None and torch_if_installed() is not None)
    )


def draw(loader: DataLoader, pending: Place | None) -> Given:
    """The order of the next epoch; with `pending`, of the one that was left."""
    size = loader.batch_size or 1
    if _as_random_sampler(loader):
        indices, origin = _random_sampler(loader, pending)
        return Given(indices, None, size, origin)
    sampled = loader.sampler is not None or loader.batch_sampler is not None
    if (sampled or loader.order == "torch") and "torch" in sys.modules:
        _base_seed(loader.generator)
    if not sampled:
        return Given(None, None, size, None)
    sizes = None
    if loader.sampler is not None:
        indices = np.fromiter(map(operator.index, loader.sampler), np.int64)
    else:
        batches = [
            np.fromiter(map(operator.index, batch), np.int64) for batch in loader.batch_sampler or ()
        ]
        sizes = np.array([len(batch) for batch in batches], np.uint32)
        if not sizes.all():
            raise ValueError("batch_sampler gave an empty batch")
        indices = np.concatenate([np.zeros(0, np.int64), *batches])
        size = int(sizes.max(initial=1))
    indices = _check(indices, len(loader._compiled.handle))
    return Given(indices, sizes, size, _check_origin(_digest(indices, sizes), pending))


def _check(indices: np.ndarray, count: int) -> np.ndarray:
    indices = np.where(indices < 0, indices + count, indices)
    wrong = (indices < 0) | (indices >= count)
    if wrong.any():
        raise IndexError(f"the sampler gave sample {indices[wrong][0]}, and there are {count}")
    return indices


def _digest(indices: np.ndarray, sizes: np.ndarray | None) -> dict[str, Any]:
    sum_ = zlib.crc32(indices.tobytes(), 0 if sizes is None else zlib.crc32(sizes.tobytes()))
    return {"samples": len(indices), "crc": sum_}


def _check_origin(origin: dict[str, Any], pending: Place | None) -> dict[str, Any]:
    if pending is not None and pending.cursor is not None and pending.origin != origin:
        raise ValueError(
            "the sampler gives another order than when the state was saved, so the epoch cannot "
            "be taken up. Give it the same seed (or generator state) and epoch as then"
        )
    return origin


# ---- what torch draws, in the order in which it does ----


def _base_seed(generator: Any) -> None:
    """The seed for its workers that each iterator of torch's draws before anything else."""
    import torch

    torch.empty((), dtype=torch.int64).random_(generator=generator)


def _random_sampler(loader: DataLoader, pending: Place | None) -> tuple[np.ndarray, dict[str, Any]]:
    """torch's RandomSampler: a permutation from a seed drawn from torch's own generator, or from the one
    given, which then also makes a second permutation that nobody looks at."""
    import torch

    count = len(loader._compiled.handle)
    origin = pending.origin if pending is not None else None
    if loader.generator is None:
        if origin is None:
            _base_seed(None)
            origin = {"seed": int(torch.empty((), dtype=torch.int64).random_().item())}
        generator = torch.Generator()
        generator.manual_seed(origin["seed"])
        return torch.randperm(count, generator=generator).numpy(), origin
    generator = loader.generator
    if origin is None:
        _base_seed(generator)
        origin = {"generator": generator.get_state().numpy().tobytes()}
    else:
        state = np.frombuffer(origin["generator"], np.uint8).copy()
        generator.set_state(torch.from_numpy(state))
    indices = torch.randperm(count, generator=generator).numpy()
    torch.randperm(count, generator=generator)
    return indices, origin
