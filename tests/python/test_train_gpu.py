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


def run(*arguments):
    done = subprocess.run(
        [sys.executable, PROGRAM, *arguments], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU, and it would be measured")
def test_skip():
    assert run().startswith("SKIP: torch sees no CUDA device")


def test_rehearsal(tmp_path):
    said = run("--device", "cpu", "--seconds", "0.2", "--warm", "0.1", "--rounds", "1", "--latency-samples", "3",
               "--images", "24", "--out", tmp_path)
    found = json.loads((tmp_path / "train_gpu.json").read_text())
    feeds = found["train"]["rehearsal"]
    assert list(feeds) == ["resident data (the ceiling)", "torch DataLoader, 1 workers", "Stoker", "Stoker, engines off"]
    for got in [*feeds.values(), *found["loader"].values()]:
        assert got["rate"] > 0 and got["images"] > 0 and got["stall_ms"] >= 0 and got["cpu_per_1000"] > 0
    assert found["latency"]["samples"] == 3 and found["flat_out"]["rehearsal"]["alone_ms"] > 0
    assert "a rehearsal, the numbers mean nothing" in said and "| rehearsal | Stoker |" in said
