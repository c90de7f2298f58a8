#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does the GPU wait? Training with batches from several loaders, in one run on the same files.

    bench/train_gpu.py                                   everything; several minutes on one GPU and 16 cores
    bench/train_gpu.py --parts loader,copies,latency     these alone: train, recipes, loader, copies, latency, flat_out
    bench/train_gpu.py --parts recipes --cpus 4          RandAugment, RandomErasing and MixUp for ResNet-50; images and
                                                         masks for DeepLabV3-ResNet-50 (4 CPUs alone)
    bench/train_gpu.py --models resnet18 --rounds 1 --seconds 2 --no-peers
    bench/train_gpu.py --cpus 2,4,8,16 --parts loader    once for each number of CPUs, torch's loaders included
    bench/train_gpu.py --device cpu                      a rehearsal without a GPU: the numbers mean nothing

Without a GPU it says SKIP and why. Writes train_gpu.json and train_gpu.md to --out, and prints the latter.
"""
from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import shlex
import subprocess
import sys
import time
from pathlib import Path

BENCH = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH / "gpu"))
PARTS = ["train", "recipes", "loader", "copies", "latency", "flat_out"]


def words(text):
    return [word for word in text.split(",") if word]


def numbers(text):
    return [int(word) for word in words(text)]


def torch_workers(cpus):
    return sorted({min(8, cpus), cpus})


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=words, default=PARTS)
    parser.add_argument("--models", type=words, default=["resnet18", "resnet50", "vit_s16"])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--data", help="a folder of class folders (default: generated)")
    parser.add_argument("--images", type=int, default=3000, help="how many to generate")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--mask-batch", type=int, default=32, help="of the recipe with masks")
    parser.add_argument("--mask-size", type=int, default=512, help="width and height of its crops")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="Stoker's threads")
    parser.add_argument("--cpus", type=numbers, default=[], help="once for each N of these, on the first N CPUs")
    parser.add_argument("--kept", type=Path, default=BENCH / "data" / "kept",
                        help="a folder for Stoker's index and its list of files that are known to decode")
    parser.add_argument("--torch-workers", type=numbers, default=torch_workers(len(os.sched_getaffinity(0))),
                        help="of torch's loaders (default: the number of CPUs, and 8 if there are more)")
    parser.add_argument("--no-peers", action="store_true", help="only the ceiling and Stoker")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-rounds", type=int, default=1, help="torch's loaders, which are slow, are not a close call")
    parser.add_argument("--seconds", type=float, default=3.0, help="of one measurement")
    parser.add_argument("--warm", type=float, default=1.0, help="seconds before it")
    parser.add_argument("--latency-samples", type=int, default=60)
    parser.add_argument("--out", type=Path, default=BENCH / "data")
    args = parser.parse_args(given)
    unknown = set(args.parts) - set(PARTS)
    if unknown:
        parser.error(f"--parts: {', '.join(sorted(unknown))} is none of {', '.join(PARTS)}")
    return args


def skip_reason(args):
    """Why nothing can be measured here; None: it can."""
    for name in ("torch", "torchvision"):
        if importlib.util.find_spec(name) is None:
            return f"{name} is not installed"
    if args.device == "cpu":
        return None
    # What a training script has that opens its loader before CUDA starts; here the models come first.
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
    import torch

    if not torch.cuda.is_available():
        return "torch sees no CUDA device (--device cpu rehearses without one)"
    return None


def folder_of(args):
    if args.data:
        return Path(args.data)
    from stoker.synth import make_folder
    folder = BENCH / "data" / f"synth-{args.images}"
    begin = time.perf_counter()
    make_folder(folder, args.images, seed=1)
    print(f"== {args.images} generated images in {folder}, {time.perf_counter() - begin:.0f} s", flush=True)
    return folder


def warm_cache(folder):
    files = [path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg")]
    if not files:
        sys.exit(f"{folder} has no JPEG files")
    return len(files), sum(len(path.read_bytes()) for path in files)


def rehearse(args):
    """Small enough for any machine."""
    args.models, args.torch_workers, args.batch = ["rehearsal"], [1], min(args.batch, 16)
    args.images = min(args.images, 60)
    args.workers = min(args.workers, 2)
    args.parts = [part for part in args.parts if part != "copies"]
    return 64  # pixels


def measure(args, size):
    import torch

    import feeds
    import parts
    from measure import Meter

    folder = folder_of(args)
    count, total = warm_cache(folder)
    args.kept.mkdir(parents=True, exist_ok=True)
    setting = feeds.Setting(str(folder), args.device, args.batch, args.workers, size, args.kept)
    cuda = args.device != "cpu"
    if cuda:
        torch.cuda.set_device(args.device)
        torch.backends.cudnn.benchmark = True
    meter = Meter(args.device)
    makers = feeds.makers(setting, [] if args.no_peers else args.torch_workers)
    if args.no_peers:
        makers = {name: make for name, make in makers.items() if not feeds.is_peer(name)}
    found = {
        "command": shlex.join(["bench/train_gpu.py", *sys.argv[1:]]),
        "gpu": torch.cuda.get_device_name(args.device) if cuda else "no GPU: a rehearsal, the numbers mean nothing",
        "setting": [
            f"{count:,} files, {total / count / 1000:.0f} KB on average, in the page cache; batches of {args.batch}, "
            f"RandomResizedCrop({size}), flip, normalise; bf16 autocast, channels_last, SGD",
            f"{len(os.sched_getaffinity(0))} CPUs, {platform.machine()}; Stoker with {args.workers} workers; torch "
            f"{torch.__version__}; medians of {args.rounds} interleaved rounds (torch's loaders: {args.peer_rounds}) of "
            f"{args.seconds:g} s"]
        + ([f"the GPU cannot be watched: {meter.why_no_watch}"] if meter.why_no_watch else []),
        "refused": {},
        "rehearsal": not cuda,
        "cpus": len(os.sched_getaffinity(0)),
    }
    if cuda:
        found["setting"].append(f"JPEG hardware: {feeds.keep_known(setting)}")
        print(f"== {found['setting'][-1]}", flush=True)
    if {"train", "flat_out"} & set(args.parts):
        print("== models", flush=True)
        steps, absent = parts.trainers(args.models, args.device)
        parts.warm_up(steps, meter, setting)
        found["refused"] |= absent
    if "loader" in args.parts:
        print("== the loader alone", flush=True)
        found["loader"], found["loader_about"], refused = parts.loader_alone(meter, makers, args)
        found["refused"] |= refused
    if "copies" in args.parts:
        print("== copies", flush=True)
        found["copies"] = parts.copies(setting, args)
    if "latency" in args.parts:
        print("== latency", flush=True)
        found["latency"] = parts.latency(setting, args)
    if "train" in args.parts:
        print("== training", flush=True)
        found["train"], found["train_about"], refused = parts.train(meter, makers, steps, args)
        found["refused"] |= refused
    if "recipes" in args.parts:
        import recipes

        print("== recipes", flush=True)
        found["recipes"], found["recipes_about"], refused = recipes.measure(meter, setting, args)
        found["refused"] |= refused
        found["setting"].append(recipes.about(args))
    if "flat_out" in args.parts:
        print("== beside a loader that runs flat out", flush=True)
        found["flat_out"] = parts.flat_out(meter, setting, steps, args)
    return found


def by_cpus(args):
    """This program once for each number of CPUs, in a process that has only these. The most first: it makes the files
    known."""
    usable = sorted(os.sched_getaffinity(0))
    for count in sorted(args.cpus, reverse=True):
        print(f"== {count} CPUs", flush=True)
        os.sched_setaffinity(0, usable[:count])
        # The last word on an option holds.
        subprocess.run([sys.executable, __file__, *sys.argv[1:], "--cpus=", "--out", str(args.out / f"{count}-cpus")],
                       check=True)


def main():
    args = arguments()
    why = skip_reason(args)
    if why:
        print(f"SKIP: {why}")
        return
    if args.cpus:
        by_cpus(args)
        return
    size = rehearse(args) if args.device == "cpu" else 224
    began = time.perf_counter()
    found = measure(args, size)
    import tables

    found["took"] = time.perf_counter() - began
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "train_gpu.json").write_text(json.dumps(found, indent=1, default=str) + "\n")
    text = tables.markdown(found)
    (args.out / "train_gpu.md").write_text(text)
    print(f"== all in {found['took']:.0f} s\n\n{text}", flush=True)
    os._exit(0)  # torch's workers and pin thread may take seconds to end


if __name__ == "__main__":
    main()
