# SPDX-License-Identifier: Apache-2.0
"""What a path can stand for: folders that `stoker pack` wrote, lists, braces, patterns, folders of archives; and what is
said of all else."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import sources
import stoker
from conftest import picture
from packing import archive, big_tree, pack
from packing import stoker as program
from stoker import datasets
from stoker import transforms as T

PACKED = ["tar", "tfrecord", "lmdb", "hdf5", "npy"]
CROP = T.Compose([T.CenterCrop(16), T.ToTensor()])


def samples(data):
    return [(np.asarray(image), label) for image, label in data]


def same(ours, theirs) -> bool:
    return len(ours) == len(theirs) and all(
        np.array_equal(a, b) and x == y for (a, x), (b, y) in zip(ours, theirs, strict=True))


def packed(source, out: Path, form: str, *more) -> Path:
    got = program("pack", source, out, "--format", form, *more)
    if got.returncode == 2:
        pytest.skip(f"this build has no {form}")
    assert got.returncode == 0, got.stderr
    return out


# ---- what pack wrote ----


@pytest.mark.parametrize("form", PACKED)
def test_a_packed_folder_is_the_folder(tmp_path, form):
    """With its classes, by stoker.open, by its class, in another process, and in the program."""
    tree = big_tree(tmp_path / "tree", 9, (40, 30))
    theirs = datasets.ImageFolder(tree)
    out = packed(tree, tmp_path / "out", form, "--shard-size", "8K")
    data = stoker.open(out)
    assert same(samples(data), samples(theirs))
    assert data.classes == theirs.classes == ["c0", "c1", "c2"] and data.class_to_idx == theirs.class_to_idx
    again = pickle.loads(pickle.dumps(data))
    assert same(samples(again), samples(theirs)) and again.classes == theirs.classes
    by_class = type(data)(out, transform=CROP) if form != "hdf5" else stoker.open(out, transform=CROP)
    images, labels = next(iter(stoker.DataLoader(by_class, batch_size=9)))[:2]
    assert images.shape == (9, 3, 16, 16)
    if form != "lmdb":
        assert labels.tolist() == theirs.targets
    both = datasets.Concat([data, again])
    assert both.classes == theirs.classes and len(both) == 18
    assert "classes      3" in program("info", out).stdout


@pytest.mark.parametrize("form", PACKED)
def test_one_file_of_a_pack_has_the_classes(tmp_path, form):
    tree = big_tree(tmp_path / "tree", 9, (40, 30))
    out = packed(tree, tmp_path / "out", form, "--shard-size", "8K")
    name = {"tar": "shard-000000.tar", "tfrecord": "shard-000001.tfrecord", "lmdb": "data.mdb", "hdf5": "data.h5",
            "npy": "label.npy"}[form]
    assert stoker.open(out / name).classes == ["c0", "c1", "c2"]
    if form in ("tar", "tfrecord"):
        data = stoker.open(f"{out}/shard-*.{form}")
        assert data.classes == ["c0", "c1", "c2"] and len(data) == 9


def test_a_tar_file_of_a_pack_keeps_its_classes_anywhere(tmp_path):
    """Alone, with odd names; tar, tarfile and webdataset take no notice."""
    tree = tmp_path / "tree"
    names = ["größer", 'quo"te\\', "tab\tbed", "x" * 200] + [os.fsdecode(b"\xff\xfe"), "a b"]
    for name in names:
        (tree / name).mkdir(parents=True)
        picture(len(name), 40, 30).save(tree / name / "0.jpg")
    pack(tree, tmp_path / "out")
    shard = tmp_path / "elsewhere.tar"
    shutil.move(tmp_path / "out" / "shard-000000.tar", shard)
    classes = datasets.ImageFolder(tree).classes
    assert sorted(classes) == sorted(names)
    for data in (stoker.open(shard), datasets.WebDataset(shard), stoker.open(shard, index_dir=tmp_path)):
        assert data.classes == classes and len(data) == 6
    with tarfile.open(shard) as tar:
        assert len(tar.getnames()) == 13
    listed = subprocess.run(["tar", "tf", str(shard)], capture_output=True, check=True)
    assert not listed.stderr and len(listed.stdout.splitlines()) == 13
    wds = pytest.importorskip("webdataset")
    assert len(list(wds.WebDataset(str(shard), shardshuffle=False))) == 6
    pack(shard, tmp_path / "again")
    assert (tmp_path / "again" / "shard-000000.tar").read_bytes() == shard.read_bytes()


def test_a_mixed_folder_packed(tmp_path):
    """Samples of several kinds of image are one field."""
    tree = tmp_path / "tree"
    for i, kind in enumerate(["jpg", "png", "webp", "jpg"]):
        (tree / f"c{i % 2}").mkdir(parents=True, exist_ok=True)
        picture(i, 40, 30).save(tree / f"c{i % 2}" / f"{i}.{kind}")
    pack(tree, tmp_path / "out")
    data = stoker.open(tmp_path / "out")
    assert same(samples(data), samples(datasets.ImageFolder(tree)))
    assert data.field_types == {"jpg;png;webp": "image", "cls": "int"}


def test_a_pack_that_is_not_complete(tmp_path):
    out = tmp_path / "out"
    pack(archive(tmp_path / "in.tar", 40), out, "--shard-size", "8K")
    text = (out / "manifest.json").read_text()
    (out / "manifest.json").write_text(text.replace('"complete": true', '"complete": false'))
    with pytest.raises(ValueError, match="incomplete; run the same 'stoker pack' command again"):
        stoker.open(out)
    assert "not complete" in program("verify", out).stdout
    assert "not complete" in pack(out, tmp_path / "other", code=1).stderr
    (out / "manifest.json").write_text(text)
    with pytest.raises(ValueError, match="contains shard-000000.tar.*hdf5"):
        datasets.HDF5(out)


def test_a_manifest_of_somebody_else(tmp_path):
    tree = big_tree(tmp_path / "tree", 3, (40, 30))
    (tree / "manifest.json").write_text('{"name": "app"}')
    assert len(stoker.open(tree)) == 3


# ---- several files ----


def parts_of(kind: str, root: Path) -> list[Path]:
    """Three files of one kind."""
    paths = []
    for i in range(3):
        part = root / f"part{i}"
        part.mkdir(parents=True)
        made = sources.FORMATS[kind][0](part)
        path = Path(str(made).replace("{0..2}", "0"))
        target = root / f"x-{i:02}{path.suffix}"
        shutil.move(path, target)
        if kind == "manifest":  # its files are relative to it
            target.write_text(target.read_text().replace("\n", f"\npart{i}/").removesuffix(f"part{i}/"))
        else:
            shutil.rmtree(part)
        paths.append(target)
    return paths


@pytest.mark.parametrize("kind", ["hdf5", "lmdb", "npz", "zip", "manifest", "tar"])
def test_lists_braces_patterns_and_folders(tmp_path, kind):
    if kind == "hdf5":
        pytest.importorskip("h5py")
    if kind == "lmdb":
        pytest.importorskip("lmdb")
    paths = parts_of(kind, tmp_path / "d")
    opened = sources.FORMATS[kind][1]
    one = opened(str(paths[0]), CROP)
    count, suffix = len(one), paths[0].suffix
    ways = [paths, "::".join(map(str, paths)), f"{tmp_path}/d/x-{{00..02}}{suffix}", f"{tmp_path}/d/x-*{suffix}"]
    if kind != "manifest":
        ways.append(tmp_path / "d")
    for way in ways:
        data = opened(way, CROP)
        assert len(data) == 3 * count, way
        for i in (0, count, 3 * count - 1):
            assert np.array_equal(np.asarray(data[i][0]), np.asarray(one[i % count][0]))
            assert data[i][1] == one[i % count][1]
        assert type(stoker.open(way)) is type(one) and len(stoker.open(way)) == 3 * count
    batches = list(stoker.DataLoader(opened(paths, CROP), batch_size=16, shuffle=True))
    assert sum(len(batch[0]) for batch in batches) == 3 * count


def test_npy_files_in_a_row(tmp_path):
    rows = np.arange(60, dtype=np.float32).reshape(6, 10)
    for i in range(3):
        np.save(tmp_path / f"{i}.npy", rows[2 * i : 2 * i + 2])
    for way in (tmp_path, f"{tmp_path}/{{0..2}}.npy", f"{tmp_path}/*.npy"):
        data = stoker.open(way)
        assert type(data) is datasets.Npy and np.array_equal([row for (row,) in data], rows)
    np.save(tmp_path / "3.npy", np.zeros((2, 10), np.int32))
    with pytest.raises(ValueError, match="field 0"):
        stoker.open(tmp_path)


def test_labels_that_would_mean_two_things(tmp_path):
    for name, classes in (("a", "xy"), ("b", "xz")):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w") as file:
            for c in classes:
                file.writestr(f"{c}/0.png", sources.encoded(0))
    with pytest.raises(ValueError, match=r"b\.zip: its classes differ from those of .*a\.zip \(label 1 is z here, y there\)"):
        stoker.open(f"{tmp_path}/*.zip")
    for name in "ab":
        np.savez(tmp_path / f"{name}.npz", **{name: np.zeros((2, 3))})
    with pytest.raises(ValueError, match=r"b\.npz: its fields differ from those of .*a\.npz"):
        stoker.open(f"{tmp_path}/*.npz")


def test_names_with_odd_signs_are_names_first(tmp_path):
    for name in ("a::b.npy", "a{0..1}.npy", "[x]*.npy"):
        np.save(tmp_path / name, np.zeros((2, 3), np.float32))
        assert len(stoker.open(tmp_path / name)) == 2


def test_folders_of_archives(tmp_path):
    """Of one kind: open; of several, or beside class folders or images: not guessed at."""
    root = tmp_path / "d"
    root.mkdir()
    archive(root / "b.tar", 4)
    archive(root / "a.tar", 3)
    (root / "README.md").write_text("three and four")
    (root / ".hidden.npy").write_bytes(b"")
    data = stoker.open(root)
    assert [label for _, label in data] == [0, 1, 2, 0, 1, 2, 3] and type(data) is datasets.WebDataset
    assert "all good" in program("verify", root).stdout
    np.save(root / "c.npy", np.zeros(3))
    with pytest.raises(ValueError, match="archives of several kinds.*choose"):
        stoker.open(root)
    assert len(stoker.open(f"tar:{root}")) == 7 and len(datasets.Npy(root)) == 3
    with pytest.raises(FileNotFoundError, match="contains no hdf5 files"):
        datasets.HDF5(root)
    with pytest.raises(FileNotFoundError, match=f"contains no class folders.*it contains (tar|npy) files: use stoker.open\\('(tar|npy):{root}"):
        datasets.ImageFolder(root)
    (root / "cat").mkdir()
    (root / "cat" / "0.png").write_bytes(sources.encoded(0))
    assert type(stoker.open(root)) is datasets.ImageFolder


# ---- what is no dataset ----


@pytest.mark.parametrize("name, content, error, said", [
    ("x.parquet", b"PAR1\0\0PAR1", NotImplementedError, "Parquet.*CSV or JSON lines"),
    ("x.arrow", b"ARROW1\0\0", NotImplementedError, "Arrow.*CSV or JSON lines"),
    ("x.jpg", b"\xff\xd8\xff\xe0", NotImplementedError, "a JPEG image.*folder"),
    ("x.pkl", b"\x80\x04\x95", NotImplementedError, "pickle"),
    ("notes.txt", b"hello\n", NotImplementedError, "cannot tell the kind of dataset"),
    ("empty.csv", b"", stoker.CorruptSample, "is empty"),
    ("empty", b"", stoker.CorruptSample, "is empty"),
])
def test_files_of_no_kind(tmp_path, name, content, error, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(error, match=f"{name}.*{said}"):
        stoker.open(tmp_path / name)
    got = program("info", tmp_path / name)
    assert got.returncode == 1 and name in got.stderr and got.stderr.count("\n") == 1


@pytest.mark.parametrize("path", ["x.tar", "x.h5", "x.lmdb", "x.zip", "x.npy", "x.npz", "x.csv", "x.jsonl", "x.tfrecord",
                                  "x", "x/", "tar:x", "hdf5:x", "lmdb:x", "zip:x", "npy:x", "npz:x", "csv:x", "jsonl:x",
                                  "tfrecord:x", "folder:x", "flat:x", "x-{0..3}.h5", "x*.tar", "x.h5::y.h5"])  # fmt: skip
def test_what_is_missing_is_not_found(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    if "hdf5" in path or "h5" in path:
        pytest.importorskip("h5py")
    with pytest.raises(FileNotFoundError, match="x"):
        stoker.open(path)


@pytest.mark.parametrize("made", [datasets.WebDataset, datasets.TFRecord, datasets.HDF5, datasets.LMDB, datasets.Zip,
                                  datasets.Npy, datasets.Npz, datasets.Manifest, datasets.ImageFolder,
                                  datasets.FlatFolder])  # fmt: skip
def test_missing_by_class(tmp_path, made):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        made(tmp_path / "nowhere")


@pytest.mark.parametrize("uri", ["gs://bucket/x.tar", "hdfs://host/x.tar", "file:///x.tar", "ftp://host/x.npy"])
def test_other_schemes(uri):
    with pytest.raises(NotImplementedError, match="http://, https:// and s3://"):
        stoker.open(uri)


def test_unknown_kinds():
    with pytest.raises(NotImplementedError, match="this build supports folder, flat, csv"):
        stoker.open("tarr:x.tar")


def test_folders_of_no_kind(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(ValueError, match="no class folder.*Parquet.*CSV"):
        stoker.open(tmp_path)
    flat = tmp_path / "flat"
    flat.mkdir()
    (flat / "0.png").write_bytes(sources.encoded(0))
    with pytest.raises(ValueError, match=f"images without classes: open flat:{flat}"):
        stoker.open(flat)
    with pytest.raises(ValueError, match="no class folder"):
        (tmp_path / "nothing").mkdir()
        stoker.open(tmp_path / "nothing")


def test_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    np.save(tmp_path / "x.npy", np.zeros((2, 3)))
    assert len(stoker.open("~/x.npy")) == 2 and len(datasets.Npy(["~/x.npy", "~/x.npy"])) == 4
    got = program("info", "~/x.npy")
    assert "'~' is not expanded here" in got.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_without_permission(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((2, 3)))
    (tmp_path / "x.npy").chmod(0)
    with pytest.raises(OSError, match=r"x\.npy: Permission denied"):
        stoker.open(tmp_path / "x.npy")


# ---- zip archives ----


def test_a_zip_with_one_class(tmp_path):
    """As ImageFolder on the unpacked archive."""
    for root in ("", "top/"):
        path = tmp_path / f"{len(root)}.zip"
        with zipfile.ZipFile(path, "w") as file:
            for i in range(3):
                file.writestr(f"{root}cat/{i}.png", sources.encoded(i))
        data = datasets.Zip(path)
        assert data.classes == ["cat"] and data.targets == [0, 0, 0]


def test_a_bad_entry_of_a_zip_is_one_bad_sample(tmp_path):
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as file:
        for i in range(6):
            file.writestr(f"c{i % 2}/{i}.png", sources.encoded(i))
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02", data.index(b"PK\x01\x02") + 4)  # that of c1/1.png
    data[at : at + 4] = b"\0\0\0\0"
    path.write_bytes(data)
    loader = stoker.DataLoader(datasets.Zip(path, transform=CROP), batch_size=6, on_error="replace")
    assert next(iter(loader))[1].tolist() == [0, 0, 0, -100, 1, 1]
    (bad,) = loader.bad_samples()
    assert bad["sample"] == 3 and "x.zip: c1/1.png: its entry" in bad["reason"]
