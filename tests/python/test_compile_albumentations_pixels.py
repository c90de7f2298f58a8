# SPDX-License-Identifier: Apache-2.0
"""Albumentations' changes of values in datasets that the engine runs: its bytes where nothing is drawn, and where something
is, its values as often."""

from __future__ import annotations

import collections
import itertools
import os

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask PyPI for newer versions

import numpy as np
import pytest
import stoker
import torch
from conftest import picture
from PIL import Image
from stoker import transforms as T
from stoker._plan import from_albumentations_compared as compared
from stoker._steps.blockers import Blocked
from test_timm import draws, same_shares
from transform_parity import apply, pictures

cv2 = pytest.importorskip("cv2")
A = pytest.importorskip("albumentations")
from albumentations.pytorch import ToTensorV2  # noqa: E402

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning")]


def compose(*steps):
    return A.Compose([*steps, ToTensorV2()])


def same(value):
    return value, value


def jitter(**options):
    neutral = {"brightness": 1.0, "contrast": 1.0, "saturation": 1.0, "hue": 0.0}
    return A.ColorJitter(**{name: same(value) for name, value in (neutral | options).items()}, p=1)


def fixed(rng):
    """Steps in which nothing is drawn, of other numbers each time."""
    def u(low, high):
        return same(float(rng.uniform(low, high)))

    bits, sigma = int(rng.integers(1, 8)), u(0.3, 4)
    for by_max in (True, False):
        for safe in (True, False):
            yield A.RandomBrightnessContrast(u(-0.7, 0.7), u(-0.7, 0.7), brightness_by_max=by_max, ensure_safe_range=safe, p=1)
    yield A.RandomGamma(u(10, 400), p=1)
    yield A.Posterize(bits, p=1)
    yield A.Posterize([(1, 1), (bits, bits), (7, 7)], p=1)
    yield A.Solarize(threshold_range=u(0, 1), p=1)
    yield A.InvertImg(p=1)
    yield A.RGBShift(u(-99, 99), u(-99, 99), u(-99, 99), p=1)
    yield A.RGBShift(u(-1, 1), u(-1, 1), u(-9, 9), p=1)
    yield A.Equalize(p=1)
    yield A.Equalize(by_channels=False, p=1)
    yield A.HueSaturationValue(u(-99, 99), u(-99, 99), u(-99, 99), p=1)
    yield A.HueSaturationValue(u(-99, 99), same(0), same(0), p=1)
    yield jitter(brightness=u(0, 2.5)[0])
    yield jitter(contrast=u(0, 2.5)[0])
    yield jitter(saturation=u(0, 2.5)[0])
    yield jitter(hue=u(-0.5, 0.5)[0])
    for side in (3, 5, 7, 9, 13):
        yield A.MedianBlur(same(side), p=1)
        yield A.Blur(same(side), p=1)
        yield A.GaussianBlur(same(side), sigma, p=1)
        if side < 10:
            yield A.MotionBlur(same(side), False, angle_range=u(0, 360), direction_range=u(-1, 1), p=1)
    yield A.GaussianBlur(sigma_limit=sigma, p=1)
    yield A.Sharpen(u(0, 1), u(0, 2), p=1)
    yield A.Emboss(u(0, 1), u(0, 2), p=1)
    for down, up in itertools.product((cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_AREA), repeat=2):
        scale = same(0.5) if down == cv2.INTER_LINEAR and rng.random() < 0.5 else u(0.55, 1)
        yield A.Downscale(scale, {"downscale": down, "upscale": up}, p=1)
    yield A.CLAHE(u(1, 9), p=1)
    yield A.CLAHE(u(1, 3), (int(rng.integers(1, 9)), int(rng.integers(1, 9))), p=1)
    yield A.ImageCompression("jpeg", same(int(rng.integers(1, 101))), p=1)
    yield A.GaussNoise(same(0), u(-0.5, 0.5), p=1)


