# SPDX-License-Identifier: Apache-2.0
"""Samples that a sampler gives more than once in an epoch are augmented anew each time; orders without repeats are as
ever, threads change nothing, and resuming is exact, also where an epoch is drawn in parts."""

from __future__ import annotations

import itertools

import pytest
import stoker
import torch
import torch.utils.data as tud
from conftest import run_python
from stoker import transforms as T
from stoker._order import samplers

CROP = T.Compose([T.RandomResizedCrop(12), T.ToTensor()])


def loader(tree, batch_size=4, **options):
    return stoker.DataLoader(stoker.datasets.ImageFolder(tree, CROP), batch_size, seed=3, **options)


def rows(epoch, most=None):
    """(label-free) bytes of each sample, in order."""
    images = [image.clone() for batch, _ in itertools.islice(epoch, most) for image in batch]
    return [image.numpy().tobytes() for image in images]


class Repeated(tud.Sampler):
    """Each index three times in a row, as repeated augmentation has it."""

    def __iter__(self):
        return (index for index in range(8) for _ in range(3))

    def __len__(self):
        return 24


def test_repeats_differ_and_first_times_do_not_change(tree):
    ours = rows(loader(tree, sampler=Repeated()))
    assert len(set(ours)) == 24
    assert ours[::3] == rows(loader(tree, sampler=range(8)))
    torch.manual_seed(0)
    drawn = list(tud.WeightedRandomSampler([1.0] * 23, 60))
    assert len(set(drawn)) < 60 == len(set(rows(loader(tree, sampler=drawn))))
    assert len(set(rows(loader(tree, batch_sampler=[[1, 1], [1, 1, 1]], batch_size=1)))) == 5


def test_threads_change_nothing(tree):
    for part in (samplers._PART, 8):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(samplers, "_PART", part)
            runs = [rows(loader(tree, sampler=Repeated(), num_workers=n)) for n in (0, 1, 3)]
        assert runs[0] == runs[1] == runs[2] and len(set(runs[0])) == 24


def test_orders_without_repeats_are_the_same_in_parts(tree, monkeypatch):
    whole = rows(loader(tree, sampler=range(23)))
    monkeypatch.setattr(samplers, "_PART", 8)
    assert rows(loader(tree, sampler=range(23))) == whole
    batches = [[k, k + 1] for k in range(0, 22, 2)]
    assert rows(loader(tree, batch_sampler=batches, batch_size=1)) == whole[:22]


def test_parts_differ(tree, monkeypatch):
    monkeypatch.setattr(samplers, "_PART", 8)
    ours = rows(loader(tree, sampler=list(itertools.islice(itertools.cycle(range(4)), 40))))
    assert len(set(ours)) == 40
    monkeypatch.undo()
    assert rows(loader(tree, sampler=list(itertools.islice(itertools.cycle(range(4)), 40)))) == ours


class Endless(tud.Sampler):
    def __iter__(self):
        return itertools.cycle([5, 2, 5, 7])

    def __len__(self):
        return 10**10


@pytest.mark.parametrize("part", [8, 12])
def test_endless_samplers(tree, monkeypatch, part):
    monkeypatch.setattr(samplers, "_PART", part)
    whole = rows(iter(loader(tree, sampler=Endless())), 15)
    assert len(set(whole)) == 60
    for taken in (1, 2, 3, 7):
        first = loader(tree, sampler=Endless(), num_workers=1)
        epoch = iter(first)
        rows(epoch, taken)
        other = loader(tree, sampler=Endless(), num_workers=2)
        other.load_state_dict(first.state_dict())
        assert rows(iter(other), 15 - taken) == whole[4 * taken :]


class Counted(tud.Sampler):
    """Counts how many samples were drawn."""

    def __init__(self, count):
        self.count, self.drawn = count, 0

    def __iter__(self):
        for self.drawn in range(1, self.count + 1):
            yield self.drawn % 23

    def __len__(self):
        return self.count


