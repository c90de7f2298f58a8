#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Datasets written in Python: torch's DataLoader and ours, the import changed and nothing else.

    python bench/python_data.py [--rounds N] [--workers N] [--memory] [CASE...]

Each case runs in turns (torch, ours, torch, ours, ...), each turn in a process of its own; the ratio is that of the
medians. Data are made on the spot, in a temporary folder. Cases that need a package which is missing are left out,
and said so. The peak of a process counts shared memory that it has touched, also while another one counts it too;
--memory instead samples what all processes together hold, with shared memory counted once. It slows them down.
Pages of files, which are mostly libraries, are counted in the process that has most of them: all have the same ones, and
the kernel's proportional count (Pss_File) depends on what else runs on the machine, this script included. Sampling ends
with the last epoch: when a process exits, torch's libraries touch another 120 MB of their pages, whatever it did before.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import resource
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
import torch.utils.data as tud

SEQUENCES = 4096


class Tensors(tud.Dataset):
    """Samples in memory that take so many seconds of work each."""

    def __init__(self, count, shape, seconds=0.0):
        self.data = torch.arange(int(np.prod(shape)), dtype=torch.float32).reshape(shape)
        self.count, self.seconds = count, seconds

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        end = time.perf_counter() + self.seconds
        while time.perf_counter() < end:
            pass
        return self.data + index, index


class H5(tud.Dataset):
    def __init__(self, path):
        self.path, self.file = path, None

    def __len__(self):
        return 2048

    def __getitem__(self, index):
        if self.file is None:
            import h5py

            self.file = h5py.File(self.path, "r")
        return self.file["image"][index], int(self.file["label"][index])


class Lmdb(tud.Dataset):
    def __init__(self, path):
        self.path, self.env = path, None

    def __len__(self):
        return 2048

    def __getitem__(self, index):
        if self.env is None:
            import lmdb

            self.env = lmdb.open(self.path, readonly=True, lock=False)
        with self.env.begin() as reading:
            return np.frombuffer(reading.get(b"%08d" % index), np.uint8).reshape(128, 128, 3).copy(), index


class Cv2(tud.Dataset):
    def __init__(self, files):
        import albumentations as A

        self.files = files
        self.transform = A.Compose([A.RandomResizedCrop((224, 224)), A.HorizontalFlip(), A.Normalize()])

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        import cv2

        image = cv2.cvtColor(cv2.imread(self.files[index]), cv2.COLOR_BGR2RGB)
        return torch.from_numpy(self.transform(image=image)["image"].transpose(2, 0, 1).copy()), index


class Text(tud.Dataset):
    def __init__(self):
        self.lengths = np.random.default_rng(0).integers(10, 400, SEQUENCES)

    def __len__(self):
        return SEQUENCES

    def __getitem__(self, index):
        return list(range(index, index + int(self.lengths[index])))


def padded(samples):
    longest = max(map(len, samples))
    tokens = torch.zeros(len(samples), longest, dtype=torch.int64)
    mask = torch.zeros(len(samples), longest, dtype=torch.bool)
    for row, sample in enumerate(samples):
        tokens[row, : len(sample)] = torch.tensor(sample)
        mask[row, : len(sample)] = True
    return {"tokens": tokens, "mask": mask}


def make_h5(folder):
    import h5py

    path = folder / "images.h5"
    if not path.exists():
        pixels = np.random.default_rng(1).integers(0, 256, (2048, 128, 128, 3), np.uint8)
        with h5py.File(path, "w") as file:
            file.create_dataset("image", data=pixels, chunks=(1, 128, 128, 3))
            file.create_dataset("label", data=np.arange(2048))
    return H5(str(path))


def make_lmdb(folder):
    import lmdb

    path = folder / "images.lmdb"
    if not path.exists():
        with lmdb.open(str(path), map_size=1 << 30) as env, env.begin(write=True) as writing:
            for index in range(2048):
                writing.put(b"%08d" % index, np.full((128, 128, 3), index % 256, np.uint8).tobytes())
    return Lmdb(str(path))


def make_cv2(folder):
    import cv2

    images = folder / "jpeg"
    if not images.exists():
        images.mkdir()
        noise = np.random.default_rng(2)
        for index in range(400):
            coarse = noise.integers(0, 256, (25, 34, 3), np.uint8)
            cv2.imwrite(str(images / f"{index:04d}.jpg"), cv2.resize(coarse, (500, 375), interpolation=cv2.INTER_CUBIC))
    return Cv2(sorted(map(str, images.glob("*.jpg"))))


