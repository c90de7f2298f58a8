# SPDX-License-Identifier: Apache-2.0
"""Datasets written in Python: the same batches as from torch's DataLoader, in processes of our own."""

from __future__ import annotations

import collections
import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
import stoker
import torch
import torch.utils.data as tud
from conftest import run_python

Point = collections.namedtuple("Point", ["x", "y"])


class Mixed(tud.Dataset):
    """A bit of everything that default_collate knows."""

    def __len__(self):
        return 37

    def __getitem__(self, index):
        return {
            "image": torch.full((3, 5, 4), index, dtype=torch.uint8),
            "wide": torch.arange(3000, dtype=torch.float32) + index,
            "array": np.full((2, 3), index, np.int16),
            "number": index,
            "real": index / 3,
            "text": f"sample {index}",
            "point": Point(index, torch.tensor([index])),
            "list": [index, torch.zeros(0)],
        }


class Drawn(tud.Dataset):
    """What the generators of a worker give."""

    def __len__(self):
        return 24

    def __getitem__(self, index):
        return torch.tensor([random.random(), np.random.rand(), torch.rand(()).item()], dtype=torch.float64)


class Counted(tud.IterableDataset):
    def __init__(self, sizes):
        self.sizes = sizes

    def __iter__(self):
        info = tud.get_worker_info()
        number = 0 if info is None else info.id
        return iter(range(100 * number, 100 * number + self.sizes[number]))


class Failing(tud.Dataset):
    def __init__(self, what):
        self.what = what

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 5:
            self.what()
        return torch.tensor(index)


def flat(value):
    if isinstance(value, torch.Tensor):
        return [("tensor", value.dtype, tuple(value.shape), value.tolist())]
    if isinstance(value, dict):
        return [(key, *flat(v)) for key, v in value.items()]
    if isinstance(value, (list, tuple)):
        return [(type(value).__name__, *(f for v in value for f in flat(v)))]
    return [value]


def same(ours, theirs):
    ours, theirs = [flat(batch) for batch in ours], [flat(batch) for batch in theirs]
    assert ours == theirs


def both(dataset, **options):
    """The batches of both loaders under the same seeds."""
    out = []
    for kind in (stoker.DataLoader, tud.DataLoader):
        torch.manual_seed(5)
        random.seed(5)
        np.random.seed(5)
        loader = kind(dataset, **options)
        out.append([batch for _ in range(2) for batch in loader])
    return out


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 5},
        {"batch_size": 5, "shuffle": True, "drop_last": True},
        {"batch_size": None},
        {"batch_sampler": [[3, 1], [4], [0, 36, 20]]},
        {"sampler": [7, 7, 3]},
    ],
    ids=lambda options: ",".join(options),
)
def test_batches_are_torchs(options, workers):
    same(*both(Mixed(), num_workers=workers, **options))


@pytest.mark.parametrize("persistent", [False, True])
def test_seeds_are_torchs(persistent):
    same(*both(Drawn(), batch_size=3, num_workers=2, persistent_workers=persistent, shuffle=True))
    same(*both(Drawn(), batch_size=3, num_workers=0, shuffle=True))


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("batch_size", [None, 4])
def test_iterable_data_sets_are_torchs(persistent, batch_size):
    options = {"num_workers": 3, "batch_size": batch_size, "persistent_workers": persistent}
    same(*both(Counted([3, 0, 17]), **options))
    same(*both(Counted([9]), num_workers=0, batch_size=batch_size))


def test_without_order_all_batches_come():
    loader = stoker.DataLoader(Mixed(), batch_size=4, num_workers=3, in_order=False)
    numbers = [n for batch in loader for n in batch["number"].tolist()]
    assert sorted(numbers) == list(range(37))


def double(samples):
    return torch.stack([s["wide"] for s in samples]) * 2, [s["text"] for s in samples], np.arange(5000)


def test_collate_functions_of_ones_own():
    ours, theirs = both(Mixed(), batch_size=6, num_workers=2, collate_fn=double)
    for a, b in zip(ours, theirs, strict=True):
        assert torch.equal(a[0], b[0]) and a[1] == b[1] and (a[2] == b[2]).all()
        a[2][0] = 1  # it can be written to


