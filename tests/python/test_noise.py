# SPDX-License-Identifier: Apache-2.0
"""v2's GaussianNoise of uint8 tensors: each value's change has torchvision's distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
import stoker
from transform_parity import apply

torch = pytest.importorskip("torch")
v2 = pytest.importorskip("torchvision.transforms.v2")

from stoker import transforms as T  # noqa: E402


@pytest.mark.parametrize(("mean", "sigma"), [(0.0, 0.1), (0.2, 0.004), (-0.31, 0.5), (0.0, 0.0), (1.0, 1.0), (0.0013, 0.002)])
@pytest.mark.parametrize("level", [0, 128, 255])
def test_each_value_is_as_likely_as_with_torchvision(mean, sigma, level):
    step = v2.GaussianNoise(mean, sigma)
    pixels = np.full((150, 200, 3), level, np.uint8)
    torch.manual_seed(1)
    theirs = np.bincount(step(torch.from_numpy(pixels)).numpy().ravel(), minlength=256)
    out = apply(v2.Compose([v2.ToImage(), step]), pixels, seed=4)
    ours = np.bincount(out.ravel(), minlength=256)
    count = pixels.size
    for k in range(256):
        expected = (ours[k] + theirs[k]) / 2
        assert abs(ours[k] - theirs[k]) <= 5 * math.sqrt(2 * expected) + 1, k
    a, b = np.cumsum(ours) / count, np.cumsum(theirs) / count
    assert np.abs(a - b).max() < math.sqrt(-math.log(1e-5 / 2) / count)


def test_values_are_independent_and_follow_the_seed():
    step, pixels = v2.Compose([v2.ToImage(), v2.GaussianNoise(0, 0.1)]), np.full((120, 160, 3), 128, np.uint8)
    one, again, other = (apply(step, pixels, seed=seed).astype(float) for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    for a, b in ((one, other), (one[0], one[1]), (one[:, 1:], one[:, :-1]), (one[:, :, 1:], one[:, :, :-1])):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 5 / math.sqrt(a.size)


def test_images_of_a_pixel():
    for shape in ((1, 1, 3), (1, 7, 3), (9, 1, 3)):
        assert apply(v2.Compose([v2.ToImage(), v2.GaussianNoise()]), np.zeros(shape, np.uint8)).shape == (3, *shape[:2])


@pytest.mark.parametrize(("steps", "why"), [
    ([v2.GaussianNoise(clip=False), v2.ToImage()], "clip=True"),
    ([v2.ToImage(), v2.GaussianNoise(sigma=1.5)], "sigma"),
    ([v2.ToImage(), v2.GaussianNoise(mean=math.nan)], "mean"),
    ([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.GaussianNoise()], "GaussianNoise comes after ToImage"),
])  # fmt: skip
def test_other_noise_stays_in_python(steps, why):
    with pytest.raises(NotImplementedError, match=why):
        T.pipeline_text(v2.Compose(steps))


def test_it_may_be_left_out_at_random():
    step = v2.Compose([v2.ToImage(), v2.RandomApply([v2.GaussianNoise(0.2, 0.01)], 0.3), v2.ToDtype(torch.float32, scale=True)])
    stoker._ext.Pipeline(T.pipeline_text(step))
    pixels = np.full((2, 2, 3), 90, np.uint8)
    changed = [not np.allclose(apply(step, pixels, seed=seed), 90 / 255) for seed in range(500)]
    assert abs(np.mean(changed) - 0.3) < 4 * math.sqrt(0.21 / 500)
