# SPDX-License-Identifier: Apache-2.0
"""The demonstration: one epoch with torch's DataLoader, one with Stoker, side by side.

    stoker demo                     # or: python -m stoker.demo
    stoker demo --data train        # your own folder, with one subfolder per class
"""
from __future__ import annotations

import argparse
import importlib.util
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
STAGES = {"read": "waiting for the bytes of a file", "decode": "JPEG to pixels",
          "augment": "crop, resize, flip, normalize", "slot": "waiting for the consumer"}


# ---- one epoch, in a separate process --------------------------------------------------------------


def torch_loader(folder, workers, batch):
    from torch.utils.data import DataLoader
    from torchvision import transforms as T
    from torchvision.datasets import ImageFolder

    data = ImageFolder(folder, T.Compose([
        T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]))
    return DataLoader(data, batch_size=batch, shuffle=True, num_workers=workers)


def stoker_loader(folder, workers, batch):
    import stoker
    from stoker import transforms as T

    data = stoker.datasets.ImageFolder(folder, T.Compose([
        T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]))
    return stoker.DataLoader(data, batch_size=batch, shuffle=True, num_workers=workers)


def cpu_seconds():
    """Return the CPU time of this process, and of its worker processes that have ended."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def measure(kind, folder, workers, batch):
    """Load one epoch, and report to the parent in lines of JSON."""
    loader = {"torch": torch_loader, "stoker": stoker_loader}[kind](folder, workers, batch)
    cpu, start = cpu_seconds(), time.perf_counter()
    images = 0
    first = None
    print(json.dumps({"start": True}), flush=True)
    for batch_images, _ in loader:
        first = first or time.perf_counter() - start
        images += len(batch_images)
        print(json.dumps({"done": images}), flush=True)
    took = time.perf_counter() - start
    answer = {"images": images, "seconds": took, "first_batch": first, "cpu": cpu_seconds() - cpu}
    if kind == "stoker":
        answer["stats"] = loader.stats()
    print(json.dumps({"answer": answer}, default=str), flush=True)


# ---- the parent: progress, memory, tables ----------------------------------------------------------


class Screen:
    """Bars on a terminal, plain lines elsewhere; bold only where it is welcome."""

    def __init__(self, quiet=False):
        self.quiet = quiet
        self.live = not quiet and sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self.colour = self.live and not os.environ.get("NO_COLOR")
        self._drawn = 0.0

    def bold(self, text):
        return f"\033[1m{text}\033[0m" if self.colour else text

    def bar(self, label, done, total):
        if not self.live:
            return
        now = time.monotonic()
        if 0 < done < total and now - self._drawn < 0.05:  # the first stays for seconds, while torch is imported
            return
        self._drawn = now
        full = 30 * done // max(total, 1)
        print(f"\r{label:<22} [{'#' * full}{'.' * (30 - full)}] {done:,}/{total:,}", end="", flush=True)

    def end(self, line):
        self.say(("\r\033[K" if self.live else "") + line)

    def say(self, line):
        """With --json the measurements alone go to standard output, and everything else to standard error."""
        print(line, file=sys.stderr if self.quiet else sys.stdout, flush=True)


def process_tree(root):
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                fields = Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()
                parents.setdefault(int(fields[1]), []).append(int(entry))
            except OSError:
                pass  # it has just ended
    tree = [root]
    for pid in tree:
        tree.extend(parents.get(pid, []))
    return tree


def memory_of(pids):
    """Return the bytes held by processes; a page that k processes share counts 1/k for each."""
    total = 0
    for pid in pids:
        try:
            for line in Path("/proc", str(pid), "smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
        except OSError:
            pass
    return total


def run_epoch(screen, kind, label, folder, workers, batch, total):
    """Run one epoch in a child process. Return its answer, with the peak of its memory (`memory`), and how much of that
    came after the imports (`memory_beyond`)."""
    command = [sys.executable, "-m", "stoker.demo", "--measure", kind, "--data", str(folder),
               "--workers", str(workers), "--batch-size", str(batch)]
    lines = queue.Queue()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          stdin=subprocess.DEVNULL) as child:
        def listen():
            for line in child.stdout:
                lines.put(line)
            lines.put(None)

        threading.Thread(target=listen, daemon=True).start()
        screen.bar(label, 0, total)
        base = peak = 0
        sampled = float("inf")  # the imports are not measured
        answer = None
        while True:
            try:
                line = lines.get(timeout=0.1)
            except queue.Empty:
                line = ""
            if line is None:
                break
            if time.monotonic() - sampled > 0.15:  # sampling costs CPU time, which both loaders need
                sampled = time.monotonic()
                peak = max(peak, memory_of(process_tree(child.pid)))
            if not line.startswith("{"):
                continue
            said = json.loads(line)
            if "start" in said:
                base = peak = memory_of(process_tree(child.pid))
                sampled = 0
            elif "done" in said:
                screen.bar(label, said["done"], total)
            else:
                answer = said["answer"]
        errors = child.stderr.read()
    if child.returncode or not answer:
        raise RuntimeError((errors.strip().splitlines() or ["it ended without a message"])[-1])
    answer["memory"] = peak
    answer["memory_beyond"] = max(peak - base, 0)
    screen.end(f"{label:<22} {answer['images']:,} images in {answer['seconds']:.2f} s")
    return answer


def table(screen, torch, stoker):
    """Print the comparison, or Stoker's column only if there is no torch."""
    def rate(a):
        return a["images"] / a["seconds"]

    rows = [
        ("images/s", "{:,.0f}", rate, lambda t, s: f"{s / t:.1f}x"),
        ("first batch, s", "{:.2f}", lambda a: a["first_batch"], lambda t, s: f"{t / s:.1f}x sooner"),
        ("CPU s per 1,000 images", "{:.2f}", lambda a: 1000 * a["cpu"] / a["images"],
         lambda t, s: f"{100 * s / t:.0f} %"),
        ("memory, MB", "{:,.0f}", lambda a: a["memory"] / 1e6, lambda t, s: f"{100 * s / t:.0f} %"),
        ("  used for loading", "{:,.0f}", lambda a: a["memory_beyond"] / 1e6, lambda t, s: ""),
    ]
    print()
    print(" " * 26 + (f"{'torch DataLoader':>18}" if torch else "") + f"{'Stoker':>12}")
    for name, form, value, compare in rows:
        theirs = f"{form.format(value(torch)):>18}" if torch else ""
        ours = f"{form.format(value(stoker)):>12}"
        remark = compare(value(torch), value(stoker)) if torch else ""
        print(f"{name:<26}{theirs}{screen.bold(ours)}   {remark}".rstrip())


