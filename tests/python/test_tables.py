# SPDX-License-Identifier: Apache-2.0
"""Tables with cells that are not what their column is: one bad cell is one bad sample."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import sources
import stoker
from stoker import datasets
from stoker import transforms as T

CROP = T.Compose([T.CenterCrop(16), T.ToTensor()])


def table(root: Path, cells: list[str], column: str = "label") -> Path:
    sources.make_manifest(root)
    path = root / "t.csv"
    path.write_text(f"path,{column}\n" + "".join(f"{i}.png,{cell}\n" for i, cell in enumerate(cells)))
    return path


def labels_of(data) -> tuple[list[int], dict[int, str]]:
    loader = stoker.DataLoader(data, batch_size=len(data), on_error="replace")
    labels = next(iter(loader))[1].tolist()
    return labels, {entry["sample"]: entry["reason"] for entry in loader.bad_samples()}


@pytest.mark.parametrize("fields", [None, {"path": "image", "label": "int"}])
@pytest.mark.parametrize("cell, said", [("", "label is empty"), ("x", "label is 'x'")])
def test_one_bad_label_is_one_bad_sample(tmp_path, fields, cell, said):
    path = table(tmp_path, ["10", "2", cell, "0"])
    data = datasets.Manifest(path, fields, CROP)
    labels, bad = labels_of(data)
    assert labels == [10, 2, -100, 0] and data.classes == []
    assert list(bad) == [2] and "t.csv: line 4" in bad[2] and said in bad[2] and "not an integer" in bad[2]
    assert data.targets == [10, 2, -100, 0]
    with pytest.raises(stoker.CorruptSample, match="line 4"):
        list(stoker.DataLoader(data, batch_size=4))


def test_classes_stay_classes(tmp_path):
    """Words with a number among them are classes; an empty cell is no class."""
    data = datasets.Manifest(table(tmp_path, ["dog", "cat", "", "7", "cat"]), transform=CROP)
    assert data.classes == ["7", "cat", "dog"]
    labels, bad = labels_of(data)
    assert labels == [2, 1, -100, 0, 1] and "label is empty, not a class" in bad[2]


def test_words_where_numbers_are_asked_for(tmp_path):
    """All words: classes. A number among them: numbers, and the words are bad."""
    fields = {"path": "image", "breed": "int"}
    data = datasets.Manifest(table(tmp_path, ["4", "1.5", "3"], "breed"), fields, CROP)
    assert labels_of(data)[0] == [4, -100, 3]
    assert datasets.Manifest(table(tmp_path, ["4", "1.5", "3"])).field_types["label"] == "float"
    assert datasets.Manifest(table(tmp_path, ["b", "a", "b"], "breed"), fields).classes == ["a", "b"]
    data = datasets.Manifest(table(tmp_path, ["b", "a", "3"], "breed"), fields, CROP)
    labels, bad = labels_of(data)
    assert labels == [-100, -100, 3] and sorted(bad) == [0, 1] and data.classes == []


def test_other_columns_with_an_empty_cell(tmp_path):
    """Numbers stay numbers, text stays text, in which nothing is as good as something."""
    data = datasets.Manifest(table(tmp_path, ["0.5", "", "2"], "score"), ("path=image", "score"), CROP)
    assert data.field_types["score"] == "float"
    values, bad = labels_of(data)
    assert values[0] == 0.5 and values[2] == 2 and "score is empty, not a number" in bad[1]
    data = datasets.Manifest(table(tmp_path, ["a", "", "2"], "note"), ("path=image", "note"))
    assert data.field_types["note"] == "text" and [note for _, note in data] == ["a", "", "2"]
    data = datasets.Manifest(table(tmp_path, ["", ""], "note"), ("path=image", "note"))
    assert data.field_types["note"] == "text"


def test_no_label_at_all_is_refused(tmp_path):
    with pytest.raises(stoker.CorruptSample, match="t.csv: line 2: label is empty"):
        datasets.Manifest(table(tmp_path, ["", ""]))


@pytest.mark.parametrize("where", [0, 2])
def test_null_is_a_bad_sample(tmp_path, where):
    """Also in the first line, whose keys say which columns there are; only JSON can be null."""
    sources.make_manifest(tmp_path)
    rows = [{"path": f"{i}.png", "label": 10 - i, "more": i, "word": "w"} for i in range(4)]
    rows[where].update(label=None, more=None)
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    data = stoker.open(tmp_path / "t.jsonl", transform=CROP)
    assert data.field_types == {"path": "image", "label": "int"}
    labels, bad = labels_of(data)
    assert [label for i, label in enumerate(labels) if i != where] == [10 - i for i in range(4) if i != where]
    assert labels[where] == -100 and f"line {where + 1}: label is missing" in bad[where]
    more = datasets.Manifest(tmp_path / "t.jsonl", {"path": "image", "more": "json"})
    assert [value for _, value in more] == [None if i == where else i for i in range(4)]
    rows[where].update(word=None)
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    words = datasets.Manifest(tmp_path / "t.jsonl", {"path": "image", "word": "text"}, CROP)
    loader = stoker.DataLoader(words, batch_size=4, on_error="replace")
    list(loader)
    assert [entry["sample"] for entry in loader.bad_samples()] == [where]


@pytest.mark.parametrize("name", ["pipe.png", "link.png", "zero.png", "folder.png"])
def test_what_is_no_regular_file(tmp_path, name):
    path = table(tmp_path, ["0", "1"])
    os.mkfifo(tmp_path / "pipe.png")
    (tmp_path / "link.png").symlink_to("pipe.png")
    (tmp_path / "zero.png").symlink_to("/dev/zero")
    (tmp_path / "folder.png").mkdir()
    path.write_text(path.read_text() + f"{name},2\n")
    labels, bad = labels_of(datasets.Manifest(path, transform=CROP))
    assert labels == [0, 1, -100] and list(bad) == [2] and name in bad[2]


@pytest.mark.parametrize("name", ["pipe.png", "link.png", "zero.png"])
@pytest.mark.parametrize("kept", [False, True])
def test_what_is_no_regular_file_in_a_folder(tmp_path, name, kept):
    root = tmp_path / "tree"
    (root / "a").mkdir(parents=True)
    for i in range(2):
        (root / "a" / f"{i}.png").write_bytes(sources.encoded(i))
    os.mkfifo(root / "a" / "pipe")
    if name == "pipe.png":
        os.mkfifo(root / "a" / name)
    else:
        (root / "a" / name).symlink_to("pipe" if name == "link.png" else "/dev/zero")
    index_dir = tmp_path if kept else None
    for _ in range(2):
        data = datasets.ImageFolder(root, CROP, index_dir=index_dir)
        labels, bad = labels_of(data)
        assert labels == [0, 0, -100] and list(bad) == [2] and name in bad[2] and "regular" in bad[2]
