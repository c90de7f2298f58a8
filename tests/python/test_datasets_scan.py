# SPDX-License-Identifier: Apache-2.0
"""ImageFolder lists what torchvision's ImageFolder lists: classes and samples, in the same order."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

stoker = pytest.importorskip("stoker")
folder = pytest.importorskip("torchvision.datasets.folder")


def touch(root: Path, *names: str | bytes) -> None:
    for name in names:
        path = os.path.join(os.fsencode(root), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb"):
            pass


def same(root, **options) -> None:
    want = folder.ImageFolder(root, **options)
    got = stoker.datasets.ImageFolder(root, **options)
    assert got.classes == want.classes
    assert got.class_to_idx == want.class_to_idx
    assert got.samples == want.samples
    assert got.targets == want.targets
    assert len(got) == len(want)


def test_order_of_folders_is_that_of_their_paths(tmp_path):
    touch(tmp_path, "c/a/1.jpg", "c/a-b/1.jpg", "c/a.b/1.jpg", "c/a/b/1.jpg", "c/ab/1.jpg", "c/z.jpg",
          "c/A/1.jpg", "c/0.jpg")
    same(tmp_path)


def test_extensions_in_any_case(tmp_path):
    names = ["1.jpg", "2.JPG", "3.Jpeg", "4.png", "5.ppm", "6.BMP", "7.pgm", "8.tif", "9.TIFF",
             "a.webp", ".jpg", "b.gif", "c.jpgx", "djpg", "e.jpg.txt", "f.pbm",
             "g.t\u0130f", "h.\u212apg", "i.", "j"]
    touch(tmp_path, *(f"c/{name}" for name in names))
    same(tmp_path)


def test_hidden_and_stray(tmp_path):
    touch(tmp_path, ".git/1.jpg", "b/.hidden.jpg", "b/.sub/1.jpg", "stray.jpg", "B/x.png", "a b/1 2.jpg",
          "\n/1.jpg")
    same(tmp_path)


@pytest.mark.parametrize("spelling", ["{}", "{}/", "{}//", "{}/.", "{}/../{name}"])
def test_root_is_kept_as_written(tmp_path, spelling):
    touch(tmp_path, "a/1.jpg", "b/c/2.jpg")
    same(spelling.format(tmp_path, name=tmp_path.name))


def test_relative_root(tmp_path, monkeypatch):
    touch(tmp_path, "t/a/1.jpg")
    monkeypatch.chdir(tmp_path)
    same("t")
    same(".", allow_empty=True)
    monkeypatch.setenv("HOME", str(tmp_path))
    same("~/t")


def test_links(tmp_path):
    touch(tmp_path, "outside/1.jpg", "outside/sub/2.jpg", "t/a/x.jpg")
    (tmp_path / "t/b").symlink_to(tmp_path / "outside")
    (tmp_path / "t/a/in").symlink_to(tmp_path / "outside")
    (tmp_path / "t/a/file.jpg").symlink_to(tmp_path / "outside/1.jpg")
    (tmp_path / "t/a/dangling.jpg").symlink_to("nowhere")
    (tmp_path / "t/a/dangling").symlink_to("nowhere")
    (tmp_path / "t/gone").symlink_to("nowhere")
    (tmp_path / "t/a/self.jpg").symlink_to("self.jpg")
    (tmp_path / "t/a/folder.jpg").symlink_to(tmp_path / "outside/sub")
    same(tmp_path / "t")


def test_link_back_up(tmp_path):
    touch(tmp_path, "t/a/x.jpg", "t/b/c/d/y.jpg")
    (tmp_path / "t/a/loop").symlink_to(".")
    (tmp_path / "t/b/c/d/up.jpg").symlink_to("..")
    same(tmp_path / "t")


def test_links_that_lead_into_each_other_are_refused(tmp_path):
    touch(tmp_path, "t/a/x.jpg")
    (tmp_path / "t/a/one").symlink_to(".")
    (tmp_path / "t/a/two").symlink_to("..")
    with pytest.raises(Exception, match="never ends"):
        stoker.datasets.ImageFolder(tmp_path / "t")


def test_class_that_links_to_itself(tmp_path):
    touch(tmp_path, "a/x.jpg")
    (tmp_path / "b").symlink_to("b")
    with pytest.raises(OSError, match="symbolic links"):
        folder.ImageFolder(tmp_path)
    with pytest.raises(OSError, match="symbolic links"):
        stoker.datasets.ImageFolder(tmp_path)


def test_pipes_are_listed(tmp_path):
    touch(tmp_path, "a/x.jpg")
    os.mkfifo(tmp_path / "a/pipe.jpg")
    same(tmp_path)


def test_names_that_are_not_utf8(tmp_path):
    names = [b"z", b"\xc3\xa9", b"\xed\x9f\xbf", b"\x80", b"\xc3", b"\xc3A", b"\xed\xa0\x80", b"\xff",
             b"\xee\x80\x80", b"\xef\xbf\xbd", b"\xf0\x9f\x98\x80", b"\xf0\x9f\x98",
             b"\xc0\xaf", b"\xf5\x80\x80\x80"]
    touch(tmp_path, *(name + b"/" + other + b".jpg" for name in names for other in names[::2]))
    touch(tmp_path, *(b"z/" + name + b"/deep.jpg" for name in names))
    same(tmp_path)


def test_no_class_folder(tmp_path):
    touch(tmp_path, "1.jpg")
    for kind in (folder.ImageFolder, stoker.datasets.ImageFolder):
        with pytest.raises(FileNotFoundError, match="class folder"):
            kind(tmp_path)


def test_missing_root(tmp_path):
    for kind in (folder.ImageFolder, stoker.datasets.ImageFolder):
        with pytest.raises(FileNotFoundError):
            kind(tmp_path / "missing")


def test_empty_classes(tmp_path):
    touch(tmp_path, "full/1.jpg", "wrong/1.gif")
    (tmp_path / "hollow").mkdir()
    for kind in (folder.ImageFolder, stoker.datasets.ImageFolder):
        with pytest.raises(FileNotFoundError, match=r"hollow, wrong\. Supported extensions are: \.jpg"):
            kind(tmp_path)
    same(tmp_path, allow_empty=True)


@pytest.mark.parametrize("seed", range(12))
def test_random_trees(tmp_path, seed):
    rng = random.Random(seed)
    parts = ["a", "b", "A", "a-b", "a.b", "0", "10", "9", "_", "~", " ", ".h", "\u00e9", "\u4e2d",
             "\U0001f600", os.fsdecode(b"\x80"), os.fsdecode(b"\xff"), "\ue000"]
    names = []
    for _ in range(rng.randrange(20, 200)):
        depth = rng.randrange(1, 5)
        extension = rng.choice([".jpg", ".PNG", ".txt", ".webp"])
        name = "".join(rng.choices(parts, k=rng.randrange(1, 4))) + extension
        names.append("/".join([rng.choice(parts) for _ in range(depth)] + [name]))
    touch(tmp_path, *names)
    same(tmp_path, allow_empty=True)


def test_kept_index_gives_the_same(tmp_path):
    touch(tmp_path, "t/a/1.jpg", "t/a/s/2.jpg", "t/b/3.jpg", "t/c/x.txt")
    for _ in range(3):
        got = stoker.datasets.ImageFolder(tmp_path / "t", index_dir=tmp_path / "kept", allow_empty=True)
        assert got.samples == folder.ImageFolder(tmp_path / "t", allow_empty=True).samples
        touch(tmp_path, f"t/c/{len(got.samples)}.jpg")
