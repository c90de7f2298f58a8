# SPDX-License-Identifier: Apache-2.0
"""Resizing through the whole pipeline: byte for byte Pillow, and bit for bit torchvision behind it."""

import random

import numpy as np
import pytest
from PIL import Image

from stoker import transforms as T

FILTERS = ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def pillow_filter(name):
    return getattr(Image.Resampling, name.upper())


def noise(rng, height, width):
    """Noise, or black and white noise, which finds sums that overflow."""
    image = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
    return image if rng.integers(3) else np.where(image > 127, 255, 0).astype(np.uint8)


def sizes(seed, count):
    """Width and height before and after: small, large, thin, equal."""
    chance = random.Random(seed)
    for i in range(count):
        most = (12, 120, 500)[i % 3]
        w, h, ow, oh = (chance.randint(1, chance.choice((most, most, 9))) for _ in range(4))
        if i % 10 == 4:
            w = chance.randint(1000, 3000)
        if i % 10 == 5:
            ow = w
        if i % 10 == 6:
            oh = h
        yield w, h, ow, oh


def hwc(array):
    return array.transpose(1, 2, 0)


@pytest.mark.parametrize("name", FILTERS)
def test_rgb_is_pillow(name):
    rng = np.random.default_rng(FILTERS.index(name))
    for w, h, ow, oh in sizes(name, 110):
        image = noise(rng, h, w)
        ours = hwc(T.functional_apply(T.Resize((oh, ow), interpolation=name), image))
        pillow = np.asarray(Image.fromarray(image).resize((ow, oh), pillow_filter(name)))
        assert np.array_equal(ours, pillow), f"{name}: {w}x{h} to {ow}x{oh}"


@pytest.mark.parametrize("name", FILTERS)
def test_grey_is_pillow(name):
    rng = np.random.default_rng(FILTERS.index(name))
    for w, h, ow, oh in sizes(name + " grey", 30):
        image = noise(rng, h, w)
        transform = T.Compose([T.Grayscale(), T.Resize((oh, ow), interpolation=name)])
        ours = T.functional_apply(transform, image)[0]
        pillow = np.asarray(Image.fromarray(image).convert("L").resize((ow, oh), pillow_filter(name)))
        assert np.array_equal(ours, pillow), f"{name}: {w}x{h} to {ow}x{oh}"


def test_the_order_of_the_passes_is_pillows_of_either_kind():
    """Up to Pillow 12 the horizontal pass comes first: two resizes of one side each show it."""
    rng = np.random.default_rng(1)
    differ = 0
    shapes = [(300, 400, 280, 150), (64, 300, 70, 100), (200, 500, 100, 100), (90, 91, 90, 40)]
    for w, h, ow, oh in shapes:
        image = noise(rng, h, w)
        transform = T.Resize((oh, ow), interpolation="bicubic")
        step = Image.fromarray(image).resize((ow, h), Image.Resampling.BICUBIC)
        earlier = np.asarray(step.resize((ow, oh), Image.Resampling.BICUBIC))
        ours = hwc(T.functional_apply(transform, image, pillow=12))
        assert np.array_equal(ours, earlier)
        differ += not np.array_equal(ours, hwc(T.functional_apply(transform, image)))
    assert differ > 0


@pytest.mark.parametrize("name", FILTERS)
def test_a_crop_of_the_result_is_the_crop_of_the_whole(name):
    rng = np.random.default_rng(2)
    for w, h, ow, oh in sizes("crop", 12):
        crop = max(1, oh // 2), max(1, ow // 3)
        image = noise(rng, h, w)
        resize = T.Resize((oh, ow), interpolation=name)
        ours = T.functional_apply(T.Compose([resize, T.CenterCrop(crop)]), image)
        whole = T.functional_apply(resize, image)
        top, left = round((oh - crop[0]) / 2), round((ow - crop[1]) / 2)
        assert np.array_equal(ours, whole[:, top : top + crop[0], left : left + crop[1]])


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("steps", ["ToTensor", "Normalize"])
def test_floats_are_torchvisions(steps, turned):
    torch = pytest.importorskip("torch")
    tv = pytest.importorskip("torchvision.transforms")
    rng = np.random.default_rng(3)
    for w, h, ow, oh in sizes("floats", 20):
        image = noise(rng, h, w)

        def pipeline(module):
            list_ = [module.Resize((oh, ow))]
            if turned:
                list_ += [module.RandomHorizontalFlip(1.0), module.RandomVerticalFlip(1.0)]
            list_ += [module.ToTensor()]
            if steps == "Normalize":
                list_ += [module.Normalize(MEAN, STD)]
            return module.Compose(list_)

        theirs = pipeline(tv)(Image.fromarray(image))
        ours = torch.from_numpy(T.functional_apply(pipeline(T), image))
        assert torch.equal(ours.view(torch.int32), theirs.view(torch.int32))
