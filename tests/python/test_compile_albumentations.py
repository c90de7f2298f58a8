# SPDX-License-Identifier: Apache-2.0
"""Albumentations' pipelines in datasets that the engine runs: its bytes where nothing is drawn, and where something is, its
outcomes as often. (In users' own datasets Albumentations draws: test_albumentations.py.)"""

from __future__ import annotations

import collections
import os

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask PyPI for newer versions

import numpy as np
import pytest
import stoker
import torch
from PIL import Image
from stoker import transforms as T
from stoker._steps import cv
from stoker._steps.blockers import Blocked
from test_timm import draws, same_shares
from test_transform_draws import same_distribution
from transform_parity import apply, coordinates, pictures

cv2 = pytest.importorskip("cv2")
A = pytest.importorskip("albumentations")
from albumentations.pytorch import ToTensorV2  # noqa: E402
from torchvision import transforms as V  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning")]
REFLECT, REPLICATE, MIRROR = cv2.BORDER_REFLECT, cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT_101
MEAN, STD = (0.1, 0.2, 0.7), (0.4, 0.31, 0.6)


def compose(*steps, **options):
    return A.Compose([*steps, ToTensorV2()], **options)


# Steps in which nothing is drawn.
FIXED = {
    "nothing": [],
    "no op": [A.NoOp()],
    "mirror": [A.HorizontalFlip(p=1)],
    "flip": [A.VerticalFlip(p=1)],
    "transpose": [A.Transpose(p=1)],
    "turns": [A.Transpose(p=1), A.HorizontalFlip(p=1), A.Transpose(p=1), A.VerticalFlip(p=1), A.Transpose(p=1)],
    "turns and crops": [A.VerticalFlip(p=1), A.Transpose(p=1), A.Crop(1, 2, 20, 17), A.Transpose(p=1), A.CenterCrop(6, 9)],
    "never": [A.HorizontalFlip(p=0), A.OneOf([A.VerticalFlip(p=1)], p=0), A.SomeOf([A.VerticalFlip(p=1)], 1, p=0)],
    "crop": [A.Crop(3, 5, 30, 22)],
    "centre": [A.CenterCrop(21, 14)],
    "centre padded": [A.CenterCrop(40, 51, pad_if_needed=True, fill=(9, 0, 255))],
    "random crop padded": [A.RandomCrop(125, 130, pad_if_needed=True, pad_position="bottom_left", fill=7)],
    "pad": [A.PadIfNeeded(64, 51)],
    "pad colour": [A.PadIfNeeded(61, 64, fill=[1, 2, 3])],
    "pad to the right": [A.PadIfNeeded(64, 64, position="top_left")],
    "pad above": [A.PadIfNeeded(64, 64, position="bottom_right", border_mode=REPLICATE)],
    "pad right above": [A.PadIfNeeded(64, 64, position="bottom_left", border_mode=REFLECT)],
    "pad left below": [A.PadIfNeeded(64, 64, position="top_right", border_mode=MIRROR)],
    "pad all sides": [A.Pad(7, fill=3)],
    "pad both ways": [A.Pad((3, 9), fill=(1, 2, 3))],
    "pad each side": [A.Pad((0, 2, 30, 4), border_mode=REPLICATE)],
    "pad with mirrored rows": [A.Pad((1, 0, 1, 40), border_mode=REFLECT)],
    "pad with reflected columns": [A.Pad((50, 1, 0, 0), border_mode=MIRROR)],
    "pad multiples": [A.PadIfNeeded(None, None, 32, 17)],
    "pad one way": [A.PadIfNeeded(None, 70, 8, None, border_mode=MIRROR)],
    "hole": [A.GridDropout(0.4, random_offset=False, holes_number_xy=(1, 1), shift_xy=(3, 2), fill=(1, 2, 3), p=1)],
    "moved hole": [A.GridDropout(1, random_offset=False, holes_number_xy=(1, 1), shift_xy=(30, 200), fill=9, p=1)],
    "normalize": [A.Normalize()],
    "normalize otherwise": [A.Normalize(MEAN, STD, max_pixel_value=200.0)],
    "normalize equally": [A.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))],
    "normalize, then move": [A.Normalize(MEAN, STD), A.HorizontalFlip(p=1), A.Transpose(p=1), A.CenterCrop(3, 2)],
    "floats": [A.ToFloat()],
    "floats of 255": [A.ToFloat(max_value=255)],
    "held": [
        A.Compose([A.HorizontalFlip(p=1), A.Sequential([A.Transpose(p=1)], p=1)]),
        A.OneOf([A.Sequential([A.VerticalFlip(p=1), A.Transpose(p=1)], p=0.1), A.Transpose(p=0)], p=1),
        A.OneOrOther(A.HorizontalFlip(p=0.3), A.NoOp(), p=1),
        A.OneOrOther(A.NoOp(), A.Transpose(p=0.3), p=0),
        A.SomeOf([A.Transpose(p=1), A.HorizontalFlip(p=1)], n=2),
        A.SomeOf([A.Transpose(p=1), A.HorizontalFlip(p=1)], n=0),
    ],
    # Sizes, with OpenCV's arithmetic.
    "resize": [A.Resize(40, 33)],
    "resize to itself": [A.Resize(40, 33), A.Resize(40, 33)],
    "resize by area": [A.Resize(19, 23, interpolation=cv2.INTER_AREA)],
    "resize to the nearest": [A.Resize(37, 50, interpolation=cv2.INTER_NEAREST)],
    "shrink by area": [A.Resize(41, 52, area_for_downscale="image")],
    "turned, then resized": [A.HorizontalFlip(p=1), A.Transpose(p=1), A.Resize(31, 29), A.VerticalFlip(p=1)],
    "shortest": [A.SmallestMaxSize(37)],
    "longest": [A.LongestMaxSize(53, area_for_downscale="image")],
    "longest of two": [A.LongestMaxSize(max_size_hw=(40, 60))],
    "shortest of two": [A.SmallestMaxSize(max_size_hw=(40, 60))],
    "height": [A.LongestMaxSize(max_size_hw=(45, None))],
    "width": [A.SmallestMaxSize(max_size_hw=(None, 45))],
    "scale": [A.RandomScale((0.37, 0.37), p=1)],
    "scale down": [A.RandomScale((-0.61, -0.61), area_for_downscale="image", p=1)],
    "fit in a square": [
        A.LongestMaxSize(64), A.PadIfNeeded(64, 64, border_mode=cv2.BORDER_CONSTANT, fill=(114, 114, 114)), A.Normalize(),
    ],
}  # fmt: skip


