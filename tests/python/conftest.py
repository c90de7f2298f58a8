# SPDX-License-Identifier: Apache-2.0
"""Image folders for the tests, made from fixed seeds, and fixtures for several test files."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from watching import Run, prepare, run_in

def picture(seed: int, width: int, height: int) -> Image.Image:
    """Slopes, an edge and some noise: enough for codecs and filters to disagree about."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    slope = rng.uniform(-2, 2, (2, 3))
    image = (
        128 + x[..., None] * slope[0] + y[..., None] * slope[1] + rng.normal(0, 12, (height, width, 3))
    )
    image[height // 3 :, width // 2 :] += rng.uniform(-60, 60, 3)
    return Image.fromarray(np.clip(image, 0, 255).astype(np.uint8))


def save_tree(root: Path, classes: dict[str, int], size: tuple[int, int] | None = None) -> Path:
    """`classes` names the class folders and how many images each has; without `size` sizes differ."""
    kinds = [
        ("jpg", {"quality": 90}),
        ("png", {}),
        ("bmp", {}),
        ("jpg", {"quality": 75, "progressive": True}),
    ]
    number = 0
    for name, count in classes.items():
        (root / name).mkdir(parents=True)
        for i in range(count):
            extension, options = kinds[number % len(kinds)]
            width, height = size or (40 + 7 * (number % 5), 36 + 5 * (number % 7))
            picture(number, width, height).save(root / name / f"{i:03}.{extension}", **options)
            number += 1
    return root


@pytest.fixture(scope="session")
def tree(tmp_path_factory) -> Path:
    """23 images of different sizes and formats, in three classes."""
    return save_tree(tmp_path_factory.mktemp("tree") / "train", {"ant": 9, "bee": 8, "cow": 6})


@pytest.fixture(scope="session")
def even_tree(tmp_path_factory) -> Path:
    """20 images, all 48 x 40."""
    return save_tree(tmp_path_factory.mktemp("even") / "train", {"x": 12, "y": 8}, (48, 40))


@pytest.fixture(scope="session")
def two_classes(tmp_path_factory) -> Path:
    """Six images of different sizes, JPEG and PNG, in two classes."""
    root = tmp_path_factory.mktemp("two") / "train"
    for n in range(6):
        (root / f"class{n % 2}").mkdir(parents=True, exist_ok=True)
        extension, options = (("jpg", {"quality": 87}), ("png", {}))[n // 2 % 2]
        picture(n, 90 + 7 * n, 70 + 11 * n).save(root / f"class{n % 2}" / f"{n}.{extension}", **options)
    return root


@pytest.fixture()
def bad_tree(tmp_path) -> Path:
    """12 images, of which number 4 is cut short and number 9 is no image at all."""
    root = save_tree(tmp_path / "bad", {"a": 7, "b": 5}, (48, 40))
    cut = root / "a" / "004.jpg"
    cut.write_bytes(cut.read_bytes()[:700])
    for path in (root / "b").glob("002.*"):
        path.unlink()
    (root / "b" / "002.jpg").write_bytes(b"this is no image" * 20)
    return root


@pytest.fixture(scope="session")
def slow_image(tmp_path_factory) -> Path:
    """A folder with one image that takes a second or more to decode."""
    root = tmp_path_factory.mktemp("slow") / "train"
    (root / "only").mkdir(parents=True)
    noise = np.random.default_rng(0).integers(0, 256, (1000, 1000, 3), np.uint8)
    Image.fromarray(np.tile(noise, (5, 5, 1))).save(
        root / "only" / "0.jpg", quality=85, progressive=True
    )
    return root


# Before a program that does not need it: importing torch takes ten times as long as most of them.
WITHOUT_TORCH = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name == "torch" else find(name, *a)
"""


def run_python(code: str, *args: object, timeout: float = 300) -> subprocess.CompletedProcess:
    """Runs `code` in a fresh interpreter."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, args)],
        timeout=timeout,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )


@pytest.fixture()
def one_thread():
    """torch's threads cost more than they bring for small images."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture()
def prepared(tmp_path):
    """A run directory with what `stoker run` puts into Python processes."""
    return prepare(tmp_path / "run")


@pytest.fixture()
def watch(tmp_path, prepared):
    """Runs a program in that directory and returns what was recorded."""

    def watched(code: str, *args: object, **more: str) -> Run:
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(code))
        return Run(prepared, run_in(prepared, script, *args, **more))

    return watched


@pytest.fixture()
def engine_runs(monkeypatch):
    """How many edits each call of the engine was given."""
    from stoker._lazy import pixels

    runs = []
    for kind in (pixels.Encoded, pixels.Decoded):
        run = kind.run
        monkeypatch.setattr(
            kind, "run", lambda self, single, edits, run=run: runs.append(len(edits)) or run(self, single, edits)
        )
    return runs
