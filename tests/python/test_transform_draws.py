# SPDX-License-Identifier: Apache-2.0
"""The transforms' random draws are distributed as torchvision's, and follow the seed."""

from __future__ import annotations

import collections
import math

import numpy as np
import pytest
from loading import MEAN, STD
from PIL import Image
from transform_parity import apply, chw, coordinates, pictures

torch = pytest.importorskip("torch")
V = pytest.importorskip("torchvision.transforms")
F = pytest.importorskip("torchvision.transforms.functional")

from stoker import transforms as T  # noqa: E402

DRAWS = 800


def same_distribution(ours: list, theirs: list, about: str) -> None:
    """Kolmogorov and Smirnov: a difference this large comes up once in ten thousand."""
    a, b = np.sort(np.asarray(ours, float)), np.sort(np.asarray(theirs, float))
    points = np.concatenate([a, b])
    shares = [np.searchsorted(values, points, "right") / len(values) for values in (a, b)]
    distance = np.abs(shares[0] - shares[1]).max()
    limit = math.sqrt(-math.log(1e-4 / 2) / 2 * (len(a) + len(b)) / (len(a) * len(b)))
    assert distance < limit, (about, distance, limit)


def same_share(ours: list, p: float) -> None:
    assert abs(np.mean(ours) - p) < 4 * math.sqrt(p * (1 - p) / len(ours))


def drawn(transform, image: np.ndarray, count: int = DRAWS) -> list[np.ndarray]:
    return [apply(transform, image, seed=seed) for seed in range(count)]


@pytest.mark.parametrize(("scale", "ratio"), [((0.08, 1.0), (3 / 4, 4 / 3)), ((0.2, 0.3), (0.5, 3.0))])
def test_distribution_of_random_resized_crop(scale, ratio):
    image = coordinates(200, 160)
    ours, theirs = [], []
    for got in drawn(T.RandomResizedCrop(256, scale=scale, ratio=ratio, interpolation="nearest"), image):
        (left, top), (right, bottom) = got[:2, 0, 0].astype(int), got[:2, -1, -1].astype(int)
        ours.append((top, left, bottom - top + 1, right - left + 1))
    torch.manual_seed(0)
    for _ in range(4 * DRAWS):
        i, j, h, w = V.RandomResizedCrop.get_params(Image.fromarray(image), list(scale), list(ratio))
        theirs.append((i + 1, j + 1, h, w))
    for name, value in {
        "top": lambda p: p[0], "left": lambda p: p[1], "height": lambda p: p[2], "width": lambda p: p[3],
        "area": lambda p: p[2] * p[3], "ratio": lambda p: p[3] / p[2],
        "room used": lambda p: (p[0] - 1) / (161 - p[2]),
    }.items():
        same_distribution([value(p) for p in ours], [value(p) for p in theirs], name)


def test_distribution_of_random_crop():
    image = coordinates(30, 25)
    ours = [got[:2, 0, 0] for got in drawn(T.RandomCrop((11, 13)), image)]
    generator = np.random.default_rng(0)
    same_distribution([p[0] for p in ours], generator.integers(1, 30 - 13 + 2, 4 * DRAWS), "left")
    same_distribution([p[1] for p in ours], generator.integers(1, 25 - 11 + 2, 4 * DRAWS), "top")


def test_shares_of_yes_and_no():
    image = np.array([[[10, 20, 30], [40, 50, 60]]], np.uint8)
    same_share([got[0, 0, 0] == 40 for got in drawn(T.RandomHorizontalFlip(0.3), image)], 0.3)
    same_share([got[0, 0, 0] == 40 for got in drawn(T.RandomHorizontalFlip(), image)], 0.5)
    upright = image.transpose(1, 0, 2)
    same_share([got[0, 0, 0] == 40 for got in drawn(T.RandomVerticalFlip(0.7), upright)], 0.7)
    same_share([got[0, 0, 0] == got[1, 0, 0] for got in drawn(T.RandomGrayscale(), image)], 0.1)
    blackened = T.RandomApply([T.ColorJitter((0, 0))], p=0.4)
    same_share([got[0, 0, 0] == 0 for got in drawn(blackened, image)], 0.4)


def test_flips_of_two_ops_are_independent():
    image = coordinates(2, 2)
    flips = T.Compose([T.RandomHorizontalFlip(), T.RandomVerticalFlip()])
    counts = collections.Counter((int(g[0, 0, 0]), int(g[1, 0, 0])) for g in drawn(flips, image))
    chi = sum((n - DRAWS / 4) ** 2 / (DRAWS / 4) for n in counts.values())
    assert len(counts) == 4 and chi < 21.1  # three degrees of freedom: once in ten thousand


