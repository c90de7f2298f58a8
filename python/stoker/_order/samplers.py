# SPDX-License-Identifier: Apache-2.0
"""The order of an epoch, as far as Python determines it: samplers, and the draws that torch would make."""

from __future__ import annotations

import itertools
import operator
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._base.tables import counted
from .._base.tensors import torch_if_installed
from .place import Place
from .ranks import sampler_epoch

_PART = 1 << 18  # samples of a sampler that the engine gets at a time
_AT_ONCE = 256  # and that are drawn at a time, or a whole batch
_RANK_SHIFT, _RANKS_MOST = 48, 1 << 15  # of a rank in positions, where ranks may have the same samples


class Ordered(Protocol):
    """A loader, as far as the order of its epochs depends on it."""

    batch_size: int | None
    shuffle: bool
    sampler: Any
    batch_sampler: Any
    order: str
    seed: int | None
    generator: Any
    base_generator: Any
    world_size: int
    ahead: int  # batches whose samples torch's loader draws before it delivers the first

    def samples(self) -> int:
        """Return how many samples the dataset has."""
        ...


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
    anew: bool = False  # a saved position does not apply: these come after it

    def start_arguments(self) -> dict[str, Any]:
        return {
            "indices": self.indices,
            "batch_sizes": self.sizes,
            "repeated": self.repeated,
            "first_position": self.first_position,
            "first_batch": self.first_batch,
        }


def engine_kind(loader: Ordered) -> str:
    """Return the engine's name for the loader's order."""
    if loader.sampler is not None or loader.batch_sampler is not None or _as_random_sampler(loader):
        return "given"
    if not loader.shuffle:
        return "sequential"
    return "torch" if loader.order == "torch" else "shuffle"


def _as_random_sampler(loader: Ordered) -> bool:
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

    def __init__(self, loader: Ordered, keeps_seed: bool = False) -> None:
        """Draw the base seed of workers, as an iterator of torch does when it is made, unless they keep theirs."""
        self._loader = loader
        self._parts: Iterator[Given] | None = None
        self._sampled: _Sampled | None = None
        self._unused: _UnusedPermutation | None = None
        self._early: Given | None = None
        self.begun = False
        self.epoch = 0
        if _draws_a_base_seed(loader) and not keeps_seed:
            _base_seed(loader.base_generator)

    def draw_early(self, pending: Place | None) -> None:
        """Draw the first part when the iterator is made, as torch does with workers, unless a loaded state has the order.
        A sampler that has an epoch is not asked yet: Lightning, for one, sets the epoch of a resumed run later. Such a
        sampler draws from a generator of its own, so nobody else sees when it does."""
        if pending is not None and pending.origin is not None or self._has_epoch():
            return
        self._open(None)
        assert self._parts is not None
        self._early = next(self._parts)

    def _has_epoch(self) -> bool:
        return sampler_epoch(self._loader.sampler, self._loader.batch_sampler) is not None

    def origin(self) -> dict[str, Any] | None:
        """Return how to draw again what torch's generators were asked for early, for the state of an epoch that has not
        begun."""
        drawn = self._early is not None and _as_random_sampler(self._loader)
        return self._early.origin if drawn else None  # type: ignore[union-attr]

    def next(self, pending: Place | None) -> Given:
        """Return the first part of the epoch, or the next. With `pending`, begin with the part where it was left."""
        self.begun = True
        early, self._early = self._early, None
        if early is not None and (pending is None or pending.origin is None):
            return early
        if self._parts is None or early is not None:
            self._open(pending)
        assert self._parts is not None
        part = next(self._parts, None)
        if part is None:
            raise RuntimeError("the sampler failed earlier in this epoch, and cannot continue: begin another epoch")
        return part

    def _open(self, pending: Place | None) -> None:
        if self._loader.sampler is not None or self._loader.batch_sampler is not None:
            self._sampled = _Sampled(self._loader)
        elif self._loader.generator is not None and _as_random_sampler(self._loader):
            self._unused = _UnusedPermutation(self._loader, pending)
        self._parts = _parts_of(self._loader, self._sampled, self._unused, pending)

    def ahead(self) -> Callable[[], object] | None:
        """Return a function that draws a little of what comes later, to be called for each batch, if there is anything."""
        return self._unused if self._sampled is None else self._sampled.draw


def _parts_of(
    loader: Ordered, sampled: _Sampled | None, unused: _UnusedPermutation | None, pending: Place | None
) -> Iterator[Given]:
    """Yield the parts of an epoch. This is not a method of Draws: a generator with a reference to its holder would only
    be freed by the garbage collector, and the engine, with its memory on a GPU, along with it."""
    size = loader.batch_size or 1
    if _as_random_sampler(loader):
        indices, origin = _random_sampler(loader, pending)
        if unused is not None:
            unused.draw_if_due()
        yield Given(indices, None, size, origin)
    elif sampled is not None:
        origin = pending.origin if pending is not None and pending.cursor is not None else None
        if origin is None:
            yield from sampled.parts()
        elif "before" in origin and _dealer(loader) is not None:
            yield from _dealt_anew(loader, pending, origin)  # type: ignore[arg-type]
        else:
            yield from _resumed(sampled.parts(), origin)
    else:
        yield Given(None, None, size, None)


