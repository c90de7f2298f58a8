# SPDX-License-Identifier: Apache-2.0
"""Transforms that change values (invert, posterize, solarize, sharpness, autocontrast, equalize) against torchvision's, v1
and v2: the same bytes on PIL images, in pipelines and in users' own datasets."""

from __future__ import annotations

import io
import math
import platform

import numpy as np
import pytest
import stoker
from conftest import picture
from PIL import Image
from transform_parity import apply, chw, pictures

torch = pytest.importorskip("torch")
V1 = pytest.importorskip("torchvision.transforms")
from torchvision.datasets import ImageFolder  # noqa: E402
from torchvision.transforms import v2 as V2  # noqa: E402

from stoker import transforms as T  # noqa: E402

FUSED = platform.machine() in ("aarch64", "arm64")  # Pillow rounds a blend once there, pipelines twice
MODULES = pytest.mark.parametrize("module", [V1, V2], ids=["v1", "v2"])


def always(module):
    """Each of them, with probability 1."""
    return [
        module.RandomInvert(1.0),
        *(module.RandomPosterize(bits, p=1.0) for bits in range(1, 9)),
        *(module.RandomSolarize(threshold, p=1.0) for threshold in (-3.5, 0, 99.5, 128, 255, 255.5, 1e9, float("inf"))),
        *(module.RandomAdjustSharpness(factor, p=1.0) for factor in (0, 0.3, 1, 1.7, 2, 50, -1.5)),
        module.RandomAutocontrast(1.0),
        module.RandomEqualize(1.0),
    ]


def assert_same(got: np.ndarray, want: Image.Image, step: object) -> None:
    off = np.abs(got.astype(int) - chw(want))
    if FUSED and "Sharpness" in type(step).__name__:
        assert off.max() <= 1, step
    else:
        assert not off.any(), (step, got.shape, int(off.max()))


