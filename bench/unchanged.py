#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast does a script train that was not changed? `python -m stoker` beside torch's loader and beside data that is on the
GPU already (the ceiling), for torchvision's ImageFolder and for an own dataset with Pillow, on some numbers of CPUs.

    bench/unchanged.py                                           everything; about half an hour on one GPU and 16 cores
    bench/unchanged.py --models resnet50 --datasets imagefolder --cpus 4 --ways ceiling,stoker
    bench/unchanged.py --device cpu                              a rehearsal without a GPU: the numbers mean nothing

Ways: ceiling, torch, pinned (STOKER_DEVICE_BATCHES=0) and stoker (STOKER_DEVICE_BATCHES=1). Each is a process of its own, on
the first N CPUs. Without a GPU it says SKIP. Writes unchanged.json and unchanged.md to --out, and prints the latter.
"""
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent
SCRIPT = BENCH / "gpu" / "unchanged_script.py"
WAYS = {"ceiling": ["--resident"], "torch": [], "pinned": [], "stoker": []}
HEADS = {"ceiling": "ceiling", "torch": "torch", "pinned": "`python -m stoker`, pinned batches", "stoker": "`python -m stoker`"}


def words(text):
    return [word for word in text.split(",") if word]


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=words, default=["resnet50", "resnet18"])
    parser.add_argument("--datasets", type=words, default=["imagefolder", "own"])
    parser.add_argument("--cpus", type=words, default=["16", "4"])
    parser.add_argument("--ways", type=words, default=list(WAYS))
    parser.add_argument("--data", type=Path, help="a folder of class folders (default: generated)")
    parser.add_argument("--images", type=int, default=3000, help="how many to generate")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6.0, help="of one measurement")
    parser.add_argument("--warm", type=float, default=8.0, help="seconds before it")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=BENCH / "data")
    args = parser.parse_args(given)
    unknown = set(args.ways) - set(WAYS) | set(args.datasets) - {"imagefolder", "own"}
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: there is no such way or dataset")
    return args


def folder_of(args):
    if args.data:
        return args.data
    from stoker.synth import make_folder

    return make_folder(BENCH / "data" / f"synth-{args.images}", args.images, seed=1)


def measured(args, folder, model, dataset, cpus, way):
    """Run the script once; None if it failed."""
    usable = sorted(os.sched_getaffinity(0))[: int(cpus)]
    command = [sys.executable, *(["-m", "stoker"] if way in ("pinned", "stoker") else []), str(SCRIPT), str(folder)]
    command += ["--model", model, "--dataset", dataset, "--workers", cpus, "--device", args.device, "--batch", str(args.batch)]
    command += ["--seconds", str(args.seconds), "--warm", str(args.warm), *WAYS[way]]
    environment = {**os.environ, "STOKER_DEVICE_BATCHES": "0" if way == "pinned" else "1"}
    done = subprocess.run(
        ["taskset", "-c", ",".join(map(str, usable)), *command], stdout=subprocess.PIPE, text=True, env=environment,
        timeout=20 * (args.warm + args.seconds) + 300, check=False,
    )  # fmt: skip
    if done.returncode:
        print(f"   {way} failed with status {done.returncode}", flush=True)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def measure(args, folder):
    found = []
    for model in args.models:
        ceilings = []
        for dataset in args.datasets:
            for cpus in args.cpus:
                row = {"model": model, "dataset": dataset, "cpus": int(cpus), "plans": {}}
                for way in args.ways:
                    if way == "ceiling" and ceilings:
                        runs = ceilings  # it reads no files
                    else:
                        runs = [measured(args, folder, model, dataset, cpus, way) for _ in range(args.rounds)]
                        runs = [run for run in runs if run]
                    if way == "ceiling":
                        ceilings = runs
                    row[way] = statistics.median(run["rate"] for run in runs) if runs else None
                    row["plans"][way] = runs[-1]["plan"] if runs else ""
                    print(f"== {model}, {dataset}, {cpus} CPUs, {way}: {row[way] or 0:,.0f} images/s  {row['plans'][way]}",
                          flush=True)
                found.append(row)
    return found


def markdown(args, rows):
    head = ["model, dataset, CPUs", *(HEADS[way] for way in args.ways)]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in rows:
        cells = [f"{row['model']}, {row['dataset']}, {row['cpus']}"]
        for way in args.ways:
            share = f" ({100 * row[way] / row['ceiling']:.1f} %)" if row[way] and row.get("ceiling") else ""
            cells.append(f"{row[way]:,.0f}{share}" if row[way] else "failed")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    args = arguments()
    if args.device != "cpu":
        import torch

        if not torch.cuda.is_available():
            print("SKIP: torch sees no CUDA device (--device cpu rehearses without one)")
            return
    folder = folder_of(args)
    for path in Path(folder).rglob("*.jpg"):
        path.read_bytes()  # into the page cache
    rows = measure(args, folder)
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "unchanged.json").write_text(json.dumps(rows, indent=1) + "\n")
    text = markdown(args, rows)
    (args.out / "unchanged.md").write_text(text)
    print(f"\n{text}", flush=True)


if __name__ == "__main__":
    main()
