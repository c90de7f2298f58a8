# SPDX-License-Identifier: Apache-2.0
"""The fields of every format, against what its own library reads."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import wave as wavelib
import zipfile
from pathlib import Path

import numpy as np
import pytest
import sources
import stoker
import torch
from sources import COUNT, FORMATS, encoded, label, pixels
from stoker import audio, datasets
from stoker import transforms as T

DATA = Path(__file__).parent.parent / "data"


def rows_of(loader):
    """The samples of an epoch, each a tuple."""
    return [row for batch in loader for row in zip(*batch, strict=True)]


def equal(ours, theirs):
    if isinstance(theirs, np.ndarray):
        ours = np.asarray(ours)
        return ours.dtype == theirs.dtype and np.array_equal(ours, theirs)
    return type(ours) is type(theirs) and ours == theirs


@pytest.mark.parametrize("kind", FORMATS)
def test_open_knows_what_it_is(kind, tmp_path):
    made = FORMATS[kind][0](tmp_path)
    expected = FORMATS[kind][1](made, None)
    path = made if isinstance(made, str) else made[0]
    data = stoker.open(path, transform=T.ToTensor())
    assert type(data) is type(expected)
    place = list(data.field_types.values()).index("image")
    assert data[0][place].shape == (3, sources.HEIGHT, sources.WIDTH)
    assert "Root location" in repr(data)
    named = stoker.open(f"{data._engine().kind}:{path}")
    assert type(named) is type(data) and named.path == path


def test_open_a_folder(tree):
    data = stoker.open(tree, transform=T.ToTensor())
    assert type(data) is datasets.ImageFolder and data.classes == ["ant", "bee", "cow"]
    assert type(stoker.open(f"flat:{tree}")) is datasets.FlatFolder
    with pytest.raises(ValueError, match="an image and a label"):
        stoker.open(tree, fields="image")


# ---- against the libraries ----


def test_webdataset(tmp_path):
    webdataset = pytest.importorskip("webdataset")
    url = sources.make_tar(tmp_path)
    suffixes = ("png", "cls", "txt", "json", "npy", "rag.npy", "bin", "__key__")
    theirs = list(
        webdataset.WebDataset(url, shardshuffle=False, empty_check=False)
        .decode("rgb8")
        .to_tuple(*suffixes)
    )
    data = datasets.WebDataset(url, suffixes)
    assert len(data) == len(theirs) == COUNT
    for i, expected in enumerate(theirs):
        for name, ours, other in zip(suffixes, data[i], expected, strict=True):
            assert equal(ours, other), (i, name)
    shards = [f"{tmp_path}/s-{k}.tar" for k in (2, 0)]
    assert [key for (key,) in datasets.WebDataset(shards, ("__key__",))] == [
        f"{i:04}" for i in [*range(16, COUNT), *range(8)]
    ]


def test_batches_of_every_type(tmp_path):
    suffixes = ("txt", "cls", "png", "json", "npy", "rag.npy", "bin")
    data = datasets.WebDataset(sources.make_tar(tmp_path), suffixes, T.ToTensor())
    assert list(data.field_types.values()) == ["text", "int", "image", "json", "array", "array", "bytes"]
    text, cls, images, parsed, stacked, ragged, raw = next(iter(stoker.DataLoader(data, batch_size=5)))
    assert text == [f"Bild {i} für dich" for i in range(5)]
    assert cls.dtype == torch.int64 and cls.tolist() == [label(i) for i in range(5)]
    assert images.shape == (5, 3, sources.HEIGHT, sources.WIDTH)
    assert parsed == [{"number": i, "list": [1.5, None]} for i in range(5)]
    assert stacked.dtype == torch.float32 and stacked.shape == (5, 2, 3) and stacked[4, 0, 0] == 4
    assert [part.tolist() for part in ragged] == [list(range(i % 3)) for i in range(5)]
    assert raw == [bytes(range(i)) for i in range(5)]
    one = list(stoker.DataLoader(data, batch_size=None))[2]
    assert one[0] == "Bild 2 für dich" and type(one[1]) is int and one[2].shape == images.shape[1:]
    assert one[4].shape == (2, 3) and one[6] == b"\0\1"


@pytest.mark.parametrize("output", ["numpy", "dlpack"])
def test_other_outputs(output, tmp_path):
    data = datasets.WebDataset(sources.make_tar(tmp_path), ("png", "cls", "npy"), T.ToTensor())
    images, cls, stacked = next(iter(stoker.DataLoader(data, batch_size=5, output=output)))
    assert np.from_dlpack(images).shape == (5, 3, sources.HEIGHT, sources.WIDTH)
    assert np.from_dlpack(cls).tolist() == [label(i) for i in range(5)]
    assert np.from_dlpack(stacked).shape == (5, 2, 3)


def test_mixup_takes_the_label(tmp_path):
    data = datasets.WebDataset(sources.make_tar(tmp_path), ("txt", "png", "cls"), T.ToTensor())
    mixup = T.MixUp(alpha=0.4, num_classes=5)
    text, images, soft = next(
        iter(stoker.DataLoader(data, batch_size=4, seed=1, batch_transforms=mixup))
    )
    assert len(text) == 4 and soft.shape == (4, 5) and images.is_floating_point()


def test_memory_outlives_the_loader(tmp_path):
    data = datasets.WebDataset(sources.make_tar(tmp_path), ("npy",))
    batches = [stacked for (stacked,) in stoker.DataLoader(data, batch_size=4)]
    del data
    assert [int(b[0, 0, 0]) for b in batches] == [0, 4, 8, 12, 16, 20]


TENSORFLOW_FIELDS = {
    "image/class/text": "text",
    "image/class/label": "int",
    "image/encoded": "bytes",
    "box": "float[2x2]",
    "score": "float",
    "ids": "int[]",
    "raw": "u8[12]",
    "big": "int[5]",
}


@pytest.mark.parametrize("name", ["examples", "gzip", "zlib"])
def test_tfrecord(name, tmp_path):
    path = shutil.copy(DATA / "tfrecord" / f"{name}.tfrecord", tmp_path)
    records = json.loads((DATA / "tfrecord" / f"{name}.json").read_text())
    data = datasets.TFRecord(path, TENSORFLOW_FIELDS)
    assert len(data) == len(records) > 1
    for ours, theirs in zip(data, records, strict=True):
        text, number, image, box, score, ids, raw, big = ours
        assert text.encode() == bytes.fromhex(theirs["image/class/text"][0])
        assert number == theirs["image/class/label"][0]
        assert image == bytes.fromhex(theirs["image/encoded"][0])
        assert box.dtype == np.float32 and box.ravel().tolist() == theirs["box"] and box.shape == (2, 2)
        assert type(score) is float and score == theirs["score"][0]
        assert ids.dtype == np.int64 and ids.tolist() == (theirs["ids"] or [])
        assert raw.tobytes() == bytes.fromhex(theirs["raw"][0])
        assert big.tolist() == theirs["big"]


def test_hdf5(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = sources.make_hdf5(tmp_path)
    names = ("scores", "images", "more/boxes", "deep", "labels")
    data = datasets.HDF5(path, names)
    batches = rows_of(stoker.DataLoader(data, batch_size=4, shuffle=True, seed=1, output="numpy"))
    with h5py.File(path) as file:
        for i in range(COUNT):
            theirs = [file[name][i] for name in names]
            for ours, other in zip(data[i], theirs, strict=True):
                assert np.array_equal(ours, other)
        for _, _, boxes, deep, number in batches:
            i = int(boxes[0]) // 4
            assert deep.dtype == np.int16 and np.array_equal(deep, file["deep"][i])
            assert number == file["labels"][i]
    assert next(iter(stoker.DataLoader(data, batch_size=3)))[0].dtype == torch.float64
    assert datasets.HDF5(path).targets == [label(i) for i in range(COUNT)]
    assert set(datasets.HDF5(path, None).field_types) == {"images", "labels", "scores", "deep"}


@pytest.mark.parametrize("options", [{}, {"chunks": (4,), "compression": "gzip"}], ids=["contiguous", "chunks"])
def test_jpegs_in_hdf5(tmp_path, options):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "x.h5", "w") as file:
        made = file.create_dataset("jpegs", (COUNT,), h5py.vlen_dtype(np.uint8), **options)
        for i in range(COUNT):
            made[i] = np.frombuffer(encoded(i), np.uint8)
        file["labels"] = np.arange(COUNT)
        file.create_dataset("words", data=[f"w{i}" for i in range(COUNT)], dtype=h5py.string_dtype())
    data = datasets.HDF5(tmp_path / "x.h5", None)
    assert data.field_types == {"jpegs": "image", "labels": "int", "words": "text"}
    for i in range(COUNT):
        assert np.array_equal(data[i][0], pixels(i)) and data[i][1:] == (i, f"w{i}")
    loader = stoker.DataLoader(data, batch_size=4, shuffle=True, num_workers=3, seed=1)
    assert sorted(label for batch in loader for label in batch[1].tolist()) == list(range(COUNT))
    assert not loader.stats()["notes"]
    raw = (tmp_path / "x.h5").read_bytes()
    at = raw.index(encoded(3)) - 8  # the size of its object in the heap
    size = len(encoded(3))
    wrong = size + 1 if size % 8 else size - 1  # all others stay where they are
    (tmp_path / "x.h5").write_bytes(raw[:at] + wrong.to_bytes(8, "little") + raw[at + 8:])
    loader = stoker.DataLoader(datasets.HDF5(tmp_path / "x.h5", None), batch_size=4, on_error="skip", seed=1)
    assert sum(len(batch[1]) for batch in loader) == COUNT
    assert any("row 3: jpegs: " in str(bad) for bad in loader.bad_samples())


def test_hdf5_says_which_filter_is_missing(tmp_path):
    h5py = pytest.importorskip("h5py")
    plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    plist.set_chunk((2, 4))
    plist.set_filter(32008, h5py.h5z.FLAG_OPTIONAL, (0, 0))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for name, mask in ("packed", 0), ("left_out", 1):
            made = h5py.h5d.create(file.id, name.encode(), h5py.h5t.STD_U8LE, h5py.h5s.create_simple((4, 4)), plist)
            for row in 0, 2:
                made.write_direct_chunk((row, 0), bytes(range(row * 4, row * 4 + 8)), mask)
    with pytest.raises(stoker.Unsupported, match=r"packed: .*bitshuffle \(number 32008\).*HDF5_PLUGIN_PATH.*h5repack"):
        datasets.HDF5(tmp_path / "x.h5", "packed")
    rows = datasets.HDF5(tmp_path / "x.h5", "left_out")  # by the writer, which had no such filter either
    assert np.array_equal(np.stack([row[0] for row in rows]), np.arange(16).reshape(4, 4))
    assert "the filter bitshuffle" in stoker.DataLoader(rows).stats()["notes"][0]


def test_numbers_beyond_int64_are_bad_samples_or_uint64(tmp_path):
    h5py = pytest.importorskip("h5py")
    numbers = np.array([1, 2**63, 2**64 - 1, 2**63 - 1], np.uint64)
    np.save(tmp_path / "x.npy", numbers)
    np.savez(tmp_path / "x.npz", x=numbers)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=numbers.astype(">u8"), chunks=(2,))
    kinds = {"npy": datasets.Npy, "npz": datasets.Npz, "h5": datasets.HDF5}
    for ending, kind in kinds.items():
        data = kind(tmp_path / f"x.{ending}", "x")
        assert data[0] == (1,) and data[3] == (2**63 - 1,)
        for i in 1, 2:
            with pytest.raises(stoker.StokerError, match=f"row {i}: x: {numbers[i]} does not fit into int64.*x=array"):
                data[i]
        whole = kind(tmp_path / f"x.{ending}", {"x": "array"})
        assert [int(row[0]) for row in whole] == [int(n) for n in numbers]
        loader = stoker.DataLoader(data, batch_size=4, on_error="replace")
        assert next(iter(loader))[0].tolist()[3] == 2**63 - 1 and len(loader.bad_samples()) == 2


def test_many_fields_and_dimensions(tmp_path):
    h5py = pytest.importorskip("h5py")
    arrays = {f"f{i:02}": np.arange(3) * i for i in range(64)}
    np.savez(tmp_path / "wide.npz", **arrays)
    with h5py.File(tmp_path / "wide.h5", "w") as file:
        for name, array in arrays.items():
            file[name] = array
    columns = ",".join(["path", *list(arrays)[1:]])
    rows = "".join(f"{i}.jpg," + ",".join(str(a[i]) for a in list(arrays.values())[1:]) + "\n" for i in range(3))
    (tmp_path / "wide.csv").write_text(columns + "\n" + rows)
    for data in datasets.Npz(tmp_path / "wide.npz", None), datasets.HDF5(tmp_path / "wide.h5", None):
        batch = next(iter(stoker.DataLoader(data, batch_size=3)))
        assert len(batch) == 64 and all(np.array_equal(got, arrays[f"f{i:02}"]) for i, got in enumerate(batch))
    with pytest.raises(stoker.LimitReached, match="more than 64"):
        datasets.Npz(tmp_path / "wide.npz", [f"f{i}" for i in range(65)])
    deep = np.arange(3 * 2**10).reshape(3, *[2] * 10)
    np.save(tmp_path / "deep.npy", deep)
    with h5py.File(tmp_path / "deep.h5", "w") as file:
        file.create_dataset("x", data=deep, chunks=(2, *[1, 2] * 5), compression="gzip")
    for data in datasets.Npy(tmp_path / "deep.npy", "x"), datasets.HDF5(tmp_path / "deep.h5", "x"):
        assert np.array_equal(data[1][0], deep[1])
        assert np.array_equal(next(iter(stoker.DataLoader(data, batch_size=3)))[0], deep)
    np.save(tmp_path / "deeper.npy", np.zeros([1] * 17))
    with pytest.raises(stoker.Unsupported, match="17 dimensions, but at most 16 are supported; reshape"):
        datasets.Npy(tmp_path / "deeper.npy")


def test_unknown_fields_list_those_that_exist(tmp_path):
    h5py = pytest.importorskip("h5py")
    np.savez(tmp_path / "x.npz", images=np.zeros((2, 3)), labels=np.zeros(2))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["images"], file["labels"] = np.zeros((2, 3)), np.zeros(2)
    (tmp_path / "x.csv").write_text("images,labels\na.jpg,1\n")
    for kind, name in (datasets.Npz, "x.npz"), (datasets.HDF5, "x.h5"), (datasets.Manifest, "x.csv"):
        with pytest.raises(ValueError, match=r"imagess.*(contains|has) images, labels"):
            kind(tmp_path / name, ("imagess", "labels"))
    records = datasets.TFRecord(sources.make_tfrecord(tmp_path), {"imagess": "image"})
    with pytest.raises(stoker.CorruptSample, match="no feature imagess; it has .*image"):
        records[0]


def test_lmdb(tmp_path):
    lmdb = pytest.importorskip("lmdb")
    path = sources.make_lmdb(tmp_path, encoded)
    with lmdb.open(path, readonly=True, lock=False) as env, env.begin() as txn:
        theirs = [(bytes(key), bytes(value)) for key, value in txn.cursor()]
    raw = datasets.LMDB(path, "bytes")
    assert [(key.encode(), value) for value, key in raw] == theirs
    image, key = datasets.LMDB(path, "image")[4]
    assert key == "0004" and np.array_equal(image, pixels(4))
    image, key = datasets.LMDB(path)[5]  # found out
    assert key == "0005" and np.array_equal(image, pixels(5))
    assert list(datasets.LMDB(path, fields="key")) == [(f"{i:04}",) for i in range(COUNT)]
    with pytest.raises(ValueError, match="image, datum, bytes"):
        datasets.LMDB(path, "jpeg")


def test_lmdb_databases_with_names(tmp_path):
    lmdb = pytest.importorskip("lmdb")
    path = str(tmp_path / "named.lmdb")
    with lmdb.open(path, map_size=1 << 24, max_dbs=3) as env:
        for name, count in ("train", 400), ("val", 3):
            with env.begin(write=True) as txn:
                for i in range(count):
                    txn.put(b"%s-%04d" % (name.encode(), i), encoded(i % COUNT), db=env.open_db(name.encode(), txn=txn))
        for name in "train", "val":
            with env.begin(db=env.open_db(name.encode())) as txn:
                theirs = [(bytes(value), bytes(key).decode()) for key, value in txn.cursor()]
            assert list(datasets.LMDB(path, "bytes", db=name)) == theirs
    data = pickle.loads(pickle.dumps(datasets.LMDB(path, db="val")))
    assert len(data) == 3 and np.array_equal(data[2][0], pixels(2)) and len(stoker.open(path, db="val")) == 3
    with pytest.raises(ValueError, match="choose one with db=: train, val"):
        datasets.LMDB(path)
    with pytest.raises(ValueError, match="db=test: there is no such database; it contains train, val"):
        datasets.LMDB(path, db="test")
    with pytest.raises(ValueError, match="contains no named databases"):
        datasets.LMDB(sources.make_lmdb(tmp_path, encoded), db="train")


def test_zip_is_as_the_unpacked_folder(tmp_path):
    path = sources.make_zip(tmp_path)
    data = datasets.Zip(path, ("image", "label", "name"))
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "unpacked")
    folder = datasets.ImageFolder(tmp_path / "unpacked" / "data")
    assert data.classes == folder.classes and data.class_to_idx == folder.class_to_idx
    assert data.targets == folder.targets and len(data) == len(folder)
    for (ours, number, name), (theirs, expected), (file, _) in zip(
        data, folder, folder.samples, strict=True
    ):
        assert number == expected and np.array_equal(ours, theirs)
        assert file.endswith(name) and os.path.basename(name) == os.path.basename(file)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4, 5), (6, 5), (6, 5, 3), (6, 5, 4)])
@pytest.mark.parametrize("dtype", ["u1", "<i2", ">f4", "f8", "?", "u8"])
def test_npy(shape, dtype, tmp_path):
    chance = np.random.default_rng(1)
    array = chance.integers(0, 256, (7, *shape)).astype(dtype)
    np.save(tmp_path / "x.npy", array)
    data = datasets.Npy(tmp_path / "x.npy")
    (kind,) = data.field_types.values()
    theirs = array.astype(array.dtype.newbyteorder("="))
    if kind == "image":
        assert dtype == "u1" and len(shape) >= 2
        (batch,) = next(iter(stoker.DataLoader(data, batch_size=7)))
        assert batch.shape[0] == 7
        for (ours,), row in zip(data, theirs, strict=True):
            grey = row[..., None].repeat(3, 2) if row.ndim == 2 else row
            assert ours.shape[2] in (3, 4) and np.array_equal(ours[..., :3], grey[..., :3])
        return
    (batch,) = next(iter(stoker.DataLoader(data, batch_size=7, output="numpy")))
    assert np.array_equal(batch, theirs)
    assert all(np.array_equal(ours, row) for (ours,), row in zip(data, theirs, strict=True))
    if shape:
        assert batch.dtype == theirs.dtype
    else:
        assert kind == ("float" if theirs.dtype.kind == "f" else "int")


def test_manifest_with_classes(tmp_path):
    sources.make_manifest(tmp_path)
    words = ["dog", "cat", "cow"]
    lines = [
        {"file": f"{i}.png", "class": words[i % 3], "caption": f"Nr. {i}", "boxes": [[i, 1]]}
        for i in range(6)
    ]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    data = datasets.Manifest(
        tmp_path / "x.jsonl", {"file": "image", "class": "int", "caption": "text", "boxes": "json"}
    )
    assert data.classes == sorted(words) and data.class_to_idx["cow"] == 1
    for i, (image, number, caption, boxes) in enumerate(data):
        assert np.array_equal(image, pixels(i)) and data.classes[number] == words[i % 3]
        assert caption == f"Nr. {i}" and boxes == [[i, 1]]
    assert type(stoker.open(tmp_path / "x.jsonl")) is datasets.Manifest


def test_json_of_tables(tmp_path):
    sources.make_manifest(tmp_path)
    values = ["a \"quoted\" \u20ac", True, False, 5, -0.5, [1, "x"], {"a": None}, "7", ""]
    rows = [json.dumps({"path": "0.png", "more": value}) for value in values]
    (tmp_path / "x.jsonl").write_text("\n".join(rows))
    found = [more for _, more in datasets.Manifest(tmp_path / "x.jsonl", {"path": "image", "more": "json"})]
    assert found == values and [type(v) for v in found] == [type(v) for v in values]
    (tmp_path / "x.csv").write_text('path,more\n0.png,"[1, ""a""]"\n0.png,\n')
    assert [more for _, more in datasets.Manifest(tmp_path / "x.csv", {"path": "image", "more": "json"})] == [
        [1, "a"], None]  # fmt: skip


@pytest.mark.parametrize("fixed", [False, True])
def test_sounds_in_tar_files(fixed, tmp_path):
    if not any(kind == "audio" and present for kind, _, _, present in stoker._ext.features()):
        pytest.skip("this build has no audio")
    waves = [np.arange(100 + 50 * i, dtype=np.int16) * (i + 1) for i in range(4)]
    members = []
    for i, wave in enumerate(waves):
        file = io.BytesIO()
        with wavelib.open(file, "wb") as out:
            out.setparams((1, 2, 8000, 0, "NONE", ""))
            out.writeframes(wave.tobytes())
        members += [(f"k{i}.cls", b"%d" % i), (f"k{i}.wav", file.getvalue()), (f"k{i}.txt", b"t%d" % i)]
    path = sources.write_tar(tmp_path / "x.tar", members)
    transform = audio.PadTrim(80) if fixed else audio.Decode()
    data = datasets.WebDataset(path, ("cls", "wav", "txt"), transform)
    cls, sound, *lengths, text = next(iter(stoker.DataLoader(data, batch_size=4)))
    assert cls.tolist() == [0, 1, 2, 3] and text == ["t0", "t1", "t2", "t3"]
    assert [n.tolist() for n in lengths] == ([] if fixed else [[len(wave) for wave in waves]])
    for i, wave in enumerate(waves):
        expected = torch.from_numpy(wave[:80] if fixed else wave) / 32768
        assert torch.equal(sound[i, 0, : len(expected)], expected)
        assert torch.equal(data[i][1][0], expected) and data[i][2] == f"t{i}"
    assert datasets.WebDataset(path, ("wav",))[0] == (members[1][1],)  # as it is, without a transform
