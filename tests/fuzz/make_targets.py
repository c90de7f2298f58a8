#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the fuzz targets for masks and annotations, tests/fuzz/corpus/<target>/.

Files named crash-* were found by fuzzing, and stay.
"""

import json
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


def coco():
    images = [{"id": 9, "file_name": "a\u00e4.jpg", "width": 30, "height": 20, "license": 1},
              {"id": -2, "file_name": "b.jpg"}]
    categories = [{"id": k, "name": f"class {k}", "supercategory": "x"} for k in (7, 3)]
    plain = {"id": 1, "image_id": 9, "category_id": 7, "bbox": [1, 2.5, 3e0, 4], "area": 12.5, "iscrowd": 0}
    for name, parts in {
        "polygons": {"segmentation": [[1, 1, 20.25, 2, 10, 18.5], [0, 0, 5, 0, 5, 5]]},
        "counts": {"segmentation": {"size": [20, 30], "counts": [100, 37, 463]}, "iscrowd": 1},
        "text": {"segmentation": {"counts": "T3U1_>", "size": [20, 30]}, "iscrowd": True},
        "keypoints": {"keypoints": [1, 2, 2, 0, 0, 0], "num_keypoints": 1}, "nothing": {"segmentation": [], "bbox": []},
        "null": {"segmentation": None, "bbox": None, "area": None, "keypoints": None},
    }.items():
        write("coco", name, json.dumps({"info": {}, "images": images, "annotations": [plain, {**plain, **parts, "id": 2}],
                                        "categories": categories}))
    write("coco", "after", json.dumps({"categories": categories, "annotations": [plain], "images": images}, indent=1))
    write("coco", "unescaped", "\ufeff" + json.dumps({"images": images}, ensure_ascii=False))
    write("coco", "damaged", json.dumps({"images": images, "annotations": [{**plain, "bbox": [1, 2]}]}))
    write("coco", "list", "[]")


def voc():
    box = "<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>30.5</xmax><ymax>4</ymax></bndbox>"
    thing = f"<object><name>dog</name><difficult>0</difficult><truncated>1</truncated>{box}<part>{box}</part></object>"
    head = "<annotation><filename>a&amp;b&#xe4;.jpg</filename><size><width>30</width><height>20</height></size>"
    for name, text in {"plain": head + thing + "</annotation>",
                       "attributes": f"<annotation a='b>' c=\"d\">{thing}<e/></annotation>",
                       "declared": f"<?xml version='1.0' encoding='utf-8'?><!-- x -->\n{head}{thing}{thing}</annotation>\n",
                       "type": "<!DOCTYPE a [<!ENTITY b 'c'>]><annotation/>", "cut": head + thing, "empty": "<annotation/>",
                       "crossed": "<annotation><a></b></annotation>"}.items():
        write("voc", name, text)


def yolo():
    write("yolo", "boxes", "0 0.5 0.5 1 1\n79 0.25 0.125 0.5 0.25\r\n\n")
    write("yolo", "word", "dog 0.5 0.5 1 1\n")
    write("yolo", "pixels", "1 100 200 50 60")
    write("yolo-polygons", "polygons", "0 0.1 0.1 0.9 0.2 0.5 0.9\n3 0.5 0.5 0.2 0.2\n")
    write("yolo-polygons", "odd", "0 0.1 0.1 0.9 0.2 0.5")
    write("yolo-keypoints", "keypoints", "0 0.5 0.5 1 1 0.1 0.2 0.3 0.4\n")
    write("yolo-keypoints", "few", "0 0.5 0.5 1 1 0.1 0.2\n")


for make in mask, coco, voc, yolo:
    make()
