# SPDX-License-Identifier: Apache-2.0
"""RandomResize, RandomShortestSize, ScaleJitter and RandomZoomOut: sizes, pixels and draws as torchvision's v2."""

from __future__ import annotations

import collections
import math

import numpy as np
import pytest
import stoker
from PIL import Image
from transform_parity import apply, chw, coordinates, pictures

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")

from stoker import transforms as T  # noqa: E402
from test_transform_draws import same_distribution  # noqa: E402


@pytest.mark.parametrize("name", ["bilinear", "nearest", "bicubic"])
def test_sides_that_are_not_drawn_give_torchvisions_bytes(name):
    for pixels in pictures(60, seed=2, largest=90):
        for ours, theirs in [
            (T.RandomResize(20, 21, name), v2.RandomResize(20, 21, name)),
            (T.RandomShortestSize(30, None, name), v2.RandomShortestSize(30, None, name)),
            (T.RandomShortestSize([31, 31], 45, name), v2.RandomShortestSize([31, 31], 45, name)),
        ]:
            if min(pixels.shape[:2]) == 1 and max(pixels.shape[:2]) > 40 and ours.max_size == 45:
                continue  # a side would have no pixel: see below
            want = theirs(Image.fromarray(pixels))
            assert np.array_equal(apply(ours, pixels), chw(want)), (ours, pixels.shape)


def test_scales_give_torchvisions_sizes():
    """torchvision computes the sides in float32, so one may be a pixel off where the product is a whole number."""
    for k, pixels in enumerate(pictures(120, seed=4, largest=90)):
        scale = 0.3 + 0.1 * (k % 20)
        ours, theirs = T.ScaleJitter((50, 60), (scale, scale)), v2.ScaleJitter((50, 60), (scale, scale))
        if min(pixels.shape[:2]) < 5:
            continue
        got, want = apply(ours, pixels), chw(theirs(Image.fromarray(pixels)))
        assert abs(got.shape[1] - want.shape[1]) <= 1 and abs(got.shape[2] - want.shape[2]) <= 1
        resized = Image.fromarray(pixels).resize((got.shape[2], got.shape[1]), Image.Resampling.BILINEAR)
        assert np.array_equal(got, chw(resized))


@pytest.mark.parametrize("transform", [T.RandomShortestSize(4, 20), T.ScaleJitter((9, 9))])
def test_a_side_without_pixels_is_an_error(transform):
    with pytest.raises(ValueError, match="1 x 1000 pixels cannot be resized"):
        apply(transform, np.zeros((1000, 1, 3), np.uint8))


def test_flat_images_stay_within_the_limit():
    line = np.zeros((1, 60000, 3), np.uint8)
    for transform in (T.RandomResize(800, 801), T.RandomShortestSize(800), T.RandomZoomOut(side_range=(300, 300), p=1)):
        with pytest.raises(stoker.LimitReached, match="pixel_limit"):
            apply(transform, line)


def test_sides_are_drawn_as_torchvisions():
    pixels = np.zeros((40, 50, 3), np.uint8)
    sides = collections.Counter(min(apply(T.RandomResize(10, 14), pixels, seed=seed).shape[1:]) for seed in range(800))
    assert set(sides) == {10, 11, 12, 13} and all(abs(count - 200) < 4 * math.sqrt(150) for count in sides.values())
    chosen = T.RandomShortestSize([10, 20, 30, 30])
    sides = collections.Counter(min(apply(chosen, pixels, seed=seed).shape[1:]) for seed in range(800))
    assert set(sides) == {10, 20, 30} and abs(sides[30] - 400) < 4 * math.sqrt(200)
    torch.manual_seed(0)
    jitter = v2.ScaleJitter((100, 100), (0.5, 1.5))
    theirs = [jitter.make_params([Image.fromarray(pixels)])["size"][1] for _ in range(800)]
    ours = [apply(T.ScaleJitter((100, 100), (0.5, 1.5)), pixels, seed=seed).shape[2] for seed in range(800)]
    same_distribution(ours, theirs, "width")