def strided(samples):
    image = torch.stack([s["image"] for s in samples])
    last = image.float().contiguous(memory_format=torch.channels_last)
    return {"last": last, "part": image[:, 1], "same": [last, last], "flipped": last.flip(0), "bits": image > 3}


def test_layouts_and_shared_tensors():
    for batch in stoker.DataLoader(Mixed(), batch_size=6, num_workers=1, collate_fn=strided):
        assert batch["last"].is_contiguous(memory_format=torch.channels_last)
        assert batch["same"][0] is batch["same"][1]
        assert torch.equal(batch["flipped"].flip(0), batch["last"])
        assert torch.equal(batch["part"].float(), batch["last"][:, 1]) and batch["bits"].dtype is torch.bool


def test_batches_that_are_kept_stay_as_they_are():
    """More than there are slots for; and memory is used again when they go."""
    loader = stoker.DataLoader(Mixed(), batch_size=1, num_workers=2, sampler=list(range(37)) * 4)
    kept = list(loader)
    assert [batch["number"].item() for batch in kept] == list(range(37)) * 4
    assert all((batch["wide"][0, 0] == batch["number"]).all() for batch in kept)
    seen = [batch["number"].item() for batch in loader]
    assert seen == list(range(37)) * 4
    assert all((batch["wide"][0, 0] == batch["number"]).all() for batch in kept)


def test_a_forked_child_keeps_its_batch():
    batches = iter(stoker.DataLoader(Mixed(), batch_size=4, num_workers=1, prefetch_factor=2))
    first = next(batches)
    expected = first["wide"].clone()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)  # until the parent has gone on
        os._exit(0 if torch.equal(first["wide"], expected) else 1)
    os.close(read)
    del first
    list(batches)
    os.close(write)
    assert os.waitpid(child, 0)[1] == 0


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


def raise_key():
    raise KeyError("gone")


def raise_odd():
    raise Odd(1, 2)


def raise_local():
    class Local(Exception):
        pass

    raise Local("inside")


@pytest.mark.parametrize(
    ("what", "kind", "text"),
    [(raise_key, KeyError, "gone"), (raise_odd, RuntimeError, "Odd"), (raise_local, RuntimeError, "inside")],
)
def test_exceptions_come_with_their_traceback(what, kind, text):
    batches = iter(stoker.DataLoader(Failing(what), batch_size=2, num_workers=2))
    assert next(batches).tolist() == [0, 1] and next(batches).tolist() == [2, 3]
    with pytest.raises(kind, match=text) as error:
        next(batches)
    assert "__getitem__" in str(error.value) and "worker process 0" in str(error.value)
    assert next(batches).tolist() == [6, 7]


def unpicklable(samples):
    return lambda: samples


def test_what_cannot_be_sent_is_an_error():
    batches = iter(stoker.DataLoader(Mixed(), batch_size=2, num_workers=1, collate_fn=unpicklable))
    with pytest.raises(Exception, match="pickle"):
        next(batches)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def leave():
    os._exit(3)


@pytest.mark.parametrize(("what", "text"), [(die, "killed by signal: Killed"), (leave, "exit code 3")])
def test_a_worker_that_dies_is_reported(what, text):
    batches = iter(stoker.DataLoader(Failing(what), batch_size=2, num_workers=2))
    start = time.monotonic()
    with pytest.raises(RuntimeError, match=text) as error:
        list(batches)
    assert "batch 2" in str(error.value) and time.monotonic() - start < 100


def sleep_long():
    time.sleep(600)


def test_timeout_and_close_do_not_wait():
    batches = iter(stoker.DataLoader(Failing(sleep_long), batch_size=2, num_workers=2, timeout=1))
    with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
        list(batches)
    workers = batches._workers
    start = time.monotonic()
    del batches
    gc.collect()
    assert time.monotonic() - start < 100 and not any(worker.is_alive() for worker in workers)


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_other_start_methods(start):
    out = run_python(
        """
        import sys
        import torch, stoker
        from torch.utils.data import TensorDataset

        if __name__ == "__main__":
            loader = stoker.DataLoader(TensorDataset(torch.arange(10)), batch_size=3, num_workers=2,
                                       multiprocessing_context=sys.argv[1])
            print([batch[0].tolist() for batch in loader])
    """,
        start,
        timeout=300,
    )
    assert "".join(out.stdout.split()) == "[[0,1,2],[3,4,5],[6,7,8],[9]]", out.stderr


