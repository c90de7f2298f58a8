#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the fuzz targets for masks and annotations, tests/fuzz/corpus/<target>/.

Files named crash-* were found by fuzzing, and stay.
"""

import pathlib
import struct

CORPUS = pathlib.Path(__file__).parent / "corpus"


def write(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def mask():
    for name, text in {"text": "`0a07b03", "whole": "0T3", "empty": "T3", "short": "53", "beyond": "05oo3", "odd": "5\x7f",
                       "endless": "5ooooooooo"}.items():
        write("mask", name, bytes([10, 10, 0]) + text.encode())
    for name, counts in {"counts": [3, 40, 7, 50], "column": [0, 100], "zeros": [5, 0, 5, 90], "sum": [90, 11],
                         "overflow": [2**32 - 1, 101]}.items():
        write("mask", name, bytes([10, 10, 1]) + struct.pack(f"<{len(counts)}I", *counts))
    for name, xy in {"triangle": [1, 1, 8, 2, 4, 9], "outside": [-50, -50, 300, -20, 300, 300, -1, 99],
                     "nowhere": [float("nan"), 1, 2, 3, 4, 5], "far": [4e5, 4e5, -4e5, 4e5, 1, -4e5],
                     "further": [1e300, 1, 2, -1e300, 1, 1], "point": [3, 3]}.items():
        write("mask", name, bytes([10, 12, 2]) + struct.pack(f"<{len(xy)}d", *xy))
    write("mask", "nothing", bytes([0, 7, 0]) + b"0")


for make in (mask,):
    make()
