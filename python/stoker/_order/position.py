# SPDX-License-Identifier: Apache-2.0
"""The position in an epoch of a dataset written in Python: what its sampler has given, and how to repeat those draws
when the epoch is resumed.

A sampler that has state_dict() saves its own position. Any other is drawn from again from the beginning, with the
generators in the state they had then, and must give what it gave before, which a checksum verifies.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import random
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from .ranks import InOrder, Keyed, samplers_in
from .shares import (
    DEALERS,
    Dealt,
    Ranked,
    as_rank,
    count_batches,
    in_batches,
    innermost,
    order_of,
    other_order,
    rank_of,
    refuse_other_epoch,
    refuse_other_world,
    seeds_of,
    share_of,
)

VERSION = 1
_DRAWLESS = (SequentialSampler, InOrder, Keyed, *DEALERS)  # what they give follows from their attributes
_KNOWN = (RandomSampler, SubsetRandomSampler, WeightedRandomSampler, *_DRAWLESS)


def has_state(thing: Any) -> bool:
    """Return whether it has state_dict and load_state_dict."""
    return all(callable(getattr(thing, name, None)) for name in ("state_dict", "load_state_dict"))


def _generators(loader: Any) -> list[torch.Generator]:
    """Return the generators that the sampler may draw from, other than torch's default one."""
    found = [loader.generator, *(getattr(sampler, "generator", None) for sampler in samplers_in(loader._index_sampler))]
    return list({id(g): g for g in found if isinstance(g, torch.Generator)}.values())


