# SPDX-License-Identifier: Apache-2.0
"""Boxes follow rotations, affine and perspective maps and displacements with the arithmetic of torchvision's v2.

torchvision adds the three products of each coordinate in an order that its matrix library chooses. Ours are exact before
they are rounded to float32, so results may differ by 2^-22 of the sum of the products' magnitudes.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import stoker
import torch
from stoker import transforms as T
from test_boxes import BOXES, FIELDS, any_boxes, npy, png, write
from torchvision.transforms.functional import InterpolationMode
from torchvision.transforms.v2 import functional as F

NEAREST = InterpolationMode.NEAREST
SMALL = 2.0**-22


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    rng = np.random.default_rng(29)
    samples, given = [], []
    for k in range(80):
        height, width = map(int, rng.integers(3, 90, 2) if k % 4 else rng.integers(300, 900, 2))
        boxes = any_boxes(rng, k % 9, height, width)
        samples.append((png(np.zeros((height, width, 3), np.uint8)), npy(boxes), npy(np.arange(k % 9))))
        given.append(((height, width), torch.from_numpy(boxes.reshape(-1, 4))))
    return write(tmp_path_factory.mktemp("warped") / "a.tar", samples), given


def made(path, steps, **options):
    data = stoker.datasets.WebDataset(path, FIELDS[:3], T.Compose([*steps, T.ToTensor()]), boxes=BOXES)
    loader = stoker.DataLoader(data, 4, num_workers=1, **options)
    return [(image, box) for images, boxes, _ in loader for image, box in zip(images, boxes, strict=True)]


def clamped(boxes, size):
    return F.clamp_bounding_boxes(boxes, format="XYXY", canvas_size=size, clamping_mode="soft")


def reach(size, boxes, more=1.0):
    """The largest sum of magnitudes of a coordinate's products, for a map that enlarges at most `more` times."""
    return (sum(size) + float(boxes.abs().max())) * 2 * more if len(boxes) else 1.0


ANGLES = [0, 90, 180, 270, -90, 30, 45, -17.3, 359.999, 1e-9, 1234.5]


@pytest.mark.parametrize("expand", [False, True])
@pytest.mark.parametrize("angle", ANGLES)
def test_rotations(shard, angle, expand):
    path, given = shard
    compared = 0
    for (image, ours), (size, boxes) in zip(made(path, [T.RandomRotation((angle, angle), expand=expand)]), given, strict=True):
        if len(boxes):
            wanted, _ = F.rotate_bounding_boxes(boxes, "XYXY", size, angle, expand, clamping_mode=None)
            assert torch.allclose(ours, clamped(wanted, tuple(image.shape[1:])), 0, SMALL * reach(size, boxes))
            compared += len(boxes)
        assert ours.shape == boxes.shape
    assert compared > 200


def test_rotations_around_a_point(shard):
    path, given = shard
    for (_, ours), (size, boxes) in zip(made(path, [T.RandomRotation((40, 40), center=(7, -3))]), given, strict=True):
        wanted, _ = F.rotate_bounding_boxes(boxes, "XYXY", size, 40, center=[7, -3])
        assert torch.allclose(ours, wanted, 0, SMALL * reach(size, boxes))


@pytest.mark.parametrize("angle, scale, shear, center", [
    (0, 1, (0, 0), None), (33, 1.7, (0, 0), None), (-120, 0.3, (12, -25), None), (5, 1, (44, 3), (3.5, 20)), (0, 8, (0, 60), (0, 0)),
])  # fmt: skip
def test_affine_maps(shard, angle, scale, shear, center):
    path, given = shard
    step = T.RandomAffine((angle, angle), scale=(scale, scale), shear=(shear[0], shear[0], shear[1], shear[1]), center=center)
    for (_, ours), (size, boxes) in zip(made(path, [step]), given, strict=True):
        wanted = F.affine_bounding_boxes(boxes, "XYXY", size, float(angle), [0, 0], scale, list(shear), center)
        assert torch.allclose(ours, wanted, 0, SMALL * reach(size, boxes, 3 * scale))


