# SPDX-License-Identifier: Apache-2.0
"""Masks, boxes and key points follow Albumentations' pipelines in datasets that the engine runs: with forced draws they are
Albumentations', and with others all parts of a sample have one draw."""

from __future__ import annotations

import collections
import json
import os

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask PyPI for newer versions

import numpy as np
import pytest
import stoker
import torch
from stoker import transforms as T
from stoker._steps.blockers import Blocked
from test_boxes import npy, png, write
from test_timm import same_shares
from transform_parity import coordinates

cv2 = pytest.importorskip("cv2")
A = pytest.importorskip("albumentations")
from albumentations.pytorch import ToTensorV2  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning")]
FIELDS = ("png", "boxes.npy", "labels.npy", "points.npy", "seg.png")
NEAREST = cv2.INTER_NEAREST


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    """Images that are larger than the crops below, with boxes inside of them."""
    rng = np.random.default_rng(17)
    samples, given = [], []
    for k in range(24):
        height, width = map(int, rng.integers(40, 110, 2))
        ends = np.sort(rng.uniform(0, 1, (k % 6, 2, 2)), 1) * [width, height]
        boxes = ends.reshape(-1, 4).astype(np.float32)
        points = (rng.uniform(0, 1, (k % 6, 3, 2)) * [width, height]).astype(np.float32)
        image = rng.integers(0, 256, (height, width, 3), np.uint8)
        mask = rng.integers(0, 256, (height, width), np.uint8)
        samples.append((png(image), npy(boxes), npy(np.arange(k % 6)), npy(points), png(mask)))
        given.append({"image": image, "mask": mask, "bboxes": boxes, "labels": np.arange(k % 6), "points": points})
    return write(tmp_path_factory.mktemp("targets") / "a.tar", samples, FIELDS), given


# Steps in which nothing is drawn, or only one outcome is possible.
STEPS = {
    "flips": [A.HorizontalFlip(p=1), A.Transpose(p=1), A.VerticalFlip(p=1)],
    "crop": [A.Crop(5, 3, 38, 33)],
    "centre": [A.CenterCrop(31, 22)],
    "wide centre": [A.CenterCrop(120, 22, pad_if_needed=True, fill=4, fill_mask=9)],
    "pad": [A.PadIfNeeded(90, 80, position="bottom_right", fill=(1, 2, 3), fill_mask=200)],
    "pad sides": [A.Pad((3, 7, 0, 12), fill=(1, 2, 3), fill_mask=200)],
    "resize": [A.Resize(33, 57)],
    "sizes": [A.SmallestMaxSize(57), A.LongestMaxSize(41), A.RandomScale((0.37, 0.37), p=1)],
    "strip": [A.RandomResizedCrop((30, 40), scale=(1, 1), ratio=(8, 8))],
    "held": [A.OneOf([A.Sequential([A.Crop(5, 3, 30, 33), A.Transpose(p=1)], p=1)], p=1), A.SomeOf([A.CenterCrop(9, 12)], 1)],
    "letterbox": [A.LongestMaxSize(64), A.PadIfNeeded(64, 64, fill=114), A.HorizontalFlip(p=1), A.Normalize()],
    "turn": [A.Rotate((25, 25), p=1)],
    "affine": [A.Affine((1.2, 1.2), translate_px={"x": 5, "y": -3}, rotate=-20, shear={"x": 5, "y": 9}, fill=3, fill_mask=7, p=1)],
    "shift": [A.ShiftScaleRotate((0.1, 0.1), (0.2, 0.2), (-130, -130), p=1)],
    "whole perspective": [A.Perspective((0, 0), p=1)],
    "cut perspective": [A.Perspective((0, 0), keep_size=False, p=1)],
}
LIMITS = {
    "no limits": {},
    "area": {"min_area": 150.0},
    "visible": {"min_visibility": 0.6},
    "sides": {"min_width": 9.0, "min_height": 4.0},
    "ratio": {"max_accept_ratio": 2.5},
    "coco": {"format": "coco", "clip": True, "filter_invalid_bboxes": True},
    "yolo": {"format": "yolo", "clip": True, "filter_invalid_bboxes": True},
    "only at the end": {"check_each_transform": False, "min_visibility": 0.3},
    "fractions": {"format": "albumentations", "clip": True, "filter_invalid_bboxes": True},
}