def theirs(pipeline, image):
    """Albumentations' result, or None if it fails."""
    try:
        return pipeline(image=image)["image"].numpy()
    except Exception as reason:
        assert type(reason).__name__ in ("CropSizeError", "ValueError", "ZeroDivisionError", "error"), reason
        return None


def ours(pipeline, image, **options):
    try:
        return apply(pipeline, image, **options)
    except (ValueError, stoker.StokerError):
        return None


@pytest.mark.parametrize("name", FIXED)
def test_what_draws_nothing_gives_albumentations_bytes(name):
    pipeline, failed = compose(*FIXED[name]), 0
    images = [*pictures(40, 3), np.full((1, 1, 3), 200, np.uint8)]
    for image in images:
        wanted, got = theirs(pipeline, image), ours(pipeline, image)
        assert (wanted is None) == (got is None), image.shape
        failed += wanted is None
        if wanted is not None:
            assert (wanted.dtype, wanted.shape) == (got.dtype, got.shape), image.shape
            assert wanted.tobytes() == got.tobytes(), image.shape
    assert failed < len(images) - 5


@pytest.mark.parametrize("name", ["turns and crops", "centre", "random crop padded", "normalize", "held"])
def test_a_folder_of_images_is_compiled(two_classes, name):
    pipeline = compose(*FIXED[name])
    data = stoker.datasets.ImageFolder(two_classes, pipeline)
    loader = stoker.DataLoader(data, batch_size=1)
    assert "engine" in str(loader.explain()) and "Python" not in str(loader.explain())
    paths = sorted(two_classes.rglob("*.*"))
    for path, (images, _), index in zip(paths, loader, range(len(paths)), strict=True):
        wanted = pipeline(image=np.array(Image.open(path).convert("RGB")))["image"]
        assert images.dtype == wanted.dtype and torch.equal(images[0], wanted)
        assert torch.equal(data[index][0], wanted)


