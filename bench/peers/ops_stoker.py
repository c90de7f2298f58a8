# SPDX-License-Identifier: Apache-2.0
"""Stoker's loader with one worker, with the objects of torchvision, timm and Albumentations that the others use."""

import sys
import tempfile

import numpy as np
import ops_albumentations
import ops_torchvision_v1
import ops_torchvision_v2
import stoker
from ops_harness import BATCH, TARGETS, main
from torch.utils.data import Subset
from torchvision import datasets
from torchvision import transforms as T

PACKAGES = []
NOTE = "loader of one worker; batches of tensors, channels first"
ROUNDS = 64  # of the images in memory, in an epoch: starting one is not what is measured


def in_memory(images, transform):
    """A dataset of torchvision's as its constructor leaves it, without files to download."""
    made = datasets.CIFAR10.__new__(datasets.CIFAR10)
    datasets.VisionDataset.__init__(made, tempfile.gettempdir(), transform=transform)
    made.train, made.data, made.targets = True, np.stack(images), [0] * len(images)
    return Subset(made, list(range(len(images))) * ROUNDS)


def epochs(data, **options):
    """Return a function that loads an epoch."""
    loader = stoker.DataLoader(data, BATCH, shuffle=True, **options)

    def run():
        for _ in loader:
            pass
        return len(data)

    return run


def compiled(data):
    return epochs(data, num_workers=1, compile="require")


def op(name, images):
    if name == "none":
        finished = T.PILToTensor()
    elif name in ops_torchvision_v1.OPS:
        step = ops_torchvision_v1.OPS[name]()
        finished = step if name in ("normalize", "erasing") else T.Compose([step, T.PILToTensor()])
    elif name in ops_torchvision_v2.OPS:
        finished = T.Compose([ops_torchvision_v2.OPS[name](), T.PILToTensor()])
    else:
        return None
    return compiled(in_memory(images, finished))


def recipe(name, folder):
    if name in ops_torchvision_v1.RECIPES:
        return compiled(datasets.ImageFolder(folder, ops_torchvision_v1.RECIPES[name]()))
    if name in ops_torchvision_v2.SEGMENTATION:
        steps = T.Compose(ops_torchvision_v2.SEGMENTATION[name]())
        return compiled(stoker.datasets.ImageMaskFolder(folder, TARGETS / "masks", steps))
    if name in ops_torchvision_v2.DETECTION:
        steps = T.Compose(ops_torchvision_v2.DETECTION[name]())
        return compiled(stoker.datasets.CocoDetection(folder, TARGETS / "boxes.json", transforms=steps))
    if name in ops_albumentations.RECIPES:
        data = stoker.datasets.ImageFolder(folder, ops_albumentations.RECIPES[name]())
        return epochs(data, num_workers=0)
    return None


if __name__ == "__main__":
    main(sys.modules[__name__])
