# SPDX-License-Identifier: Apache-2.0
"""Albumentations' distortions in the engine: its bytes for the numbers that the engine draws, and the same distributions."""

from __future__ import annotations

import os

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask PyPI for newer versions

import numpy as np
import pytest
import stoker
import torch
from stoker import transforms as T
from stoker._plan import from_albumentations_compared as compared
from stoker._steps import cv
from stoker._steps.blockers import Blocked
from test_boxes import npy, png, write
from test_elastic import philox
from test_timm import draws
from test_transform_draws import same_distribution
from transform_parity import apply, coordinates, pictures

cv2 = pytest.importorskip("cv2")
A = pytest.importorskip("albumentations")
import albumentations.augmentations.geometric.functional as F  # noqa: E402
from albumentations.pytorch import ToTensorV2  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning")]
FIELDS = ("png", "boxes.npy", "labels.npy", "seg.png")


def compose(*steps, **options):
    return A.Compose([*steps, ToTensorV2()], **options)


class Drawn:
    """The numbers that an op of the engine draws for a sample."""

    def __init__(self, seed, sample=0, op=0):
        self._words, self._at = philox(seed, 4096, sample, op), 0

    def uniform(self, low, high):
        first, second = (int(word) for word in self._words[self._at : self._at + 2])
        self._at += 2
        return low + (high - low) * ((second << 32 | first) >> 11) * 2.0**-53


def grid_maps(t, shape, drawn):
    """Where Albumentations takes pixels from for these draws."""
    across, down = ([1 + drawn.uniform(*t.distort_limit) for _ in range(t.num_steps + 1)] for _ in range(2))
    if t.normalized:
        made = F.normalize_grid_distortion_steps(shape, t.num_steps, across, down)
        across, down = made["steps_x"], made["steps_y"]
    return F.generate_grid(shape, across, down, t.num_steps)


MAPS = {"GridDistortion": grid_maps}
BORDERS = [cv2.BORDER_CONSTANT, cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT, cv2.BORDER_WRAP, cv2.BORDER_REFLECT_101]


def random_step(kind, rng):
    """A step with any options that the engine has."""
    options = {"border_mode": BORDERS[rng.integers(5)], "p": 1, "fill_mask": int(rng.integers(256))}
    options["fill"] = int(rng.integers(256)) if rng.random() < 0.5 else tuple(map(int, rng.integers(0, 256, 3)))
    limit = float(rng.uniform(0, 0.9))
    if kind is A.GridDistortion:
        options |= {"num_steps": int(rng.integers(1, 12)), "normalized": bool(rng.random() < 0.5)}
    return kind(distort_limit=(-limit, limit), **options)


def again(step):
    return type(step)(**step.get_transform_init_args())


def with_numbers(step, drawn):
    """The same step of Albumentations, with these draws."""
    maps = MAPS[type(step).__name__]
    step.get_params_dependent_on_data = lambda params, data: dict(
        zip(("map_x", "map_y"), maps(step, params["shape"][:2], drawn), strict=True)
    )
    return step


@pytest.mark.parametrize("name", MAPS)
def test_bytes_are_albumentations_for_the_numbers_drawn(name):
    rng = np.random.default_rng(3)
    failed = 0
    for seed, image in enumerate([*pictures(60, 4, 200), np.full((1, 1, 3), 200, np.uint8)]):
        step = random_step(getattr(A, name), rng)
        try:
            wanted = with_numbers(step, Drawn(seed))(image=image)["image"].transpose(2, 0, 1)
        except ZeroDivisionError:
            with pytest.raises(stoker.StokerError, match="cannot have"):
                apply(compose(again(step)), image, seed=seed)
            failed += 1
            continue
        assert apply(compose(again(step)), image, seed=seed).tobytes() == wanted.tobytes(), (seed, step, image.shape)
    assert failed < 10


