# SPDX-License-Identifier: Apache-2.0
"""What the training programs of the planted-fault suite share: options, made-up data, and a stand-in for the GPU.

The stand-in's step sleeps, as a process sleeps that waits for an accelerator, and is a real step of a tiny model, so
that there is an optimizer to be seen. The rate goes to the file that $FAULTS_RATE names, never to stdout.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import json
import multiprocessing
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

DATA = Path(os.environ.get("FAULTS_DATA", Path(__file__).resolve().parents[3] / "build/faults/data"))

LACKING = 77  # exit status of a program that cannot plant its cause on this machine

OWN = Path(os.environ.get("FAULTS_OWN", DATA))  # what a program writes; several run at once

_traceml = importlib.import_module("traceml_ai") if "FAULTS_TRACEML" in os.environ else None


def options(steps: int, epochs: int = 1, **defaults: object) -> argparse.Namespace:
    """The program's settings: `defaults`, which the command line overrides. `steps` are those of one epoch."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--epochs", type=int, default=epochs)
    parser.add_argument("--batch-size", type=int, default=defaults.pop("batch_size", 8))
    parser.add_argument("--num-workers", type=int, default=defaults.pop("num_workers", 0))
    parser.add_argument("--prefetch-factor", type=int, default=defaults.pop("prefetch_factor", None))
    parser.add_argument(
        "--persistent", action="store_true", default=defaults.pop("persistent", False)
    )
    parser.add_argument("--any-order", action="store_true")
    parser.add_argument("--step-ms", type=float, default=defaults.pop("step_ms", 20.0))
    parser.add_argument("--fixed", action="store_true", help="without the planted cause")
    for name, value in defaults.items():  # what only this program has
        if isinstance(value, bool):
            parser.add_argument(f"--{name}", action="store_true", default=value)
        else:
            parser.add_argument(f"--{name}", type=type(value), default=value)
    args = parser.parse_args()
    torch.manual_seed(7)
    # The tiny model needs one; OpenMP's others, which wait by spinning, would be a second cause.
    torch.set_num_threads(1)
    if _traceml and multiprocessing.parent_process() is None:
        _traceml.init(mode="auto")
    return args


def data_folder(name: str, make: Callable[[Path], None]) -> Path:
    """The folder $FAULTS_DATA/NAME, filled by `make` when it is first asked for."""
    folder = DATA / name
    if not folder.exists():
        new = folder.with_name(f"{name}.{os.getpid()}")
        new.mkdir(parents=True)
        make(new)
        os.sync()  # clean pages, which a cold run can drop
        try:
            new.rename(folder)
        except OSError:  # another rank was first
            shutil.rmtree(new)
    return folder


def picture(seed: int, width: int, height: int) -> np.ndarray:
    """Slopes and some noise: an image that a codec has work with."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    slope = rng.uniform(-0.5, 0.5, (2, 3)).astype(np.float32)
    image = 128 + x[..., None] * slope[0] + y[..., None] * slope[1]
    image += rng.standard_normal((height, width, 1), np.float32) * 10
    return np.clip(image, 0, 255).astype(np.uint8)


def make_jpegs(folder: Path, count: int, width: int, height: int, quality: int = 90) -> None:
    from PIL import Image  # some machines lack it

    for i in range(count):
        Image.fromarray(picture(i, width, height)).save(folder / f"{i:05}.jpg", quality=quality)


def blas_threads(count: int) -> None:
    """What threadpoolctl does for NumPy's own OpenBLAS."""
    for library in Path(np.__file__).parents[1].glob("numpy.libs/*openblas*"):
        blas = ctypes.CDLL(str(library))
        for name in ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads64_", "openblas_set_num_threads"):
            if hasattr(blas, name):
                getattr(blas, name)(count)
                return
    print("this NumPy has no OpenBLAS of its own: the threads cannot be planted", file=sys.stderr)
    raise SystemExit(LACKING)


def _number(batch: object) -> float:
    """Some number of the batch, by which its place in the order shows."""
    while isinstance(batch, (list, tuple, dict)) and len(batch) > 0:
        batch = next(iter(batch.values())) if isinstance(batch, dict) else batch[0]
    if isinstance(batch, torch.Tensor):
        return float(batch.reshape(-1)[0]) if batch.numel() else 0.0
    return float(batch) if isinstance(batch, (int, float)) else float(len(str(batch)))


def traced(model: torch.nn.Module) -> contextlib.AbstractContextManager:
    """TraceML wants every step named; without it, nothing."""
    return _traceml.trace_step(model) if _traceml else contextlib.nullcontext()


def say(line: str) -> None:
    """Prints a line in one write, newline included, so that the lines of two ranks do not mix."""
    print(f"{line}\n", end="", flush=True)


def now() -> float:
    """The clock, after what the GPU was given to do."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()
    return time.perf_counter()


class StandIn(torch.nn.Module):
    """A tiny model whose forward pass takes as long as that of a large one on a GPU, and leaves the CPU alone."""

    def __init__(self, milliseconds: float, parts: int):
        super().__init__()
        self.linear = torch.nn.Linear(4, 1)
        self.sleeps = [milliseconds / 1e3 / parts] * parts if milliseconds else []

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        for seconds in self.sleeps:
            time.sleep(seconds)
        return self.linear(inputs)


class Trainer:
    """The stand-in model, its optimizer, and the count of steps."""

    def __init__(self, args: argparse.Namespace, parts: int = 1, warm_epochs: int = 0):
        self.model: torch.nn.Module = StandIn(args.step_ms, parts)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.001)
        self.warm = max(3, args.steps * args.epochs // 10, args.steps * warm_epochs)
        self.done = 0
        self.start = 0.0

    def step(self, batch: object) -> None:
        number = _number(batch)
        with traced(self.model):
            self.optimizer.zero_grad()
            loss = self.model(torch.full((1, 4), 1 / (1 + abs(number)))).square().mean()
            loss.backward()
            self.optimizer.step()
        self.count()
        if self.done % 25 == 0:
            say(f"step {self.done} loss {float(loss.detach()):.5f} first {number:.5f}")

    def count(self) -> None:
        """One step more is done."""
        self.done += 1
        if self.done == self.warm:
            self.start = now()

    def finish(self) -> None:
        """Ends the program's output, and writes the rate of the steps after the warm-up."""
        end = now()
        say(f"{self.done} steps")
        if path := os.environ.get("FAULTS_RATE"):
            steps, seconds = self.done - self.warm, end - self.start
            rate = {"steps": steps, "seconds": seconds, "steps_per_second": steps / seconds}
            Path(path).write_text(json.dumps(rate))
