# SPDX-License-Identifier: Apache-2.0
"""`stoker pack` from every kind of source to every format: each format's own library reads the same samples."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sources
from packing import (
    READERS,
    archive,
    as_pixels,
    pack,
    pixels,
    read_npy,
    read_tar,
    stoker,
)
from sources import COUNT, encoded, label, order_of

# ---- the matrix ---------------------------------------------------------------------------------


def make_folder(root: Path) -> str:
    for i in range(COUNT):
        path = root / "tree" / f"class{label(i)}" / f"{i:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(i))
    return str(root / "tree")


def make_npy(root: Path) -> str:
    np.save(root / "x.npy", np.stack([sources.pixels(i) for i in range(COUNT)]))
    return str(root / "x.npy")


# How each source is made, and its fields that are an image and a label.
SOURCES = {
    "folder": (make_folder, None),
    "tar": (sources.make_tar, "png,cls"),
    "tfrecord": (lambda root: sources.make_tfrecord(root)[0].replace("s-0", "s-{0..1}"), None),
    "lmdb": (sources.make_lmdb, None),
    "hdf5": (sources.make_hdf5, "images,labels"),
    "zip": (sources.make_zip, None),
    "npz": (sources.make_npz, None),
    "npy": (make_npy, None),
    "csv": (sources.make_manifest, None),
}
OF_PIXELS = ("hdf5", "npz", "npy")  # what they hold is no encoded image
NO_LABEL = ("npy",)


@pytest.mark.parametrize("target", list(READERS))
@pytest.mark.parametrize("kind", list(SOURCES))
def test_from_everything_to_everything(tmp_path, kind, target):
    make, fields = SOURCES[kind]
    source = make(tmp_path)
    choice = ["--fields", fields] if fields else []
    got = stoker("pack", source, tmp_path / "out", "--format", target, *choice)
    if got.returncode == 2:
        pytest.skip(f"this build has no {target}")
    if kind == target == "hdf5" and got.returncode == 1:
        assert "cannot read and write at the same time" in got.stderr
        pytest.skip("this machine's HDF5 serves one thread alone")
    if target == "lmdb" and kind in OF_PIXELS:  # an encoded image is wanted
        assert got.returncode == 1 and "--quality" in got.stderr and got.stderr.count("\n") == 1
        pack(source, tmp_path / "out", "--format", target, "--quality", 95, *choice)
        if kind in NO_LABEL:
            return
        found = list(READERS[target](tmp_path / "out"))
        for i, (image, _) in enumerate(found):
            assert np.abs(pixels(image).astype(int) - sources.pixels(i)).mean() < 12
        assert [number for _, number in found] == [label(i) for i in range(COUNT)]
        return
    assert got.returncode == 0, got.stderr
    if target == "tar" and kind in NO_LABEL:
        return  # test_arrays_become_members
    order = sorted(range(COUNT), key=label) if kind == "folder" else order_of(kind)
    found = list(READERS[target](tmp_path / "out"))
    assert len(found) == COUNT
    for (image, number), i in zip(found, order, strict=True):
        if kind not in OF_PIXELS and target not in ("hdf5", "npy"):
            assert image == encoded(i)  # the file itself, byte for byte
        assert np.array_equal(as_pixels(image), sources.pixels(i))
        assert number == (None if kind in NO_LABEL else label(i))
    assert stoker("verify", tmp_path / "out", "--deep").returncode == 0
    pack(tmp_path / "out", tmp_path / "back", "--format", "npy", *back_fields(kind, target))
    for (image, number), i in zip(read_npy(tmp_path / "back"), order, strict=True):
        assert np.array_equal(image, sources.pixels(i))
        assert number == (None if kind in NO_LABEL else label(i))


def back_fields(kind: str, target: str) -> list[str]:
    """Records hold pixels without their shape: who reads them says it."""
    if target != "tfrecord" or kind not in OF_PIXELS:
        return []
    shape = f"u8[{sources.HEIGHT}x{sources.WIDTH}x3]"
    return ["--fields", f"row={shape}" if kind == "npy" else f"images={shape},labels=int"]


def test_arrays_become_members(tmp_path):
    pack(make_npy(tmp_path), tmp_path / "out")
    wds = pytest.importorskip("webdataset")
    found = list(wds.WebDataset(str(tmp_path / "out" / "shard-000000.tar"), shardshuffle=False))
    assert len(found) == COUNT
    for i, sample in enumerate(found):
        image = next(v for k, v in sample.items() if k.endswith("npy"))
        assert np.array_equal(np.load(io.BytesIO(image)), sources.pixels(i))


def test_every_type_of_field(tmp_path):
    """Text, JSON, arrays, numbers and bytes, through tar and TFRecord and back."""
    source = sources.make_tar(tmp_path)
    fields = "png,cls,txt,json,npy,rag.npy,bin"
    pack(source, tmp_path / "tar", "--fields", fields)
    wds = pytest.importorskip("webdataset")
    samples = list(wds.WebDataset(str(tmp_path / "tar" / "shard-000000.tar"), shardshuffle=False))
    for i, sample in enumerate(samples):
        assert sample["png"] == encoded(i) and sample["txt"].decode() == f"Bild {i} für dich"
        assert json.loads(sample["json"]) == {"number": i, "list": [1.5, None]}
        assert np.array_equal(np.load(io.BytesIO(sample["npy"])), np.arange(6, dtype=np.float32).reshape(2, 3) + i)
        assert np.array_equal(np.load(io.BytesIO(sample["rag.npy"])), np.arange(i % 3, dtype=np.int32))
        assert sample["bin"] == bytes(range(i))
    assert len(samples) == COUNT
    pack(source, tmp_path / "record", "--format", "tfrecord", "--fields", fields)
    reader = pytest.importorskip("tfrecord")
    examples = list(reader.tfrecord_loader(str(tmp_path / "record" / "shard-000000.tfrecord"), None))
    for i, example in enumerate(examples):
        assert bytes(example["png"]) == encoded(i) and int(example["cls"][0]) == label(i)
        assert bytes(example["txt"]).decode() == f"Bild {i} für dich"
        assert np.array_equal(example["npy"], np.arange(6, dtype=np.float32) + i)
    assert len(examples) == COUNT
    for form in ("lmdb", "hdf5", "npy"):
        got = stoker("pack", source, tmp_path / form, "--format", form, "--fields", fields)
        assert got.returncode in (1, 2) and got.stderr.count("\n") == 1
        assert got.returncode == 2 or "--fields" in got.stderr
        assert not list((tmp_path / form).glob("*.[nhm][pd5]*"))


def test_features_are_named_for_the_fields(tmp_path):
    """Also where nobody chose the fields, so that images of any suffix would do."""
    reader = pytest.importorskip("tfrecord")
    pack(archive(tmp_path / "in.tar", 3), tmp_path / "out", "--format", "tfrecord")
    for example in reader.tfrecord_loader(str(tmp_path / "out" / "shard-000000.tfrecord"), None):
        assert set(example) == {"png", "cls"}


def test_sounds(tmp_path):
    """A folder of them: packed as they are, looked into, and refused where arrays or images are wanted."""
    soundfile, wds = pytest.importorskip("soundfile"), pytest.importorskip("webdataset")
    for i in range(6):
        path = tmp_path / "tree" / f"c{i % 2}" / f"{i}.{'flac' if i > 2 else 'wav'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(path, np.random.default_rng(i).normal(0, 0.1, 8000), 16000)
    files = sorted((tmp_path / "tree").rglob("*.*"))
    got = stoker("info", tmp_path / "tree", "--html", tmp_path / "page.html").stdout
    if "sounds" not in got:
        pytest.skip("this build cannot read sounds")
    assert "16000 Hz, 0.5 s on average" in got and "of sound in total" in (tmp_path / "page.html").read_text()
    pack(tmp_path / "tree", tmp_path / "tar")
    found = list(wds.WebDataset(str(tmp_path / "tar" / "shard-000000.tar"), shardshuffle=False))
    assert [next(s[k] for k in ("wav", "flac") if k in s) for s in found] == [f.read_bytes() for f in files]
    assert [int(s["cls"]) for s in found] == [0, 0, 0, 1, 1, 1]
    pack(tmp_path / "tree", tmp_path / "record", "--format", "tfrecord")
    reader = pytest.importorskip("tfrecord")
    for example, file in zip(reader.tfrecord_loader(str(tmp_path / "record" / "shard-000000.tfrecord"), None), files,
                             strict=True):
        assert bytes(example["audio"]) == file.read_bytes()
    assert "is audio, which cannot be stored as an array" in pack(tmp_path / "tree", tmp_path / "npy", "--format", "npy", code=1).stderr
    assert "encoded image" in pack(tmp_path / "tree", tmp_path / "lmdb", "--format", "lmdb", code=1).stderr
    flac = next(f for f in files if f.suffix == ".flac")
    flac.write_bytes(flac.read_bytes()[:3000] + bytes(3000))
    assert stoker("verify", tmp_path / "tree").returncode == 0  # its header is as it should be
    got = stoker("verify", tmp_path / "tree", "--deep")
    assert got.returncode == 3 and flac.name in got.stdout and got.stdout.count("bad ") == 1, got.stdout
    flac.write_bytes(b"no sound")
    assert flac.name in pack(tmp_path / "tree", tmp_path / "stop", code=1).stderr


# ---- TensorFlow ---------------------------------------------------------------------------------

TENSORFLOW = os.environ.get("STOKER_TENSORFLOW") or (
    sys.executable if importlib.util.find_spec("tensorflow") else None)
READ_BY_TENSORFLOW = """
import json, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
image, label, paths = sys.argv[1], sys.argv[2], sys.argv[3:]
features = {image: tf.io.FixedLenFeature([], tf.string), label: tf.io.FixedLenFeature([], tf.int64)}
for packing, names in ("", paths), ("GZIP", [path + ".gz" for path in paths]):
    for record in tf.data.TFRecordDataset(names, compression_type=packing):
        sample = tf.io.parse_single_example(record, features)
        pixels = tf.io.decode_image(sample[image]).numpy() if label != "labels" else b""
        print(json.dumps([packing, sample[image].numpy().hex(), int(sample[label]), bytes(pixels).hex()]))