def test_the_image_lies_anywhere_in_a_larger_one():
    pixels = coordinates(30, 20)
    ours, applied = [], 0
    for seed in range(800):
        out = apply(T.RandomZoomOut((200, 201, 202), (1.5, 3.0), p=0.7), pixels, seed=seed)
        if out.shape == (3, 20, 30):
            continue
        applied += 1
        inside = (out[2] == 0)
        rows, columns = np.flatnonzero(inside.any(1)), np.flatnonzero(inside.any(0))
        top, left = rows[0], columns[0]
        assert np.array_equal(out[:, top:top + 20, left:left + 30], pixels.transpose(2, 0, 1))
        assert np.array_equal(np.unique(out[:, ~inside].T, axis=0), [[200, 201, 202]])
        ours.append((out.shape[2], left, top, left / max(1, out.shape[2] - 30)))
    assert abs(applied / 800 - 0.7) < 4 * math.sqrt(0.7 * 0.3 / 800)
    torch.manual_seed(0)
    transform, theirs = v2.RandomZoomOut(side_range=(1.5, 3.0)), []
    for _ in range(len(ours)):
        left, top, right, _ = transform.make_params([Image.fromarray(pixels)])["padding"]
        theirs.append((left + 30 + right, left, top, left / max(1, left + right)))
    for k, name in enumerate(["width", "left", "top", "share"]):
        same_distribution([one[k] for one in ours], [one[k] for one in theirs], name)


def test_torchvisions_become_ours():
    pairs = [
        (v2.RandomResize(8, 12, "bicubic"), T.RandomResize(8, 12, "bicubic")),
        (v2.RandomShortestSize(list(range(480, 801, 32)), 1333), T.RandomShortestSize(list(range(480, 801, 32)), 1333)),
        (v2.ScaleJitter((300, 200), (0.5, 1.5)), T.ScaleJitter((300, 200), (0.5, 1.5))),
        (v2.RandomZoomOut((1, 2, 3), (1, 2), 0.3), T.RandomZoomOut((1, 2, 3), (1, 2), 0.3)),
        (v2.RandomZoomOut(None), T.RandomZoomOut()),
    ]
    for theirs, ours in pairs:
        text = T.pipeline_text(v2.Compose([theirs, v2.ToImage()]))
        assert text == T.pipeline_text(T.Compose([ours]))
        stoker._ext.Pipeline(text)
    with pytest.raises(NotImplementedError, match="RandomResize comes after ToImage"):
        T.pipeline_text(v2.Compose([v2.ToImage(), v2.RandomResize(8, 12)]))


@pytest.mark.parametrize(("args", "error"), [
    ((0, 3), TypeError), ((0, (1, 2, 3)), ValueError), ((0, (0.5, 2)), ValueError), ((0, (3, 2)), ValueError),
    ((0, (1, 2), 2), ValueError),
])  # fmt: skip
def test_arguments_are_refused_with_torchvisions_words(args, error):
    with pytest.raises(error) as theirs:
        v2.RandomZoomOut(*args)
    with pytest.raises(error) as ours:
        T.RandomZoomOut(*args)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("make", [
    lambda: T.RandomResize(9, 9), lambda: T.RandomResize(0, 9), lambda: T.RandomResize(math.nan, 9),
    lambda: T.RandomShortestSize([]), lambda: T.RandomShortestSize(8, 0), lambda: T.RandomShortestSize([8.5]), lambda: T.ScaleJitter((8, 9), (math.nan, 1)),
    lambda: T.ScaleJitter((8,)), lambda: T.ScaleJitter((8, 9), (2, 1)), lambda: T.RandomZoomOut(0, (1, math.inf)),
    lambda: T.RandomZoomOut(0, (math.nan, 2)), lambda: T.RandomZoomOut(math.nan), lambda: T.RandomZoomOut((1, 2)),
])  # fmt: skip
def test_numbers_without_sense_are_refused(make):
    with pytest.raises(ValueError):
        apply(make(), np.zeros((9, 9, 3), np.uint8))