def rows(path, pipeline, fields, **named):
    data = stoker.datasets.WebDataset(path, fields, pipeline, **named)
    return [row for batch in stoker.DataLoader(data, 4, num_workers=1) for row in zip(*batch, strict=True)]


def same_pixels(ours, wanted, warped):
    """Maps are made of sines and products, whose last bits may differ: then a pixel may differ by a level."""
    assert (ours.dtype, ours.shape) == (wanted.dtype, wanted.shape)
    if not warped:
        return torch.equal(ours, wanted)
    differ = (ours.int() - wanted.int()).abs()
    return differ.max() <= 1 and (differ > 0).float().mean() < 1e-3


@pytest.mark.parametrize("name", STEPS)
def test_masks_are_albumentations(shard, name):
    path, given = shard
    pipeline = A.Compose([*STEPS[name], ToTensorV2()])
    warped = name in ("turn", "affine", "shift")
    found = rows(path, pipeline, ("png", "seg.png"), masks="seg.png")
    for (image, mask), sample in zip(found, given, strict=True):
        wanted = pipeline(image=sample["image"], mask=sample["mask"])
        assert same_pixels(image, wanted["image"], warped)
        if warped:
            assert (mask != wanted["mask"]).float().mean() < 2e-3
        else:
            assert torch.equal(mask, wanted["mask"])


def close(ours, wanted):
    """Albumentations calculates with fractions of the image, the engine with pixels in float32."""
    return np.allclose(ours, np.asarray(wanted, np.float32).reshape(-1, 4), rtol=0, atol=2e-4)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("name", STEPS)
def test_boxes_are_albumentations(shard, name, limits):
    path, given = shard
    options = {"format": "pascal_voc", "label_fields": ["labels"]} | LIMITS[limits]
    pipeline = A.Compose([*STEPS[name], ToTensorV2()], bbox_params=A.BboxParams(**options))
    found = rows(path, pipeline, FIELDS[:3], boxes={"boxes.npy": ["labels.npy"]})
    left = 0
    for (_, boxes, labels), sample in zip(found, given, strict=True):
        corners = sample["bboxes"]
        if options["format"] in ("yolo", "albumentations"):
            corners = corners / np.array([*sample["image"].shape[1::-1]] * 2)
        if options["format"] == "yolo":
            corners = np.concatenate([(corners[:, :2] + corners[:, 2:]) / 2, corners[:, 2:] - corners[:, :2]], 1)
        if options["format"] == "coco":
            corners = np.concatenate([corners[:, :2], corners[:, 2:] - corners[:, :2]], 1)
        wanted = pipeline(image=sample["image"], bboxes=corners, labels=sample["labels"])
        assert labels.tolist() == np.asarray(wanted["labels"]).astype(int).tolist(), sample["image"].shape
        assert close(boxes.numpy(), wanted["bboxes"])
        left += len(labels)
    assert left > 5 or limits in ("area", "visible", "only at the end")


@pytest.mark.parametrize("name", STEPS)
def test_key_points_are_albumentations(shard, name):
    path, given = shard
    pipeline = A.Compose([*STEPS[name], ToTensorV2()], keypoint_params=A.KeypointParams("xy", remove_invisible=False))
    found = rows(path, pipeline, ("png", "points.npy"), keypoints="points.npy")
    for (_, points), sample in zip(found, given, strict=True):
        wanted = pipeline(image=sample["image"], keypoints=sample["points"].reshape(-1, 2))["keypoints"]
        # SmallestMaxSize and LongestMaxSize scale points by the factor, the engine by the rounded sizes.
        near = {"sizes": 3, "letterbox": 1}.get(name, 1e-3)
        assert np.allclose(points.numpy().reshape(-1, 2), np.asarray(wanted).reshape(-1, 2), rtol=0, atol=near)


