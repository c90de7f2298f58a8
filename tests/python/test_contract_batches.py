# SPDX-License-Identifier: Apache-2.0
"""The contract of torch's DataLoader, continued: what becomes of samples. Each test runs torch's loader and ours,
and compares values, exceptions with their sentences, and warnings."""

from __future__ import annotations

import array
import collections
import copy
import dataclasses
import decimal
import enum
import fractions
import pickle
import types

import numpy as np
import pytest
import stoker
import torch
import torch.utils.data as tud
from contract import Broken, Made, check, plain
from torch.utils.data._utils.collate import default_collate_fn_map

Point = collections.namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Record:
    x: int
    y: object


class Listed(list):
    """A sequence of a class of its own, that is made as list is."""


class Pair(tuple):
    """One that is not made as tuple is."""

    def __new__(cls, x, y):
        return super().__new__(cls, (x, y))


class Mapped(dict):
    pass


class Frozen(collections.abc.Mapping):
    """A mapping that copy.copy cannot fill."""

    def __init__(self, **values):
        self._values = values

    def __getitem__(self, key):
        return self._values[key]

    def __iter__(self):
        return iter(self._values)

    def __len__(self):
        return len(self._values)

    def __eq__(self, other):
        return self._values == other._values


class Colour(enum.IntEnum):
    RED = 1
    BLUE = 2


class Subclass(torch.Tensor):
    pass


class Holder:
    """What no rule knows."""

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value


def numbers(index):
    return torch.tensor(index)


SAMPLES = {
    "int": lambda n: n,
    "large int": lambda n: 2**62 + n,
    "too large": lambda n: 2**70,
    "bool": lambda n: n % 2 == 0,
    "float": lambda n: n / 3,
    "text": lambda n: f"{n}",
    "bytes": lambda n: b"%d" % n,
    "none": lambda n: None,
    "complex": lambda n: complex(n, 1),
    "decimal": lambda n: decimal.Decimal(n),
    "fraction": lambda n: fractions.Fraction(n, 3),
    "enum": lambda n: Colour(1 + n % 2),
    "int then float": lambda n: n if n else 0.5,
    "int then text": lambda n: n if n else "a",
    "tensor": lambda n: torch.full((2, 3), float(n)),
    "scalar": lambda n: torch.tensor(n),
    "empty": lambda n: torch.zeros(0, 3),
    "sizes that differ": lambda n: torch.zeros(n + 1),
    "types that differ": lambda n: torch.zeros(2, dtype=torch.int32 if n % 2 else torch.float32),
    "tensor then int": lambda n: torch.tensor(1) if n == 0 else 1,
    "half": lambda n: torch.full((3,), n, dtype=torch.bfloat16),
    "complex tensor": lambda n: torch.full((3,), complex(n, 1)),
    "last first": lambda n: torch.arange(24.0).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last)[0] + n,
    "transposed": lambda n: (torch.arange(6).reshape(2, 3) + n).T,
    "expanded": lambda n: torch.tensor([n]).expand(4),
    "gradient": lambda n: torch.full((2,), float(n), requires_grad=True),
    "sparse": lambda n: torch.eye(3).to_sparse() * (n + 1),
    "subclass": lambda n: torch.full((2,), n).as_subclass(Subclass),
    "parameter": lambda n: torch.nn.Parameter(torch.full((2,), float(n))),
    "large": lambda n: torch.full((40000,), n, dtype=torch.uint8),
    "array": lambda n: np.full((2, 2), n, np.float32),
    "array of texts": lambda n: np.array(["a", "b"]),
    "array of objects": lambda n: np.array([None, n], object),
    "array backwards": lambda n: np.arange(4)[::-1] + n,
    "array read only": lambda n: np.broadcast_to(np.int64(n), (3,)),
    "uint16": lambda n: np.full(3, n, np.uint16),
    "big endian": lambda n: np.full(3, n, ">i4"),
    "array scalar": lambda n: np.float32(n),
    "array of no dimension": lambda n: np.array(n),
    "numpy bool": lambda n: np.bool_(n % 2),
    "numpy text": lambda n: np.str_(n),
    "dict": lambda n: {"a": n, "b": {"c": torch.tensor([n]), "d": [n, f"{n}"]}},
    "keys that differ": lambda n: {"a": n} if n < 2 else {"b": n},
    "more keys": lambda n: {"a": n, **({"b": n} if n else {})},
    "keys of all kinds": lambda n: {1: n, (2, 3): n, None: n},
    "own dict": lambda n: Mapped(a=n),
    "ordered": lambda n: collections.OrderedDict([("z", n), ("a", n)]),
    "default dict": lambda n: collections.defaultdict(int, a=n),
    "counter": lambda n: collections.Counter({"a": n}),
    "frozen": lambda n: Frozen(a=n),
    "namespace": lambda n: types.SimpleNamespace(a=n),
    "named": lambda n: Point(n, torch.tensor([n, n])),
    "named in named": lambda n: Point(Point(n, "a"), {"k": n}),
    "tuple": lambda n: (n, f"{n}", torch.tensor(n)),
    "list": lambda n: [n, [n, (n, n)]],
    "empty list": lambda n: [],
    "lengths that differ": lambda n: [0] * (n + 1),
    "own list": lambda n: Listed([n, n]),
    "own tuple": lambda n: Pair(n, n),
    "range": lambda n: range(n, n + 3),
    "array.array": lambda n: array.array("d", [n, n]),
    "deque": lambda n: collections.deque([n, n]),
    "bytearray": lambda n: bytearray(b"ab"),
    "memoryview": lambda n: memoryview(b"ab"),
    "set": lambda n: {n},
    "dataclass": lambda n: Record(n, "a"),
    "unknown": lambda n: Holder(n),
    "function": lambda n: len,
}


