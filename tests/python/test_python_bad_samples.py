# SPDX-License-Identifier: Apache-2.0
"""Datasets in Python whose samples fail, or kill their worker."""

from __future__ import annotations

import os
import signal
import warnings

import numpy as np
import pytest
import stoker
import torch
import torch.utils.data as tud
from loading import Squares, batches

warnings.filterwarnings("ignore", message="This DataLoader will create")


class Bad(Squares):
    def __init__(self, what):
        self.what = what

    def __getitem__(self, index):
        if index in (6, 23):
            self.what(index)
        return super().__getitem__(index)


def raising(index):
    raise OSError(f"no sample {index}")


def dying(index):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("workers", [0, 2])
def test_samples_that_fail_are_replaced(workers):
    loader = stoker.DataLoader(Bad(raising), 4, num_workers=workers, on_error="skip")
    rows = [row[0] for batch in batches(loader) for row in batch]
    expected = list(range(50))
    expected[6], expected[23] = 7, 24
    assert rows == expected
    assert [(b["sample"], b["status"], b["epoch"]) for b in loader.bad_samples()] == [
        (6, "OSError", 0),
        (23, "OSError", 0),
    ]
    assert "no sample 6" in loader.bad_samples()[0]["reason"]
    limited = stoker.DataLoader(Bad(raising), 4, num_workers=workers, on_error="skip", error_limit=1)
    with pytest.raises(RuntimeError, match="2 samples failed in this epoch, more than error_limit=1"):
        list(limited)
    limited = stoker.DataLoader(Bad(raising), 4, num_workers=workers, on_error="skip", error_limit=0)
    with pytest.raises(RuntimeError, match="1 sample failed in this epoch, more than error_limit=0"):
        list(limited)


def test_workers_that_die_are_replaced_or_named():
    loader = stoker.DataLoader(Bad(dying), 4, num_workers=2, on_error="skip")
    rows = [row[0] for batch in batches(loader) for row in batch]
    expected = list(range(50))
    expected[6], expected[23] = 7, 24
    assert rows == expected
    assert [(b["sample"], b["status"]) for b in loader.bad_samples()] == [(6, "killed"), (23, "killed")]
    with pytest.raises(RuntimeError, match=r"killed by signal: Killed.*batch 1, sample 6"):
        list(stoker.DataLoader(Bad(dying), 4, num_workers=2))


class AtOnce(Bad):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


@pytest.mark.parametrize("what", [raising, dying])
@pytest.mark.parametrize("wrap", [lambda data: tud.Subset(data, range(50)), lambda data: data])
@pytest.mark.parametrize("kind", [Bad, AtOnce])
@pytest.mark.parametrize("index", [int, np.int64, torch.tensor])
def test_samples_are_replaced_whatever_fetches_them(what, wrap, kind, index):
    sampler = [index(n) for n in range(50)]
    loader = stoker.DataLoader(wrap(kind(what)), 4, sampler=sampler, num_workers=2, on_error="skip")
    rows = [row[0] for batch in batches(loader) for row in batch]
    expected = list(range(50))
    expected[6], expected[23] = 7, 24
    assert rows == expected
    assert [bad["sample"] for bad in loader.bad_samples()] == [6, 23]


def test_a_worker_that_dies_in_a_subset_names_its_sample():
    with pytest.raises(RuntimeError, match=r"batch 1, sample 6\."):
        list(stoker.DataLoader(tud.Subset(Bad(dying), range(50)), 4, num_workers=2))
    with pytest.raises(RuntimeError, match=r"batch 1, one of the samples \[4, 5, 6, 7\]\."):
        list(stoker.DataLoader(AtOnce(dying), 4, num_workers=2))


def test_neighbours_that_kill_their_worker_are_replaced():
    class Three(Squares):
        def __getitem__(self, index):
            if index in (6, 7, 8):
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__getitem__(index)

    loader = stoker.DataLoader(Three(), 4, num_workers=1, on_error="skip")
    rows = [row[0] for batch in batches(loader) for row in batch]
    assert rows == [*range(6), 9, 9, 9, *range(9, 50)]
    assert [bad["sample"] for bad in loader.bad_samples()] == [6, 7, 8]


def test_the_state_after_an_error_is_that_of_the_batch_that_failed():
    loader = stoker.DataLoader(Bad(raising), 4, num_workers=2)
    iterator = iter(loader)
    next(iterator)
    with pytest.raises(OSError, match="no sample 6"):
        next(iterator)
    state = loader.state_dict()
    assert next(iterator)[0].tolist() == [8, 64]
    mended = stoker.DataLoader(Squares(), 4, num_workers=2)
    mended.load_state_dict(state)
    assert next(iter(mended))[:, 0].tolist() == [4, 5, 6, 7]


def test_a_worker_that_dies_between_two_epochs_is_reported():
    loader = stoker.DataLoader(Squares(), 10, num_workers=2, persistent_workers=True)
    assert len(batches(loader)) == 5
    os.kill(loader._iterator._workers[1].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match="killed by signal: Killed.*next epoch"):
        iter(loader)


def leaves(worker):
    os._exit(3)


def test_a_worker_that_dies_outside_of_samples_blames_none():
    """In worker_init_fn, for instance: no good sample may be skipped for it."""
    loader = stoker.DataLoader(Squares(), 4, num_workers=2, on_error="skip", worker_init_fn=leaves)
    with pytest.raises(RuntimeError, match=r"exited unexpectedly with exit code 3\. Details"):
        list(loader)
    assert loader.bad_samples() == []
