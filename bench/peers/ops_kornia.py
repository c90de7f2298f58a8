# SPDX-License-Identifier: Apache-2.0
"""Kornia, on batches of float tensors on the CPU."""

import sys

import kornia.augmentation as K
import torch
from ops_harness import BATCH, MEAN, STD, main

PACKAGES = ["kornia", "kornia_rs"]
NO_DEPENDENCIES = True  # torch is there
NOTE = "float tensors, batches of 16; the conversion from bytes is not counted"
ALWAYS = {"p": 1.0}

OPS = {
    "horizontal flip": lambda: K.RandomHorizontalFlip(**ALWAYS),
    "vertical flip": lambda: K.RandomVerticalFlip(**ALWAYS),
    "crop 224": lambda: K.RandomCrop((224, 224), **ALWAYS),
    "resize to 224": lambda: K.Resize((224, 224), antialias=True),
    "resized crop 224": lambda: K.RandomResizedCrop((224, 224), **ALWAYS),
    "rotation": lambda: K.RandomRotation(30.0, **ALWAYS),
    "affine": lambda: K.RandomAffine(15.0, (0.1, 0.1), (0.8, 1.2), 10.0, **ALWAYS),
    "perspective": lambda: K.RandomPerspective(0.5, **ALWAYS),
    "elastic": lambda: K.RandomElasticTransform(sigma=(5.0, 5.0), **ALWAYS),
    "jitter": lambda: K.ColorJitter(0.4, 0.4, 0.4, 0.1, **ALWAYS),
    "brightness": lambda: K.RandomBrightness((0.6, 1.4), **ALWAYS),
    "contrast": lambda: K.RandomContrast((0.6, 1.4), **ALWAYS),
    "saturation": lambda: K.RandomSaturation((0.6, 1.4), **ALWAYS),
    "hue": lambda: K.RandomHue((-0.1, 0.1), **ALWAYS),
    "greyscale": lambda: K.RandomGrayscale(**ALWAYS),
    "Gaussian blur 5": lambda: K.RandomGaussianBlur((5, 5), (0.1, 2.0), **ALWAYS),
    "Gaussian blur 23": lambda: K.RandomGaussianBlur((23, 23), (0.1, 2.0), **ALWAYS),
    "invert": lambda: K.RandomInvert(**ALWAYS),
    "posterize": lambda: K.RandomPosterize(4, **ALWAYS),
    "solarize": lambda: K.RandomSolarize(0.0, 0.0, **ALWAYS),
    "sharpness": lambda: K.RandomSharpness(2.0, **ALWAYS),
    "autocontrast": lambda: K.RandomAutoContrast(**ALWAYS),
    "equalize": lambda: K.RandomEqualize(**ALWAYS),
    "normalize": lambda: K.Normalize(torch.tensor(MEAN), torch.tensor(STD)),
    "erasing": lambda: K.RandomErasing(**ALWAYS),
}


def op(name, images):
    torch.set_num_threads(1)
    if name not in OPS:
        return None
    step = OPS[name]()
    floats = [torch.from_numpy(image).permute(2, 0, 1).float().div(255) for image in images]
    batches = [torch.stack(floats[at : at + BATCH]) for at in range(0, len(floats), BATCH)]

    def run():
        with torch.no_grad():
            return sum(len(step(batch)) for batch in batches)

    return run


def recipe(name, folder):
    return None  # it has no decoder of files on the CPU


if __name__ == "__main__":
    main(sys.modules[__name__])
