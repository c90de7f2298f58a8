#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Photographs of the size of ImageNet's, from packages of Debian with wallpapers, which anybody may download.

    bench/photographs.py INTO [--count 60]         # needs apt-get and dpkg-deb; no package is installed

Each photograph is reduced to a width of 1,000 pixels, and windows of 500 x 375 pixels of it are saved as JPEGs of quality 92,
in two class folders.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image

PACKAGES = ("lomiri-wallpapers-16.04", "lomiri-wallpapers-20.04", "mate-backgrounds", "ukui-wallpapers")
# Of these packages, what was drawn or computed.
DRAWN = (
    "abstract", "analogpattern", "default", "desktop", "Dragonfly", "firstgeneration", "Fossa", "Infinite-Sea", "Painting",
    "rhythm", "string", "the-mouse", "umang",
)  # fmt: skip
REDUCED, WIDTH, HEIGHT = 1000, 500, 375


def unpacked(folder: Path) -> Iterator[Path]:
    """Yield the photographs of the packages."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(["apt-get", "download", *PACKAGES], cwd=folder, check=True, **quiet)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg-deb", "-x", package, folder / "files"], check=True)
    for path in sorted((folder / "files").rglob("*.jpg")):
        if not path.is_symlink() and not any(word in str(path.relative_to(folder)) for word in DRAWN):
            yield path


def windows(path: Path) -> Iterator[Image.Image]:
    """Yield parts of a photograph that do not overlap."""
    with Image.open(path) as image:
        if image.width < REDUCED:
            return
        whole = image.convert("RGB").resize((REDUCED, image.height * REDUCED // image.width), Image.Resampling.LANCZOS)
    for top in range(0, whole.height - HEIGHT + 1, HEIGHT):
        for left in range(0, REDUCED - WIDTH + 1, WIDTH):
            yield whole.crop((left, top, left + WIDTH, top + HEIGHT))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("into", type=Path)
    parser.add_argument("--count", type=int, default=60)
    args = parser.parse_args()
    made = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # apt-get downloads as another user
        for path in unpacked(Path(folder)):
            for window in windows(path):
                if made < args.count:
                    into = args.into / f"class_{made % 2}"
                    into.mkdir(parents=True, exist_ok=True)
                    window.save(into / f"{made:04}.jpg", quality=92, subsampling="4:4:4" if made % 4 else "4:2:0")
                    made += 1
    if not made:
        sys.exit("these packages have no photographs")
    print(f"{made} photographs in {args.into}")


if __name__ == "__main__":
    main()