HOLE = A.GridDropout(0.5, random_offset=False, holes_number_xy=(1, 1), shift_xy=(13, 9), p=1)
REMOVING = STEPS | {
    "holes": [HOLE],
    "holes and turns": [A.Transpose(p=1), HOLE, A.CenterCrop(40, 35), A.HorizontalFlip(p=1)],
    "held crops": [A.OneOf([A.Sequential([A.Crop(5, 3, 30, 33), A.Pad(60)], p=1)], p=1)],
}
POINTS = ("png", "points.npy", "names.npy")


@pytest.fixture(scope="module")
def points(tmp_path_factory):
    """Images with key points in them that have names and, in a third column, numbers of their own."""
    rng = np.random.default_rng(23)
    given = []
    for k in range(16):
        height, width = map(int, rng.integers(40, 110, 2))
        at = (rng.uniform(0, 1, (5 * (k % 5), 3)) * [width, height, 9]).astype(np.float32)
        image = rng.integers(0, 256, (height, width, 3), np.uint8)
        given.append({"image": image, "keypoints": at, "names": rng.integers(0, 99, len(at))})
    samples = [(png(one["image"]), npy(one["keypoints"]), npy(one["names"])) for one in given]
    return write(tmp_path_factory.mktemp("points") / "a.tar", samples, POINTS), given


@pytest.mark.parametrize("each", [True, False])
@pytest.mark.parametrize("name", REMOVING)
def test_key_points_that_are_not_seen_are_removed_with_their_labels(points, name, each):
    path, given = points
    params = A.KeypointParams("xy", label_fields=["names"], check_each_transform=each)
    pipeline = A.Compose([*REMOVING[name], ToTensorV2()], keypoint_params=params)
    removed = 0
    for (_, at, names), sample in zip(
        rows(path, pipeline, POINTS, keypoints={"points.npy": ["names.npy"]}), given, strict=True
    ):
        if name in ("sizes", "letterbox"):  # these scale points by a factor, the engine by the rounded sizes
            assert len(at) == len(names) <= len(sample["names"])
            continue
        wanted = pipeline(**sample)
        assert names.tolist() == np.asarray(wanted["names"]).astype(int).tolist()
        assert np.allclose(at.numpy(), np.asarray(wanted["keypoints"]).reshape(-1, 3), rtol=0, atol=1e-3)
        removed += len(sample["names"]) - len(names)
    assert removed > 0 or name in ("flips", "pad", "pad sides", "resize", "sizes", "letterbox", "whole perspective", "cut perspective")


def test_key_points_that_cannot_be_removed_are_an_error(tmp_path, points):
    pipeline = A.Compose([A.HorizontalFlip(p=1), ToTensorV2()], keypoint_params=A.KeypointParams("xy"))
    image = png(np.zeros((20, 30, 3), np.uint8))
    for name, array, message in (
        ("of objects", np.ones((2, 3, 2), np.float32), "stay together.*remove_invisible=False"),
        ("outside", np.array([[3, 4], [30, 2]], np.float32), "key point 1, at 30, 2, is outside of the image of 30 x 20"),
        ("above", np.array([[3, -0.5]], np.float32), "key point 0, at 3, -0.5, is outside"),
    ):
        path = write(tmp_path / f"{name}.tar", [(image, npy(array))], POINTS[:2])
        with pytest.raises(stoker.StokerError, match=message) as error:
            rows(path, pipeline, POINTS[:2], keypoints="points.npy")
        assert f"{name}.tar" in str(error.value)
    path = write(tmp_path / "labels.tar", [(image, npy(np.ones((2, 2), np.float32)), npy(np.arange(3)))], POINTS)
    with pytest.raises(stoker.StokerError, match="there are 2 key points, but the field names.npy has 3 values"):
        rows(path, pipeline, POINTS, keypoints={"points.npy": ["names.npy"]})
    with pytest.raises(TypeError, match="give a list of names"):
        rows(path, pipeline, POINTS, keypoints={"points.npy": "names.npy"})
    with pytest.raises(ValueError, match="name them there"):
        rows(path, pipeline, POINTS, boxes={"b": ["points.npy"]}, keypoints={"points.npy": ["names.npy"]})


