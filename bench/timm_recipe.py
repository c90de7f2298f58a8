# SPDX-License-Identifier: Apache-2.0
"""timm's training transform three ways: torch's DataLoader, Stoker's over the same dataset in Python, and compiled.

    python bench/timm_recipe.py FOLDER [--workers 1] [--rounds 3]      # one sub-folder for each class

The contestants take turns, an epoch each. CPU seconds count all processes and threads, so that they say more than the speed
where other programs are running.
"""

from __future__ import annotations

import argparse
import os
import time

import stoker
import torch.utils.data as tud
from PIL import Image, ImageOps
from timm.data import create_transform
from torchvision.datasets import ImageFolder

RECIPE = {"is_training": True, "auto_augment": "rand-m9-mstd0.5-inc1", "re_prob": 0.25, "interpolation": "random"}
TRANSFORMS = {
    "plain": {"is_training": True, "color_jitter": None},
    "rand-m9-mstd0.5-inc1, erasing": RECIPE,
    "3a": {"is_training": True, "auto_augment": "3a", "color_jitter": 0.3},
    "eval, bicubic": {"interpolation": "bicubic", "crop_pct": 0.95},
}


def cpu_seconds() -> float:
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def epoch(make) -> tuple[float, float, int]:
    """Seconds, CPU seconds and images; processes that a loader starts have ended, so their time is counted."""
    begun, used = time.perf_counter(), cpu_seconds()
    count = sum(len(images) for images, _ in make())
    return time.perf_counter() - begun, cpu_seconds() - used, count


def allow_no_bits() -> None:
    """timm posterizes to 0 bits where a magnitude is full, which is black in Pillow 12 and an error in Pillow 13."""
    original = ImageOps.posterize
    ImageOps.posterize = lambda image, bits: original(image, bits) if bits > 0 else Image.new(image.mode, image.size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    allow_no_bits()
    for name, config in TRANSFORMS.items():
        data = ImageFolder(args.folder, create_transform(**config))
        options = {"batch_size": 50, "num_workers": args.workers}
        contestants = {
            "torch": lambda: tud.DataLoader(data, shuffle=True, **options),
            "stoker, the dataset in Python": lambda: stoker.DataLoader(Own(data), shuffle=True, **options),
            "stoker, compiled": lambda: stoker.DataLoader(data, shuffle=True, seed=1, **options),
        }
        best = dict.fromkeys(contestants, (0.0, float("inf")))
        for _ in range(args.rounds):
            for contestant, make in contestants.items():
                seconds, cpu, count = epoch(make)
                speed, least = best[contestant]
                best[contestant] = max(speed, count / seconds), min(least, cpu / count * 1000)
        for contestant, (speed, cpu) in best.items():
            print(f"{name:32} {contestant:32} {speed:8.0f} images/s {cpu:8.2f} CPU s per 1,000 images", flush=True)


class Own(tud.Dataset):
    """A dataset of a user's own, which opens the same files."""

    def __init__(self, data: ImageFolder) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: int):
        return self._data[index]


if __name__ == "__main__":
    main()
