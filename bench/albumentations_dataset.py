#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Datasets with cv2.imread and Albumentations, with torch's DataLoader and with stoker's.

    bench/albumentations_dataset.py FOLDER [--workers 2] [--rounds 3] [--seconds 5] [--pipeline segmentation]

As bench/custom_dataset.py: the same dataset and the same number of worker processes, one after the other in every
round; images a second, and CPU time for 1,000 images.
"""
from __future__ import annotations

import argparse
import os
import statistics
import sys
import warnings
from pathlib import Path

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")
warnings.simplefilter("ignore")

import albumentations as A
import cv2
import torch
from albumentations.pytorch import ToTensorV2
from custom_dataset import run

import stoker

PIPELINES = {
    "crop": lambda: [A.PadIfNeeded(224, 224), A.RandomCrop(224, 224), A.HorizontalFlip(), A.Normalize(), ToTensorV2()],
    "resize": lambda: [A.Resize(224, 224), A.HorizontalFlip(), A.Normalize(), ToTensorV2()],
    "resized crop": lambda: [A.RandomResizedCrop((224, 224)), A.HorizontalFlip(), A.Normalize(), ToTensorV2()],
    "segmentation": lambda: [
        A.SmallestMaxSize(512), A.RandomCrop(512, 512), A.HorizontalFlip(), A.RandomRotate90(),
        A.RandomBrightnessContrast(), A.Normalize(), ToTensorV2(),
    ],
    "segmentation, warped": lambda: [
        A.ShiftScaleRotate(), A.PadIfNeeded(512, 512), A.RandomCrop(512, 512), A.HorizontalFlip(),
        A.RandomBrightnessContrast(), A.HueSaturationValue(), A.Normalize(), ToTensorV2(),
    ],
    "yolo": lambda: [
        A.LongestMaxSize(640), A.PadIfNeeded(640, 640, border_mode=cv2.BORDER_CONSTANT, fill=114), A.HorizontalFlip(),
        A.Blur(p=0.01), A.MedianBlur(p=0.01), A.ToGray(p=0.01), A.CLAHE(p=0.01), A.HueSaturationValue(), ToTensorV2(),
    ],
}  # fmt: skip


class Photos(torch.utils.data.Dataset):
    """Photographs with a mask, as segmentation code reads them."""

    def __init__(self, paths, transform, has_mask):
        self.paths = paths
        self.transform = transform
        self.has_mask = has_mask

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = cv2.cvtColor(cv2.imread(str(self.paths[index])), cv2.COLOR_BGR2RGB)
        if not self.has_mask:
            return self.transform(image=image)["image"], index
        out = self.transform(image=image, mask=image[..., 0] // 16)
        return out["image"], out["mask"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--images", type=int, default=500)
    parser.add_argument("--pipeline", choices=PIPELINES, nargs="*", default=list(PIPELINES))
    asked = parser.parse_args()
    endings = (".jpg", ".jpeg")
    paths = sorted(path for path in asked.folder.rglob("*") if path.suffix.lower() in endings)[: asked.images]
    if not paths:
        sys.exit(f"{asked.folder} has no images")
    torch.set_num_threads(1)
    cv2.setNumThreads(0)
    for name in asked.pipeline:
        found = {}
        data = Photos(paths, A.Compose(PIPELINES[name](), seed=1), name.startswith("segmentation"))
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


if __name__ == "__main__":
    main()
