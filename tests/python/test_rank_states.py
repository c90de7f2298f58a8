# SPDX-License-Identifier: Apache-2.0
"""Epochs of datasets written in Python that several ranks share: any rank's state is loaded on every rank, also on
another number of them. Ranks are simulated in one process, by their samplers or by torchrun's environment."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest
import stoker
import torch
import torch.utils.data as tud
from conftest import picture
from stoker import transforms as T
from stoker._order import samplers
from torch.utils.data.distributed import DistributedSampler


class Numbers(tud.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.tensor(index)


def tensors(count):
    return tud.TensorDataset(torch.arange(count))


def numbers(batch):
    return (batch[0] if isinstance(batch, (list, tuple)) else batch).tolist()


def distributed(data, rank, world, size, drop_last=False, epoch=1, shuffle=True, workers=0):
    sampler = DistributedSampler(data, world, rank, shuffle=shuffle, seed=3, drop_last=drop_last)
    sampler.set_epoch(epoch)
    return stoker.DataLoader(data, size, sampler=sampler, num_workers=workers)


def sharded(data, rank, world, size, drop_last=False, epoch=1, shuffle=True, workers=0):
    loader = stoker.DataLoader(
        data, size, shuffle=shuffle, rank=rank, world_size=world, seed=3, num_workers=workers, seed_by="sample"
    )
    loader.set_epoch(epoch)
    return loader


def begin(loader, batches):
    """The first batches, the state after them, and the others."""
    iterator = iter(loader)
    first = [numbers(next(iterator)) for _ in range(batches)]
    state = json.loads(json.dumps(loader.state_dict()))
    return first, state, [numbers(batch) for batch in iterator]


def resume(loader, state):
    loader.load_state_dict(state)
    return [numbers(batch) for batch in loader]


def flat(batches):
    return [sample for batch in batches for sample in (batch if isinstance(batch, list) else [batch])]


@pytest.mark.parametrize("data", [Numbers(23), tensors(23)], ids=["own", "tensors"])
@pytest.mark.parametrize("make", [distributed, sharded])
@pytest.mark.parametrize("batches", [0, 1, 2, 3])
@pytest.mark.parametrize("seeds", [(0, 0, 0), (0, 1, 2)], ids=["same seeds", "own seeds"])
def test_what_one_rank_saved_is_loaded_on_every_rank(data, make, batches, seeds):
    world, size = 3, 4 if batches < 2 else 2
    saved = []
    for rank in range(world):
        torch.manual_seed(seeds[rank])
        saved.append(begin(make(data, rank, world, size), batches))
    for saver in range(world):
        for rank in range(world):
            torch.manual_seed(seeds[rank])
            loader = make(data, rank, world, size)
            assert resume(loader, saved[saver][1]) == saved[rank][2]
            # The following epoch is that of a rank that was not interrupted.
            loader.set_epoch(2)
            wanted = make(data, rank, world, size, epoch=2)
            assert [numbers(batch) for batch in loader] == [numbers(batch) for batch in wanted]


def test_with_workers_and_with_states_that_are_saved_again():
    worlds, data = 2, Numbers(40)
    for rank in range(worlds):
        _, state, rest = begin(distributed(data, 0, worlds, 3, workers=2), 2)
        own = begin(distributed(data, rank, worlds, 3), 2)[2]
        loader = distributed(data, rank, worlds, 3, workers=2)
        loader.load_state_dict(state)
        again, iterator = [], iter(loader)
        again.append(loader.state_dict())  # before the first batch
        first = numbers(next(iterator))
        again.append(loader.state_dict())
        assert [first, *(numbers(b) for b in iterator)] == own
        for other in range(worlds):
            wanted = begin(distributed(data, other, worlds, 3), 2)[2]
            for done, saved in enumerate(again):
                assert resume(distributed(data, other, worlds, 3), json.loads(json.dumps(saved))) == wanted[done:]


@pytest.mark.parametrize(("make", "drop_last"), [(distributed, False), (distributed, True), (sharded, False)])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("worlds", [(2, 3), (3, 2), (2, 4, 3), (4, 1, 3), (1, 3), (5, 7, 2)], ids=str)
def test_another_number_of_ranks_continues(worlds, shuffle, drop_last, make):
    """Each stage makes one or two batches on each of its ranks, the last one the rest. Together they have every sample
    once, but for what the sampler's own padding repeats, or drops."""
    count = 61
    data = Numbers(count)
    for per_stage in (1, 2):
        given: Counter = Counter()
        state = None
        for stage, world in enumerate(worlds):
            loaders = [make(data, rank, world, 2 + stage, drop_last, shuffle=shuffle) for rank in range(world)]
            states = []
            lengths = set()
            for loader in loaders:
                if state is not None:
                    loader.load_state_dict(state)
                iterator = iter(loader)
                if stage == len(worlds) - 1:
                    got = flat(numbers(batch) for batch in iterator)
                else:
                    got = flat(numbers(next(iterator)) for _ in range(per_stage))
                lengths.add(len(got))
                given.update(got)
                states.append(json.loads(json.dumps(loader.state_dict())))
            assert len(lengths) == 1  # no rank waits for another one that has ended
            state = states[per_stage % world]  # any rank's
        missing = [sample for sample in range(count) if not given[sample]]
        padded = sum(given.values()) - len(given)
        if drop_last:
            assert padded == 0 and len(missing) < worlds[-1]
        else:
            assert not missing and padded < worlds[-1] and max(given.values()) <= 2


