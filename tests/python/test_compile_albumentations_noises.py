# SPDX-License-Identifier: Apache-2.0
"""Albumentations' noise of single pixels, and its random curves of tones: its bytes where nothing is drawn, and its values as
often."""

from __future__ import annotations

import collections
import os

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask PyPI for newer versions

import numpy as np
import pytest
import stoker
from stoker import transforms as T
from stoker._plan import from_albumentations_compared as compared
from stoker._steps.blockers import Blocked
from test_boxes import npy, png, write
from test_timm import draws, same_shares
from transform_parity import apply, pictures

A = pytest.importorskip("albumentations")
from albumentations.pytorch import ToTensorV2  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning")]


def compose(*steps, **options):
    return A.Compose([*steps, ToTensorV2()], **options)


def fixed(rng):
    """Steps in which nothing is drawn, of other numbers each time."""
    by = float(rng.uniform(0, 3))
    for each in (False, True):
        yield A.MultiplicativeNoise((by, by), per_channel=each, p=1)
        yield A.MultiplicativeNoise((by, by), per_channel=each, elementwise=True, p=1)
        yield A.RandomToneCurve(0, each, p=1)
        yield A.PixelDropout(1, each, tuple(map(int, rng.integers(0, 256, 3))), p=1)
        yield A.PixelDropout(0, each, p=1)
    for salt in (0, 1):
        yield A.SaltAndPepper((1, 1), (salt, salt), p=1)
    yield A.ToRGB(p=1)


@pytest.mark.parametrize("seed", range(2))
def test_what_draws_nothing_gives_albumentations_bytes(seed):
    images = [*pictures(13, seed), np.full((1, 1, 3), 200, np.uint8)]
    for step in fixed(np.random.default_rng(seed)):
        for image in images:
            wanted = compose(step)(image=image.copy())["image"].numpy()
            assert np.array_equal(apply(compose(step), image), wanted), (step, image.shape)


ONE = np.full((2, 3, 3), (120, 30, 200), np.uint8)
# Steps that draw, and by how much values are divided so that there are not too many outcomes.
DRAWN = {
    "factors": (A.MultiplicativeNoise((0.5, 1.6), p=1), 8),
    "factors of channels": (A.MultiplicativeNoise((0.8, 1.3), per_channel=True, p=1), 16),
    "factors of pixels": (A.MultiplicativeNoise((0.5, 1.6), elementwise=True, p=0.8), 8),
    "factors of values": (A.MultiplicativeNoise((0.7, 1.2), True, True, p=1), 16),
    "a curve": (A.RandomToneCurve(0.3, p=1), 16),
    "curves": (A.RandomToneCurve(0.1, True, p=1), 16),
    "salt": (A.SaltAndPepper((0.3, 1), (0.2, 0.9), p=1), 1),
    "dropped": (A.PixelDropout(0.3, p=1), 1),
    "dropped values": (A.PixelDropout(0.3, True, (1, 2, 3), p=1), 1),
    "dropped for colours": (A.PixelDropout(0.7, drop_value=None, p=1), 64),
}


@pytest.mark.parametrize("name", DRAWN)
def test_draws_have_albumentations_values_as_often(name):
    step, by = DRAWN[name]
    pipeline = compose(step, seed=3)

    def outcomes(results):
        return collections.Counter((one[:, 1, :2] // by).tobytes() for one in results)

    wanted = outcomes(pipeline(image=ONE.copy())["image"].numpy() for _ in range(4000))
    got = outcomes(draws(pipeline, ONE, 20_000))
    assert len(wanted) > 1
    same_shares(got, wanted)


def test_random_values_are_those_of_albumentations():
    step = A.PixelDropout(1.0, drop_value=None, p=1)
    got = draws(compose(step), ONE[:1, :1], 3000)
    assert got.max() == 254 and got.min() == 0


def test_as_many_pixels_become_white_and_black():
    image = np.full((40, 50, 3), 100, np.uint8)
    for seed in range(5):
        made = apply(compose(A.SaltAndPepper((0.1, 0.1), (0.3, 0.3), p=1)), image, seed=seed)[0]
        assert [np.count_nonzero(made == value) for value in (0, 255)] == [140, 60]
        assert np.abs(np.nonzero(made != 100)[0].mean() - 19.5) < 4


def test_masks_boxes_and_points_stay(tmp_path):
    image, box = np.full((9, 8, 3), 50, np.uint8), np.array([[1, 2, 5, 6]], np.float32)
    sample = (png(image), npy(box), npy(np.arange(1)), npy(box[:, :2]), png(image[:, :, 0]))
    names = ("png", "boxes.npy", "labels.npy", "points.npy", "seg.png")
    path = write(tmp_path / "a.tar", [sample], names)
    given = {"masks": "seg.png", "boxes": {"boxes.npy": ["labels.npy"]}, "keypoints": "points.npy"}
    steps = [A.MultiplicativeNoise(p=1), A.SaltAndPepper(p=1), A.RandomToneCurve(p=1), A.PixelDropout(1, per_channel=True, p=1)]
    points = A.KeypointParams("xy", remove_invisible=False)
    pipeline = compose(*steps, bbox_params=A.BboxParams("pascal_voc", label_fields=["labels"]), keypoint_params=points)
    data = stoker.datasets.WebDataset(path, names, pipeline, **given)
    found, boxes, _, moved, mask = data[0]
    assert not np.asarray(found).any() and (np.asarray(mask) == 50).all()
    assert np.array_equal(boxes, box) and np.array_equal(moved, box[:, :2])


BOXES = {"bbox_params": A.BboxParams("pascal_voc")}
REFUSED = {
    "boxes": (compose(A.PixelDropout(), **BOXES), "dropped pixels hide boxes"),
    "masks": (compose(A.PixelDropout(mask_drop_value=1)), "mask_drop_value is given"),
    "fraction": (compose(A.PixelDropout(drop_value=0.5)), "drop_value=0.5 is not an integer"),
    "channels": (compose(A.ToRGB(4)), "num_output_channels=4 is not 3"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_engine_lacks_is_said(name):
    pipeline, why = REFUSED[name]
    with pytest.raises(Blocked, match=why):
        T.pipeline_text(pipeline)


def test_numbers_that_were_changed_to_bad_ones_are_refused():
    for kind, name in ((A.MultiplicativeNoise, "multiplier"), (A.SaltAndPepper, "amount"), (A.RandomToneCurve, "scale")):
        for value in ((float("nan"), 1.0), (5.0, 3.0), (1.0,), None, "ab", float("inf")):
            step = kind()
            setattr(step, name, value)
            with pytest.raises(Blocked):
                T.pipeline_text(compose(step))


def test_a_step_that_differs_from_what_is_installed_stays_in_python(monkeypatch):
    import albumentations.augmentations.pixel.transforms as theirs

    monkeypatch.setattr(compared, "_compared", {})
    monkeypatch.setattr(theirs, "multiply", lambda image, by: image // 2)
    with pytest.raises(Blocked, match="calculate in another way than the engine"):
        T.pipeline_text(compose(A.MultiplicativeNoise()))
