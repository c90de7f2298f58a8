# SPDX-License-Identifier: Apache-2.0
"""Draws from torch's generator: datasets of torchvision that the engine runs leave it as torch's loader does. Otherwise
later epochs, and other loaders, would get another order."""

from __future__ import annotations

import pytest
import stoker
import torch
from conftest import save_tree
from torch.utils.data import DataLoader, RandomSampler, WeightedRandomSampler
from torchvision import transforms as T
from torchvision.datasets import ImageFolder


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = save_tree(tmp_path_factory.mktemp("draws") / "train", {"a": 7, "b": 6, "c": 6}, (32, 28))
    return ImageFolder(root, T.Compose([T.Resize((8, 8)), T.ToTensor()]))


def in_turns(kind, data, epochs=3, **options):
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


@pytest.mark.parametrize("kind", [DataLoader, stoker.DataLoader])
def test_a_timeout_without_workers_is_an_error(data, kind):
    loader = kind(data, 4, timeout=2, num_workers=0)
    with pytest.raises(AssertionError, match="requires timeout == 0"):
        next(iter(loader))
