# SPDX-License-Identifier: Apache-2.0
"""Every format in stoker.DataLoader and in torch's: order, ranks, threads, resume, fork and pickle."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import stoker
import torch
from sources import COUNT, FORMATS, HEIGHT, WIDTH, label, order_of, pixels
from stoker import datasets
from stoker import transforms as T

CHANCE = T.Compose([T.RandomCrop(16), T.RandomHorizontalFlip(), T.ToTensor()])


@pytest.fixture(scope="module", params=list(FORMATS))
def made(request, tmp_path_factory):
    """How to open one format's file, and which sample is where in it."""
    make, open_it = FORMATS[request.param]
    path = make(tmp_path_factory.mktemp(request.param))
    return (lambda transform=None: open_it(path, transform)), order_of(request.param)


def run(loader):
    """What an epoch gives: images and labels, one behind the other."""
    batches = list(loader)
    return torch.cat([images for images, _ in batches]), torch.cat([labels for _, labels in batches])


def same(one, other):
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def as_bytes(images):
    return sorted(image.numpy().tobytes() for image in images)


def test_samples_in_order(made):
    open_it, order = made
    data = open_it()
    assert len(data) == COUNT
    for place, i in enumerate(order):
        image, number = data[place]
        assert type(number) is int and number == label(i)
        assert image.dtype == np.uint8 and np.array_equal(image, pixels(i))
    with pytest.raises(IndexError):
        data[COUNT]
    images, labels = run(stoker.DataLoader(data, batch_size=6))
    assert labels.dtype == torch.int64 and labels.tolist() == [label(i) for i in order]
    assert images.shape == (COUNT, 3, HEIGHT, WIDTH)
    for place, i in enumerate(order):
        assert np.array_equal(images[place].permute(1, 2, 0).numpy(), pixels(i))


def test_shuffle_covers_all_once(made):
    data = made[0](T.ToTensor())
    plain, _ = run(stoker.DataLoader(data, batch_size=6))
    loader = stoker.DataLoader(data, batch_size=6, shuffle=True, seed=3)
    first, labels = run(loader)
    second, _ = run(loader)
    assert as_bytes(first) == as_bytes(plain) == as_bytes(second)
    assert not torch.equal(first, plain) and not torch.equal(first, second)
    lookup = {pixels(i).tobytes(): label(i) for i in range(COUNT)}
    back = (first * 255).round().to(torch.uint8).permute(0, 2, 3, 1).contiguous()
    assert [lookup[image.numpy().tobytes()] for image in back] == labels.tolist()


def test_ranks_are_disjoint_and_whole(made):
    data = made[0](T.ToTensor())
    parts = [
        run(stoker.DataLoader(data, batch_size=4, shuffle=True, seed=1, rank=rank, world_size=2))[0]
        for rank in range(2)
    ]
    seen = as_bytes(torch.cat(parts))
    assert set(seen) == set(as_bytes(run(stoker.DataLoader(data, batch_size=6))[0]))
    assert len(seen) == COUNT + 1  # one comes twice, so that both ranks have as many


def test_threads_make_no_difference(made):
    data = made[0](CHANCE)
    runs = [
        run(stoker.DataLoader(data, batch_size=5, shuffle=True, seed=2, num_workers=workers))
        for workers in (0, 1, 3)
    ]
    assert same(runs[0], runs[1]) and same(runs[0], runs[2])


def test_resume(made):
    data = made[0](CHANCE)
    whole = list(stoker.DataLoader(data, batch_size=4, shuffle=True, seed=5))
    loader = stoker.DataLoader(data, batch_size=4, shuffle=True, seed=5)
    batches = iter(loader)
    for _ in range(2):
        next(batches)
    state = loader.state_dict()
    other = stoker.DataLoader(pickle.loads(pickle.dumps(data)), batch_size=4, shuffle=True, seed=5)
    other.load_state_dict(state)
    rest = list(other)
    assert len(rest) == len(whole) - 2
    assert all(same(a, b) for a, b in zip(rest, whole[2:], strict=True))


def test_in_torch_loader_after_fork(made):
    open_it, order = made
    data = open_it(T.ToTensor())
    data[0]  # what the parent has open already must not disturb the children
    loader = torch.utils.data.DataLoader(
        data, batch_size=5, num_workers=2, multiprocessing_context="fork"
    )
    images, labels = run(loader)
    assert labels.tolist() == [label(i) for i in order]
    assert torch.equal(images, run(stoker.DataLoader(data, batch_size=5))[0])
    assert torch.equal(data[3][0], images[3])


