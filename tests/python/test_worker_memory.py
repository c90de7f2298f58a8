# SPDX-License-Identifier: Apache-2.0
"""The memory that a loader shares with its worker processes: core dumps, limits, and how many batches it is for."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import textwrap

import pytest
import stoker
import torch
import torch.utils.data as tud
from conftest import run_python

ABORTS = """
    import os, resource, signal, sys
    import numpy as np, stoker, torch, torch.utils.data as tud

    class Flags(tud.Dataset):
        def __len__(self): return 4
        def __getitem__(self, index):
            return shared(), np.ones(1 << 20, np.uint8)

    def shared():
        found, inside = [], False
        for line in open("/proc/self/smaps"):
            if "-" in line.split()[0] and ":" not in line.split()[0]:
                inside = "stoker-exchange" in line
            elif inside and line.startswith("VmFlags"):
                found.append("dd" in line.split())
        return str(found)

    if __name__ == "__main__":
        for method in ("fork", "spawn"):
            batches = iter(stoker.DataLoader(Flags(), num_workers=1, multiprocessing_context=method))
            flags, data = next(batches)
            print(method, shared(), *flags, flush=True)
        os.chdir(sys.argv[1])
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        most = 64 << 20 if hard == resource.RLIM_INFINITY else min(64 << 20, hard)
        resource.setrlimit(resource.RLIMIT_CORE, (most, hard))
        with open("/proc/self/coredump_filter", "w") as file: file.write("0x2")
        print(most, flush=True)
        os.abort()
"""


def test_no_core_dump_has_the_memory_that_is_shared_with_workers(tmp_path):
    """Its holes alone are terabytes. A core is written of shared memory only, up to 64 MB, and must be much smaller."""
    with open("/proc/sys/kernel/core_pattern") as file:
        writes_here = file.read().strip() == "core"
    script = tmp_path / "aborts.py"
    script.write_text(textwrap.dedent(ABORTS))
    command = [sys.executable, script, tmp_path]
    out = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    fork, spawn, most = out.stdout.splitlines()
    for line in (fork, spawn):
        assert "True" in line and "False" not in line, line
    assert out.returncode == -signal.SIGABRT, out.stderr
    cores = [file for file in tmp_path.iterdir() if file.name.startswith("core")]
    if writes_here and int(most) >= 64 << 20:
        assert [file.stat().st_size < 16 << 20 for file in cores] == [True]


LIMITED = """
    import resource, sys
    import stoker, torch

    def used():
        return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()

    def limited(room):
        resource.setrlimit(resource.RLIMIT_AS, (used() + room, resource.RLIM_INFINITY))

    loader = stoker.DataLoader(list(range(100)), 10, num_workers=2, compile=False)
    sum(len(batch) for batch in loader)  # threads and their stacks are there
    limited(int(sys.argv[1]))
    before = used()
    batches = iter(stoker.DataLoader(list(range(100)), 10, num_workers=2, compile=False))
    print(sum(len(batch) for batch in batches), used() - before, batches._exchange.stride)
"""


def test_a_limit_of_the_address_space_is_respected():
    """Half of what is left is for the training and other loaders."""
    room = 2 << 30
    out = run_python(LIMITED, str(room), timeout=600)
    samples, taken, stride = map(int, out.stdout.split())
    assert samples == 100 and taken <= room // 2 and stride >= 8 << 20, out.stderr


def test_too_little_address_space_is_an_error_with_a_remedy():
    out = run_python(LIMITED, str(32 << 20), timeout=600)
    assert out.returncode == 1 and "ulimit -v" in out.stderr and "num_workers=0" in out.stderr, out.stderr


class Plain(tud.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.tensor(index)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("factor", [16000, 10**9])
def test_any_prefetch_factor(factor, in_order):
    loader = stoker.DataLoader(Plain(3000), num_workers=2, prefetch_factor=factor, in_order=in_order)
    got = [batch.item() for batch in loader]
    assert (got if in_order else sorted(got)) == list(range(3000))
    if factor == 16000:
        torchs = tud.DataLoader(Plain(300), num_workers=2, prefetch_factor=factor)
        ours = stoker.DataLoader(Plain(300), num_workers=2, prefetch_factor=factor)
        assert [batch.item() for batch in ours] == [batch.item() for batch in torchs]


class Held(tud.Dataset):
    """The samples of one worker wait for the gate."""

    def __init__(self, gate):
        self.gate = gate

    def __len__(self):
        return 1400

    def __getitem__(self, index):
        if tud.get_worker_info().id == 0:
            self.gate.wait()
        return tud.get_worker_info().id


def test_without_order_a_worker_that_waits_does_not_hold_up_another():
    """However many tasks it has."""
    gate = multiprocessing.get_context("fork").Event()
    batches = iter(stoker.DataLoader(Held(gate), num_workers=2, prefetch_factor=600, in_order=False, timeout=600))
    assert [next(batches).item() for _ in range(600)] == [1] * 600
    gate.set()
    assert len(list(batches)) == 800
