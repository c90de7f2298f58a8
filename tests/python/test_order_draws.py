# SPDX-License-Identifier: Apache-2.0
"""Draws from torch's generator: datasets of torchvision that the engine runs leave it as torch's loader does. Otherwise
later epochs, and other loaders, would get another order."""

from __future__ import annotations

import itertools

import pytest
import stoker
import torch
from conftest import save_tree
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler
from torchvision import transforms as T
from torchvision.datasets import ImageFolder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = save_tree(tmp_path_factory.mktemp("draws") / "train", {"a": 7, "b": 6, "c": 6}, (32, 28))
    return ImageFolder(root, T.Compose([T.Resize((8, 8)), T.ToTensor()]))


def in_turns(kind, data, epochs=2, **options):
    """Labels and sums of two loaders, one after the other, and what torch draws next after each epoch."""
    torch.manual_seed(5)
    one, other = kind(data, 4, **options), kind(data, 3, **options)
    out = []
    for _ in range(epochs):
        for loader in (one, other):
            out += [(y.tolist(), float(x.sum())) for x, y in loader]
        out.append(float(torch.rand(())))
    return out


@pytest.mark.parametrize("workers", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}])
@pytest.mark.parametrize("order", ["shuffle", "sampler", "weights", "in order"])
def test_two_loaders_in_turns(data, workers, order):
    samplers = {"sampler": RandomSampler(data), "weights": WeightedRandomSampler(torch.ones(len(data)), 13)}
    options = {"shuffle": True} if order == "shuffle" else {"sampler": samplers.get(order)}
    assert "engine" in str(stoker.DataLoader(data, 4, **options).explain())
    want = in_turns(DataLoader, data, **options, **workers)
    assert in_turns(stoker.DataLoader, data, **options, **workers) == want


class Own(torch.utils.data.Dataset):
    """A dataset that runs in Python."""

    def __len__(self):
        return 19

    def __getitem__(self, index):
        return torch.full((2,), float(index)), index


def side_by_side(kind, data, make, epochs, use, **options):
    """What two loaders give in one loop, what is drawn between making an iterator and using it, and what comes next."""
    torch.manual_seed(5)
    one, other = kind(data, 4, **make(), **options), kind(data, 4, **make(), **options)
    out = []
    for _ in range(epochs):
        pairs = use(one, other)
        out += [(y.tolist(), z.tolist(), float(x.sum())) for (x, y), (_, z) in pairs]
        out.append(float(torch.rand(())))
    return out


def drawing_between(one, other):
    iterators = iter(one), iter(other)
    torch.rand(3)
    return zip(*iterators)


def one_unused(one, other):
    iter(one)
    return zip(one, other)


def left_early(one, other):
    for batches in (2, 4):
        yield from itertools.islice(zip(one, other), batches)


ORDERS = ("shuffle", "generator", "sampler", "weights", "in order")
ONE, KEPT = {"num_workers": 1}, {"num_workers": 2, "persistent_workers": True}


def loops():
    """Without worker processes every order is used in every way; with them, which take nearly all of the time, the ways
    other than zip are tried with shuffle and one more order, another one for each kind of dataset."""
    for kind, more in (("engine", "sampler"), ("tensors", "generator"), ("own", "in order")):
        for order in ORDERS:
            for use in (zip, drawing_between, one_unused, left_early):
                yield kind, order, {}, use
            for workers in (ONE, KEPT):
                yield kind, order, workers, zip
                if order in ("shuffle", more):
                    yield kind, order, workers, left_early
            if order in ("shuffle", more) and kind != "own":
                yield from ((kind, order, ONE, use) for use in (drawing_between, one_unused))


@pytest.mark.parametrize(("kind", "order", "workers", "use"), list(loops()))
def test_two_loaders_in_one_loop(data, kind, order, workers, use):
    datasets = {"engine": data, "tensors": TensorDataset(torch.arange(19.0), torch.arange(19)), "own": Own()}
    dataset = datasets[kind]
    make = {
        "shuffle": lambda: {"shuffle": True},
        "generator": lambda: {"shuffle": True, "generator": torch.Generator().manual_seed(3)},
        "sampler": lambda: {"sampler": RandomSampler(dataset)},
        "weights": lambda: {"sampler": WeightedRandomSampler(torch.ones(19), 13)},
        "in order": dict,
    }[order]
    if kind == "own" and workers:
        workers = {**workers, "multiprocessing_context": "fork"}
    epochs = 1 if use is left_early else 2  # its loops are epochs, too
    want = side_by_side(DataLoader, dataset, make, epochs, use, **workers)
    assert side_by_side(stoker.DataLoader, dataset, make, epochs, use, **workers) == want


def labels(batches):
    return [y.tolist() for _, y in batches]


