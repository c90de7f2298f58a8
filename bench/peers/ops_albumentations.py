# SPDX-License-Identifier: Apache-2.0
"""Albumentations, the last release with a permissive licence, on arrays, with OpenCV's threads off."""

import os
import sys

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")

import albumentations as A
import cv2
from albumentations.pytorch import ToTensorV2
from ops_harness import MEAN, STD, files_of, into_batches, main

PACKAGES = []
NOTE = "OpenCV's arithmetic"
ALWAYS = {"p": 1.0}

OPS = {
    "horizontal flip": lambda: A.HorizontalFlip(**ALWAYS),
    "vertical flip": lambda: A.VerticalFlip(**ALWAYS),
    "crop 224": lambda: A.RandomCrop(224, 224, **ALWAYS),
    "pad 16, reflected": lambda: A.Pad(16, border_mode=cv2.BORDER_REFLECT_101, **ALWAYS),
    "resize to 224": lambda: A.Resize(224, 224, **ALWAYS),
    "resized crop 224": lambda: A.RandomResizedCrop((224, 224), **ALWAYS),
    "rotation": lambda: A.Rotate(30, **ALWAYS),
    "affine": lambda: A.Affine(scale=(0.8, 1.2), translate_percent=(-0.1, 0.1), rotate=(-15, 15), shear=(-10, 10), **ALWAYS),
    "perspective": lambda: A.Perspective(**ALWAYS),
    "elastic": lambda: A.ElasticTransform(alpha=50, sigma=5, **ALWAYS),
    "jitter": lambda: A.ColorJitter((0.6, 1.4), (0.6, 1.4), (0.6, 1.4), (-0.1, 0.1), **ALWAYS),
    "brightness": lambda: A.RandomBrightnessContrast(0.4, 0, **ALWAYS),
    "contrast": lambda: A.RandomBrightnessContrast(0, 0.4, **ALWAYS),
    "hue": lambda: A.HueSaturationValue(18, 0, 0, **ALWAYS),
    "greyscale": lambda: A.ToGray(**ALWAYS),
    "Gaussian blur 5": lambda: A.GaussianBlur((5, 5), (0.1, 2.0), **ALWAYS),
    "Gaussian blur 23": lambda: A.GaussianBlur((23, 23), (0.1, 2.0), **ALWAYS),
    "invert": lambda: A.InvertImg(**ALWAYS),
    "posterize": lambda: A.Posterize(4, **ALWAYS),
    "solarize": lambda: A.Solarize((0.5, 0.5), **ALWAYS),
    "sharpness": lambda: A.Sharpen(**ALWAYS),
    "autocontrast": lambda: A.AutoContrast(**ALWAYS),
    "equalize": lambda: A.Equalize(**ALWAYS),
    "normalize": lambda: A.Compose([A.Normalize(MEAN, STD), ToTensorV2()]),
    "erasing": lambda: A.Compose([A.Erasing(**ALWAYS), A.ToFloat(), ToTensorV2()]),
}


def finished(*steps):
    return A.Compose([*steps, A.Normalize(MEAN, STD), ToTensorV2()])


RECIPES = {
    "crop and flip": lambda: finished(A.RandomResizedCrop((224, 224)), A.HorizontalFlip(), A.Erasing(p=0.1)),
    "SimCLR": lambda: A.Compose(
        [
            A.RandomResizedCrop((224, 224)),
            A.HorizontalFlip(),
            A.ColorJitter((0.2, 1.8), (0.2, 1.8), (0.2, 1.8), (-0.2, 0.2), p=0.8),
            A.ToGray(p=0.2),
            A.GaussianBlur((23, 23), (0.1, 2.0), p=0.5),
            A.ToFloat(),
            ToTensorV2(),
        ]
    ),
    "Albumentations, segmentation": lambda: finished(
        A.SmallestMaxSize(256),
        A.ShiftScaleRotate(),
        A.RandomCrop(224, 224),
        A.HorizontalFlip(),
        A.RandomBrightnessContrast(),
    ),
    "Albumentations, YOLO": lambda: A.Compose(
        [
            A.LongestMaxSize(640),
            A.PadIfNeeded(640, 640, border_mode=cv2.BORDER_CONSTANT, fill=114),
            A.HorizontalFlip(),
            A.Blur(p=0.01),
            A.MedianBlur(p=0.01),
            A.ToGray(p=0.01),
            A.CLAHE(p=0.01),
            A.HueSaturationValue(),
            ToTensorV2(),
        ]
    ),
}


def op(name, images):
    cv2.setNumThreads(0)
    if name not in OPS:
        return None
    step = OPS[name]()
    return into_batches(images, lambda image: step(image=image)["image"])


def recipe(name, folder):
    cv2.setNumThreads(0)
    if name not in RECIPES:
        return None
    step = RECIPES[name]()
    return into_batches(files_of(folder), lambda path: step(image=cv2.cvtColor(cv2.imread(path), cv2.COLOR_BGR2RGB))["image"])


if __name__ == "__main__":
    main(sys.modules[__name__])
