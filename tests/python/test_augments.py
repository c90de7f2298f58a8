# SPDX-License-Identifier: Apache-2.0
"""AutoAugment, RandAugment and TrivialAugmentWide: each outcome is one that torchvision can draw, byte for byte, and comes
up as often. (In users' own datasets torchvision draws: test_lazy_draws.py.)"""

from __future__ import annotations

import collections
import math
import platform

import numpy as np
import pytest
import stoker
from conftest import picture
from PIL import Image
from transform_parity import apply, chw

torch = pytest.importorskip("torch")
V1 = pytest.importorskip("torchvision.transforms")
from torchvision.datasets import ImageFolder  # noqa: E402
from torchvision.transforms import autoaugment  # noqa: E402
from torchvision.transforms import v2 as V2  # noqa: E402

from stoker import transforms as T  # noqa: E402

if platform.machine() in ("aarch64", "arm64"):
    pytest.skip("Pillow's aarch64 build rounds blends once, pipelines twice", allow_module_level=True)

COUNT = 900
MODULES = pytest.mark.parametrize("module", [V1, V2], ids=["v1", "v2"])
POLICIES = list(V1.AutoAugmentPolicy)
FILTERS = [V1.InterpolationMode.NEAREST, V1.InterpolationMode.BILINEAR]
PLAIN = {"Identity", "AutoContrast", "Equalize", "Invert"}
Shares = dict[bytes, float]


def image_of(width: int = 47, height: int = 36, mode: str = "RGB") -> Image.Image:
    return picture(4, width, height).convert(mode)


def magnitudes(name: str, bins: int, size: tuple[int, int], wide: bool) -> list[float]:
    """torchvision's, but rounded correctly on every CPU."""
    shift = {"X": size[0], "Y": size[1]}.get(name[-1], 0) * 150.0 / 331.0
    most = {
        "S": 0.99 if wide else 0.3, "T": 32.0 if wide else shift, "R": 135.0 if wide else 30.0,
    }.get(name[0] if name[:5] in ("Shear", "Trans", "Rotat") else "", 0.99 if wide else 0.9)  # fmt: skip
    if name == "Posterize":
        return (8 - (torch.arange(bins) / ((bins - 1) / (6 if wide else 4))).round().int()).tolist()
    if name == "Solarize":
        return [float(np.float32(255.0 * (bins - 1 - k) / (bins - 1))) for k in range(bins)]
    return [float(np.float32(most * k / (bins - 1))) for k in range(bins)]


def outcomes(image: Image.Image, name: str, bin_: int, bins: int, wide: bool, **options) -> list[Image.Image]:
    """One image, or one for each sign."""
    if name in PLAIN:
        return [autoaugment._apply_op(image, name, 0.0, **options)]
    magnitude = magnitudes(name, bins, image.size, wide)[bin_]
    signs = (1,) if name in ("Posterize", "Solarize") else (-1, 1)
    return [autoaugment._apply_op(image, name, sign * magnitude, **options) for sign in signs]


NAMES = list(V1.TrivialAugmentWide()._augmentation_space(3))


def assert_shares(transform, image: Image.Image, expected: Shares) -> None:
    found = collections.Counter(apply(transform, np.asarray(image), seed=seed).tobytes() for seed in range(COUNT))
    assert set(found) <= set(expected)
    for outcome, p in expected.items():
        if p > 0.02:
            assert abs(found[outcome] / COUNT - p) <= 4.5 * math.sqrt(p * (1 - p) / COUNT), (p, found[outcome])


def data_of(image: Image.Image) -> bytes:
    return chw(image).tobytes()


@MODULES
@pytest.mark.parametrize("interpolation", FILTERS)
def test_trivial_augment_wide(module, interpolation):
    image, bins = image_of(), 5
    options = {"interpolation": interpolation, "fill": [9, 80, 200]}
    expected: Shares = collections.Counter()
    for name in NAMES:
        for bin_ in range(bins):
            made = outcomes(image, name, bin_, bins, True, **options)
            for one in made:
                expected[data_of(one)] += 1 / len(NAMES) / bins / len(made)
    assert_shares(module.TrivialAugmentWide(bins, **options), image, expected)


@MODULES
@pytest.mark.parametrize(("magnitude", "bins"), [(9, 31), (0, 31), (30, 31), (1, 2), (4, 10)])
def test_rand_augment_once(module, magnitude, bins):
    image = image_of(31, 52)
    expected: Shares = collections.Counter()
    for name in NAMES:
        made = outcomes(image, name, magnitude, bins, False, interpolation=FILTERS[0], fill=None)
        for one in made:
            expected[data_of(one)] += 1 / len(NAMES) / len(made)
    assert_shares(module.RandAugment(1, magnitude, bins), image, expected)