# name: (packages, dataset, options of the loader, epochs)
CASES = {
    "tensors, 0.1 ms of work": ((), lambda _: Tensors(4000, (3, 64, 64), 1e-4), {"batch_size": 64}, 1),
    "tensors, 1 ms of work": ((), lambda _: Tensors(1500, (3, 64, 64), 1e-3), {"batch_size": 64}, 1),
    "batches of 64 MB": ((), lambda _: Tensors(1024, (1 << 19,)), {"batch_size": 32}, 1),
    "HDF5 with h5py": (("h5py",), make_h5, {"batch_size": 64, "shuffle": True}, 2),
    "LMDB with lmdb": (("lmdb",), make_lmdb, {"batch_size": 64, "shuffle": True}, 2),
    "cv2 and Albumentations": (("cv2", "albumentations"), make_cv2, {"batch_size": 32, "shuffle": True}, 2),
    "text, padded by collate_fn": ((), lambda _: Text(), {"batch_size": 64, "collate_fn": padded}, 2),
}


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def one_turn(kind, case, folder, workers):
    """Rates and costs of one process, as JSON."""
    if kind == "torch":
        from torch.utils.data import DataLoader
    else:
        from stoker import DataLoader
    _, make, options, epochs = CASES[case]
    dataset = make(Path(folder))
    loader = DataLoader(dataset, num_workers=workers, **options)
    before = descriptors()
    began = time.perf_counter()
    batches = iter(loader)
    batch = next(batches)
    first = time.perf_counter() - began
    most = 0
    for batch in batches:  # noqa: B007
        most = max(most, descriptors() - before)
    rates = []
    for _ in range(epochs):
        start = time.perf_counter()
        for batch in loader:  # noqa: B007
            pass
        rates.append(len(dataset) / (time.perf_counter() - start))
    del batch
    start = time.perf_counter()
    batches = iter(loader)
    next(batches)
    del batches
    turn = time.perf_counter() - start
    me = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak = me + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    result = {"rate": max(rates), "first": first, "turn": turn, "peak": peak / 1024, "descriptors": most}
    print(json.dumps(result), flush=True)


def processes(root):
    """Return a process and all its descendants."""
    found = [root]
    for each in found:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{each}/task"):
                found += map(int, Path(f"/proc/{each}/task/{thread}/children").read_text().split())
    return found


def kilobytes(path, name):
    """Return the number in the line of a file in /proc that begins with the name."""
    return next((int(line.split()[1]) for line in Path(path).read_text().splitlines() if line.startswith(name)), 0)


def held(root):
    """Return the memory of a process and its descendants in bytes: their own, and shared pages once."""
    total, files, shared = 0, 0, {}
    for each in processes(root):
        with contextlib.suppress(OSError):
            total += kilobytes(f"/proc/{each}/smaps_rollup", "Pss_Anon:") * 1024
            files = max(files, kilobytes(f"/proc/{each}/status", "RssFile:") * 1024)
            for link in Path(f"/proc/{each}/fd").iterdir():
                with contextlib.suppress(OSError):
                    if os.readlink(link).startswith(("/memfd:", "/dev/shm/")):
                        file = link.stat()
                        shared[file.st_dev, file.st_ino] = file.st_blocks * 512
    return total + files + sum(shared.values())


def measured(case, kind, folder, workers, memory):
    command = [sys.executable, __file__, "--turn", kind, case, str(folder), str(workers)]
    start = time.perf_counter()
    most = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as turn:
        while memory and not select.select([turn.stdout], [], [], 0.005)[0]:
            most = max(most, held(turn.pid))
        out, err = turn.communicate()
    if turn.returncode:
        raise SystemExit(f"{case}, {kind}: {err[-2000:]}")
    result = json.loads(out) | {"whole": time.perf_counter() - start}
    return result | {"peak": most / 2**20} if memory else result


def compare(case, folder, workers, rounds, memory):
    found = {"torch": [], "stoker": []}
    for _ in range(rounds):
        for kind in found:
            found[kind].append(measured(case, kind, folder, workers, memory))
    middle = {
        kind: {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}
        for kind, turns in found.items()
    }
    theirs, ours = middle["torch"], middle["stoker"]
    print(
        f"| {case} | {theirs['rate']:,.0f} | {ours['rate']:,.0f} | {ours['rate'] / theirs['rate']:.2f} "
        f"| {theirs['first'] * 1e3:.0f} / {ours['first'] * 1e3:.0f} | {theirs['turn'] * 1e3:.0f} / "
        f"{ours['turn'] * 1e3:.0f} | {theirs['peak']:.0f} / {ours['peak']:.0f} "
        f"| {theirs['descriptors']:.0f} / {ours['descriptors']:.0f} |",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", action="store_true", help="sample the memory of all processes together")
    parser.add_argument("--turn", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("case", nargs="*", help="a part of the name of a case")
    args = parser.parse_args()
    if args.turn:
        kind, case, folder, workers = args.turn
        return one_turn(kind, case, folder, int(workers))
    print("| | torch, samples/s | Stoker | ratio | first batch, ms | leaving an epoch, ms | peak, MB | descriptors |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for case, (packages, make, _, _) in CASES.items():
            if args.case and not any(part in case for part in args.case):
                continue
            missing = [name for name in packages if importlib.util.find_spec(name) is None]
            if missing:
                print(f"| {case} | left out: {', '.join(missing)} is not installed |", flush=True)
                continue
            make(Path(folder))
            compare(case, folder, args.workers, args.rounds, args.memory)


if __name__ == "__main__":
    main()
