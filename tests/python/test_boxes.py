# SPDX-License-Identifier: Apache-2.0
"""Boxes follow their image, with the arithmetic of torchvision's v2; and values that belong to them go with them."""

from __future__ import annotations

import io
import tarfile

import numpy as np
import pytest
import stoker
import torch
from PIL import Image
from stoker import transforms as T
from torchvision import tv_tensors
from torchvision.transforms import v2

FIELDS = ("png", "boxes.npy", "labels.npy", "seg.png")
BOXES = {"boxes.npy": ["labels.npy"]}


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def png(array):
    file = io.BytesIO()
    Image.fromarray(array).save(file, "png")
    return file.getvalue()


def write(path, samples, fields=FIELDS):
    with tarfile.open(path, "w") as archive:
        for k, members in enumerate(samples):
            for suffix, data in zip(fields, members, strict=False):
                member = tarfile.TarInfo(f"{k:03}.{suffix}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return path


def any_boxes(rng, count, height, width):
    """Boxes with fractions, of which some reach out of the image or are empty."""
    first, second = rng.uniform(-0.1, 1.1, (2, count, 2)) * [width, height]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], 1).astype(np.float32)


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    rng = np.random.default_rng(11)
    samples, given = [], []
    for k in range(30):
        height, width = map(int, rng.integers(5, 70, 2))
        boxes = any_boxes(rng, k % 7, height, width)
        labels = rng.integers(0, 90, k % 7)
        image = rng.integers(0, 256, (height, width, 3), np.uint8)
        samples.append((png(image), npy(boxes), npy(labels)))
        given.append((image, boxes, labels))
    return write(tmp_path_factory.mktemp("boxes") / "a.tar", samples), given


