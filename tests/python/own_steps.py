# SPDX-License-Identifier: Apache-2.0
"""Steps as users write them: blurs and the like as self-supervised code has them, and some that are a little different."""

from __future__ import annotations

import random
import random as rnd
from random import uniform

import numpy as np
import PIL
import PIL.ImageOps
import pytest
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from torch import nn

V1 = pytest.importorskip("torchvision.transforms")
from torchvision.transforms import functional as F  # noqa: E402
from torchvision.transforms.v2 import functional as F2  # noqa: E402

FACTOR = 2


class MocoBlur:
    """sigma is a list, and RandomApply is around it."""

    def __init__(self, sigma=(0.1, 2.0)):
        self.sigma = list(sigma)

    def __call__(self, x):
        sigma = random.uniform(self.sigma[0], self.sigma[1])
        x = x.filter(ImageFilter.GaussianBlur(radius=sigma))
        return x


class DinoBlur:
    def __init__(self, p=0.5, radius_min=0.1, radius_max=2.0):
        self.prob = p
        self.radius_min = radius_min
        self.radius_max = radius_max

    def __call__(self, img):
        do_it = random.random() <= self.prob
        if not do_it:
            return img
        return img.filter(ImageFilter.GaussianBlur(radius=random.uniform(self.radius_min, self.radius_max)))


class BarlowBlur:
    def __init__(self, p):
        self.p = p

    def __call__(self, img):
        if rnd.random() < self.p:
            sigma = rnd.random() * 1.9 + 0.1
            return img.filter(ImageFilter.GaussianBlur(sigma))
        else:
            return img


class SwavBlur:
    def __init__(self, p=0.5):
        self.prob = p

    def __call__(self, img):
        if np.random.rand() <= self.prob:
            img = img.filter(PIL.ImageFilter.GaussianBlur(radius=np.random.uniform(0.1, 2.0)))
        return img


class TorchBlur(nn.Module):
    def __init__(self, p, sigma):
        super().__init__()
        self.p, self.sigma = p, sigma

    def forward(self, img):
        if self.p < torch.rand(1):
            return img
        return img.filter(ImageFilter.GaussianBlur((torch.rand(1) * (self.sigma[1] - self.sigma[0]) + self.sigma[0]).item()))


class MethodBlur:
    """Its number comes from a method, which draws from a range of torch's."""

    low, high = 0.1, 2.0

    @staticmethod
    def get_params(low, high):
        return float(torch.empty(1).uniform_(low, high).item())

    def blurred(self, img, *, sigma):
        return img.filter(ImageFilter.GaussianBlur(sigma))

    def __call__(self, img):
        return self.blurred(img, sigma=self.get_params(self.low, self.high))


class Derived(DinoBlur):
    """Only its numbers are its own."""

    def __init__(self):
        super().__init__(p=0.5)


class Solarization:
    def __init__(self, p):
        self.p = p

    def __call__(self, img):
        if random.random() < self.p:
            return ImageOps.solarize(img)
        return img


class MocoSolarize:
    def __init__(self, threshold=128):
        assert 0 < threshold < 256
        self.threshold = round(threshold)

    def __call__(self, sample):
        return PIL.ImageOps.solarize(sample, self.threshold)


class GrayScale:
    def __init__(self, p=0.2):
        self.p = p
        self.transf = V1.Grayscale(3)

    def __call__(self, img):
        if random.random() < self.p:
            return self.transf(img)
        return img


class HorizontalFlip:
    def __init__(self, p=0.2, activate_pred=False):
        self.p = p
        self.transf = V1.RandomHorizontalFlip(p=1.0)

    def __call__(self, img):
        return self.transf(img) if random.random() < self.p else img


class Turns:
    """The class of torchvision's documentation."""

    def __init__(self, angles):
        self.angles = angles

    def __call__(self, x):
        angle = random.choice(self.angles)
        return F.rotate(x, angle)


class Chain:
    """A Compose of one's own."""

    def __init__(self, *transforms):
        self.transforms = list(transforms)

    def __call__(self, img):
        for t in self.transforms:
            img = t(img)
        return img


class OneOf(Chain):
    def __call__(self, img):
        return random.choice(self.transforms)(img)


class Colours:
    def __call__(self, img):
        img = ImageEnhance.Brightness(img).enhance(random.uniform(0.6, 1.4))
        if random.random() > 0.3:
            img = F.adjust_contrast(img, random.uniform(0.5, 0.9))
        return img


def some(img):
    if random.randint(0, 3) == 2:
        return ImageOps.equalize(img)
    if np.random.randint(2):
        return F2.invert(img)
    return img


def blurred(img):
    return img.filter(ImageFilter.GaussianBlur(uniform(0.5, FACTOR)))


# ---- a little different ----


class Keeps(MocoBlur):
    """It keeps something."""

    def __call__(self, x):
        self.last = random.uniform(self.sigma[0], self.sigma[1])
        return x.filter(ImageFilter.GaussianBlur(self.last))


class Counts(MocoBlur):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __call__(self, x):
        self.seen.append(1)
        return super().__call__(x)


class Appends(MocoBlur):
    def __call__(self, x):
        self.sigma.append(2)
        return x