def test_nothing_is_left_behind():
    def held():
        files = {name for name in os.listdir("/dev/shm") if name.startswith("torch_")}
        return len(os.listdir("/proc/self/fd")), files

    before = held()
    for _ in range(3):
        list(stoker.DataLoader(Mixed(), batch_size=4, num_workers=2))
    gc.collect()
    assert held() == before


class Gated(tud.Dataset):
    """Samples of 1 MiB, one for each time that the gate is opened."""

    def __init__(self, gate):
        self.gate = gate

    def __len__(self):
        return 40

    def __getitem__(self, index):
        self.gate.acquire()
        return torch.full((1 << 20,), index, dtype=torch.uint8)


def test_tasks_that_wait_take_no_memory():
    gate = multiprocessing.get_context("fork").Semaphore(0)
    batches = iter(stoker.DataLoader(Gated(gate), num_workers=1, prefetch_factor=10))
    for number in range(40):
        gate.release()
        batch = next(batches)
        assert batch.min() == batch.max() == number
    held = os.fstat(batches._exchange.fileno()).st_blocks * 512
    assert held < 4.5 * batch.nbytes  # one is being made, and two are the caller's while it asks for the next


def test_a_batch_in_a_worker_goes_with_its_last_name():
    """No cycle keeps it, and the memory of its samples, until the next collection."""

    class Ungathered(tud.Dataset):
        def __len__(self):
            return 12

        def __getitem__(self, index):
            gc.disable()
            kinds = [type(one).__name__ for one in gc.get_objects()]
            return torch.zeros(1 << 16), kinds.count("Room")

    counts = [batch[1].max().item() for batch in stoker.DataLoader(Ungathered(), batch_size=4, num_workers=1)]
    assert max(counts) <= 1


def test_explain_and_require():
    loader = stoker.DataLoader(Mixed(), num_workers=2)
    assert "2 worker processes" in loader.explain() and "Mixed" in loader.explain()
    assert loader.num_workers == 2 and isinstance(loader, tud.DataLoader)
    assert stoker.DataLoader(Mixed()).num_workers == 0
    with pytest.raises(NotImplementedError, match="Mixed"):
        stoker.DataLoader(Mixed(), compile="require")
    with pytest.raises(NotImplementedError, match="on_error='replace'.*collate_fn"):
        stoker.DataLoader(Mixed(), collate_fn=double, on_error="replace")


ORPHANS = """
    import os, signal, sys, time
    import stoker, torch.utils.data as tud

    class Endless(tud.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            os.write(1, b"%d\\n" % os.getpid())  # in one write: both workers print at once
            time.sleep(60)

    if __name__ == "__main__":
        next(iter(stoker.DataLoader(Endless(), num_workers=2, multiprocessing_context=sys.argv[1])))
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_parent_that_is_killed_takes_workers_with_it_in_the_middle_of_a_sample(method, tmp_path):
    script = tmp_path / "orphans.py"
    script.write_text(textwrap.dedent(ORPHANS))
    with subprocess.Popen([sys.executable, script, method], stdout=subprocess.PIPE, text=True) as process:
        workers = [int(process.stdout.readline()) for _ in range(2)]
        process.kill()
    deadline = time.monotonic() + 60
    while any(is_running(worker) for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.01)
    left = [worker for worker in workers if is_running(worker)]
    for worker in left:
        os.kill(worker, signal.SIGKILL)
    assert not left


def test_workers_outlive_the_thread_that_started_them():
    loader = stoker.DataLoader(list(range(8)), num_workers=1, prefetch_factor=1)
    found = []
    thread = threading.Thread(target=lambda: found.append(iter(loader)))
    thread.start()
    thread.join()
    time.sleep(0.2)
    assert [batch.item() for batch in found[0]] == list(range(8))


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
