#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A dataset of thirty lines, Image.open and a Compose, with torch's DataLoader and with stoker's.

    bench/custom_dataset.py FOLDER [--workers 2] [--rounds 3] [--seconds 5] [--transform train]

Both run the same dataset with the same number of worker processes, one after the other in every round, each
after one epoch that does not count. Images a second, and the CPU time that this process and its workers took for
1,000 images, which says more on a machine that has other things to do.
"""
from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torchvision import transforms as T
from torchvision.transforms import v2

import stoker

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
TICKS = os.sysconf("SC_CLK_TCK")


class AddNoise:
    """A step that no loader knows."""

    def __call__(self, image):
        return Image.fromarray(np.asarray(image) ^ 1)


TRANSFORMS = {
    "train": T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]),
    "eval": T.Compose([T.Resize(256), T.CenterCrop(224), T.ToTensor(), T.Normalize(MEAN, STD)]),
    "v2": v2.Compose(
        [
            v2.RandomResizedCrop(224),
            v2.RandomHorizontalFlip(),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, STD),
        ]
    ),
    "unknown step": T.Compose(
        [T.RandomResizedCrop(224), AddNoise(), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]
    ),
}


class Photos(torch.utils.data.Dataset):
    def __init__(self, paths, transform):
        self.paths = paths
        self.transform = transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")
        return self.transform(image), index


def cpu_seconds():
    """Of this process and of those it has started."""
    total = sum(os.times()[:2])
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (OSError, IndexError):
            continue
        if len(fields) > 12 and int(fields[1]) == os.getpid():
            total += (int(fields[11]) + int(fields[12])) / TICKS
    return total


def run(loader, seconds):
    """Images a second, and CPU seconds for 1,000 of them."""
    for _ in loader:
        pass
    images, cpu, began = 0, cpu_seconds(), time.perf_counter()
    while time.perf_counter() - began < seconds:
        for batch, _ in loader:
            images += len(batch)
    took = time.perf_counter() - began
    return images / took, (cpu_seconds() - cpu) / images * 1000


def arguments(description, choices, batch, images):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--batch", type=int, default=batch)
    parser.add_argument("--images", type=int, default=images)
    parser.add_argument("--transform", choices=choices, nargs="*", default=list(choices))
    asked = parser.parse_args()
    endings = (".jpg", ".jpeg", ".png")
    asked.paths = sorted(path for path in asked.folder.rglob("*") if path.suffix.lower() in endings)[: asked.images]
    if not asked.paths:
        sys.exit(f"{asked.folder} has no images")
    torch.set_num_threads(1)
    return asked


def compare(name, data, asked):
    """Print how fast both loaders are with a dataset, in turns."""
    found = {}
    for _ in range(asked.rounds):
        for who, kind in (("torch", torch.utils.data.DataLoader), ("stoker", stoker.DataLoader)):
            more = {"persistent_workers": True} if asked.workers else {}
            loader = kind(data, asked.batch, shuffle=True, num_workers=asked.workers, **more)
            found.setdefault(who, []).append(run(loader, asked.seconds))
            del loader
    rates = {who: [statistics.median(part) for part in zip(*runs, strict=True)] for who, runs in found.items()}
    (theirs, their_cpu), (ours, our_cpu) = rates["torch"], rates["stoker"]
    print(
        f"{name:20} torch {theirs:7.0f} img/s {their_cpu:6.2f} CPU s/1,000   stoker {ours:7.0f} img/s "
        f"{our_cpu:6.2f}   {ours / theirs:.2f} times; by CPU time {their_cpu / our_cpu:.2f}",
        flush=True,
    )


def main():
    asked = arguments(__doc__, TRANSFORMS, batch=64, images=1000)
    for name in asked.transform:
        compare(name, Photos(asked.paths, TRANSFORMS[name]), asked)


if __name__ == "__main__":
    main()