REFUSED = [
    "too large", "none", "complex", "decimal", "fraction", "sizes that differ", "tensor then int", "sparse",
    "array of texts", "array of objects", "big endian", "keys that differ", "lengths that differ", "array.array", "set",
    "dataclass", "unknown", "function", "namespace",
]  # fmt: skip


REFUSED_BY_WORKERS = [*REFUSED, "types that differ", "gradient", "parameter"]


@pytest.mark.parametrize("kind", SAMPLES)
def test_default_collate(kind):
    got = check(lambda loader: list(loader(Made(SAMPLES[kind]), batch_size=3)))
    assert (got[0] == "raised") == (kind in REFUSED)


@pytest.mark.parametrize("kind", REFUSED_BY_WORKERS)
def test_default_collate_refuses_in_a_worker(kind):
    check(lambda loader: list(loader(Made(SAMPLES[kind]), batch_size=3, num_workers=1)))


def test_default_collate_in_a_worker():
    data = Made(lambda n: {kind: make(n) for kind, make in SAMPLES.items() if kind not in REFUSED_BY_WORKERS})
    assert check(lambda loader: list(loader(data, batch_size=3, num_workers=1)))[0] == "returned"


NO_MESSAGE = ("memoryview", "array backwards", "big endian")  # cannot be pickled; refused by default_convert


@pytest.mark.parametrize("kind", [*NO_MESSAGE, "all"])
@pytest.mark.parametrize("workers", [0, 1])
def test_single_samples(kind, workers):
    """batch_size=None: default_convert makes tensors of arrays, and changes nothing else."""
    made = {name: make for name, make in SAMPLES.items() if kind == name or kind == "all" and name not in NO_MESSAGE}
    data = Made(lambda n: {name: make(n) for name, make in made.items()}, 2)
    check(lambda loader: list(loader(data, batch_size=None, num_workers=workers)))


def join_holders(batch, *, collate_fn_map=None):
    return "holders", [one.value for one in batch]


