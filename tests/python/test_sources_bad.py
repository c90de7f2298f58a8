# SPDX-License-Identifier: Apache-2.0
"""What is said of bad samples of every format, and of what cannot be opened."""

from __future__ import annotations

import json
import os
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest
import sources
import stoker
from sources import encoded, label
from stoker import datasets
from stoker import transforms as T


def test_refusals(tmp_path):
    url = sources.make_tar(tmp_path)
    with pytest.raises(OSError, match="nowhere"):
        datasets.WebDataset(tmp_path / "nowhere.tar")
    with pytest.raises(NotImplementedError, match="pickle"):
        datasets.WebDataset(url, ("png", "pyd"))
    with pytest.raises(ValueError, match="there is no field of type image.*cls \\(int\\)"):
        datasets.WebDataset(url, ("cls",), T.ToTensor())
    with pytest.raises(ValueError, match="without commas"):
        datasets.WebDataset(url, ("png,cls",))
    with pytest.raises(ValueError, match="is empty"):
        datasets.WebDataset(url, ())
    with pytest.raises(TypeError, match="not the name"):
        datasets.WebDataset(url, (1,))
    with pytest.raises(AttributeError, match="inside its samples"):
        datasets.WebDataset(url, ("png", "cls")).targets  # noqa: B018
    with pytest.raises(stoker.StokerError, match="jpg"):
        datasets.WebDataset(url)[0]  # the default is jpg and cls


@pytest.fixture()
def damaged(tmp_path):
    """Eight samples, of which 2 is no image, 4 has no number and 6 no field cls."""
    members = []
    for i in range(8):
        members.append((f"k{i}.png", b"no image at all" if i == 2 else encoded(i)))
        members += [] if i == 6 else [(f"k{i}.cls", b"seven" if i == 4 else b"%d" % i)]
        members += [(f"k{i}.txt", b"text"), (f"k{i}.json", b"[1]")]
    return sources.write_tar(tmp_path / "bad.tar", members)


def test_bad_samples_are_named(damaged):
    transform = T.Compose([T.CenterCrop(16), T.ToTensor()])
    data = datasets.WebDataset(damaged, ("png", "cls", "txt", "json"), transform)
    loader = stoker.DataLoader(data, batch_size=8, on_error="replace")
    images, labels, text, parsed = next(iter(loader))
    assert labels.tolist() == [0, 1, -100, 3, -100, 5, -100, 7]
    good = labels >= 0
    assert images[~good].abs().sum() == 0 and (images[good].flatten(1).sum(1) > 0).all()
    assert text == ["text" if ok else "" for ok in good]
    assert parsed == [[1] if ok else None for ok in good]
    ledger = {entry["sample"]: entry["reason"] for entry in loader.bad_samples()}
    assert sorted(ledger) == [2, 4, 6]
    assert all("bad.tar" in reason and f"k{sample}" in reason for sample, reason in ledger.items())
    assert "seven" in ledger[4] and "cls" in ledger[6]
    with pytest.raises(stoker.CorruptSample, match="bad.tar.*k4.*seven"):
        data[4]
    skipped = next(iter(stoker.DataLoader(data, batch_size=8, on_error="skip")))
    assert set(skipped[1].tolist()) <= {0, 1, 3, 5, 7} and len(skipped[2]) == 8


def test_bad_json_is_named(tmp_path):
    path = sources.write_tar(tmp_path / "x.tar", [("a.json", b"{}"), ("b.json", b"{'a': 1}")])
    data = datasets.WebDataset(path, ("json",))
    assert data[0] == ({},)
    with pytest.raises(stoker.CorruptSample, match="x.tar.*b.*field json: not JSON"):
        data[1]