@pytest.mark.parametrize("width", range(1, 9))
def test_ends_of_rows(width):
    """OpenCV rounds products there that it fuses with their sums elsewhere: where thirds and sixths are added, half of a level
    is reached often."""
    rng = np.random.default_rng(width)
    image = rng.integers(0, 256, (300, width, 3), np.uint8)
    for _ in range(12):
        angle, direction = same(float(rng.uniform(0, 360))), same(float(rng.uniform(-1, 1)))
        side = 2 * int(rng.integers(1, 5)) + 1
        alpha, light = same(float(rng.uniform(0, 1))), same(float(rng.uniform(0, 2)))
        for step in (
            A.MotionBlur((side, side), allow_shifted=False, angle_range=angle, direction_range=direction, p=1),
            A.Sharpen(alpha, light, p=1),
            A.Emboss(alpha, light, p=1),
        ):
            ours = torch.as_tensor(apply(compose(step), image))
            assert torch.equal(ours, compose(step)(image=image)["image"]), step


@pytest.mark.parametrize("seed", range(3))
def test_what_draws_nothing_gives_albumentations_bytes(seed):
    images = [*pictures(13, seed), np.full((1, 1, 3), 200, np.uint8)]
    for step in fixed(np.random.default_rng(seed)):
        pipeline = compose(step)
        for image in images:
            if isinstance(step, A.Downscale) and round(min(image.shape[:2]) * step.scale_range[0]) < 1:
                with pytest.raises(stoker.StokerError, match="nothing is left"):
                    apply(pipeline, image)
                continue
            wanted = pipeline(image=image.copy())["image"].numpy()  # some work in place
            assert np.array_equal(apply(pipeline, image), wanted), (step, image.shape)


@pytest.mark.parametrize("method", ["from_lab", "desaturation", "average", "max"])
def test_grey_of_other_methods(method):
    grey = compose(A.ToGray(3, method, p=1))
    for image in (each for each in pictures(30, 1) if min(each.shape[:2]) > 1):
        assert np.array_equal(apply(grey, image), grey(image=image)["image"]), image.shape


def test_grey_is_opencvs():
    for image in pictures(30, 1):
        wanted = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)  # Albumentations loses sides of one pixel
        assert np.array_equal(apply(compose(A.ToGray(p=1)), image), np.stack([wanted] * 3))


def test_one_after_the_other(tmp_path):
    for n in range(4):
        (tmp_path / "x").mkdir(exist_ok=True)
        picture(n, 90 + 7 * n, 70 + 11 * n).save(tmp_path / "x" / f"{n}.jpg", quality=87)
    pipeline = compose(
        A.HorizontalFlip(p=1), A.HueSaturationValue(same(7), same(9), same(-4), p=1), A.CenterCrop(50, 40),
        A.Emboss(same(0.3), same(0.5), p=1), A.RandomGamma(same(70), p=1), A.VerticalFlip(p=1), A.MedianBlur(same(3), p=1),
        A.Normalize(),
    )  # fmt: skip
    loader = stoker.DataLoader(stoker.datasets.ImageFolder(tmp_path, pipeline), batch_size=1)
    assert "engine" in str(loader.explain()) and "Python" not in str(loader.explain())
    for path, (images, _) in zip(sorted(tmp_path.rglob("*.jpg")), loader, strict=True):
        assert torch.equal(images[0], pipeline(image=np.array(Image.open(path).convert("RGB")))["image"])


# ---- draws ----

