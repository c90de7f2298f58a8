# SPDX-License-Identifier: Apache-2.0
"""ElasticTransform: with the engine's noise, torchvision's result to within one level."""

from __future__ import annotations

import math

import numpy as np
import pytest
import stoker
from PIL import Image
from transform_parity import apply, chw, pictures

torch = pytest.importorskip("torch")
V = pytest.importorskip("torchvision.transforms")
v2 = pytest.importorskip("torchvision.transforms.v2")

from stoker import transforms as T  # noqa: E402

F = v2.functional


def philox(seed: int, count: int, sample: int = 0, op: int = 0) -> np.ndarray:
    """The numbers of 32 bits that an op draws for a sample of the first epoch."""
    blocks = (count + 3) // 4
    assert blocks < 1 << 16  # then the key changes
    mask = np.uint64(0xFFFFFFFF)
    counter = [np.full(blocks, number, np.uint64) for number in (sample, 0, 0)]
    counter.append(np.arange(blocks, dtype=np.uint64) + np.uint64(op << 16))
    keys = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        a, b, c, d = counter
        first, second = np.uint64(0xD2511F53) * a, np.uint64(0xCD9E8D57) * c
        counter = [(second >> np.uint64(32)) ^ b ^ np.uint64(keys[0]), second & mask,
                   (first >> np.uint64(32)) ^ d ^ np.uint64(keys[1]), first & mask]  # fmt: skip
        keys = [(keys[0] + 0x9E3779B9) & 0xFFFFFFFF, (keys[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(counter, 1).reshape(-1)[:count].astype(np.uint32)


def by_torchvision(pixels: np.ndarray, seed: int, alpha, sigma, mode: str, fill) -> np.ndarray:
    """What torchvision makes of an image, with the engine's noise in the place of torch's."""
    height, width = pixels.shape[:2]
    noise = philox(seed, 2 * height * width).astype(np.int32).astype(np.float32) / np.float32(1 << 31)
    planes = []
    halves = torch.from_numpy(noise).reshape(2, 1, 1, height, width)
    for plane, one_sigma, one_alpha, side in zip(halves, sigma, alpha, (width, height), strict=True):
        if one_sigma > 0:
            taps = int(8 * one_sigma + 1) | 1
            plane = F.gaussian_blur(plane, [taps, taps], list(sigma))
        planes.append(plane * one_alpha / side)
    displacement = torch.concat(planes, 1).permute([0, 2, 3, 1])
    fill = fill if isinstance(fill, int) else [float(value) for value in fill]
    return chw(F.elastic(Image.fromarray(pixels), displacement, V.InterpolationMode(mode), fill))


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize(("alpha", "sigma"), [((50, 50), (5, 5)), ((300, -200), (4, 6.3)), ((30, 20), (1, 2)), ((9, 4), (0, 0))])
def test_within_one_level_of_torchvision(mode, alpha, sigma):
    least = 2 * int(8 * max(sigma) + 1)
    values = off_by_more = off = 0
    for seed, pixels in enumerate(pictures(14, seed=1, largest=160)):
        if min(pixels.shape[:2]) < least:
            continue
        fill = [0, 9, (255, 3, 77)][seed % 3]
        got = apply(T.ElasticTransform(alpha, sigma, mode, fill), pixels, seed=seed)
        difference = np.abs(got.astype(int) - by_torchvision(pixels, seed, alpha, sigma, mode, fill))
        values += difference.size
        off += np.count_nonzero(difference)
        off_by_more += np.count_nonzero(difference > 1)
    assert values > 50000 and off < values / 500
    assert off_by_more == 0 or (mode == "nearest" and off_by_more < values / 10000)


def test_grey_images_and_seeds():
    pixels = pictures(3, seed=2)[0][:60, :60]
    grey = np.asarray(Image.fromarray(pixels).convert("L"))
    transform = T.Compose([T.Grayscale(), T.ElasticTransform(40.0, 3.0, fill=7)])
    one, again, other = (apply(transform, pixels, seed=seed) for seed in (1, 1, 2))
    assert one.shape == (1, *grey.shape) and np.array_equal(one, again) and not np.array_equal(one, other)


def test_an_image_smaller_than_the_blur_is_an_error():
    for pixels in (np.zeros((20, 60, 3), np.uint8), np.zeros((1, 1, 3), np.uint8)):
        with pytest.raises(ValueError, match="a blur of 41 x 41 is too large"):
            apply(T.ElasticTransform(), pixels)
    assert apply(T.ElasticTransform(50.0, 0.0), np.zeros((1, 1, 3), np.uint8)).shape == (3, 1, 1)


def test_torchvisions_become_ours():
    for theirs, ours in [
        (v2.ElasticTransform(), T.ElasticTransform()),
        (v2.ElasticTransform([3, 4], 2.0, "nearest", (1, 2, 3)), T.ElasticTransform([3, 4], 2.0, "nearest", [1, 2, 3])),
        (V.ElasticTransform(30.0, [2.0, 3.0], fill=7), T.ElasticTransform(30.0, [2.0, 3.0], fill=[7])),
    ]:
        text = T.pipeline_text(theirs)
        stoker._ext.Pipeline(text)
        assert text.replace(".0", "") == T.pipeline_text(ours).replace(".0", "")
    for theirs in (v2.ElasticTransform(interpolation="bicubic"), v2.ElasticTransform(fill=None)):
        with pytest.raises(NotImplementedError, match="ElasticTransform"):
            T.pipeline_text(theirs)


@pytest.mark.parametrize("args", [("x",), ([1.0, 2.0, 3.0],), ([1.0, "x"],), (1.0, None), (1.0, [])])
def test_arguments_are_refused_with_torchvisions_words(args):
    with pytest.raises((TypeError, ValueError)) as theirs:
        v2.ElasticTransform(*args)
    with pytest.raises(theirs.type) as ours:
        T.ElasticTransform(*args)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("make", [
    lambda: T.ElasticTransform(math.nan), lambda: T.ElasticTransform(1, math.inf), lambda: T.ElasticTransform(1, -1),
    lambda: T.ElasticTransform(1, (0, 1)), lambda: T.ElasticTransform(fill=math.nan), lambda: T.ElasticTransform(1, 1e9),
])  # fmt: skip
def test_numbers_without_sense_are_refused(make):
    with pytest.raises(ValueError):
        apply(make(), np.zeros((60, 60, 3), np.uint8))
