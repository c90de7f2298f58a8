# SPDX-License-Identifier: Apache-2.0
"""TensorDataset, and Subset, ConcatDataset and random_split of it: torch's batches, taken whole."""

from __future__ import annotations

import pickle
import re
import sys

import numpy as np
import pytest
import stoker
import torch
import torch.utils.data as tud


def tensors(count=23, seed=0):
    generator = torch.Generator().manual_seed(seed)
    wide = torch.randn(count, 3, 8, 8, generator=generator).to(memory_format=torch.channels_last)
    return (
        wide,
        torch.arange(count) + 100 * seed,
        torch.rand(2 * count, 5, generator=generator)[::2],
        torch.randint(0, 2, (count,), generator=generator).bool(),
        torch.zeros(count, 0, dtype=torch.complex64),
        torch.full((count, 1), 1.5, dtype=torch.bfloat16),
        torch.rand(count, 3, 2, dtype=torch.complex128, generator=generator),
    )


def same(a, b):
    return (
        type(a) is type(b) is list
        and len(a) == len(b)
        and all(
            x.dtype == y.dtype and x.shape == y.shape and x.stride() == y.stride() and torch.equal(x, y)
            for x, y in zip(a, b, strict=True)
        )
    )


def assert_same(data, batch_size=4, epochs=2, gathers=True, **options):
    make = {"generator": lambda: torch.Generator().manual_seed(5)}
    runs = []
    for kind in (tud.DataLoader, stoker.DataLoader):
        torch.manual_seed(11)
        given = {name: make[name]() if value is make else value for name, value in options.items()}
        loader = kind(data, batch_size, **given)
        runs.append([batch for _ in range(epochs) for batch in loader] + [[torch.rand(2)]])
    theirs, ours = runs
    assert len(ours) == len(theirs) and all(map(same, ours, theirs))
    assert (loader._gathered() is not None) == gathers
    assert loader._native is None


DATA = tud.TensorDataset(*tensors())
OTHER = tud.TensorDataset(*tensors(9, seed=1))
NESTED = tud.ConcatDataset([tud.Subset(DATA, [5, -1, 5, 0]), OTHER, DATA, tud.Subset(OTHER, range(8, 2, -2))])


@pytest.mark.parametrize(
    "data",
    [
        DATA,
        tud.TensorDataset(torch.arange(7)),
        tud.Subset(DATA, [3, 3, 1, -2]),
        tud.Subset(DATA, torch.arange(20, 5, -1)),
        tud.Subset(tud.Subset(DATA, np.arange(1, 20)), range(4)),
        tud.random_split(DATA, [0.4, 0.6], torch.Generator().manual_seed(1))[1],
        tud.ConcatDataset([DATA, OTHER, tud.Subset(DATA, [])]),
        NESTED,
        tud.Subset(NESTED, list(range(38, 2, -3))),
    ],
)
def test_batches_are_torchs(data):
    assert_same(data)
    assert_same(data, shuffle=True)
    assert_same(data, batch_size=3, shuffle=True, drop_last=True, generator=None)


def test_orders_are_torchs():
    assert_same(DATA, sampler=tud.RandomSampler(DATA, replacement=True, num_samples=50))
    assert_same(DATA, sampler=[torch.tensor(3), np.int64(4), -1, 2], batch_size=2)
    assert_same(DATA, batch_size=1, batch_sampler=[[1, 2, 3], [4], [-1, 5]])
    assert_same(DATA, sampler=tud.DistributedSampler(DATA, 2, 1, seed=4))
    assert_same(DATA, shuffle=True, num_workers=2, persistent_workers=True)


def test_generators_are_torchs():
    runs = []
    for kind in (tud.DataLoader, stoker.DataLoader):
        loader = kind(DATA, 4, shuffle=True, generator=torch.Generator().manual_seed(5))
        runs.append([batch[1].tolist() for _ in range(3) for batch in loader])
    assert runs[0] == runs[1]


def test_no_worker_is_started_for_it():
    loader = stoker.DataLoader(DATA, 4, num_workers=2)
    epoch = iter(loader)
    next(epoch)
    assert epoch._workers == []
    assert "whole batches" in stoker.DataLoader(DATA, 4, compile="require").explain()


def test_batches_are_no_views():
    data = tud.TensorDataset(torch.zeros(4, 2))
    batch = next(iter(stoker.DataLoader(data, 4)))[0]
    batch.add_(1)
    assert not data.tensors[0].any()


