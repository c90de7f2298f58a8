# SPDX-License-Identifier: Apache-2.0
"""Boxes and key points under Albumentations' dropouts in the engine: its results for the pixels that the engine overwrites."""

from __future__ import annotations

import os

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask PyPI for newer versions

import numpy as np
import pytest
import stoker
from test_boxes import npy, png, write

A = pytest.importorskip("albumentations")
from albumentations.pytorch import ToTensorV2  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning")]
FIELDS = ("png", "boxes.npy", "labels.npy", "points.npy", "seg.png")
NAMED = {"boxes": {"boxes.npy": ["labels.npy"]}, "masks": "seg.png"}


def box_of(rng, height, width):
    """Halves, whole numbers, and any others."""
    ends = np.sort(rng.uniform(0, 1, (2, 2)), 0) * [width, height]
    kind = rng.integers(3)
    return (np.round(ends * 2) / 2 if kind == 0 else np.round(ends) if kind == 1 else ends).reshape(-1)


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    """White images and masks, also tiny ones, with boxes of many places."""
    rng = np.random.default_rng(7)
    samples, given = [], []
    for k in range(40):
        height, width = map(int, rng.integers(1, 6 if k % 4 == 3 else 60, 2))
        boxes = np.array([box_of(rng, height, width) for _ in range(k % 9)], np.float32).reshape(-1, 4)
        boxes = boxes[((boxes[:, 2:] - boxes[:, :2]) > 0).all(1)]
        points = (rng.uniform(0, 1, (len(boxes), 2)) * [width, height]).astype(np.float32)
        image = np.full((height, width, 3), 255, np.uint8)
        labels = np.arange(len(boxes))
        samples.append((png(image), npy(boxes), npy(labels), npy(points), png(image[:, :, 0])))
        given.append({"image": image, "bboxes": boxes, "labels": labels, "points": points})
    return write(tmp_path_factory.mktemp("targets") / "a.tar", samples, FIELDS), given


STEPS = {
    "holes": A.CoarseDropout((1, 6), (0.05, 0.4), (0.0, 0.5), fill_mask=0, p=1),
    "one hole": A.CoarseDropout((1, 1), (1, 30), (1, 60), fill=0, fill_mask=0, p=1),
    "all": A.CoarseDropout((1, 1), (0.98, 0.999), (0.98, 0.999), fill_mask=0, p=1),
    "grid": A.GridDropout(0.6, fill_mask=0, p=1),
    "fine grid": A.GridDropout(0.9, unit_size_range=(2, 5), random_offset=False, shift_xy=(0, 0), fill_mask=0, p=1),
    "stripes": A.XYMasking((1, 2), (0, 2), (0, 1), (0, 1), fill_mask=0, p=1),
    "one cell": A.GridDropout(0.8, holes_number_xy=(1, 1), fill_mask=0, p=1),
}
LIMITS = [{}, {"min_area": 20}, {"min_visibility": 0.4}, {"min_visibility": 0.2, "min_width": 3, "clip": True}]


def hidden(image):
    """A hole for each pixel that was overwritten, or one without pixels if there is none."""
    y, x = np.nonzero(image[:, :, 0] == 0)
    return np.stack([x, y, x + 1, y + 1], 1) if len(x) else np.zeros((1, 4), int)


@pytest.mark.parametrize("name", STEPS)
def test_boxes_are_albumentations_for_the_same_holes(shard, name):
    path, given = shard
    left = removed = 0
    for seed, limits in enumerate(LIMITS):
        params = A.BboxParams("pascal_voc", label_fields=["labels"], **limits)
        pipeline = A.Compose([STEPS[name], ToTensorV2()], bbox_params=params)
        data = stoker.datasets.WebDataset(path, ("png", "boxes.npy", "labels.npy", "seg.png"), pipeline, **NAMED)
        loader = stoker.DataLoader(data, 1, seed=seed, on_error="replace")
        assert "Python" not in str(loader.explain())
        for sample, batch in zip(given, loader, strict=True):
            image, boxes, labels, mask = (part[0].numpy() for part in batch)
            if not image.any() and not mask.any():
                continue  # it was replaced: where Albumentations fails is tested with images alone
            assert np.array_equal(image[0], mask)
            step = A.CoarseDropout(p=1)
            holes = hidden(image.transpose(1, 2, 0))
            step.get_params_dependent_on_data = lambda params, data, holes=holes: {"holes": holes, "seed": 0}
            theirs = A.Compose([step], bbox_params=params)
            wanted = theirs(image=sample["image"], bboxes=sample["bboxes"], labels=sample["labels"])
            assert labels.tolist() == np.asarray(wanted["labels"]).astype(int).tolist(), (limits, sample["image"].shape)
            assert np.allclose(boxes, np.asarray(wanted["bboxes"]).reshape(-1, 4), rtol=0, atol=2e-4)
            left, removed = left + len(labels), removed + len(sample["labels"]) - len(labels)
    assert (left > 20 or name == "all") and removed > 20


@pytest.mark.parametrize("name", STEPS)
def test_key_points_stay(shard, name):
    path, given = shard
    pipeline = A.Compose([STEPS[name], ToTensorV2()], keypoint_params=A.KeypointParams("xy", remove_invisible=False))
    data = stoker.datasets.WebDataset(path, ("png", "points.npy"), pipeline, keypoints="points.npy")
    loader = stoker.DataLoader(data, 1, on_error="skip")
    assert "Python" not in str(loader.explain())
    big = [k for k, sample in enumerate(given) if min(sample["image"].shape[:2]) >= 30]
    assert len(big) > 5
    for k in big:
        points = given[k]["points"]
        assert np.allclose(data[k][1], points)
        assert np.allclose(pipeline(image=given[k]["image"], keypoints=points)["keypoints"], points, atol=1e-5)