DRAWN = {
    "crop": [A.RandomCrop(30, 20), A.HorizontalFlip(), A.RandomRotate90(p=0.7)],
    "resized": [A.RandomResizedCrop((30, 33), interpolation=NEAREST), A.D4()],
    "sized": [A.RandomSizedCrop((10, 30), (22, 21), interpolation=NEAREST), A.OneOf([A.VerticalFlip(), A.Transpose()])],
    "scale": [A.RandomScale(0.5, interpolation=NEAREST), A.SmallestMaxSize([40, 50], interpolation=NEAREST)],
    "pad": [A.PadIfNeeded(120, 120, position="random", fill=3, fill_mask=3), A.RandomCrop(110, 100)],
    "holes": [A.CoarseDropout((2, 5), (3, 9), (2, 4), fill=7, fill_mask=7, p=0.9)],
    "stripes": [A.XYMasking((0, 2), (1, 3), (2, 9), (1, 5), fill=7, fill_mask=7, p=0.9)],
    "tiles": [A.RandomGridShuffle((3, 4), p=0.9), A.RandomCropFromBorders(0.3, 0.1, 0.2, 0.3)],
    "by the mask": [A.HorizontalFlip(), A.OneOf([A.CropNonEmptyMaskIfExists(30, 20), A.RandomCrop(25, 31)]), A.D4()],
    "grid": [A.GridDropout(0.3, unit_size_range=(4, 9), fill=7, fill_mask=7, p=0.9)],
    "mirror": [A.PadIfNeeded(120, 120, border_mode=cv2.BORDER_REFLECT_101), A.SomeOf([A.VerticalFlip(), A.Transpose(p=1)], 1)],
}


@pytest.mark.parametrize("name", DRAWN)
def test_all_parts_have_one_draw(tmp_path, name):
    """Images have the numbers of their masks, which move alike."""
    rng = np.random.default_rng(5)
    masks = [rng.integers(0, 256, tuple(rng.integers(40, 90, 2)), np.uint8) for _ in range(30)]
    path = write(tmp_path / "a.tar", [(png(np.stack([m] * 3, 2)), png(m)) for m in masks], ("png", "seg.png"))
    found = rows(path, A.Compose([*DRAWN[name], ToTensorV2()]), ("png", "seg.png"), masks="seg.png")
    for image, mask in found:
        assert torch.equal(image, mask.expand_as(image))
    assert len({tuple(mask.shape) + (mask.numpy().tobytes(),) for _, mask in found}) == len(masks)


def test_key_points_move_with_their_tiles(tmp_path):
    """Each is in the middle of a pixel that says where it was."""
    image = coordinates(23, 17)
    x, y = (image[:, :, k].astype(np.float32) - 0.5 for k in (0, 1))
    points = np.stack([x, y], 2).reshape(-1, 1, 2)
    path = write(tmp_path / "a.tar", [(png(image), npy(points))] * 5, ("png", "points.npy"))
    point_params = A.KeypointParams("xy", remove_invisible=False)
    steps = [A.RandomGridShuffle((4, 3), p=1), A.RandomCropFromBorders(0.2, 0.2, 0.2, 0.2)]
    moved = 0
    for made, found in rows(path, A.Compose([*steps, ToTensorV2()], keypoint_params=point_params), ("png", "points.npy"), keypoints="points.npy"):
        places, height, width = found.numpy().reshape(-1, 2), *made.shape[1:]
        inside = (places > 0).all(1) & (places < [width, height]).all(1)
        assert inside.sum() == height * width
        columns, lines = np.floor(places[inside]).astype(int).T
        assert np.array_equal(made.numpy()[:2, lines, columns].T - 0.5, points.reshape(-1, 2)[inside])
        moved += np.count_nonzero(places != points.reshape(-1, 2))
    assert moved > 100
    with pytest.raises(Blocked, match="boxes would be cut apart"):
        T.pipeline_text(A.Compose([A.RandomGridShuffle()], bbox_params=A.BboxParams("pascal_voc")))


ORIGIN = coordinates(9, 7)  # says where a part of it begins


