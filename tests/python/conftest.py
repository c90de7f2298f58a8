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

# Files that take more than a few seconds, because they start many programs, servers or processes: make check leaves them
# out.
SLOW = """test_accelerate test_albumentations test_albumentations_targets test_augments test_boxes_warped test_chosen_transforms
    test_compile_albumentations test_compile_torchvision test_contract test_contract_batches test_contract_exceptions test_contract_workers
    test_device test_doctor_inject test_doctor_inject_harmless test_doctor_report test_doctor_run test_doctor_simulate
    test_doctor_top test_every_source test_examples test_examples_run test_fake_cuda test_faults test_fidelity
    test_forks test_in_torchs_place test_info test_joint test_jpeg_paths test_lazy_chains test_lazy_datasets
    test_lazy_draws test_lazy_functions test_lazy_images test_lazy_timm test_lazy_transforms test_lifecycle test_lightning test_neighbours
    test_order_draws test_own_datasets_equal test_own_steps test_pack test_pack_formats test_pack_kill test_pack_trouble
    test_packaging test_python_bad_samples test_python_handles test_python_state test_python_workers test_random_sizes
    test_rank_states test_release test_repeated_samples test_rows test_scale test_scripts test_site
    test_sources_loader test_sources_url test_split test_timm test_train_gpu test_transform_draws test_transforms
    test_transforms_in_python test_transient test_types test_value_transforms test_warps test_webdataset_keys
    test_worker_endings test_worker_memory""".split()


# Several processes share the files (scripts/test.sh): whoever comes first to one runs it, and notes that in this folder.
CLAIMS = os.environ.pop("STOKER_TEST_CLAIMS", None)
_is_ours: dict[str, bool] = {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem in SLOW:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.path.stem not in SLOW)  # so that no process has one left when the others are done


def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    return None if CLAIMS is None or _claims(CLAIMS, item.path.stem) else True  # True: it is done


def _claims(folder: str, file: str) -> bool:
    """Return whether this process runs a file's tests."""
    if file not in _is_ours:
        try:
            os.close(os.open(os.path.join(folder, file), os.O_CREAT | os.O_EXCL))
            _is_ours[file] = True
        except FileExistsError:
            _is_ours[file] = False
    return _is_ours[file]


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
