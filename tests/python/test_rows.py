# SPDX-License-Identifier: Apache-2.0
"""Large tensors of samples are put into a worker's slot one by one: the batches are default_collate's."""

from __future__ import annotations

import collections

import pytest
import stoker
import torch
import torch.utils.data as tud

Pair = collections.namedtuple("Pair", ["left", "right"])
BIG = (3, 100, 90)  # more bytes than are stacked afterwards


def big(number, dtype=torch.float32):
    return torch.arange(27000).reshape(BIG).add(number).to(dtype)


class Samples(tud.Dataset):
    def __init__(self, make, count=11):
        self.make = make
        self.count = count
        self.kept = {}

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return self.make(index)


class Stream(tud.IterableDataset):
    def __iter__(self):
        return ((big(number), number) for number in range(11))


ONE = big(7)
KINDS = {
    "tensor": big,
    "pair": lambda k: (big(k), k),
    "list": lambda k: [big(k), big(-k), k / 7],
    "dict": lambda k: {"view": big(k), "other": (big(k, torch.uint8), {"deep": big(k, torch.float64)})},
    "named": lambda k: Pair(big(k), big(2 * k)),
    "permuted": lambda k: big(k).permute(1, 2, 0),
    "part": lambda k: big(k)[:, 1:, ::2],
    "the same one": lambda k: (ONE, ONE),
    "small among large": lambda k: (torch.full((2, 2), k), big(k)),
    "sometimes a number": lambda k: {"view": big(k), "maybe": torch.zeros(3)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_those_of_torch(kind):
    data = Samples(KINDS[kind])
    theirs = list(tud.DataLoader(data, batch_size=4))
    ours = list(stoker.DataLoader(data, batch_size=4, num_workers=2))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


def test_the_end_of_a_stream_and_batches_of_one_sample():
    theirs = list(tud.DataLoader(Stream(), batch_size=4))
    for one, other in zip(stoker.DataLoader(Stream(), batch_size=4, num_workers=1), theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    data = Samples(KINDS["pair"])
    for one, other in zip(stoker.DataLoader(data, None, num_workers=1), tud.DataLoader(data, None), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


@pytest.mark.parametrize(
    "make",
    [
        lambda k: (big(k) if k != 2 else big(k)[:, :50], k),
        lambda k: (big(k) if k else k, k),
        lambda k: (big(k), k) if k != 2 else (big(k),),
        lambda k: {"a": big(k)} if k != 3 else {"b": big(k)},
    ],
)
def test_samples_that_differ_raise_what_torch_raises(make):
    def ending(loader):
        with pytest.raises(Exception) as caught:
            list(loader)
        return caught.type, str(caught.value).splitlines()[-1]

    data = Samples(make)
    theirs = ending(tud.DataLoader(data, batch_size=4, num_workers=1))
    assert ending(stoker.DataLoader(data, batch_size=4, num_workers=1)) == theirs


def test_types_that_differ_are_stacked_as_torch_does():
    data = Samples(lambda k: big(k, torch.float64 if k == 2 else torch.float32))
    theirs = list(tud.DataLoader(data, batch_size=4, num_workers=1))
    for one, other in zip(stoker.DataLoader(data, batch_size=4, num_workers=1), theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)


class Own(torch.Tensor):
    pass


def test_tensors_of_a_class_of_ones_own_are_torchs_to_stack():
    data = Samples(lambda k: big(k).as_subclass(Own))
    theirs = list(tud.DataLoader(data, batch_size=4, num_workers=1))
    for one, other in zip(stoker.DataLoader(data, batch_size=4, num_workers=1), theirs, strict=True):
        assert type(one) is type(other) and torch.equal(one, other)


def test_samples_that_a_data_set_keeps_stay_its_own():
    """Their memory is never the slot's, which the next batch is written to."""

    class Keeps(Samples):
        def __getitem__(self, index):
            if index not in self.kept:
                self.kept[index] = [big(index), index]
            return self.kept[index]

    loader = stoker.DataLoader(Keeps(None), batch_size=4, num_workers=1, persistent_workers=True)
    for _ in range(3):
        for images, numbers in loader:
            for image, number in zip(images, numbers.tolist(), strict=True):
                assert torch.equal(image, big(number))


def test_a_collate_fn_gets_the_samples_as_they_are():
    def collate(samples):
        return [type(sample[0]).__name__ + str(sample[0].data_ptr() % 1) for sample in samples], len(samples)

    loader = stoker.DataLoader(Samples(KINDS["pair"]), batch_size=11, num_workers=1, collate_fn=collate)
    assert list(loader) == [(["Tensor0"] * 11, 11)]
