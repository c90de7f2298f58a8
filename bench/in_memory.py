#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torchvision's and torch's datasets in memory, the import changed and nothing else: CIFAR, MNIST, TensorDataset.

    bench/in_memory.py [--workers N] [--rounds 5] [--samples 20000] [--batch 128]

Each case is run by torch's DataLoader with N workers and with none, and by Stoker's with N and with what
num_workers="auto" comes to. `tiny` is an epoch of 256 images, iter() included. Contestants take turns in one process;
medians of the rounds, and CPU time (of this process and its children) for each sample.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import stoker
import torch
import torchvision.transforms as V
from tiny_samples import race
from torch.utils.data import DataLoader, TensorDataset
from torchvision import datasets

AUGMENT = V.Compose(
    [
        V.RandomCrop(32, padding=4),
        V.RandomHorizontalFlip(),
        V.ToTensor(),
        V.Normalize((0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)),
    ]
)
DIGITS = V.Compose([V.ToTensor(), V.Normalize((0.1307,), (0.3081,))])


def filled(kind: type, data: Any, targets: Any, transform: Any) -> Any:
    """A dataset of torchvision's as its constructor leaves it, without the files to download."""
    made = kind.__new__(kind)
    datasets.VisionDataset.__init__(made, tempfile.gettempdir(), transform=transform)
    made.train, made.data, made.targets = True, data, targets
    return made


def cifar(count: int) -> Any:
    planes = np.random.default_rng(1).integers(0, 255, (count, 3, 32, 32), dtype=np.uint8)
    return filled(datasets.CIFAR10, planes.transpose(0, 2, 3, 1), [k % 10 for k in range(count)], AUGMENT)


def mnist(count: int) -> Any:
    images = torch.randint(0, 256, (count, 28, 28), dtype=torch.uint8)
    return filled(datasets.MNIST, images, torch.arange(count) % 10, DIGITS)


def tensors(count: int) -> Any:
    return TensorDataset(torch.rand(count, 3, 32, 32), torch.arange(count))


def contestants(data: Any, args: argparse.Namespace) -> dict[str, Callable]:
    plain = {"batch_size": args.batch, "shuffle": True}
    several = {"num_workers": args.workers, "persistent_workers": True}
    return {
        f"stoker, {args.workers} workers": stoker.DataLoader(data, **plain, **several),
        f"torch, {args.workers} workers": DataLoader(data, **plain, **several),
        'stoker, "auto"': stoker.DataLoader(data, **plain),
        "torch, no worker": DataLoader(data, **plain),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--samples", type=int, default=20000)
    parser.add_argument("--batch", type=int, default=128)
    args = parser.parse_args()
    torch.set_num_threads(1)
    for case, data in (
        ("CIFAR-10, augmented", cifar(args.samples)),
        ("MNIST", mnist(args.samples)),
        ("TensorDataset, float32 3 x 32 x 32", tensors(args.samples)),
        ("tiny CIFAR-10, 256 images", cifar(256)),
        ("tiny TensorDataset, 256 rows", tensors(256)),
    ):
        rounds = args.rounds if len(data) > 256 else 20 * args.rounds
        entries = contestants(data, args)
        by_kind = list(entries.items())
        race(case, dict(by_kind[:2]), len(data), rounds)
        race(case, dict(by_kind[2:]), len(data), rounds)


if __name__ == "__main__":
    main()
