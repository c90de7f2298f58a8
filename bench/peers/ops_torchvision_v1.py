# SPDX-License-Identifier: Apache-2.0
"""torchvision's first transforms, on Pillow's images; with masks or boxes the second ones, on Pillow's images."""

import random
import sys

from ops_harness import MEAN, STD, files_of, into_batches, main
from ops_of_torchvision import ops_of
from ops_torchvision_v2 import with_targets
from PIL import Image, ImageFilter
from torchvision import transforms as T

PACKAGES = []
NOTE = "Pillow images"
LINEAR = T.InterpolationMode.BILINEAR


OPS = ops_of(T) | {
    "normalize": lambda: T.Compose([T.ToTensor(), T.Normalize(MEAN, STD)]),
    "erasing": lambda: T.Compose([T.ToTensor(), T.RandomErasing(1.0)]),
}


def classification(augment):
    """The reference training scripts' preset."""
    return T.Compose(
        [
            T.RandomResizedCrop(224),
            T.RandomHorizontalFlip(),
            augment,
            T.ToTensor(),
            T.Normalize(MEAN, STD),
            T.RandomErasing(0.1),
        ]
    )


class PillowBlur:
    """As DINO has it."""

    def __init__(self, p):
        self.p = p

    def __call__(self, image):
        if random.random() > self.p:
            return image
        return image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2.0)))


def view(size, scale, blurred):
    return T.Compose(
        [
            T.RandomResizedCrop(size, scale, interpolation=T.InterpolationMode.BICUBIC),
            T.RandomHorizontalFlip(),
            T.RandomApply([T.ColorJitter(0.4, 0.4, 0.2, 0.1)], 0.8),
            T.RandomGrayscale(0.2),
            PillowBlur(blurred),
            T.ToTensor(),
            T.Normalize(MEAN, STD),
        ]
    )


def rand_m9():
    from timm.data import create_transform

    return create_transform(224, is_training=True, auto_augment="rand-m9-mstd0.5-inc1", re_prob=0.25)


class Views:
    """Several crops of one image, as DINO has them."""

    def __init__(self):
        self.steps = [view(224, (0.4, 1.0), 1.0), view(224, (0.4, 1.0), 0.1)]
        self.steps += [view(96, (0.05, 0.4), 0.5)] * 6

    def __call__(self, image):
        return [step(image) for step in self.steps]


RECIPES = {
    "crop and flip": lambda: classification(T.Compose([])),
    "TrivialAugment": lambda: classification(T.TrivialAugmentWide(interpolation=LINEAR)),
    "RandAugment": lambda: classification(T.RandAugment(interpolation=LINEAR)),
    "AutoAugment": lambda: classification(T.AutoAugment(interpolation=LINEAR)),
    "SimCLR": lambda: T.Compose(
        [
            T.RandomResizedCrop(224),
            T.RandomHorizontalFlip(),
            T.RandomApply([T.ColorJitter(0.8, 0.8, 0.8, 0.2)], 0.8),
            T.RandomGrayscale(0.2),
            T.RandomApply([T.GaussianBlur(23, (0.1, 2.0))], 0.5),
            T.ToTensor(),
        ]
    ),
    "DINO, 8 crops": Views,
    "timm, rand-m9": rand_m9,
}


def op(name, images):
    if name not in OPS:
        return None
    return into_batches([Image.fromarray(image) for image in images], OPS[name]())


def opened(path):
    with open(path, "rb") as file:
        return Image.open(file).convert("RGB")


def recipe(name, folder):
    if name not in RECIPES:
        return with_targets(name, folder, opened)
    step = RECIPES[name]()
    return into_batches(files_of(folder), lambda path: step(opened(path)))


if __name__ == "__main__":
    main(sys.modules[__name__])
