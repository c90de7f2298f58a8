# SPDX-License-Identifier: Apache-2.0
"""Masks of random shapes and sizes, run lengths and damaged ones, against what pycocotools makes of them. Speaks TAP.

    compare_masks.py MASKS [time]     MASKS is the program of masks.c; with `time`, only how long both take

The seed is fixed; STOKER_CASES asks for more cases of each kind.
"""

import json
import math
import os
import random
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "source"))
import tap  # noqa: E402

try:
    import numpy as np
    import pycocotools.mask as coco
except ImportError as why:
    tap.skip_all(why)

CASES = int(os.environ.get("STOKER_CASES", tap.share_of(400)))
chance = random.Random(5)


def ask(lines):
    done = subprocess.run([*tap.EMULATOR, sys.argv[1]], input="\n".join(lines).encode(), capture_output=True, check=True,
                          env=tap.ENVIRONMENT)
    return [json.loads(line) for line in done.stdout.decode(errors="replace").splitlines()]


def counts_of(text):
    """The run lengths of COCO's compressed text."""
    counts, value, digits = [], 0, 0
    for code in text:
        digit = code - 48
        value |= (digit & 31) << 5 * digits
        digits += 1
        if not digit & 32:
            if digit & 16:
                value -= 1 << 5 * digits
            counts.append(value + (counts[-2] if len(counts) > 2 else 0))
            value = digits = 0
    return counts


def pixels_of(counts, width, height):
    """The pixels row by row, from run lengths column by column."""
    runs = "".join("01"[k % 2] * count for k, count in enumerate(counts))
    return "".join(runs[x * height + y] for y in range(height) for x in range(width))


def told(rle):
    """What masks.c says of a mask, as pycocotools has it."""
    return {"pixels": "".join(map(str, coco.decode(rle).ravel()))}


def compare(what, lines, rles):
    answers = ask(lines)
    wrong = [(line, answer, told(rle)) for line, answer, rle in zip(lines, answers, rles)
             if {k: v for k, v in answer.items() if k != "seconds"} != told(rle)]
    tap.ok(len(answers) == len(lines) and not wrong, f"{what}: as pycocotools, {len(lines)} cases")
    for line, answer, want in wrong[:2]:
        tap.note(f"{line[:1000]}\n got {str(answer)[:700]}\nwant {str(want)[:700]}")


# ---- polygons -----------------------------------------------------------------------------------

def line_of(xy, width, height):
    return " ".join(["polygon", str(width), str(height), *(float(v).hex() for v in xy)])


def of_polygon(xy, width, height):
    """pycocotools accepts no short polygon in front of others: so one of nothing comes first."""
    return coco.frPyObjects([[-9.0] * 6, [float(v) for v in xy]], height, width)[1]


def outline(width, height, corners, rounding):
    """A closed line around a point, star-shaped; it may leave the image."""
    x, y, size = chance.uniform(0, width), chance.uniform(0, height), chance.uniform(0.1, 1) * max(width, height)
    angles = sorted(chance.uniform(0, 2 * math.pi) for _ in range(corners))
    xy = [v for a in angles for r in [chance.uniform(0.2, 0.6) * size] for v in (x + r * math.cos(a), y + r * math.sin(a))]
    return [round(v, rounding) for v in xy]


def tangle(width, height, corners, rounding):
    return [round(chance.uniform(-0.3, 1.3) * (height if i % 2 else width), rounding) for i in range(2 * corners)]


def polygons(what, shape, corners, sizes, rounding, count=CASES):
    cases = []
    for _ in range(count):
        width, height = chance.randint(*sizes), chance.randint(*sizes)
        cases.append((shape(width, height, chance.randint(*corners), rounding), width, height))
    compare(what, [line_of(*case) for case in cases], [of_polygon(*case) for case in cases])


