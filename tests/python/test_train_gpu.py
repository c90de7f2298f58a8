# SPDX-License-Identifier: Apache-2.0
"""bench/train_gpu.py where there is no GPU: it says so, and its rehearsal measures and reports everything else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision")
PROGRAM = Path(__file__).resolve().parents[2] / "bench" / "train_gpu.py"
sys.path[:0] = [str(PROGRAM.parent), str(PROGRAM.parent / "gpu")]
import feeds
import train_gpu
import unchanged


def run(*arguments):
    done = subprocess.run(
        [sys.executable, PROGRAM, *arguments], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_arguments():
    args = train_gpu.arguments(["--parts", "loader", "--cpus", "2,16", "--out", "a", "--cpus=", "--out", "b"])
    assert args.cpus == [] and args.out == Path("b"), "as for each of several numbers of CPUs"
    assert [train_gpu.torch_workers(cpus) for cpus in (1, 2, 8, 16)] == [[1], [2], [8], [8, 16]]
    if not torch.cuda.is_available():
        assert train_gpu.skip_reason(args).startswith("torch sees no CUDA device")


class Learner:
    """A loader whose JPEG hardware opens late, and that learns half of the files in its first epoch, the rest in its second,
    without one that the hardware cannot decode."""

    dataset = range(100)

    def __init__(self):
        self.looks = self.epochs = 0

    def stats(self):
        self.looks += 1
        known = [0, 50, 99, 99][self.epochs]
        return {"device": {"jpeg_hardware_open": 2 * (self.looks > 2), "jpeg_hardware_note": None, "files_known": known}}

    def __iter__(self):
        self.epochs += 1
        return iter(())


def test_everything_is_known_before_it_is_measured():
    loader = Learner()
    assert feeds.learn(loader).startswith("99 of 100 files known to decode, after 3 epochs")
    assert feeds.learn(loader, seconds=0).startswith("99 of 100 files known to decode, after 0 epochs")


def test_rehearsal(tmp_path):
    said = run("--device", "cpu", "--seconds", "0.2", "--warm", "0.1", "--rounds", "1", "--latency-samples", "3",
               "--images", "24", "--out", tmp_path)
    found = json.loads((tmp_path / "train_gpu.json").read_text())
    trained = found["train"]["rehearsal"]
    names = ["torch DataLoader, 1 workers", "Stoker", 'Stoker, jpeg_hardware="off"']
    assert list(trained) == ["resident data (the ceiling)", *names] and list(found["loader"]) == names
    for got in [*trained.values(), *found["loader"].values()]:
        assert got["rate"] > 0 and got["images"] > 0 and got["stall_ms"] >= 0 and got["cpu_per_1000"] > 0
    assert {model: list(of) for model, of in found["recipes"].items()} == {
        name: ["resident data (the ceiling)", "Stoker"] for name in ("rehearsal, heavy", "rehearsal_masks, heavy")}
    assert all(got["rate"] > 0 for of in found["recipes"].values() for got in of.values())
    assert found["latency"]["samples"] == 3 and found["flat_out"]["rehearsal"]["alone_ms"] > 0
    assert "a rehearsal, the numbers mean nothing" in said and "| rehearsal | Stoker |" in said


def test_unchanged_scripts_are_compared_with_the_ceiling():
    args = unchanged.arguments(["--ways", "ceiling,torch,stoker"])
    rows = [{"model": "resnet18", "dataset": "own", "cpus": 4, "ceiling": 1000.0, "torch": 125.0, "stoker": None}]
    assert unchanged.markdown(args, rows).splitlines() == [
        "| model, dataset, CPUs | ceiling | torch | `python -m stoker` |",
        "|---|---|---|---|",
        "| resnet18, own, 4 | 1,000 (100.0 %) | 125 (12.5 %) | failed |",
    ]
    with pytest.raises(SystemExit):
        unchanged.arguments(["--ways", "fastest"])
