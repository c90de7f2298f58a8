# SPDX-License-Identifier: Apache-2.0
"""Our JPEG decoder and libjpeg-turbo: which took a file and why, and that nobody can tell by the pixels."""
import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import stoker
from stoker import transforms as T

HERE = Path(__file__).parent


def encoded(form="JPEG", **options):
    rng = np.random.default_rng(7)
    image = Image.fromarray(rng.integers(0, 255, (48, 64, 3), np.uint8).repeat(2, 0).repeat(2, 1))
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def decoded(files, **options):
    data = stoker.datasets.ImageBytes(files, transform=T.Compose([T.CenterCrop(32), T.ToTensor()]))
    loader = stoker.DataLoader(data, batch_size=len(files), num_workers=0, **options)
    next(iter(loader))
    return loader.stats()["decoded"]


def test_stats_say_which_path_took_how_many_files():
    files = [encoded(quality=90)] * 3 + [encoded(progressive=True)] + [encoded("PNG")] * 2
    paths = {"own decoder": 3, "own decoder, progressive": 1}
    assert decoded(files) == {"JPEG": paths, "PNG": {"decoded": 2}}


def test_damaged_data_goes_to_libjpeg():
    good = encoded(quality=90)
    middle = len(good) * 3 // 4  # in the scan, where no restart marker belongs
    paths = decoded([good[:middle] + b"\xff\xd3" + good[middle:]])["JPEG"]
    assert sum(paths.values()) == 1 and "own decoder" not in paths


def test_turned_off(monkeypatch):
    monkeypatch.setenv("STOKER_JPEG", "libjpeg")
    assert decoded([encoded(quality=90)]) == {"JPEG": {"STOKER_JPEG=libjpeg": 1}}


@pytest.mark.skipif("STOKER_JPEG" in os.environ, reason="this is the inner run")
def test_parity_suite_with_libjpeg():
    suite = [HERE / "test_decode_jpeg.py", HERE / "test_loader.py"]
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not test_timeout", *map(str, suite)],
        env={**os.environ, "STOKER_JPEG": "libjpeg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3000:]
    assert " passed" in result.stdout