def _resumed(parts: Iterator[Given], origin: dict[str, Any]) -> Iterator[Given]:
    """Yield the parts from the one in which the epoch was left."""
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
            "same seed (or generator state) and epoch as when the state was saved. If it gives each rank an order of its "
            "own, save and load a state on each rank, or use shard=True or torch's DistributedSampler, whose state "
            "every rank can load"
        )


def _dealer(loader: Ordered) -> Any:
    """Return the sampler if it is torch's DistributedSampler, else None."""
    torch = sys.modules.get("torch")
    known = torch is not None and type(loader.sampler) is torch.utils.data.DistributedSampler
    return loader.sampler if known else None


def _dealt_anew(loader: Ordered, pending: Place, origin: dict[str, Any]) -> Iterator[Given]:
    """Yield the parts of a DistributedSampler's order after the samples that all ranks together have had. The state may
    be that of another rank, and of another number of ranks."""
    from .shares import Dealt, order_of, other_order, rank_of, refuse_other_epoch, share_of

    dealer, wanted = loader.sampler, origin.get("part", 0)
    refuse_other_epoch(origin, dealer)
    order = order_of(dealer)
    then = Dealt(origin["world"], 1, origin["before"], 0)
    done = pending.samples_done()  # by each rank
    for number, part in enumerate(_Sampled(loader, share_of(dealer, order, then, origin["rank"])).parts()):
        assert part.origin is not None and part.indices is not None
        if number == wanted and part.origin["crc"] == origin["crc"]:
            break
        done += len(part.indices)
    else:
        raise other_order(origin, rank_of(dealer))
    if then.world == dealer.num_replicas:
        own = _Sampled(loader, share_of(dealer, order, then, dealer.rank), then.before)
        yield from itertools.islice(own.parts(), wanted, None)
        return
    now = Dealt(dealer.num_replicas, 1, then.used(done, len(order), dealer.drop_last), 0)
    for part in _Sampled(loader, share_of(dealer, order, now, dealer.rank), now.before).parts():
        yield part._replace(anew=True)


