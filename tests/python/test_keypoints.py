# SPDX-License-Identifier: Apache-2.0
"""Key points follow their image with the arithmetic of torchvision's v2, and the boxes that they belong to."""

from __future__ import annotations

import numpy as np
import pytest
import stoker
import torch
from stoker import transforms as T
from test_boxes import any_boxes, npy, png, write
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2 import functional as F

FIELDS = ("png", "boxes.npy", "points.npy", "labels.npy")
SMALL = 2.0**-22


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    """Each object has a box and five key points with visibility; some points lie outside of the image."""
    rng = np.random.default_rng(31)
    samples, given = [], []
    for k in range(30):
        height, width = map(int, rng.integers(9, 400, 2))
        boxes = any_boxes(rng, k % 6, height, width)
        points = rng.uniform(-0.2, 1.2, (k % 6, 5, 3)) * [width, height, 1]
        points[..., 2] = rng.integers(0, 3, (k % 6, 5))
        points = points.astype(np.float32)
        samples.append((png(np.zeros((height, width, 3), np.uint8)), npy(boxes), npy(points), npy(np.arange(k % 6))))
        given.append(((height, width), torch.from_numpy(points)))
    return write(tmp_path_factory.mktemp("points") / "a.tar", samples, FIELDS), given


def made(path, steps, **named):
    data = stoker.datasets.WebDataset(path, FIELDS, T.Compose([*steps, T.ToTensor()]), **named)
    return [row for batch in stoker.DataLoader(data, 4, num_workers=1) for row in zip(*batch, strict=True)]


