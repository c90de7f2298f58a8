# SPDX-License-Identifier: Apache-2.0
"""stoker.DataLoader gives the same bytes with any number of threads, and after a restart."""

from __future__ import annotations

import json

import pytest
import stoker
import torch
from loading import augmenting, collect, same
from stoker import transforms as T


def test_any_number_of_threads_gives_the_same_bytes(tree):
    data = stoker.datasets.ImageFolder(tree, augmenting())
    runs = []
    for workers in (0, 1, 2, 7):
        loader = stoker.DataLoader(data, 4, shuffle=True, seed=8, num_workers=workers)
        runs.append(collect(loader) + collect(loader))
    assert all(same(runs[0], run) for run in runs[1:])
    assert not same(runs[0][:6], runs[0][6:])


def test_seed_comes_from_torch(tree):
    data = stoker.datasets.ImageFolder(tree, augmenting())
    runs = []
    for seed in (4, 4, 5):
        loader = stoker.DataLoader(data, 8, shuffle=True)
        torch.manual_seed(seed)
        runs.append(collect(loader))
    assert same(runs[0], runs[1])
    assert not same(runs[0], runs[2])


def resumable(data, kind, workers):
    options = {
        "stoker": {"shuffle": True, "seed": 6},
        "torch": {"shuffle": True, "order": "torch", "seed": 6},
        "global": {"shuffle": True, "order": "torch"},
        "generator": {"shuffle": True, "order": "torch", "generator": torch.Generator().manual_seed(2)},
        "sampler": {"sampler": list(range(22, -1, -1))},
        "batches": {"batch_sampler": [[4, 5], [6], [0, 1, 2, 3, 7], [9]]},
    }[kind]
    size = {} if kind == "batches" else {"batch_size": 5}
    return stoker.DataLoader(data, **size, **options, num_workers=workers)


@pytest.mark.parametrize("kind", ["stoker", "torch", "global", "generator", "sampler", "batches"])
def test_resume_at_every_batch(tree, kind):
    data = stoker.datasets.ImageFolder(tree, augmenting())
    torch.manual_seed(0)
    loader = resumable(data, kind, 2)
    first = collect(loader)
    states, second = [loader.state_dict()], []
    for images, labels in loader:
        second.append((images.clone(), labels.clone()))
        states.append(loader.state_dict())
    third = collect(loader)
    for done, state in enumerate(states):
        torch.manual_seed(123)  # what comes from the state does not come from here
        other = resumable(data, kind, done % 3)
        if kind == "generator" and done == 0:
            other.generator.set_state(torch.Generator().manual_seed(2).get_state())
            collect(other)
        elif kind == "global" and done == 0:
            continue
        other.load_state_dict(state)
        assert same(collect(other), second[done:]), done
        if kind not in ("global", "generator") or kind == "generator" and done:
            assert same(collect(other), third), done
    assert not same(first, second)


def test_state_is_small_and_plain(tree):
    loader = resumable(stoker.datasets.ImageFolder(tree, augmenting()), "stoker", 2)
    iterator = iter(loader)
    next(iterator)
    text = json.dumps(loader.state_dict())
    assert len(text) < 200
    assert json.loads(text) == loader.state_dict()


def test_resume_after_break_and_with_set_epoch(tree):
    data = stoker.datasets.ImageFolder(tree, augmenting())
    whole = [collect(resumable(data, "stoker", 1)) for _ in range(1)][0]
    loader = resumable(data, "stoker", 1)
    for k, _ in enumerate(loader):
        if k == 1:
            break
    state = loader.state_dict()
    other = resumable(data, "stoker", 2)
    other.load_state_dict(state)
    assert other.state_dict() == state
    other.set_epoch(state["epoch"])
    assert same(collect(other), whole[2:])
    other.load_state_dict(state)
    other.set_epoch(5)
    assert len(collect(other)) == len(whole)


@pytest.mark.parametrize("order", ["stoker", "torch"])
@pytest.mark.parametrize("worlds", [(1, 4), (4, 1), (2, 5), (5, 2)])
def test_resume_with_another_world_size(even_tree, order, worlds):
    """20 samples; what the ranks have had and what they get afterwards is each sample once."""
    data = stoker.datasets.ImageFolder(even_tree, T.PILToTensor())
    whole = collect(stoker.DataLoader(data, 20))[0][0]
    names = {image.numpy().tobytes(): i for i, image in enumerate(whole)}
    before, after = worlds

    def ranks(world):
        return [
            stoker.DataLoader(data, 2, shuffle=True, seed=9, order=order, rank=rank, world_size=world)
            for rank in range(world)
        ]

    seen, states = [], []
    for loader in ranks(before):
        images, _ = next(iter(loader))
        seen += [names[image.numpy().tobytes()] for image in images]
        states.append(loader.state_dict())
    assert all(state == states[0] for state in states)
    for loader in ranks(after):
        loader.load_state_dict(states[0])
        seen += [names[image.numpy().tobytes()] for images, _ in loader for image in images]
    assert set(seen) == set(range(20))
    assert len(seen) - 20 < after  # padding, if it does not divide


def test_resume_refuses_another_order(tree):
    data = stoker.datasets.ImageFolder(tree, T.ToTensor())
    loader = stoker.DataLoader(data, 1, sampler=[1, 2, 3])
    iterator = iter(loader)
    next(iterator)
    other = stoker.DataLoader(data, 1, sampler=[1, 3, 2])
    other.load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="another order"):
        next(iter(other))
    with pytest.raises(ValueError, match="not a state"):
        other.load_state_dict({"epoch": 1})
