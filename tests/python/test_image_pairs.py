# SPDX-License-Identifier: Apache-2.0
"""Several images of a sample become what the pipeline makes of the first one, with the same draws."""

from __future__ import annotations

import os

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask PyPI for newer versions

import numpy as np
import pytest
import stoker
import torch
from PIL import Image
from stoker import transforms as T
from test_boxes import npy, png, write
from torchvision import transforms as V
from torchvision.transforms import v2

FIELDS = ("png", "right.png", "seg.png", "cls")
SIZES = ((60, 80), (47, 53), (90, 40))


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    """Samples of an image, another one that is darker by 1, the mask of the former's first channel, and a number."""
    rng = np.random.default_rng(3)
    images = [rng.integers(1, 256, (*SIZES[k % 3], 3), np.uint8) for k in range(12)]
    samples = [(png(one), png(one - 1), png(one[:, :, 0]), str(k).encode()) for k, one in enumerate(images)]
    return write(tmp_path_factory.mktemp("pairs") / "a.tar", samples, FIELDS), images


def batches(path, transform, fields=FIELDS, **options):
    named = {"images": "right.png"} | ({"masks": "seg.png"} if "seg.png" in fields else {})
    data = stoker.datasets.WebDataset(path, fields, transform, **named)
    return list(stoker.DataLoader(data, 4, num_workers=2, seed=5, **options))


MOVES = {
    "v1": V.Compose([V.RandomResizedCrop(32, interpolation=V.InterpolationMode.NEAREST), V.RandomHorizontalFlip(), V.PILToTensor()]),
    "v2": v2.Compose([v2.RandomCrop(30), v2.RandomVerticalFlip(), v2.RandomRotation(40), v2.ToImage()]),
    "ours": T.Compose([T.RandomApply([T.RandomCrop(20)], 0.5), T.Resize((24, 24), "nearest"), T.PILToTensor()]),
}


@pytest.mark.parametrize("name", MOVES)
def test_both_images_and_the_mask_move_alike(shard, name):
    for images, others, masks, _ in batches(shard[0], MOVES[name]):
        inside = images > 0  # but for a rotation's border
        assert others.dtype == torch.uint8 and others.shape == images.shape and inside.float().mean() > 0.5
        assert torch.equal(others[inside], images[inside] - 1)
        assert torch.equal(masks, images[:, 0])


@pytest.mark.parametrize("dtype", [None, "float16", "bfloat16"])
@pytest.mark.parametrize("memory_format", [None, "channels_last"])
def test_values_change_alike(tmp_path, dtype, memory_format):
    """Equal images stay equal: colours, noise in erased boxes, and the type of the batch."""
    rng = np.random.default_rng(4)
    same = [png(rng.integers(0, 256, (50, 60, 3), np.uint8)) for _ in range(8)]
    path = write(tmp_path / "a.tar", [(one, one) for one in same], FIELDS[:2])
    steps = [V.RandomCrop(40), V.ColorJitter(0.4, 0.4, 0.4, 0.2), V.RandAugment(), V.ToTensor(), V.Normalize([0.4] * 3, [0.2] * 3)]
    pipeline = V.Compose([*steps, V.RandomErasing(1.0, value="random")])
    made = batches(path, pipeline, FIELDS[:2], dtype=dtype, memory_format=memory_format)
    assert len({image.numpy().tobytes() for images, _ in made for image in images.float()}) == len(same)
    for images, others in made:
        assert others.dtype == images.dtype and torch.equal(images, others)


def test_a_sample_alone_and_without_a_transform(shard):
    path, images = shard
    data = stoker.datasets.WebDataset(path, FIELDS, MOVES["v1"], images=["right.png"], masks="seg.png")
    first, second, mask, number = data[7]
    assert number == 7 and torch.equal(second, first - 1) and np.array_equal(mask, first[0])
    plain = stoker.datasets.WebDataset(path, FIELDS, images="right.png")[2]
    assert np.array_equal(plain[0], images[2]) and np.array_equal(plain[1], images[2] - 1)
    again = [batches(path, MOVES["v2"])[2][1] for _ in range(2)]
    assert torch.equal(*again)


