# SPDX-License-Identifier: Apache-2.0
"""RandomChoice, RandomOrder, RandomChannelPermutation and RandomPhotometricDistort: torchvision's bytes for each outcome that
can be drawn, and torchvision's shares of them."""

from __future__ import annotations

import collections
import itertools
import math

import numpy as np
import pytest
import stoker
from PIL import Image
from transform_parity import apply, chw, coordinates, pictures

torch = pytest.importorskip("torch")
V1 = pytest.importorskip("torchvision.transforms")
from torchvision.datasets import ImageFolder  # noqa: E402
from torchvision.transforms import v2 as V2  # noqa: E402

from stoker import transforms as T  # noqa: E402

F = V1.functional
COUNT = 900
MODULES = pytest.mark.parametrize("module", [V1, V2], ids=["v1", "v2"])


def counted(transform, image: np.ndarray) -> collections.Counter:
    return collections.Counter(apply(transform, image, seed=seed).tobytes() for seed in range(COUNT))


def assert_shares(transform, image: np.ndarray, expected: dict[bytes, float]) -> None:
    found = counted(transform, image)
    assert set(found) <= set(expected)
    for outcome, p in expected.items():
        assert abs(found[outcome] / COUNT - p) <= 4 * math.sqrt(p * (1 - p) / COUNT), (p, found[outcome])


def data_of(picture: Image.Image) -> bytes:
    return chw(picture).tobytes()


@MODULES
@pytest.mark.parametrize("p", [None, [1, 2, 5], [0, 0, 3]])
def test_choice(module, p):
    image = pictures(3, seed=1)[0]
    inside = [module.CenterCrop(20), module.Compose([module.Resize((30, 20)), module.RandomInvert(1.0)]), module.Pad(2)]
    weights = np.array(p or [1, 1, 1]) / sum(p or [1, 1, 1])
    expected = {data_of(t(Image.fromarray(image))): w for t, w in zip(inside, weights, strict=True)}
    assert_shares(module.RandomChoice(inside, p=p), image, expected)


def test_choice_of_many_and_of_nothing():
    image = np.full((1, 1, 3), 255, np.uint8)
    posterized = T.RandomChoice([T.RandomPosterize(bits, p=1) for bits in range(1, 9)] + [T.Compose([])] * 8)
    expected = {bytes([256 - (1 << (8 - bits))]) * 3: 1 / 16 for bits in range(1, 8)} | {b"\xff" * 3: 9 / 16}
    assert_shares(posterized, image, expected)
    weighted = T.pipeline_text(T.RandomChoice([T.Pad(k) for k in range(16)], p=range(1, 17)))
    assert apply(T.RandomChoice([T.Pad(0)] * 15 + [T.Pad(1)], p=[0] * 15 + [2]), image).shape[1:] == (3, 3) and weighted
    with pytest.raises(NotImplementedError, match="16 weights at most"):
        T.pipeline_text(T.RandomChoice([T.Pad(k) for k in range(17)], p=range(1, 18)))


@MODULES
def test_order(module):
    image = coordinates(9, 8)
    inside = [module.Pad(3, fill=9), module.RandomInvert(1.0), module.CenterCrop(6)]
    expected = collections.Counter()
    for order in itertools.permutations(inside):
        expected[data_of(module.Compose(list(order))(Image.fromarray(image)))] += 1 / 6
    assert len(expected) > 2
    assert_shares(module.RandomOrder(inside), image, expected)


def test_channel_permutation():
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    orders = {chw(Image.fromarray(image))[list(order)].tobytes(): 1 / 6 for order in itertools.permutations(range(3))}
    for transform in (T.RandomChannelPermutation(), V2.RandomChannelPermutation()):
        assert_shares(transform, image, orders)
    grey = apply(T.Compose([T.Grayscale(1), V2.RandomChannelPermutation()]), image)
    assert np.array_equal(grey, chw(Image.fromarray(image).convert("L")))


