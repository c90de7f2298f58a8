# SPDX-License-Identifier: Apache-2.0
"""How the programs of programs.py open images, and transforms that people write themselves."""

from __future__ import annotations

import io
import random

import numpy as np
import torch
import torchvision.transforms as T
import torchvision.transforms.functional as TF
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from torch import nn
from torchvision import datasets
from torchvision.transforms import v2

# ---- how an image is opened: functions of a path ----


def as_it_is(path):
    return Image.open(path)


def converted(path):
    return Image.open(path).convert("RGB")


def from_a_file(path):
    with open(path, "rb") as file:
        return Image.open(file).convert("RGB")


def with_statement(path):
    with Image.open(path) as image:
        return image.convert("RGB")


def loaded(path):
    image = Image.open(path)
    image.load()
    return image


def from_bytes(path):
    return Image.open(io.BytesIO(path.read_bytes())).convert("RGB")


def torchvisions(path):
    return datasets.folder.default_loader(str(path))


def grey(path):
    return Image.open(path).convert("L")


def through_alpha(path):
    image = Image.open(path)
    return image.convert("RGBA").convert("RGB") if image.mode == "P" else image.convert("RGB")


def upright(path):
    return ImageOps.exif_transpose(Image.open(path)).convert("RGB")


def upright_in_place(path):
    image = Image.open(path)
    ImageOps.exif_transpose(image, in_place=True)
    return image.convert("RGB")


def copied(path):
    return Image.open(path).copy().convert("RGB")


def drafted(path):
    image = Image.open(path)
    image.draft("RGB", (image.width // 2, image.height // 2))
    return image.convert("RGB")


def thumbnail(path):
    image = Image.open(path).convert("RGB")
    image.thumbnail((40, 40))
    return image


def resized(path):
    return Image.open(path).convert("RGB").resize((48, 40), Image.BILINEAR)


def reduced(path):
    return Image.open(path).convert("RGB").reduce(2)


def cropped(path):
    image = Image.open(path).convert("RGB")
    return image.crop((2, 3, image.width - 4, image.height - 1))


def cropped_beyond(path):
    image = Image.open(path).convert("RGB")
    return image.crop((-5, 3, image.width + 4, image.height - 1))


def cropped_at_random(path):
    image = Image.open(path).convert("RGB")
    left = random.randint(0, image.width // 3)
    top = np.random.randint(0, image.height // 3)
    return image.crop((left, top, image.width, image.height))


def through_an_array(path):
    return Image.fromarray(np.asarray(Image.open(path).convert("RGB"))[:, ::-1].copy())


def through_np_array(path):
    return Image.fromarray(np.array(Image.open(path).convert("RGB")))


def mirrored(path):
    return ImageOps.mirror(Image.open(path).convert("RGB"))


def fitted(path):
    return ImageOps.fit(Image.open(path).convert("RGB"), (40, 36), Image.BICUBIC)


def contrasted(path):
    return ImageOps.autocontrast(Image.open(path).convert("RGB"))


def turned(path):
    return Image.open(path).convert("RGB").transpose(Image.Transpose.ROTATE_90)


def rotated(path):
    return Image.open(path).convert("RGB").rotate(random.uniform(-20, 20), expand=True)


def sharpened(path):
    return ImageEnhance.Sharpness(Image.open(path).convert("RGB")).enhance(1.5)


def filtered(path):
    return Image.open(path).convert("RGB").filter(ImageFilter.GaussianBlur(1))


def channels_swapped(path):
    red, green, blue = Image.open(path).convert("RGB").split()
    return Image.merge("RGB", (blue, green, red))


def pasted(path):
    image = Image.open(path).convert("RGB")
    side = max(image.size)
    square = Image.new("RGB", (side, side), (127, 127, 127))
    square.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    return square


def painted(path):
    image = Image.open(path).convert("RGB")
    image.putpixel((0, 0), (255, 0, 0))
    image.paste((0, 255, 0), (1, 1, 4, 4))
    return image


def checked_first(path):
    Image.open(path).verify()
    return Image.open(path).convert("RGB")


def if_not_rgb(path):
    image = Image.open(path)
    if image.mode != "RGB":
        image = image.convert("RGB")
    return image


def no_alpha(path):
    image = Image.open(path)
    if image.mode in ("RGBA", "LA") or "transparency" in image.info:
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        white.alpha_composite(image.convert("RGBA"))
        return white.convert("RGB")
    return image.convert("RGB")


OPENINGS = [
    as_it_is, converted, from_a_file, with_statement, loaded, from_bytes, torchvisions, grey, through_alpha, upright,
    upright_in_place, copied, drafted, thumbnail, resized, reduced, cropped, cropped_beyond, cropped_at_random,
    through_an_array, through_np_array, mirrored, fitted, contrasted, turned, rotated, sharpened, filtered,
    channels_swapped, pasted, painted, checked_first, if_not_rgb, no_alpha,
]  # fmt: skip


# ---- own transforms ----


class NoiseByTorch:
    def __init__(self, std=0.1):
        self.std = std

    def __call__(self, tensor):
        return tensor + torch.randn(tensor.size()) * self.std


class FlipByRandom:
    def __call__(self, image):
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if random.random() < 0.5 else image


class CropByNumpy:
    def __init__(self, size):
        self.size = size

    def __call__(self, image):
        left = np.random.randint(0, max(1, image.width - self.size))
        top = np.random.randint(0, max(1, image.height - self.size))
        return image.crop((left, top, left + self.size, top + self.size))


class BlurByRandom:
    """SimCLR's."""

    def __call__(self, image):
        return image.filter(ImageFilter.GaussianBlur(radius=random.uniform(0.1, 2.0)))


class RotateByChoice(nn.Module):
    def forward(self, image):
        return TF.rotate(image, random.choice([-30, -15, 0, 15, 30]))


class PadToSquare:
    def __call__(self, image):
        width, height = image.size
        side = max(width, height)
        return TF.pad(image, [(side - width) // 2, (side - height) // 2, side - width - (side - width) // 2,
                              side - height - (side - height) // 2])  # fmt: skip


class OwnFlip(T.RandomHorizontalFlip):
    def forward(self, image):
        return TF.vflip(image) if torch.rand(1) < self.p else image


class OwnV2(v2.Transform):
    def make_params(self, flat_inputs):
        return {"turn": int(torch.randint(0, 4, ()))}

    def transform(self, inpt, params):
        return inpt.rotate(90 * params["turn"], expand=True) if isinstance(inpt, Image.Image) else inpt


class Cutout:
    def __call__(self, tensor):
        y = np.random.randint(tensor.shape[-2])
        x = np.random.randint(tensor.shape[-1])
        tensor = tensor.clone()
        tensor[..., max(0, y - 4) : y + 4, max(0, x - 4) : x + 4] = 0
        return tensor


def to_grey_three(image):
    return image.convert("L").convert("RGB")


def as_float_array(image):
    return np.asarray(image.convert("RGB"), dtype=np.float32) / 255


def from_array(array):
    return torch.from_numpy(np.ascontiguousarray(array.transpose(2, 0, 1)))


def stack_crops(crops):
    return torch.stack([TF.to_tensor(crop) for crop in crops])