def test_folders_of_pairs(tmp_path):
    rng = np.random.default_rng(6)
    for folder in ("before", "after"):
        (tmp_path / folder).mkdir()
    for k in range(5):
        image = rng.integers(0, 256, (40 + k, 50, 3), np.uint8)
        Image.fromarray(image).save(tmp_path / "before" / f"{k}.png")
        Image.fromarray(255 - image).save(tmp_path / "after" / f"{k}_new.png")
    pipeline = v2.Compose([v2.RandomCrop(33), v2.RandomHorizontalFlip(), v2.PILToTensor()])
    data = stoker.datasets.ImagePairs(tmp_path / "before", tmp_path / "after", pipeline, suffix="_new")
    loader = stoker.DataLoader(data, 5, shuffle=True)
    assert "Python" not in str(loader.explain())
    first, second = next(iter(loader))
    assert torch.equal(second, 255 - first)
    first, second = data[3]
    assert torch.equal(second, 255 - first)
    with pytest.raises(NotImplementedError, match="several images only follow steps of the engine"):
        stoker.datasets.ImagePairs(tmp_path / "before", tmp_path / "after", lambda image: image.effect_spread(3), suffix="_new")[0]


def test_images_that_do_not_fit_are_errors(tmp_path, shard):
    image = np.zeros((20, 30, 3), np.uint8)
    path = write(tmp_path / "a.tar", [(png(image), png(image[1:]))], FIELDS[:2])
    with pytest.raises(stoker.StokerError, match="right.png.*30 x 19 pixels, but the first image 30 x 20") as error:
        batches(path, T.ToTensor(), FIELDS[:2])
    assert "a.tar" in str(error.value)
    path = write(tmp_path / "b.tar", [(png(image), b"no image")], FIELDS[:2])
    with pytest.raises(stoker.StokerError, match="right.png"):
        batches(path, T.ToTensor(), FIELDS[:2])
    with pytest.raises(ValueError, match="there are .*right.png"):
        data = stoker.datasets.WebDataset(shard[0], FIELDS, T.ToTensor(), images="left.png")
        next(iter(stoker.DataLoader(data, 2)))
    path = write(tmp_path / "c.tar", [(png(image), npy(np.zeros((2, 4), np.float32)))], ("png", "boxes.npy"))
    with pytest.raises(ValueError, match="of type array"):
        next(iter(stoker.DataLoader(stoker.datasets.WebDataset(path, ("png", "boxes.npy"), T.ToTensor(), images="boxes.npy"), 1)))


def test_albumentations_additional_targets(shard):
    A = pytest.importorskip("albumentations")
    ToTensorV2 = pytest.importorskip("albumentations.pytorch").ToTensorV2
    path, given = shard
    names = {"right": "image"}
    fixed = A.Compose([A.Transpose(p=1), A.CenterCrop(30, 31), A.Normalize(), ToTensorV2()], additional_targets=names)
    got = [row for images, others, _, _ in batches(path, fixed) for row in zip(images, others, strict=True)]
    for (image, other), one in zip(got, given, strict=True):
        wanted = fixed(image=one, right=one - 1)
        assert torch.equal(image, wanted["image"]) and torch.equal(other, wanted["right"])
    drawn = A.Compose([A.RandomCrop(30, 30), A.D4(), A.CoarseDropout(fill=0, p=1)], additional_targets=names)
    for images, others, masks, _ in batches(path, drawn):
        assert images.shape == (4, 30, 30, 3) and torch.equal(others, torch.where(images > 0, images - 1, 0))
        assert len(masks) == 4
    two = A.Compose([A.HorizontalFlip(p=1), ToTensorV2()], additional_targets={"second": "mask"})
    data = stoker.datasets.WebDataset(path, FIELDS, two, masks=["right.png", "seg.png"])
    assert data.field_types["seg.png"] == "image"
    for options, what in (({}, "image"), ({"masks": ["seg.png"]}, "mask")):
        with pytest.raises(ValueError, match=f"more {what}s than the dataset"):
            stoker.datasets.WebDataset(path, FIELDS, fixed if what == "image" else two, **options)