@pytest.mark.parametrize("given", [{"shuffle": True}, {"sampler": RandomSampler(range(19))}])
def test_a_state_saved_between_iter_and_next_has_the_order_that_was_drawn(data, given):
    torch.manual_seed(8)
    loader = stoker.DataLoader(data, 4, num_workers=2, **given)
    batches = iter(loader)
    state, drawn = loader.state_dict(), torch.get_rng_state()
    want = labels(batches)
    other = stoker.DataLoader(data, 4, num_workers=2, **given)
    other.load_state_dict(state)
    if "shuffle" in given:
        torch.manual_seed(9)
    else:
        torch.manual_seed(8)  # what a sampler of one's own draws from is restored by the script
    assert labels(iter(other)) == want
    assert drawn is not None


@pytest.mark.parametrize("size", [4, 19, 30, None])
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("batches", [0, 1, 4, 5, 6])
def test_a_generator_after_an_epoch_that_is_left(data, workers, size, drop_last, batches):
    if size is None and drop_last:
        return

    def after(kind):
        generator = torch.Generator().manual_seed(3)
        options = {"shuffle": True, "num_workers": workers, "generator": generator, "drop_last": drop_last}
        iterator = iter(kind(data, size, **options))
        for _ in range(batches):
            next(iterator, None)
        return generator.get_state().tolist()

    assert after(stoker.DataLoader) == after(DataLoader)


@pytest.mark.parametrize("workers, done", [(0, 1), (0, 3), (0, 5), (2, 0), (2, 1), (2, 3)])
def test_a_resumed_epoch_leaves_the_generator_as_if_it_had_not_been_interrupted(data, workers, done):
    def loader_of(generator):
        return stoker.DataLoader(data, 4, shuffle=True, num_workers=workers, generator=generator)

    generator = torch.Generator().manual_seed(3)
    batches = iter(loader := loader_of(generator))
    for _ in range(done):
        next(batches)
    state = loader.state_dict()
    rest = labels(batches)
    then = torch.Generator().manual_seed(77)
    other = loader_of(then)
    other.load_state_dict(state)
    assert labels(other) == rest
    assert then.get_state().tolist() == generator.get_state().tolist()


@pytest.mark.parametrize("workers", ["auto", 0, 2])
def test_a_state_may_be_loaded_after_the_iterator_is_made(data, workers):
    torch.manual_seed(8)
    loader = stoker.DataLoader(data, 4, shuffle=True, num_workers=workers)
    batches = iter(loader)
    first = labels([next(batches), next(batches)])
    state = loader.state_dict()
    rest = labels(batches)
    assert sorted(sum(first + rest, [])) == sorted(labels(stoker.DataLoader(data, 19))[0])
    other = stoker.DataLoader(data, 4, shuffle=True, num_workers=workers)
    batches = iter(other)
    other.load_state_dict(state)
    assert labels(batches) == rest


@pytest.mark.parametrize("workers", ["auto", 0, 2])
def test_an_epoch_that_is_set_after_a_state_was_loaded_counts(data, workers):
    """As Lightning does: it loads the state, makes the iterator, and then sets the epoch of the sampler."""
    sampler = torch.utils.data.DistributedSampler(data, 2, 0)
    loader = stoker.DataLoader(data, 4, sampler=sampler, num_workers=workers)
    states, epochs = [], []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        epochs.append(labels(loader))
        states.append(loader.state_dict())
    for late in (False, True):
        sampler = torch.utils.data.DistributedSampler(data, 2, 0)
        other = stoker.DataLoader(data, 4, sampler=sampler, num_workers=workers)
        if late:
            batches = iter(other)
            other.load_state_dict(states[0])
        else:
            other.load_state_dict(states[0])
            batches = iter(other)
        sampler.set_epoch(1)
        assert labels(batches) == epochs[1]


def failing(kind, data, workers):
    class Fails(RandomSampler):
        def __iter__(self):
            yield 3
            raise KeyError("no more")

    loader = kind(data, 1, sampler=Fails(data), num_workers=workers)
    with pytest.raises(KeyError, match="no more"):
        iterator = iter(loader)
        next(iterator)
        next(iterator)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sampler_that_fails(data, workers):
    failing(DataLoader, data, workers)
    failing(stoker.DataLoader, data, workers)


@pytest.mark.parametrize("dataset", ["engine", "own"])
def test_a_timeout_without_workers_is_an_error(data, dataset):
    def after(kind):
        torch.manual_seed(4)
        loader = kind(data if dataset == "engine" else Own(), 4, timeout=2, num_workers=0)
        with pytest.raises(AssertionError, match="requires timeout == 0"):
            next(iter(loader))
        return torch.get_rng_state().tolist()

    assert after(stoker.DataLoader) == after(DataLoader)
