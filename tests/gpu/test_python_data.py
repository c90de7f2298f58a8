# SPDX-License-Identifier: Apache-2.0
"""Datasets written in Python on their way to a GPU: pinned where the workers made them, and never written over
while a copy reads them."""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest
import stoker
import torch
import torch.utils.data as tud

warnings.filterwarnings("ignore", message="This DataLoader will create")


class Numbers(tud.Dataset):
    """Samples of which every element is the index, of 256 KiB."""

    def __init__(self, count=256):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return {"data": torch.full((1 << 16,), index, dtype=torch.int32), "index": index, "name": f"n{index}"}


def loader(**options):
    given = {"batch_size": 16, "num_workers": 2, **options}
    return stoker.DataLoader(Numbers(), **given)


def check(batch, number):
    expected = torch.arange(number * 16, number * 16 + 16)
    assert torch.equal(batch["index"].cpu(), expected)
    assert torch.equal(batch["data"].cpu(), expected.int()[:, None].expand(16, 1 << 16))
    assert batch["name"] == [f"n{i}" for i in expected.tolist()]


@pytest.mark.parametrize("workers", [0, 2])
def test_pinned(workers):
    for number, batch in enumerate(loader(pin_memory=True, num_workers=workers)):
        assert batch["data"].is_pinned() and batch["index"].is_pinned()
        check(batch, number)


def test_pinned_without_a_copy():
    made = loader(pin_memory=True, persistent_workers=True)
    for batch in made:
        mapped = [line.split()[0] for line in open("/proc/self/maps") if "memfd:stoker-exchange" in line]
        ranges = [[int(end, 16) for end in both.split("-")] for both in mapped]
        assert any(begin <= batch["data"].data_ptr() < end for begin, end in ranges)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("persistent", [False, True])
def test_device(workers, persistent):
    made = loader(device="cuda", num_workers=workers, persistent_workers=persistent and workers > 0)
    for _ in range(3):
        for number, batch in enumerate(made):
            assert batch["data"].device == torch.device("cuda", 0)
            check(batch, number)


@pytest.mark.parametrize("options", [{"pin_memory": True}, {"device": "cuda"}])
def test_nothing_is_written_over_while_it_is_read(options):
    """The stream is kept so busy that every copy waits; the batches are let go at once."""
    made, sums = [], []
    data = loader(**options, prefetch_factor=1)
    for _ in range(2):
        for batch in data:
            torch.cuda._sleep(20_000_000)
            moved = batch["data"].to("cuda", non_blocking=True)
            made.append(batch["index"].tolist())
            del batch
            sums.append((moved.min(dim=1).values, moved.max(dim=1).values))
            del moved
    for indices, (low, high) in zip(made, sums, strict=True):
        assert low.tolist() == indices == high.tolist()


def test_tensors_that_go_in_two_streams_while_a_third_stays():
    """Each part of a batch is copied late in a side stream of its own, and dropped there; what is left of the batch goes
    later, in the main stream, which waits for neither."""

    class Triples(tud.Dataset):
        def __len__(self):
            return 256

        def __getitem__(self, index):
            return *(torch.full((1 << 15,), index, dtype=torch.int32) for _ in range(2)), index

    sides, sums, third = [torch.cuda.Stream(), torch.cuda.Stream()], [], None
    data = stoker.DataLoader(Triples(), 16, num_workers=2, pin_memory=True, prefetch_factor=1)
    for _ in range(3):
        for batch in data:
            indices, copies = batch[2].tolist(), []
            for side in sides:
                with torch.cuda.stream(side):
                    torch.cuda._sleep(20_000_000)
                    moved = batch[0].to("cuda", non_blocking=True)
                    del batch[0]
                    copies += [moved.min(dim=1).values, moved.max(dim=1).values]
                    del moved
            third = batch  # what is left of the one before goes here
            del batch
            sums.append((indices, copies))
    del third
    torch.cuda.synchronize()  # the main stream, which reads the sums, does not wait for the sides
    for indices, copies in sums:
        assert all(copy.tolist() == indices for copy in copies)


def test_batches_that_are_kept():
    kept = list(loader(pin_memory=True))
    for number, batch in enumerate(kept):
        check(batch, number)
    kept = list(loader(device="cuda"))
    for number, batch in enumerate(kept):
        check(batch, number)


def test_batches_that_grow():
    class Growing(tud.Dataset):
        def __len__(self):
            return 24

        def __getitem__(self, index):
            return torch.full((1 << (10 + index // 2),), index)

    for index, batch in enumerate(stoker.DataLoader(Growing(), None, num_workers=2, pin_memory=True)):
        assert batch.is_pinned() and bool((batch == index).all()) and len(batch) == 1 << (10 + index // 2)


def test_many_loaders_leave_nothing_registered():
    for _ in range(20):
        last = None
        for number, batch in enumerate(loader(pin_memory=True)):
            check(batch, number)
            last = batch
        assert last["data"].is_pinned()
        del last, batch
        gc.collect()


def test_arrays_and_structures():
    class Pairs(tud.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, index):
            return np.full(3, index), [torch.tensor(index), {"deep": torch.tensor([index])}]

    for arrays, (numbers, deep) in stoker.DataLoader(Pairs(), 4, num_workers=1, device="cuda"):
        assert arrays.is_cuda and numbers.is_cuda and deep["deep"].is_cuda


def test_without_a_gpu_it_says_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(RuntimeError, match="no GPU"):
        iter(loader(device="cuda"))