def test_a_dataset_of_torchvision_does_not_get_what_it_cannot_call(two_classes):
    pipeline = compose(A.CenterCrop(60, 50))
    for transform in (pipeline, V.Compose([V.Resize(80), pipeline])):
        loader = stoker.DataLoader(ImageFolder(two_classes, transform), batch_size=3)
        with pytest.raises(KeyError, match="named arguments"):
            next(iter(loader))
        assert "stoker.datasets.ImageFolder" in str(loader.explain())


def test_behind_steps_of_torchvision(two_classes):
    pipeline = compose(A.CenterCrop(60, 50), A.Normalize())
    before = V.Resize(80)
    data = stoker.datasets.ImageFolder(two_classes, V.Compose([before, pipeline]))
    for path, (images, _) in zip(sorted(two_classes.rglob("*.*")), stoker.DataLoader(data, batch_size=1), strict=True):
        assert torch.equal(images[0], pipeline(image=np.array(before(Image.open(path).convert("RGB"))))["image"])


def outcomes(pipeline, image, count=4000):
    """What Albumentations makes of an image, and how often."""
    pipeline.set_random_seed(7)
    return collections.Counter(pipeline(image=image)["image"].numpy().tobytes() for _ in range(count))


# Steps that draw, and how many results they have with an image of 7 x 5 pixels; None: many.
DRAWN = {
    "mirror": ([A.HorizontalFlip(p=0.3)], 2),
    "turn": ([A.RandomRotate90(p=1)], 4),
    "some turn": ([A.RandomRotate90(p=0.5)], 4),
    "square": ([A.D4(p=1)], 8),
    "symmetry": ([A.SquareSymmetry(p=0.4)], 8),
    "crop": ([A.RandomCrop(3, 4)], 12),
    "crop and mirror": ([A.RandomCrop(4, 6), A.HorizontalFlip(p=0.5)], 8),
    "crop at times": ([A.RandomCrop(5, 6, p=0.4)], 3),
    "pad anywhere": ([A.PadIfNeeded(7, 8, position="random")], 6),
    "pad, then crop": ([A.RandomCrop(6, 5, pad_if_needed=True, pad_position="random", fill=3)], 6),
    "one of": ([A.OneOf([A.HorizontalFlip(p=0.2), A.VerticalFlip(p=0.6), A.Transpose(p=0)], p=0.7)], 3),
    "one of one of": ([A.OneOf([A.OneOf([A.HorizontalFlip(), A.Transpose()], p=0.1), A.VerticalFlip(p=0.9)], p=1)], 3),
    "one or other": ([A.OneOrOther(A.HorizontalFlip(p=0.1), A.Transpose(p=0.1), p=0.3)], 2),
    "either of other p": ([A.OneOf([A.OneOrOther(A.Transpose(), A.NoOp(), p=0.2), A.VerticalFlip(p=0.5)], p=1)], 3),
    "some of": ([A.SomeOf([A.HorizontalFlip(p=1), A.VerticalFlip(p=0.5), A.Transpose(p=1)], 2, p=0.8)], 6),
    "some in one": ([A.OneOf([A.SomeOf([A.HorizontalFlip(p=1), A.Transpose(p=1)], 1, p=0.5), A.VerticalFlip(p=1)], p=1)], 4),
    "one with repeats": ([A.SomeOf([A.HorizontalFlip(p=1), A.Transpose(p=1)], 1, replace=True)], 2),
    "in any order": ([A.RandomOrder([A.HorizontalFlip(p=1), A.Transpose(p=0.5), A.CenterCrop(3, 3)], 3)], 3),
    "repeated": ([A.RandomOrder([A.HorizontalFlip(p=1), A.Transpose(p=1), A.VerticalFlip(p=1)], 2, replace=True)], 4),
    "sides": ([A.SmallestMaxSize([5, 6, 9])], 3),
    "sized crop": ([A.RandomSizedCrop((3, 5), (4, 4))], 15 + 8 + 3),
    "wide crop": ([A.RandomSizedCrop((2, 4), (2, 9), w2h_ratio=2.0)], 16 + 6 + 2),
    "scale": ([A.RandomScale((-0.5, 0.4), p=0.8)], 10),
    "resized crop": ([A.RandomResizedCrop((3, 3), scale=(0.2, 0.6), interpolation=cv2.INTER_NEAREST)], None),
    "grid": ([A.GridDropout(random_offset=False, holes_number_xy=(2, 3), p=1)], 6),
    "borders": ([A.RandomCropFromBorders(0.3, 0.2, 0.5, 0.4)], None),
    "wide borders": ([A.RandomCropFromBorders(0.8, 0.0, 0.0, 0.9, p=0.5)], None),
    "tiles": ([A.RandomGridShuffle((2, 3), p=1)], 16),
    "a row of tiles": ([A.RandomGridShuffle((1, 7), p=1), A.CenterCrop(1, 2)], 42),
    "more tiles than pixels": ([A.RandomGridShuffle((8, 2), p=1), A.CenterCrop(3, 1)], None),
    "in a row": ([A.Sequential([A.HorizontalFlip(p=0.5), A.Transpose(p=1)], p=0.5)], 3),
}