def many(path, mask, boxes, count):
    sample = (png(ORIGIN), npy(np.array(boxes, np.float32)), npy(np.arange(len(boxes))), png(mask))
    return write(path / "a.tar", [sample] * count, ("png", "boxes.npy", "labels.npy", "seg.png"))


@pytest.mark.parametrize("ignored", [None, [7], [7, 200, 255]])
def test_crops_by_the_mask_are_albumentations_as_often(tmp_path, ignored):
    mask = np.zeros((7, 9), np.uint8)
    mask[3, 4], mask[6, 8], mask[0, 1], mask[6, 7] = 7, 255, 7, 200
    step = A.CropNonEmptyMaskIfExists(3, 4, ignore_values=ignored)
    pipeline = A.Compose([step, ToTensorV2()])
    path = many(tmp_path, mask, [[1, 1, 3, 4]], 1000)
    given = {"masks": "seg.png", "boxes": {"boxes.npy": ["labels.npy"]}}
    found = rows(path, pipeline, ("png", "boxes.npy", "labels.npy", "seg.png"), **given)
    got = collections.Counter()
    for image, boxes, _, part in found:
        left, top = int(image[0, 0, 0]) - 1, int(image[1, 0, 0]) - 1
        assert np.array_equal(part, mask[top : top + 3, left : left + 4]) and image.shape == (3, 3, 4)
        clamped = np.clip(np.subtract([1, 1, 3, 4], [left, top, left, top]), 0, [4, 3, 4, 3])
        assert boxes.tolist() == [clamped.tolist()]
        got[left, top] += 1
    wanted = collections.Counter(
        step.get_params_dependent_on_data({"shape": ORIGIN.shape}, {"mask": mask})["crop_coords"][:2] for _ in range(4000)
    )
    same_shares(got, wanted)


BOXES = [[2.5, 3, 4, 4.5], [3, 2.2, 6.3, 4]]


@pytest.mark.parametrize("erosion, boxes", [(0, BOXES), (0.5, BOXES), (0.9, BOXES[:1]), (0.7, []), (0, [])])
def test_crops_around_boxes_are_albumentations_as_often(tmp_path, erosion, boxes):
    mask = ORIGIN[:, :, 0].copy()
    boxes = np.array(boxes, np.float32).reshape(-1, 4)
    step = A.BBoxSafeRandomCrop(erosion)
    pipeline = A.Compose([step, ToTensorV2()], bbox_params=A.BboxParams("pascal_voc", label_fields=["labels"]))
    path = many(tmp_path, mask, boxes, 1000)
    given = {"masks": "seg.png", "boxes": {"boxes.npy": ["labels.npy"]}}
    got = collections.Counter()
    for image, moved, _, part in rows(path, pipeline, ("png", "boxes.npy", "labels.npy", "seg.png"), **given):
        left, top = int(image[0, 0, 0]) - 1, int(image[1, 0, 0]) - 1
        height, width = part.shape
        assert np.array_equal(part, mask[top : top + height, left : left + width]) and torch.equal(image[0], part)
        cut = np.clip(boxes - [left, top, left, top], 0, [width, height, width, height])
        cut = cut[((cut[:, 2:] - cut[:, :2]) > 0).all(1)]
        assert np.allclose(np.asarray(moved).reshape(-1, 4), cut, atol=1e-5)
        got[left, top, left + width, top + height] += 1
    parts = boxes / np.array([9, 7, 9, 7], np.float32)
    wanted = collections.Counter(
        tuple(map(int, step.get_params_dependent_on_data({"shape": ORIGIN.shape}, {"bboxes": parts})["crop_coords"]))
        for _ in range(4000)
    )
    same_shares(got, wanted)


def test_crops_around_no_boxes_are_whole_images(tmp_path):
    path = many(tmp_path, ORIGIN[:, :, 0], np.zeros((0, 4)), 3)
    pipeline = A.Compose([A.RandomSizedBBoxSafeCrop(14, 18, interpolation=NEAREST), ToTensorV2()])
    data = stoker.datasets.WebDataset(path, ("png", "boxes.npy"), pipeline, boxes="boxes.npy")
    for image, boxes in stoker.DataLoader(data, 1):
        assert np.array_equal(image[0, 0], np.repeat(np.repeat(ORIGIN[:, :, 0], 2, 0), 2, 1)) and len(boxes[0]) == 0