ONE = np.full((2, 3, 3), (120, 30, 200), np.uint8)
WIDE = np.repeat(np.repeat(np.array([[[90, 160, 70], [40, 20, 200]]], np.uint8), 8, 0), 8, 1)
SLOPES = np.random.default_rng(2).integers(0, 256, (24, 24, 3), np.uint8)
COLOURS = np.array([[[250, 120, 10], [250, 120, 10], [0, 30, 20]]] * 2, np.uint8)
POINTS = WIDE * (np.arange(16)[None, :, None] % 5 < 3)
# Steps that draw, an image, and by how much values are divided so that there are not too many outcomes.
DRAWN = {
    "brightness and contrast": (A.RandomBrightnessContrast(p=1), ONE, 4),
    "brightness alone": (A.RandomBrightnessContrast((-0.3, 0.1), (0, 0), p=0.7), ONE, 2),
    "gamma": (A.RandomGamma((60, 180), p=1), ONE, 2),
    "bits": (A.Posterize((1, 6), p=1), ONE, 1),
    "bits of each": (A.Posterize([(1, 3), (2, 2), (5, 7)], p=1), ONE, 1),
    "threshold": (A.Solarize(threshold_range=(0.1, 0.7), p=1), ONE, 1),
    "shifts": (A.RGBShift((-3, 2), (-1.5, 1.5), (0, 4), p=1), ONE, 1),
    "shifts by a fraction": (A.RGBShift((-0.1, 0.9), (0, 0), (-1, 0.3), p=1), ONE, 16),
    "hue": (A.HueSaturationValue((-15, 30), (0, 0), (0, 0), p=1), ONE, 8),
    "hue, saturation and value": (A.HueSaturationValue(p=1), ONE, 16),
    "jitter": (A.ColorJitter(p=1), ONE, 32),
    "jitter of contrast": (A.ColorJitter((0.7, 1.3), (0.5, 1.2), (1, 1), (0, 0), p=1), ONE, 8),
    "channels in any order": (A.ChannelShuffle(p=1), ONE, 1),
    "a channel less": (A.ChannelDropout(p=1), ONE, 1),
    "channels less": (A.ChannelDropout((1, 2), fill=9, p=1), ONE, 1),
    "noise": (A.GaussNoise((0.01, 0.05), p=1), ONE, 8),
    "grey noise": (A.GaussNoise((0.02, 0.02), (-0.01, 0.01), per_channel=False, p=1), ONE, 2),
    "contrast of tiles": (A.CLAHE(4.0, (1, 1), p=1), SLOPES, 2),
    "smaller": (A.Downscale((0.3, 0.9), p=1), np.arange(20 * 20 * 3).reshape(20, 20, 3).astype(np.uint8), 1),
    "losses": (A.ImageCompression(quality_range=(30, 42), p=1), SLOPES, 1),
    "white and turned": (A.ISONoise((0.5, 1), (1, 3), p=1), COLOURS, 2),
    "lighter": (A.ISONoise(intensity=(0.2, 0.9), p=1), COLOURS, 16),
    "means": (A.Blur((3, 9), p=1), WIDE, 1),
    "medians": (A.MedianBlur((3, 9), p=1), POINTS, 1),
    "blurs": (A.GaussianBlur((3, 6), (0.3, 2), p=1), WIDE, 16),
    "wide blurs": (A.GaussianBlur(p=1), WIDE, 16),
    "moved": (A.MotionBlur((3, 9), p=1), WIDE, 8),
    "moved before the pixel": (A.MotionBlur((5, 9), False, (30, 50), (0.4, 1), p=1), WIDE, 4),
    "sharper": (A.Sharpen(p=1), WIDE, 16),
    "embossed": (A.Emboss(p=1), WIDE, 16),
}