def test_what_records_its_draws_is_a_compose():
    steps = [A.HorizontalFlip(p=0.3), A.OneOf([A.Transpose(p=1), A.NoOp()], p=0.5), A.CenterCrop(6, 5)]
    assert T.pipeline_text(A.ReplayCompose([*steps, ToTensorV2()])) == T.pipeline_text(compose(*steps))
    recorded = compose(A.ReplayCompose(steps, p=0.9))
    assert T.pipeline_text(recorded) == T.pipeline_text(compose(A.Sequential(steps, p=0.9)))
    assert apply(A.ReplayCompose([*steps, ToTensorV2()]), coordinates(9, 8)).shape == (3, 6, 5)


@pytest.mark.parametrize("name", DRAWN)
def test_draws_have_albumentations_outcomes_as_often(name):
    steps, count = DRAWN[name]
    pipeline, image = compose(*steps), coordinates(7, 5)
    wanted = outcomes(pipeline, image)
    got = collections.Counter(one.tobytes() for one in draws(pipeline, image, 20_000))
    often = {outcome for counter in (wanted, got) for outcome, times in counter.items() if times >= 20}
    assert often <= wanted.keys() & got.keys()
    assert len(often) == count or (count is None and len(often) > 20), len(often)
    same_shares(got, wanted)


# Steps with many outcomes.
SPREAD = {
    "rotate": A.Rotate((-40, 70), p=1),
    "scale": A.Affine(scale=(0.6, 1.7), p=1),
    "both scales": A.Affine(scale={"x": (0.7, 1.1), "y": (0.9, 1.6)}, p=1),
    "one scale": A.Affine(scale=(0.6, 1.7), keep_ratio=True, p=1),
    "balanced": A.Affine(scale=(0.6, 2.0), balanced_scale=True, p=1),
    "balanced below": A.Affine(scale=(0.6, 0.9), balanced_scale=True, p=1),
    "move": A.Affine(translate_px={"x": (-7, 12), "y": (3, 9)}, p=1),
    "move by parts": A.Affine(translate_percent=(-0.2, 0.1), p=1),
    "shear": A.Affine(shear={"x": (-20, 30), "y": (0, 15)}, p=1),
    "all": A.ShiftScaleRotate(p=1),
    "perspective": A.Perspective(p=1),
    "much perspective": A.Perspective((0.2, 0.9), p=1),
    "grid": A.GridDropout(p=1),
    "coloured grid": A.GridDropout(0.3, unit_size_range=(9, 14), fill="random_uniform", p=1),
    "shifted grid": A.GridDropout(0.8, unit_size_range=(7, 20), random_offset=False, shift_xy=(2, 1), fill="random", p=1),
    "holes": A.CoarseDropout((1, 4), (3, 20), (5, 9), p=1),
    "stripes": A.XYMasking((0, 3), (1, 2), (3, 20), (0, 7), fill=255, p=1),
    "coloured stripes": A.XYMasking((2, 2), 0, (30, 40), 0, fill="random_uniform", p=1),
    "relative holes": A.CoarseDropout((2, 3), (0.1, 0.6), (0.3, 0.4), fill=255, p=1),
    "coloured holes": A.CoarseDropout((1, 1), (50, 50), (70, 70), fill="random_uniform", p=1),
    "noisy holes": A.CoarseDropout((1, 2), (40, 50), (60, 70), fill="random", p=1),
}