def stages(stats):
    print("\nWhere the time of Stoker's workers goes")
    for name, remark in STAGES.items():
        share = stats["stages"][name]["share"]
        print(f"  {name:<9}{100 * share:5.1f} %  {'#' * round(24 * share):<24}  {remark}")


def as_json(folder, args, torch, stoker):
    """docs/json.md describes it."""
    def side(a):
        return a and {"images": a["images"], "seconds": a["seconds"], "images_per_second": a["images"] / a["seconds"],
                      "first_batch_seconds": a["first_batch"], "cpu_seconds": a["cpu"], "memory_peak": a["memory"],
                      "memory_for_loading": a["memory_beyond"]}

    return {"data": str(folder), "workers": args.workers, "batch_size": args.batch_size, "torch": side(torch),
            "stoker": side(stoker), "stage_shares": {name: stoker["stats"]["stages"][name]["share"] for name in STAGES}}


def cache_folder():
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        (base / "stoker").mkdir(parents=True, exist_ok=True)
        return base / "stoker" / "demo"
    except OSError:
        return Path(tempfile.gettempdir()) / f"stoker-demo-{os.getuid()}"


def image_files(folder):
    return [p for p in Path(folder).glob("*/**/*") if p.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp", ".ppm")]


def is_there(*modules):
    return all(importlib.util.find_spec(module) for module in modules)


def plain_folder(root, count, progress):
    """Make images without Pillow: uncompressed pixels (PPM) of noise."""
    import numpy as np
    root.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        path = root / f"class_{number % 10:03d}" / f"{number:06d}.ppm"
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            rng = np.random.default_rng([1, number])
            noise = rng.integers(0, 256, (375 // 5, 500 // 5, 3), np.uint8).repeat(5, 0).repeat(5, 1)
            part = path.with_suffix(".part")
            part.write_bytes(b"P6\n500 375\n255\n" + noise.tobytes())
            part.rename(path)  # a file with the final name is complete
        progress(number + 1)
    return root


def generated(screen, args, progress):
    if is_there("PIL"):
        from .synth import make_folder
        return make_folder(cache_folder(), count=args.images, seed=1, progress=progress)
    screen.say("Pillow is not installed: the images are plain pixels (PPM) instead of photographs in JPEG, so that there is "
               "little to decode; 'pip install pillow' for the real demonstration")
    return plain_folder(cache_folder().with_name("demo-plain"), args.images, progress)


def prepare(screen, args):
    """Return the folder of images and their number. All are read once, so that both loaders find them in memory."""
    if args.data:
        folder = Path(args.data)
        if not folder.is_dir():
            raise RuntimeError(f"there is no folder {folder}")
    else:
        folder = generated(screen, args, lambda done: screen.bar("painting images", done, args.images))
    files = image_files(folder)
    if not files:
        raise RuntimeError(f"{folder} holds no images in class folders")
    size = 0
    for number, path in enumerate(files, 1):
        size += len(path.read_bytes())
        screen.bar("reading them once", number, len(files))
    screen.end(f"{len(files):,} images, {size / len(files) / 1000:.0f} KB each on average, in {folder}")
    return folder, len(files)


def show(args):
    screen = Screen(quiet=args.json)
    folder, total = prepare(screen, args)
    workers = args.workers
    screen.say(f"RandomResizedCrop(224), flip, ToTensor, Normalize; batches of {args.batch_size}; "
               f"{workers} worker{'s' if workers > 1 else ''} each\n")
    torch = None
    if not is_there("torch", "torchvision", "PIL"):
        screen.say("without torch, torchvision and Pillow there is nothing to compare with: Stoker alone; "
                   "'pip install torch torchvision pillow' for both")
    else:
        try:
            torch = run_epoch(screen, "torch", "torch DataLoader", folder, workers, args.batch_size, total)
        except RuntimeError as why:
            screen.end(f"torch's DataLoader cannot be shown ({why}): Stoker alone")
    ours = run_epoch(screen, "stoker", "Stoker", folder, workers, args.batch_size, total)
    if args.json:
        print(json.dumps(as_json(folder, args, torch, ours), indent=1))
        return
    table(screen, torch, ours)
    stages(ours["stats"])


def count(text):
    """The value of an option: a whole number of at least 1."""
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")


def main():
    parser = argparse.ArgumentParser(prog="stoker demo", description=__doc__.splitlines()[0])
    parser.add_argument("--data", metavar="DIR", help="a folder with one sub-folder per class (default: generated images)")
    parser.add_argument("--images", type=count, default=512, metavar="N", help="the number of images to generate (default 512)")
    parser.add_argument("--workers", type=count, metavar="N",
                        help="workers of each loader (default: the CPUs this process may use)")
    parser.add_argument("--batch-size", type=count, default=32, metavar="N", help="samples per batch (default 32)")
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")
    parser.add_argument("--measure", choices=["torch", "stoker"], help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.workers is None:
        import stoker
        args.workers = stoker.cpus()
    if args.measure:
        measure(args.measure, args.data, args.workers, args.batch_size)
        return
    try:
        show(args)
    except KeyboardInterrupt:
        sys.exit(130)
    except (RuntimeError, OSError) as why:
        sys.exit(f"stoker: demo: {why}")


if __name__ == "__main__":
    main()