def test_pickles(made):
    data = made[0](T.ToTensor())
    again = pickle.loads(pickle.dumps(data))
    assert len(again) == COUNT
    assert torch.equal(again[5][0], data[5][0]) and again[5][1] == data[5][1]


def test_torch_subset(made):
    open_it, order = made
    chosen = torch.utils.data.Subset(open_it(T.ToTensor()), [7, 0, 22])
    _, labels = run(stoker.DataLoader(chosen, batch_size=2))
    assert labels.tolist() == [label(order[i]) for i in (7, 0, 22)]


def test_spawned_workers(tmp_path):
    make, open_it = FORMATS["tar"]
    data = open_it(make(tmp_path), T.ToTensor())
    loader = torch.utils.data.DataLoader(
        data, batch_size=8, num_workers=1, multiprocessing_context="spawn"
    )
    assert run(loader)[1].tolist() == [label(i) for i in range(COUNT)]


# ---- made of others ----


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two datasets of different formats with the same fields."""
    return [
        FORMATS[kind][1](FORMATS[kind][0](tmp_path_factory.mktemp(kind)), CHANCE)
        for kind in ("tar", "hdf5")
    ]


def test_concat(pair):
    data = datasets.Concat([*pair, pair[0]])
    assert len(data) == 3 * COUNT
    _, labels = run(stoker.DataLoader(data, batch_size=10))
    assert labels.tolist() == [label(i) for i in range(COUNT)] * 3
    assert data[COUNT + 2][1] == label(2) and data[-1][1] == label(COUNT - 1)


def test_subset(pair):
    data = datasets.Subset(datasets.Concat(pair), [30, 3, 3, -1])
    assert [number for _, number in data] == [label(i) for i in (7, 3, 3, COUNT - 1)]
    with pytest.raises(IndexError):
        datasets.Subset(pair[0], [COUNT])


def test_mix_is_deterministic_and_resumable(pair):
    data = datasets.Mix(pair, [1, 3], seed=4)
    assert len(data) >= 2 * COUNT
    options = {"batch_size": 7, "shuffle": True, "seed": 9}
    whole = list(stoker.DataLoader(data, **options))
    again = datasets.Mix(pair, [1, 3], seed=4)
    assert all(same(a, b) for a, b in zip(whole, stoker.DataLoader(again, **options), strict=True))
    loader = stoker.DataLoader(again, **options)
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    other = stoker.DataLoader(pickle.loads(pickle.dumps(data)), **options)
    other.load_state_dict(loader.state_dict())
    assert all(same(a, b) for a, b in zip(whole[3:], other, strict=True))
    plain = run(stoker.DataLoader(data, batch_size=7))[1]
    differs = run(stoker.DataLoader(datasets.Mix(pair, [1, 3], seed=5), batch_size=7))[1]
    assert plain.tolist() != differs.tolist()


def test_mix_gives_each_its_share():
    numbers = [datasets.ImageBytes([b""] * 40, [k] * 40) for k in range(2)]
    data = datasets.Mix(numbers, [1, 3], samples=100)
    labels = data.targets
    assert len(labels) == 100 and abs(sum(labels) - 75) <= 1


def test_compounds_need_one_transform(pair):
    plain = datasets.ImageBytes([b""], transform=T.ToTensor())
    with pytest.raises(ValueError, match="different transforms"):
        datasets.Concat([pair[0], plain])
    assert datasets.Concat([pair[0], plain], transform=T.ToTensor()).transform is not None
    with pytest.raises(TypeError, match="stoker.datasets"):
        datasets.Concat([[1, 2]])
    with pytest.raises(ValueError, match="1 weight for 2 datasets"):
        datasets.Mix(pair, [1])


def test_parts_in_memory_are_kept(tree):
    image = next(tree.glob("*/*.png")).read_bytes()
    data = datasets.Concat([datasets.ImageBytes([bytearray(image)], [k]) for k in range(3)])
    handle = data._engine()
    del data
    loader = stoker._ext.Loader(handle, stoker._ext.Pipeline(""), workers=0, batch_size=3)
    loader.start()
    assert np.asarray(loader.next().labels).tolist() == [0, 1, 2]
