#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Samples that take microseconds: rows of an npy file and CIFAR-sized PNG files, Stoker against torch.

    bench/tiny_samples.py [--workers N] [--rounds 5] [--rows 200000] [--files 20000] [--batch 256]

`rows`: uint8 [32, 32], shuffled, in batches; torch has the array in memory (TensorDataset) with no worker and
with N, and once a batch at a time by a BatchSampler, the fastest way that torch has. `png`: a folder of 32 x 32
RGB PNGs to float32; torch decodes with Pillow. Contestants take turns in one process; medians of the rounds, and CPU
time (of this process and its children) for each sample, which a busy machine disturbs less.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import stoker
import torch
import torchvision
from PIL import Image
from stoker import transforms as T
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset


class Rows(torch.utils.data.Dataset):
    """Takes a whole batch of indices at once."""

    def __init__(self, rows: torch.Tensor) -> None:
        self.rows = rows

    def __getitem__(self, indices: list[int]) -> torch.Tensor:
        return self.rows[indices]

    def __len__(self) -> int:
        return len(self.rows)


def row_contestants(root: Path, args: argparse.Namespace) -> dict[str, Callable]:
    path = root / "rows.npy"
    np.save(path, np.random.default_rng(1).integers(0, 255, (args.rows, 32, 32), dtype=np.uint8))
    rows = torch.from_numpy(np.load(path))
    batched = Rows(rows)
    plain = {"batch_size": args.batch, "shuffle": True}
    return {
        f"stoker, {args.workers} workers": stoker.DataLoader(
            stoker.open(str(path), fields={"row": "array"}), args.batch, shuffle=True, num_workers=args.workers
        ),
        f"stoker, as images, {args.workers} workers": stoker.DataLoader(
            stoker.open(str(path)), args.batch, shuffle=True, num_workers=args.workers
        ),
        "torch TensorDataset": DataLoader(TensorDataset(rows), **plain),
        f"torch TensorDataset, {args.workers} workers": DataLoader(
            TensorDataset(rows), **plain, num_workers=args.workers, persistent_workers=True
        ),
        "torch, whole batches": DataLoader(
            batched, batch_size=None, sampler=BatchSampler(RandomSampler(batched), args.batch, False)
        ),
    }


def png_contestants(root: Path, args: argparse.Namespace) -> dict[str, Callable]:
    folder, rng = root / "png", np.random.default_rng(2)
    for k in range(args.files):
        path = folder / str(k % 10) / f"{k}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).resize((32, 32), 3)
        Image.fromarray((np.asarray(coarse) // 2 + rng.integers(0, 60, (32, 32, 3), dtype=np.uint8))).save(path)
    theirs = torchvision.datasets.ImageFolder(str(folder), torchvision.transforms.ToTensor())
    return {
        f"stoker, {args.workers} workers": stoker.DataLoader(
            stoker.datasets.ImageFolder(str(folder), transform=T.ToTensor()),
            args.batch,
            shuffle=True,
            num_workers=args.workers,
        ),
        f"torch, {args.workers} workers": DataLoader(
            theirs, args.batch, shuffle=True, num_workers=args.workers, persistent_workers=True
        ),
    }


def cpu_seconds() -> float:
    # The workers of torch are alive, and count only once they have ended: their times come from /proc.
    own = resource.getrusage(resource.RUSAGE_SELF)
    total = own.ru_utime + own.ru_stime
    for child in Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split():
        fields = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def race(case: str, contestants: dict[str, Callable], samples: int, rounds: int) -> None:
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    cpu: dict[str, list[float]] = {name: [] for name in contestants}
    for k in range(rounds + 1):
        for name, loader in contestants.items():
            began, before = time.perf_counter(), cpu_seconds()
            for _ in loader:
                pass
            if k:  # the first round warms up
                rates[name].append(samples / (time.perf_counter() - began))
                cpu[name].append((cpu_seconds() - before) / samples * 1e6)
    ours = next(iter(contestants))
    for name in contestants:
        result = {
            "case": case,
            "contestant": name,
            "samples_per_second": round(statistics.median(rates[name])),
            "cpu_us_per_sample": round(statistics.median(cpu[name]), 2),
            "stoker_against_it": round(
                statistics.median(a / b for a, b in zip(rates[ours], rates[name], strict=True)), 2
            ),
        }
        print(json.dumps(result), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=200000)
    parser.add_argument("--files", type=int, default=20000)
    parser.add_argument("--batch", type=int, default=256)
    args = parser.parse_args()
    torch.set_num_threads(1)  # indexing a batch in several threads costs torch eight times the CPU, and more time
    with tempfile.TemporaryDirectory(prefix="stoker-tiny-") as folder:
        race("rows", row_contestants(Path(folder), args), args.rows, args.rounds)
        race("png", png_contestants(Path(folder), args), args.files, args.rounds)


if __name__ == "__main__":
    main()