@MODULES
def test_bytes(module):
    narrow = [np.uint8(image // 4 + 60) for image in pictures(6, seed=32)]
    for image in [*pictures(34, seed=31), *narrow, *pictures(1, seed=33, largest=400), np.full((1, 1, 3), 9, np.uint8)]:
        rgb = Image.fromarray(image)
        for step in always(module):
            assert_same(apply(step, image), step(rgb), step)
            grey = apply(T.Compose([T.Grayscale(1), step]), image)
            assert_same(grey, step(rgb.convert("L")), step)


@MODULES
def test_several_in_a_row_and_between_others(module):
    """What is combined into one table gives the bytes of one step after the other."""
    rng = np.random.default_rng(4)
    steps = [step for step in always(module) if not FUSED or "Sharpness" not in type(step).__name__]
    steps += [module.RandomHorizontalFlip(1.0), module.Resize((40, 30)), module.CenterCrop(25), module.Grayscale(3)]
    for image in pictures(40, seed=34):
        chosen = module.Compose([steps[k] for k in rng.integers(0, len(steps), 6)])
        assert_same(apply(chosen, image), chosen(Image.fromarray(image)), chosen)


@pytest.mark.parametrize(
    "transform",
    [T.RandomInvert, T.RandomAutocontrast, T.RandomEqualize,
     lambda p=0.5: T.RandomPosterize(1, p), lambda p=0.5: T.RandomSolarize(100, p), lambda p=0.5: T.RandomAdjustSharpness(5, p)],
)
def test_share_of_images_that_are_changed(transform):
    image = np.random.default_rng(0).integers(30, 200, (20, 20, 3), dtype=np.uint8)
    for made, p in ((transform(), 0.5), (transform(0.2), 0.2), (transform(0), 0), (transform(1), 1)):
        share = np.mean([not np.array_equal(apply(made, image, seed=seed), chw(Image.fromarray(image))) for seed in range(600)])
        assert abs(share - p) <= 4 * math.sqrt(p * (1 - p) / 600), (made, share)


@MODULES
def test_a_folder_of_torchvision(even_tree, module):
    for step in always(module):
        data = ImageFolder(even_tree, module.Compose([module.CenterCrop(36), step, module.PILToTensor()]))
        theirs = torch.stack([image for image, _ in data])
        loader = stoker.DataLoader(data, 20, compile="require")
        ours = next(iter(loader))[0]
        assert FUSED or torch.equal(ours, theirs), step


@MODULES
def test_on_tensors(even_tree, module):
    """Behind PILToTensor: the same bytes, whoever makes them; and the plan knows which steps torchvision computes with
    other arithmetic there."""
    for step in always(module):
        if getattr(step, "sharpness_factor", 0) < 0:
            continue  # an error of torchvision
        data = ImageFolder(even_tree, module.Compose([module.PILToTensor(), step]))
        if getattr(step, "threshold", 0) > 255:
            with pytest.raises(Exception, match="Threshold"):
                list(stoker.DataLoader(data, 20))
            continue
        loader = stoker.DataLoader(data, 20)
        in_python = any(row.remedy.startswith("move") for row in loader.explain().rows)
        assert in_python == any(name in repr(step) for name in ("Sharpness", "Autocontrast", "Equalize")), step
        assert torch.equal(next(iter(loader))[0], torch.stack([image for image, _ in data])), step


# ---- users' own datasets ----


def opened(mode: str, kind: str = "JPEG") -> Image.Image:
    out = io.BytesIO()
    picture(5, 150, 110).convert(mode).save(out, kind)
    return Image.open(io.BytesIO(out.getvalue()))


@MODULES
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_lazy_images(module, mode):
    for step in always(module):
        transform = module.Compose([module.RandomCrop(90), step, module.Resize(40)])
        for kind in ("JPEG", "PNG"):
            torch.manual_seed(3)
            want = transform(opened(mode, kind))
            torch.manual_seed(3)
            with stoker.lazy_images():
                got = transform(opened(mode, kind))
            assert got.tobytes() == want.tobytes() and (got.mode, got.info) == (want.mode, want.info), step


def test_lazy_images_stay_lazy():
    """On colour and on grey, also with factors that are no float32."""
    from stoker._lazy.images import Lazy

    F = V1.functional
    functions = [F.invert, F.autocontrast, F.equalize, lambda i: F.posterize(i, 3), lambda i: F.solarize(i, 1.5),
                 lambda i: F.adjust_sharpness(i, 1.3), lambda i: F.adjust_brightness(i, 1.3),
                 lambda i: F.adjust_contrast(i, 0.7), lambda i: F.adjust_saturation(i, 0.1)]  # fmt: skip
    for mode in ("RGB", "L"):
        for function in functions:
            with stoker.lazy_images():
                got = function(opened(mode))
            assert type(type(got)) is type(Lazy)
            assert got.tobytes() == function(opened(mode)).tobytes()


@pytest.mark.parametrize("call", [
    lambda image: V1.functional.posterize(image, 9),
    lambda image: V2.functional.posterize(image, 0),
    lambda image: V2.functional.solarize(image, float("nan")),
    lambda image: V1.functional.solarize(image, None),
    lambda image: V1.functional.adjust_sharpness(image, float("nan")),
    lambda image: V1.functional.adjust_sharpness(image, "x"),
    lambda image: V1.functional.invert(image.convert("CMYK")),
])  # fmt: skip
def test_unusual_arguments_are_left_to_torchvision(call):
    outcomes = []
    for lazy in (False, True):
        with stoker.lazy_images() if lazy else memoryview(b""):
            try:
                outcomes.append(call(opened("RGB")).tobytes())
            except Exception as error:
                outcomes.append((type(error), str(error)))
    assert outcomes[0] == outcomes[1]


# ---- arguments ----


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: T.RandomInvert(1.5), ValueError, "from 0 to 1"),
        (lambda: T.RandomEqualize(float("nan")), ValueError, "from 0 to 1"),
        (lambda: T.RandomPosterize(2.5), TypeError, "not an integer"),
        (lambda: T.RandomPosterize(True), TypeError, "not an integer"),
        (lambda: T.RandomPosterize(9), ValueError, "1 to 8"),
        (lambda: T.RandomPosterize(0), ValueError, "1 to 8"),
        (lambda: T.RandomSolarize("high"), TypeError, "not a number"),
        (lambda: T.RandomAdjustSharpness(float("inf")), ValueError, "-1e6 to 1e6"),
        (lambda: T.RandomAdjustSharpness(float("nan")), ValueError, "-1e6 to 1e6"),
        (lambda: T.RandomAdjustSharpness(None), TypeError, "not a number"),
        (lambda: stoker._ext.Pipeline("random_posterize"), ValueError, "requires bits="),
        (lambda: stoker._ext.Pipeline("random_posterize(bits=9)"), ValueError, "out of range"),
        (lambda: stoker._ext.Pipeline("to_tensor; random_invert"), ValueError, "works on bytes"),
        (lambda: stoker._ext.Pipeline("pil_to_tensor; random_equalize"), ValueError, "on images, not on tensors"),
    ],
)
def test_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_bits_that_pillow_refuses_are_left_to_it(even_tree):
    data = ImageFolder(even_tree, V1.Compose([V1.RandomPosterize(0, p=1.0), V1.PILToTensor()]))
    with pytest.raises(NotImplementedError, match="bits must be"):
        stoker.DataLoader(data, compile="require")


@MODULES
def test_text_and_repr(module):
    for ours, theirs in (
        (T.RandomInvert(0.3), module.RandomInvert(0.3)),
        (T.RandomPosterize(4, 0.3), module.RandomPosterize(4, 0.3)),
        (T.RandomSolarize(7.5), module.RandomSolarize(7.5)),
        (T.RandomAdjustSharpness(2.0, 0.1), module.RandomAdjustSharpness(2.0, 0.1)),
        (T.RandomAutocontrast(), module.RandomAutocontrast()),
        (T.RandomEqualize(0.9), module.RandomEqualize(0.9)),
    ):
        assert T.pipeline_text(ours) == T.pipeline_text(theirs)
        assert module is V2 or repr(ours) == repr(theirs)