class _Sampled:
    """What a sampler gives, in parts of whole batches. While one part is used, the next one is drawn little by little:
    all at once, that would take a tenth of a second, for which a GPU would wait. It also remembers which samples came
    before: repeated ones get new random draws."""

    def __init__(self, loader: Ordered, samples: list[int] | None = None, before: int = 0) -> None:
        """`samples` are given instead of the sampler's: a share of a DistributedSampler's order after `before`."""
        self._sized = loader.sampler is None  # the batches have sizes of their own
        self._size = loader.batch_size or 1
        given = loader.sampler if samples is None else samples
        self._batches = _batches(loader) if self._sized else _chunks(given, self._size)
        self._shares = _shares(loader, before)
        self._drawn: list[tuple[np.ndarray, np.ndarray | None]] = []  # of the next part; whether they came before
        self._samples = 0  # in them
        self._seen: np.ndarray | None = None  # a bit for each sample of the dataset, from the second part on
        self._error: Exception | None = None  # to be raised after the samples before it
        self._count = loader.samples()
        self._rank = _unshared_rank(loader)
        self._number = self._position = self._batch = 0

    def draw(self) -> bool:
        """Draw the next batch. False: the part is whole, the sampler has no more, or it has failed."""
        if self._samples >= _PART or self._error is not None:
            return False
        try:
            batch = next(self._batches, None)
            if batch is None:
                return False
            batch = _check(batch, self._count)
            self._drawn.append((batch, None if self._seen is None else _repeated(batch, self._seen)))
            self._samples += len(batch)
        except Exception as error:
            self._error = error
        except BaseException:
            self._error = RuntimeError("the sampler was interrupted, and cannot continue: begin another epoch")
            raise
        return self._error is None

    def parts(self) -> Iterator[Given]:
        more = True
        while more:
            while self.draw():
                pass
            if self._error is not None and not self._drawn:
                raise self._error
            batches = [batch for batch, _ in self._drawn]
            repeated = [marks for _, marks in self._drawn if marks is not None]
            self._drawn, self._samples = [], 0
            more = self.draw() or self._error is not None
            if more and self._seen is None:
                self._seen = np.zeros(self._count // 8 + 1, np.uint8)
                repeated = [_repeated(np.concatenate(batches), self._seen)]
                self._drawn = [(batch, _repeated(batch, self._seen)) for batch, _ in self._drawn]
            yield self._part(batches, repeated, more)

    def _part(self, batches: list[np.ndarray], repeated: list[np.ndarray], more: bool) -> Given:
        indices = np.concatenate([np.zeros(0, np.int64), *batches])
        sizes = np.array([len(batch) for batch in batches], np.uint32) if self._sized else None
        if self._rank:
            repeated = [np.ones(len(indices), np.uint8)]
        given = Given(
            indices,
            sizes,
            self._size if sizes is None else int(sizes.max(initial=1)),
            {**_digest(indices, sizes, self._number), **self._shares},
            more,
            np.concatenate(repeated) if repeated else None,
            self._position + (self._rank << _RANK_SHIFT),
            self._batch,
        )
        self._number += 1
        self._position += len(indices)
        self._batch += -(-len(indices) // self._size) if sizes is None else len(sizes)
        return given


def _repeated(indices: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Return for each sample whether it came before, and mark it in `seen`."""
    byte, bit = indices >> 3, (1 << (indices & 7)).astype(np.uint8)
    repeated = (seen[byte] & bit) != 0
    first = np.unique(indices, return_index=True)[1]
    again = np.ones(len(indices), bool)
    again[first] = False
    np.bitwise_or.at(seen, byte, bit)
    return (repeated | again).view(np.uint8)


def _unshared_rank(loader: Ordered) -> int:
    """Return this process's rank if a sampler may give several ranks the same samples (as repeated augmentation does),
    which must be augmented differently; 0 if each sample goes to one rank. Without a process group, samplers that have
    a rank say which it is."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available():
        return 0
    inner = getattr(loader.batch_sampler, "sampler", loader.sampler)
    if type(inner) is torch.utils.data.DistributedSampler:
        return 0
    if torch.distributed.is_initialized():
        return int(torch.distributed.get_rank())
    rank = getattr(inner, "rank", 0) if hasattr(inner, "num_replicas") else 0
    return rank if isinstance(rank, int) and 0 <= rank < _RANKS_MOST else 0


def _shares(loader: Ordered, before: int) -> dict[str, Any]:
    """Return how a DistributedSampler divides the epoch, for the saved state; nothing for other samplers."""
    dealer = _dealer(loader)
    if dealer is None:
        return {}
    names = {"rank": int(dealer.rank), "world": int(dealer.num_replicas), "before": before}
    return {**names, "epoch": dealer.epoch, "seed": dealer.seed, "of": len(dealer.dataset)}


def _chunks(sampler: Any, size: int) -> Iterator[np.ndarray]:
    """Yield what a sampler gives, in whole batches or several of them."""
    samples = map(operator.index, sampler)
    at_once = max(min(_AT_ONCE, _PART) // size, 1) * size
    while len(chunk := np.fromiter(itertools.islice(samples, at_once), np.int64)):
        yield chunk


def _batches(loader: Ordered) -> Iterator[np.ndarray]:
    """Yield what a batch sampler gives."""
    for given in loader.batch_sampler:
        batch = np.fromiter(map(operator.index, given), np.int64)
        if not len(batch):
            raise ValueError("batch_sampler gave an empty batch: each must have at least one sample")
        yield batch


def _check(indices: np.ndarray, count: int) -> np.ndarray:
    indices = np.where(indices < 0, indices + count, indices)
    wrong = (indices < 0) | (indices >= count)
    if wrong.any():
        raise IndexError(f"the sampler gave sample {indices[wrong][0]}, but the dataset has only {counted(count, 'sample')}")
    return indices


def _digest(indices: np.ndarray, sizes: np.ndarray | None, part: int) -> dict[str, Any]:
    sum_ = zlib.crc32(indices.tobytes(), 0 if sizes is None else zlib.crc32(sizes.tobytes()))
    return {"samples": len(indices), "crc": sum_, **({"part": part} if part else {})}


# ---- what torch draws, in the order in which it does ----


def _draws_a_base_seed(loader: Ordered) -> bool:
    if _as_random_sampler(loader):
        return True
    sampled = loader.sampler is not None or loader.batch_sampler is not None
    return (sampled or loader.order == "torch") and "torch" in sys.modules


def _base_seed(generator: Any) -> None:
    """Draw the base seed of workers, which each iterator of torch draws first."""
    import torch

    torch.empty((), dtype=torch.int64).random_(generator=generator)


def _random_sampler(loader: Ordered, pending: Place | None) -> tuple[np.ndarray, dict[str, Any]]:
    """Draw as torch's RandomSampler does: a permutation from a seed drawn from torch's default generator, or from the
    given generator."""
    import torch

    count = loader.samples()
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
    return torch.randperm(count, generator=generator).numpy(), origin


class _UnusedPermutation:
    """When a RandomSampler has given its permutation, it draws another one from its generator, of which it gives
    nothing. Later epochs depend on whether that happened, which it does not if an epoch is left early."""

    def __init__(self, loader: Ordered, pending: Place | None) -> None:
        size = loader.batch_size or 1
        done = 0 if pending is None else pending.samples_done() // size
        self._generator = loader.generator
        self._count = loader.samples()
        self._batches = self._count // size + 1 - loader.ahead - done  # until the sampler is asked for too many
        self._drawn = False

    def __call__(self) -> None:
        """Count a batch that is about to be delivered."""
        self._batches -= 1
        self.draw_if_due()

    def draw_if_due(self) -> None:
        if self._batches <= 0 and not self._drawn:
            import torch

            torch.randperm(self._count, generator=self._generator)
            self._drawn = True