def test_rand_augment_twice():
    image = image_of(24, 20)
    expected: Shares = collections.Counter()

    def each(picture_: Image.Image):
        for name in NAMES:
            made = outcomes(picture_, name, 9, 31, False, interpolation=FILTERS[0], fill=None)
            yield from ((one, 1 / len(NAMES) / len(made)) for one in made)

    for first, p in each(image):
        for second, q in each(first):
            expected[data_of(second)] += p * q
    assert_shares(T.RandAugment(), image, expected)
    assert_shares(T.RandAugment(num_ops=0), image, {data_of(image): 1.0})


@MODULES
@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.value)
def test_auto_augment(module, policy):
    image = image_of(28, 33)
    expected: Shares = collections.Counter()
    pairs = V1.AutoAugment(policy).policies
    options = {"interpolation": FILTERS[1], "fill": 7}

    def each(picture_: Image.Image, name: str, p: float, bin_: int | None):
        made = outcomes(picture_, name, bin_ or 0, 10, False, **options)
        yield from ((one, p / len(made)) for one in made if p)
        if p < 1:
            yield picture_, 1 - p

    for first, second in pairs:
        for one, p in each(image, *first):
            for two, q in each(one, *second):
                expected[data_of(two)] += p * q / len(pairs)
    assert_shares(module.AutoAugment(policy, **options), image, expected)


@MODULES
def test_grey_and_one_pixel(module):
    for transform in (module.TrivialAugmentWide(), module.RandAugment(3), *(module.AutoAugment(p) for p in POLICIES)):
        one = np.full((1, 1, 3), 77, np.uint8)
        for seed in range(60):
            assert apply(transform, one, seed=seed).shape == (3, 1, 1)
            assert apply(T.Compose([T.Grayscale(1), transform]), np.asarray(image_of()), seed=seed).shape == (1, 36, 47)
    grey = image_of(mode="L")
    expected: Shares = collections.Counter()
    for name in NAMES:
        made = outcomes(grey, name, 20, 31, False, interpolation=FILTERS[0], fill=None)
        for one in made:
            expected[data_of(one)] += 1 / len(NAMES) / len(made)
    found = {apply(T.Compose([T.Grayscale(1), T.RandAugment(1, 20)]), np.asarray(image_of()), seed=s).tobytes() for s in range(200)}
    assert found <= set(expected) and len(found) > 12


@MODULES
def test_a_folder_of_torchvision(even_tree, module):
    steps = [module.AutoAugment(), module.RandAugment(), module.TrivialAugmentWide()]
    data = ImageFolder(even_tree, module.Compose([module.CenterCrop(36), *steps, module.PILToTensor()]))
    images, _ = next(iter(stoker.DataLoader(data, 20, compile="require")))
    again, _ = next(iter(stoker.DataLoader(data, 20, compile="require")))
    assert images.shape == (20, 3, 36, 36) and images.dtype is torch.uint8 and torch.equal(images, again)


@MODULES
def test_text_and_what_is_left_to_torchvision(module):
    for ours, theirs in (
        (T.AutoAugment(T.AutoAugmentPolicy.SVHN, "bilinear", 3), module.AutoAugment(V1.AutoAugmentPolicy.SVHN, FILTERS[1], 3)),
        (T.RandAugment(3, 4, 12), module.RandAugment(3, 4, 12)),
        (T.TrivialAugmentWide(8, "bicubic"), module.TrivialAugmentWide(8, V1.InterpolationMode.BICUBIC)),
    ):
        assert T.pipeline_text(ours) == T.pipeline_text(theirs)
    changed = module.AutoAugment()
    setattr(changed, "policies" if module is V1 else "_policies", [])
    for transform in (changed, module.RandAugment(magnitude=31), module.RandAugment(magnitude=-1),
                      module.TrivialAugmentWide(1), module.AugMix(chain_depth=16)):  # fmt: skip
        with pytest.raises(NotImplementedError):
            T.pipeline_text(transform)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: T.AutoAugment("mnist"), ValueError, "mnist"),
        (lambda: T.RandAugment(num_ops=-1), ValueError, "num_ops=-1"),
        (lambda: T.RandAugment(magnitude=31), ValueError, "magnitude=31 must be from 0 to 30"),
        (lambda: T.RandAugment(magnitude=2.5), TypeError, "not an integer"),
        (lambda: T.TrivialAugmentWide(1), ValueError, "num_magnitude_bins"),
        (lambda: stoker._ext.Pipeline("rand_augment(magnitude=31)"), ValueError, "is not below"),
        (lambda: stoker._ext.Pipeline("auto_augment(interpolation=lanczos)"), ValueError, "lanczos"),
        (lambda: stoker._ext.Pipeline("to_tensor; trivial_augment_wide"), ValueError, "on images, not on tensors"),
    ],
)
def test_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
