#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""num_workers="auto" against explicit counts, on 2, 4, 8 and 16 CPUs.

    bench/auto_workers.py [--data DIR] [--cpus 2,4,8,16] [--scenes warm,busy,cold,http,step] [--rounds 5] [--seconds 0.4]

Scenes: `warm`, files in the page cache; `busy`, the same with a training thread that computes half of the time;
`cold`, files taken out of the page cache before each turn; `http`, a tar file by URL, each request 10 ms late;
`step`, files in the page cache and a consumer that sleeps after each batch for three times as long as all CPUs
take to make one (0.2 s at most), and does not in the second half of each turn (of 24 s at least: the tuner has to notice): a line
for each half. There auto's prefetch is left to it too.
Each contestant is a process of its own, pinned to the CPUs in question, whose loader stays open; they take turns,
in another order each round. A ratio is the median of the ratios of the rounds. Prints a JSON line for each case,
then a table. Targets: auto within 3 % of the best count; with a busy thread no slower than CPUs - 1.

With the default data (generated: 250 pictures, eight copies of each) it takes less than four minutes.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from late_server import late_server

BATCH, LATE_MS, PICTURES, COPIES = 64, 10, 250, 8
STEP_SECONDS, PAUSE_MOST = 24.0, 0.2


# ---- a contestant: opens its loader once, and then runs whenever a line says for how long ------------------


def contest(data: str, workers: str, busy: bool, stepped: bool) -> None:
    import stoker
    from stoker import transforms as T

    steps = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor()])
    remote = data.startswith("http")
    dataset = stoker.open(data, transform=steps) if remote else stoker.datasets.ImageFolder(data, transform=steps)
    loader = stoker.DataLoader(
        dataset,
        batch_size=BATCH,
        shuffle=True,
        drop_last=True,
        seed=1,
        num_workers=workers if workers == "auto" else int(workers),
        prefetch_factor=None if stepped and workers == "auto" else 4,
        output="numpy",
    )
    for epoch, line in enumerate(sys.stdin):
        seconds, pause = map(float, line.split())
        images = slow_images = 0
        loader.set_epoch(epoch)
        began = last = time.perf_counter()
        slow_until = began + seconds / 2 if pause else began
        for batch in itertools.chain.from_iterable(itertools.repeat(loader) if seconds else [loader]):
            images += len(batch[0])
            now = time.perf_counter()
            if seconds and now - began > seconds:
                break
            if now < slow_until:
                slow_images, slow_last = images, now
                time.sleep(pause)
            until = now + (now - last)
            while busy and time.perf_counter() < until:
                pass
            last = time.perf_counter()
        ended, stats = time.perf_counter(), loader.stats()
        slow = slow_images / (slow_last - began) if slow_images else 0.0
        fast = (images - slow_images) / (ended - slow_last) if slow_images else images / (ended - began)
        result = {"rate": fast, "slow": slow, "workers": stats["workers"], "tuning": stats["tuning"]}
        print(json.dumps(result), flush=True)


class Contestant:
    def __init__(self, data: str, workers: str, cpus: int, scene: str) -> None:
        command = [sys.executable, __file__, "--contest", data, workers]
        command += [f"--{scene}"] if scene in ("busy", "step") else []
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cpus]),
        )
        self.rates: list[float] = []
        self.slow_rates: list[float] = []

    def turn(self, seconds: float, pause: float = 0, counts: bool = True) -> float:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{seconds} {pause}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("a contestant ended with an error")
        result = json.loads(line)
        self.workers, self.tuning = result["workers"], result["tuning"]
        if counts:
            self.rates.append(result["rate"])
            self.slow_rates.append(result["slow"])
        return result["rate"]

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


# ---- data ------------------------------------------------------------------------------------------------


def generate(root: Path) -> Path:
    from stoker.synth import make_folder

    base, folder = Path(make_folder(root / "pictures", count=PICTURES)), root / "copies"
    for path in sorted(base.rglob("*.jp*g")):
        (folder / path.parent.name).mkdir(parents=True, exist_ok=True)
        for k in range(COPIES):
            shutil.copyfile(path, folder / path.parent.name / f"{k}-{path.name}")
    os.sync()
    return folder


def pack(root: Path, files: list[Path]) -> Path:
    path = root / "pictures.tar"
    with tarfile.open(path, "w") as tar:
        for number, file in enumerate(files):
            tar.add(file, f"{number:06d}.jpg")
    return path