def test_moves_are_whole_pixels(shard):
    """A move is drawn, and the same for all boxes of an image."""
    path, given = shard
    seen = set()
    for (_, ours), (size, boxes) in zip(made(path, [T.RandomAffine(0, translate=(0.2, 0.3))], seed=3), given, strict=True):
        if not len(boxes):
            continue
        most = [round(0.2 * size[1]), round(0.3 * size[0])]
        moves = torch.cartesian_prod(*(torch.arange(-side, side + 1) for side in most))
        wanted = clamped(boxes + moves.repeat(1, 2)[:, None], size)
        off, at = (wanted - ours).abs().amax((1, 2)).min(0)
        assert off <= SMALL * reach(size, boxes)
        seen.add(tuple(moves[at].tolist()))
    assert len(seen) > 30


def corners_moved(size, most):
    """All places of the corners of a perspective, where each side may move by up to so many pixels."""
    height, width = size
    start = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
    for moved in itertools.product(range(most + 1), repeat=8):
        yield start, [
            [x + (moved[2 * k] if x == 0 else -moved[2 * k]), y + (moved[2 * k + 1] if y == 0 else -moved[2 * k + 1])]
            for k, (x, y) in enumerate(start)
        ]


def test_perspectives(tmp_path):
    """Each corner has two places along each axis: every draw must be one of 256 perspectives of torchvision."""
    rng = np.random.default_rng(5)
    size = (40, 50)
    boxes = any_boxes(rng, 6, *size)
    image = png(np.zeros((*size, 3), np.uint8))
    path = write(tmp_path / "a.tar", [(image, npy(boxes), npy(np.arange(6)))] * 60)
    given = torch.from_numpy(boxes)
    wanted = torch.stack([F.perspective_bounding_boxes(given, "XYXY", size, *ends) for ends in corners_moved(size, 1)])
    distortion = 1.5 / (min(size) // 2)
    seen = set()
    for epoch in range(3):
        for _, ours in made(path, [T.RandomPerspective(distortion, 1.0)], seed=epoch):
            off = (wanted - ours).abs().amax((1, 2))
            assert off.min() <= SMALL * reach(size, given) * 4
            seen.add(int(off.argmin()))
    assert len(seen) > 80


def test_displacements(tmp_path):
    """Two masks that number columns and rows show the displacement at each pixel, rounded to whole pixels."""
    rng = np.random.default_rng(6)
    samples, given = [], []
    for k in range(24):
        height, width = map(int, rng.integers(60, 200, 2))
        boxes = any_boxes(rng, k % 9, height, width)
        columns, rows = np.meshgrid(np.arange(width, dtype=np.uint8), np.arange(height, dtype=np.uint8))
        samples.append((png(np.zeros((height, width, 3), np.uint8)), npy(boxes), png(columns), png(rows)))
        given.append(((height, width), torch.from_numpy(boxes.reshape(-1, 4))))
    fields = ("png", "boxes.npy", "columns.png", "rows.png")
    path = write(tmp_path / "a.tar", samples, fields)
    steps = T.Compose([T.ElasticTransform(400.0, 4.0, mask_fill=255), T.ToTensor()])
    data = stoker.datasets.WebDataset(path, fields, steps, boxes="boxes.npy", masks=fields[2:])
    compared = 0
    for k, (_, ours, columns, rows) in enumerate(row for batch in stoker.DataLoader(data, 3) for row in zip(*batch, strict=True)):
        size, boxes = given[k]
        here = np.meshgrid(np.arange(size[1]), np.arange(size[0]))
        known = (np.asarray(columns) != 255) & (np.asarray(rows) != 255)
        by = np.stack([np.asarray(columns) - here[0], np.asarray(rows) - here[1]], 2).astype(np.float32)
        grid = torch.from_numpy(by * np.array([2 / size[1], 2 / size[0]], np.float32))[None]
        wanted = F.elastic_bounding_boxes(boxes, "XYXY", size, grid)
        for ours_box, wanted_box, box in zip(ours, wanted, boxes, strict=True):
            left, top, right, bottom = (min(max(math.ceil(at), 0), size[1 - side % 2] - 1) for side, at in enumerate(box.tolist()))
            if known[[top, top, bottom, bottom], [left, right, right, left]].all():
                assert torch.allclose(ours_box, wanted_box, 0, 0.5 + SMALL * sum(size))
                compared += not torch.allclose(wanted_box, box, 0, 2)
    assert compared > 20


# ---- boxes and masks ----

STEPS = {
    "turned": ([T.RandomRotation(180)], 1.5),
    "larger": ([T.RandomRotation(180, expand=True)], 2.5),
    "affine": ([T.RandomAffine(30, (0.1, 0.1), (0.7, 1.3), 10)], 2.5),
    "perspective": ([T.RandomPerspective(0.5, 1.0, NEAREST)], 2.5),
    "rand augment": ([T.RandAugment(1, 12)], 2.5),
    "wide": ([T.TrivialAugmentWide()], 2.5),
    "several": ([T.AutoAugment(T.AutoAugmentPolicy.SVHN), T.RandAugment(3, 12)], None),
}


@pytest.mark.parametrize("steps, near", STEPS.values(), ids=STEPS)
def test_boxes_contain_their_pixels(tmp_path, steps, near):
    """A box contains the pixels of its object, whose mask has the same draws; after one map (`near`), and unless corners lie
    outside of the image, it is no larger."""
    rng = np.random.default_rng(9)
    samples = []
    for _ in range(40):
        height, width = map(int, rng.integers(60, 120, 2))
        left, top = int(rng.integers(5, width // 3)), int(rng.integers(5, height // 3))
        right, bottom = int(rng.integers(width // 2, width - 5)), int(rng.integers(height // 2, height - 5))
        mask = np.zeros((height, width), np.uint8)
        mask[top:bottom, left:right] = 7
        box = np.array([[left, top, right, bottom]], np.float32)
        samples.append((png(np.stack([mask] * 3, 2)), npy(box), npy(np.arange(1)), png(mask)))
    path = write(tmp_path / "a.tar", samples)
    data = stoker.datasets.WebDataset(path, FIELDS, T.Compose([*steps, T.ToTensor()]), masks="seg.png", boxes=BOXES)
    compared = 0
    for epoch in range(2):
        for images, boxes, _, masks in stoker.DataLoader(data, 4, seed=epoch, num_workers=2):
            for image, box, mask in zip(images, boxes, masks, strict=True):
                assert image.shape[1:] == mask.shape
                rows, columns = torch.nonzero(mask == 7, as_tuple=True)
                if len(rows) < 30:
                    continue
                around = torch.stack([columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]).float()
                outside = (box[0] - around) * torch.tensor([1, 1, -1, -1])
                assert outside.max() <= 2, (around, box[0])
                whole = box.min() > 0 and box[0, 2] < mask.shape[1] and box[0, 3] < mask.shape[0]
                if near and whole:
                    assert outside.min() >= -near, (around, box[0])
                compared += bool(near is None or whole)
    assert compared > 20


def test_a_rotation_that_cuts_off_what_it_makes_room_for(shard):
    with pytest.raises(stoker.StokerError, match="boxes cannot follow expand with a center"):
        made(shard[0], [T.RandomRotation(10, expand=True, center=(3, 3))])


def test_boxes_that_are_not_finite(tmp_path):
    boxes = np.array([[np.nan] * 4, [np.inf, 0, -np.inf, 3], [-3e38, -3e38, 3e38, 3e38], [8, 8, 2, 1], [1, 1, 4, 4]], np.float32)
    image = png(np.zeros((60, 60, 3), np.uint8))
    path = write(tmp_path / "a.tar", [(image, npy(boxes), npy(np.arange(5)))])
    steps = [T.RandomRotation(30), T.RandomAffine(3, shear=5), T.RandomPerspective(0.4, 1), T.ElasticTransform(), T.RandAugment()]
    data = stoker.datasets.WebDataset(path, FIELDS[:3], T.Compose([*steps, T.SanitizeBoundingBoxes(), T.ToTensor()]), boxes=BOXES)
    for seed in range(20):
        _, found, labels = next(iter(stoker.DataLoader(data, 1, seed=seed)))
        assert 0 not in labels[0].tolist() and found[0].isfinite().all()


def test_no_boxes_and_tiny_images(tmp_path):
    samples = [(png(np.zeros((h, w, 3), np.uint8)), npy(np.zeros((h % 2, 4), np.float32)), npy(np.zeros(h % 2, np.int64)))
               for h, w in itertools.product((1, 2, 3), repeat=2)]  # fmt: skip
    path = write(tmp_path / "a.tar", samples)
    steps = [T.RandomRotation(90, expand=True), T.RandomAffine(30, (0.5, 0.5)), T.RandAugment(), T.TrivialAugmentWide()]
    found = [boxes for _, boxes in made(path, steps)]
    assert [len(boxes) for boxes in found] == [1] * 3 + [0] * 3 + [1] * 3