@pytest.mark.parametrize("batched", [False, True])
def test_the_next_part_is_drawn_little_by_little(tree, monkeypatch, batched):
    """Drawn all at once it would make the consumer wait, once in each part."""
    monkeypatch.setattr(samplers, "_PART", 64)
    monkeypatch.setattr(samplers, "_AT_ONCE", 8)
    sampler = Counted(1000)
    given = {"batch_sampler": tud.BatchSampler(sampler, 4, False)} if batched else {"sampler": sampler}
    drawn = [sampler.drawn for _ in loader(tree, **({"batch_size": 1} if batched else {}), **given)]
    assert len(drawn) == 250 and drawn[-1] == 1000
    assert drawn[0] <= 64 + 8 + 8
    assert max(after - before for before, after in itertools.pairwise(drawn)) <= 8 + 8  # two where a part begins


class Failing(tud.Sampler):
    """Gives 20 samples, then raises an error."""

    def __init__(self, error):
        self.error = error

    def __iter__(self):
        yield from range(20)
        raise self.error

    def __len__(self):
        return 40


@pytest.mark.parametrize("part", [4, 8, 12, 20, 64])
def test_a_sampler_that_fails_loses_no_batch_before(tree, monkeypatch, part):
    monkeypatch.setattr(samplers, "_PART", part)
    monkeypatch.setattr(samplers, "_AT_ONCE", 4)
    epoch, got = iter(loader(tree, sampler=Failing(ValueError("no more luck")))), []
    with pytest.raises(ValueError, match="no more luck"):
        for batch, _ in epoch:
            got += [image.numpy().tobytes() for image in batch]
    assert got == rows(loader(tree, sampler=range(20)))
    with pytest.raises(RuntimeError, match="the sampler failed earlier in this epoch"):
        next(epoch)  # instead of the end of an epoch


def test_an_interrupted_sampler_does_not_end_the_epoch(tree, monkeypatch):
    monkeypatch.setattr(samplers, "_PART", 8)
    monkeypatch.setattr(samplers, "_AT_ONCE", 4)
    epoch, got = iter(loader(tree, sampler=Failing(KeyboardInterrupt()))), 0
    with pytest.raises(KeyboardInterrupt):
        for _ in epoch:
            got += 1
    with pytest.raises(RuntimeError, match="the sampler was interrupted"):
        for _ in epoch:
            got += 1
    assert got == 5


def test_mixup_goes_on_counting_batches(tree, monkeypatch):
    def weights():
        mixed = loader(tree, sampler=[0, 9, 0, 9] * 10, batch_transforms=T.MixUp(alpha=1.0, num_classes=3))
        return [labels[0].max().item() for _, labels in mixed]

    whole = weights()
    assert len(set(whole)) == 10
    monkeypatch.setattr(samplers, "_PART", 8)
    assert weights() == whole


def test_ranks_with_the_same_samples_augment_them_differently(tree, tmp_path):
    """A sampler that spreads repeats of a sample over the ranks, each of which sees it once."""
    code = """
    import sys, torch, stoker
    from stoker import transforms as T
    tree, store, rank, out = sys.argv[1:]
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=int(rank), world_size=2)
    data = stoker.datasets.ImageFolder(tree, T.Compose([T.RandomResizedCrop(12), T.ToTensor()]))
    shared = stoker.DataLoader(data, 4, seed=3, sampler=range(8))
    torch.save([batch.clone() for batch, _ in shared], out)
    split = torch.utils.data.DistributedSampler(data, shuffle=False)
    torch.save([batch.clone() for batch, _ in stoker.DataLoader(data, 4, seed=3, sampler=split)], out + ".split")
    torch.distributed.barrier()    # a rank that leaves at once fails the other one, which may still be connecting
    """
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = [
            pool.submit(run_python, code, tree, tmp_path / "store", rank, tmp_path / f"rank{rank}", timeout=120)
            for rank in range(2)
        ]
        for job in jobs:
            assert job.result().returncode == 0, job.result().stderr
    first, second = (torch.cat(torch.load(tmp_path / f"rank{rank}")) for rank in range(2))
    assert not any(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert [image.numpy().tobytes() for image in first] == rows(loader(tree, sampler=range(8)))
    split = torch.cat(torch.load(tmp_path / "rank1.split"))
    alone = rows(loader(tree, sampler=range(23)))
    assert [image.numpy().tobytes() for image in split[:11]] == alone[1::2]
