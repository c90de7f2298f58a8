# SPDX-License-Identifier: Apache-2.0
"""Measurements of Stoker alone: the first batch of a large folder, memory over time, the start of an epoch."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

from contestants import BENCH, BUILD, compile_c, pkg_config
from stoker.synth import Painter

LARGE = 50_000


def library_flags():
    """Builds and installs the library below build/bench, and says how to link with it."""
    tree, prefix = BENCH.parent, BUILD / "root"
    if not (BUILD / "library" / "build.ninja").exists():
        subprocess.run(["meson", "setup", str(BUILD / "library"), str(tree), f"--prefix={prefix}", "--libdir=lib",
                        "-Dpython=disabled"], check=True, capture_output=True)
    subprocess.run(["meson", "install", "-C", str(BUILD / "library"), "--quiet"], check=True, capture_output=True)
    flags = pkg_config("--cflags", "--libs", "stoker", path=str(prefix / "lib" / "pkgconfig"))
    return [*flags, f"-I{BENCH}", f"-Wl,-rpath,{prefix / 'lib'}"]


def large_folder(files, count):
    """A folder of `count` names for a few hundred images: hard links, which cost nothing and read like files."""
    root = BUILD / f"large-{count}"
    done = root / ".done"
    source = f"{len(files)} {files[0]}"
    if done.exists() and done.read_text() == source:
        return root
    shutil.rmtree(root, ignore_errors=True)
    for number in range(count):
        folder = root / f"class_{number % 100:03d}"
        if number < 100:
            folder.mkdir(parents=True)
        target = folder / f"{number:06d}.jpg"
        try:
            os.link(files[number % len(files)], target)
        except OSError:  # another file system, or too many links
            target.symlink_to(Path(files[number % len(files)]).resolve())
    done.write_text(source)
    return root


def small_folder():
    """Small images, so that 10,000 batches pass quickly."""
    root = BUILD / "small"
    folder = root / "all"
    if not folder.exists():
        from PIL import Image
        part = root / "part"
        part.mkdir(parents=True, exist_ok=True)
        painter = Painter(5)
        for number in range(64):
            image = painter.image(number).resize((40 + number, 100 - number), Image.Resampling.BOX)
            image.save(part / f"{number:03d}.jpg", quality=90)
        part.rename(folder)
    return root


def answer(program, *arguments):
    got = subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True)
    return json.loads(got.stdout)


def measure(files, workers, quick):
    """All of them, as a dictionary of dictionaries."""
    flags = library_flags()
    results = {}
    large = large_folder(files, 2000 if quick else LARGE)
    index = BUILD / "index"
    shutil.rmtree(index, ignore_errors=True)
    index.mkdir(parents=True)
    program = compile_c("first_batch", *flags)
    results["cold index"] = answer(program, large, index, workers, 256)
    kept = [answer(program, large, index, workers, 256) for _ in range(3)]
    results["kept index"] = sorted(kept, key=lambda k: k["open"] + k["first"])[1]
    results["memory"] = answer(compile_c("memory", *flags), small_folder(), 300 if quick else 10_000, workers)
    results["epoch start"] = answer(compile_c("epoch_start", *flags), next((small_folder() / "all").iterdir()))
    return results
