# SPDX-License-Identifier: Apache-2.0
"""The contract of torch's DataLoader with worker processes, and of streams: see test_contract.py."""

from __future__ import annotations

import multiprocessing
import random
import time

import numpy as np
import pytest
import torch
import torch.utils.data as tud
from contract import Numbers, Stream, check, labels, name_of_type


class Informed(tud.Dataset):
    """What a worker knows of itself."""

    def __len__(self):
        return 6

    def __getitem__(self, index):
        info = tud.get_worker_info()
        if info is None:
            return "none"
        try:
            info.id = 3
            refused = ""
        except (AttributeError, RuntimeError) as error:  # by the version of torch
            refused = f"{type(error)} {error}"
        draws = random.random(), np.random.rand(), torch.rand(()).item()
        names = [name for name in dir(info) if not name.startswith("_")]
        here = torch.initial_seed(), torch.get_num_threads(), getattr(info.dataset, "told", None)
        return str((info.id, info.num_workers, info.seed, type(info.dataset).__name__, refused, draws, names, here))


def tell(worker):
    tud.get_worker_info().dataset.told = f"worker {worker}"
    random.seed(worker)


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("init", [None, tell])
def test_worker_info_seeds_and_worker_init_fn(workers, init):
    got = check(lambda kind: list(kind(Informed(), batch_size=2, num_workers=workers, worker_init_fn=init)))
    assert got[0] == "returned" and tud.get_worker_info() is None


def refuse(worker):
    raise LookupError(f"no worker {worker}")


def test_a_worker_init_fn_that_fails():
    check(lambda kind: list(kind(Numbers(), num_workers=1, worker_init_fn=refuse)))
    check(lambda kind: list(kind(Numbers(), num_workers=1, worker_init_fn=5)))
    check(lambda kind: len(list(kind(Numbers(), num_workers=0, worker_init_fn=refuse))))


@pytest.mark.parametrize("context", [None, "fork", multiprocessing.get_context("fork")], ids=name_of_type)
def test_multiprocessing_contexts(context):
    check(lambda kind: labels(kind(Numbers(), num_workers=2, multiprocessing_context=context)))


class Slow(tud.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        time.sleep(2.5 if index else 0)
        return index


def test_timeouts():
    check(lambda kind: list(kind(Slow(), num_workers=1, timeout=1)))
    check(lambda kind: list(kind(Numbers(), num_workers=1, timeout=60.5)))


@pytest.mark.parametrize("ahead", [1, 5, 40])
def test_prefetch_factors(ahead):
    check(lambda kind: labels(kind(Numbers(), batch_size=2, num_workers=2, prefetch_factor=ahead)))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # torch's iterator, when it is dropped
def test_a_prefetch_factor_of_none_at_all():
    check(lambda kind: labels(kind(Numbers(), num_workers=2, prefetch_factor=0)))


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("data", [Numbers(), Stream(), Informed()], ids=name_of_type)
def test_persistent_workers(data, persistent):
    def do(kind):
        loader = kind(data, batch_size=2, num_workers=2, persistent_workers=persistent)
        first = iter(loader)
        pids = [worker.pid for worker in first._workers]
        one = list(first)
        again = iter(loader)
        same = [worker.pid for worker in again._workers] == pids
        return one, first is again, same, list(again), list(again)

    check(do)


@pytest.mark.parametrize("data", [Numbers(), Stream()], ids=name_of_type)
@pytest.mark.parametrize("workers", [0, 2])
def test_two_iterators_at_once(data, workers):
    def do(kind):
        loader = kind(data, batch_size=2, num_workers=workers)
        one, other = iter(loader), iter(loader)
        return [next(one), next(other), next(one)], list(other), list(one)

    check(do)


def test_a_persistent_iterator_begins_anew():
    def do(kind):
        loader = kind(Numbers(), batch_size=2, num_workers=2, persistent_workers=True)
        one = iter(loader)
        out = [next(one), next(one)]
        return out, iter(loader) is one, list(one)

    check(do)


@pytest.mark.parametrize("data", [Numbers(), Stream()], ids=name_of_type)
def test_without_order_everything_comes(data):
    def do(kind):
        return sorted(str(batch) for batch in kind(data, batch_size=2, num_workers=2, in_order=False))

    check(do)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("device", ["", "cuda"])
def test_pin_memory_without_a_gpu(workers, device):
    if torch.accelerator.is_available():
        pytest.skip("there is one")
    check(lambda kind: list(kind(Numbers(), pin_memory=True, pin_memory_device=device, num_workers=workers)))


def test_more_workers_than_processors():
    check(lambda kind: kind(Numbers(), num_workers=999).num_workers)


@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("batch_size", [None, 1, 3, 20])
@pytest.mark.parametrize("workers", [0, 2])
def test_streams(batch_size, drop_last, workers):
    check(lambda kind: list(kind(Stream(), batch_size=batch_size, drop_last=drop_last, num_workers=workers)))
