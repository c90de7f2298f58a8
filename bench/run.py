#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stoker and its peers on the same files with the same number of workers.

    bench/run.py                          everything that installs; RESULTS.md and results.svg
    bench/run.py --quick                  a look: few images, short rounds, nothing installed
    bench/run.py --data DIR               real images instead of generated ones
    bench/run.py --only stoker "bare decode" --workers 1,2,4,8,16
"""
from __future__ import annotations

import argparse
import json
import shlex
import statistics
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent / "peers")]
import contestants
import report
from contestants import BARE, BENCH, PEERS, Refused
from harness import image_paths


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="a folder of class folders (default: generated)")
    parser.add_argument("--images", type=int, help="how many to generate (default 1000)")
    parser.add_argument("--workers", help="worker counts, such as 1,2 (default: 1 and all CPUs)")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, help="default 5")
    parser.add_argument("--seconds", type=float, help="of one measurement (default 5)")
    parser.add_argument("--only", nargs="+", choices=[BARE, *PEERS], help="these alone")
    parser.add_argument("--no-install", action="store_true", help="only what is installed already")
    parser.add_argument("--no-targets", action="store_true", help="leave out first batch, memory, epoch start")
    parser.add_argument("--out", type=Path, default=BENCH, help="where RESULTS.md goes")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    quick = args.quick
    args.images = args.images or (100 if quick else 1000)
    args.rounds = args.rounds or (1 if quick else 5)
    args.seconds = args.seconds or (1 if quick else 5)
    args.no_install |= quick
    return args


def worker_counts(text):
    if text:
        return sorted({int(n) for n in text.split(",")})
    import os
    return sorted({1, len(os.sched_getaffinity(0))})


def prepare(args):
    """The folder, its files (read once: the page cache is warm), and words about them."""
    if args.data:
        folder, what = Path(args.data), "files of the user's own"
    else:
        from stoker.synth import make_folder
        folder = BENCH / "data" / f"synth-{args.images}"
        print(f"== {args.images} generated images in {folder}", flush=True)
        make_folder(folder, args.images, seed=1)
        what = "generated images (stoker.synth, seed 1)"
    files = [path for path, _ in image_paths(folder)]
    if not files:
        sys.exit(f"{folder} has no JPEG files in class folders")
    size = sum(len(Path(f).read_bytes()) for f in files)
    return folder, files, f"{len(files):,} {what}, {size / len(files) / 1000:.0f} KB on average"


def install(names, allowed):
    pythons, refused = {BARE: None}, {}
    for name in names:
        if name != BARE:
            try:
                pythons[name] = contestants.interpreter(name, PEERS[name], allowed)
            except Refused as why:
                refused[name] = str(why)
                print(f"   {name}: {why}", flush=True)
    return pythons, refused


def rounds(args, names, pythons, refused, folder, files, counts):
    """results[name][workers] is a list of measurements, one a round."""
    results = {}
    for number in range(args.rounds):
        for name in names:
            for workers in counts:
                if name in refused or number >= contestants.rounds_of(name, args.rounds):
                    continue
                try:
                    got = contestants.run(name, pythons[name], folder, files, workers, args.batch, args.seconds)
                except Refused as why:
                    refused[name] = str(why)
                    results.pop(name, None)
                    print(f"   {name}: {why}", flush=True)
                    continue
                results.setdefault(name, {}).setdefault(workers, []).append(got)
                print(f"   round {number + 1}/{args.rounds}  {name:<18} {workers:>2} workers "
                      f"{got['rate']:>8,.0f} img/s", flush=True)
    return results


def median(measurements):
    """The measurement with the median rate's value in every field."""
    return {key: statistics.median(m[key] for m in measurements) for key in measurements[0]}


def main():
    args = arguments()
    names = args.only or [BARE, *PEERS]
    counts = worker_counts(args.workers)
    folder, files, data = prepare(args)
    print("== contestants", flush=True)
    pythons, refused = install(names, not args.no_install)
    results = rounds(args, [n for n in names if n in pythons], pythons, refused, folder, files, counts)
    medians = {name: {n: median(runs) for n, runs in by_workers.items()} for name, by_workers in results.items()}
    extra = None
    if not args.no_targets:
        import targets
        print("== first batch, memory, epoch start", flush=True)
        extra = targets.measure(files, min(2, counts[-1]), args.quick)
    args.out.mkdir(parents=True, exist_ok=True)
    command = shlex.join(["bench/run.py", *sys.argv[1:]]) if sys.argv[1:] else "make bench"
    report.write(args.out, command, data, medians, counts, refused, extra, args.rounds, args.seconds)
    try:
        report.plot(args.out, medians, counts)
    except ImportError:
        print("== no plot: matplotlib is not installed")
    everything = {"data": data, "rates": results, "extra": extra}
    (args.out / "results.json").write_text(json.dumps(everything, indent=1) + "\n")
    print((args.out / "RESULTS.md").read_text())


main()
