# SPDX-License-Identifier: Apache-2.0
"""Datasets written in Python: epochs that are left and resumed, and seeds of samples."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import time
import warnings

import numpy as np
import pytest
import stoker
import torch
import torch.utils.data as tud
from loading import Squares, batches

warnings.filterwarnings("ignore", message="This DataLoader will create")


class Drawn(Squares):
    def __getitem__(self, index):
        return torch.tensor([index, random.random(), np.random.rand(), torch.rand(()).item()], dtype=torch.float64)


class Stream(tud.IterableDataset):
    """Each worker its own numbers, with or without a state to ask for."""

    def __init__(self, sizes):
        self.sizes = sizes

    def __iter__(self):
        info = tud.get_worker_info()
        number = 0 if info is None else info.id
        return iter(range(1000 * number, 1000 * number + self.sizes[number]))


class Kept(Stream):
    """Asks for its state are counted, and it can be entered anywhere."""

    at = asked = 0

    def __iter__(self):
        for value in list(super().__iter__())[self.at :]:
            self.at += 1
            yield value
        self.at = 0

    def state_dict(self):
        self.asked += 1
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Shuffled(tud.Sampler):
    """Draws from the generators of the process, whichever they are."""

    def __len__(self):
        return 50

    def __iter__(self):
        order = list(range(50))
        random.shuffle(order)
        yield from np.random.permutation(order).tolist()


def left_after(loader, count):
    """What came before the epoch was left, the state then, and what came after."""
    before, iterator = [], iter(loader)
    for _ in range(count):
        before.append(next(iterator).tolist())
    state = json.loads(json.dumps(loader.state_dict()))
    return before, state, [batch.tolist() for batch in iterator]


SAMPLERS = {
    "sequential": lambda: {},
    "shuffle": lambda: {"shuffle": True},
    "generator": lambda: {"shuffle": True, "generator": torch.Generator().manual_seed(3)},
    "sampler": lambda: {"sampler": tud.RandomSampler(Squares(), generator=torch.Generator().manual_seed(4))},
    "weighted": lambda: {"sampler": tud.WeightedRandomSampler([1.0] * 50, 50)},
    "own": lambda: {"sampler": Shuffled()},
    "batches": lambda: {"batch_sampler": tud.BatchSampler(tud.SubsetRandomSampler(range(50)), 4, False)},
}


@pytest.mark.parametrize("how", SAMPLERS)
@pytest.mark.parametrize("workers", [(0, 0), (2, 3), (2, 0), (0, 2)])
def test_resume_in_mid_epoch(how, workers):
    def loader(number):
        given = SAMPLERS[how]()
        size = {} if "batch_sampler" in given else {"batch_size": 4}
        return stoker.DataLoader(Squares(), num_workers=number, compile=False, **size, **given)

    torch.manual_seed(1)
    _, state, after = left_after(loader(workers[0]), 5)
    torch.manual_seed(99)  # a new process has other generators
    other = loader(workers[1])
    other.load_state_dict(state)
    assert other.state_dict() == state
    assert batches(other) == after


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("persistent", [False, True])
def test_saving_changes_nothing_and_later_epochs_are_the_same(workers, persistent):
    if persistent and not workers:
        pytest.skip("persistent_workers needs workers")

    def loader():
        return stoker.DataLoader(
            Squares(), 8, shuffle=True, num_workers=workers, persistent_workers=persistent, compile=False
        )

    torch.manual_seed(5)
    straight = loader()
    whole = [batches(straight) for _ in range(4)]
    torch.manual_seed(5)
    saved = loader()
    saved.state_dict()
    assert batches(saved) == whole[0]
    _, state, after = left_after(saved, 3)
    between = saved.state_dict()
    assert batches(saved) == whole[2]
    torch.manual_seed(77)
    again = loader()
    again.load_state_dict(state)
    assert [batches(again) for _ in range(3)] == [after, *whole[2:]]
    torch.manual_seed(78)
    again.load_state_dict(between)
    assert [batches(again) for _ in range(2)] == whole[2:]


@pytest.mark.parametrize("workers", [0, 2])
def test_epochs_after_a_resume_of_a_sampler_that_draws_from_pythons_and_numpys_generators(workers):
    def loader():
        return stoker.DataLoader(Squares(), 8, sampler=Shuffled(), num_workers=workers, compile=False)

    def seed(number):
        random.seed(number)
        np.random.seed(number)

    seed(5)
    straight = loader()
    whole = [batches(straight) for _ in range(4)]
    seed(5)
    saved = loader()
    assert batches(saved) == whole[0]
    _, state, after = left_after(saved, 3)
    between = json.loads(json.dumps(saved.state_dict()))
    seed(77)
    again = loader()
    again.load_state_dict(state)
    assert [batches(again) for _ in range(3)] == [after, *whole[2:]]
    seed(78)
    again = loader()
    again.load_state_dict(between)
    assert [batches(again) for _ in range(2)] == whole[2:]


def test_a_script_that_restores_pythons_and_numpys_generators_keeps_them():
    loader = stoker.DataLoader(Squares(), 8, sampler=Shuffled(), compile=False)
    iterator = iter(loader)
    next(iterator)
    random.random(), np.random.rand()
    state, python, numpy = loader.state_dict(), random.getstate(), np.random.get_state()
    rest = [batch.tolist() for batch in iterator]
    random.seed(0)
    np.random.seed(0)
    random.setstate(python)
    np.random.set_state(numpy)
    loader.load_state_dict(state)
    assert batches(loader) == rest
    assert random.getstate() == python
    assert repr(np.random.get_state()) == repr(numpy)


def test_a_script_that_restores_torchs_generator_keeps_it():
    loader = stoker.DataLoader(Squares(), 8, shuffle=True, compile=False)
    iterator = iter(loader)
    next(iterator)
    torch.rand(100)
    state, generator = loader.state_dict(), torch.get_rng_state()
    rest = [batch.tolist() for batch in iterator]
    torch.manual_seed(0)
    torch.set_rng_state(generator)
    loader.load_state_dict(state)
    assert batches(loader) == rest
    assert torch.equal(torch.get_rng_state(), generator)


def test_another_order_is_noticed():
    class Fickle(tud.Sampler):
        def __len__(self):
            return 50

        def __iter__(self):
            yield from (os.urandom(1)[0] % 50 for _ in range(50))

    loader = stoker.DataLoader(Squares(), 4, sampler=Fickle(), compile=False)
    _, state, _ = left_after(loader, 6)
    loader.load_state_dict(state)
    with pytest.raises(ValueError, match="another order than when the state was saved"):
        iter(loader)
    with pytest.raises(ValueError, match="not a state of a stoker"):
        loader.load_state_dict({"epoch": 1})


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("kind", [Stream, Kept])
@pytest.mark.parametrize("count", [0, 1, 7, 11])
def test_iterable_data_sets_resume(workers, kind, count):
    def loader():
        return stoker.DataLoader(kind([7, 20, 11][:workers]), 2, num_workers=workers)

    before, state, after = left_after(loader(), min(count, 4 if workers == 1 else 11))
    other = loader()
    other.load_state_dict(state)
    assert batches(other) == after
    assert before + after == batches(loader())


def test_iterable_in_this_process_and_other_counts_of_workers():
    for kind in (Stream, Kept):
        loader = stoker.DataLoader(kind([9]), 2)
        _, state, after = left_after(loader, 2)
        other = stoker.DataLoader(kind([9]), 2)
        other.load_state_dict(state)
        assert batches(other) == after == [[4, 5], [6, 7], [8]]
        wrong = stoker.DataLoader(kind([9, 9]), 2, num_workers=2)
        wrong.load_state_dict(state)
        with pytest.raises(ValueError, match="num_workers=0"):
            iter(wrong)
        _, state, _ = left_after(stoker.DataLoader(kind([9, 9]), 2, num_workers=2), 3)
        loader.load_state_dict(state)
        with pytest.raises(ValueError, match="num_workers=2"):
            iter(loader)


def test_costly_states_are_asked_for_seldom():
    asked = multiprocessing.Value("i")

    class Slow(Kept):
        def state_dict(self):
            asked.value += 1
            time.sleep(0.2)
            return {"at": self.at}

    loader = stoker.DataLoader(Slow([60]), 1, num_workers=1)
    before, state, after = left_after(loader, 40)
    assert len(before) == 40 and 1 <= asked.value < 30  # not for each of the 60 batches
    other = stoker.DataLoader(Slow([60]), 1, num_workers=1)
    other.load_state_dict(state)
    assert batches(other) == after


def test_an_epoch_begins_with_the_first_batch():
    loader = stoker.DataLoader(Drawn(), 10, seed=3, seed_by="sample")
    first = batches(loader)
    iter(loader)
    iter(loader)
    assert batches(loader) != first
    loader.set_epoch(0)
    assert batches(loader) == first


@pytest.mark.parametrize("in_order", [True, False])
def test_seeds_by_sample(in_order):
    def loader(workers, **more):
        return stoker.DataLoader(Drawn(), 5, num_workers=workers, seed=11, seed_by="sample", **more)

    whole = iter(loader(0))  # draws torch's seed for its workers, as torch does
    kept = torch.get_rng_state(), random.getstate()
    expected = [batch.tolist() for batch in whole]
    assert torch.equal(kept[0], torch.get_rng_state()) and random.getstate() == kept[1]
    for workers in (1, 2, 3):
        made = batches(loader(workers, in_order=in_order if workers else True))
        assert sorted(made) == sorted(expected) if not in_order else made == expected
    # Each sample, each copy of it and each epoch has draws of its own.
    values = {tuple(row[1:]) for batch in expected for row in batch}
    assert len(values) == 50
    again = loader(2, sampler=[7, 7, 7, 8])
    rows = [row for batch in again for row in batch.tolist()]
    assert len({tuple(row) for row in rows}) == 4
    assert rows[0] == expected[1][2]
    shuffled = loader(2, shuffle=True)
    assert sorted(map(tuple, sum(batches(shuffled), []))) == sorted(map(tuple, sum(expected, [])))


def test_seeds_by_sample_after_a_resume():
    def loader(workers):
        return stoker.DataLoader(Drawn(), 5, num_workers=workers, seed=1, seed_by="sample", shuffle=True)

    torch.manual_seed(0)
    _, state, after = left_after(loader(2), 4)
    other = loader(0)
    other.load_state_dict(state)
    assert batches(other) == after
    with pytest.raises(ValueError, match="IterableDataset"):
        stoker.DataLoader(Stream([3]), seed_by="sample")
    with pytest.raises(ValueError, match="seed_by"):
        stoker.DataLoader(Squares(), seed_by="batch")
    with pytest.raises(NotImplementedError, match="seed=3 needs the engine.*seed is for seed_by='sample'"):
        stoker.DataLoader(Squares(), seed=3)


class Slow(tud.Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, index):
        return torch.tensor([index, torch.randint(1000, ()).item()])


def train_on(where, workers, epochs, parent):
    """Goes on from what is saved at `where`, and says after each batch how many there were."""
    torch.manual_seed(0)
    loader = stoker.DataLoader(Slow(), 3, shuffle=True, num_workers=workers, seed=5, seed_by="sample")
    saved = json.loads(where.read_text()) if where.exists() else {"lines": [], "epoch": 0}
    lines = saved["lines"]
    if "loader" in saved:
        loader.load_state_dict(saved["loader"])
    for epoch in range(saved["epoch"], epochs):
        for batch in loader:
            lines.append(batch.tolist())
            part = where.with_suffix(".part")
            part.write_text(json.dumps({"loader": loader.state_dict(), "lines": lines, "epoch": epoch}))
            part.rename(where)
            parent.send(len(lines))
            if len(lines) % 2 == 0:
                parent.recv()  # so that it is not far ahead of the one who kills
    parent.send("done")


def test_killed_at_random_moments(tmp_path):
    """The stream of batches over many lives is that of one. STOKER_TEST_KILLS says how many."""
    kills = int(os.environ.get("STOKER_TEST_KILLS", "2"))
    epochs = 1 + kills * 4 // 5  # of twenty batches; at most 16 between two kills
    context = multiprocessing.get_context("fork")

    def run(name, workers, kill_after=None):
        ours, its = context.Pipe()
        process = context.Process(target=train_on, args=(tmp_path / name, workers, epochs, its))
        process.start()
        its.close()
        while (said := ours.recv()) != "done":
            if kill_after is not None and said >= kill_after:
                process.kill()
                break
            if said % 2 == 0:
                ours.send(None)
        process.join()
        return said == "done"

    assert run("straight", 0)
    expected = json.loads((tmp_path / "straight").read_text())["lines"]
    random_ = random.Random(7)
    done, lives = 0, 0
    while not run("killed", lives % 3, done + random_.randint(9, 14)):
        done = len(json.loads((tmp_path / "killed").read_text())["lines"])
        lives += 1
    assert lives >= kills
    print(f"killed {lives} times, {len(expected)} batches")
    assert json.loads((tmp_path / "killed").read_text())["lines"] == expected


class Kept4(tud.Sampler):
    """Gives samples several times, and says where it is."""

    at = 0

    def __len__(self):
        return 24

    def __iter__(self):
        for number in range(self.at, 24):
            self.at = number + 1
            yield number % 5
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


@pytest.mark.parametrize("sampler", [lambda: [n % 5 for n in range(24)], Kept4])
@pytest.mark.parametrize("workers", [(0, 2), (2, 0), (2, 2)])
def test_copies_of_a_sample_keep_their_seeds_after_a_resume(sampler, workers):
    def loader(number):
        return stoker.DataLoader(Drawn(), 3, sampler=sampler(), num_workers=number, seed=2, seed_by="sample")

    before, state, after = left_after(loader(workers[0]), 3)
    rows = [tuple(row) for batch in before + after for row in batch]
    assert len(set(rows)) == len(rows) == 24
    other = loader(workers[1])
    other.load_state_dict(state)
    assert batches(other) == after


def test_statistics():
    loader = stoker.DataLoader(Squares(), 10, num_workers=1)
    list(loader)
    stats = loader.stats()
    assert stats["batches"] == 5 and stats["workers"] == 1 and stats["bad_samples"] == 0
    assert 0 < stats["first_batch_seconds"] <= stats["waited_seconds"]
