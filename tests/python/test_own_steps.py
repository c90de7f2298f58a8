# SPDX-License-Identifier: Apache-2.0
"""Classes and functions as self-supervised code has them: compiled where it is proved what they do, and with which
probability. What is a little different, in whatever way that matters, runs in Python."""

from __future__ import annotations

import platform
import random

import numpy as np
import pytest
import stoker
import torch
from conftest import picture
from PIL import Image, ImageEnhance, ImageOps
from stoker import transforms as T
from torch import nn
from transform_parity import apply, chw

V1 = pytest.importorskip("torchvision.transforms")
from own_steps import (  # noqa: E402
    UNPROVED,
    BadNumber,
    BarlowBlur,
    Chain,
    Colours,
    Counts,
    Derived,
    DinoBlur,
    GrayScale,
    HorizontalFlip,
    MethodBlur,
    MocoBlur,
    MocoSolarize,
    OneOf,
    Pixels,
    Solarization,
    SwavBlur,
    TorchBlur,
    Turns,
    blurred,
    some,
)
from torchvision.datasets import ImageFolder  # noqa: E402
from torchvision.transforms import functional as F  # noqa: E402
from torchvision.transforms import v2 as V2  # noqa: E402
from torchvision.transforms.v2 import functional as F2  # noqa: E402

BLUR = "pillow_blur(sigma=[0.1,2.0])"
PROVED = [
    (MocoBlur(), BLUR),
    (MocoBlur((1, 1)), "pillow_blur(sigma=[1.0,1.0])"),
    (MocoBlur((2, 1)), "pillow_blur(sigma=[1.0,2.0])"),
    (V1.RandomApply([MocoBlur()], p=0.3), f"random_apply(p=0.3){{{BLUR}}}"),
    (DinoBlur(), f"random_apply(p=0.5){{{BLUR}}}"),
    (DinoBlur(p=0.1), f"random_apply(p=0.1){{{BLUR}}}"),
    (DinoBlur(p=1.0), BLUR),
    (DinoBlur(p=0), ""),
    (Derived(), f"random_apply(p=0.5){{{BLUR}}}"),
    (BarlowBlur(0.25), f"random_apply(p=0.25){{{BLUR}}}"),
    (SwavBlur(0.25), f"random_apply(p=0.25){{{BLUR}}}"),
    (TorchBlur(0.25, (0.1, 2.0)), f"random_apply(p=0.25){{{BLUR}}}"),
    (MethodBlur(), BLUR),
    (Solarization(0.2), "random_apply(p=0.2){random_solarize(threshold=128.0, p=1.0)}"),
    (MocoSolarize(100), "random_solarize(threshold=100.0, p=1.0)"),
    (GrayScale(), "random_apply(p=0.2){grayscale(num_output_channels=3)}"),
    (HorizontalFlip(0.5), "random_apply(p=0.5){random_horizontal_flip(p=1.0)}"),
    (Chain(MocoBlur(), Chain(), lambda x: x), BLUR),
    (Chain(Solarization(0.2), DinoBlur()), f"random_apply(p=0.2){{random_solarize(threshold=128.0, p=1.0)}}; random_apply(p=0.5){{{BLUR}}}"),
    (OneOf(MocoBlur(), V1.RandomInvert(1.0)), f"random_choice{{{BLUR}; random_invert(p=1.0)}}"),
    (OneOf(lambda x: x, lambda x: x, blurred), "random_apply(p=0.3333333333333333){pillow_blur(sigma=[0.5,2.0])}"),
    (Colours(), "color_jitter(brightness=[0.6,1.4]); random_apply(p=0.7){color_jitter(contrast=[0.5,0.9])}"),
    (blurred, "pillow_blur(sigma=[0.5,2.0])"),
    (V1.Lambda(ImageOps.invert), "random_invert(p=1.0)"),
    (F.hflip, "random_horizontal_flip(p=1.0)"),
    (lambda img: img if isinstance(img, Image.Image) else None, ""),
    (nn.Sequential(V1.RandomVerticalFlip(0.3), TorchBlur(1, (0.1, 2.0))), f"random_vertical_flip(p=0.3); {BLUR}"),
    (V1.Lambda(lambda img: ImageOps.posterize(img, 3)), "random_posterize(bits=3, p=1.0)"),
    (lambda img: ImageOps.mirror(img).transpose(Image.Transpose.FLIP_TOP_BOTTOM), "random_horizontal_flip(p=1.0); random_vertical_flip(p=1.0)"),
]


@pytest.mark.parametrize("k", range(len(PROVED)))
def test_what_the_engine_runs(k):
    step, text = PROVED[k]
    assert T.pipeline_text(step) == text
    stoker._ext.Pipeline(T.pipeline_text(V1.Compose([V1.RandomResizedCrop(20), step, V1.ToTensor()])))


def test_probabilities_of_several_outcomes():
    assert T.pipeline_text(some) == (
        "random_choice(p=[0.75,0.25]){random_apply(p=0.5){random_invert(p=1.0)}; random_equalize(p=1.0)}"
    )
    assert T.pipeline_text(Turns([0, 0, 180])).startswith("random_choice(p=[0.666")


