# SPDX-License-Identifier: Apache-2.0
"""No pipeline that torchvision runs is an error here: pipelines drawn from a seed, in users' own datasets and in ImageFolder."""

from __future__ import annotations

import random
import warnings

import numpy as np
import PIL.Image
import pytest
import stoker
import torch
import torch.utils.data as tud
from random_pipelines import pipeline, scaled
from torchvision import transforms as V1
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

SIZES = [(47, 33), (64, 40), (35, 61)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("pictures")
    for k, (width, height) in enumerate(SIZES):
        (root / "ab"[k % 2]).mkdir(exist_ok=True)
        small = np.random.default_rng(k).integers(0, 256, (height // 6, width // 6, 3), dtype=np.uint8)
        image = PIL.Image.fromarray(small).resize((width, height), PIL.Image.Resampling.BICUBIC)
        image.save(root / "ab"[k % 2] / f"{k}.{'png' if k else 'jpg'}")
    return root


class Own(tud.Dataset):
    def __init__(self, root, transform):
        self.files, self.transform = sorted(root.glob("*/*")), transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        return self.transform(PIL.Image.open(self.files[index]).convert("RGB")), index


def images_of(batch):
    return [image for image, _ in batch]


def results(make):
    """The tensors of an epoch, with seeds; or the type of the error that ends it."""
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return [image for images in make() for image in images]
        except Exception as error:
            return error


def same(ours, theirs, about):
    assert isinstance(theirs, list) == isinstance(ours, list), (ours, theirs, about)
    if isinstance(theirs, list):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs, strict=True):
            assert mine.dtype == other.dtype and torch.equal(torch.as_tensor(mine), torch.as_tensor(other)), about


@pytest.mark.parametrize("first", range(0, 24, 8))
def test_in_own_datasets(tree, first):
    for seed in range(first, first + 8):
        data = Own(tree, pipeline(seed, fixed=False))
        theirs = results(lambda: tud.DataLoader(data, 2, collate_fn=images_of))  # noqa: B023
        same(results(lambda: stoker.DataLoader(data, 2, collate_fn=images_of)), theirs, (seed, data.transform))  # noqa: B023


class Preset:
    """As in torchvision's reference scripts."""

    def __init__(self, steps):
        self.transforms = V1.Compose(steps)

    def __call__(self, image):
        return self.transforms(image)


class Resize:
    """Has the name of torchvision's, and no effect."""

    def __init__(self, size):
        self.size = size

    def __call__(self, image):
        return image


def test_crops_of_floats_that_need_a_border(tree):
    """Outside of the image is 0, which Normalize makes of no byte; where images are large enough, that does not matter."""
    norm = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.4] * 3, [0.3] * 3)]
    for steps, where in (
        ([v2.Resize((54, 17)), *norm, v2.CenterCrop(28)], "Python"),
        ([v2.Resize(30), *norm, v2.RandomHorizontalFlip(1.0), v2.CenterCrop(28)], "engine"),
        ([v2.Resize(30), v2.RandomRotation((20, 20), expand=True), *norm, v2.CenterCrop(28)], "Python"),
        ([v2.Resize((54, 17)), *norm[:2], v2.CenterCrop(28), norm[2]], "engine"),
        ([V1.ToTensor(), V1.Lambda(scaled), V1.CenterCrop(40)], "Python"),
        ([V1.ToTensor(), scaled, V1.CenterCrop(40)], "Python"),
        ([lambda image: image.convert("RGB"), V1.CenterCrop(40), V1.ToTensor()], "engine"),
        ([*norm, v2.RandomApply([v2.CenterCrop(40)], p=1.0)], "Python"),
        ([*norm, v2.RandomChoice([v2.CenterCrop(40)])], "Python"),
        ([Preset([V1.Resize(30), V1.CenterCrop(28), V1.ToTensor()])], "engine"),
        ([Preset([V1.ToTensor(), scaled]), V1.CenterCrop(40)], "Python"),
        ([Resize(60), *norm, v2.CenterCrop(40)], "Python"),
    ):
        transform = v2.Compose(steps)
        loader = stoker.DataLoader(stoker.datasets.ImageFolder(tree, transform), 2, num_workers=0)
        assert loader.explain().rows[0].where.startswith("engine") == (where == "engine"), transform
        theirs = results(lambda: tud.DataLoader(ImageFolder(tree, transform), 2, collate_fn=images_of))  # noqa: B023
        same(results(lambda: (images for images, _ in loader)), theirs, transform)  # noqa: B023


def test_values_that_only_torchvision_takes(tree):
    """What a class of stoker.transforms refuses is no error in torchvision's."""
    for steps, word in (
        ([v2.PILToTensor(), v2.ToDtype(torch.float64, scale=True)], "float64"),
        ([V1.PILToTensor(), V1.ConvertImageDtype(torch.float64)], "float64"),
        ([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.4], [0.3]), v2.RandomZoomOut(p=1.0)], "RandomZoomOut"),
    ):
        loader = stoker.DataLoader(stoker.datasets.ImageFolder(tree, v2.Compose(steps)), 1, num_workers=0)
        assert word in str(loader.explain())
        assert next(iter(loader))[0].dtype is (torch.float64 if word == "float64" else torch.float32)
    with pytest.raises(ValueError, match="float64"):
        stoker.transforms.ConvertImageDtype(torch.float64)


@pytest.mark.parametrize("first", range(100, 124, 8))
def test_in_image_folders(tree, first):
    """Equal if nothing is drawn; else there is no error if torchvision has none, and types are torchvision's."""
    engine = 0
    for seed in range(first, first + 8):
        fixed = seed % 2 == 0
        transform = pipeline(seed, fixed=fixed)
        theirs = results(lambda: tud.DataLoader(ImageFolder(tree, transform), 2, collate_fn=images_of))  # noqa: B023
        loader = stoker.DataLoader(stoker.datasets.ImageFolder(tree, transform), 2, seed=3, num_workers=0)
        engine += loader.explain().rows[0].where.startswith("engine")
        ours = results(lambda: (images for images, _ in loader))  # noqa: B023
        if fixed or not isinstance(theirs, list):
            same(ours, theirs, (seed, transform))
        else:
            assert isinstance(ours, list), (ours, transform)
            assert [image.dtype for image in ours] == [image.dtype for image in theirs], (seed, transform)
    assert engine