def test_crops_by_what_samples_do_not_have(tmp_path, shard):
    path, _ = shard
    by_mask, by_boxes = A.CropNonEmptyMaskIfExists(3, 4), A.BBoxSafeRandomCrop()
    for step, missing in ((by_mask, "the mask"), (by_boxes, "the boxes")):
        with pytest.raises(ValueError, match=f"depends on {missing} of the sample, of which there is no field"):
            rows(path, A.Compose([step, ToTensorV2()]), ("png",))
    two = write(tmp_path / "a.tar", [(png(ORIGIN), png(ORIGIN), png(ORIGIN))], ("png", "seg.png", "b.png"))
    with pytest.raises(ValueError, match="of which there are several fields"):
        rows(two, A.Compose([by_mask, ToTensorV2()]), ("png", "seg.png", "b.png"), masks=["seg.png", "b.png"])
    with pytest.raises(ValueError, match="does not fit"):
        rows(path, A.Compose([A.CropNonEmptyMaskIfExists(300, 4), ToTensorV2()]), ("png", "seg.png"), masks="seg.png")
    with pytest.raises(Blocked, match="one step chooses by the mask, and another one by boxes"):
        T.pipeline_text(A.Compose([by_mask, A.OneOf([by_boxes, A.NoOp()]), ToTensorV2()]))


def in_python(steps, **options):
    """The same pipeline with a step that only Albumentations has."""
    return A.Compose([A.Morphological(p=0), *steps, ToTensorV2()], **options)


@pytest.mark.parametrize("name", ["centre", "held", "letterbox"])
def test_pipelines_in_python_get_all_parts(shard, name):
    path, given = shard
    data = stoker.datasets.WebDataset(path, ("png", "seg.png"), masks="seg.png", transforms=in_python(STEPS[name]))
    pipeline = A.Compose([*STEPS[name], ToTensorV2()])
    found = [row for batch in stoker.DataLoader(data, 1) for row in zip(*batch, strict=True)]
    for (image, mask), sample in zip(found, given, strict=True):
        wanted = pipeline(image=sample["image"], mask=sample["mask"])
        assert torch.equal(image, wanted["image"]) and torch.equal(torch.as_tensor(mask), wanted["mask"])
    with pytest.raises(NotImplementedError, match="pass transforms="):
        stoker.datasets.WebDataset(path, ("png", "seg.png"), in_python(STEPS[name]), masks="seg.png")


@pytest.mark.parametrize("fields", [["labels"], None])
@pytest.mark.parametrize("form", ["pascal_voc", "coco", "yolo", "albumentations"])
def test_boxes_in_python_have_the_format_of_bbox_params(shard, form, fields):
    path, given = shard
    params = A.BboxParams(form, label_fields=fields, min_area=90, clip=True)
    data = stoker.datasets.WebDataset(
        path, FIELDS[:3], boxes={"boxes.npy": ["labels.npy"]}, transforms=in_python(STEPS["centre"], bbox_params=params)
    )
    pixels = A.BboxParams("pascal_voc", label_fields=["labels"], min_area=90)
    pipeline = A.Compose(STEPS["centre"], bbox_params=pixels)
    left = 0
    for k, sample in enumerate(given):
        _, boxes, labels = data[k]
        wanted = pipeline(image=sample["image"], bboxes=sample["bboxes"], labels=sample["labels"])
        assert np.asarray(labels).tolist() == np.asarray(wanted["labels"]).astype(int).tolist()
        boxes = np.array(boxes, np.float32) * ([22, 31, 22, 31] if form in ("yolo", "albumentations") else 1)
        boxes[:, :2] -= boxes[:, 2:] / 2 if form == "yolo" else 0
        boxes[:, 2:] += boxes[:, :2] if form in ("yolo", "coco") else 0
        assert np.allclose(boxes, np.asarray(wanted["bboxes"]).reshape(-1, 4), rtol=0, atol=1e-3)
        left += len(boxes)
    assert left > 5