def distorted(picture: Image.Image, values: list[float], p: float) -> dict[bytes, float]:
    """Each possible outcome, for ranges of one value, and its probability."""
    expected: collections.Counter = collections.Counter()
    steps = [F.adjust_brightness, F.adjust_contrast, F.adjust_saturation, F.adjust_hue]
    for active in itertools.product([False, True], repeat=5):
        for places in ((0, 1, 2, 3), (0, 2, 3, 1)):
            out = picture
            for k in places:
                out = steps[k](out, values[k]) if active[k] else out
            share = math.prod(p if one else 1 - p for one in active) / 2
            for order in itertools.permutations(range(3)) if active[4] else [(0, 1, 2)]:
                expected[chw(out)[list(order)].tobytes()] += share / 6 if active[4] else share
    return expected


@pytest.mark.parametrize("p", [0.5, 0.2, 0.0, 1.0])
def test_photometric_distort(p):
    image = np.random.default_rng(2).integers(0, 256, (12, 10, 3), dtype=np.uint8)
    values = [1.5, 0.5, 1.25, 0.25]
    transform = V2.RandomPhotometricDistort(*((v, v) for v in values), p=p)
    assert_shares(transform, image, distorted(Image.fromarray(image), values, p))


def test_photometric_factors_are_drawn_from_the_ranges():
    image = np.full((1, 1, 3), 200, np.uint8)
    only = {"contrast": (1, 1), "saturation": (1, 1), "hue": (0, 0), "p": 1.0}
    levels = [int(apply(T.RandomPhotometricDistort((0.5, 1.0), **only), image, seed=seed)[0, 0, 0]) for seed in range(COUNT)]
    assert min(levels) < 103 and max(levels) > 196 and abs(np.mean(levels) - 149.5) < 4 * 29 / math.sqrt(COUNT)


@MODULES
def test_a_folder_of_torchvision(even_tree, module):
    """The same size from every choice, and from an order in which one step changes it."""
    steps = [module.RandomChoice([module.Resize((20, 24)), module.CenterCrop((20, 24))]),
             module.RandomOrder([module.RandomInvert(), module.CenterCrop(18), module.RandomHorizontalFlip()])]  # fmt: skip
    data = ImageFolder(even_tree, module.Compose([*steps, module.PILToTensor()]))
    images, _ = next(iter(stoker.DataLoader(data, 20, compile="require")))
    assert images.shape == (20, 3, 18, 18)


def test_transforms_of_batches_are_told_apart():
    batch, image = T.RandomChoice([T.MixUp(), T.CutMix()]), T.RandomChoice([T.RandomInvert()])
    assert not isinstance(batch, T.RandomChoice) and isinstance(image, T.RandomChoice)
    for wrong in (batch, V2.RandomChoice([V2.MixUp(num_classes=2)]), T.Compose([V2.MixUp(num_classes=2)])):
        with pytest.raises(TypeError, match="whole batches"):
            T.pipeline_text(wrong)
    with pytest.raises(TypeError, match="cannot be one of batch_transforms"):
        T.RandomChoice([T.MixUp(), T.RandomInvert()])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: T.RandomChoice([]), ValueError, "list of weights"),
        (lambda: T.RandomChoice([T.Pad(1)], p=[1, 2]), ValueError, "Length of p"),
        (lambda: T.RandomChoice(T.Pad(1)), TypeError, "sequence"),
        (lambda: T.RandomOrder(T.Pad(1)), TypeError, "sequence"),
        (lambda: T.RandomPhotometricDistort(hue=(-0.6, 0)), ValueError, "hue=.*within -0.5 to 0.5"),
        (lambda: T.RandomPhotometricDistort(contrast=(2, 1)), ValueError, "contrast"),
        (lambda: T.RandomPhotometricDistort(brightness=(float("nan"), 1)), ValueError, "brightness"),
    ],
)
def test_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
