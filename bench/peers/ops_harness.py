# SPDX-License-Identifier: Apache-2.0
"""What the contestants of bench/ops.py share: the images, the clock, and answers as lines of JSON.

A contestant is a file with PACKAGES (what PyPI must provide), NOTE, and two functions that return None for what it does not
have: ``op(name, images)`` for arrays that are in memory, height x width x 3, all of one size, and ``recipe(name, folder)`` for
the JPEG files of an ImageFolder, from reading to the tensor. Both return a function that does as many images as it likes and returns how many.

What is measured is what training needs: batches. So a contestant whose calls take one image copies each result into a batch, as
every loader must, in the cheapest way there is: into memory that is there already, in the layout that the result has. (torch's
default_collate allocates each batch, and puts channels first, which takes longer.) Those that work on batches copy nothing more,
and neither do recipes with masks or boxes.

It runs in a process of its own on one CPU. Each line of input asks for one measurement:

    {"kind": "op", "name": "rotation", "seconds": 1.0}    ->    {"ms": 0.71, "images": 1400} or {"absent": true}
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import traceback
from pathlib import Path

SIDE = 256  # of the images in memory
BATCH = 16
TARGETS = Path(__file__).resolve().parents[1] / "data" / "ops-targets"  # masks and boxes that ops.py draws for the files
MEAN = [0.485, 0.456, 0.406]
STD = [0.229, 0.224, 0.225]


def files_of(folder):
    """Return the JPEG files of all classes, with paths as text."""
    return sorted(str(path) for path in Path(folder).rglob("*.jpg"))


def mask_of(folder, path):
    """Return the file of an image's mask."""
    return str((TARGETS / "masks" / Path(path).relative_to(folder)).with_suffix(".png"))


def boxes_of(folder, path):
    """Return an image's boxes (left, top, right, bottom) and labels, from the file in COCO's format."""
    about = json.loads((TARGETS / "boxes.json").read_text())
    image = {image["file_name"]: image["id"] for image in about["images"]}[str(Path(path).relative_to(folder))]
    found = [(row["bbox"], row["category_id"]) for row in about["annotations"] if row["image_id"] == image]
    return [[x, y, x + width, y + height] for (x, y, width, height), _ in found], [label for _, label in found]


def loaded(paths):
    """Return the photographs as arrays, the middle square of each, all of one size."""
    import numpy as np
    from PIL import Image, ImageOps

    return [np.array(ImageOps.fit(Image.open(path).convert("RGB"), (SIDE, SIDE))) for path in paths]


def one_at_a_time(items, step):
    """Return the function of a contestant whose calls take one image."""

    def run():
        for item in items:
            step(item)
        return len(items)

    return run


def room_for(result):
    """Return an empty batch of such results, an array's or a tensor's."""
    import numpy as np

    if isinstance(result, np.ndarray):
        return np.empty((BATCH, *result.shape), result.dtype)
    if result.dim() == 3 and result.permute(1, 2, 0).is_contiguous():
        return result.new_empty((BATCH, *result.permute(1, 2, 0).shape)).permute(0, 3, 1, 2)
    return result.new_empty((BATCH, *result.shape))


def into_batches(items, step):
    """Like one_at_a_time, for steps that return an array, a tensor, an image of Pillow's, or a list of them (views)."""
    import numpy as np
    from PIL import Image

    batches = {}

    def put(result, at, view=0):
        if isinstance(result, Image.Image):
            result = np.asarray(result)
        batch = batches.get(view)
        if batch is None:
            batch = batches[view] = room_for(result)
        if isinstance(result, np.ndarray):
            np.copyto(batch[at], result)
        else:
            batch[at].copy_(result)

    def run():
        for at, item in enumerate(items):
            result = step(item)
            for view, one in enumerate(result if isinstance(result, list) else [result]):
                put(one, at % BATCH, view)
        return len(items)

    return run


def measure(run, seconds):
    """CPU time per image, of all threads: others on the machine do not change it much. The first call does not count."""
    run()
    images, began = 0, time.process_time()
    while time.process_time() - began < seconds:
        images += run()
    return {"ms": (time.process_time() - began) / images * 1000, "images": images}


def answer(asked, contestant, images, folder):
    if asked["kind"] == "op":
        run = contestant.op(asked["name"], images)
    else:
        run = contestant.recipe(asked["name"], folder)
    return {"absent": True} if run is None else measure(run, asked["seconds"])


def main(contestant):
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    folder = arguments.parse_args().folder
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print
    images = loaded(files_of(folder))
    for line in sys.stdin:
        try:
            said = answer(json.loads(line), contestant, images, folder)
        except Exception as error:  # the contestant's: it is shown in the table
            traceback.print_exc()
            said = {"failed": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:160]}
        print(json.dumps(said), file=replies, flush=True)
    os._exit(0)  # some contestants take seconds to stop
