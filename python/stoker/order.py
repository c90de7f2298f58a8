# SPDX-License-Identifier: Apache-2.0
"""The order of an epoch, as far as Python determines it: samplers, and the draws that torch would make."""

from __future__ import annotations

import itertools
import operator
import sys
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ._convert import torch_if_installed
from .state import Place

if TYPE_CHECKING:
    from ._native import Native


_PART = 1 << 18  # samples drawn from a sampler at a time


class Given(NamedTuple):
    """The order of an epoch, or of a part of it, for the engine."""

    indices: np.ndarray | None  # None: the engine computes the order
    sizes: np.ndarray | None  # of the batches, if they differ
    largest: int  # the largest batch size
    origin: dict[str, Any] | None  # how to draw the same again, for the saved state
    more: bool = False  # the sampler has more than this
    repeated: np.ndarray | None = None  # whether each sample came before; None: the engine determines it
    first_position: int = 0  # samples of the epoch before these
    first_batch: int = 0  # batches of the epoch before these

    def start_arguments(self) -> dict[str, Any]:
        return {
            "indices": self.indices,
            "batch_sizes": self.sizes,
            "repeated": self.repeated,
            "first_position": self.first_position,
            "first_batch": self.first_batch,
        }


def engine_kind(loader: Native) -> str:
    """Return the engine's name for the loader's order."""
    if loader.sampler is not None or loader.batch_sampler is not None or _as_random_sampler(loader):
        return "given"
    if not loader.shuffle:
        return "sequential"
    return "torch" if loader.order == "torch" else "shuffle"


def _as_random_sampler(loader: Native) -> bool:
    """Return whether a torch generator draws the order, as in torch's RandomSampler."""
    return (
        loader.shuffle
        and loader.order == "torch"
        and loader.world_size == 1
        and (loader.generator is not None or loader.seed is None and torch_if_installed() is not None)
    )


class Draws:
    """Draws the order of one epoch in Python: a permutation at once, and samples of a sampler only as far as needed,
    since samplers may be infinite."""

    def __init__(self, loader: Native) -> None:
        self._loader = loader
        self._parts: Iterator[Given] | None = None
        self.epoch = 0
        if _draws_a_base_seed(loader):
            _base_seed(loader.base_generator)

    @property
    def begun(self) -> bool:
        return self._parts is not None

    def next(self, pending: Place | None) -> Given:
        """Return the first part of the epoch, or the next. With `pending`, begin with the part where it was left."""
        if self._parts is None:
            self._parts = _parts_of(self._loader, pending)
        return next(self._parts)


def _parts_of(loader: Native, pending: Place | None) -> Iterator[Given]:
    """Yield the parts of an epoch. This is not a method of Draws: a generator with a reference to its holder would only
    be freed by the garbage collector, and the engine, with its memory on a GPU, along with it."""
    size = loader.batch_size or 1
    if _as_random_sampler(loader):
        indices, origin = _random_sampler(loader, pending)
        yield Given(indices, None, size, origin)
    elif loader.sampler is not None:
        yield from _resumed(_sampled(loader, size), pending)
    elif loader.batch_sampler is not None:
        yield from _resumed(_batched(loader), pending)
    else:
        yield Given(None, None, size, None)


def _resumed(parts: Iterator[Given], pending: Place | None) -> Iterator[Given]:
    """Yield the parts from the one in which the epoch was left."""
    origin = pending.origin if pending is not None and pending.cursor is not None else None
    if origin is None:
        yield from parts
        return
    wanted = origin.get("part", 0)
    for number, part in enumerate(parts):
        if number == wanted and part.origin != origin:
            break
        if number >= wanted:
            yield part
            wanted = -1
    if wanted >= 0:
        raise ValueError(
            "the sampler gives another order than when the state was saved, so the epoch cannot be resumed. Give it the "
            "same seed (or generator state) and epoch as when the state was saved"
        )