def forget(files: list[Path]) -> None:
    """Takes the files out of the page cache."""
    for file in files:
        fd = os.open(file, os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


# ---- one case ----------------------------------------------------------------------------------------------


def counts_for(cpus: int) -> list[str]:
    return ["auto", *(str(n) for n in sorted({max(cpus - 1, 1), cpus, cpus + 1, cpus + max(cpus // 4, 1)}))]


def case(scene: str, cpus: int, data: str, files: list[Path], args: argparse.Namespace) -> list[dict[str, Any]]:
    contestants = {name: Contestant(data, name, cpus, scene) for name in counts_for(cpus)}
    order, rng, pause = list(contestants), random.Random(1), 0.0
    try:
        for name in order:
            contestants[name].turn(args.seconds / 2, counts=False)
        if scene == "step":
            pause = min(3 * BATCH / contestants[str(cpus)].turn(args.seconds, counts=False), PAUSE_MOST)
        for _ in range(args.rounds):
            rng.shuffle(order)
            for name in order:
                if scene == "cold":
                    forget(files)
                seconds = {"cold": 0.0, "step": max(args.seconds, STEP_SECONDS)}.get(scene, args.seconds)
                contestants[name].turn(seconds, pause)
    finally:
        for contestant in contestants.values():
            contestant.close()
    workers, tuning = contestants["auto"].workers, contestants["auto"].tuning
    fast = {name: c.rates for name, c in contestants.items()}
    if scene != "step":
        return [outcome(scene, cpus, workers, tuning, fast)]
    slow = {name: c.slow_rates for name, c in contestants.items()}
    return [outcome("step: slow", cpus, workers, tuning, slow), outcome("step: fast", cpus, workers, tuning, fast)]


def outcome(
    scene: str, cpus: int, workers: int, tuning: dict[str, Any], rates: dict[str, list[float]]
) -> dict[str, Any]:
    medians = {name: statistics.median(values) for name, values in rates.items()}
    ratios = {
        name: statistics.median(a / b for a, b in zip(rates["auto"], values, strict=True))
        for name, values in rates.items()
        if name != "auto"
    }
    best = max(ratios, key=lambda name: medians[name])
    less = str(max(cpus - 1, 1))
    return {
        "scene": scene,
        "cpus": cpus,
        "auto_workers": workers,
        "tuning": tuning,
        "images_per_second": {name: round(rate) for name, rate in medians.items()},
        "best": best,
        "auto_to_best": round(ratios[best], 3),
        "auto_to_cpus_less_one": round(ratios[less], 3),
        "reached": ratios[less] >= 1 if scene == "busy" else ratios[best] >= 0.97,
    }


def table(results: list[dict[str, Any]]) -> str:
    lines = ["| scene | CPUs | auto, img/s | best | auto to best | auto to CPUs - 1 | |", "|---|---|---|---|---|---|---|"]
    for r in results:
        rates, best = r["images_per_second"], r["best"]
        lines.append(
            f"| {r['scene']} | {r['cpus']} | {rates['auto']:,} ({r['auto_workers']}) | {rates[best]:,} ({best}) | "
            f"{r['auto_to_best']:.3f} | {r['auto_to_cpus_less_one']:.3f} | {'' if r['reached'] else 'missed'} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder of class folders (default: generated)")
    parser.add_argument("--cpus", default="2,4,8,16")
    parser.add_argument("--scenes", default="warm,busy,cold,http")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4)
    parser.add_argument("--contest", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--busy", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--step", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.contest:
        contest(*args.contest, args.busy, args.step)
        return
    have, results = len(os.sched_getaffinity(0)), []
    with tempfile.TemporaryDirectory(prefix="stoker-auto-") as folder, contextlib.ExitStack() as stack:
        root = Path(folder)
        data = args.data or generate(root)
        files = sorted(p for p in data.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
        scenes = args.scenes.split(",")
        url = stack.enter_context(late_server(pack(root, files), LATE_MS)) if "http" in scenes else ""
        for scene, cpus in itertools.product(scenes, map(int, args.cpus.split(","))):
            if cpus > have:
                print(f"# {scene}, {cpus} CPUs: left out, there are {have}", flush=True)
                continue
            try:
                lines = case(scene, cpus, url if scene == "http" else str(data), files, args)
            except RuntimeError as error:
                print(f"# {scene}, {cpus} CPUs: left out, {error}", flush=True)
                continue
            results += lines
            print(*map(json.dumps, lines), sep="\n", flush=True)
    print("\n" + table(results))


if __name__ == "__main__":
    main()
