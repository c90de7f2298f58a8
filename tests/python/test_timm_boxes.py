# SPDX-License-Identifier: Apache-2.0
"""Boxes and masks follow timm's transforms, although timm itself has none: they stay around what they were drawn around."""

from __future__ import annotations

import numpy as np
import pytest
import stoker
from PIL import Image
from stoker import transforms as T
from test_boxes import npy, png, write

timm_data = pytest.importorskip("timm.data")
from timm.data import auto_augment  # noqa: E402
from timm.data import transforms as timm_transforms  # noqa: E402

HPARAMS = {"translate_const": 20, "img_mean": (0, 0, 0), "interpolation": Image.Resampling.NEAREST}
MOVES = ["Rotate", "ShearX", "ShearY", "TranslateX", "TranslateY", "TranslateXRel", "TranslateYRel"]
CROPS = {
    "crop or pad": timm_transforms.CenterCropOrPad((90, 130)),
    "random crop or pad": timm_transforms.RandomCropOrPad((90, 130)),
    "keep ratio": timm_transforms.ResizeKeepRatio((90, 130), random_scale_prob=1, random_aspect_prob=1, interpolation="bilinear"),
}


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    """Black images with a white rectangle, its box and its mask."""
    rng, samples = np.random.default_rng(7), []
    for _ in range(40):
        left, top = map(int, rng.integers(30, 50, 2))
        right, bottom = left + int(rng.integers(8, 40)), top + int(rng.integers(8, 40))
        pixels = np.zeros((120, 110, 3), np.uint8)
        pixels[top:bottom, left:right] = 255
        boxes = np.array([[left, top, right, bottom]], np.float32)
        samples.append((png(pixels), npy(boxes), png(pixels[:, :, 0] // 255)))
    return write(tmp_path_factory.mktemp("timm") / "a.tar", samples, ("png", "boxes.npy", "mask.png"))


def check(shard, step, within):
    data = stoker.datasets.WebDataset(
        shard, ("png", "boxes.npy", "mask.png"), T.Compose([step, T.PILToTensor()]), boxes="boxes.npy", masks="mask.png"
    )
    moved = 0
    for images, boxes, masks in stoker.DataLoader(data, 4, num_workers=1, ragged="list"):
        for image, box, mask in zip(images, boxes, masks, strict=True):
            white = image[0].numpy() > 127
            y, x = np.nonzero(white)
            assert len(y) and np.abs(white.astype(int) - mask.numpy()).mean() < 0.02
            around = np.array([x.min(), y.min(), x.max() + 1, y.max() + 1])
            assert np.abs(box.numpy()[0] - around).max() <= within, (box, around)
            moved += 1
    assert moved == 40


@pytest.mark.parametrize("name", MOVES)
def test_changes_of_rand_augment(shard, name):
    op = auto_augment.AugmentOp(name, prob=1.0, magnitude=5, hparams=HPARAMS)
    check(shard, auto_augment.RandAugment([op], num_layers=1), 1.5)


@pytest.mark.parametrize("name", CROPS)
def test_sizes(shard, name):
    check(shard, CROPS[name], 1.5)