STEPS = {
    "resize": ([T.Resize((33, 57))], [v2.Resize((33, 57))]),
    "smaller side": ([T.Resize(40, max_size=60)], [v2.Resize(40, max_size=60)]),
    "flips": (
        [T.RandomHorizontalFlip(1.0), T.RandomVerticalFlip(1.0)],
        [v2.RandomHorizontalFlip(1.0), v2.RandomVerticalFlip(1.0)],
    ),
    # Of images that are too small by an odd number of pixels, torchvision's boxes are a pixel beside the image.
    "centre": ([T.Resize((41, 33)), T.CenterCrop((30, 20))], [v2.Resize((41, 33)), v2.CenterCrop((30, 20))]),
    "larger centre": ([T.Resize((41, 33)), T.CenterCrop((45, 20))], [v2.Resize((41, 33)), v2.CenterCrop((45, 20))]),
    "pad": ([T.Pad((3, 4, 5, 6)), T.Resize((21, 22))], [v2.Pad((3, 4, 5, 6)), v2.Resize((21, 22))]),
    "many": (
        [T.Resize((50, 40)), T.RandomHorizontalFlip(1.0), T.CenterCrop((30, 35)), T.ColorJitter(0.5), T.Resize((64, 23)), T.Grayscale(3)],
        [v2.Resize((50, 40)), v2.RandomHorizontalFlip(1.0), v2.CenterCrop((30, 35)), v2.Resize((64, 23))],
    ),
    "sanitized": (
        [T.Resize((41, 33)), T.CenterCrop((30, 20)), T.SanitizeBoundingBoxes(3, 20)],
        [v2.Resize((41, 33)), v2.CenterCrop((30, 20)), v2.SanitizeBoundingBoxes(3, 20)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("ours, theirs", STEPS.values(), ids=STEPS)
def test_boxes_are_torchvisions(shard, ours, theirs):
    path, given = shard
    data = stoker.datasets.WebDataset(path, FIELDS[:3], T.Compose([*ours, T.ToTensor()]), boxes=BOXES)
    want = []
    for image, boxes, labels in given:
        canvas = image.shape[:2]
        inputs = {
            "image": tv_tensors.Image(torch.from_numpy(image.transpose(2, 0, 1).copy())),
            "boxes": tv_tensors.BoundingBoxes(torch.from_numpy(boxes.reshape(-1, 4)), format="XYXY", canvas_size=canvas),
            "labels": torch.from_numpy(labels),
        }
        out = v2.Compose(theirs)(inputs)
        want.append((out["boxes"].as_subclass(torch.Tensor), out["labels"]))
    for workers in (0, 2):
        at = 0
        for _, boxes, labels in stoker.DataLoader(data, 4, num_workers=workers):
            for box, label in zip(boxes, labels, strict=True):
                assert box.dtype == torch.float32 and box.shape == want[at][0].shape
                assert torch.equal(box, want[at][0]) and torch.equal(label, want[at][1])
                at += 1
        assert at == len(given)


RANDOM = {
    "crops": [T.RandomCrop(40, 6, True), T.RandomHorizontalFlip(), T.RandomVerticalFlip()],
    "zoom": [T.RandomZoomOut(0, (1.0, 2.5), 0.7), T.RandomCrop((50, 30), pad_if_needed=True)],
    "chosen": [T.RandomApply([T.RandomCrop(25, pad_if_needed=True)], 0.6), T.RandomHorizontalFlip(), T.CenterCrop(33)],
}


@pytest.mark.parametrize("steps", RANDOM.values(), ids=RANDOM)
def test_boxes_and_masks_have_the_same_draws(tmp_path, steps):
    """Each object is a rectangle of its own number in the mask, and its box is the one around its pixels."""
    rng = np.random.default_rng(2)
    samples = []
    for _ in range(40):
        height, width = map(int, rng.integers(20, 70, 2))
        mask = np.zeros((height, width), np.uint8)
        boxes = []
        for band in range(3):  # side by side, so that none covers another
            low, high = sorted(rng.choice(np.arange(band * width // 3, (band + 1) * width // 3 + 1), 2, replace=False))
            top, bottom = sorted(rng.choice(height + 1, 2, replace=False))
            mask[top:bottom, low:high] = band + 1
            boxes.append((low, top, high, bottom))
        array = np.array(boxes, np.float32)
        samples.append((png(np.stack([mask] * 3, 2)), npy(array), npy(np.arange(1, 4)), png(mask)))
    path = write(tmp_path / "a.tar", samples)
    transform = T.Compose([*steps, T.SanitizeBoundingBoxes(), T.PILToTensor()])
    data = stoker.datasets.WebDataset(path, FIELDS, transform, masks="seg.png", boxes=BOXES)
    compared = 0
    for epoch in range(3):
        loader = stoker.DataLoader(data, 5, shuffle=True, num_workers=2, seed=epoch)
        for images, boxes, labels, masks in loader:
            for image, box, label, mask in zip(images, boxes, labels, masks, strict=True):
                assert torch.equal(image[0], mask)
                assert sorted(label.tolist()) == sorted(set(mask.unique().tolist()) - {0})
                for (left, top, right, bottom), number in zip(box.tolist(), label.tolist(), strict=True):
                    rows, columns = torch.nonzero(mask == number, as_tuple=True)
                    around = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
                    assert (left, top, right, bottom) == tuple(map(float, around))
                    compared += 1
    assert compared > 150


def test_a_single_sample_and_an_interrupted_epoch(shard):
    path, _ = shard
    transform = T.Compose([T.RandomCrop(30, pad_if_needed=True), T.SanitizeBoundingBoxes(), T.ToTensor()])
    data = stoker.datasets.WebDataset(path, FIELDS[:3], transform, boxes=BOXES)
    image, boxes, labels = data[5]
    assert tuple(image.shape) == (3, 30, 30) and boxes.shape == (len(labels), 4)

    def seen(batches):
        return [(box.tolist(), label.tolist()) for _, boxes, labels in batches for box, label in zip(boxes, labels, strict=True)]

    whole = seen(stoker.DataLoader(data, 4, shuffle=True, seed=3))
    loader = stoker.DataLoader(data, 4, shuffle=True, seed=3, num_workers=1)
    batches = iter(loader)
    first = seen([next(batches), next(batches)])
    other = stoker.DataLoader(data, 4, shuffle=True, seed=3, num_workers=2)
    other.load_state_dict(loader.state_dict())
    assert first + seen(other) == whole


@pytest.mark.parametrize(
    "boxes, labels, message",
    [
        (np.zeros((3, 4)), np.zeros(3, np.int64), "boxes are float32"),
        (np.zeros((3, 5), np.float32), np.zeros(3, np.int64), "boxes are float32"),
        (np.zeros(4, np.float32), np.zeros(3, np.int64), "boxes are float32"),
        (np.zeros((3, 4), np.float32), np.zeros(2, np.int64), "3 boxes, but the field labels.npy has 2 values"),
        (np.zeros((3, 4), np.float32), np.int64(3), "3 boxes, but the field labels.npy has 1 values"),
    ],
)
def test_bad_boxes(tmp_path, boxes, labels, message):
    image = png(np.zeros((9, 9, 3), np.uint8))
    path = write(tmp_path / "a.tar", [(image, npy(boxes), npy(labels))])
    data = stoker.datasets.WebDataset(path, FIELDS[:3], T.ToTensor(), boxes=BOXES)
    with pytest.raises(stoker.StokerError, match=message):
        next(iter(stoker.DataLoader(data, 1)))


def test_nan_and_huge_boxes_are_no_crash(tmp_path):
    boxes = np.array([[np.nan] * 4, [np.inf, 0, -np.inf, 3], [-3e38, -3e38, 3e38, 3e38], [1, 1, 4, 4]], np.float32)
    path = write(tmp_path / "a.tar", [(png(np.zeros((9, 9, 3), np.uint8)), npy(boxes), npy(np.arange(4)))])
    transform = T.Compose([T.RandomHorizontalFlip(1), T.Resize(20), T.CenterCrop(15), T.SanitizeBoundingBoxes(), T.ToTensor()])
    data = stoker.datasets.WebDataset(path, FIELDS[:3], transform, boxes=BOXES)
    _, boxes, labels = next(iter(stoker.DataLoader(data, 1)))
    assert 3 in labels[0].tolist() and 0 not in labels[0].tolist()


@pytest.mark.parametrize(
    "boxes, message",
    [
        ("none", 'no field is named "none"'),
        ({"boxes.npy": ["png"]}, "png is the first image"),
        ({"boxes.npy": ["boxes.npy"]}, "named twice"),
        ({"boxes.npy": [""]}, 'no field is named ""'),
    ],
)
def test_names_that_are_no_boxes(shard, boxes, message):
    data = stoker.datasets.WebDataset(shard[0], FIELDS[:3], T.ToTensor(), boxes=boxes)
    with pytest.raises(stoker.StokerError, match=message):
        stoker.DataLoader(data, 2)
    with pytest.raises(TypeError, match="a list of names"):
        stoker.datasets.WebDataset(shard[0], FIELDS[:3], T.ToTensor(), boxes={"boxes.npy": "labels.npy"})


def test_boxes_in_a_border_that_repeats_the_image(shard):
    transform = T.Compose([T.Pad(4, padding_mode="reflect"), T.ToTensor()])
    data = stoker.datasets.WebDataset(shard[0], FIELDS[:3], transform, boxes=BOXES)
    with pytest.raises(stoker.StokerError, match="boxes cannot follow padding_mode=reflect"):
        next(iter(stoker.DataLoader(data, 2)))


def test_replaced_samples_have_no_boxes(shard, tmp_path):
    path, given = shard
    with tarfile.open(path) as archive:
        members = {member.name: archive.extractfile(member).read() for member in archive}
    members["003.png"] = members["003.png"][:40]
    samples = [[members[f"{k:03}.{suffix}"] for suffix in FIELDS[:3]] for k in range(6)]
    data = stoker.datasets.WebDataset(write(tmp_path / "a.tar", samples), FIELDS[:3], T.Compose([T.Resize((9, 9)), T.ToTensor()]), boxes=BOXES)
    _, boxes, labels = next(iter(stoker.DataLoader(data, 6, on_error="replace")))
    assert [tuple(box.shape) for box in boxes] == [(0 if k == 3 else k % 7, 4) for k in range(6)]
    assert [len(label) for label in labels] == [0 if k == 3 else k % 7 for k in range(6)]


@pytest.mark.parametrize(
    "steps, message",
    [
        ([T.ElasticTransform(sigma=40.0)], r"elastic_transform: a blur of"),
        ([T.RandomApply([T.RandomCrop(9)], 1.0)], r"random_crop: "),
    ],
)
def test_an_error_of_a_step_names_the_step_and_the_image(tmp_path, steps, message):
    """It is no fault of a mask or of boxes, though the steps run on these first."""
    image, mask = png(np.zeros((8, 8, 3), np.uint8)), png(np.zeros((8, 8), np.uint8))
    path = write(tmp_path / "a.tar", [(image, npy(np.zeros((1, 4), np.float32)), npy(np.zeros(1)), mask)])
    for named in ({"masks": "seg.png"}, {"boxes": "boxes.npy"}, {"masks": "seg.png", "boxes": BOXES}):
        data = stoker.datasets.WebDataset(path, FIELDS, T.Compose([*steps, T.ToTensor()]), **named)
        with pytest.raises(stoker.StokerError, match=r"a\.tar.*000.*: " + message) as caught:
            next(iter(stoker.DataLoader(data, 1)))
        assert "field" not in str(caught.value)


# ---- formats ----


@pytest.mark.parametrize("given", ["XYXY", "xywh", "CXCYWH", tv_tensors.BoundingBoxFormat.CXCYWH])
@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("output", ["XYXY", "XYWH", "CXCYWH"])
def test_formats_are_torchvisions(tmp_path, given, relative, output):
    rng = np.random.default_rng(3)
    samples, wanted = [], []
    word = str(getattr(given, "value", given))
    for k in range(12):
        height, width = map(int, rng.integers(5, 1000, 2))
        boxes = rng.uniform(-0.2, 1.2, (k % 5, 4)).astype(np.float32) if relative else any_boxes(rng, k % 5, height, width)
        samples.append((png(np.zeros((height, width, 3), np.uint8)), npy(boxes), npy(np.arange(k % 5))))
        pixels = torch.from_numpy(boxes) * (torch.tensor([width, height] * 2) if relative else 1)
        inside = tv_tensors.BoundingBoxes(pixels.reshape(-1, 4), format=word.upper(), canvas_size=(height, width))
        steps = v2.Compose([v2.ConvertBoundingBoxFormat("XYXY"), v2.Resize((40, 50)), v2.RandomHorizontalFlip(1.0),
                            v2.ClampBoundingBoxes(), v2.ConvertBoundingBoxFormat(output)])  # fmt: skip
        wanted.append(steps(inside).as_subclass(torch.Tensor))
    path = write(tmp_path / "a.tar", samples)
    steps = [T.Resize((40, 50)), T.RandomHorizontalFlip(1.0), T.ClampBoundingBoxes(), T.ConvertBoundingBoxFormat(output), T.ToTensor()]
    how = f"relative_{word.lower()}" if relative else given
    data = stoker.datasets.WebDataset(path, FIELDS[:3], T.Compose(steps), boxes=BOXES, box_format=how)
    found = [box for _, boxes, _ in stoker.DataLoader(data, 5) for box in boxes]
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.shape == theirs.shape and torch.equal(ours, theirs)


def test_torchvisions_steps_for_boxes_become_ours(shard):
    steps = [v2.Resize((30, 30)), v2.ClampBoundingBoxes(), v2.ConvertBoundingBoxFormat("XYWH"), v2.ToImage()]
    ours = [T.Resize((30, 30)), T.ClampBoundingBoxes(), T.ConvertBoundingBoxFormat("XYWH"), T.PILToTensor()]
    found = [
        [boxes for _, boxes, _ in stoker.DataLoader(stoker.datasets.WebDataset(shard[0], FIELDS[:3], T.Compose(made), boxes=BOXES), 1)]
        for made in (steps, ours)
    ]
    assert all(torch.equal(one[0], other[0]) for one, other in zip(*found, strict=True))


def test_formats_that_are_none(shard):
    path = shard[0]
    with pytest.raises(ValueError, match="box_format='yolo' is none of xyxy, xywh, cxcywh"):
        stoker.datasets.WebDataset(path, FIELDS[:3], boxes=BOXES, box_format="yolo")
    with pytest.raises(ValueError, match="name their field with boxes="):
        stoker.datasets.WebDataset(path, FIELDS[:3], box_format="xywh")
    with pytest.raises(ValueError, match="format='XYWHR' is none of XYXY"):
        T.ConvertBoundingBoxFormat("XYWHR")
    data = stoker.datasets.WebDataset(path, FIELDS[:3], boxes="boxes.npy=relative_+labels.npy")
    with pytest.raises(stoker.StokerError, match="after '=' comes xyxy, xywh, cxcywh or points"):
        stoker.DataLoader(data, 2)