def odd_polygons():
    shapes = [[], [3, 3], [1, 1, 5, 5], [1, 1, 1, 1, 1, 1], [2, 2, 8, 2, 8, 8, 2, 8, 2, 2], [0, 0, 10, 0, 10, 10, 0, 10],
              [-5, -5, 20, -5, 20, 20, -5, 20], [0.1] * 7, [-0.0, -0.0, 3, 0, 3, 3], [1, 1, 9, 1, 1, 1, 9, 1],
              [2, 2, 2, 9, 2, 2, 7, 9], [5, -1000, 5, 1000, 6, 1000, 6, -1000], [-1000, 5, 1000, 5, 1000, 6.2, -1000, 6],
              [0.5, 0.5, 0.9, 0.5, 0.9, 0.9], [0.3, 0.3, 0.7, 0.3, 0.7, 0.7, 0.3, 0.7], [1e-300, 5e-324, 4, 4, 9, 1],
              [2.5, 2.5, 7.5, 2.5, 7.5, 7.5, 2.5, 7.5], [2.499999999, 2.5000001, 7.5, 2.7, 7.4, 7.5],
              [-399999, -399999, 399999, -399999, 399999, 399999], [9.9, 0, 9.99, 10, 10, 10, 10.1, 0]]
    cases = [(xy, width, height) for xy in shapes for width, height in [(10, 10), (1, 1), (3, 17), (1, 20), (20, 1)]]
    huge = [(xy, w, h) for xy, w, h in cases if max(map(abs, xy), default=0) > 1e5]
    cases = [case for case in cases if case not in huge]
    compare("odd polygons", [line_of(*case) for case in cases], [of_polygon(*case) for case in cases])
    # pycocotools needs gigabytes for these.
    answers = ask([line_of(*case) for case in huge])
    above = ["".join("01"[x > y] for y in range(height) for x in range(width)) for _, width, height in huge]
    tap.ok([answer["pixels"] for answer in answers] == above, "huge polygons: what is above the diagonal")


def refused_polygons():
    shapes = [[1, 1, math.nan, 1, 5, 5], [1, 1, math.inf, 1, 5, 5], [1, 1, 5, -math.inf, 5, 5], [1, 1, 1e12, 1, 5, 5],
              [1, 1, 400000.1, 1, 5, 5]]
    answers = ask([line_of(xy, 10, 10) for xy in shapes])
    tap.ok(all("of the polygon is at (" in a.get("error", "") for a in answers), "corners that are nowhere are refused")
    tap.note([a.get("error") for a in answers][0])
    zigzag = [v for _ in range(70000) for v in (0, 0, 40, 1)]
    answers = ask([line_of(zigzag, 50, 2), line_of([1, 1, 2, 2, 3, 3], 0, 5), line_of([1, 1, 2, 2, 3, 3], 70000, 70000)])
    tap.ok("more often than is supported" in answers[0].get("error", ""), "a polygon out of proportion is refused")
    tap.ok("is empty" in answers[1].get("error", ""), "a mask without pixels is refused")
    tap.ok("larger than" in answers[2].get("error", ""), "a mask that is too large is refused")


# ---- run lengths --------------------------------------------------------------------------------

def mask(width, height):
    """A mask with runs of all kinds: short, and longer than columns."""
    pixels, value = np.zeros(width * height, "u1"), chance.random() < 0.5
    at, scale = 0, chance.choice([1, 3, height, 4 * height])
    while at < pixels.size:
        run = 1 + int(chance.expovariate(1 / scale))
        pixels[at:at + run] = value
        at, value = at + run, not value
    return np.asfortranarray(pixels.reshape((height, width), order="F"))


def run_lengths():
    rles, sizes = [], []
    for _ in range(CASES):
        width, height = chance.randint(1, 40), chance.randint(1, 40)
        rles.append(coco.encode(mask(width, height)))
        sizes.append((width, height))
    texts = [f"text {w} {h} {rle['counts'].decode()}" for (w, h), rle in zip(sizes, rles)]
    compare("compressed run lengths", texts, rles)
    lists = [" ".join(map(str, counts_of(rle["counts"]))) for rle in rles]
    compare("run lengths", [f"counts {w} {h} {counts}" for (w, h), counts in zip(sizes, lists)], rles)


