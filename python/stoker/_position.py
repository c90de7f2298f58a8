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
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from ._ranks import Shared

VERSION = 1
_DISTRIBUTED = (DistributedSampler, Shared)
_TORCHS = (RandomSampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler, *_DISTRIBUTED)


def has_state(thing: Any) -> bool:
    """Return whether it has state_dict and load_state_dict."""
    return all(callable(getattr(thing, name, None)) for name in ("state_dict", "load_state_dict"))


def _innermost(sampler: Any) -> Any:
    return sampler.sampler if type(sampler) is BatchSampler else sampler


def _generators(loader: Any) -> list[torch.Generator]:
    """Return the generators that the sampler may draw from, other than torch's default one."""
    sampler = loader._index_sampler
    found = [loader.generator, getattr(sampler, "generator", None)]
    found.append(getattr(_innermost(sampler), "generator", None))
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
    return next((s for s in (sampler, _innermost(sampler)) if has_state(s)), None)


def _draws_from_default_generator(loader: Any) -> bool:
    """Return whether the sampler may draw from torch's default generator."""
    inner = _innermost(loader._index_sampler)
    return (
        loader._dataset_kind == 0
        and type(inner) not in (SequentialSampler, *_DISTRIBUTED)
        and getattr(inner, "generator", None) is None
        and _stateful(loader._index_sampler) is None
    )


def _global_generators(sampler: Any) -> dict[str, Any]:
    """Return the states of Python's and NumPy's generators if the sampler may draw from them."""
    if _stateful(sampler) is not None or type(_innermost(sampler)) in _TORCHS:
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
    return {
        "stoker_python": VERSION,
        "epoch": epoch,
        "batches": 0,
        "begun": False,
        "base_seed": base_seed,
        "random": {**random_, **_checksums(random_)},
        **({} if stateful is None else {"sampler": stateful.state_dict()}),
    }


class Draws:
    """Draws the batches of indices of one epoch from its sampler."""

    def __init__(self, loader: Any, start: dict[str, Any] | None) -> None:
        # Without a reference to the loader: with persistent workers it has the iterator, which has this object.
        self._generators = _generators(loader)
        self._indexed = loader._dataset_kind == 0
        self._from_default_generator = _draws_from_default_generator(loader)
        self._sampler = loader._index_sampler
        self._start = start or {}
        self._stateful = _stateful(self._sampler)
        self._random: dict[str, Any] | None = None  # states of the generators before the first draw
        self._sum = 0
        self._kept_first: Any = None  # the sampler's state before its first draw
        self._iterator: Iterator[Any] = iter(())
        self._first: list[Any] = []  # drawn early, so that a saved state agrees with what will come
        if self._stateful is not None and "sampler" in self._start:
            self._stateful.load_state_dict(self._start["sampler"])  # before its iter() is called

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
        if "random" not in self._start:
            return
        self._random = self._start["random"]
        with self._as_then():
            if "sampler" in self._start:
                self._sum = self._start.get("sum", 0)
            elif self._resharded():
                self._skip_share()
            else:
                self._skip(count)
            # A sampler that draws from torch's default generator does so with its first sample.
            self._first = list(itertools.islice(self._iterator, 1))

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
        sum_, sampler = (self._start.get("sum", 0), self._kept_first) if mark is None else mark
        out = {"random": {**self._random, **_checksums(self._random)}, "sum": sum_}
        if sampler is not None:
            out["sampler"] = sampler
        shares = self._shares()
        return out if shares is None else {**out, "shares": shares}

    def _skip(self, count: Callable[[Any], Any]) -> None:
        passed = 0
        for _ in range(self._start["batches"]):
            for index in itertools.islice(self._iterator, 1):
                self._sum = _summed(index, self._sum)
                count(index)
                passed += 1
        if passed < self._start["batches"] or self._sum != self._start.get("sum", 0):
            raise ValueError(
                "the sampler gives another order than when the state was saved, so the epoch cannot be resumed. Give it "
                "the same seed (or generator state) and epoch as when the state was saved"
            )

    # ---- another number of ranks ----

    def _shares(self) -> dict[str, int] | None:
        """Return how a DistributedSampler divides the epoch; None for other samplers."""
        inner = _innermost(self._sampler)
        if type(inner) not in _DISTRIBUTED:
            return None
        size = self._sampler.batch_size if type(self._sampler) is BatchSampler else 1
        return {"world": inner.num_replicas, "epoch": inner.epoch, "seed": inner.seed, "batch_size": size}

    def _resharded(self) -> bool:
        then, now = self._start.get("shares"), self._shares()
        return bool(then and now and then["world"] != now["world"])

    def _skip_share(self) -> None:
        """Skip this rank's part of the samples at the beginning of the order that all ranks together have had."""
        then, now = self._start["shares"], self._shares()
        assert now is not None
        if (then["epoch"], then["seed"]) != (now["epoch"], now["seed"]):
            raise ValueError(
                f"the state was saved in epoch {then['epoch']} of a DistributedSampler with seed {then['seed']}, but now "
                f"it has epoch {now['epoch']} and seed {now['seed']}: call its set_epoch first, and use the same seed"
            )
        had = self._start["batches"] * then["batch_size"] * then["world"]
        if had % now["world"]:
            raise ValueError(
                f"{then['world']} ranks have processed {had} samples of this epoch, which is not divisible by "
                f"{now['world']} ranks: resume with a number of ranks that divides it"
            )
        rest = itertools.islice(iter(_innermost(self._sampler)), had // now["world"], None)
        if type(self._sampler) is BatchSampler:
            size, whole = self._sampler.batch_size, self._sampler.drop_last
            self._iterator = iter(BatchSampler(list(rest), size, whole))  # type: ignore[arg-type]
        else:
            self._iterator = rest

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
        itself."""
        assert self._random is not None
        for generator, state in zip(self._generators, self._random["generators"], strict=False):
            generator.set_state(_state(state))
        before = torch.get_rng_state(), random.getstate(), np.random.get_state()
        begun = self._start.get("begun", True)
        restored = {name for name, sum_ in _checksums(self._random).items() if begun and self._random.get(name) == sum_}
        if "torch" in self._random:
            torch.set_rng_state(_state(self._random["torch"]))
        if "python" in self._random:
            version, words, gauss = self._random["python"]
            random.setstate((version, tuple(_words(words)), gauss))
            name, words, *rest = self._random["numpy"]
            np.random.set_state((name, _words(words), *rest))
        try:
            yield
        finally:
            if "now" in restored or "torch" not in self._random:
                torch.set_rng_state(before[0])
            if "now_python" in restored or "python" not in self._random:
                random.setstate(before[1])
            if "now_numpy" in restored or "numpy" not in self._random:
                np.random.set_state(before[2])


def _summed(index: Any, sum_: int) -> int:
    """Return a checksum of indices; those that are not integers are not checked."""
    try:
        return zlib.crc32(array("q", index if isinstance(index, (list, tuple)) else (index,)), sum_)
    except (TypeError, OverflowError):
        return sum_
