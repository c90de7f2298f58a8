# SPDX-License-Identifier: Apache-2.0
"""`stoker verify`: flipped bytes, truncated images, and what only --deep finds."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from conftest import picture
from packing import members, pack, stoker


@pytest.mark.parametrize("name", ["image.npy", "label.npy"])
def test_verify_finds_a_flipped_byte_in_any_array(even_tree, tmp_path, name):
    pack(even_tree, tmp_path / "out", "--format", "npy")
    got = stoker("verify", tmp_path / "out")
    assert got.returncode == 0 and "checksums: 2 files" in got.stdout, got.stdout
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert [f["name"] for f in manifest["shards"]] == ["image.npy"]
    assert [f["file"] for f in manifest["beside"]] == ["label.npy"]
    path = tmp_path / "out" / name
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    got = stoker("verify", tmp_path / "out")
    assert got.returncode == 3 and f"{name}: its bytes differ from those" in got.stdout, got.stdout
    path.write_bytes(data[:-1])
    got = stoker("verify", tmp_path / "out")
    assert got.returncode != 0 and name in got.stdout + got.stderr
    path.unlink()
    got = stoker("verify", tmp_path / "out")
    assert got.returncode != 0 and name in got.stdout + got.stderr


def test_verify_finds_a_flipped_byte(tree, tmp_path):
    pack(tree, tmp_path / "out")
    shard = tmp_path / "out" / "shard-000000.tar"
    assert "all good" in stoker("verify", tmp_path / "out").stdout
    name, offset, size = next(m for m in members(shard) if m[0].startswith("bee/003"))
    data = bytearray(shard.read_bytes())
    data[offset + size // 2] ^= 4
    shard.write_bytes(data)
    for what in (tmp_path / "out", shard):
        got = stoker("verify", what)
        assert got.returncode == 3 and name in got.stdout, got.stdout
    got = stoker("verify", tmp_path / "absent")
    assert got.returncode == 1 and "absent" in got.stderr


def test_verify_notes_intact_jpegs(tmp_path):
    """With --deep, for a GPU's JPEG hardware: one number per sample, 0 for what it must not decode unseen."""
    folder = tmp_path / "tree" / "c"
    folder.mkdir(parents=True)
    picture(0, 40, 30).save(folder / "0.jpg")
    picture(1, 40, 30).save(folder / "1.jpg", progressive=True)
    picture(2, 40, 30).save(folder / "2.png")
    picture(3, 400, 300).save(folder / "3.jpg")
    picture(0, 40, 30).save(folder / "4.jpg")
    cut = (folder / "3.jpg").read_bytes()
    (folder / "3.jpg").write_bytes(cut[: len(cut) * 2 // 3])
    pack(tmp_path / "tree", tmp_path / "out")
    stoker("verify", tmp_path / "out")
    assert not list((tmp_path / "out").glob("*.stoker-known"))
    stoker("verify", tmp_path / "out", "--deep")
    (note,) = (tmp_path / "out").glob("*.stoker-known")
    known = np.frombuffer(note.read_bytes()[32:], "<u4")
    assert [number != 0 for number in known] == [True, False, False, False, True]
    assert known[0] == known[4]
    assert "1 bad" in stoker("verify", tmp_path / "out").stdout


def test_verify_finds_a_flipped_byte_in_a_record(tree, tmp_path):
    pack(tree, tmp_path / "out", "--format", "tfrecord")
    shard = tmp_path / "out" / "shard-000000.tfrecord"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 4
    shard.write_bytes(data)
    got = stoker("verify", tmp_path / "out")
    assert got.returncode == 3 and "record" in got.stdout and "CRC32C" in got.stdout


def test_verify_deep_decodes(tmp_path):
    root = tmp_path / "tree" / "a"
    root.mkdir(parents=True)
    for i in range(3):
        picture(i, 200, 150).save(root / f"{i}.png")
    data = bytearray((root / "1.png").read_bytes())
    data[len(data) // 2] ^= 255
    (root / "1.png").write_bytes(data)
    assert stoker("verify", tmp_path / "tree").returncode == 0  # its header and its end are as they should be
    got = stoker("verify", tmp_path / "tree", "--deep")
    assert got.returncode == 3 and "1.png" in got.stdout and "0.png" not in got.stdout


# ---- truncated images ---------------------------------------------------------------------------


def encoded(form, image, **options):
    out = io.BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def with_thumbnail(image):
    """A JPEG whose EXIF has a thumbnail, which is a JPEG with an end marker of its own."""
    small = encoded("JPEG", image.resize((16, 16)))
    return encoded("JPEG", image, exif=b"Exif\0\0" + b"II*\0\x08\0\0\0\0\0\0\0\0\0" + small)


@pytest.mark.parametrize("name, make", [
    ("x.jpg", lambda image: encoded("JPEG", image)),
    ("progressive.jpg", lambda image: encoded("JPEG", image, progressive=True)),
    ("thumbnail.jpg", with_thumbnail),
    ("trailing.jpg", lambda image: encoded("JPEG", image) + bytes(40)),
    ("x.png", lambda image: encoded("PNG", image)),
    ("x.webp", lambda image: encoded("WEBP", image)),
    ("x.bmp", lambda image: encoded("BMP", image)),
    ("x.ppm", lambda image: encoded("PPM", image)),
    ("x.tif", lambda image: encoded("TIFF", image)),
])
def test_verify_finds_truncated_images_without_decoding_all(tmp_path, name, make):
    whole = make(picture(3, 80, 64))
    for cut in (0, 1, 2, 13, 50, len(whole) // 2):
        root = tmp_path / str(cut) / "c"
        root.mkdir(parents=True)
        (root / name).write_bytes(whole[:len(whole) - cut])
        quick, deep = stoker("verify", root.parent), stoker("verify", root.parent, "--deep")
        assert quick.returncode == deep.returncode, (cut, quick.stdout, deep.stdout)
        unneeded = {"trailing.jpg": 40, "x.png": 13}.get(name, 0)  # bytes at the end that no pixel depends on
        assert quick.returncode == (0 if cut <= unneeded else 3), cut
        assert quick.stdout.splitlines()[0] == deep.stdout.splitlines()[0] or not quick.returncode


def test_verify_says_what_was_not_checked(tmp_path):
    """Damage inside a JPEG, which only decoding shows."""
    image = bytearray(encoded("JPEG", picture(3, 80, 64)))
    at = image.index(b"\xff\xda") + 40
    image[at:at + 200] = bytes(200)
    (tmp_path / "set" / "c").mkdir(parents=True)
    (tmp_path / "set" / "c" / "x.jpg").write_bytes(image)
    got = stoker("verify", tmp_path / "set")
    assert got.returncode == 0 and "all headers read" in got.stdout
    assert got.stdout.endswith("all good as far as was checked\nnot decoded: damage inside images and sounds is only found with "
                               "--deep\n")
    deep = stoker("verify", tmp_path / "set", "--deep")
    assert "not decoded" not in deep.stdout and "all decoded" in deep.stdout