def test_types_that_numpy_has_not():
    rows = torch.rand(6, 2).to(torch.float8_e5m2)
    for data in (rows, rows[:, :1]):
        [[ours]] = stoker.DataLoader(tud.TensorDataset(data), 3, sampler=[4, 0, 4])
        assert ours.dtype == torch.float8_e5m2 and ours.float().tolist() == data[[4, 0, 4]].float().tolist()


def test_errors_are_torchs():
    for sampler in ([0, 100], [0, 2**70], [0, None, 1.5]):
        with pytest.raises(Exception) as theirs:
            list(tud.DataLoader(DATA, 2, sampler=sampler))
        with pytest.raises(theirs.type, match=re.escape(str(theirs.value)[:20])):
            list(stoker.DataLoader(DATA, 2, sampler=sampler))


class Doubled(tud.TensorDataset):
    def __getitem__(self, index):
        return tuple(2 * part for part in super().__getitem__(index))


class Tagged(torch.Tensor):
    pass


def test_what_is_not_plain_is_left_to_torchs_way(monkeypatch):
    assert_same(Doubled(torch.arange(9)), gathers=False)
    assert_same(tud.ConcatDataset([DATA, Doubled(*tensors())]), gathers=False)
    assert_same(DATA, collate_fn=lambda rows: [torch.stack([row[1] for row in rows])], gathers=False)
    weights = tud.TensorDataset(torch.ones(5, 2, requires_grad=True))
    assert next(iter(stoker.DataLoader(weights, 2)))[0].requires_grad
    tagged = tud.TensorDataset(torch.ones(5, 2).as_subclass(Tagged))
    assert type(next(iter(stoker.DataLoader(tagged, 2)))[0]) is Tagged
    mixed = tud.ConcatDataset([tud.TensorDataset(torch.zeros(2)), tud.TensorDataset(torch.zeros(2).double())])
    assert stoker.DataLoader(mixed, 4)._gathered() is None
    assert stoker.DataLoader(DATA, 4, compile=False)._gathered() is None
    assert stoker.DataLoader(DATA, None)._gathered() is None
    assert stoker.DataLoader(DATA, 4, num_workers=1, worker_init_fn=print)._gathered() is None
    from torch.utils.data._utils import collate

    monkeypatch.setitem(collate.default_collate_fn_map, torch.Tensor, lambda batch, *, collate_fn_map=None: len(batch))
    assert list(stoker.DataLoader(tud.TensorDataset(torch.arange(4)), 2)) == [[2], [2]]


def test_what_is_set_later_is_seen():
    data = tud.TensorDataset(torch.arange(6))
    part = tud.Subset(data, [0, 1, 2])
    loader = stoker.DataLoader(part, 3)
    assert [b[0].tolist() for b in loader] == [[0, 1, 2]]
    part.indices[1] = 5
    assert [b[0].tolist() for b in loader] == [[0, 5, 2]]
    data.tensors = (torch.arange(10, 16),)
    assert [b[0].tolist() for b in loader] == [[10, 15, 12]]
    data.tensors[0][0] = 99
    assert [b[0].tolist() for b in loader] == [[99, 15, 12]]
    part.indices = [4]
    assert [b[0].tolist() for b in loader] == [[14]]


def test_pickles():
    loader = pickle.loads(pickle.dumps(stoker.DataLoader(DATA, 4)))
    assert all(map(same, loader, tud.DataLoader(DATA, 4)))


@pytest.mark.parametrize("workers", [0, 2])
def test_resumes(workers):
    torch.manual_seed(1)
    first = stoker.DataLoader(NESTED, 4, shuffle=True, num_workers=workers)
    epoch = iter(first)
    taken = [next(epoch) for _ in range(3)]
    state = pickle.loads(pickle.dumps(first.state_dict()))
    rest = list(epoch)
    other = stoker.DataLoader(NESTED, 4, shuffle=True, num_workers=2 - workers)
    other.load_state_dict(state)
    again = list(other)
    assert len(taken) + len(again) == len(first) and all(map(same, again, rest))


def calls_of(loader):
    """How many functions an epoch calls."""
    count = 0

    def profile(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        for _ in loader:
            pass
    finally:
        sys.setprofile(None)
    return count


def test_takes_less_than_torch():
    """Whole batches are gathered, not samples: hardly anything is called. (Times would depend on the machine's load.)"""
    data = tud.TensorDataset(torch.rand(4096, 3, 8, 8), torch.arange(4096))
    ours, torchs = (calls_of(kind(data, 256, shuffle=True, num_workers=0)) for kind in (stoker.DataLoader, tud.DataLoader))
    print(f"{ours} calls, torch {torchs}")
    assert 3 * ours < torchs
