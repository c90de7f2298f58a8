#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loaders of every kind, opened, used and dropped thousands of times: threads, file descriptors, shared memory, child
processes and memory must stay as they are.

    open_close.py [--seconds S] [--count N] [--seed N] [--only KIND] [--leak WHAT]

N loaders (10,000), or as many as S seconds allow, in an order that the seed decides. What this process holds is counted
after a warm-up, in which every kind was opened a few times, and again and again until the end. The counts may not grow at
all, memory by at most 24 MiB: 2.5 KB for each of 10,000 loaders. --leak thread, fd, shm, child or memory leaks a little in
each loader on purpose, and must fail.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import gc
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from multiprocessing import shared_memory
from pathlib import Path

import numpy as np
import stoker
import torch
from PIL import Image
from program_files import make_files
from stoker import transforms as S
from torch.utils.data import Dataset, IterableDataset, TensorDataset
from torchvision import datasets
from torchvision import transforms as T

WARM_UP = 3  # times each kind
LOOKS = 40  # at what the process holds, between the warm-up and the end
MORE_MEMORY = 24 << 20
BATCHES_KEPT = 50


# ---- what is loaded ----


class Photos(Dataset):
    """The usual own dataset."""

    def __init__(self, folder, per_sample=False):
        self.paths = sorted((folder / "images").glob("*/*.jpg"))
        self.per_sample = per_sample
        self.transform = T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ToTensor()])

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        if self.per_sample:
            return T.Compose([T.Resize((24, 24)), T.RandomHorizontalFlip(), T.ToTensor()])(image), index
        return self.transform(image), index


class Numbers(Dataset):
    def __init__(self, bad=()):
        self.bad = bad

    def __len__(self):
        return 16

    def __getitem__(self, index):
        if index in self.bad:
            raise ValueError(f"sample {index}")
        return torch.full((64,), index), str(index)


class Stream(IterableDataset):
    def __iter__(self):
        return iter(torch.arange(12))


def engine(folder):
    steps = S.Compose([S.RandomResizedCrop(24), S.RandomHorizontalFlip(), S.ToTensor()])
    return stoker.datasets.ImageFolder(str(folder / "images"), steps)


def torchvisions(folder):
    return datasets.ImageFolder(str(folder / "images"), T.Compose([T.Resize((24, 24)), T.ToTensor()]))


# ---- what is done with a loader ----


def whole(loader):
    return [list(loader) for _ in range(2)]


def leave(loader):
    for batch in loader:
        return [batch]
    return []


def abandon(loader):
    """Two iterators that are begun, and never ended."""
    one, other = iter(loader), iter(loader)
    return [next(one), next(other), next(one)]


def nothing(loader):
    len(loader)
    return []


def fail(loader):
    got = []
    try:
        for batch in loader:
            got.append(batch)
    except Exception as error:
        got.append(type(error).__name__)
    assert got and isinstance(got[-1], str), "the loader must fail"
    return got[:-1]


def resume(loader):
    got = leave(loader)
    loader.load_state_dict(loader.state_dict())
    return got + list(loader)


def kinds(good, bad):
    """Name: how often it is taken, and what makes the loader and uses it."""

    def of(dataset, use, **options):
        return lambda: use(stoker.DataLoader(dataset(), **{"batch_size": 4, **options}))

    many = {"num_workers": 2}
    persistent = {"num_workers": 2, "persistent_workers": True}
    return {
        "engine, whole epochs": (9, of(lambda: engine(good), whole, shuffle=True)),
        "engine, in this thread": (9, of(lambda: engine(good), whole, num_workers=0)),
        "engine, break": (9, of(lambda: engine(good), leave, num_workers=2)),
        "engine, abandoned": (9, of(lambda: engine(good), abandon, num_workers=2)),
        "engine, never used": (9, of(lambda: engine(good), nothing)),
        "engine, a bad file": (9, of(lambda: engine(bad), fail, num_workers=2)),
        "engine, resumed": (6, of(lambda: engine(good), resume)),
        "engine, torchvision's folder": (6, of(lambda: torchvisions(good), whole)),
        "own, whole epochs": (9, of(lambda: Photos(good), whole, shuffle=True)),
        "own, break": (9, of(lambda: Photos(good), leave)),
        "own, transforms per sample": (6, of(lambda: Photos(good, True), leave)),
        "own, a bad file": (6, of(lambda: Photos(bad), fail)),
        "own, a bad sample": (6, of(lambda: Numbers([5]), fail)),
        "own, a stream": (6, of(Stream, abandon)),
        "tensors": (9, of(lambda: TensorDataset(torch.arange(20)), whole, shuffle=True)),
        "workers, whole epochs": (2, of(Numbers, whole, **many)),
        "workers, photographs": (2, of(lambda: Photos(good), whole, **many)),
        "workers, break": (2, of(Numbers, leave, **many)),
        "workers, abandoned": (1, of(Numbers, abandon, **many)),
        "workers, never used": (2, of(Numbers, nothing, **many)),
        "workers, a bad sample": (2, of(lambda: Numbers([5]), fail, **many)),
        "workers, a stream": (1, of(Stream, whole, **many)),
        "workers, persistent": (2, of(Numbers, whole, **persistent)),
        "workers, persistent, break": (2, of(Numbers, leave, **persistent)),
    }


# ---- what this process holds ----


