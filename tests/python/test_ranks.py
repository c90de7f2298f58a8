# SPDX-License-Identifier: Apache-2.0
"""Ranks: what each process gets, with torch's samplers, with shard=True, and without either."""

from __future__ import annotations

import os
import pickle
import warnings

import pytest
import stoker
import torch
import torch.utils.data as tud
from ranks import in_fresh_python, on_ranks
from stoker import transforms as T
from torch.utils.data.distributed import DistributedSampler


class Numbers(tud.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if not 0 <= index < self.count:
            raise IndexError(index)
        return torch.tensor(index), index % 3


class Images(stoker.datasets.ImageFolder):
    """An image's number is its label."""

    def __init__(self, root):
        super().__init__(root, T.Compose([T.CenterCrop(8), T.ToTensor()]))


def labelled(root, count):
    """Images whose labels tell them apart."""
    from conftest import picture

    for number in range(count):
        os.makedirs(f"{root}/{number:03}", exist_ok=True)
        picture(number, 20, 16).save(f"{root}/{number:03}/0.png")
    return str(root)


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    return labelled(tmp_path_factory.mktemp("numbered"), 23)


def seen(loader):
    """The samples of an epoch, batch by batch."""
    return [batch[-1 if isinstance(loader.dataset, Images) else 0].tolist() for batch in loader]


def epochs_of(make, count, set_epoch):
    loader = make()
    out = []
    for epoch in range(count):
        if set_epoch:
            set_epoch(loader, epoch)
        out.append(seen(loader))
        assert len(loader) == len(out[-1])
    return out


# ---- on ranks of a process group, and by the environment ----


def _tell_sampler(loader, epoch):
    loader.sampler.set_epoch(epoch)


def _shares(root):
    """Everything at once: it is the starting of processes that takes time."""
    out = {}
    for name, data in (("engine", Images(root)), ("python", Numbers(23))):
        for drop in (False, True):
            common = {"batch_size": 4, "drop_last": drop}

            def torchs(shuffle, data=data, drop=drop, common=common, **more):
                # torch's loader and sampler over the numbers: what each rank is to get.
                numbers = Numbers(len(data))
                sampler = DistributedSampler(numbers, shuffle=shuffle, drop_last=drop, **more)
                return tud.DataLoader(numbers, sampler=sampler, **common)

            def ours(shuffle, data=data, drop=drop, common=common):
                return stoker.DataLoader(data, sampler=DistributedSampler(data, shuffle=shuffle, drop_last=drop), **common)

            def sharded(shuffle, data=data, common=common, **more):
                return stoker.DataLoader(data, shuffle=shuffle, shard=True, order="torch", **common, **more)

            for shuffle in (False, True):
                wanted = epochs_of(lambda s=shuffle: torchs(s), 3, _tell_sampler)
                key = f"{name} drop={drop} shuffle={shuffle}"
                out[key] = [
                    wanted,
                    epochs_of(lambda s=shuffle: ours(s), 3, _tell_sampler),
                    epochs_of(lambda s=shuffle: sharded(s), 3, None),
                    epochs_of(lambda s=shuffle: sharded(s), 3, _tell_sampler),
                    epochs_of(lambda s=shuffle: sharded(s), 3, lambda l, e: l.set_epoch(e)),
                ]
            seeded = epochs_of(lambda: torchs(True, seed=5), 2, _tell_sampler)
            out[f"{name} drop={drop} seeded"] = [seeded, epochs_of(lambda: sharded(True, seed=5), 2, None)]
        # Without a sampler every rank gets everything.
        out[f"{name} everything"] = [
            [sorted(sum(seen(tud.DataLoader(Numbers(23), batch_size=4)), []))],
            [sorted(sum(seen(stoker.DataLoader(data, batch_size=4)), []))],
        ]
    return out


def _all_shares(root):
    return {
        "2 ranks": on_ranks(2, _shares, root),
        "3 ranks": on_ranks(3, _shares, root),
        "2 ranks by environment": on_ranks(2, _by_environment, root, group=False),
        "warnings": on_ranks(2, _warnings, root),
    }


def _by_environment(root):
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    numbers = Numbers(23)
    wanted = tud.DataLoader(numbers, batch_size=4, sampler=DistributedSampler(numbers, world, rank))
    return [seen(wanted)] + [
        seen(stoker.DataLoader(data, batch_size=4, shuffle=True, shard=True, order="torch"))
        for data in (numbers, Images(root))
    ]


def _warnings(root):
    """How often each way of loading warns."""
    out = {}
    numbers, images = Numbers(23), Images(root)
    makers = {
        "in order": lambda data: stoker.DataLoader(data),
        "sampler": lambda data: stoker.DataLoader(data, sampler=DistributedSampler(data)),
        "shard": lambda data: stoker.DataLoader(data, shuffle=True, shard=True),
        "made, not used": lambda data: stoker.DataLoader(data, shuffle=True),
        "shuffle": lambda data: stoker.DataLoader(data, shuffle=True),
        "again": lambda data: stoker.DataLoader(data, shuffle=True),
    }
    for name, make in makers.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for data in (numbers, images) if name != "shuffle" else (images,):
                loader = make(data)
                if name != "made, not used":
                    next(iter(loader))
        out[name] = [str(w.message) for w in caught if "every rank" in str(w.message)]
    return out


@pytest.fixture(scope="module")
def all_shares(numbered):
    return in_fresh_python(_all_shares, numbered)


@pytest.mark.parametrize("world", [2, 3])
def test_each_rank_gets_what_torchs_sampler_gives(all_shares, world):
    for rank, cases in enumerate(all_shares[f"{world} ranks"]):
        for name, (wanted, *gots) in cases.items():
            for number, got in enumerate(gots):
                assert got == wanted, f"rank {rank}: {name}, way {number}"


@pytest.mark.parametrize("world", [2, 3])
def test_ranks_together_get_every_sample_once(all_shares, world):
    for name, epochs in all_shares[f"{world} ranks"][0].items():
        if "shuffle" not in name:
            continue
        ours = [all_shares[f"{world} ranks"][rank][name][2] for rank in range(world)]
        for epoch in range(len(epochs[0])):
            together = [sample for rank in ours for batch in rank[epoch] for sample in batch]
            if "drop=False" in name:
                assert set(together) == set(range(23)) and len(together) == -(-23 // world) * world
            else:
                assert len(together) == len(set(together)) == 23 // world // 4 * 4 * world


def test_ranks_of_the_environment(all_shares):
    for wanted, python, engine in all_shares["2 ranks by environment"]:
        assert python == wanted and engine == wanted


def test_shuffling_alone_is_warned_of_once(all_shares):
    for caught in all_shares["warnings"]:
        warned = caught.pop("shuffle")
        assert len(warned) == 1 and "2 ranks" in warned[0]
        assert "shard=True" in warned[0] and "DistributedSampler" in warned[0]
        assert not any(caught.values()), caught


# ---- in one process ----


@pytest.mark.parametrize("more, error, said", [
    ({"sampler": tud.SequentialSampler(range(5))}, ValueError, "mutually exclusive with sampler"),
    ({"batch_sampler": [[0]]}, ValueError, "mutually exclusive with sampler"),
    ({"rank": 0, "world_size": 2}, ValueError, "mutually exclusive with rank and world_size"),
    ({"shard": "yes"}, TypeError, "neither True nor False"),
    ({}, ValueError, "torchrun"),
])
def test_refused(numbered, monkeypatch, more, error, said):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    for data in (Numbers(5), Images(numbered)):
        with pytest.raises(error, match=said):
            stoker.DataLoader(data, **{"shard": True, **more})


@pytest.mark.parametrize("rank, said", [("2", "RANK=2 and WORLD_SIZE=2"), ("x", "not a number")])
def test_a_bad_environment_is_named(monkeypatch, rank, said):
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match=said):
        stoker.DataLoader(Numbers(5), shard=True)


@pytest.fixture()
def second_of_two(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")


def test_iterable_data_sets_have_no_shares(second_of_two):
    class Endless(tud.IterableDataset):
        def __iter__(self):
            return iter(range(10))

    with pytest.raises(ValueError, match="IterableDataset decides itself"):
        stoker.DataLoader(Endless(), shard=True)


def test_sharded_loaders_have_a_distributed_sampler(second_of_two, numbered):
    for data in (Numbers(23), Images(numbered)):
        loader = stoker.DataLoader(data, shuffle=True, shard=True, seed=3, drop_last=True)
        sampler = loader.sampler
        assert isinstance(sampler, DistributedSampler) and loader.batch_sampler.sampler is sampler
        assert (sampler.rank, sampler.num_replicas, sampler.shuffle, sampler.seed) == (1, 2, True, 3)
        assert sampler.drop_last and (loader.rank, loader.world_size) == (1, 2)


def test_rank_and_world_size_are_for_python_too():
    for rank in range(2):
        loader = stoker.DataLoader(Numbers(23), batch_size=4, rank=rank, world_size=2)
        wanted = tud.DataLoader(Numbers(23), batch_size=4, sampler=DistributedSampler(Numbers(23), 2, rank, shuffle=False))
        assert seen(loader) == seen(wanted) and len(loader) == len(wanted)


def test_an_epoch_begins_with_the_first_batch(second_of_two, numbered):
    """iter() alone uses up no epoch, and a sampler can still be told which one it is."""
    for data in (Numbers(23), Images(numbered)):
        loader = stoker.DataLoader(data, 23, shuffle=True, shard=True, order="torch")
        orders = [seen(loader) for _ in range(3)]
        other = stoker.DataLoader(data, 23, shuffle=True, shard=True, order="torch")
        iter(other)
        assert seen(other) == orders[0]
        batches = iter(other)
        other.sampler.set_epoch(2)
        assert next(batches)[-1].tolist() == [x % 3 if isinstance(data, Numbers) else x for x in orders[2][0]]


def test_a_sampler_that_is_told_the_epoch_tells_the_engine(numbered):
    """What is drawn in the engine follows from the sampler's epoch, too."""
    data = stoker.datasets.ImageFolder(numbered, T.Compose([T.RandomCrop(8), T.ToTensor()]))

    def pixels(epochs, told):
        sampler = DistributedSampler(data, 1, 0, shuffle=False)
        if told == "before":
            sampler.set_epoch(epochs[0])
        loader = stoker.DataLoader(data, 23, sampler=sampler, seed=1)
        out = []
        for epoch in epochs:
            if told == "each":
                sampler.set_epoch(epoch)
            out.append(next(iter(loader))[0])
        return out

    counted = pixels(range(3), "never")
    assert not counted[0].equal(counted[1])
    assert all(a.equal(b) for a, b in zip(counted, pixels(range(3), "each"), strict=True))
    assert pixels([2], "each")[0].equal(counted[2])
    assert pixels([1, 2], "before")[1].equal(counted[2])


def test_a_state_is_of_its_epoch_alone(numbered):
    """A framework that restores the state of a finished epoch and then sets the next one gets it whole."""
    data = Images(numbered)
    for make in (
        lambda: stoker.DataLoader(data, 5, shuffle=True, seed=1),
        lambda: stoker.DataLoader(data, 5, seed=1, sampler=DistributedSampler(data, 1, 0)),
    ):
        loader = make()
        loader.sampler.set_epoch(0)
        batches = iter(loader)
        first = [next(batches)[1].tolist() for _ in range(3)]
        middle = loader.state_dict()
        rest = [next(batches)[1].tolist() for _ in range(2)]  # StopIteration is never asked for
        end = loader.state_dict()
        loader.sampler.set_epoch(1)
        second = seen(loader)
        resumed = make()
        resumed.load_state_dict(end)
        resumed.sampler.set_epoch(1)
        assert seen(resumed) == second and second != first + rest
        resumed = make()
        resumed.load_state_dict(middle)
        resumed.sampler.set_epoch(0)
        assert seen(resumed) == rest
        resumed = make()
        resumed.load_state_dict(middle)
        assert resumed.state_dict() == middle and seen(resumed) == rest


@pytest.mark.parametrize("workers", [0, 1])
def test_a_share_of_python_is_resumed(second_of_two, workers):
    """In the epoch that it had by the loader's count, with another sampler that was told nothing."""
    def make():
        return stoker.DataLoader(Numbers(40), 3, shuffle=True, shard=True, seed=2, num_workers=workers)

    loader = make()
    epochs = [seen(loader) for _ in range(2)]
    batches = iter(loader)
    begun = [next(batches)[0].tolist() for _ in range(3)]
    state = loader.state_dict()
    rest = [batch[0].tolist() for batch in batches]
    fourth = seen(loader)
    resumed = make()
    resumed.load_state_dict(state)
    assert seen(resumed) == rest and seen(resumed) == fourth
    assert len({str(order) for order in (*epochs, begun + rest, fourth)}) == 4


def test_sharded_loaders_can_be_pickled(second_of_two, numbered):
    for data in (Numbers(23), Images(numbered)):
        loader = stoker.DataLoader(data, 4, shuffle=True, shard=True, order="torch")
        copy = pickle.loads(pickle.dumps(loader))
        assert seen(copy) == seen(loader) and len(copy) == len(loader) == 3
