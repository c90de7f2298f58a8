# SPDX-License-Identifier: Apache-2.0
"""Pipelines of torchvision's transforms in which nothing is drawn, for tests of lazy images."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from loading import MEAN, STD
from PIL import Image, ImageOps
from torch import nn

T = pytest.importorskip("torchvision.transforms")
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms._presets import ImageClassification, ObjectDetection, SemanticSegmentation  # noqa: E402


def invert(image):
    return ImageOps.invert(image)


class Inverted(nn.Module):
    def forward(self, image):
        return ImageOps.invert(image)


class MyResize(T.Resize):
    def forward(self, image):
        return ImageOps.invert(super().forward(image))


class MyCompose(T.Compose):
    def __call__(self, image):
        return super().__call__(ImageOps.invert(image))


class MyV2(v2.Resize):
    def transform(self, inpt, params):
        return ImageOps.invert(super().transform(inpt, params))


def noise_free(tensor):
    return tensor * 2 + 0.25


FLOAT2 = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]

# Nothing in these is drawn: results are equal to the bit, types and strides included.
FIXED = {
    "eval": T.Compose([T.Resize(64), T.CenterCrop(56), T.ToTensor(), T.Normalize(MEAN, STD)]),
    "tensor": T.Compose([T.ToTensor()]),
    "bytes": T.Compose([T.Resize((50, 40)), T.PILToTensor()]),
    "bytes, float": T.Compose([T.Resize(50), T.PILToTensor(), T.ConvertImageDtype(torch.float32), T.Normalize(MEAN, STD)]),
    "bytes, double": T.Compose([T.PILToTensor(), T.ConvertImageDtype(torch.float64)]),
    "images": T.Compose([T.Resize(50, T.InterpolationMode.BICUBIC), T.CenterCrop((45, 30))]),
    "pad": T.Compose([T.Pad((3, 4, 5, 6), fill=(1, 2, 3)), T.Pad(4, padding_mode="reflect"), T.ToTensor()]),
    "flips": T.Compose([T.RandomHorizontalFlip(1.0), T.RandomVerticalFlip(1.0), T.RandomHorizontalFlip(0.0), T.ToTensor()]),
    "flips behind": T.Compose([T.ToTensor(), T.RandomHorizontalFlip(1.0), T.Normalize(MEAN, STD)]),
    "grey": T.Compose([T.Grayscale(), T.Resize(33), T.ToTensor(), T.Normalize([0.4], [0.3])]),
    "grey image": T.Compose([T.Grayscale(), T.Resize(33)]),
    "grey, colours": T.Compose([T.Grayscale(), T.ColorJitter(brightness=(0.5, 0.5)), T.ToTensor()]),
    "grey of three": T.Compose([T.Grayscale(3), T.Resize(33), T.ToTensor()]),
    "colours": T.Compose([T.ColorJitter(brightness=(0.7, 0.7)), T.ColorJitter(saturation=(1.4, 1.4)), T.ToTensor()]),
    "hue": T.Compose([T.Resize(40), T.ColorJitter(hue=(0.2, 0.2), contrast=(1.0, 1.0))]),
    "blur": T.Compose([T.Resize(40), T.GaussianBlur(5, sigma=(1.1, 1.1)), T.ToTensor()]),
    "apply": T.Compose([T.RandomApply([T.Resize(70), T.RandomHorizontalFlip(1.0)], p=1.0), T.ToTensor()]),
    "apply list": T.Compose([T.RandomApply(nn.ModuleList([T.Grayscale(3)]), p=1.0), T.ToTensor()]),
    "nested": T.Compose([T.Compose([T.Resize(64), T.CenterCrop(56)]), T.Compose([T.ToTensor(), T.Normalize(MEAN, STD)])]),
    "normalized twice": T.Compose([T.ToTensor(), T.Normalize(MEAN, STD), T.Normalize([0.1] * 3, [0.3] * 3)]),
    "function first": T.Compose([invert, T.Resize(40), T.ToTensor()]),
    "function in between": T.Compose([T.Resize(64), invert, T.CenterCrop(50), T.ToTensor(), T.Normalize(MEAN, STD)]),
    "functions": T.Compose([T.Resize(64), invert, T.CenterCrop(50), invert, T.RandomHorizontalFlip(1.0), T.ToTensor()]),
    "lambda convert": T.Compose([T.Lambda(lambda image: image.convert("RGB")), T.Resize(40), T.ToTensor()]),
    "function behind": T.Compose([T.Resize(64), T.ToTensor(), noise_free, T.Normalize(MEAN, STD)]),
    "only functions": T.Compose([invert, np.asarray]),
    "module": T.Compose([Inverted(), T.Resize(30), T.ToTensor()]),
    "resize behind tensor": T.Compose([T.ToTensor(), T.Resize(40), T.CenterCrop(30), T.Normalize(MEAN, STD)]),
    "pad behind normalize": T.Compose([T.ToTensor(), T.Normalize(MEAN, STD), T.Pad(3), T.CenterCrop(20)]),
    "rotation": T.Compose([T.RandomRotation((20, 20)), T.Resize(40), T.ToTensor()]),
    "five": T.Compose([T.Resize(64), T.FiveCrop(30)]),
    "to image and back": T.Compose([T.Resize(64), T.ToTensor(), T.ToPILImage(), T.CenterCrop(40), T.ToTensor()]),
    "subclass": T.Compose([T.Resize(64), MyResize(50), T.ToTensor()]),
    "compose of one's own": MyCompose([T.Resize(64), T.ToTensor()]),
    "v2": v2.Compose([v2.Resize(64), v2.CenterCrop(56), *FLOAT2, v2.Normalize(MEAN, STD)]),
    "v2 image first": v2.Compose([v2.ToImage(), v2.Resize(64), v2.CenterCrop(56), v2.ToDtype(torch.float32, scale=True)]),
    "v2 pure": v2.Compose([v2.Resize(64), *FLOAT2, v2.Normalize(MEAN, STD), v2.ToPureTensor()]),
    "v2 bytes": v2.Compose([v2.RGB(), v2.Resize((30, 40)), v2.PILToTensor()]),
    "v2 convert": v2.Compose([v2.PILToTensor(), v2.ConvertImageDtype(torch.float32), v2.Normalize(MEAN, STD)]),
    "v2 identity": v2.Compose([v2.Identity(), v2.Resize(30), v2.Identity()]),
    "v2 flips": v2.Compose([v2.RandomHorizontalFlip(1.0), v2.ToImage(), v2.RandomVerticalFlip(1.0)]),
    "v2 grey": v2.Compose([v2.Grayscale(3), v2.Resize(30), *FLOAT2]),
    "v2 pad": v2.Compose([v2.Pad([2, 3], fill=7), v2.CenterCrop(400), *FLOAT2]),
    "v2 pad by type": v2.Compose([v2.Pad(2, fill={Image.Image: 3, "others": 0}), *FLOAT2]),
    "v2 no scale": v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32), v2.Normalize(MEAN, STD)]),
    "v2 lambda": v2.Compose([v2.Resize(64), v2.Lambda(invert), v2.CenterCrop(40), *FLOAT2]),
    "v2 subclass": v2.Compose([MyV2(64), *FLOAT2]),
    "v2 and v1": T.Compose([v2.Resize(64), T.CenterCrop(56), v2.ToImage(), T.ConvertImageDtype(torch.float32)]),
    "v1 and v2": v2.Compose([T.Resize(64), v2.CenterCrop(56), T.ToTensor(), v2.Normalize(MEAN, STD)]),
    "sequential": nn.Sequential(T.Resize(64), T.CenterCrop(56), v2.PILToTensor()),
    "sequential in compose": T.Compose([nn.Sequential(T.Resize(64), T.CenterCrop(56)), T.ToTensor()]),
    "sequential of functions": nn.Sequential(T.Resize(64), Inverted(), v2.ToImage()),
    "alone: resize": T.Resize(40),
    "alone: tensor": T.ToTensor(),
    "alone: bytes": T.PILToTensor(),
    "alone: v2 image": v2.ToImage(),
    "alone: v2 crop": v2.CenterCrop(30),
    "alone: normalize": T.Normalize(MEAN, STD),
    "alone: too small": T.RandomCrop(5000),
    "alone: convert": T.ConvertImageDtype(torch.float32),
    "preset": ImageClassification(crop_size=56, resize_size=64),
    "preset segmentation": SemanticSegmentation(resize_size=52),
    "preset segmentation without resize": SemanticSegmentation(resize_size=None, mean=(0.1, 0.2, 0.3)),
    "preset detection": ObjectDetection(),
    "preset bicubic": ImageClassification(crop_size=72, resize_size=64, interpolation=T.InterpolationMode.BICUBIC),
    "empty": T.Compose([]),
}