STEPS = {
    "resize": [("Resize", ((33, 57),))],
    "flips": [("RandomHorizontalFlip", (1.0,)), ("RandomVerticalFlip", (1.0,))],
    "centre": [("Resize", ((41, 33),)), ("CenterCrop", ((30, 20),))],
    "pad": [("Pad", ((3, 4, 5, 6),)), ("Resize", ((21, 22),))],
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_key_points_are_torchvisions(shard, steps):
    path, given = shard
    theirs = v2.Compose([getattr(v2, name)(*args) for name, args in steps])
    found = made(path, [getattr(T, name)(*args) for name, args in steps], keypoints="points.npy")
    for (_, _, ours, _), (size, points) in zip(found, given, strict=True):
        wanted = theirs(tv_tensors.KeyPoints(points[..., :2].clone(), canvas_size=size)).as_subclass(torch.Tensor)
        assert ours.shape == points.shape and ours.dtype == torch.float32
        assert torch.equal(ours[..., :2], wanted) and torch.equal(ours[..., 2], points[..., 2])


@pytest.mark.parametrize("expand", [False, True])
@pytest.mark.parametrize("angle", [0, 90, 33, -170.5])
def test_rotations(shard, angle, expand):
    path, given = shard
    found = made(path, [T.RandomRotation((angle, angle), expand=expand)], keypoints="points.npy")
    for (_, _, ours, _), (size, points) in zip(found, given, strict=True):
        if len(points):
            wanted, _ = F.rotate_keypoints(points[..., :2], size, angle, expand)
            assert torch.allclose(ours[..., :2], wanted, 0, SMALL * 5 * sum(size))
            assert torch.equal(ours[..., 2], points[..., 2])


def test_affine_maps(shard):
    path, given = shard
    step = T.RandomAffine((20, 20), scale=(1.5, 1.5), shear=(10, 10, -5, -5))
    for (_, _, ours, _), (size, points) in zip(made(path, [step], keypoints=["points.npy"]), given, strict=True):
        wanted, _ = F.affine_keypoints(points[..., :2], size, 20.0, [0, 0], 1.5, [10.0, -5.0])
        assert torch.allclose(ours[..., :2], wanted, 0, SMALL * 9 * sum(size))


def test_points_are_moved_as_the_corners_of_boxes(tmp_path):
    """By any draw: a box is the one around its moved corners."""
    rng = np.random.default_rng(8)
    samples = []
    for _ in range(30):
        size = rng.integers(200, 300, 2)
        low, high = rng.uniform(0.4, 0.5, 2) * size, rng.uniform(0.51, 0.6, 2) * size
        boxes = np.concatenate([low, high]).astype(np.float32)[None]
        corners = boxes[:, [[0, 1], [2, 1], [2, 3], [0, 3]]]
        image = np.zeros((*map(int, size[::-1]), 3), np.uint8)
        samples.append((png(image), npy(boxes), npy(corners), npy(np.arange(1))))
    path = write(tmp_path / "a.tar", samples, FIELDS)
    steps = [T.RandomPerspective(0.3, 1.0), T.RandomAffine(0, (0.05, 0.05)), T.RandomZoomOut(p=0.5)]
    compared = 0
    for step in steps:
        for _, box, corners, _ in made(path, [step], boxes={"boxes.npy": ["points.npy", "labels.npy"]}, keypoints="points.npy"):
            around = torch.cat([corners.amin(1), corners.amax(1)], 1)
            assert torch.equal(around, box)
            compared += 1
    assert compared == 90


def test_key_points_go_with_their_boxes(shard):
    path, given = shard
    named = {"boxes": {"boxes.npy": ["points.npy", "labels.npy"]}, "keypoints": "points.npy"}
    steps = [T.RandomCrop(30, pad_if_needed=True), T.RandomHorizontalFlip()]
    every = made(path, steps, **named)
    some = made(path, [*steps, T.SanitizeBoundingBoxes(4)], **named)
    removed = 0
    for (_, _, points, _), (_, boxes, ours, labels) in zip(every, some, strict=True):
        assert len(boxes) == len(ours) == len(labels) and torch.equal(ours, points[labels])
        removed += len(points) - len(labels)
    assert removed > 10


def test_elastic_key_points(tmp_path):
    """Masks that number columns and rows show the displacement at each pixel, rounded to whole pixels."""
    rng = np.random.default_rng(6)
    fields, samples, given = ("png", "points.npy", "columns.png", "rows.png"), [], []
    for _ in range(10):
        height, width = map(int, rng.integers(60, 200, 2))
        points = (rng.uniform(0, 1, (40, 2)) * [width, height]).astype(np.float32)
        columns, rows = np.meshgrid(np.arange(width, dtype=np.uint8), np.arange(height, dtype=np.uint8))
        samples.append((png(np.zeros((height, width, 3), np.uint8)), npy(points), png(columns), png(rows)))
        given.append(points.astype(int))
    path = write(tmp_path / "a.tar", samples, fields)
    steps = T.Compose([T.ElasticTransform(400.0, 4.0, mask_fill=255), T.ToTensor()])
    data = stoker.datasets.WebDataset(path, fields, steps, keypoints="points.npy", masks=fields[2:])
    compared = 0
    for at, (_, points, columns, rows) in zip(given, data, strict=True):
        for (x, y), ours in zip(at, points, strict=True):
            from_x, from_y = int(columns[y, x]), int(rows[y, x])
            if 255 not in (from_x, from_y):
                assert abs(ours[0] - (2 * x - from_x)) <= 0.51 and abs(ours[1] - (2 * y - from_y)) <= 0.51
                compared += abs(from_x - x) > 2
    assert compared > 30


@pytest.mark.parametrize(
    "points", [np.zeros((3, 4), np.float32), np.zeros((3, 2)), np.zeros((3, 1), np.float32), np.zeros(6, np.float32)]
)
def test_arrays_that_are_no_key_points(tmp_path, points):
    path = write(tmp_path / "a.tar", [(png(np.zeros((9, 9, 3), np.uint8)), npy(points))], ("png", "points.npy"))
    data = stoker.datasets.WebDataset(path, ("png", "points.npy"), T.ToTensor(), keypoints="points.npy")
    with pytest.raises(stoker.StokerError, match=r"field points.npy: key points are float32 \[\.\.\., 2\] or"):
        next(iter(stoker.DataLoader(data, 1)))


def test_no_points_and_points_that_are_not_finite(tmp_path):
    bad = np.array([[np.nan, 1], [np.inf, -np.inf], [3e38, -3e38]], np.float32)
    image = png(np.zeros((40, 40, 3), np.uint8))
    path = write(tmp_path / "a.tar", [(image, npy(bad)), (image, npy(bad[:0]))], ("png", "points.npy"))
    steps = [T.RandomRotation(30), T.RandomPerspective(0.4, 1), T.ElasticTransform(sigma=2.0), T.RandAugment(), T.ToTensor()]
    data = stoker.datasets.WebDataset(path, ("png", "points.npy"), T.Compose(steps), keypoints="points.npy")
    _, (first, second) = next(iter(stoker.DataLoader(data, 2)))
    assert first.shape == (3, 2) and second.shape == (0, 2) and first[0].isnan().any()


def test_names_that_are_no_key_points(shard):
    path = shard[0]
    for named, message in (
        ({"keypoints": "none"}, 'no field is named "none"'),
        ({"boxes": "boxes.npy", "keypoints": "boxes.npy"}, "named twice"),
        ({"boxes": "points.npy=points+labels.npy=points"}, "it belongs to boxes or key points, and is none itself"),
        ({"boxes": "boxes.npy+points.npy=xywh"}, "it belongs to boxes or key points, and is none itself"),
    ):
        with pytest.raises(stoker.StokerError, match=message):
            stoker.DataLoader(stoker.datasets.WebDataset(path, FIELDS, T.ToTensor(), **named), 2)