def _text(state: torch.Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode()


def _state(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)


def _pythons_now() -> list[Any]:
    version, words, gauss = random.getstate()
    return [version, base64.b64encode(array("I", words)).decode(), gauss]


def _numpys_now() -> list[Any]:
    name, words, *rest = np.random.get_state(legacy=True)
    return [name, base64.b64encode(words.astype(np.uint32).tobytes()).decode(), *rest]


def _words(text: str) -> list[int]:
    return np.frombuffer(base64.b64decode(text), np.uint32).tolist()


def _stateful(sampler: Any) -> Any:
    """Return the sampler that saves its own position, if there is one."""
    return next((s for s in (sampler, innermost(sampler)) if has_state(s)), None)


def _draws_from_default_generator(loader: Any) -> bool:
    """Return whether the sampler may draw from torch's default generator."""
    inner = innermost(loader._index_sampler)
    return (
        loader._dataset_kind == 0
        and type(inner) not in _DRAWLESS
        and getattr(inner, "generator", None) is None
        and _stateful(loader._index_sampler) is None
    )


def _global_generators(sampler: Any) -> dict[str, Any]:
    """Return the states of Python's and NumPy's generators if the sampler may draw from them."""
    if _stateful(sampler) is not None or type(innermost(sampler)) in _KNOWN:
        return {}
    return {"python": _pythons_now(), "numpy": _numpys_now()}


def _checksums(random_: dict[str, Any]) -> dict[str, int]:
    """Return checksums of the generators as they are now, which show later whether a script has restored them."""
    out = {}
    if "torch" in random_:
        out["now"] = zlib.crc32(torch.get_rng_state().numpy().tobytes())
    if "python" in random_:
        out["now_python"] = zlib.crc32(repr(random.getstate()).encode())
        out["now_numpy"] = zlib.crc32(repr(_numpys_now()).encode())
    return out


def start_of_epoch(loader: Any, epoch: int) -> dict[str, Any]:
    """Return the state at the beginning of the next epoch, with the generators as they are now. Nothing is drawn."""
    drawing = torch.Generator()
    drawing.set_state(torch.get_rng_state() if loader.generator is None else loader.generator.get_state())
    kept = loader._iterator if loader.persistent_workers else None
    if kept is None:
        base_seed = int(torch.empty((), dtype=torch.int64).random_(generator=drawing))
    else:
        base_seed = kept._base_seed  # persistent workers keep their seeds, and none is drawn
    random_: dict[str, Any] = {
        "generators": [
            _text((drawing if g is loader.generator else g).get_state()) for g in _generators(loader)
        ]
    }
    if _draws_from_default_generator(loader):
        then = drawing.get_state() if loader.generator is None else torch.get_rng_state()
        random_ |= {"torch": _text(then)}
    if loader._dataset_kind == 0:
        random_ |= _global_generators(loader._index_sampler)
    stateful = _stateful(loader._index_sampler)
    ranked = rank_of(loader._index_sampler)
    return {
        "stoker_python": VERSION,
        "epoch": epoch,
        "batches": 0,
        "begun": False,
        "base_seed": base_seed,
        "random": {**random_, **_checksums(random_)},
        **({} if stateful is None else {"sampler": stateful.state_dict()}),
        **({} if ranked is None else {"shares": _saved_by(ranked, _generators(loader))}),
    }


def _saved_by(ranked: Ranked, generators: list[torch.Generator]) -> dict[str, Any]:
    return {"rank": ranked.rank, "world": ranked.world, "seeds": seeds_of(generators)}


class Draws:
    """Draws the batches of indices of one epoch from its sampler."""

    def __init__(self, loader: Any, start: dict[str, Any] | None) -> None:
        # Without a reference to the loader: with persistent workers it has the iterator, which has this object.
        self._generators = _generators(loader)
        self._indexed = loader._dataset_kind == 0
        self._from_default_generator = _draws_from_default_generator(loader)
        self._sampler = loader._index_sampler
        self._start = start or {}
        self._then: dict[str, Any] = self._start.get("shares", {})
        self._ranked = rank_of(self._sampler)
        self._stateful = _stateful(self._sampler)
        self._dealt = self._deals()
        self.has_own_seeds = self._is_elsewhere() and self._then.get("seeds") != seeds_of(self._generators)
        self._random: dict[str, Any] | None = None  # states of the generators before the first draw
        self._sum = 0
        self._first_sum = 0  # the checksum where a resumed epoch begins
        self._kept_first: Any = None  # the sampler's state before its first draw
        self._iterator: Iterator[Any] = iter(())
        self._first: list[Any] = []  # drawn early, so that a saved state agrees with what will come
        if self._stateful is not None and "sampler" in self._start:
            self._stateful.load_state_dict(self._start["sampler"])  # before its iter() is called

    def _is_elsewhere(self) -> bool:
        """Return whether the state is that of another rank."""
        return self._ranked is not None and self._then.get("rank", self._ranked.rank) != self._ranked.rank

    @property
    def is_kept(self) -> bool:
        """Whether the sampler saves its own position."""
        return self._stateful is not None

    def begin(self, iterator: Iterator[Any]) -> None:
        """Begin with the sampler's iterator. replay() must be called next."""
        self._iterator = iterator
        if self._stateful is None and has_state(iterator):
            self._stateful = iterator
            if "sampler" in self._start:
                iterator.load_state_dict(self._start["sampler"])  # type: ignore[attr-defined]
        if self._stateful is not None:
            self._kept_first = self._stateful.state_dict()

    def replay(self, count: Callable[[Any], Any]) -> None:
        """Draw and skip what a resumed epoch has already delivered, calling `count` with each batch of indices."""
        if "random" not in self._start or self.has_own_seeds and not self._start["batches"]:
            return
        self._random = self._generators_now() if self.has_own_seeds else self._start["random"]
        with self._as_then():
            if "sampler" in self._start:
                self._sum = self._start.get("sum", 0)
            elif self._dealt is not None and "before" in self._then:
                self._skip_share(self._dealt, count)
            else:
                self._skip(count)
            # A sampler that draws from torch's default generator does so with its first sample.
            self._first = list(itertools.islice(self._iterator, 1))
        self._first_sum = self._sum

    def next(self) -> Any:
        if self._random is None:
            self._random = self._generators_now()
        index = self._first.pop() if self._first else next(self._iterator)
        self._sum = _summed(index, self._sum)
        return index

    def mark(self) -> tuple[int, Any]:
        """Return the checksum and the sampler's state after the batch that was drawn last."""
        return self._sum, None if self._stateful is None else self._stateful.state_dict()

    def peek(self) -> None:
        """Draw the first batch of indices, so that the state of the generators before it can be saved."""
        if self._random is None:
            self._random = self._generators_now()
            self._first = list(itertools.islice(self._iterator, 1))

    def state(self, mark: tuple[int, Any] | None) -> dict[str, Any]:
        assert self._random is not None
        sum_, sampler = (self._first_sum, self._kept_first) if mark is None else mark
        out = {"random": {**self._random, **_checksums(self._random)}, "sum": sum_}
        if sampler is not None:
            out["sampler"] = sampler
        shares = self._shares()
        return {**out, "shares": shares} if shares else out

    def _skip(self, count: Callable[[Any], Any]) -> None:
        """Skip what this rank has had, having verified that the rank that saved the state would get the same again."""
        batches, ranked = self._start["batches"], self._ranked
        if batches:
            refuse_other_world(self._then, ranked)
        if ranked is None or not batches or not self._is_elsewhere():
            self._verify(self._pass(batches, count))
            return
        before = _all_generators(self._generators)
        for _ in range(2):  # the second time shows that nothing is drawn from where it cannot be seen
            with as_rank(ranked, self._then["rank"]):
                self._verify(count_batches(iter(self._sampler), batches))
            if self.has_own_seeds and _all_generators(self._generators) != before:
                raise other_order(self._then, ranked)  # it draws, and each rank something else
            self._set_generators(self._start["random"])
        self._iterator = iter(self._sampler)
        self._pass(batches, count)

    def _pass(self, batches: int, count: Callable[[Any], Any]) -> list[Any]:
        """Draw batches that this rank has had, and return them."""
        passed = list(count_batches(self._iterator, batches))
        for index in passed:
            self._sum = _summed(index, self._sum)
            count(index)
        return passed

    def _verify(self, indices: Iterable[Any]) -> None:
        """Check that these are the batches that were delivered when the state was saved."""
        sum_ = passed = 0
        for index in indices:
            sum_ = _summed(index, sum_)
            passed += 1
        if passed < self._start["batches"] or sum_ != self._start.get("sum", 0):
            raise other_order(self._then, self._ranked)

    # ---- ranks ----

    def _deals(self) -> Dealt | None:
        """Return how a DistributedSampler deals an epoch out from its beginning; None for other samplers."""
        dealer = innermost(self._sampler)
        if type(dealer) not in DEALERS:
            return None
        size = self._sampler.batch_size if type(self._sampler) is BatchSampler else 1
        return Dealt(dealer.num_replicas, size, 0, 0)

    def _shares(self) -> dict[str, Any] | None:
        """Return who saves the state, and how the epoch is divided."""
        if self._ranked is None:
            return None
        out = _saved_by(self._ranked, self._generators)
        if self._dealt is not None:
            dealer = innermost(self._sampler)
            out |= {**self._dealt._asdict(), "epoch": dealer.epoch, "seed": dealer.seed, "of": len(dealer.dataset)}
        return out

    def _skip_share(self, now: Dealt, count: Callable[[Any], Any]) -> None:
        """Continue a DistributedSampler's order after the samples that all ranks together have had. They may have been
        of another number, and had batches of another size."""
        dealer, batches = innermost(self._sampler), self._start["batches"]
        then = Dealt(*(self._then[name] for name in Dealt._fields))
        if not (batches or then.before):
            return
        refuse_other_epoch(self._then, dealer)
        order = order_of(dealer)
        had = share_of(dealer, order, then, self._then["rank"])[: (batches - then.since) * then.batch_size]
        if _summed(had, 0) != self._start.get("sum", 0):
            raise other_order(self._then, self._ranked)
        if (then.world, then.batch_size) == (now.world, now.batch_size):
            self._dealt = then
        else:
            used = then.used(batches, len(order), dealer.drop_last)
            self._dealt = Dealt(now.world, now.batch_size, used, batches)
        self._iterator = in_batches(self._sampler, share_of(dealer, order, self._dealt, dealer.rank))
        self._pass(batches - self._dealt.since, count)

    # ---- generators ----

    def _generators_now(self) -> dict[str, Any]:
        out: dict[str, Any] = {"generators": [_text(g.get_state()) for g in self._generators]}
        if not self._indexed:
            return out  # iterable datasets have no order to draw
        if self._stateful is None and self._from_default_generator:
            out["torch"] = _text(torch.get_rng_state())
        if self._stateful is None:
            out |= _global_generators(self._sampler)
        return out

    @contextlib.contextmanager
    def _as_then(self) -> Iterator[None]:
        """Set the generators to the state at the beginning of the epoch. Afterwards those that the sampler may draw from
        keep the state after the draws, as if there had been no interruption, unless the script has restored them
        itself, or they are another rank's."""
        then = self._start["random"]
        own = [generator.get_state() for generator in self._generators]
        before = torch.get_rng_state(), random.getstate(), np.random.get_state()
        begun = self._start.get("begun", True)
        restored = {name for name, sum_ in _checksums(then).items() if begun and then.get(name) == sum_}
        if self.has_own_seeds:
            restored = {"now", "now_python", "now_numpy"}
        self._set_generators(then)
        try:
            yield
        finally:
            if "now" in restored or "torch" not in then:
                torch.set_rng_state(before[0])
            if "now_python" in restored or "python" not in then:
                random.setstate(before[1])
            if "now_numpy" in restored or "numpy" not in then:
                np.random.set_state(before[2])
            if self.has_own_seeds:
                for generator, state in zip(self._generators, own, strict=True):
                    generator.set_state(state)

    def _set_generators(self, then: dict[str, Any]) -> None:
        for generator, state in zip(self._generators, then["generators"], strict=False):
            generator.set_state(_state(state))
        if "torch" in then:
            torch.set_rng_state(_state(then["torch"]))
        if "python" in then:
            version, words, gauss = then["python"]
            random.setstate((version, tuple(_words(words)), gauss))
            name, words, *rest = then["numpy"]
            np.random.set_state((name, _words(words), *rest))


def _all_generators(generators: list[torch.Generator]) -> list[Any]:
    return [_text(torch.get_rng_state()), *map(_text, (g.get_state() for g in generators)), _pythons_now(), _numpys_now()]


def _summed(index: Any, sum_: int) -> int:
    """Return a checksum of indices; those that are not integers are not checked."""
    try:
        return zlib.crc32(array("q", index if isinstance(index, (list, tuple)) else (index,)), sum_)
    except (TypeError, OverflowError):
        return sum_