"""


@pytest.mark.skipif(not TENSORFLOW, reason="TensorFlow is not installed; STOKER_TENSORFLOW names a Python that has it")
@pytest.mark.parametrize("kind, image, number", [
    ("folder", "image/encoded", "image/class/label"), ("tar", "png", "cls"), ("hdf5", "images", "labels")])
def test_tensorflow_reads_every_sample(tmp_path, kind, image, number):
    make, fields = SOURCES[kind]
    pack(make(tmp_path), tmp_path / "out", "--format", "tfrecord", "--shard-size", "8K",
         *(["--fields", fields] if fields else []))
    shards = sorted((tmp_path / "out").glob("shard-*.tfrecord"))
    assert len(shards) > 2
    subprocess.run(["gzip", "-k", *map(str, shards)], check=True)
    order = sorted(range(COUNT), key=label) if kind == "folder" else order_of(kind)
    got = subprocess.run([TENSORFLOW, "-c", READ_BY_TENSORFLOW, image, number, *map(str, shards)],
                         capture_output=True, text=True, check=True, timeout=600)
    samples = [json.loads(line) for line in got.stdout.splitlines()]
    for packing in ("", "GZIP"):
        found = [s for s in samples if s[0] == packing]
        assert len(found) == COUNT
        for (_, data, value, decoded), i in zip(found, order, strict=True):
            assert value == label(i)
            if kind == "hdf5":
                assert bytes.fromhex(data) == sources.pixels(i).tobytes()
            else:
                assert bytes.fromhex(data) == encoded(i) and bytes.fromhex(decoded) == sources.pixels(i).tobytes()
    for shard in shards:
        shard.unlink()
    # And gzip files are read by us, sample for sample.
    pack(f"tfrecord:{tmp_path}/out/shard-*.tfrecord.gz", tmp_path / "tar", *back_fields(kind, "tfrecord"))
    back = list(read_tar(tmp_path / "tar"))
    assert [n for _, n in back] == [label(i) for i in order]
    assert all(np.array_equal(as_pixels(p), sources.pixels(i)) for (p, _), i in zip(back, order, strict=True))