@pytest.mark.parametrize("workers", [0, 1])
def test_types_that_are_registered(workers, monkeypatch):
    monkeypatch.setitem(default_collate_fn_map, Holder, join_holders)
    data = Made(lambda n: {"a": Holder(n), "b": [Holder(n), torch.tensor(n)]})
    got = check(lambda loader: list(loader(data, batch_size=3, num_workers=workers)))
    assert "holders" in str(got)


def sum_tensors(batch, *, collate_fn_map=None):
    return sum(batch)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_rule_for_tensors_that_somebody_has_replaced(workers, monkeypatch):
    monkeypatch.setitem(default_collate_fn_map, torch.Tensor, sum_tensors)
    data = Made(lambda n: (torch.full((20000,), n), np.array([n])))
    check(lambda loader: list(loader(data, batch_size=3, num_workers=workers)))
    tensors = tud.TensorDataset(torch.arange(5))
    check(lambda loader: list(loader(tensors, batch_size=3, num_workers=workers)))


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    "function",
    [
        list,
        tuple,
        lambda samples: list(zip(*samples, strict=True)),
        lambda samples: {"images": torch.stack([s[0] for s in samples]), "numbers": [s[1] for s in samples]},
        lambda samples: tud.default_collate(samples)[0] * 2,
        lambda samples: np.stack([np.asarray(s[0]) for s in samples]),
        lambda samples: samples[0][0].T,
        lambda samples: None,
        lambda samples: (t := torch.arange(6.0), t[2:], t.view(2, 3)),
        lambda samples: 1 / 0,
        5,
    ],
    ids="list tuple zip dict default numpy view none views_of_one fails no_function".split(),
)
def test_collate_fn(function, workers):
    data = Made(lambda n: (torch.full((2, 3), n), n))
    check(lambda loader: list(loader(data, batch_size=2, num_workers=workers, collate_fn=function)))
    check(lambda loader: list(loader(data, batch_size=None, num_workers=workers, collate_fn=function)))


def shared(samples):
    whole = torch.arange(40.0)
    part = torch.arange(600, dtype=torch.int32)
    return {
        "whole": whole, "tail": whole[30:], "row": whole.view(4, 10)[:, 3], "bits": whole.view(torch.int32),
        "first": part[:300], "all": part,
        "expanded": torch.tensor([[1], [2]]).expand(2, 300), "scalar": torch.tensor(5).expand(3, 4),
    }  # fmt: skip


def test_tensors_that_share_their_memory():
    def do(loader):
        batch = next(iter(loader(Made(numbers), num_workers=1, collate_fn=shared)))
        batch["whole"][33] = -1
        return {name: one.tolist() for name, one in batch.items()}

    check(do)


def conjugates(samples):
    numbers = torch.tensor([1 + 2j, 3 - 1j])
    return numbers, numbers.conj(), numbers.conj().imag


def test_conjugate_tensors():
    """Of which torch's workers lose that they are."""
    _, conjugate, imaginary = next(iter(stoker.DataLoader(Made(numbers), num_workers=1, collate_fn=conjugates)))
    assert conjugate.tolist() == [1 - 2j, 3 + 1j] and imaginary.tolist() == [-2, 1]


# ---- datasets that are asked for many at once -----------------------------------------------------------


class Several(Made):
    def __getitems__(self, indices):
        return [(self.make(index), type(indices).__name__, len(indices)) for index in indices]


class NoneAtOnce(Made):
    __getitems__ = None


class Wrong(Made):
    def __getitems__(self, indices):
        raise ValueError(f"not {indices}")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", [Several, NoneAtOnce, Wrong])
def test_getitems(kind, workers):
    data = kind(SAMPLES["int"])
    check(lambda loader: list(loader(data, batch_size=2, num_workers=workers)))
    check(lambda loader: list(loader(data, batch_size=None, num_workers=workers)))
    check(lambda loader: list(loader(data, batch_sampler=[[0, 1], (2,)], num_workers=workers)))
    check(lambda loader: list(loader(tud.Subset(data, [3, 1]), batch_size=2, num_workers=workers)))