def test_pipelines_in_python_say_what_they_cannot(shard):
    path, _ = shard
    boxes = {"boxes.npy": ["labels.npy"]}
    pipeline = in_python([], bbox_params=A.BboxParams("coco"))
    with pytest.raises(NotImplementedError, match="boxes of this format behind it"):
        stoker.datasets.WebDataset(path, FIELDS[:3], boxes=boxes, transforms=T.Compose([pipeline, lambda image, parts: (image, parts)]))
    data = stoker.datasets.WebDataset(path, FIELDS[:3], boxes=boxes, transforms=in_python([]))
    with pytest.raises(ValueError, match="needs bbox_params"):
        data[1]


AROUND = {
    "turns": [A.D4(), A.RandomRotate90(), A.HorizontalFlip()],
    "affine": [A.Affine((0.7, 1.2), translate_px=(-9, 9), rotate=(-180, 180), shear=(-9, 9), p=1)],
    "perspective": [A.Perspective((0.02, 0.1), p=1)],
    "cut perspective": [A.Perspective((0.02, 0.1), keep_size=False, p=1)],
    "sizes": [A.RandomScale(0.4, p=1), A.RandomCrop(40, 40, pad_if_needed=True, pad_position="random"), A.SmallestMaxSize([50, 70])],
}


@pytest.mark.parametrize("name", AROUND)
def test_boxes_stay_around_their_pixels(tmp_path, name):
    rng = np.random.default_rng(9)
    samples = []
    for _ in range(60):
        mask = np.zeros((120, 110), np.uint8)
        left, top = rng.integers(40, 60, 2)
        right, bottom = (left, top) + rng.integers(8, 20, 2)
        mask[top:bottom, left:right] = 1
        box = np.array([[left, top, right, bottom]], np.float32)
        samples.append((png(np.stack([mask] * 3, 2)), npy(box), npy(np.arange(1)), png(mask)))
    path = write(tmp_path / "a.tar", samples, ("png", "boxes.npy", "labels.npy", "seg.png"))
    pipeline = A.Compose([*AROUND[name], ToTensorV2()], bbox_params=A.BboxParams("pascal_voc"))
    names = {"masks": "seg.png", "boxes": {"boxes.npy": ["labels.npy"]}}
    seen = 0
    for _, boxes, _, mask in rows(path, pipeline, ("png", "boxes.npy", "labels.npy", "seg.png"), **names):
        height, width = mask.shape
        for left, top, right, bottom in boxes.tolist():
            if min(left, top) <= 0 or right >= width or bottom >= height:
                continue  # a part of it is outside
            y, x = np.nonzero(mask.numpy())
            found = x.min(), y.min(), x.max() + 1, y.max() + 1
            assert np.abs(np.subtract(found, (left, top, right, bottom))).max() < 3
            seen += 1
    assert seen > 8


def test_boxes_outside_of_their_image_are_an_error(tmp_path):
    image = png(np.zeros((20, 30, 3), np.uint8))
    good, reaches, empty = ([1, 2, 5, 9], [1, 2, 31, 9], [4, 4, 4, 9])
    for params, boxes, why in (
        ({}, [good, reaches], "box 1, from 1, 2 to 31, 9, reaches out of the image of 30 x 20"),
        ({}, [empty], "box 0, from 4, 4 to 4, 9, has no area"),
        ({"clip": True}, [empty], "has no area"),
        ({}, [[float("nan"), 2, 5, 9]], "reaches out"),
    ):
        path = write(tmp_path / "a.tar", [(image, npy(np.array(boxes, np.float32)), npy(np.arange(len(boxes))))])
        pipeline = A.Compose([ToTensorV2()], bbox_params=A.BboxParams("pascal_voc", **params))
        with pytest.raises(stoker.StokerError, match=why):
            rows(path, pipeline, FIELDS[:3], boxes={"boxes.npy": ["labels.npy"]})
        with pytest.raises(ValueError):
            pipeline(image=np.zeros((20, 30, 3), np.uint8), bboxes=np.array(boxes, np.float32))