def test_bad_json_follows_on_error(tmp_path):
    members = []
    for i in range(8):
        members += [(f"k{i}.png", encoded(i)), (f"k{i}.cls", b"%d" % i)]
        members.append((f"k{i}.json", (b"", b"[1,", b'"\xff"')[i // 3] if i in (1, 4, 7) else b"[%d]" % i))
    path, transform = sources.write_tar(tmp_path / "x.tar", members), T.Compose([T.CenterCrop(16), T.ToTensor()])
    data = datasets.WebDataset(path, ("png", "cls", "json"), transform)
    loader = stoker.DataLoader(data, batch_size=8, on_error="replace")
    images, labels, parsed = next(iter(loader))
    assert parsed == [None if i in (1, 4, 7) else [i] for i in range(8)]
    assert labels.tolist() == [-100 if i in (1, 4, 7) else i for i in range(8)] and images[4].abs().sum() == 0
    ledger = {entry["sample"]: entry["reason"] for entry in loader.bad_samples()}
    assert sorted(ledger) == [1, 4, 7] and all("x.tar" in r and "field json" in r for r in ledger.values())
    assert "byte 3 of 3" in ledger[4]
    _, labels, parsed = next(iter(stoker.DataLoader(data, batch_size=8, on_error="skip")))
    assert set(labels.tolist()) <= {0, 2, 3, 5, 6} and parsed == [[i] for i in labels.tolist()]
    with pytest.raises(stoker.CorruptSample, match="k1.*field json"):
        list(stoker.DataLoader(data, batch_size=8, on_error="raise"))


def test_json_is_what_python_says_it_is(tmp_path):
    """What the engine lets pass Python reads, and the other way round."""
    chance = random.Random(8)
    seeds = [
        b'{"a": [1, -2.5e+3, true, false, null, {"b": "\\u00fc\\ud83d\\n"}], "": ""}', b"[NaN, -Infinity, Infinity]",
        '["\u20ac\U0001f600 \x7f", 0, -0, 1E5, 0.5]'.encode(), b' {"a" : {"b" : [[[]]]}} \n',
    ]
    texts = list(seeds)
    for _ in range(3000):
        text = bytearray(chance.choice(seeds))
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(text))
            how = chance.randrange(3)
            if how == 0:
                text[at] = chance.choice(b'{}[]",:\\0123e.+-tfnu \n\x00\x80\xc3\xed\xa0\xff')
            elif how == 1:
                del text[at : at + chance.randrange(1, 4)]
            else:
                text[at:at] = chance.choice(seeds)[at : at + 5]
        texts.append(bytes(text) if b"\0" not in text[:4] else b"{")  # Python would take that for UTF-16
    members = [(f"{i:05d}.json", text) for i, text in enumerate(texts)]
    data = datasets.WebDataset(sources.write_tar(tmp_path / "x.tar", members), ("json",))
    loader = stoker.DataLoader(data, batch_size=len(texts), on_error="replace", error_limit=len(texts))
    (parsed,) = next(iter(loader))
    bad = {entry["sample"] for entry in loader.bad_samples()}
    good = 0
    for i, text in enumerate(texts):
        try:
            want = json.loads(text)
        except ValueError:
            assert parsed[i] is None, text
        else:
            good += 1
            assert i not in bad, text
            assert repr(parsed[i]) == repr(want), text  # NaN equals nothing
    assert 200 < good < len(texts) - 200


def test_bad_rows_follow_on_error(tmp_path):
    sources.make_manifest(tmp_path)
    rows = [json.dumps({"path": f"{i}.png", "label": i}) for i in range(6)]
    rows[1], rows[4] = '{"path": "1.png", "lab', '{"path": "4.png"}'
    (tmp_path / "x.jsonl").write_text("\n".join(rows))
    data = datasets.Manifest(tmp_path / "x.jsonl", transform=T.Compose([T.CenterCrop(16), T.ToTensor()]))
    assert len(data) == 6
    loader = stoker.DataLoader(data, batch_size=6, on_error="replace")
    assert next(iter(loader))[1].tolist() == [0, -100, 2, 3, -100, 5]
    ledger = {entry["sample"]: entry["reason"] for entry in loader.bad_samples()}
    assert "x.jsonl: line 2: not a JSON object" in ledger[1] and "line 5: label is missing" in ledger[4]
    skipped = next(iter(stoker.DataLoader(data, batch_size=6, on_error="skip")))
    assert set(skipped[1].tolist()) <= {0, 2, 3, 5}
    with pytest.raises(stoker.CorruptSample, match="line 2"):
        list(stoker.DataLoader(data, batch_size=6))
    (tmp_path / "y.jsonl").write_text("{\n[]\n")
    with pytest.raises(stoker.CorruptSample, match="y.jsonl: line 1"):
        datasets.Manifest(tmp_path / "y.jsonl")


def test_json_lines_are_read_as_python_reads_them(tmp_path):
    sources.make_manifest(tmp_path)
    texts = [r'"a\u0000b"', r'"\u0000"', r'"\ud800"', r'"\udc00x"', r'"\ud800\u0041"', r'"\ud800\ud83d\ude00"',
             r'"\uD83D\uDE00"', r'"\u00e9\n"', '""', '"[1]"']
    deep = ["[" * n + "]" * n for n in (64, 65, 200, 499)]
    rows = [f'{{"path": "0.png", "text": {text}, "more": {more}}}'
            for text in texts for more in ['{"a": [null]}', *deep]]
    (tmp_path / "x.jsonl").write_text("\n".join(rows))
    data = datasets.Manifest(tmp_path / "x.jsonl", ["path=image", "text=text", "more=json"],
                             T.Compose([T.CenterCrop(16), T.ToTensor()]))
    loader = stoker.DataLoader(data, batch_size=len(rows))
    (batch,) = loader
    want = [json.loads(row) for row in rows]
    assert list(batch[1]) == [row["text"] for row in want]
    assert list(batch[2]) == [row["more"] for row in want]


def test_what_is_not_read_of_json_lines_is_named_as_such(tmp_path):
    sources.make_manifest(tmp_path)
    deep = "[" * 501 + "]" * 501
    rows = ['{"path": "0.png", "label": 1}', f'{{"path": "1.png", "label": {deep}}}', r'{"path": "2\u0000.png", "label": 1}',
            '{"path": "3.png", "label": 1}']
    (tmp_path / "x.jsonl").write_text("\n".join(rows))
    loader = stoker.DataLoader(datasets.Manifest(tmp_path / "x.jsonl", transform=T.Compose([T.CenterCrop(16), T.ToTensor()])),
                               batch_size=4, on_error="replace")
    list(loader)
    ledger = {entry["sample"]: entry["reason"] for entry in loader.bad_samples()}
    assert sorted(ledger) == [1, 2]
    assert "line 2: JSON nested more than 500 levels deep at column" in ledger[1] and "damage" not in ledger[1]
    assert r"line 3: path contains \u0000" in ledger[2]


def test_no_name_is_doubled(tmp_path):
    """An error names its file once, whoever finds it: the source, the decoder, the pipeline."""
    np.save(tmp_path / "u.npy", np.zeros((3, 40), np.uint8))
    good = encoded(0)
    tar = sources.write_tar(tmp_path / "x.tar", [("a.png", good[:40]), ("b.png", good)])
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a/a.png", good[:40])
        archive.writestr("a/b.png", good)
    (tmp_path / "folder" / "a").mkdir(parents=True)
    (tmp_path / "folder" / "a" / "a.png").write_bytes(good[:40])
    (tmp_path / "folder" / "a" / "b.png").write_bytes(good)
    transform = T.Compose([T.CenterCrop(16), T.ToTensor()])
    made = {
        "u.npy": datasets.Npy(tmp_path / "u.npy", {"u": "image"}, transform),
        "x.tar": datasets.WebDataset(tar, ("png",), transform),
        "x.zip": datasets.Zip(tmp_path / "x.zip", transform=transform),
        "folder": datasets.ImageFolder(tmp_path / "folder", transform),
    }
    for name, data in made.items():
        loader = stoker.DataLoader(data, batch_size=len(data), on_error="replace")
        list(loader)
        (*_, entry) = loader.bad_samples()
        assert entry["reason"].count(name) == 1, entry["reason"]


def test_bad_record_is_named(tmp_path):
    (path, *_) = sources.make_tfrecord(tmp_path)
    size = len(sources.record(encoded(0), label(0)))
    data = bytearray(Path(path).read_bytes())
    data[size + 200] ^= 1
    Path(path).write_bytes(data)
    records = datasets.TFRecord(path)
    assert records[0][1] == label(0) and records[2][1] == label(2)
    with pytest.raises(stoker.CorruptSample, match=f"s-0.tfrecord.*{size}.*"):
        records[1]


def test_text_that_is_no_utf8_keeps_its_bytes(tmp_path):
    path = sources.write_tar(tmp_path / "x.tar", [("a.txt", b"caf\xe9")])
    ((text,),) = datasets.WebDataset(path, ("txt",))
    assert os.fsencode(text) == b"caf\xe9"
