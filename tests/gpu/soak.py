#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A soak of the GPU's JPEG hardware: 120,000 random files, every value compared with the CPU's.

    python3 tests/gpu/soak.py --maker BUILD/tests/gpu/soak_files [--files 100000] [--damaged 20000] [--seed 1]

``soak_files`` writes the files, good and damaged ones. An epoch on the CPU alone is the reference; then come epochs on
the GPU with jpeg_hardware="off", "known" (damaged files included; the first epoch learns) and "all" (good files only), and
"known" again after bits of known files were flipped in place. It speaks TAP. With --device cpu, every epoch is the
CPU's: that tests everything but the GPU.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import mmap
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import stoker
import torch
from stoker import transforms as T

# Every pixel of the files whose sides are at most 64 pixels long, unchanged: most of them.
WHOLE = T.Compose([T.Resize((64, 64), interpolation=T.InterpolationMode.NEAREST), T.PILToTensor()])
CROPS = T.Compose([T.RandomResizedCrop(48, scale=(0.05, 1.0)), T.RandomHorizontalFlip(), T.PILToTensor()])
BATCH = 256
SHOWN = 12  # differing files
JPEG_THREADS = 2  # of a loader
CPUS = len(os.sched_getaffinity(0))


def archives(folder: Path, kinds: tuple[str, ...]) -> list[str]:
    return [str(path) for kind in kinds for path in sorted(folder.glob(f"{kind}-*.tar"))]


class Reference:
    """The rows of an epoch by the CPU alone, in order, and the names of their files."""

    def __init__(self, data: Any, count: int, device: str) -> None:
        rows, keys, at = None, [], 0
        for images, names in loader_of(data, None, workers=CPUS):
            if rows is None:
                rows = torch.empty((count, *images.shape[1:]), dtype=images.dtype, device=device)
            rows[at : at + len(images)] = images
            at += len(images)
            keys += list(names)
        assert at == count and rows is not None
        self.rows, self.keys = rows, keys


def loader_of(data: Any, mode: str | None, workers: int | str) -> Any:
    """Without a mode, the CPU's."""
    # The hardware rests while half of the prefetched batches are ready.
    device = {} if mode is None else {"device": "cuda", "jpeg_hardware": mode, "prefetch_factor": 8}
    return stoker.DataLoader(
        data, batch_size=BATCH, shuffle=True, seed=5, num_workers=workers, on_error="replace", **device
    )


class Soak:
    def __init__(self, folder: Path, on_gpu: bool, good: int, damaged: int) -> None:
        self.folder, self.on_gpu = folder, on_gpu
        self.count = {("good",): good, ("good", "damaged"): good + damaged}
        self.checks = self.failed = self.rows = self.by_hardware = 0
        self.began = time.monotonic()

    def say(self, what: str) -> None:
        print(f"# {time.monotonic() - self.began:5.1f} s: {what}", flush=True)

    def check(self, good: bool, what: str) -> None:
        self.checks += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.checks} - {what}", flush=True)

    def data(self, kinds: tuple[str, ...], transform: Any) -> Any:
        return stoker.datasets.WebDataset(archives(self.folder, kinds), ("jpg", "__key__"), transform)

    def reference(self, data: Any, kinds: tuple[str, ...]) -> Reference:
        made = Reference(data, self.count[kinds], "cuda" if self.on_gpu else "cpu")
        self.say(f"the CPU made {len(made.keys)} files")
        return made

    def loader(self, data: Any, mode: str, workers: int | str = 1) -> Any:
        """One worker by default: the hardware rests while the CPUs keep up, and here it is to do the work."""
        loader = loader_of(data, mode if self.on_gpu else None, workers if self.on_gpu else CPUS)
        if self.on_gpu and mode != "off":
            wait_for_hardware(loader)
        return loader

    def epoch(self, loader: Any, want: Reference, what: str) -> int:
        """Compares an epoch with the reference; how many of its files the hardware decoded."""
        before = hardware_files(loader)
        loader.set_epoch(0)
        differs = torch.zeros(len(want.keys), dtype=torch.bool, device=want.rows.device)
        at, keys_differ = 0, 0
        for images, names in loader:
            end = at + len(images)
            differs[at:end] = (images != want.rows[at:end]).flatten(1).any(1)
            keys_differ += list(names) != want.keys[at:end]
            at = end
        wrong = [want.keys[row] for row in differs.nonzero().flatten().tolist()]
        done = hardware_files(loader) - before
        self.rows += at
        self.by_hardware += done
        self.check(
            not wrong and not keys_differ and at == len(want.keys),
            f"{what}: {at} files, {done} by hardware, {len(wrong)} differ",
        )
        for name in wrong[:SHOWN]:
            print(f"#   {name}")
        device = loader.stats()["device"]
        if self.on_gpu:
            self.say(
                f"{device['files_known']} files known, {loader.stats()['bad_samples']} bad ones in all epochs, hardware "
                f"failed at {device['files_hardware_failed']}"
                + (f"; {device['jpeg_hardware_note']}" if device["jpeg_hardware_note"] else "")
            )
        return done

    def epochs(self, loader: Any, want: Reference, what: str, least: int, until: float) -> None:
        """Epochs until the hardware has decoded ``least`` files, or the time is over; at least one."""
        done = 0
        for number in itertools.count(1):
            done += self.epoch(loader, want, f"{what}, epoch {number}")
            if not self.on_gpu or done >= least or not self.time_left(until):
                break
        if self.on_gpu:
            self.check(done > 0, f"{what}: the hardware decoded {done} files")

    def time_left(self, until: float) -> bool:
        """Whether fewer than ``until`` seconds have passed."""
        return time.monotonic() - self.began < until