def test_batches_of_another_size():
    data = Numbers(61)
    first = [begin(distributed(data, rank, 2, 4), 3) for rank in range(2)]
    rest = [resume(distributed(data, rank, 2, 5), first[0][1]) for rank in range(2)]
    together = flat(sum((batches for batches, _, _ in first), [])) + flat(sum(rest, []))
    assert len(rest[0][0]) == 5 and set(together) == set(range(61)) and len(together) == 62


@pytest.mark.parametrize(("change", "said"), [
    ({"epoch": 2}, "epoch 1 of a DistributedSampler with seed 3, but now it has epoch 2"),
    ({"shuffle": False}, "another order, or another one|gives another order|an order of its own"),
    ({"data": Numbers(24)}, "had 23 samples.*now it has 24"),
])
def test_another_order_on_another_rank_is_refused(change, said):
    _, state, _ = begin(distributed(Numbers(23), 0, 2, 2), 2)
    for rank, world in ((1, 2), (2, 3)):
        other = {"data": Numbers(23), **change}
        loader = distributed(rank=rank, world=world, size=2, **other)
        if "epoch" in change:  # a sampler that is set to another epoch drops the state; here it was before
            loader.sampler.set_epoch(2)
        loader.load_state_dict({**state, "epoch": loader.sampler.epoch})
        with pytest.raises(ValueError, match=said):
            iter(loader)


# ---- other samplers ----


class Strided(tud.Sampler):
    """A user's own sampler. `names`: how its attributes are called."""

    def __init__(self, rank, world, names=("rank", "num_replicas"), early=False):
        self.rank_name, self.world_name = names
        setattr(self, names[0], rank)
        setattr(self, names[1], world)
        self.early = list(range(rank, 24, world)) if early else None

    def __len__(self):
        return 24 // getattr(self, self.world_name)

    def __iter__(self):
        if self.early is not None:
            return iter(self.early)
        return iter(range(getattr(self, self.rank_name), 24, getattr(self, self.world_name)))


def own(rank, world=2, **options):
    return stoker.DataLoader(Numbers(24), 2, sampler=Strided(rank, world, **options))


@pytest.mark.parametrize("names", [("rank", "num_replicas"), ("process_index", "num_processes")])
def test_a_users_sampler_that_has_a_rank(names):
    saved = [begin(own(rank, names=names), 2) for rank in range(2)]
    for rank in range(2):
        torch.manual_seed(rank)  # it draws nothing
        loader = own(rank, names=names)
        assert resume(loader, saved[0][1]) == saved[rank][2] and getattr(loader.sampler, names[0]) == rank


