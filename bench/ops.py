#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each augmentation alone, and whole recipes from the file to the tensor, on one CPU, against the libraries that have them.

    bench/ops.py FOLDER                        # an ImageFolder of photographs, such as bench/photographs.py makes
    bench/ops.py                               # generated images
    bench/ops.py FOLDER --only rotation SimCLR --who stoker "torchvision v1"

Every contestant is a process on the same CPU, and they take turns: what counts is CPU time per image, the best of the
rounds. Images in memory are the middle squares of the files, 256 x 256. All make batches: peers/ops_harness.py says how.
RESULTS-ops.md and ops.svg are written.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent / "peers")]
import contestants
import report
from contestants import BENCH, BUILD, STOKER, Refused
from ops_harness import TARGETS, files_of, mask_of

# name in the tables: file under peers/
WHO = {
    STOKER: "ops_stoker",
    "torchvision v1": "ops_torchvision_v1",
    "torchvision v2": "ops_torchvision_v2",
    "Albumentations": "ops_albumentations",
    "Kornia": "ops_kornia",
    "DALI": "ops_dali",
}
OPS = (
    "none", "horizontal flip", "vertical flip", "crop 224", "pad 16, reflected", "resize to 224", "resized crop 224",
    "rotation", "affine", "perspective", "elastic", "jitter", "brightness", "contrast", "saturation", "hue",
    "photometric distortion", "greyscale", "Gaussian blur 5", "Gaussian blur 23", "invert", "posterize", "solarize",
    "sharpness", "autocontrast", "equalize", "AutoAugment", "RandAugment", "TrivialAugment", "normalize", "erasing",
)  # fmt: skip
RECIPES = (
    "crop and flip", "TrivialAugment", "RandAugment", "AutoAugment", "SimCLR", "DINO, 8 crops", "timm, rand-m9",
    "segmentation", "detection, several sizes", "detection, large-scale jitter", "detection, SSD",
    "Albumentations, segmentation", "Albumentations, YOLO",
)  # fmt: skip


class Contestant:
    """A process that measures what it is asked for."""

    def __init__(self, name: str, python: str, folder: Path) -> None:
        self.name = name
        command = [python, str(BENCH / "peers" / f"{WHO[name]}.py"), str(folder)]
        log = (BUILD / f"{WHO[name]}.log").open("w")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)

    def ask(self, kind: str, name: str, seconds: float) -> dict:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"kind": kind, "name": name, "seconds": seconds}) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"failed": f"it ended: see {BUILD / WHO[self.name]}.log"}

    def end(self) -> None:
        self._process.communicate()


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="a folder of class folders of JPEGs (default: generated)")
    parser.add_argument("--only", nargs="+", choices=sorted({*OPS, *RECIPES}), metavar="ROW", help="these rows alone")
    parser.add_argument("--who", nargs="+", choices=list(WHO), default=list(WHO), help="these contestants alone")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1, help="of CPU time, of one measurement (default 1)")
    parser.add_argument("--no-install", action="store_true", help="only what is installed already")
    parser.add_argument("--out", type=Path, default=BENCH, help="where RESULTS-ops.md goes")
    return parser.parse_args()


def data_of(folder: Path | None) -> tuple[Path, str]:
    if folder is None:
        from stoker.synth import make_folder

        folder = BENCH / "data" / "synth-64"
        make_folder(folder, 64, seed=1)
        return folder, "64 generated images (stoker.synth, seed 1)"
    files = list(folder.rglob("*.jpg"))
    if not files:
        sys.exit(f"{folder} has no JPEG files (*.jpg)")
    size = sum(path.stat().st_size for path in files) / len(files)
    return folder, f"{len(files)} photographs, {size / 1000:.0f} KB on average"


def draw_targets(folder: Path) -> None:
    """Write a mask and some boxes for each image. What they show does not matter here."""
    from PIL import Image

    shutil.rmtree(TARGETS, ignore_errors=True)
    images, annotations, numbers = [], [], random.Random(1)
    for id_, path in enumerate(files_of(folder)):
        with Image.open(path) as image:
            width, height = image.size
            mask = Path(mask_of(folder, path))
            mask.parent.mkdir(parents=True, exist_ok=True)
            image.convert("L").point(lambda level: level // 32).save(mask)
        images.append({"id": id_, "file_name": str(Path(path).relative_to(folder)), "width": width, "height": height})
        for _ in range(5):
            left, top = numbers.uniform(0, 0.7) * width, numbers.uniform(0, 0.7) * height
            box = [left, top, numbers.uniform(0.1, 0.3) * width, numbers.uniform(0.1, 0.3) * height]
            more = {"category_id": 1, "area": box[2] * box[3], "iscrowd": 0}
            annotations.append({"id": len(annotations) + 1, "image_id": id_, "bbox": box, **more})
    about = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "thing"}]}
    (TARGETS / "boxes.json").write_text(json.dumps(about))


def started(names: list[str], folder: Path, install: bool) -> tuple[list[Contestant], dict[str, str]]:
    BUILD.mkdir(parents=True, exist_ok=True)
    taking_part, refused = [], {}
    for name in names:
        try:
            taking_part.append(Contestant(name, contestants.interpreter(name, WHO[name], install), folder))
        except Refused as why:
            refused[name] = str(why)
            print(f"   {name}: {why}", flush=True)
    return taking_part, refused