@pytest.mark.parametrize("name", DRAWN)
def test_draws_have_albumentations_values_as_often(name):
    step, image, by = DRAWN[name]
    pipeline, middle = compose(step), image.shape[1] // 2
    pipeline.set_random_seed(7)

    def outcomes(results):  # not of the first pixel, to which Albumentations adds less noise
        return collections.Counter((one[:, 1, middle - 1] // by).tobytes() for one in results)

    wanted = outcomes(pipeline(image=image.copy())["image"].numpy() for _ in range(4000))  # some work in place
    got = outcomes(draws(pipeline, image, 20_000))
    assert len(wanted) > 1
    same_shares(got, wanted)


def test_noise_is_of_each_pixel():
    image = np.full((50, 60, 3), 128, np.uint8)
    each = apply(compose(A.GaussNoise((0.1, 0.1), p=1)), image).reshape(3, -1).astype(float)
    assert np.abs(np.corrcoef(each) - np.eye(3)).max() < 0.1
    one = apply(compose(A.GaussNoise((0.1, 0.1), per_channel=False, p=1)), image)
    assert (one == one[0]).all() and len(np.unique(one)) > 50


# ---- what stays in Python ----

NAN = float("nan")
REFUSED = {
    "noise of blocks": (A.GaussNoise(noise_scale_factor=0.5), "noise_scale_factor=0.5"),
    "cubic": (A.Downscale(interpolation_pair={"downscale": 0, "upscale": 2}), "has others than"),
    "webp": (A.ImageCompression("webp"), "compression_type='webp'"),
    "another equalize": (A.Equalize(mode="pil"), "mode='pil'"),
    "a part": (A.Equalize(mask=np.zeros((5, 5), np.uint8)), "mask is given"),
    "another grey": (A.ToGray(method="pca"), "method='pca'"),
    "one channel": (A.ToGray(num_output_channels=1), "num_output_channels=1"),
    "another way to sharpen": (A.Sharpen(method="gaussian"), "method='gaussian'"),
    "moved far": (A.MotionBlur((3, 11)), "is not from 3 to 9"),
    "large medians": (A.MedianBlur((3, 17)), "is not from 3 to 15"),
    "wide": (A.GaussianBlur(sigma_limit=(1, 40)), "kernels of more than 127"),
    "nothing": (A.GaussianBlur((3, 3), (0, 0)), "sigma_limit is 0"),
    "lacking": (A.PlasmaShadow(), "does not have Albumentations' PlasmaShadow"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_engine_lacks_is_said(name):
    step, why = REFUSED[name]
    with pytest.raises(Blocked, match=why):
        T.pipeline_text(compose(step))


CHANGED = {
    "gamma_limit": A.RandomGamma,
    "brightness_limit": A.RandomBrightnessContrast,
    "threshold_range": A.Solarize,
    "hue_shift_limit": A.HueSaturationValue,
    "contrast": A.ColorJitter,
    "std_range": A.GaussNoise,
    "blur_limit": A.Blur,
    "sigma_limit": A.GaussianBlur,
    "alpha": A.Sharpen,
    "quality_range": A.ImageCompression,
    "intensity": A.ISONoise,
    "clip_limit": A.CLAHE,
    "scale_range": A.Downscale,
}


@pytest.mark.parametrize("name", CHANGED)
def test_numbers_that_were_changed_to_bad_ones_are_refused(name):
    for value in ((NAN, 1.0), (5.0, 3.0), (1.0,), None, "ab", (1e300, 1e301)):
        step = CHANGED[name]()
        setattr(step, name, value)
        with pytest.raises(Blocked):
            T.pipeline_text(compose(step))


def test_a_step_that_differs_from_what_is_installed_stays_in_python(monkeypatch):
    monkeypatch.setattr(compared, "_compared", {})
    grey, invert = compose(A.ToGray(p=1)), compose(A.InvertImg(p=1))
    convert = cv2.cvtColor
    monkeypatch.setattr(cv2, "cvtColor", lambda image, code, **options: convert(image, code, **options) // 2)
    with pytest.raises(Blocked, match="calculate in another way than the engine"):
        T.pipeline_text(grey)
    T.pipeline_text(invert)


def test_comparing_draws_from_no_generator_of_the_script(monkeypatch):
    monkeypatch.setattr(compared, "_compared", {})
    np.random.seed(1)
    torch.manual_seed(1)
    before = np.random.get_state()[1].copy(), torch.get_rng_state()
    for step in fixed(np.random.default_rng(0)):
        T.pipeline_text(compose(step))
    assert (np.random.get_state()[1] == before[0]).all() and torch.equal(torch.get_rng_state(), before[1])
