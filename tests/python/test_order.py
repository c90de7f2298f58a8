# SPDX-License-Identifier: Apache-2.0
"""order="torch" is torch's order, asked of torch itself."""

from array import array

import pytest

torch = pytest.importorskip("torch")

from torch.utils.data import DistributedSampler, RandomSampler, SequentialSampler  # noqa: E402

from stoker._ext import order_indices  # noqa: E402

KINDS = ["sequential", "shuffle", "torch"]


def indices(count, **options):
    return memoryview(order_indices(count, **options)).tolist()


def generator(seed):
    return torch.Generator().manual_seed(seed)


# 624 is the number of words in the generator's state.
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 10, 100, 623, 624, 625, 1249, 4096, 50001])
def test_randperm(count):
    for seed in [0, 1, 42, 12345, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40 + 3, 2**63 - 1, 2**64 - 1]:
        want = torch.randperm(count, generator=generator(seed)).tolist()
        assert indices(count, kind="torch", seed=seed) == want


def test_randperm_of_a_million():
    got = torch.tensor(indices(1_281_167, kind="torch", seed=7))
    assert torch.equal(got, torch.randperm(1_281_167, generator=generator(7)))


@pytest.mark.parametrize("count", [1, 3, 10, 1000])
def test_random_sampler(count):
    for seed in range(5):
        want = list(RandomSampler(range(count), generator=generator(seed)))
        assert indices(count, kind="torch", seed=seed) == want


@pytest.mark.parametrize("count, draws", [(10, 3), (10, 10), (10, 11), (10, 20), (7, 50), (1, 4), (999, 2500)])
def test_random_sampler_num_samples(count, draws):
    want = list(RandomSampler(range(count), num_samples=draws, generator=generator(3)))
    assert indices(count, kind="torch", seed=3, draws=draws) == want


def distributed(count, rank, world, shuffle, seed, epoch, drop):
    sampler = DistributedSampler(
        range(count), num_replicas=world, rank=rank, shuffle=shuffle, seed=seed, drop_last=drop
    )
    sampler.set_epoch(epoch)
    return list(sampler)


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("world", [1, 2, 3, 7, 8, 64])
def test_distributed_sampler(world, drop):
    for count in [1, 2, 6, 7, 8, 9, 63, 64, 65, 100, 1000]:
        for seed, epoch in [(0, 0), (0, 1), (42, 5), (2**31, 3), (123456789, 90)]:
            for rank in {0, world // 2, world - 1}:
                share = {"rank": rank, "world": world, "epoch": epoch, "drop_uneven": drop}
                want = distributed(count, rank, world, True, seed, epoch, drop)
                assert indices(count, kind="torch", seed=seed, **share) == want
                want = distributed(count, rank, world, False, seed, epoch, drop)
                assert indices(count, kind="sequential", **share) == want


def test_epoch_fixed():
    first = indices(100, kind="torch", seed=9, epoch=0)
    assert indices(100, kind="torch", seed=9, epoch=4, epoch_fixed=True) == first
    assert indices(100, kind="torch", seed=9, epoch=4) != first


def test_sequential():
    assert indices(17, kind="sequential") == list(SequentialSampler(range(17)))


@pytest.mark.parametrize("kind", KINDS)
def test_ranks_are_disjoint_and_whole(kind):
    shares = [indices(1200, kind=kind, seed=1, rank=rank, world=8) for rank in range(8)]
    assert sorted(sum(shares, [])) == list(range(1200))
    whole = indices(1200, kind=kind, seed=1)
    assert [shares[i % 8][i // 8] for i in range(1200)] == whole


def test_given_indices_are_shared_out_as_any_other():
    given = torch.randint(0, 50, (33,), generator=generator(0)).tolist()
    for rank in range(4):
        sampler = DistributedSampler(given, num_replicas=4, rank=rank, shuffle=False)
        got = indices(50, kind="given", indices=array("q", given), rank=rank, world=4)
        assert got == [given[i] for i in sampler]


def test_weighted():
    weights = array("d", [0, 1, 3, 0, 4])
    drawn = torch.tensor(indices(5, kind="weighted", weights=weights, draws=80_000, seed=1))
    counts = torch.bincount(drawn, minlength=5).tolist()
    assert counts[0] == counts[3] == 0
    for count, expected in zip(counts, [0, 10_000, 30_000, 0, 40_000], strict=True):
        assert abs(count - expected) < 600  # about five standard deviations
    again = indices(5, kind="weighted", weights=weights, draws=80_000, seed=1, epoch=1)
    assert again != drawn.tolist()


@pytest.mark.parametrize(
    "options, said",
    [
        ({"kind": "shuffle", "rank": 3, "world": 3}, "rank 3 is out of range"),
        ({"kind": "weighted"}, "weights"),
        ({"kind": "weighted", "weights": array("d", [1, float("nan"), 1])}, "position 1"),
        ({"kind": "given", "indices": array("q", [0, 2, 3])}, "position 2"),
        ({"kind": "given", "indices": array("q", [0, -1])}, "position 1"),
        ({"kind": "torch", "indices": array("q", [0])}, "only with the given order"),
    ],
)
def test_refusals(options, said):
    with pytest.raises(ValueError, match=said):
        indices(3, **options)


def test_empty():
    for kind in [*KINDS, "given"]:
        assert indices(0, kind=kind, rank=1, world=4) == []