@pytest.mark.parametrize("name", SPREAD)
def test_draws_have_albumentations_distributions(name):
    pipeline, image = compose(SPREAD[name], seed=7), coordinates(80, 60)
    wanted = np.stack([pipeline(image=image)["image"].numpy() for _ in range(1500)])
    got = draws(pipeline, image, 1500)
    for y, x in ((30, 40), (20, 55), (45, 30), (7, 9)):
        for channel in (0, 1):
            same_distribution(got[:, channel, y, x], wanted[:, channel, y, x], f"{name}: {channel} at {y}, {x}")
    for about, sums in (("rows", (1, 3)), ("columns", (1, 2))):
        for at in (0, 13, 40):
            ours, theirs = (made.sum(sums, dtype=int)[:, at] for made in (got, wanted))
            same_distribution(ours, theirs, f"{name}: {about} {at}")


@pytest.mark.parametrize("name", SPREAD)
def test_tiny_images_fail_where_they_fail_in_albumentations(name):
    pipeline = compose(SPREAD[name], seed=7)
    for shape in ((1, 1, 3), (1, 7, 3), (6, 2, 3)):
        image = np.full(shape, 90, np.uint8)
        for seed in range(20):
            wanted, got = theirs(pipeline, image), ours(pipeline, image, seed=seed)
            assert (wanted is None) == (got is None), (shape, seed)
            assert wanted is None or (wanted.shape, wanted.dtype) == (got.shape, got.dtype)


class Own(A.HorizontalFlip):
    def apply(self, img, **params):
        return img


def replay():
    """A pipeline that does what another one has done before."""
    done = A.ReplayCompose([A.HorizontalFlip(p=1), ToTensorV2()])(image=np.zeros((3, 4, 3), np.uint8))["replay"]
    return A.ReplayCompose._restore_for_replay(done)


