# SPDX-License-Identifier: Apache-2.0
"""Albumentations' distortions in the engine: its bytes for the numbers that the engine draws, and the same distributions."""

from __future__ import annotations

import math
import os

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask PyPI for newer versions

import numpy as np
import pytest
import stoker
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


TAIL, AREA = 3.6541528853610088, 0.00492867323399
ENDS = [AREA / math.exp(-TAIL * TAIL / 2), TAIL]
for _ in range(254):
    ENDS.append(math.sqrt(-2 * math.log(AREA / ENDS[-1] + math.exp(-ENDS[-1] ** 2 / 2))))
ENDS.append(0.0)
HEIGHTS = [math.exp(-end * end / 2) for end in ENDS]


class Drawn:
    """The numbers that an op of the engine draws for a sample."""

    def __init__(self, seed, sample=0, op=0):
        self._words, self._at = philox(seed, 200_000, sample, op), 0

    def uniforms(self, count):
        return self._words[:count].astype(np.int32) * 2.0**-31

    def normals(self, count):
        """By Marsaglia and Tsang's ziggurat."""
        return np.array([self._normal() for _ in range(count)])

    def _normal(self):
        while True:
            word = int(self._words[self._at])
            self._at += 1
            layer, place = word & 255, (word & ~255) + 128
            x = (place - (1 << 32) * (place >= 1 << 31)) * 2.0**-31 * ENDS[layer]
            if abs(x) < ENDS[layer + 1]:
                return x
            if layer == 0:
                return math.copysign(self._tail(), x)
            low, high = HEIGHTS[layer], HEIGHTS[layer + 1]
            if low + (high - low) * self.uniform(0, 1) < math.exp(-x * x / 2):
                return x

    def _tail(self):
        while True:
            beyond, height = -math.log(1 - self.uniform(0, 1)) / TAIL, -math.log(1 - self.uniform(0, 1))
            if 2 * height >= beyond**2:
                return TAIL + beyond

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


def optical_maps(t, shape, drawn):
    return F.get_camera_matrix_distortion_maps(shape, drawn.uniform(*t.distort_limit))


def elastic_maps(t, shape, drawn):
    height, width = shape
    count = height * width * (1 if t.same_dxdy else 2)
    noise = (drawn.uniforms if t.noise_distribution == "uniform" else drawn.normals)(count).astype(np.float32)
    if t.noise_distribution == "gaussian":
        noise /= np.abs(noise).max()
    kernel = (17, 17) if t.approximate else (0, 0)
    moves = cv2.GaussianBlur(noise.reshape(-1, width), kernel, t.sigma, borderType=cv2.BORDER_REPLICATE) * np.float32(t.alpha)
    y, x = np.mgrid[:height, :width].astype(np.float32)
    return x + moves[:height], y + moves[-height:]


MAPS = {"ElasticTransform": elastic_maps, "GridDistortion": grid_maps, "OpticalDistortion": optical_maps}
POINTS = {"keypoint_params": A.KeypointParams("xy", remove_invisible=False)}
BORDERS = [cv2.BORDER_CONSTANT, cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT, cv2.BORDER_WRAP, cv2.BORDER_REFLECT_101]


def random_step(kind, rng):
    """A step with any options that the engine has."""
    options = {"border_mode": BORDERS[rng.integers(5)], "p": 1, "fill_mask": int(rng.integers(256))}
    options["fill"] = int(rng.integers(256)) if rng.random() < 0.5 else tuple(map(int, rng.integers(0, 256, 3)))
    if kind is A.ElasticTransform:
        options |= {name: bool(rng.random() < 0.3) for name in ("approximate", "same_dxdy")}
        options |= {"alpha": float(rng.uniform(0, 90)), "sigma": float(rng.uniform(1, 9) ** 2)}
        return kind(noise_distribution=("gaussian", "uniform")[rng.integers(2)], **options)
    limit = float(rng.uniform(0, 0.9))
    if kind is A.GridDistortion:
        options |= {"num_steps": int(rng.integers(1, 12)), "normalized": bool(rng.random() < 0.5)}
    return kind(distort_limit=(-limit, limit), **options)


def same(ours, wanted, name):
    """OpenCV adds up the blur of an elastic map in another order: then a pixel may differ by a level."""
    assert (ours.dtype, ours.shape) == (wanted.dtype, wanted.shape)
    if name != "ElasticTransform":
        return np.array_equal(ours, wanted)
    differ = np.abs(ours.astype(int) - wanted.astype(int))
    return differ.max() <= 1 and np.count_nonzero(differ) <= differ.size / 1000


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
    for seed, image in enumerate([*pictures(40, 4, 130), np.full((1, 1, 3), 200, np.uint8)]):
        step = random_step(getattr(A, name), rng)
        try:
            wanted = with_numbers(step, Drawn(seed))(image=image)["image"].transpose(2, 0, 1)
        except ZeroDivisionError:
            with pytest.raises(stoker.StokerError, match="cannot have"):
                apply(compose(again(step)), image, seed=seed)
            failed += 1
            continue
        assert same(apply(compose(again(step)), image, seed=seed), wanted, name), (seed, step, image.shape)
    assert failed < (10 if name == "GridDistortion" else 1)


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
    for seed in range(2):
        step = random_step(getattr(A, name), rng)
        params = A.BboxParams("pascal_voc", label_fields=["labels"], min_area=3)
        pipeline = compose(step, bbox_params=params)
        data = stoker.datasets.WebDataset(path, FIELDS, pipeline, masks="seg.png", boxes={"boxes.npy": ["labels.npy"]})
        loader = stoker.DataLoader(data, 1, seed=seed)
        assert "Python" not in str(loader.explain())
        for sample, (number, batch) in zip(given, enumerate(loader), strict=True):
            image, boxes, labels, mask = (part[0] for part in batch)
            wanted = compose(with_numbers(again(step), Drawn(seed, number, 1)), bbox_params=params)(**sample)
            assert same(image.numpy(), wanted["image"].numpy(), name)
            assert np.count_nonzero(mask.numpy() != wanted["mask"].numpy()) <= (mask.numel() / 1000 if "Elastic" in name else 0)
            assert labels.tolist() == np.asarray(wanted["labels"]).astype(int).tolist()
            assert np.allclose(boxes.numpy(), np.asarray(wanted["bboxes"]).reshape(-1, 4), rtol=0, atol=2e-4)
            left += len(labels)
    assert left > 50