def damaged():
    lines = {"counts 4 4 10 5": "add up to 15", "counts 4 4 10 7": "add up to 17", "counts 4 4 0": "add up to 0",
             "counts 4 4 4294967295 17": "add up to 4294967312", "text 4 4 ": "add up to 0",
             "text 4 4 00\x7f0": "at its character 3", "text 4 4 00/": "at its character 3",
             "text 4 4 0`": "at its character 2", "text 4 4 0oooooooooooooo1": "at its character 2",
             "text 4 4 0o1": "of 4 x 4 pixels are left", "text 4 4 `00o": "at its character 4",
             "text 4 4 0N": "run length 2 of the mask is -2", "text 4 4 00004": "add up to 4"}
    for line, answer in zip(lines, ask(list(lines))):
        if not tap.ok(lines[line] in answer.get("error", "") and answer["code"] < 0, f"refused: {line!r}"):
            tap.note(answer)
    # Random text: whatever pycocotools can decode as a whole mask is the same, everything else is an error.
    texts = ["".join(chance.choice("0123456789`aoN:OP" if k % 2 else "0124") for _ in range(chance.randint(1, 12)))
             for k in range(10 * CASES)]
    answers, same, refused = ask([f"text 3 5 {text}" for text in texts]), 0, 0
    for text, answer in zip(texts, answers):
        counts = counts_of(text.encode())
        whole = sum(counts) == 15 and min(counts) >= 0 and not ord(text[-1]) - 48 & 32
        same += whole and answer.get("pixels") == pixels_of(counts, 3, 5)
        refused += not whole and "error" in answer
    tap.ok(same and same + refused == len(texts), f"random text: {same} masks, {refused} refused")


# ---- time ---------------------------------------------------------------------------------------

def seconds(work, repetitions):
    began = time.perf_counter()
    for _ in range(repetitions):
        work()
    return (time.perf_counter() - began) / repetitions


def measure():
    """Median over rounds in turn, 640 x 480, into a plane of zeros; pycocotools makes an array of its own."""
    width, height, rounds = 640, 480, 9
    blob = [320 + v for k in range(120) for v in ((200 + 15 * math.sin(9 * k)) * math.cos(k / 19.1),
                                                  (150 + 15 * math.sin(9 * k)) * math.sin(k / 19.1) - 80)]
    small = [0.25 * v + 100 for v in blob]
    spots = np.asfortranarray((np.add.outer(np.sin(np.arange(height) / 7), np.cos(np.arange(width) / 9)) > 0.3).astype("u1"))
    cases = {}
    for name, xy in (("large polygon", blob), ("small polygon", small)):
        cases[name] = line_of(xy, width, height), lambda xy=xy: coco.decode(coco.frPyObjects([xy], height, width))
    for name, rle in (("large mask", coco.frPyObjects([blob], height, width)[0]), ("spots", coco.encode(spots))):
        cases[name] = f"text {width} {height} {rle['counts'].decode()}", lambda rle=rle: coco.decode(rle)
    for name, (line, theirs) in cases.items():
        pairs = [(ask(["time 300", line])[0]["seconds"], seconds(theirs, 300)) for _ in range(rounds)]
        ours, other = (sorted(column)[rounds // 2] * 1e6 for column in zip(*pairs))
        print(f"{name:14} {ours:7.1f} us, pycocotools {other:7.1f} us: {other / ours:.1f} times")
    floor = seconds(lambda plane=np.empty((height, width), "u1"): plane.fill(0), 1000) * 1e6
    print(f"zeros alone    {floor:7.1f} us")


if "time" in sys.argv:
    measure()
    sys.exit()
polygons("outlines", outline, (3, 40), (1, 60), 2)
polygons("outlines of whole numbers", outline, (3, 12), (1, 60), 0)
polygons("tangles", tangle, (1, 9), (1, 40), 3)
polygons("tangles in tenths", tangle, (1, 9), (1, 40), 1)
polygons("tangles of many digits", tangle, (3, 60), (1, 200), 15)
polygons("large outlines", outline, (3, 40), (200, 1500), 2, max(1, CASES // 20))
polygons("large tangles", tangle, (3, 9), (200, 1500), 15, max(1, CASES // 20))
odd_polygons()
refused_polygons()
run_lengths()
damaged()
tap.finish()
