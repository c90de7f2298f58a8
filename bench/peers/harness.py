# SPDX-License-Identifier: Apache-2.0
"""What every contestant shares: arguments, pinning, the clock, and the answer as one line of JSON.

A contestant is a file with PACKAGES (what PyPI must provide), NOTE (what it cannot do like the others) and
``batches(folder, workers, batch)``, a generator that yields the number of images in each batch, epoch after
epoch, for ever. All do the same job on the same files: read, decode, RandomResizedCrop(224), flip, normalise,
float32 NCHW. It runs in a process of its own, pinned to as many CPUs as it has workers:

    python bench/peers/torch_pil.py FOLDER --workers 2 --batch 64 --seconds 5
"""
from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import time
from pathlib import Path

# From the demo's file itself: contestants should not carry the package.
_spec = importlib.util.spec_from_file_location("demo", Path(__file__).resolve().parents[2] / "python/stoker/demo.py")
_demo = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_demo)
process_tree, memory_of = _demo.process_tree, _demo.memory_of

MEAN = [0.485, 0.456, 0.406]
STD = [0.229, 0.224, 0.225]
SIZE = 224


def image_paths(folder):
    """All images of an ImageFolder with their class numbers, in its order."""
    classes = sorted(p for p in Path(folder).iterdir() if p.is_dir())
    return [(str(path), label) for label, each in enumerate(classes)
            for path in sorted(each.rglob("*")) if path.suffix.lower() in (".jpg", ".jpeg")]


def cpu_seconds(pids):
    """CPU time of processes that are alive, their finished children included."""
    ticks = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                ticks += sum(int(f) for f in stat.read().rsplit(")", 1)[1].split()[11:15])
        except OSError:
            pass
    return ticks / os.sysconf("SC_CLK_TCK")


def pin(workers):
    cpus = sorted(os.sched_getaffinity(0))[:max(workers, 1)]
    os.sched_setaffinity(0, cpus)


def measure(batches, folder, workers, batch, seconds):
    me = os.getpid()
    source = batches(folder, workers, batch)
    next(source)  # imports and the workers' start are not what is measured
    warm = time.perf_counter() + min(1.0, seconds / 4)
    while time.perf_counter() < warm:
        next(source)
    images, cpu, begin = 0, cpu_seconds(process_tree(me)), time.perf_counter()
    while time.perf_counter() - begin < seconds:
        images += next(source)
    took = time.perf_counter() - begin
    pids = process_tree(me)
    return {"rate": images / took, "memory": memory_of(pids),
            "cpu_per_1000": 1000 * (cpu_seconds(pids) - cpu) / images}


def main(batches):
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder")
    arguments.add_argument("--workers", type=int, default=1)
    arguments.add_argument("--batch", type=int, default=64)
    arguments.add_argument("--seconds", type=float, default=5)
    args = arguments.parse_args()
    pin(args.workers)
    answer = measure(batches, args.folder, args.workers, args.batch, args.seconds)
    print(json.dumps(answer), flush=True)
    sys.stdout.flush()
    os._exit(0)  # some contestants take seconds to stop, or hang