class _Parts:
    """Makes parts of an epoch, and remembers what came before each: repeated samples get new random draws."""

    def __init__(self, loader: Native) -> None:
        self._count = len(loader.compiled.handle)
        self._seen: np.ndarray | None = None  # a bit for each sample
        self._rank = _unshared_rank(loader)
        self._number = self._position = self._batch = 0

    def part(self, indices: np.ndarray, sizes: np.ndarray | None, size: int, more: bool) -> Given:
        indices = _check(indices, self._count)
        given = Given(
            indices,
            sizes,
            size,
            _digest(indices, sizes, self._number),
            more,
            self._repeated(indices, more),
            self._position + (self._rank << 48),
            self._batch,
        )
        self._number += 1
        self._position += len(indices)
        self._batch += -(-len(indices) // size) if sizes is None else len(sizes)
        return given

    def _repeated(self, indices: np.ndarray, more: bool) -> np.ndarray | None:
        if self._rank:
            return np.ones(len(indices), np.uint8)
        if self._seen is None:
            if not more:
                return None
            self._seen = np.zeros(self._count // 8 + 1, np.uint8)
        byte, bit = indices >> 3, (1 << (indices & 7)).astype(np.uint8)
        repeated = (self._seen[byte] & bit) != 0
        first = np.unique(indices, return_index=True)[1]
        again = np.ones(len(indices), bool)
        again[first] = False
        np.bitwise_or.at(self._seen, byte, bit)
        return (repeated | again).view(np.uint8)


def _unshared_rank(loader: Native) -> int:
    """Return this process's rank if a sampler may give several ranks the same samples (as repeated augmentation does),
    which must be augmented differently; 0 if each sample goes to one rank."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return 0
    inner = getattr(loader.batch_sampler, "sampler", loader.sampler)
    if type(inner) is torch.utils.data.DistributedSampler:
        return 0
    return int(torch.distributed.get_rank())


def _sampled(loader: Native, size: int) -> Iterator[Given]:
    """Yield what a sampler gives, in parts of whole batches."""
    samples = map(operator.index, loader.sampler)
    part_size = max(_PART // size, 1) * size
    part = np.fromiter(itertools.islice(samples, part_size), np.int64)
    parts = _Parts(loader)
    while True:
        following = np.fromiter(itertools.islice(samples, part_size), np.int64)
        yield parts.part(part, None, size, len(following) > 0)
        if not len(following):
            return
        part = following


def _batched(loader: Native) -> Iterator[Given]:
    """Yield what a batch sampler gives, in parts."""
    batches = iter(loader.batch_sampler)
    part = _some_batches(batches)
    parts = _Parts(loader)
    while True:
        following = _some_batches(batches)
        sizes = np.array([len(batch) for batch in part], np.uint32)
        if not sizes.all():
            raise ValueError("batch_sampler gave an empty batch: each must have at least one sample")
        indices = np.concatenate([np.zeros(0, np.int64), *part])
        yield parts.part(indices, sizes, int(sizes.max(initial=1)), bool(following))
        if not following:
            return
        part = following


def _some_batches(batches: Iterator[Any]) -> list[np.ndarray]:
    out: list[np.ndarray] = []
    count = 0
    for batch in batches:
        out.append(np.fromiter(map(operator.index, batch), np.int64))
        count += len(out[-1])
        if count >= _PART:
            break
    return out


def _check(indices: np.ndarray, count: int) -> np.ndarray:
    indices = np.where(indices < 0, indices + count, indices)
    wrong = (indices < 0) | (indices >= count)
    if wrong.any():
        raise IndexError(f"the sampler gave sample {indices[wrong][0]}, but there are only {count} samples")
    return indices


def _digest(indices: np.ndarray, sizes: np.ndarray | None, part: int) -> dict[str, Any]:
    sum_ = zlib.crc32(indices.tobytes(), 0 if sizes is None else zlib.crc32(sizes.tobytes()))
    return {"samples": len(indices), "crc": sum_, **({"part": part} if part else {})}


# ---- what torch draws, in the order in which it does ----


def _draws_a_base_seed(loader: Native) -> bool:
    if _as_random_sampler(loader):
        return True
    sampled = loader.sampler is not None or loader.batch_sampler is not None
    return (sampled or loader.order == "torch") and "torch" in sys.modules


def _base_seed(generator: Any) -> None:
    """Draw the base seed of workers, which each iterator of torch draws first."""
    import torch

    torch.empty((), dtype=torch.int64).random_(generator=generator)


def _random_sampler(loader: Native, pending: Place | None) -> tuple[np.ndarray, dict[str, Any]]:
    """Draw as torch's RandomSampler does: a permutation from a seed drawn from torch's default generator, or from the
    given generator, which also draws a second permutation that is not used."""
    import torch

    count = len(loader.compiled.handle)
    origin = pending.origin if pending is not None else None
    if loader.generator is None:
        if origin is None:
            origin = {"seed": int(torch.empty((), dtype=torch.int64).random_().item())}
        generator = torch.Generator()
        generator.manual_seed(origin["seed"])
        return torch.randperm(count, generator=generator).numpy(), origin
    generator = loader.generator
    if origin is None:
        origin = {"generator": generator.get_state().numpy().tobytes()}
    else:
        state = np.frombuffer(origin["generator"], np.uint8).copy()
        generator.set_state(torch.from_numpy(state))
    indices = torch.randperm(count, generator=generator).numpy()
    torch.randperm(count, generator=generator)
    return indices, origin