def measured(kind: str, name: str, taking_part: list[Contestant], args: argparse.Namespace) -> dict[str, dict]:
    """Return the best of the rounds of each contestant that has it."""
    best: dict[str, dict] = {}
    absent = set()
    for _ in range(args.rounds):
        for contestant in taking_part:
            if contestant.name in absent:
                continue
            said = contestant.ask(kind, name, args.seconds)
            if "ms" not in said:
                absent.add(contestant.name)
                if "failed" in said:
                    best[contestant.name] = said
            elif said["ms"] < best.get(contestant.name, {"ms": float("inf")})["ms"]:
                best[contestant.name] = said
    shown = "  ".join(f"{who} {cell(got)}" for who, got in best.items())
    print(f"   {name:28} {shown}", flush=True)
    return best


def cell(got: dict | None) -> str:
    if got is None:
        return ""
    return f"{got['ms']:.3f}" if "ms" in got else got["failed"]


def ratio_of(row: dict[str, dict]) -> tuple[float, str] | None:
    """Return how many times as fast Stoker is as the best of the others, and which that is."""
    others = {who: got["ms"] for who, got in row.items() if who != STOKER and "ms" in got}
    if not others or "ms" not in row.get(STOKER, {}):
        return None
    best = min(others, key=others.__getitem__)
    return others[best] / row[STOKER]["ms"], best


def table(rows: dict[str, dict[str, dict]], names: list[str]) -> list[str]:
    lines = ["| | " + " | ".join(f"{name}, ms" for name in names) + " | against the best other |"]
    lines.append("|" + "---|" * (len(names) + 2))
    for what, row in rows.items():
        ratio = ratio_of(row)
        end = "" if ratio is None else f"{ratio[0]:.1f} times {ratio[1]}"
        lines.append(f"| {what} | " + " | ".join(cell(row.get(name)) for name in names) + f" | {end} |")
    return lines


def summary(rows: dict[str, dict[str, dict]], wanted: float, what: str) -> str:
    ratios = {name: ratio[0] for name, row in rows.items() if (ratio := ratio_of(row)) is not None}
    if not ratios:
        return f"{what}: nothing to compare."
    behind = [name for name, ratio in ratios.items() if ratio < 1]
    reached = sum(ratio >= wanted for ratio in ratios.values())
    return (
        f"{what}: the median of {len(ratios)} ratios is {statistics.median(ratios.values()):.1f}; {reached} are at least "
        f"{wanted:g}; behind the best other: {', '.join(behind) or 'none'}."
    )


def write(args: argparse.Namespace, data: str, results: dict[str, dict], names: list[str], refused: dict[str, str]) -> None:
    command = shlex.join(["bench/ops.py", *sys.argv[1:]])
    notes = [f"{name}: {contestants.constants(WHO[name])['NOTE']}" for name in names]
    lines = [
        "# Results: augmentation on one core", "",
        f"Made by `{command}` on {time.strftime('%Y-%m-%d')}.", "",
        f"- Machine: {report.machine()}", f"- Versions: {report.versions()}", f"- Data: {data}",
        f"- CPU milliseconds per image, the best of {args.rounds} rounds in which the contestants took turns, each a process on the "
        "same CPU. Ops: 256 x 256 pixels in memory. Recipes: from the file to the tensor.",
        "- Each library has its own arithmetic: Pillow's and torchvision's resizes filter where OpenCV's take two pixels, and "
        'OpenCV blurs in integers. Stoker has torchvision\'s here, but for the last two recipes; "none" is what it needs without '
        "any op, to copy an image into a batch.",
        "- Every contestant makes batches, as training needs them. Those whose calls take one image copy each result into a batch in "
        "the cheapest way there is, into memory that exists already and in the layout that the result has: arrays remain height x "
        "width x channels, where Stoker puts channels first. In recipes with masks or boxes they copy nothing.",
        *(f"- {note}" for note in notes), *(f"- {name} did not take part: {why}" for name, why in refused.items()), "",
        f"- {summary(results['op'], 2, 'Ops')}", f"- {summary(results['recipe'], 3, 'Recipes')}", "",
        "## Ops", "", *table(results["op"], names), "", "## Recipes", "", *table(results["recipe"], names), "",
        "![how many times as fast as the best other](ops.svg)",
    ]  # fmt: skip
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "RESULTS-ops.md").write_text("\n".join(lines) + "\n")


def plot(out: Path, results: dict[str, dict]) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "stoker"
    from matplotlib import pyplot

    found = [(name, ratio[0], kind) for kind, rows in results.items() for name, row in rows.items() if (ratio := ratio_of(row))]
    found.reverse()
    figure, axes = pyplot.subplots(figsize=(8, 0.24 * len(found) + 1.2))
    colours = {"op": pyplot.cm.Blues(0.6), "recipe": pyplot.cm.Blues(0.9)}
    bars = axes.barh(range(len(found)), [ratio for _, ratio, _ in found], color=[colours[kind] for _, _, kind in found])
    axes.bar_label(bars, fmt="{:,.1f}", padding=3, fontsize=7)
    axes.set_yticks(range(len(found)), [name for name, _, _ in found], fontsize=8)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("times as fast as the best other library (dark: recipes from files)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(out / "ops.svg", metadata={"Date": None})


def main() -> None:
    args = arguments()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    folder, data = data_of(args.folder)
    draw_targets(folder)
    taking_part, refused = started(args.who, folder, not args.no_install)
    results = {
        kind: {name: measured(kind, name, taking_part, args) for name in rows if not args.only or name in args.only}
        for kind, rows in (("op", OPS), ("recipe", RECIPES))
    }
    for contestant in taking_part:
        contestant.end()
    names = [contestant.name for contestant in taking_part]
    write(args, data, results, names, refused)
    plot(args.out, results)
    print((args.out / "RESULTS-ops.md").read_text())


if __name__ == "__main__":
    main()
