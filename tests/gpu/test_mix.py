# SPDX-License-Identifier: Apache-2.0
"""MixUp and CutMix give on the GPU what they give on the CPU."""

from __future__ import annotations

import pytest
import torch
from conftest import assert_same, load, on_cpu, reference
from stoker import transforms as T

MIXING = {
    "MixUp": T.MixUp(alpha=0.2),
    "CutMix": T.CutMix(),
    "either": T.RandomChoice([T.MixUp(), T.CutMix()]),
    "both": [T.CutMix(), T.MixUp()],
}


@pytest.mark.parametrize("layout", [None, "channels_last"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", MIXING)
def test_equal_to_the_cpu(folder, name, dtype, layout):
    options = {"batch_transforms": MIXING[name], "dtype": dtype, "memory_format": layout}
    loader = load(folder, **options)
    for images, labels in loader:
        assert images.is_cuda and labels.is_cuda and labels.shape == (len(images), 5)
        if layout:
            assert images.is_contiguous(memory_format=torch.channels_last)
    loader.set_epoch(0)
    assert_same(on_cpu(loader), reference(folder, **options))


def test_delayed(folder):
    loader = load(folder, batch_size=8, prefetch_factor=1, batch_transforms=MIXING["either"])
    kept = []
    for images, labels in loader:
        torch.cuda._sleep(20_000_000)
        kept.append((images.clone(), labels.clone()))
        del images, labels
    assert_same(on_cpu(kept), reference(folder, batch_size=8, batch_transforms=MIXING["either"]))


def test_pinned(folder):
    loader = load(folder, device=None, pin_memory=True, batch_transforms=MIXING["either"])
    for images, labels in loader:
        assert images.is_pinned() and labels.is_pinned()
    loader.set_epoch(0)
    assert_same(on_cpu(loader), reference(folder, batch_transforms=MIXING["either"]))


def test_bad_samples_have_empty_rows(bad_folder):
    options = {"on_error": "replace", "batch_transforms": T.MixUp()}
    assert_same(on_cpu(load(bad_folder, **options)), reference(bad_folder, **options))