@pytest.mark.parametrize(
    "step, why",
    [
        (A.PadIfNeeded(40, 40, border_mode=cv2.BORDER_REFLECT_101), "its border repeats boxes"),
        (A.Rotate((90, 90), border_mode=cv2.BORDER_REFLECT, p=1), "its border repeats boxes"),
    ],
)
def test_what_the_engine_does_not_do_to_boxes_stays_in_python(tmp_path, step, why):
    array, box = np.zeros((30, 30, 3), np.uint8), np.array([[1, 2, 5, 9]], np.float32)
    path = write(tmp_path / "a.tar", [(png(array), npy(box), npy(np.arange(1)))])
    options = {"bbox_params": A.BboxParams("pascal_voc", label_fields=["labels"])}
    pipeline, given = A.Compose([step, ToTensorV2()], **options), {"boxes": {"boxes.npy": ["labels.npy"]}}
    with pytest.raises(Blocked, match=why):
        T.pipeline_text(pipeline)
    with pytest.raises(NotImplementedError, match="pass transforms="):
        stoker.datasets.WebDataset(path, FIELDS[:3], pipeline, **given)
    image, boxes, _ = stoker.datasets.WebDataset(path, FIELDS[:3], transforms=pipeline, **given)[0]
    wanted = pipeline(image=array, bboxes=box, labels=[0])
    assert torch.equal(image, wanted["image"])
    assert np.allclose(boxes, np.asarray(wanted["bboxes"]).reshape(-1, 4), rtol=0, atol=1e-3)
    with pytest.raises(Blocked, match=why):
        T.pipeline_text(A.Compose([step, ToTensorV2()], keypoint_params=A.KeypointParams("xy", remove_invisible=False)))


@pytest.mark.parametrize(
    "options, why",
    [
        ({"keypoint_params": A.KeypointParams("xya", remove_invisible=False)}, "format='xya' is not 'xy'"),
        ({"keypoint_params": A.KeypointParams("yx")}, "format='yx' is not 'xy'"),
    ],
)
def test_params_that_the_engine_lacks_are_said(options, why):
    with pytest.raises(Blocked, match=why):
        T.pipeline_text(A.Compose([ToTensorV2()], **options))


@pytest.fixture(scope="module")
def coco(tmp_path_factory):
    """One image of 80 x 50 with one box, as COCO has it."""
    root = tmp_path_factory.mktemp("coco")
    (root / "images").mkdir()
    (root / "images" / "a.png").write_bytes(png(np.full((50, 80, 3), 9, np.uint8)))
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [10, 12, 20, 30], "area": 600, "iscrowd": 0}
    images, categories = [{"id": 1, "file_name": "a.png", "width": 80, "height": 50}], [{"id": 1, "name": "x"}]
    (root / "a.json").write_text(json.dumps({"images": images, "categories": categories, "annotations": [box]}))
    return root


def dicts(root, *steps, form):
    """The target that the dataset gives, and the one of a batch."""
    pipeline = A.Compose([A.HorizontalFlip(p=0), *steps], bbox_params=A.BboxParams(form, label_fields=["labels"]))
    data = stoker.datasets.CocoDetection(root / "images", root / "a.json", pipeline, as_dict=True)
    (batch,) = stoker.DataLoader(data, 1, num_workers=0)
    return data[0][1]["boxes"], batch[1][0]["boxes"]


@pytest.mark.parametrize("end", [[], [ToTensorV2()]], ids=["arrays", "tensors"])
@pytest.mark.parametrize(("form", "wanted", "numbers"), [
    ("pascal_voc", "XYXY", [10, 12, 30, 42]), ("coco", "XYWH", [10, 12, 20, 30])])
def test_boxes_in_a_dict_say_their_format_and_the_size_of_their_image(coco, end, form, wanted, numbers):
    for boxes in dicts(coco, *end, form=form):
        assert (boxes.format.value, tuple(boxes.canvas_size), boxes.tolist()) == (wanted, (50, 80), [numbers])


def test_torchvision_has_no_boxes_of_fractions(coco):
    with pytest.raises(ValueError, match="in pixels, not of format='yolo'"):
        dicts(coco, ToTensorV2(), form="yolo")