@pytest.fixture(scope="module")
def shard(tmp_path_factory):
    """Images with masks and with boxes of many places."""
    rng = np.random.default_rng(17)
    samples, given = [], []
    for k in range(24):
        height, width = map(int, rng.integers(30, 90, 2))
        ends = np.sort(rng.uniform(0, 1, (k % 7, 2, 2)), 1) * [width, height]
        boxes = ends.reshape(-1, 4).astype(np.float32)
        boxes = np.round(boxes * 2) / 2 if k % 2 else boxes  # halves, too
        boxes = boxes[((boxes[:, 2:] - boxes[:, :2]) > 0).all(1)]
        image, mask = rng.integers(0, 256, (height, width, 3), np.uint8), rng.integers(0, 256, (height, width), np.uint8)
        samples.append((png(image), npy(boxes), npy(np.arange(len(boxes))), png(mask)))
        given.append({"image": image, "mask": mask, "bboxes": boxes, "labels": np.arange(len(boxes))})
    return write(tmp_path_factory.mktemp("targets") / "a.tar", samples, FIELDS), given


@pytest.mark.parametrize("name", MAPS)
def test_masks_and_boxes_are_albumentations(shard, name):
    path, given = shard
    rng = np.random.default_rng(5)
    left = 0
    for seed in range(4):
        step = random_step(getattr(A, name), rng)
        params = A.BboxParams("pascal_voc", label_fields=["labels"], min_area=3)
        pipeline = compose(step, bbox_params=params)
        data = stoker.datasets.WebDataset(path, FIELDS, pipeline, masks="seg.png", boxes={"boxes.npy": ["labels.npy"]})
        loader = stoker.DataLoader(data, 1, seed=seed)
        assert "Python" not in str(loader.explain())
        for sample, (number, batch) in zip(given, enumerate(loader), strict=True):
            image, boxes, labels, mask = (part[0] for part in batch)
            wanted = compose(with_numbers(again(step), Drawn(seed, number, 1)), bbox_params=params)(**sample)
            assert torch.equal(image, wanted["image"])
            assert torch.equal(mask, wanted["mask"])
            assert labels.tolist() == np.asarray(wanted["labels"]).astype(int).tolist()
            assert np.allclose(boxes.numpy(), np.asarray(wanted["bboxes"]).reshape(-1, 4), rtol=0, atol=2e-4)
            left += len(labels)
    assert left > 100


SPREAD = {
    "grid": A.GridDistortion(p=1),
    "free grid": A.GridDistortion(3, (-0.8, 0.5), normalized=False, p=1),
}


@pytest.mark.parametrize("name", SPREAD)
def test_draws_have_albumentations_distributions(name):
    pipeline, image = compose(SPREAD[name], seed=7), coordinates(40, 30)
    wanted = np.stack([pipeline(image=image)["image"].numpy() for _ in range(1500)])
    got = draws(pipeline, image, 1500)
    for y, x in ((15, 20), (10, 27), (22, 15), (3, 4)):
        for channel in (0, 1):
            same_distribution(got[:, channel, y, x], wanted[:, channel, y, x], f"{name}: {channel} at {y}, {x}")


POINTS = {"keypoint_params": A.KeypointParams("xy", remove_invisible=False)}
REFUSED = {
    "key points": (compose(A.GridDistortion(), **POINTS), "distortions lose key points"),
    "cubic": (compose(A.GridDistortion(interpolation=2)), "interpolation=2 is not"),
    "smooth masks": (compose(A.GridDistortion(mask_interpolation=1)), "mask_interpolation=1 is not"),
    "steps": (compose(A.GridDistortion(num_steps=101)), "num_steps=101 is not from 1 to 100"),
    "a fraction": (compose(A.GridDistortion(fill=0.5)), "fill=0.5 is not an integer"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_engine_lacks_is_said(name):
    pipeline, why = REFUSED[name]
    with pytest.raises(Blocked, match=why):
        T.pipeline_text(pipeline)


@pytest.mark.parametrize("name", MAPS)
def test_what_differs_from_what_is_installed_stays_in_python(monkeypatch, name):
    step = compose(getattr(A, name)())
    with monkeypatch.context() as patched:
        patched.setattr(cv, "agrees", lambda op: op != "remap_nearest")
        with pytest.raises(Blocked, match="gives other bytes than the engine"):
            T.pipeline_text(step)
    monkeypatch.setattr(compared, "_compared", {})
    monkeypatch.setattr(cv2, "remap", lambda image, *_, **__: image)
    with pytest.raises(Blocked, match="calculate in another way than the engine"):
        T.pipeline_text(step)