def shared():
    """Pieces of shared memory: mapped ones, and files that this process or one that is gone has left in /dev/shm."""
    with open("/proc/self/maps") as file:
        mapped = sum("/dev/shm" in line or "/memfd:" in line for line in file)
    left = 0
    with contextlib.suppress(OSError):
        for name in os.listdir("/dev/shm"):
            for number in map(int, re.findall(r"\d{2,9}", name)):
                left += number == os.getpid() or number in _children and not os.path.exists(f"/proc/{number}")
    return mapped + left


_children: set[int] = set()  # that this process has had


def children():
    out = set()
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/children") as file:
            out |= set(map(int, file.read().split()))
    return out


def watch_forks():
    """Remember the processes that are started, to know what they leave in /dev/shm."""
    os.register_at_fork(after_in_parent=lambda: _children.update(children()))


def resident():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def held():
    """The counts once what is ending has ended: threads that were told to stop, workers that were told to go."""
    gc.collect()
    least = None
    for _ in range(900):
        now = {
            "threads": len(os.listdir("/proc/self/task")), "file descriptors": len(os.listdir("/proc/self/fd")),
            "shared memory": shared(), "child processes": len(children()),
        }  # fmt: skip
        least = now if least is None else {name: min(count, least[name]) for name, count in now.items()}
        if _first is None or all(least[name] <= _first[name] for name in least):
            break
        time.sleep(0.1)
    return least


_first: dict[str, int] | None = None

_LEAKED: list[object] = []


def leak(what):
    """A defect on purpose."""
    if what == "thread":
        threading.Thread(target=time.sleep, args=(3600,), daemon=True).start()
    elif what == "fd":
        _LEAKED.append(os.open("/dev/null", os.O_RDONLY))
    elif what == "shm":
        _LEAKED.append(shared_memory.SharedMemory(create=True, size=4096))
    elif what == "child":
        _LEAKED.append(subprocess.Popen(["true"]))
    elif what == "memory":
        _LEAKED.append(np.ones(64 << 10, np.uint8))


# ---- the campaign ----


class Campaign:
    def __init__(self, options, folder):
        make_files(folder / "good", "ordinary", 12, 1)
        make_files(folder / "bad", "ordinary", 12, 2)
        for path in sorted((folder / "bad" / "images").glob("*/*.jpg"))[3:8]:
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        self.kinds = kinds(folder / "good", folder / "bad")
        if options.only:
            self.kinds = {name: kind for name, kind in self.kinds.items() if options.only in name}
        self.options = options
        self.chance = random.Random(options.seed)
        self.kept = collections.deque(maxlen=BATCHES_KEPT)  # batches that outlive their loaders
        self.opened = 0
        self.wrong = []

    def open(self, name):
        try:
            batches = self.kinds[name][1]()
        except Exception as error:
            raise SystemExit(f"open_close: {name}: {type(error).__name__}: {error}") from error
        self.kept.extend(batches[:2] if self.chance.random() < 0.3 else [])
        if self.chance.random() < 0.1:
            self.kept.clear()
        leak(self.options.leak)
        self.opened += 1

    def any(self):
        names = list(self.kinds)
        return self.chance.choices(names, [self.kinds[name][0] for name in names])[0]

    def look(self, first, memory):
        """Compare what is held now with what was held after the warm-up."""
        self.kept.clear()
        for name, count in held().items():
            if count > first[name]:
                self.wrong.append(f"{name}: {first[name]} after the warm-up, {count} after {self.opened:,} loaders")
        more = resident() - memory
        if more > MORE_MEMORY:
            self.wrong.append(f"memory: {more / 2**20:.1f} MiB more than after the warm-up, after {self.opened:,} loaders")
        return more

    def run(self):
        global _first
        for name in self.kinds:
            for _ in range(WARM_UP):
                self.open(name)
        for _ in range(len(self.kinds) * WARM_UP):
            self.open(self.any())
        self.kept.clear()
        first, memory = held(), resident()
        _first, self.opened, more = first, 0, 0
        began = looked = time.monotonic()
        last = self.options.count or 10_000
        seconds = self.options.seconds
        while True:
            now = time.monotonic()
            over = now - began >= seconds if seconds else self.opened >= last
            part = now - looked >= seconds / LOOKS if seconds else self.opened % max(1, last // LOOKS) == 0
            if over or part:
                more = self.look(first, memory)
                looked = time.monotonic()
            if over or self.wrong:
                break
            self.open(self.any())
        print("; ".join(f"{name} {count}" for name, count in first.items()), f"; memory {more / 2**20:+.1f} MiB", sep="")
        return self.wrong


def main():
    parser = argparse.ArgumentParser(description="Open and close loaders, and count what they leave behind.")
    parser.add_argument("--seconds", type=float, default=0, help="how long to go on")
    parser.add_argument("--count", type=int, default=0, help="how many loaders; 10,000 unless --seconds is given")
    parser.add_argument("--seed", type=int, default=0, help="decides their order")
    parser.add_argument("--only", default="", help="kinds whose names contain this")
    parser.add_argument("--leak", choices=["thread", "fd", "shm", "child", "memory"], help="leak on purpose")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    watch_forks()
    with tempfile.TemporaryDirectory(prefix="stoker-open-close-") as folder:
        campaign = Campaign(options, Path(folder))
        wrong = campaign.run()
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"open_close: {campaign.opened:,} loaders, {'NOT flat' if wrong else 'flat'}", flush=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