@pytest.mark.parametrize("options", [{"early": True}, {"names": ("mine", "all")}])
def test_a_users_sampler_that_cannot_be_interpreted_is_refused(options, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    _, state, rest = begin(own(0, **options), 2)
    assert resume(own(0, **options), state) == rest
    monkeypatch.setenv("RANK", "1")
    loader = own(1, **options)
    loader.load_state_dict(state)
    with pytest.raises(ValueError, match="saved on rank 0.*does not tell where rank 1 is.*Save a state on each rank"):
        iter(loader)


def test_a_users_sampler_with_another_number_of_ranks_is_refused():
    """One batch is the same for rank 0 of 2 and of 3, but what the others have had is not."""
    _, state, _ = begin(own(0), 1)
    for rank in range(3):
        loader = own(rank, world=3)
        loader.load_state_dict(state)
        with pytest.raises(ValueError, match="saved by 2 ranks.*now there are 3.*Strided"):
            iter(loader)
    _, state, _ = begin(own(0, world=1), 1)
    loader = own(0)
    loader.load_state_dict(state)
    with pytest.raises(ValueError, match="saved by 1 rank in.*now there are 2.*Resume with 1 rank,"):
        iter(loader)
    _, state, _ = begin(distributed(Numbers(24), 0, 2, 1, shuffle=False), 1)
    loader = stoker.DataLoader(Numbers(24), 1, compile=False)
    loader.load_state_dict({**state, "epoch": 0})
    with pytest.raises(ValueError, match="2 ranks that shared the samples"):
        iter(loader)


class Hidden(Strided):
    """Draws from a generator that is found nowhere, and always goes on."""

    def __init__(self, rank):
        super().__init__(rank, 2)
        self.box = [torch.Generator().manual_seed(1)]

    def __iter__(self):
        return iter(torch.randperm(24, generator=self.box[0]).tolist()[self.rank :: 2])


def test_draws_that_cannot_be_repeated_are_refused():
    _, state, rest = begin(stoker.DataLoader(Numbers(24), 2, sampler=Hidden(0)), 2)
    assert resume(stoker.DataLoader(Numbers(24), 2, sampler=Hidden(0)), state) == rest
    loader = stoker.DataLoader(Numbers(24), 2, sampler=Hidden(1))
    loader.load_state_dict(state)
    with pytest.raises(ValueError, match="saved on rank 0"):
        iter(loader)


class Drawn(tud.Sampler):
    def __len__(self):
        return 24

    def __iter__(self):
        order = list(range(24))
        random.shuffle(order)
        yield from order


@pytest.mark.parametrize("options", [
    lambda rank: {"shuffle": True},
    lambda rank: {"shuffle": True, "generator": torch.Generator().manual_seed(rank)},
    lambda rank: {"sampler": Drawn()},
])
def test_orders_that_each_rank_draws_for_itself(options, monkeypatch):
    """With the same seeds, the ranks have one order. With their own, rank 0's is not that of the others."""
    monkeypatch.setenv("WORLD_SIZE", "2")

    def loader(rank, seed):
        monkeypatch.setenv("RANK", str(rank))
        torch.manual_seed(seed)
        random.seed(seed)
        return stoker.DataLoader(Numbers(24), 4, compile=False, **options(seed))

    _, state, rest = begin(loader(0, 0), 2)
    assert resume(loader(0, 5), state) == rest  # as before: the state has what the sampler needs
    assert resume(loader(1, 0), state) == rest
    refused = loader(1, 1)
    refused.load_state_dict(state)
    with pytest.raises(ValueError, match="saved on rank 0.*Save a state on each rank"):
        iter(refused)
    # Between two epochs nothing is lost: each rank goes on with its own draws.
    between = json.loads(json.dumps(loader(0, 0).state_dict()))
    wanted = [numbers(batch) for batch in loader(1, 1)]
    assert resume(loader(1, 1), between) == wanted


class Random(Numbers):
    def __getitem__(self, index):
        return torch.rand(()).item()


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_of_a_rank_keep_their_own_seeds(workers):
    """Images of two ranks would otherwise be augmented alike after a resume."""
    def values(rank, state=None):
        torch.manual_seed(rank)
        loader = distributed(Random(24), rank, 2, 3, workers=workers)
        if state is not None:
            loader.load_state_dict(state)
        iterator = iter(loader)
        out = [float(x) for x in next(iterator)]
        return out, loader.state_dict()

    _, state = values(0)
    resumed = [values(rank, state)[0] for rank in range(2)]
    assert not set(resumed[0]) & set(resumed[1])


def test_accelerates_shards():
    shard = pytest.importorskip("accelerate.data_loader").BatchSamplerShard

    def loader(rank):
        batches = tud.BatchSampler(tud.RandomSampler(Numbers(24), generator=torch.Generator().manual_seed(1)), 2, False)
        return stoker.DataLoader(Numbers(24), batch_sampler=shard(batches, 2, rank), compile=False)

    saved = [begin(loader(rank), 3) for rank in range(2)]
    for rank in range(2):
        assert resume(loader(rank), saved[0][1]) == saved[rank][2]
    assert sorted(flat(saved[0][0] + saved[1][0] + saved[0][2] + saved[1][2])) == list(range(24))


# ---- datasets that the engine runs ----


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    """Images whose labels are their numbers."""
    root = tmp_path_factory.mktemp("numbered")
    for number in range(47):
        (root / f"{number:03}").mkdir()
        picture(number, 12, 10).save(root / f"{number:03}" / "0.png")
    return stoker.datasets.ImageFolder(root, T.Compose([T.RandomCrop(8), T.ToTensor()]))


def engine(data, rank, world, size=2, epoch=1, shuffle=True):
    sampler = DistributedSampler(data, world, rank, shuffle=shuffle, seed=3)
    sampler.set_epoch(epoch)
    return stoker.DataLoader(data, size, sampler=sampler, seed=9, num_workers=1)


def labelled(batches):
    return [list(zip(labels.tolist(), images.flatten(1).sum(1).tolist(), strict=True)) for images, labels in batches]


@pytest.mark.parametrize("part", [1 << 18, 4])
def test_the_engine_with_a_distributed_sampler(numbered, part, monkeypatch):
    """In one part of the order, and in several."""
    monkeypatch.setattr(samplers, "_PART", part)
    saved = []
    for rank in range(3):
        loader = engine(numbered, rank, 3)
        iterator = iter(loader)
        first = labelled(next(iterator) for _ in range(4))
        saved.append((first, json.loads(json.dumps(loader.state_dict())), labelled(iterator)))
    for saver in range(3):
        for rank in range(3):
            loader = engine(numbered, rank, 3)
            loader.load_state_dict(saved[saver][1])
            assert labelled(loader) == saved[rank][2]
            loader.sampler.set_epoch(2)
            assert labelled(loader) == labelled(engine(numbered, rank, 3, epoch=2))
    other = engine(numbered, 1, 3, shuffle=False)
    other.load_state_dict(saved[0][1])
    with pytest.raises(ValueError, match="saved on rank 0"):
        list(other)


@pytest.mark.parametrize("worlds", [(2, 3), (3, 2, 4), (1, 2), (4, 1)], ids=str)
@pytest.mark.parametrize("part", [1 << 18, 4])
def test_the_engine_with_another_number_of_ranks(numbered, worlds, part, monkeypatch):
    monkeypatch.setattr(samplers, "_PART", part)
    given: Counter = Counter()
    state = None
    for stage, world in enumerate(worlds):
        states, lengths = [], set()
        for rank in range(world):
            loader = engine(numbered, rank, world)
            if state is not None:
                loader.load_state_dict(state)
            iterator = iter(loader)
            last = stage == len(worlds) - 1
            got = flat(labels.tolist() for _, labels in (iterator if last else (next(iterator) for _ in range(3))))
            lengths.add(len(got))
            given.update(got)
            states.append(json.loads(json.dumps(loader.state_dict())))
        assert len(lengths) == 1
        state = states[-1]
    assert set(given) == set(range(47)) and sum(given.values()) - 47 < worlds[-1]
