# SPDX-License-Identifier: Apache-2.0
"""The order of samples: torch's, that of samplers, and that of ranks."""

from __future__ import annotations

import itertools

import pytest
import stoker
import torch
import torch.utils.data as tud
import torchvision.transforms as TV
from loading import collect, evaluation, same
from stoker import transforms as T
from torchvision.datasets import ImageFolder


def label_orders(loader, epochs):
    return [[labels.tolist() for _, labels in loader] for _ in range(epochs)]


@pytest.mark.parametrize("workers", [0, 2])
def test_torch_order_with_generator(tree, workers):
    ours_generator, their_generator = torch.Generator().manual_seed(5), torch.Generator().manual_seed(5)
    ours = stoker.DataLoader(
        stoker.datasets.ImageFolder(tree, evaluation(T)),
        4,
        shuffle=True,
        order="torch",
        generator=ours_generator,
        num_workers=workers,
    )
    theirs = tud.DataLoader(
        ImageFolder(tree, evaluation(TV)), 4, shuffle=True, generator=their_generator
    )
    for _ in range(3):
        assert same(list(ours), list(theirs))
        assert torch.equal(ours_generator.get_state(), their_generator.get_state())


def test_torch_order_from_the_global_generator(tree):
    states = []
    orders = []
    for make, data in (
        (stoker.DataLoader, stoker.datasets.ImageFolder(tree, evaluation(T))),
        (tud.DataLoader, ImageFolder(tree, evaluation(TV))),
    ):
        options = {"order": "torch"} if make is stoker.DataLoader else {}
        torch.manual_seed(99)
        orders.append(label_orders(make(data, 3, shuffle=True, **options), 3))
        states.append(torch.get_rng_state())
    assert orders[0] == orders[1]
    assert torch.equal(states[0], states[1])


def test_torch_order_without_shuffling_advances_the_generator_alike(tree):
    data = stoker.datasets.ImageFolder(tree, evaluation(T))
    torch.manual_seed(1)
    list(stoker.DataLoader(data, 4, order="torch"))
    ours = torch.get_rng_state()
    torch.manual_seed(1)
    list(tud.DataLoader(ImageFolder(tree, evaluation(TV)), 4))
    assert torch.equal(ours, torch.get_rng_state())


@pytest.mark.parametrize("world", [2, 3, 4])
def test_torch_order_distributed(tree, world):
    data = stoker.datasets.ImageFolder(tree, evaluation(T))
    for rank, epoch in itertools.product(range(world), (0, 3)):
        sampler = tud.DistributedSampler(data, world, rank, shuffle=True, seed=11)
        sampler.set_epoch(epoch)
        ours = stoker.DataLoader(
            data, 4, shuffle=True, order="torch", seed=11, rank=rank, world_size=world
        )
        ours.set_epoch(epoch)
        assert [labels.tolist() for _, labels in ours] == [
            [data.targets[i] for i in batch] for batch in tud.BatchSampler(sampler, 4, False)
        ]
        assert len(ours) == len(list(tud.BatchSampler(sampler, 4, False)))


def samplers(data):
    generator = torch.Generator().manual_seed(3)
    return {
        "sequential": tud.SequentialSampler(data),
        "random": tud.RandomSampler(data, generator=generator),
        "replacement": tud.RandomSampler(data, True, 40, generator),
        "weighted": tud.WeightedRandomSampler([1.0, 5.0] * 11 + [2.0], 30, generator=generator),
        "subset": tud.SubsetRandomSampler([3, 1, 22, 7], generator),
        "distributed": tud.DistributedSampler(data, 2, 1, seed=4),
        "list": [5, 5, -1, 0],
        "tensor": torch.tensor([2, 4, 6]),
    }


@pytest.mark.parametrize("name", list(samplers(range(23))))
def test_samplers(tree, name):
    theirs = label_orders(
        tud.DataLoader(ImageFolder(tree, evaluation(TV)), 3, sampler=samplers(range(23))[name]), 2
    )
    loader = stoker.DataLoader(
        stoker.datasets.ImageFolder(tree, evaluation(T)), 3, sampler=samplers(range(23))[name]
    )
    assert len(loader) == len(theirs[0])
    assert label_orders(loader, 2) == theirs


def test_sampler_out_of_range(tree):
    loader = stoker.DataLoader(stoker.datasets.ImageFolder(tree, evaluation(T)), sampler=[1, 23])
    with pytest.raises(IndexError, match="sample 23"):
        next(iter(loader))


def test_batch_sampler(tree):
    batches = [[1, 2, 3], [0], [22, 21, 20, 19, 18], [5, 5]]
    ours = stoker.DataLoader(stoker.datasets.ImageFolder(tree, evaluation(T)), batch_sampler=batches)
    theirs = tud.DataLoader(ImageFolder(tree, evaluation(TV)), batch_sampler=batches)
    assert len(ours) == 4
    assert same(list(ours), list(theirs))


def test_distributed_sampler_hears_set_epoch(tree):
    data = stoker.datasets.ImageFolder(tree, evaluation(T))
    sampler = tud.DistributedSampler(data, 2, 0)
    loader = stoker.DataLoader(data, 4, sampler=sampler)
    loader.set_epoch(7)
    assert sampler.epoch == 7


def test_default_shuffle(tree):
    data = stoker.datasets.ImageFolder(tree, T.ToTensor())
    loader = stoker.DataLoader(data, None, shuffle=True, seed=3)
    seen = [[label for _, label in loader] for _ in range(2)]
    assert seen[0] != seen[1]
    assert sorted(seen[0]) == sorted(seen[1]) == data.targets


@pytest.mark.parametrize("shuffle", [False, True])
def test_ranks_are_disjoint_and_whole(even_tree, shuffle):
    data = stoker.datasets.ImageFolder(even_tree, T.PILToTensor())
    whole = collect(stoker.DataLoader(data, 20))[0][0]
    names = {image.numpy().tobytes(): i for i, image in enumerate(whole)}
    seen = [
        names[image.numpy().tobytes()]
        for rank in range(5)
        for images, _ in stoker.DataLoader(data, 3, shuffle=shuffle, seed=1, rank=rank, world_size=5)
        for image in images
    ]
    assert sorted(seen) == list(range(20))
