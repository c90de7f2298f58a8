# SPDX-License-Identifier: Apache-2.0
"""Drawn shapes: the same for the same seed, kept, and with boxes and masks that agree."""

from __future__ import annotations

import json

import numpy as np
import pytest
from PIL import Image

from stoker.synth import SHAPES, make_scenes, make_shapes


def test_shapes_are_a_function_of_the_seed_and_are_kept(tmp_path):
    def content(root):
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*.*g"))}

    first = content(make_shapes(tmp_path / "a", 7))
    assert sorted({path.split("/")[0] for path in first}) == sorted(SHAPES) and len(first) == 7
    assert content(make_shapes(tmp_path / "b", 7)) == first != content(make_shapes(tmp_path / "c", 7, seed=2))
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*.jpg")}
    make_shapes(tmp_path / "a", 7)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "a").rglob("*.jpg")} == before
    assert len(content(make_shapes(tmp_path / "a", 4))) == 4
    scenes = content(make_scenes(tmp_path / "d", 3))
    assert len(scenes) == 6 and content(make_scenes(tmp_path / "e", 3)) == scenes
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "precious.jpg").write_bytes(b"x")
    for make in (make_shapes, make_scenes):
        with pytest.raises(FileExistsError, match="was not made by stoker.synth"):
            make(tmp_path / "own")
    assert (tmp_path / "own" / "precious.jpg").read_bytes() == b"x"


def test_boxes_of_scenes_enclose_what_is_in_the_masks(tmp_path):
    root = make_scenes(tmp_path / "scenes", 12)
    found = json.loads((root / "instances.json").read_text())
    assert [one["name"] for one in found["categories"]] == list(SHAPES)
    for file in found["images"]:
        image = Image.open(root / "images" / file["file_name"])
        mask = np.asarray(Image.open(root / "masks" / file["file_name"].replace(".jpg", ".png")))
        assert mask.shape == (file["height"], file["width"]) == image.size[::-1]
        objects = [one for one in found["annotations"] if one["image_id"] == file["id"]]
        assert 1 <= len(objects) <= 3
        outside = mask.copy()
        for one in objects:
            x, y, width, height = one["bbox"]
            inside = mask[y : y + height, x : x + width]
            assert inside.shape == (height, width) and set(np.unique(inside)) <= {0, one["category_id"]}
            rows, columns = np.nonzero(inside)  # the box is tight
            assert (rows.min(), columns.min(), rows.max() + 1) == (0, 0, height) and columns.max() >= width - 2
            outside[y : y + height, x : x + width] = 0
        assert not outside.any()
