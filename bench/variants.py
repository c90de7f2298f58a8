# SPDX-License-Identifier: Apache-2.0
"""The files of a folder again, as other kinds of JPEG.

    variants.py 420 FROM TO        4:2:0, quality 92
    variants.py restart FROM TO    a restart marker every 8 MCUs
"""
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image


def save(kind, source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(source) as image:
        if kind == "420":
            image.convert("RGB").save(target, quality=92, subsampling="4:2:0")
        else:
            image.save(target, quality="keep", restart_marker_blocks=8)


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("420", "restart"):
        sys.exit(__doc__)
    kind, root, into = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    files = sorted(root.rglob("*.jpg"))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda path: save(kind, path, into / path.relative_to(root)), files))
    print(f"{len(files)} files in {into}")


main()
