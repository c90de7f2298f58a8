# SPDX-License-Identifier: Apache-2.0
"""Pipelines of torchvision's transforms (v1 and v2) drawn from a seed, with Lambdas and classes of one's own between them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import PIL.Image
import PIL.ImageFilter
import PIL.ImageOps
import torch
from torchvision import transforms as V1
from torchvision.transforms import functional as TF
from torchvision.transforms import v2

MODES = V1.InterpolationMode
MAPS = (MODES.NEAREST, MODES.BILINEAR, MODES.BICUBIC)
RESIZES = (*MAPS, MODES.LANCZOS, MODES.BOX, MODES.HAMMING)


class OwnFlip:
    def __call__(self, image):
        return PIL.ImageOps.mirror(image) if random.random() < 0.5 else image


class OwnBlur:
    def __call__(self, image):
        if random.random() < 0.5:
            return image.filter(PIL.ImageFilter.GaussianBlur(random.uniform(0.1, 2.0)))
        return image


class OwnMedian:
    def __call__(self, image):
        return image.filter(PIL.ImageFilter.MedianFilter(3))


class OwnGamma(torch.nn.Module):
    def forward(self, image):
        return TF.adjust_gamma(image, 1.5)


class OwnInverse:
    def __call__(self, image):
        return PIL.Image.fromarray(255 - np.asarray(image))


class OwnNoise:
    def __call__(self, tensor):
        return tensor + torch.randn_like(tensor) * 0.1


def scaled(tensor):
    return tensor * 2 - 1


class Drawn(random.Random):
    """Parameters of transforms."""

    def side(self):
        return self.randint(8, 60)

    def size(self):
        return self.choice([self.side(), (self.side(), self.side()), [self.side()]])

    def fill(self):
        return self.choice([0, self.randint(0, 255), tuple(self.randint(0, 255) for _ in range(3))])

    def padding(self):
        return self.choice([self.randint(0, 6), [1, 2], (3, 1, 4, 2)])

    def border(self):
        return self.choice(["constant", "edge", "reflect", "symmetric"])

    def sometimes(self):
        return self.choice([0.3, 0.5, 1.0])

    def surely(self):
        return self.choice([0.0, 1.0])


# Steps whose result is the same every time, by the library's module `m` and what is drawn.
FIXED = [
    lambda m, d: m.Resize(d.size(), interpolation=d.choice(RESIZES)),
    lambda m, d: m.Resize(d.randint(8, 40), max_size=d.randint(41, 80)),
    lambda m, d: m.CenterCrop(d.size()),
    lambda m, d: m.Pad(d.padding(), fill=d.fill(), padding_mode=d.border()),
    lambda m, d: m.RandomHorizontalFlip(d.surely()),
    lambda m, d: m.RandomVerticalFlip(d.surely()),
    lambda m, d: m.Grayscale(3),
    lambda m, d: m.RandomGrayscale(d.surely()),
    lambda m, d: m.RandomInvert(d.surely()),
    lambda m, d: m.RandomPosterize(d.randint(1, 8), d.surely()),
    lambda m, d: m.RandomSolarize(d.choice([0, 77.5, 128, 256]), d.surely()),
    lambda m, d: m.RandomAdjustSharpness(d.choice([0, 0.5, 1, 3.3]), d.surely()),
    lambda m, d: m.RandomAutocontrast(d.surely()),
    lambda m, d: m.RandomEqualize(d.surely()),
    lambda m, d: m.RandomRotation((30, 30), interpolation=d.choice(MAPS), expand=d.random() < 0.3, fill=d.fill()),
    lambda m, d: m.RandomApply([d.choice(FIXED[:10])(m, d) for _ in range(2)], p=d.surely()),
    lambda m, d: m.Compose([d.choice(FIXED[:10])(m, d) for _ in range(2)]),
    lambda m, d: m.Lambda(lambda image: image.convert("L").convert("RGB")),
    lambda m, d: d.choice([OwnMedian, OwnGamma, OwnInverse])(),
]  # fmt: skip
RANDOM = [
    lambda m, d: m.RandomCrop(d.randint(2, 6), padding=d.choice([None, d.padding()]), fill=d.fill()),
    lambda m, d: m.RandomResizedCrop(d.size(), scale=d.choice([(0.08, 1.0), (1.0, 1.0)]), interpolation=d.choice(RESIZES)),
    lambda m, d: m.RandomHorizontalFlip(0.5),
    lambda m, d: m.ColorJitter(d.choice([0, 0.4, (0.5, 1.5)]), d.choice([0, 0.4]), d.choice([0, (0, 2.0)]), d.choice([0, 0.1])),
    lambda m, d: m.GaussianBlur(d.choice([3, (3, 7)]), d.choice([(0.1, 2.0), 1.5])),
    lambda m, d: m.RandomRotation(d.choice([15, (-30, 60)]), interpolation=d.choice(MAPS), expand=d.random() < 0.3, fill=d.fill()),
    lambda m, d: m.RandomAffine(
        20, d.choice([None, (0.1, 0.3)]), d.choice([None, (0.7, 1.4)]), d.choice([None, 10, (-5, 5, -8, 8)]), d.choice(MAPS), d.fill()
    ),
    lambda m, d: m.RandomPerspective(d.choice([0.1, 1.0]), p=d.sometimes(), interpolation=d.choice(MAPS), fill=d.fill()),
    lambda m, d: m.ElasticTransform(d.choice([10.0, [20.0, 40.0]]), 1.0, d.choice(MAPS[:2]), fill=7),
    lambda m, d: m.AutoAugment(d.choice(list(V1.AutoAugmentPolicy)), d.choice(MAPS), d.choice([None, 5]))
    if m is V1 else m.AutoAugment(d.choice(list(V1.AutoAugmentPolicy)), d.choice(MAPS), 5),
    lambda m, d: m.RandAugment(d.randint(0, 4), d.randint(0, 30), interpolation=d.choice(MAPS)),
    lambda m, d: m.TrivialAugmentWide(d.choice([31, 5]), interpolation=d.choice(MAPS)),
    lambda m, d: m.AugMix(d.randint(1, 10), d.randint(1, 4), d.choice([-1, 1, 4]), interpolation=d.choice(MAPS[:2])),
    lambda m, d: m.RandomApply([image_step(m, d) for _ in range(2)], p=d.sometimes()),
    lambda m, d: m.RandomChoice([image_step(m, d) for _ in range(3)], p=d.choice([None, [0.2, 0.3, 0.5]])),
    lambda m, d: m.RandomOrder([image_step(m, d) for _ in range(2)]),
    lambda m, d: d.choice([OwnFlip, OwnBlur])(),
]  # fmt: skip
OF_V2 = [
    lambda m, d: m.RandomResize(d.randint(8, 30), d.randint(31, 60)),
    lambda m, d: m.RandomShortestSize([d.side(), d.side()], max_size=d.choice([None, 70])),
    lambda m, d: m.ScaleJitter((d.side(), d.side()), scale_range=(0.5, 1.5)),
    lambda m, d: m.RandomZoomOut(fill=d.fill(), side_range=(1.0, 2.0), p=d.sometimes()),
    lambda m, d: m.RandomChannelPermutation(),
    lambda m, d: m.RandomPhotometricDistort(p=d.sometimes()),
]
OF_TENSORS = [
    lambda m, d: m.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.25]),
    lambda m, d: m.Lambda(scaled),
    lambda m, d: m.CenterCrop(d.randint(2, 30)),
    lambda m, d: m.Pad(2),
    lambda m, d: m.RandomErasing(p=1.0, scale=(0.1, 0.1), value=0) if d.random() < 0.5 else m.RandomHorizontalFlip(1.0),
]
RANDOM_OF_TENSORS = [
    lambda m, d: m.RandomErasing(p=d.sometimes(), value=d.choice([0, (1.0, 2.0, 3.0), "random"])),
    lambda m, d: OwnNoise(),
    lambda m, d: m.RandomResizedCrop(20),
    lambda m, d: m.GaussianBlur(3),
]


def image_step(m: Any, d: Drawn) -> Any:
    return d.choice(FIXED + RANDOM + (OF_V2 if m is v2 else []))(m, d)


def to_floats(m: Any, d: Drawn) -> list[Any]:
    if m is V1:
        return d.choice([[m.ToTensor()], [m.PILToTensor(), m.ConvertImageDtype(torch.float32)]])
    tensor = [m.ToImage(), m.ToDtype(torch.float32, scale=True)]
    return d.choice([tensor, [*tensor, m.ToPureTensor()]])


def pipeline(seed: int, *, fixed: bool) -> Any:
    """A pipeline for images of at least 8 x 8 pixels; `fixed`: of which the result is the same every time."""
    d = Drawn(seed)
    m = d.choice([V1, v2])
    steps = [m.Resize((d.side(), d.side()))]  # before borders that reflect
    steps += [d.choice(FIXED)(m, d) if fixed else image_step(m, d) for _ in range(d.randint(1, 5))]
    if d.random() < 0.2:
        return m.Compose([*steps, m.PILToTensor()])
    after = OF_TENSORS[:4] if fixed else OF_TENSORS + RANDOM_OF_TENSORS
    return m.Compose(steps + to_floats(m, d) + [d.choice(after)(m, d) for _ in range(d.randint(0, 2))])