@pytest.mark.parametrize("step", UNPROVED, ids=lambda step: getattr(step, "__name__", type(step).__name__))
def test_what_is_a_little_different_is_not_compiled(step):
    with pytest.raises(NotImplementedError, match="only Python knows"):
        T.pipeline_text(V1.Compose([V1.CenterCrop(8), step]))


def test_code_is_not_run_by_looking_at_it():
    state = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    steps = [step for step, _ in PROVED]
    before = [dict(vars(step)) for step in UNPROVED if hasattr(step, "__dict__") and not isinstance(step, type)]
    for step in [*steps, *UNPROVED]:
        try:
            T.pipeline_text(step)
        except (NotImplementedError, TypeError):
            pass
    assert state == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())
    assert before == [dict(vars(step)) for step in UNPROVED if hasattr(step, "__dict__") and not isinstance(step, type)]


def test_a_function_in_the_place_of_a_librarys_is_what_it_is(monkeypatch):
    monkeypatch.setattr(ImageOps, "solarize", lambda image, threshold=128: ImageOps.posterize(image, 2))
    monkeypatch.setattr(random, "random", lambda: 0.3)
    assert T.pipeline_text(MocoSolarize()) == "random_posterize(bits=2, p=1.0)"
    assert T.pipeline_text(DinoBlur()) == BLUR
    assert T.pipeline_text(DinoBlur(0.2)) == ""
    monkeypatch.setattr(random, "random", random.Random(1).random)
    monkeypatch.setattr(ImageOps, "solarize", Counts())
    for step in (MocoSolarize(), DinoBlur()):
        with pytest.raises(NotImplementedError):
            T.pipeline_text(step)


def test_lazy_images_change_nothing_here(tmp_path):
    picture(1, 9, 9).save(tmp_path / "a.jpg")
    with stoker.lazy_images():
        Image.open(tmp_path / "a.jpg").convert("RGB").load()
        assert T.pipeline_text(MocoSolarize(100)) == "random_solarize(threshold=100.0, p=1.0)"


@pytest.mark.parametrize("second", [V1.Resize(9), V1.ColorJitter(0.3), V1.Grayscale()])
def test_steps_inside_own_code_differ_on_tensors_as_elsewhere(second):
    for step in (Chain(V1.ToTensor(), second), Chain(V1.ToTensor(), Chain(second)), V1.Compose([V1.ToTensor(), Chain(second)]),
                 V1.Compose([V1.ToTensor(), V1.Lambda(Chain(second))]), V1.Compose([V1.ToTensor(), OneOf(second, blurred)])):
        with pytest.raises(NotImplementedError):
            T.pipeline_text(step)
    for step in (MocoBlur(), DinoBlur(), Solarization(0.3)):
        with pytest.raises(NotImplementedError, match="takes images"):
            T.pipeline_text(V1.Compose([V1.ToTensor(), step]))
    assert T.pipeline_text(Chain(second, V1.ToTensor())).endswith("to_tensor")


# ---- pixels ----

OFF = 1 if platform.machine() in ("aarch64", "arm64") else 0  # Pillow rounds a blend once there, pipelines twice
FIXED = [
    MocoBlur((1.3, 1.3)), BadNumber(0), BadNumber(0.05), BadNumber(7), BadNumber(300), MocoSolarize(100), MocoSolarize(255),
    Turns([180]), Turns([33]), Chain(V1.Grayscale(3), MocoBlur((2, 2))),
    lambda img: img.convert("L").convert("RGB"), lambda img: img.rotate(90, expand=True), lambda img: img.rotate(20, Image.BICUBIC),
    lambda img: img.resize((31, 17)), lambda img: img.resize((31, 17), Image.NEAREST), lambda img: img.transpose(Image.ROTATE_180),
    lambda img: ImageOps.flip(ImageOps.mirror(img)), lambda img: ImageOps.autocontrast(img), lambda img: ImageOps.equalize(img),
    lambda img: ImageOps.invert(img), lambda img: ImageOps.posterize(img, 2), lambda img: ImageEnhance.Color(img).enhance(0.3),
    lambda img: ImageEnhance.Contrast(img).enhance(1.6), lambda img: ImageEnhance.Sharpness(img).enhance(2),
    lambda img: F.resize(img, 20), lambda img: F.resize(img, [20, 30], V1.InterpolationMode.NEAREST), lambda img: F.center_crop(img, 18),
    lambda img: F.pad(img, (3, 4)), lambda img: F.hflip(F.vflip(img)), lambda img: F.adjust_hue(img, 0.25),
    lambda img: F.adjust_saturation(img, 1.5), lambda img: F.solarize(F.posterize(img, 4), 90), lambda img: F2.equalize(img),
    lambda img: F.rgb_to_grayscale(img, 3), lambda img: F.autocontrast(F.invert(img)), lambda img: F2.rotate(img, 12.5),
    lambda img: F.adjust_sharpness(img, 0.3),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(FIXED)))
