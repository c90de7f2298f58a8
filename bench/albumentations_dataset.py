#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Datasets with cv2.imread and Albumentations, with torch's DataLoader and with stoker's.

    bench/albumentations_dataset.py FOLDER [--workers 2] [--rounds 3] [--seconds 5] [--transform segmentation]

As bench/custom_dataset.py: the same dataset and the same number of worker processes, one after the other in every
round; images a second, and CPU time for 1,000 images.
"""
from __future__ import annotations

import os
import warnings

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")
warnings.simplefilter("ignore")

import albumentations as A
import cv2
import torch
from albumentations.pytorch import ToTensorV2
from custom_dataset import arguments, compare

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
    asked = arguments(__doc__, PIPELINES, batch=32, images=500)
    cv2.setNumThreads(0)
    for name in asked.transform:
        compare(name, Photos(asked.paths, A.Compose(PIPELINES[name](), seed=1), name.startswith("segmentation")), asked)


if __name__ == "__main__":
    main()
