# SPDX-License-Identifier: Apache-2.0
"""Images in files of several kinds, and what tests compare of the results of transforms."""

from __future__ import annotations

import io
import random

import numpy as np
import pytest
import torch
from conftest import picture
from PIL import Image

T = pytest.importorskip("torchvision.transforms")
from torchvision.transforms import v2  # noqa: E402


def encoded(image, kind="JPEG", **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


IMAGES = {
    "jpeg": encoded(picture(1, 150, 110), quality=92),
    "grey jpeg": encoded(picture(2, 150, 110).convert("L")),
    "progressive": encoded(picture(3, 150, 110), progressive=True),
    "png": encoded(picture(4, 150, 110), "PNG"),
    "webp": encoded(picture(5, 150, 110), "WEBP"),
}

RAMP = (np.add.outer(np.arange(110), np.arange(150)) * 0.98).astype(np.uint8)  # each pixel tells its place
FILE = encoded(Image.merge("RGB", [Image.fromarray(RAMP)] * 3), quality=100, subsampling=0)


def both(name, *args, **options):
    """A class of v1 and of v2."""
    return [getattr(T, name)(*args, **options), getattr(v2, name)(*args, **options)]


def seed_all(seed):
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


def generators():
    return torch.get_rng_state().tolist(), random.getstate(), repr(np.random.get_state())


def values(out):
    if isinstance(out, Image.Image):
        return out.mode, out.size, out.tobytes(), sorted(out.info)
    if isinstance(out, torch.Tensor):
        return type(out), out.dtype, out.shape, out.stride(), out.numpy().tobytes()
    return [values(one) for one in out]


def opened(data, mode="RGB"):
    return Image.open(io.BytesIO(data)).convert(mode)


def series(transform, seed, files=IMAGES):
    """What a transform makes of each file, twice, and the generators afterwards."""
    seed_all(seed)
    out = [values(transform(opened(data))) for data in files.values() for _ in range(2)]
    return out, generators()
