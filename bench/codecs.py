#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each image format, on one CPU: files decoded whole, and made training samples, beside the libraries that people use.

    bench/codecs.py FOLDER [--rounds 7] [--images 32] [--out DIR]

FOLDER has JPEG photographs, such as bench/photographs.py makes. They are saved again in each format by Pillow. Training samples
are what a DataLoader has to make: RandomResizedCrop(224) (of images of 32 x 32: RandomCrop(32, padding=4)), flip, tensor,
Normalize. Decoded whole is RGB. Files come from the page cache. Contestants take turns in one process on one CPU; what counts is
CPU time per image, the best of the rounds. Stoker is a loader with one worker, which also makes batches; the others call their
functions: Pillow and torchvision's v1, OpenCV and Albumentations, torchvision.io and v2. Writes RESULTS-codecs.md to --out.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import albumentations as A
import cv2
import numpy as np
import PIL
import stoker
import torch
import torchvision
from albumentations.pytorch import ToTensorV2
from PIL import Image
from stoker import transforms as T
from torchvision import transforms as v1
from torchvision.io import ImageReadMode, decode_image, read_file
from torchvision.transforms import v2

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# ending, what Pillow's save is told, and the side of images that are not as large as the photographs
FORMATS = {
    "JPEG": (".jpg", {"quality": 90}, None),
    "JPEG, progressive": (".jpg", {"quality": 90, "progressive": True}, None),
    "PNG": (".png", {}, None),
    "PNG, 32 x 32": (".png", {}, 32),
    "WebP": (".webp", {"quality": 85}, None),
    "TIFF, LZW": (".tif", {"compression": "tiff_lzw"}, None),
    "BMP": (".bmp", {}, None),
}
WITHOUT_TORCHVISION_IO = {"TIFF, LZW", "BMP"}
HEAD = """\
| format | stoker, ms | Pillow, ms | OpenCV, ms | torchvision.io, ms | against the best other |
|---|---|---|---|---|---|"""
Run = Callable[[], object]


def save_as(kind: str, photographs: list[Path], root: Path) -> list[Path]:
    ending, options, side = FORMATS[kind]
    folder = root / kind / "one class"
    folder.mkdir(parents=True)
    for number, path in enumerate(photographs):
        image = Image.open(path).convert("RGB")
        if side:
            image = image.resize((side, side), Image.Resampling.BILINEAR)
        image.save(folder / f"{number:04}{ending}", **options)
    return sorted(folder.iterdir())


def opened(path: Path) -> Image.Image:
    return Image.open(path).convert("RGB")


def tensor_of(path: Path) -> torch.Tensor:
    return decode_image(read_file(str(path)), mode=ImageReadMode.RGB)


def array_of(path: Path) -> np.ndarray:
    return cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB)


def loader(files: list[Path], transform: object) -> Run:
    data = stoker.datasets.ImageFolder(files[0].parent.parent, transform)
    batches = stoker.DataLoader(data, batch_size=len(files), num_workers=1, shuffle=True, seed=1)
    return lambda: [None for _ in batches]


def each(files: list[Path], make: Callable[[Path], object]) -> Run:
    return lambda: [make(path) for path in files][:0]


def whole(kind: str, files: list[Path]) -> dict[str, Run]:
    runs = {
        "stoker": loader(files, T.Compose([T.PILToTensor()])),
        "Pillow": each(files, opened),
        "OpenCV": each(files, array_of),
    }
    if kind not in WITHOUT_TORCHVISION_IO:
        runs["torchvision.io"] = each(files, tensor_of)
    return runs


def training(kind: str, files: list[Path]) -> dict[str, Run]:
    small = FORMATS[kind][2] == 32
    steps = {
        "stoker": [T.RandomCrop(32, 4) if small else T.RandomResizedCrop(224)],
        "v1": [v1.RandomCrop(32, 4) if small else v1.RandomResizedCrop(224)],
        "v2": [v2.RandomCrop(32, 4) if small else v2.RandomResizedCrop(224)],
        "A": [A.PadIfNeeded(40, 40), A.RandomCrop(32, 32)] if small else [A.RandomResizedCrop((224, 224))],
    }
    ours = T.Compose([*steps["stoker"], T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)])
    first = v1.Compose([*steps["v1"], v1.RandomHorizontalFlip(), v1.ToTensor(), v1.Normalize(MEAN, STD)])
    to_float = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    second = v2.Compose([*steps["v2"], v2.RandomHorizontalFlip(), *to_float])
    arrays = A.Compose([*steps["A"], A.HorizontalFlip(), A.Normalize(MEAN, STD), ToTensorV2()])
    runs = {
        "stoker": loader(files, ours),
        "Pillow": each(files, lambda path: first(opened(path))),
        "OpenCV": each(files, lambda path: arrays(image=array_of(path))),
    }
    if kind not in WITHOUT_TORCHVISION_IO:
        runs["torchvision.io"] = each(files, lambda path: second(tensor_of(path)))
    return runs


def measure(runs: dict[str, Run], rounds: int, images: int) -> dict[str, float]:
    """Milliseconds of CPU per image."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            begin, count = time.process_time(), 0
            while count == 0 or time.process_time() - begin < 0.05:
                run()
                count += 1
            best[name] = min(best[name], (time.process_time() - begin) / count / images * 1e3)
    return best


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def row(kind: str, times: dict[str, float]) -> str:
    others = {name: took for name, took in times.items() if name != "stoker"}
    nearest = min(others, key=others.__getitem__)
    cells = [f"{times[name]:.3f}" if name in times else "" for name in ("stoker", "Pillow", "OpenCV", "torchvision.io")]
    return f"| {kind} | {' | '.join(cells)} | {others[nearest] / times['stoker']:.1f} times {nearest} |"


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--images", type=int, default=32)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    return parser.parse_args(given)


def main() -> None:
    args = arguments()
    photographs = sorted(args.folder.rglob("*.jpg"))[: args.images]
    if not photographs:
        raise SystemExit(f"{args.folder}: there are no .jpg files; bench/photographs.py makes some")
    cpu = max(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cpu})
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    size = sum(path.stat().st_size for path in photographs) // len(photographs) // 1000
    text = [
        "# Results: image formats on one core\n",
        f"Made by `bench/codecs.py FOLDER --rounds {args.rounds} --images {len(photographs)}` on {datetime.date.today()}:",
        "milliseconds of CPU per image. What is compared, and how, stands in the program.\n",
        f"- Machine: {processor()}",
        f"- Versions: Python {platform.python_version()}, torch {torch.__version__}, torchvision {torchvision.__version__},",
        f"  Pillow {PIL.__version__}, OpenCV {cv2.__version__}, Albumentations {A.__version__}",
        f"- Data: {len(photographs)} photographs, {size} KB on average before they were saved again",
    ]
    with tempfile.TemporaryDirectory() as root:
        saved = {kind: save_as(kind, photographs, Path(root)) for kind in FORMATS}
        for title, contestants in (("Training samples", training), ("Decoded whole", whole)):
            text += [f"\n## {title}\n", HEAD]
            for kind, files in saved.items():
                text.append(row(kind, measure(contestants(kind, files), args.rounds, len(files))))
                print(text[-1], flush=True)
    (args.out / "RESULTS-codecs.md").write_text("\n".join(text) + "\n")


if __name__ == "__main__":
    main()
