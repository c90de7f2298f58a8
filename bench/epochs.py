#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much faster later epochs are: one loader for all of them beside a new one for each.

    bench/epochs.py FOLDER [--workers 2] [--epochs 4] [--rounds 3]

FOLDER holds class folders of JPEGs. The training transform on the CPU; a loader's rate is that from its first batch to
its last, so that opening it does not count. Median of the rounds, in which the two alternate.
"""
from __future__ import annotations

import argparse
import statistics
import time

import stoker
from stoker import transforms as T

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
TRAIN = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)])


def open_loader(args):
    data = stoker.datasets.ImageFolder(args.folder, TRAIN)
    return stoker.DataLoader(data, args.batch, shuffle=True, num_workers=args.workers, seed=1)


def rate(loader, epoch):
    """Images per second, and the bytes that the loader keeps of its files."""
    loader.set_epoch(epoch)
    images, start = 0, None
    for batch, _ in loader:
        now = time.perf_counter()
        if start is None:
            start = now
        else:
            images += len(batch)
    return images / (now - start), loader.stats()["memory"]["dataset_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    kept, new, held = ([[] for _ in range(args.epochs)] for _ in range(3))
    for _ in range(args.rounds):
        loader = open_loader(args)
        for epoch in range(args.epochs):
            images, size = rate(loader, epoch)
            kept[epoch].append(images)
            held[epoch].append(size)
            new[epoch].append(rate(open_loader(args), epoch)[0])
    print("| epoch | one loader, img/s | a new loader, img/s | ratio | kept of the files |\n|---|---|---|---|---|")
    for epoch in range(args.epochs):
        one, other = statistics.median(kept[epoch]), statistics.median(new[epoch])
        size = statistics.median(held[epoch])
        print(f"| {epoch + 1} | {one:,.0f} | {other:,.0f} | {one / other:.2f} | {size / 1e6:.2f} MB |")


if __name__ == "__main__":
    main()
