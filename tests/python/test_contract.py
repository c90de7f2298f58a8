# SPDX-License-Identifier: Apache-2.0
"""The contract of torch's DataLoader, argument by argument: each test runs torch's loader and ours, and compares
values, exceptions with their sentences, warnings, and torch's generator afterwards."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import stoker
import torch
import torch.utils.data as tud
import torchvision
from contract import Numbers, Stream, check, labels, name_of_type
from torchvision.transforms import ToTensor


class SizedStream(Stream):
    def __len__(self):
        return self.claimed


@pytest.fixture(scope="module")
def folder(even_tree):
    """Runs in the engine, from 20 files."""
    data = torchvision.datasets.ImageFolder(even_tree, ToTensor())
    assert "engine" in str(stoker.DataLoader(data).explain())
    return data


@pytest.fixture(params=["python", "tensors", "engine"])
def dataset(request, folder):
    """A map-style dataset by each of the three ways that ours has."""
    tensors = tud.TensorDataset(torch.arange(22).reshape(11, 2), torch.arange(11))
    return {"python": Numbers(), "tensors": tensors, "engine": folder}[request.param]


def order_of(kind, workers):
    """How many workers show a loader's order: that of torch's is the same for any number, and needs none."""
    return 0 if kind is tud.DataLoader else workers


ARGUMENTS = list(inspect.signature(tud.DataLoader.__init__).parameters)[1:]


def test_the_signature_is_torchs():
    theirs = inspect.signature(tud.DataLoader.__init__).parameters
    ours = inspect.signature(stoker.DataLoader.__init__).parameters
    for name in ARGUMENTS:
        assert ours[name].kind == theirs[name].kind, name
        if name not in ("num_workers", "persistent_workers"):  # "auto", and what the engine does by default
            assert ours[name].default == theirs[name].default, name
    positional = [name for name in ARGUMENTS if theirs[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert list(ours)[1 : len(positional) + 1] == positional
    assert issubclass(stoker.DataLoader, tud.DataLoader)


# ---- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"num_workers": -1},
        {"num_workers": 1, "timeout": -1},
        {"timeout": -0.5},
        {"num_workers": 0, "prefetch_factor": 2},
        {"num_workers": 1, "prefetch_factor": -1},
        {"num_workers": 0, "persistent_workers": True},
        {"num_workers": 1, "multiprocessing_context": "bad"},
        {"num_workers": 1, "multiprocessing_context": 5},
        {"num_workers": 0, "multiprocessing_context": "fork"},
        {"shuffle": True, "sampler": [1, 2]},
        {"batch_sampler": [[1]], "batch_size": 2},
        {"batch_sampler": [[1]], "batch_size": None},
        {"batch_sampler": [[1]], "shuffle": True},
        {"batch_sampler": [[1]], "sampler": [1]},
        {"batch_sampler": [[1]], "drop_last": True},
        {"batch_size": None, "drop_last": True},
        {"batch_size": 0},
        {"batch_size": -3},
        {"batch_size": 2.5},
        {"batch_size": "2"},
        {"batch_size": True},
        {"batch_size": 2, "drop_last": "yes"},
        {"batch_size": 2, "drop_last": None},
        {"unknown": 1},
        {"generator": torch.Generator(), "multiprocessing_contexts": 1},
    ],
    ids=lambda options: ",".join(f"{name}={value}" for name, value in options.items()),
)
def test_what_is_refused(dataset, options):
    got = check(lambda kind: kind(dataset, **options) and None)
    assert got[0] == "raised"


@pytest.mark.parametrize(
    "options",
    [{"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}, {"batch_size": None, "drop_last": True}],
    ids=lambda options: ",".join(options),
)
def test_what_is_refused_for_streams(options):
    got = check(lambda kind: kind(Stream(), **options) and None)
    assert got[0] == "raised"
    check(lambda kind: list(kind(Stream(), batch_size=4, shuffle=False)))


def test_too_many_and_too_few_arguments():
    check(lambda kind: kind())
    check(lambda kind: kind(Numbers(), 1, None, None, None, 0, None, False, False, 0, None, None, None, 2))


@pytest.mark.parametrize("data", [[], Numbers(0)], ids=["list", "Dataset"])
@pytest.mark.parametrize("options", [{}, {"shuffle": True}, {"batch_size": None}, {"drop_last": True}])
def test_empty_data_sets(data, options):
    check(lambda kind: (list(loader := kind(data, **options)), len(loader)))


class Nothing:
    pass


@pytest.mark.parametrize("data", [None, 5, Nothing(), {"a": 1, "b": 2}, iter([1, 2])], ids=name_of_type)
@pytest.mark.parametrize("options", [{}, {"shuffle": True}])
def test_what_is_no_data_set(data, options):
    check(lambda kind: list(kind(data, **options)))


@pytest.mark.parametrize("data", [[4, 5, 6], (1.5, 2.5), "text", range(3), {0: 1, 1: 2}, np.arange(4)], ids=repr)
def test_whatever_has_items_is_a_data_set(data):
    check(lambda kind: list(kind(data, batch_size=2)))


# ---- attributes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 4, "drop_last": True, "shuffle": True},
        {"batch_sampler": [[1, 2], [3]]},
        {"batch_size": None},
        {"num_workers": 2, "persistent_workers": True, "timeout": 3.5, "in_order": False, "pin_memory": False},
        {"num_workers": 1, "prefetch_factor": 5, "multiprocessing_context": "fork", "sampler": [2, 1]},
        {"pin_memory_device": "cuda"},
    ],
    ids=lambda options: ",".join(options) or "none",
)
def test_attributes_are_the_arguments(dataset, options):
    if dataset.__class__ is torchvision.datasets.ImageFolder:
        options = {"num_workers": 0, **options}  # "auto" is other threads than none

    def read(kind):
        loader = kind(dataset, **options)
        names = [name for name in ARGUMENTS if name not in ("shuffle", "sampler", "batch_sampler", "dataset")]
        assert loader.dataset is dataset
        if "sampler" in options:
            assert loader.sampler is options["sampler"]
        if "batch_sampler" in options:
            assert loader.batch_sampler is options["batch_sampler"]
        elif loader.batch_sampler is not None:
            assert loader.batch_sampler.sampler is loader.sampler
        return {name: getattr(loader, name) for name in names}, list(loader.sampler), type(loader.batch_sampler)

    check(read)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch_size", 2),
        ("batch_sampler", [[0]]),
        ("sampler", [0]),
        ("drop_last", True),
        ("dataset", []),
        ("persistent_workers", True),
        ("num_workers", 0),
        ("timeout", 9),
        ("pin_memory", False),
        ("collate_fn", len),
        ("worker_init_fn", print),
        ("multiprocessing_context", "bad"),
        ("multiprocessing_context", "spawn"),
        ("generator", None),
        ("prefetch_factor", 7),
        ("in_order", False),
        ("pin_memory_device", "cuda"),
        ("anything", 1),
    ],
)
def test_attributes_that_can_be_set(dataset, name, value):
    def do(kind):
        loader = kind(dataset, num_workers=1)
        setattr(loader, name, value)
        return getattr(loader, name)

    check(do)


def total(samples):
    return len(samples), "mine"


def test_what_is_set_later_counts(dataset):
    def do(kind):
        loader = kind(dataset, batch_size=4, num_workers=0)
        loader.collate_fn = total
        return list(loader)

    check(do)


def test_what_is_set_later_reaches_the_engine(even_tree):
    def loader(**options):
        data = stoker.datasets.ImageFolder(even_tree, stoker.transforms.ToTensor())
        return stoker.DataLoader(data, batch_size=4, shuffle=True, seed=3, **options)

    later, other = loader(num_workers=1), loader(num_workers=2, dtype="float16")
    before, expected = [[list(each) for _ in range(2)] for each in (later, other)]
    state = later.state_dict()
    later.num_workers, later.dtype = 2, "float16"
    assert later.state_dict() == state
    got = list(later)
    assert later._native.engine().workers == 2 and later.state_dict()["epoch"] == state["epoch"] + 1
    for (images, numbers), (others, same) in zip(got, list(other), strict=True):
        assert images.dtype is torch.float16 and torch.equal(images, others) and torch.equal(numbers, same)
    assert before[1][0][0].dtype is torch.float32 and expected[1][0][0].dtype is torch.float16


def test_a_generator_that_is_set_later(dataset):
    def do(kind):
        first, second = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
        loader = kind(dataset, batch_size=4, shuffle=True, generator=first, num_workers=0)
        loader.generator = second
        return labels(loader), first.get_state(), second.get_state()

    check(do)


def test_workers_that_are_set_later_count():
    def do(kind, workers, ahead):
        loader = kind(Numbers(), batch_size=4, num_workers=1)
        loader.num_workers = workers
        loader.prefetch_factor = ahead
        return list(loader)

    check(lambda kind: do(kind, 2, 3))
    check(lambda kind: do(kind, 0, None))


# ---- len -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 4},
        {"batch_size": 4, "drop_last": True},
        {"batch_size": 100, "drop_last": True},
        {"batch_size": None},
        {"sampler": [1, 1, 1], "batch_size": 2},
        {"sampler": iter([1, 2])},
        {"batch_sampler": [[0], [1, 2]]},
        {"batch_sampler": iter([[0]])},
    ],
    ids=str,
)
def test_lengths(dataset, options):
    check(lambda kind: len(kind(dataset, **options)))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("claimed", [5, 11])
def test_lengths_of_streams(workers, drop_last, claimed):
    """Where len() was asked and more samples come, both warn."""

    def do(kind):
        loader = kind(SizedStream(11, claimed), batch_size=2, drop_last=drop_last, num_workers=workers)
        return len(loader), list(loader), len(iter(loader)._index_sampler.sampler.__class__.__name__)

    check(do)


def test_streams_without_a_length():
    check(lambda kind: len(kind(Stream())))
    check(lambda kind: len(kind(SizedStream(11, 3), batch_size=None)))
    got = check(lambda kind: list((loader := kind(SizedStream(11, 3), batch_size=None), len(loader))[0]))
    assert got[0] == "returned"


# ---- order: shuffle, sampler, batch_sampler, generator, drop_last ------------------------------------------


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_generators_stand_where_torchs_stand(dataset, workers, own, shuffle):
    def do(kind):
        generator = torch.Generator().manual_seed(3) if own else None
        options = {"shuffle": shuffle, "drop_last": True, "num_workers": order_of(kind, workers)}
        loader = kind(dataset, batch_size=4, generator=generator, **options)
        seen = [labels(loader) for _ in range(2)]
        return seen, generator.get_state() if own else None

    check(do)


class Backwards(tud.Sampler):
    """A sampler that is told the epoch."""

    epoch = 0

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __iter__(self):
        return iter([(n + self.epoch) % self.count for n in reversed(range(self.count))])

    def set_epoch(self, epoch):
        self.epoch = epoch


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "make",
    [
        lambda data: tud.WeightedRandomSampler(torch.arange(1.0, 8.0), 9),
        lambda data: tud.RandomSampler(data, replacement=True, num_samples=15),
        lambda data: tud.SubsetRandomSampler([1, 4, 2]),
        lambda data: tud.DistributedSampler(data, 2, 1, shuffle=True, seed=3),
        lambda data: Backwards(7),
        lambda data: [np.int64(3), 2, torch.tensor(1)],
        lambda data: (n for n in [5, 1]),
    ],
    ids=["weighted", "replacement", "subset", "distributed", "own", "other numbers", "generator"],
)
def test_samplers(dataset, make, workers):
    def do(kind):
        loader = kind(dataset, batch_size=2, sampler=make(dataset), num_workers=order_of(kind, workers))
        seen = []
        for epoch in range(2):
            if hasattr(loader.sampler, "set_epoch"):
                loader.sampler.set_epoch(epoch)
            seen.append(labels(loader))
        return seen

    check(do)


@pytest.mark.parametrize("workers", [0, 2])
def test_batch_samplers(dataset, workers):
    for batches in ([[1, 2], (3,), [4, 0, 1]], tud.BatchSampler(Backwards(7), 3, True)):
        check(lambda kind, b=batches: labels(kind(dataset, batch_sampler=b, num_workers=order_of(kind, workers))))


@pytest.mark.parametrize("workers", [0, 1])
def test_indices_that_are_not_there(workers):
    check(lambda kind: list(kind([1, 2, 3], sampler=[0, 9], num_workers=workers)))
    check(lambda kind: list(kind([1, 2, 3], sampler=[0, -1], num_workers=workers)))
    check(lambda kind: list(kind({"a": 1}, sampler=["a", "b"], num_workers=workers)))


def test_samplers_are_drawn_from_as_far_as_needed():
    def do(kind, workers, ahead):
        drawn = []

        def endless():
            number = 0
            while True:
                drawn.append(number)
                yield number % 11
                number += 1

        batches = iter(kind(Numbers(), batch_size=2, sampler=endless(), num_workers=workers, prefetch_factor=ahead))
        out = [next(batches)[1] for _ in range(3)]
        return out, len(drawn)

    check(lambda kind: do(kind, 0, None))
    check(lambda kind: do(kind, 2, 3))