@pytest.fixture(scope="module")
def points_shard(tmp_path_factory):
    """Images with key points, some of them outside."""
    rng = np.random.default_rng(18)
    given = []
    for k in range(30):
        height, width = map(int, rng.integers(1, 50 if k % 5 else 3, 2))
        points = (rng.uniform(-0.1, 1.1, (k % 4, 3, 2)) * [width, height]).astype(np.float32)
        given.append((rng.integers(0, 256, (height, width, 3), np.uint8), np.round(points) if k % 3 else points))
    path = write(tmp_path_factory.mktemp("points") / "a.tar", [(png(i), npy(p)) for i, p in given], ("png", "points.npy"))
    return path, given


@pytest.mark.parametrize("name", MAPS)
def test_key_points_are_albumentations(points_shard, name):
    path, given = points_shard
    rng, moved = np.random.default_rng(6), 0
    for seed in range(2):
        step = random_step(getattr(A, name), rng)
        if name == "GridDistortion":
            step = A.GridDistortion(4, (-0.6, 0.6), normalized=False, p=1)
        step.keypoint_remapping_method = "direct"
        data = stoker.datasets.WebDataset(path, ("png", "points.npy"), compose(step, **POINTS), keypoints="points.npy")
        loader = stoker.DataLoader(data, 1, seed=seed)
        assert "Python" not in str(loader.explain())
        for (image, points), (number, batch) in zip(given, enumerate(loader), strict=True):
            theirs = compose(with_numbers(again(step), Drawn(seed, number)), **POINTS)
            wanted = np.asarray(theirs(image=image, keypoints=points.reshape(-1, 2))["keypoints"]).reshape(-1, 2)
            got = batch[1][0].numpy().reshape(-1, 2)
            # Elastic maps may differ in their last bits, by which another pixel may be the nearest.
            assert np.count_nonzero((got != wanted).any(1)) <= (name == "ElasticTransform" and len(got) // 6), image.shape
            moved += np.count_nonzero(got != points.reshape(-1, 2))
    assert moved > 50


def test_a_key_point_that_is_not_a_number_stays_one(tmp_path):
    points = np.array([[np.nan, 3], [2, np.inf], [-np.inf, 1]], np.float32)
    path = write(tmp_path / "a.tar", [(png(coordinates(9, 7)), npy(points))], ("png", "points.npy"))
    step = A.OpticalDistortion(0.3, keypoint_remapping_method="direct", p=1)
    data = stoker.datasets.WebDataset(path, ("png", "points.npy"), compose(step, **POINTS), keypoints="points.npy")
    found = data[0][1]
    assert np.isnan(found[0, 0]) and found[0, 1] == 3 and np.isfinite(found[1:]).all()


SPREAD = {
    "elastic": A.ElasticTransform(90, 6, p=1),
    "same elastic": A.ElasticTransform(60, 5, approximate=True, same_dxdy=True, noise_distribution="uniform", p=1),
    "grid": A.GridDistortion(p=1),
    "free grid": A.GridDistortion(3, (-0.8, 0.5), normalized=False, p=1),
    "lens": A.OpticalDistortion(0.8, p=1),
}


@pytest.mark.parametrize("name", SPREAD)
def test_draws_have_albumentations_distributions(name):
    pipeline, image = compose(SPREAD[name], seed=7), coordinates(40, 30)
    wanted = np.stack([pipeline(image=image)["image"].numpy() for _ in range(1500)])
    got = draws(pipeline, image, 1500)
    for y, x in ((15, 20), (10, 27), (22, 15), (3, 4)):
        for channel in (0, 1):
            same_distribution(got[:, channel, y, x], wanted[:, channel, y, x], f"{name}: {channel} at {y}, {x}")


REFUSED = {
    "key points": (compose(A.GridDistortion(), **POINTS), "distortions lose key points"),
    "cubic": (compose(A.GridDistortion(interpolation=2)), "interpolation=2 is not"),
    "smooth masks": (compose(A.GridDistortion(mask_interpolation=1)), "mask_interpolation=1 is not"),
    "fish eye": (compose(A.OpticalDistortion(mode="fisheye")), "mode='fisheye' depends on"),
    "elastic points": (compose(A.ElasticTransform(), **POINTS), "distortions lose key points"),
    "smoothest": (compose(A.ElasticTransform(sigma=1e4)), "sigma=10000.0 is not from 1 to 1000"),
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
    if name == "ElasticTransform":
        return  # its maps are drawn
    monkeypatch.setattr(compared, "_compared", {})
    monkeypatch.setattr(cv2, "remap", lambda image, *_, **__: image)
    with pytest.raises(Blocked, match="calculate in another way than the engine"):
        T.pipeline_text(step)