# Pipelines that stay in Python, and what is said of them.
REFUSED = {
    "the end": (A.Compose([ToTensorV2(), A.Normalize()]), "ToTensorV2"),
    "in between": (A.Compose([ToTensorV2(), A.HorizontalFlip(), ToTensorV2()]), "HorizontalFlip comes after ToTensorV2"),
    "at times": (A.Compose([A.HorizontalFlip(), ToTensorV2(p=0.5)]), "with p=0.5 some images become tensors"),
    "floats at times": (compose(A.Normalize(p=0.5)), "with p=0.5 some images become tensors, or floats"),
    "whole at times": (compose(p=0.5), "with p=0.5 some images"),
    "by the image": (compose(A.Normalize(normalization="image")), "depends on the image"),
    "other maximum": (compose(A.ToFloat(max_value=100.0)), "max_value=100.0 is not 255"),
    "wrap": (compose(A.PadIfNeeded(border_mode=cv2.BORDER_WRAP)), "BORDER_WRAP"),
    "a fraction": (compose(A.PadIfNeeded(fill=0.5)), "fill=0.5 is not an integer"),
    "four colours": (compose(A.PadIfNeeded(fill=(1, 2, 3, 4))), "is not 3 numbers"),
    "cubic": (compose(A.Resize(9, 9, interpolation=cv2.INTER_CUBIC)), "interpolation=2 is none of"),
    "smooth masks of all": (compose(A.Resize(9, 9), mask_interpolation=1), "mask_interpolation=1 is not"),
    "smooth masks": (compose(A.Resize(9, 9, mask_interpolation=1)), "mask_interpolation=1 is not"),
    "area of masks": (compose(A.Resize(9, 9, area_for_downscale="image_mask")), "area_for_downscale='image_mask'"),
    "nearest or area": (compose(A.RandomScale(interpolation=0, area_for_downscale="image")), "area_for_downscale='image'"),
    "padded crop": (compose(A.Crop(0, 0, 9, 9, pad_if_needed=True)), "pad_if_needed=True"),
    "replay": (replay(), "it replays what another one has drawn"),
    "own": (compose(Own()), "only Python knows"),
    "unknown": (compose(A.ZoomBlur()), "does not have Albumentations' ZoomBlur"),
    "unknown inside": (compose(A.OneOf([A.SomeOf([A.HorizontalFlip(), A.ZoomBlur()])])), "does not have Albumentations' ZoomBlur"),
    "channels": (compose(A.SelectiveChannelTransform([A.HorizontalFlip()])), "SelectiveChannelTransform"),
    "repeats in order": (compose(A.SomeOf([A.HorizontalFlip(), A.Transpose()], 2, replace=True)), "replace=True"),
    "fit": (compose(A.Affine(fit_output=True)), "fit_output=True"),
    "cubic turn": (compose(A.Rotate(interpolation=2)), "interpolation=2 is not"),
    "cut turn": (compose(A.Rotate(crop_border=True)), "crop_border=True"),
    "ellipses": (compose(A.Affine(rotate_method="ellipse")), "rotate_method='ellipse'"),
    "painted grid": (compose(A.GridDropout(fill="inpaint_telea")), "fill='inpaint_telea'"),
    "painted holes": (compose(A.CoarseDropout(fill="inpaint_ns")), "fill='inpaint_ns'"),
    "holes of both kinds": (compose(A.CoarseDropout(hole_height_range=(0.1, 0.2), hole_width_range=(1, 3))), "is not from 0 to 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_engine_lacks_is_said(name):
    pipeline, why = REFUSED[name]
    with pytest.raises(Blocked, match=why):
        T.pipeline_text(pipeline)


def test_floats_inside_a_choice_stay_in_python(two_classes):
    pipeline = compose(A.OneOf([A.Normalize(p=1), A.Normalize(MEAN, STD, p=1)], p=1))
    loader = stoker.DataLoader(stoker.datasets.ImageFolder(two_classes, compose(A.CenterCrop(9, 9), pipeline.transforms[0])), batch_size=6)
    assert next(iter(loader))[0].dtype == torch.float32
    assert "in this process" in str(loader.explain()) or "this process" in str(loader.explain())


def test_every_reason_is_given():
    with pytest.raises(Blocked) as caught:
        T.pipeline_text(compose(A.ZoomBlur(), A.OneOf([Own(), A.Normalize(normalization="image")])))
    assert [type(blocker.step).__name__ for blocker in caught.value.blockers] == ["ZoomBlur", "Own", "Normalize"]


def test_a_changed_step_stays_in_python(monkeypatch):
    flip = A.HorizontalFlip(p=1)
    flip.apply = lambda img, **params: img
    with pytest.raises(Blocked, match="apply was set on this HorizontalFlip"):
        T.pipeline_text(compose(flip))
    monkeypatch.setattr(A.VerticalFlip, "apply", lambda self, img, **params: img)
    with pytest.raises(Blocked, match="has been replaced"):
        T.pipeline_text(compose(A.VerticalFlip()))


def test_a_release_that_was_not_compared_stays_in_python(monkeypatch):
    for version in ("1.4.24", "2.0.9", "2.1.0", "3.0", "2.0.dev1"):
        monkeypatch.setattr(A, "__version__", version)
        with pytest.raises(Blocked, match=f"this is {version}"):
            T.pipeline_text(compose())


def test_a_probability_that_is_no_number_stays_in_python():
    flip = A.HorizontalFlip()
    for p in (float("nan"), None, "0.5"):
        flip.p = p
        with pytest.raises(Blocked, match="is not a number"):
            T.pipeline_text(compose(flip))


def test_resizes_that_differ_from_the_installed_opencv_stay_in_python(monkeypatch):
    monkeypatch.setattr(cv, "agrees", lambda op: op != "resize_linear")
    with pytest.raises(Blocked, match="gives other bytes than the engine"):
        T.pipeline_text(compose(A.SmallestMaxSize(9)))
    T.pipeline_text(compose(A.SmallestMaxSize(9, interpolation=cv2.INTER_AREA)))