class DrawsOnce(DinoBlur):
    """One number decides and is the amount, too."""

    def __call__(self, img):
        u = random.random()
        if u < self.prob:
            return img.filter(ImageFilter.GaussianBlur(u))
        return img


class SameTwice(MocoBlur):
    def __call__(self, img):
        sigma = random.uniform(*self.sigma)
        return img.filter(ImageFilter.GaussianBlur(sigma)).filter(ImageFilter.GaussianBlur(sigma))


class Skewed(MocoBlur):
    def __call__(self, img):
        return img.filter(ImageFilter.GaussianBlur(random.random() * random.random()))


class Gauss(MocoBlur):
    def __call__(self, img):
        return img.filter(ImageFilter.GaussianBlur(random.gauss(1, 0.1)))


class OtherFilter(MocoBlur):
    def __call__(self, img):
        return img.filter(ImageFilter.BoxBlur(random.uniform(*self.sigma)))


class Sharpens(MocoBlur):
    def __call__(self, img):
        return img.filter(ImageFilter.SHARPEN)


class Looks(DinoBlur):
    def __call__(self, img):
        return super().__call__(img) if img.size[0] > 20 else img


class Pixels(DinoBlur):
    def __call__(self, img):
        return Image.fromarray(np.asarray(img)[::-1])


class Prints(DinoBlur):
    def __call__(self, img):
        print("here")
        return img


class Catches(DinoBlur):
    def __call__(self, img):
        try:
            return img.filter(3)
        except Exception:
            return img


class Computed(MocoBlur):
    @property
    def sigma(self):
        return [random.random(), 1]

    @sigma.setter
    def sigma(self, value):
        pass


class Delegates(MocoBlur):
    def __getattr__(self, name):
        return [0.1, 2.0]


class Hidden(MocoBlur):
    def __getattribute__(self, name):
        return [3, 4] if name == "sigma" else object.__getattribute__(self, name)


class Seeds(MocoBlur):
    def __call__(self, img):
        random.seed(1)
        return img.filter(ImageFilter.GaussianBlur(random.uniform(*self.sigma)))


class OwnGenerator(MocoBlur):
    def __init__(self):
        super().__init__()
        self.rng = random.Random(1)

    def __call__(self, img):
        return img.filter(ImageFilter.GaussianBlur(self.rng.uniform(*self.sigma)))


class Reads:
    def __call__(self, img):
        return img if open("/etc/hostname") else None


class Asks:
    def __call__(self, img):
        return img if img else None


class Global:
    def __call__(self, img):
        global FACTOR
        FACTOR = 2
        return img


class OneChannel(Chain):
    """Either way ends with one channel, by other steps."""

    def __call__(self, img):
        if random.random() < 0.5:
            return ImageOps.invert(img).convert("L")
        return img.convert("L").rotate(3)


class Escapes:
    def __call__(self, img):
        return img if ().__class__.__mro__ else img


class WithMask:
    def __call__(self, img, mask):
        return img


class MaybeMask:
    """With a mask it does something else."""

    def __call__(self, img, mask=None):
        return img if mask is None else (ImageOps.mirror(img), mask)


class AnyNumber:
    def __call__(self, *images):
        return images[0] if len(images) == 1 else images[::-1]


def generator(img):
    yield img


def closed(sigma):
    return lambda img: img.filter(ImageFilter.GaussianBlur(sigma))


class BadNumber:
    def __init__(self, sigma):
        self.sigma = sigma

    def __call__(self, img):
        return img.filter(ImageFilter.GaussianBlur(self.sigma))


class Unlikely:
    def __init__(self, p):
        self.p = p

    def __call__(self, img):
        return ImageOps.invert(img) if random.random() < self.p else img


class Endless:
    def __call__(self, img):
        while random.random() < 0.5:
            img = ImageOps.invert(img)
        return img


class Tensors:
    """Two tensors share what is drawn."""

    def __call__(self, img):
        sigma = torch.rand(1)
        other = sigma
        other *= 2
        return img.filter(ImageFilter.GaussianBlur(sigma.item()))


hooked = TorchBlur(0.5, (0.1, 2.0))
hooked.register_forward_hook(lambda module, args, out: args[0])
UNPROVED = [
    Keeps(), Counts(), Appends(), DrawsOnce(), SameTwice(), Skewed(), Gauss(), OtherFilter(), Sharpens(), Looks(), Pixels(),
    Prints(), Catches(), Computed(), Delegates(), Hidden(), Seeds(), OwnGenerator(), Reads(), Asks(), Global(),
    Escapes(), WithMask(), MaybeMask(), AnyNumber(), ImageOps.solarize, generator, closed(2), Endless(), Tensors(), hooked, OneChannel(), Chain(Pixels()), Chain(V1.FiveCrop(3)),
    MocoBlur((-1, 2)), MocoBlur((0.1, float("nan"))), MocoBlur((0.1, float("inf"))), MocoBlur((True, 2)), MocoBlur(("a", "b")),
    MocoBlur((0.1, 1e9)), MocoBlur([None, 2]), BadNumber((1, 2)), BadNumber(-1), BadNumber(float("nan")), BadNumber("1"),
    Unlikely(float("nan")), Unlikely(None), Unlikely("0.5"), MocoBlur, len, np.asarray,
]  # fmt: skip