def wait_for_hardware(loader: Any, seconds: float = 20.0) -> None:
    until = time.monotonic() + seconds
    device = loader.stats()["device"]
    while device["jpeg_hardware_open"] < JPEG_THREADS and not device["jpeg_hardware_note"] and time.monotonic() < until:
        time.sleep(0.02)
        device = loader.stats()["device"]


def hardware_files(loader: Any) -> int:
    return loader.stats()["device"]["files_decoded_there"]


def flip_bits(path: str, rng: np.random.Generator) -> int:
    """Flips bits in every eighth file of an archive, which keeps its size and its time."""
    info, changed = os.stat(path), 0
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as bytes_:
        at = 0
        for number in itertools.count():
            if at + 512 > len(bytes_) or not bytes_[at]:
                break
            size = int(bytes_[at + 124 : at + 135], 8)
            if number % 8 == 0:
                for place in rng.integers(size // 2, size, 4).tolist():
                    bytes_[at + 512 + place] ^= 1 << int(rng.integers(8))
                changed += 1
            at += 512 + (size + 511) // 512 * 512
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    return changed


def known(soak: Soak, data: Any, until: float) -> Any:
    kinds = ("good", "damaged")
    want = soak.reference(data, kinds)
    soak.epoch(soak.loader(data, "off", "auto"), want, "off")
    soak.epoch(soak.loader(data, "known", "auto"), want, "known, while learning")
    loader = soak.loader(data, "known")
    soak.epochs(loader, want, "known", soak.count[kinds], until)
    return loader


def everything(soak: Soak, until: float) -> None:
    kinds = ("good",)
    data = soak.data(kinds, WHOLE)
    soak.epochs(soak.loader(data, "all"), soak.reference(data, kinds), "all", 2 * soak.count[kinds], until)


def crops(soak: Soak, mode: str, kinds: tuple[str, ...], until: float) -> None:
    if not soak.time_left(until):
        soak.check(True, f"{mode}, crops # SKIP no time left")
        return
    data = soak.data(kinds, CROPS)
    soak.epochs(soak.loader(data, mode), soak.reference(data, kinds), f"{mode}, crops", soak.count[kinds] // 2, until)


def changed(soak: Soak, data: Any, loader: Any, seed: int, until: float) -> None:
    kinds = ("good", "damaged")
    rng = np.random.default_rng(seed)
    count = sum(flip_bits(path, rng) for path in archives(soak.folder, ("good",)))
    soak.say(f"flipped bits of {count} files")
    soak.epochs(loader, soak.reference(data, kinds), "known, after a change", soak.count[kinds] // 2, until)


def kinds_of_files(folder: Path) -> str:
    """How many files of each sampling and kind the archives have, from their names."""
    seen: collections.Counter[str] = collections.Counter()
    for path in archives(folder, ("good", "damaged")):
        data = stoker.datasets.WebDataset(path, ("__key__",))
        for (names,) in stoker.DataLoader(data, batch_size=4096):
            seen.update(name.split("-")[1] for name in names)
    return ", ".join(f"{kind} {count}" for kind, count in seen.most_common())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--maker", required=True, help="the program soak_files")
    parser.add_argument("--files", type=int, default=100_000, help="undamaged files")
    parser.add_argument("--damaged", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=130, help="a phase that is later than planned has one epoch")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = Path(name)
        soak = Soak(folder, options.device == "cuda", options.files, options.damaged)
        subprocess.run(
            [options.maker, folder, str(options.files), str(options.damaged), str(options.seed)], check=True
        )
        size = sum(path.stat().st_size for path in folder.iterdir())
        soak.say(f"{options.files} files, and {options.damaged} damaged ones: {size / 1e6:.0f} MB")
        soak.say(kinds_of_files(folder))
        seconds, mixed = options.seconds, soak.data(("good", "damaged"), WHOLE)
        everything(soak, 0.35 * seconds)
        loader = known(soak, mixed, 0.6 * seconds)
        crops(soak, "all", ("good",), 0.65 * seconds)
        crops(soak, "known", ("good", "damaged"), 0.7 * seconds)
        changed(soak, mixed, loader, options.seed, seconds)
        del loader
        soak.say(f"{soak.rows} rows compared, {soak.by_hardware} of them by hardware; {soak.failed} checks failed")
    print(f"1..{soak.checks}")
    return 1 if soak.failed else 0


if __name__ == "__main__":
    sys.exit(main())
