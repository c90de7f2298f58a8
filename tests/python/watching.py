# SPDX-License-Identifier: Apache-2.0
"""Programs run as `stoker run` runs them, and what the watch in them wrote down (doctor/run/events.h, run.h)."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[2] / "doctor/inject"
NEXT, STALL, STEP, ITER, PIN, COPY, SYNC, SAVE, GC, EPOCH = range(1, 11)
FETCH, READ, NETWORK, DECOMPRESS, DECODE, TRANSFORM, COLLATE, PUT, OPENED, SLOWEST, DISCARDED, SHARED = range(16, 28)
ARCHIVE, REDUCED = 29, 30
FIRST, TRAINING = 4, 8  # of NEXT
PINNED, NON_BLOCKING = 1, 2  # of COPY

# For programs that train. torch.optim.SGD imports torch's compiler, which takes half as long as importing torch.
DESCENT = """
class Descent(torch.optim.Optimizer):
    def __init__(self, parameters, lr):
        super().__init__([{"params": list(parameters)}], {"lr": lr})

    def add_param_group(self, group):
        self.param_groups.append({**self.defaults, **group})

    def zero_grad(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter -= group["lr"] * parameter.grad
"""


class Event(NamedTuple):
    start: int
    dur: int
    batch: int
    kind: int
    loader: int
    a: int
    b: int


class Process:
    def __init__(self, run: Path, pid: str) -> None:
        self.said: dict[str, str] = {}
        with contextlib.suppress(FileNotFoundError):
            for line in (run / "process" / pid).read_text().splitlines():
                key, _, value = line.partition(" ")
                self.said[key] = value
        data = (run / "events" / pid).read_bytes()
        magic, size, self.pid, capacity, self.written, self.spent = struct.unpack_from("=8sIIQQQ", data)
        assert (magic, size, str(self.pid)) == (b"stkrev1\0", 32, pid)
        assert len(data) == 4096 + 32 * capacity
        assert capacity == (1 << 14 if self.said.get("role") == "worker" else 1 << 16)
        kept = range(max(0, self.written - capacity), self.written)
        self.events = [Event(*struct.unpack_from("=QQIHHII", data, 4096 + 32 * (n % capacity))) for n in kept]

    def of(self, kind: int, loader: int = 0) -> list[Event]:
        return [event for event in self.events if event.kind == kind and event.loader == loader]


class Run:
    def __init__(self, folder: Path, out: subprocess.CompletedProcess) -> None:
        self.out = out
        self.folder = folder
        self.process: list[Process] = []
        if (folder / "events").exists():
            self.process = [Process(folder, name) for name in sorted(os.listdir(folder / "events"))]
        self.trainers = [each for each in self.process if each.said["role"] == "trainer"]
        self.workers = [each for each in self.process if each.said["role"] == "worker"]

    @property
    def trainer(self) -> Process:
        (only,) = self.trainers
        return only

    def made(self, kind: int, loader: int = 0) -> list[Event]:
        return [event for each in self.process for event in each.of(kind, loader)]


@functools.cache
def source() -> str:
    """What the program writes to RUN/inject/sitecustomize.py."""
    spec = importlib.util.spec_from_file_location("inject_embed", FOLDER / "embed.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.assembled()


def prepare(folder: Path) -> Path:
    """A run directory before the program starts."""
    (folder / "inject").mkdir(parents=True)
    (folder / "inject" / "sitecustomize.py").write_text(source())
    return folder


def environment(run: Path | None, path: str = "", **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("STOKER_", "PYTHONPATH"))}
    if run is not None:
        path = os.pathsep.join(filter(None, [str(run / "inject"), path]))
        kept["STOKER_RUN"] = str(run)
    return {**kept, **({"PYTHONPATH": path} if path else {}), "OMP_NUM_THREADS": "1", **more}


def run_in(run: Path | None, script: Path, *args: object, options=(), path="", **more: str):
    command = [sys.executable, *options, str(script), *map(str, args)]
    return subprocess.run(
        command, env=environment(run, path, **more), capture_output=True, text=True, timeout=600, check=False
    )