def test_pixels_are_pillows(k):
    step = FIXED[k]
    for size in ((41, 30), (19, 18), (18, 40)):
        image = picture(k, *size)
        ours = apply(step, np.asarray(image))
        assert np.abs(ours.astype(int) - chw(step(image))).max() <= OFF, T.pipeline_text(step)
    grey = apply(V1.Compose([V1.Grayscale(1), step]), np.asarray(image))
    wanted = chw(step(image.convert("L")))
    assert grey.shape == wanted.shape and np.abs(grey.astype(int) - wanted).max() <= OFF


@pytest.mark.parametrize("step", [MocoBlur((3, 3)), MocoSolarize(3), Turns([45]), Chain(MocoBlur((500, 500)))])
def test_an_image_of_one_pixel(step):
    for size in ((1, 1), (1, 7), (7, 1)):
        image = picture(2, *size)
        assert np.array_equal(apply(step, np.asarray(image)), chw(step(image)))


# ---- distributions ----


def amounts(images):
    """How much of an edge is left, for each image."""
    return [float(image[0, 0, 15]) for image in images]


EDGE = np.repeat(np.where(np.arange(32) < 16, 0, 255).astype(np.uint8)[None, :, None], 3, 2).repeat(4, 0)


@pytest.mark.parametrize("step", [MocoBlur(), DinoBlur(), BarlowBlur(0.3), SwavBlur(0.7), TorchBlur(0.4, (0.1, 2.0)), MethodBlur()])
def test_distribution_of_blurs(step):
    from test_transform_draws import same_distribution

    ours = amounts(apply(step, EDGE, seed=seed) for seed in range(500))
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    theirs = amounts(chw(step(Image.fromarray(EDGE))) for _ in range(1500))
    same_distribution(ours, theirs, type(step).__name__)


@pytest.mark.parametrize("step", [Colours(), Turns([0, 90, 180]), some, Chain(Solarization(0.3), GrayScale(0.3), HorizontalFlip(0.6))])
def test_distribution_of_others(step):
    from test_transform_draws import same_distribution

    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3) * 5
    ours = [apply(step, image, seed=seed)[:, 0, 0].astype(int) for seed in range(500)]
    random.seed(2)
    np.random.seed(2)
    theirs = [chw(step(Image.fromarray(image)))[:, 0, 0].astype(int) for _ in range(1500)]
    for channel in range(3):
        same_distribution([pixel[channel] for pixel in ours], [pixel[channel] for pixel in theirs], channel)


# ---- in loaders ----


def test_a_folder_of_torchvision_runs_in_the_engine(even_tree):
    transform = V1.Compose([V1.RandomResizedCrop(20), DinoBlur(), Solarization(0.2), V1.Lambda(blurred), V1.ToTensor()])
    loader = stoker.DataLoader(ImageFolder(even_tree, transform), 4, compile="require")
    assert next(iter(loader))[0].shape == (4, 3, 20, 20)
    rows = {row.stage: row for row in loader.explain().rows}
    assert rows["DinoBlur"].where.startswith("engine") and rows["DinoBlur"].why == "as RandomApply([GaussianBlur(sigma=(0.1, 2.0))], p=0.5)"
    assert rows["Solarization"].why == "as RandomApply([RandomSolarize(threshold=128,p=1.0)], p=0.2)"
    assert rows["Lambda"].why == "as GaussianBlur(sigma=(0.5, 2.0))"


def test_attributes_that_change_between_epochs_count(even_tree):
    step = MocoSolarize(255)
    data = ImageFolder(even_tree, V1.Compose([V1.CenterCrop(20), step, V1.PILToTensor()]))
    loader = stoker.DataLoader(data, 4, compile="require")
    for threshold in (255, 20):
        step.threshold = threshold
        images, _ = next(iter(loader))
        assert torch.equal(images, torch.stack([data[k][0] for k in range(4)]))


def test_own_steps_beside_one_that_only_python_knows(even_tree):
    transform = V1.Compose([V1.CenterCrop(20), Pixels(), MocoSolarize(60), MocoBlur((2, 2)), V1.PILToTensor()])
    data = ImageFolder(even_tree, transform)
    own = stoker.datasets.ImageFolder(even_tree, transform)
    wanted = torch.stack([data[k][0] for k in range(4)])
    for given in (data, own):
        loader = stoker.DataLoader(given, 4)
        assert torch.equal(next(iter(loader))[0], wanted)
        rows = {row.stage: row for row in loader.explain().rows}
        assert "engine" not in rows["MocoBlur"].where


def test_v2_has_them_too():
    whole = V2.Compose([V2.CenterCrop(20), DinoBlur(1.0, 2.0, 2.0), V2.Lambda(MocoSolarize(70)), V2.ToImage()])
    image = picture(5, 40, 30)
    assert np.array_equal(apply(whole, np.asarray(image)), whole(image).numpy())