# ---- loaders as objects ----------------------------------------------------------------------------------


def pickled(one):
    return pickle.loads(pickle.dumps(one))


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize("workers", [0, 2])
def test_copies_of_loaders(clone, workers):
    def do(loader):
        generator = torch.Generator().manual_seed(4)
        first = loader(Made(numbers), batch_size=2, shuffle=True, num_workers=workers, generator=generator)
        one = list(first)
        second = clone(first)
        assert type(second) is loader
        same = second.dataset is first.dataset, second.batch_size, second.num_workers, second.generator is generator
        return one, same, list(second), list(first)

    check(do)


@pytest.mark.parametrize("workers", [0, 1])
def test_iterators_cannot_be_pickled(workers):
    for kind in (tud.DataLoader, stoker.DataLoader):
        with pytest.raises(NotImplementedError, match="cannot be pickled"):
            pickle.dumps(iter(kind(Made(numbers), num_workers=workers)))


class Mine:
    """For a subclass of either loader."""

    def __init__(self, *args, **options):
        super().__init__(*args, **options)
        self.extra = 3

    def __iter__(self):
        return (batch + 100 for batch in super().__iter__())


def test_subclasses():
    def do(loader):
        kind = type("MyLoader", (Mine, loader), {})
        mine = kind(Made(numbers), batch_size=2, num_workers=1)
        seen = list(mine), mine.extra, isinstance(mine, tud.DataLoader), len(mine)
        try:
            mine.batch_size = 3
        except ValueError as error:
            return seen, str(error)

    check(do)


def test_it_is_one_of_torchs():
    assert isinstance(stoker.DataLoader(Made(numbers)), tud.DataLoader)
    assert isinstance(iter(stoker.DataLoader(Made(numbers))), tud.dataloader._BaseDataLoaderIter)
    assert stoker.DataLoader[int] is not None


# ---- datasets of torch's --------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 2])
def test_data_sets_of_torchs(workers):
    data = Made(numbers, 6)
    stream = tud.ChainDataset([Broken("none"), Broken("none")])
    stacked = tud.StackDataset(a=data, b=tud.TensorDataset(torch.arange(6)))
    for each in (tud.ConcatDataset([data, data]), tud.Subset(data, [5, 1]), stream, stacked):
        check(lambda loader, each=each: list(loader(each, batch_size=2, num_workers=workers)))
    check(lambda loader: [list(loader(part, num_workers=workers)) for part in tud.random_split(data, [2, 4])])


@pytest.mark.parametrize("workers", [0, 2])
def test_data_pipes(workers):
    pipes = pytest.importorskip("torch.utils.data.datapipes")

    def stream(loader, **options):
        pipe = pipes.iter.IterableWrapper(range(12)).shuffle().sharding_filter()
        return list(loader(pipe, batch_size=3, num_workers=workers, **options))

    check(stream)
    check(lambda loader: stream(loader, shuffle=True))
    check(lambda loader: stream(loader, shuffle=False))
    items = pipes.map.SequenceWrapper(list("abcdef"))
    check(lambda loader: list(loader(items, batch_size=4, num_workers=workers, shuffle=True)))


def test_batches_can_be_written_to():
    for batch in stoker.DataLoader(Made(SAMPLES["array"]), batch_size=2, num_workers=1):
        batch += 1
        assert plain(batch)[3] and batch.min() >= 1


@pytest.mark.parametrize("size", [4, 4096])
def test_arrays_that_were_read_only_can_be_written_to(size):
    """As with torch's workers: np.asarray of a picture and np.frombuffer give such arrays."""
    items = [np.frombuffer(bytes([n]) * size, np.uint8) for n in range(4)]

    def written(loader):
        out = []
        for batch in loader(items, batch_size=2, num_workers=1, collate_fn=list):
            for made in batch:
                made += 1
                out.append(made.tolist())
        return out

    check(written)
    assert not items[0].flags.writeable