@pytest.mark.parametrize("change", [
    {"brightness": 0.4}, {"brightness": (0.2, 0.9)}, {"brightness": 1.5}, {"contrast": 0.8},
    {"saturation": 0.5}, {"hue": 0.3}, {"hue": (-0.1, 0.4)},
])
def test_distribution_of_color_jitter(change):
    image = np.array([[[120, 60, 200], [30, 90, 10]]], np.uint8)
    picture = Image.fromarray(image)
    theirs = V.ColorJitter(**change)
    torch.manual_seed(1)
    expected = [chw(theirs(picture)) for _ in range(4 * DRAWS)]
    got = drawn(T.ColorJitter(**change), image)
    for channel in range(3):
        ours = [g[channel, 0, 0] for g in got]
        same_distribution(ours, [e[channel, 0, 0] for e in expected], str(change))


def test_color_jitter_order_is_a_random_permutation():
    image = np.array([[[120, 60, 200], [30, 90, 10], [250, 130, 77]]], np.uint8)
    # Products with these are exact, so that Pillow's builds for all machines agree.
    factors = {"brightness": (1.75, 1.75), "contrast": (0.5, 0.5), "saturation": (2.25, 2.25),
               "hue": (0.3, 0.3)}
    theirs = V.ColorJitter(**factors)
    torch.manual_seed(2)
    picture = Image.fromarray(image)
    expected = collections.Counter(chw(theirs(picture)).tobytes() for _ in range(4 * DRAWS))
    got = collections.Counter(g.tobytes() for g in drawn(T.ColorJitter(**factors), image))
    assert set(got) == set(expected) and len(got) > 12
    chi = sum((got[k] - expected[k] / 4) ** 2 / (expected[k] / 4) for k in expected)
    assert chi < 70, (chi, len(expected))  # at most 23 degrees; the reference is a sample itself


def test_distribution_of_blur():
    image = np.zeros((9, 9, 3), np.uint8)
    image[4, 4] = 255
    theirs = V.GaussianBlur(7, (0.3, 1.6))
    torch.manual_seed(3)
    expected = [chw(theirs(Image.fromarray(image)))[0, 4, 4] for _ in range(DRAWS)]
    ours = [g[0, 4, 4] for g in drawn(T.GaussianBlur(7, (0.3, 1.6)), image)]
    same_distribution(ours, expected, "sigma")


def erased_box(tensor: np.ndarray, value: float) -> tuple[int, int, int, int] | None:
    rows, columns = np.nonzero(tensor[0] == value)
    if not len(rows):
        return None
    box = rows.min(), columns.min(), rows.max() - rows.min() + 1, columns.max() - columns.min() + 1
    assert len(rows) == box[2] * box[3]
    return box


def test_distribution_of_random_erasing():
    image = np.full((40, 60, 3), 100, np.uint8)
    transform = T.Compose([T.ToTensor(), T.RandomErasing(p=0.6, value=9)])
    theirs = V.RandomErasing(p=0.6, value=9)
    torch.manual_seed(4)
    tensor = F.to_tensor(Image.fromarray(image))
    expected = [erased_box(theirs(tensor).numpy(), 9) for _ in range(4 * DRAWS)]
    got = [erased_box(g, 9) for g in drawn(transform, image)]
    same_share([box is not None for box in got], 0.6)
    got, expected = [b for b in got if b], [b for b in expected if b]
    for k, name in enumerate(["top", "left", "height", "width"]):
        same_distribution([b[k] for b in got], [b[k] for b in expected], name)
    same_distribution([b[2] / b[3] for b in got], [b[2] / b[3] for b in expected], "ratio")


def test_random_erasing_values():
    image = np.full((40, 60, 3), 100, np.uint8)
    scale = (0.2, 0.2)
    plain = apply(T.Compose([T.ToTensor(), T.Normalize(MEAN, STD)]), image)
    erased = T.Compose([T.ToTensor(), T.RandomErasing(1, scale, value=(0.1, 0.2, 0.3)),
                        T.Normalize(MEAN, STD)])
    for seed in range(30):
        got = apply(erased, image, seed=seed)
        value = F.normalize(torch.tensor([0.1, 0.2, 0.3])[:, None, None], MEAN, STD).numpy()
        changed = got != plain
        assert changed.any() and np.array_equal(got[changed], np.broadcast_to(value, got.shape)[changed])
        same = apply(erased, image, seed=seed, memory_format="channels_last")
        assert np.array_equal(same, got)
    noise = [apply(T.Compose([T.ToTensor(), T.RandomErasing(1, scale, value="random")]), image, seed=s)
             for s in range(10)]
    values = np.concatenate([n[n != np.float32(100) / np.float32(255)] for n in noise])
    same_distribution(values, np.random.default_rng(5).normal(size=100_000), "normal")


def test_chance_is_a_function_of_the_seed():
    image = pictures(4, seed=30)[3]
    transform = T.Compose([T.RandomResizedCrop(24), T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.ToTensor(),
                           T.RandomErasing()])
    first = [apply(transform, image, seed=s) for s in range(20)]
    assert all(np.array_equal(a, apply(transform, image, seed=s)) for s, a in enumerate(first))
    assert len({a.tobytes() for a in first}) == 20
