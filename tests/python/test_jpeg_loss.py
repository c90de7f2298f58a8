# SPDX-License-Identifier: Apache-2.0
"""JPEG gives torchvision's bytes for each quality, and each quality as often."""

from __future__ import annotations

import collections

import numpy as np
import pytest
import stoker
import torch
from stoker import transforms as T
from stoker._plan import from_torchvision
from stoker._steps.blockers import Blocked
from test_timm import draws, same_shares
from torchvision.transforms import v2 as V2
from transform_parity import apply, pictures

pytestmark = [
    pytest.mark.filterwarnings("ignore:The image decoding:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:The transform `ToTensor"),
]


@pytest.mark.parametrize("seed", range(2))
def test_torchvisions_bytes(seed):
    rng = np.random.default_rng(seed)
    for image in pictures(40, seed):
        quality = int(rng.integers(1, 101))
        planes = torch.as_tensor(image).permute(2, 0, 1).contiguous()
        wanted = V2.functional.jpeg(planes, quality).numpy()
        for step in (T.JPEG(quality), V2.JPEG(quality), T.Compose([V2.ToImage(), V2.JPEG([quality, quality])])):
            assert np.array_equal(apply(step, image), wanted), (quality, image.shape)
        grey = V2.functional.jpeg(torch.as_tensor(apply(T.Grayscale(1), image)), quality).numpy()
        assert np.array_equal(apply(T.Compose([T.Grayscale(1), T.JPEG(quality)]), image), grey), (quality, image.shape)


def test_behind_and_before_others():
    image = pictures(1, 5)[0]
    turned = V2.functional.jpeg(torch.as_tensor(image[::-1, ::-1].copy()).permute(2, 0, 1).contiguous(), 30)
    steps = [T.RandomHorizontalFlip(1), T.RandomVerticalFlip(1), T.JPEG(30), T.RandomHorizontalFlip(1)]
    assert np.array_equal(apply(T.Compose(steps), image), turned.numpy()[:, :, ::-1])


def test_each_quality_is_as_likely():
    image = np.random.default_rng(0).integers(0, 256, (16, 16, 3), np.uint8)
    quality_of = {apply(T.JPEG(quality), image).tobytes(): quality for quality in range(20, 31)}
    assert len(quality_of) == 11
    got = collections.Counter(quality_of[one.tobytes()] for one in draws(T.JPEG((20, 30)), image, 11_000))
    same_shares(got, collections.Counter(dict.fromkeys(range(20, 31), 100_000)))


def test_bad_qualities():
    for bad in (0, 101, (50, 40), (50,), (1, 2, 3), (1.5, 2), (0, 50)):
        with pytest.raises(ValueError, match="quality="):
            T.JPEG(bad)
    for bad in (True, None, 1.5):
        with pytest.raises(TypeError, match="quality="):
            T.JPEG(bad)
    assert repr(T.JPEG(30)) == "JPEG(quality=(30, 30))"


def test_floats_stay_torchvisions(tmp_path):
    with pytest.raises(Blocked, match="JPEG comes after ToTensor"):
        T.pipeline_text(T.Compose([V2.ToTensor(), V2.JPEG(30)]))
    with pytest.raises(stoker.StokerError, match="jpeg: works on bytes"):
        apply(T.Compose([T.ToTensor(), T.JPEG(30)]), pictures(1, 1)[0])


def test_other_bytes_are_left_to_torchvision(monkeypatch):
    from_torchvision._writes_jpegs_alike.cache_clear()
    theirs = V2.functional.jpeg
    monkeypatch.setattr(V2.functional, "jpeg", lambda image, quality: theirs(image, quality) // 2)
    with pytest.raises((Blocked, NotImplementedError), match="JPEGs differ from the engine's"):
        T.pipeline_text(V2.Compose([V2.JPEG(30)]))
    from_torchvision._writes_jpegs_alike.cache_clear()
