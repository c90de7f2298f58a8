# SPDX-License-Identifier: Apache-2.0
"""`stoker pack` and `verify`: tar shards, other formats, bad samples, resuming and what is refused."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import resource
import shutil
import signal
import subprocess
import tarfile
import termios
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import picture
from packing import (
    PROGRAM,
    big_tree,
    folder_samples,
    members,
    pack,
    pixels,
    stoker,
    tar_samples,
)

# ---- tar ----------------------------------------------------------------------------------------


def test_tar_holds_identical_samples(tree, tmp_path):
    got = pack(tree, tmp_path / "out", "--workers", 3)
    assert "23 samples" in got.stdout and not got.stderr
    assert tar_samples(tmp_path / "out") == folder_samples(tree)
    names = [n for n, _, _ in members(tmp_path / "out" / "shard-000000.tar")]
    assert names[0] == "ant/000.jpg" and names[-1] == "__index__"


def test_tar_back_to_tar_is_the_same_file(tree, tmp_path):
    pack(tree, tmp_path / "one")
    pack(tmp_path / "one", tmp_path / "two")
    name = "shard-000000.tar"
    assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_kept_index_is_taken(tree, tmp_path):
    pack(tree, tmp_path / "out")
    shard = tmp_path / "out" / "shard-000000.tar"
    before = Path(f"{shard}.stoker-index").stat()
    assert stoker("info", shard).returncode == 0
    assert Path(f"{shard}.stoker-index").stat().st_mtime_ns == before.st_mtime_ns


def test_large_payloads_are_aligned(tmp_path):
    pack(big_tree(tmp_path / "tree", 12), tmp_path / "out", "--shard-size", "200K")
    shards = sorted((tmp_path / "out").glob("*.tar"))
    assert len(shards) > 2
    large = [(o, s) for shard in shards for n, o, s in members(shard) if s >= 32768 and n != "__index__"]
    assert len(large) >= 6 and all(offset % 4096 == 0 for offset, _ in large)
    listed = subprocess.run(["tar", "tf", str(shards[0])], capture_output=True, text=True, check=True)
    assert not listed.stderr and "c0/0000.jpg" in listed.stdout
    assert tar_samples(tmp_path / "out") == folder_samples(tmp_path / "tree")


def test_any_number_of_workers_gives_the_same_bytes(tree, tmp_path):
    for workers in (1, 4):
        pack(tree, tmp_path / str(workers), "--workers", workers, "--shuffle", 7, "--shard-size", "30K")
    for shard in sorted((tmp_path / "1").glob("*.tar")):
        assert shard.read_bytes() == (tmp_path / "4" / shard.name).read_bytes()
    assert sorted(tar_samples(tmp_path / "1")) == sorted(folder_samples(tree))
    assert tar_samples(tmp_path / "1") != folder_samples(tree)
    pack(tree, tmp_path / "other", "--shuffle", 8)
    assert sorted(tar_samples(tmp_path / "other")) == sorted(folder_samples(tree))
    assert tar_samples(tmp_path / "other") != tar_samples(tmp_path / "1")


def test_odd_names_stay_inside(tmp_path):
    root = tmp_path / "tree" / "a.b"
    root.mkdir(parents=True)
    names = [b"x.jpg", b"x.png", b".hidden.jpg", b"a.b.c.jpg", b"\xff\xfe.jpg", b"new\nline.jpg",
             b"__key__.jpg", b"sp ace.jpg", "ü".encode() + b".jpg", b"l" * 180 + b".jpg"]
    for i, name in enumerate(names):
        buffer = io.BytesIO()
        picture(i, 40, 30).save(buffer, "png" if name.endswith(b"png") else "jpeg")
        with open(os.fsencode(root) + b"/" + name, "wb") as file:
            file.write(buffer.getvalue())
    pack(tmp_path / "tree", tmp_path / "out")
    found = tar_samples(tmp_path / "out")
    assert len(found) == len(names)
    for name, _, _ in members(tmp_path / "out" / "shard-000000.tar"):
        assert not name.startswith("/") and ".." not in name and "\n" not in name
        name.encode()
    assert stoker("verify", tmp_path / "out", "--deep").returncode == 0


def test_hostile_keys_of_a_tar_stay_inside(tmp_path):
    buffer = io.BytesIO()
    picture(0, 40, 30).save(buffer, "jpeg")
    with tarfile.open(tmp_path / "in.tar", "w") as tar:
        for name in ("../../up.jpg", "/root/abs.jpg", "a/../../b.jpg"):
            info = tarfile.TarInfo(name)
            info.size = len(buffer.getvalue())
            tar.addfile(info, io.BytesIO(buffer.getvalue()))
    pack(tmp_path / "in.tar", tmp_path / "out")
    names = [n for n, _, _ in members(tmp_path / "out" / "shard-000000.tar")]
    assert len(names) == 4 and not any(".." in n or n.startswith("/") for n in names)


def keys(folder: Path) -> list[str]:
    return [name.removesuffix(".cls") for shard in sorted(folder.glob("*.tar")) for name, _, _ in members(shard)
            if name.endswith(".cls")]


@pytest.mark.parametrize("more", [[], ["--shuffle", "3"]])
def test_keys_stay_distinct(tmp_path, more):
    """Also where a name has signs that a key cannot hold, or only the extension differs."""
    root = tmp_path / "tree" / "c"
    root.mkdir(parents=True)
    names = ["x y.jpg", "x_y.jpg", "x.jpg", "x.png", "x.k.jpg", "x_k.jpg", "a:b.jpg", "a_b.jpg", "a*b.jpg", ".h.jpg", "_h.jpg",
             "l" * 250 + ".jpg", "l" * 249 + "m.jpg", "t~5.jpg", "__k__.jpg", "x_k__.jpg"]  # fmt: skip
    for i, name in enumerate(names):
        picture(i, 40, 30).save(root / name)
    pack(tmp_path / "tree", tmp_path / "out", *more)
    found = keys(tmp_path / "out")
    assert len(set(found)) == len(found) == len(names)
    for plain in ("c/x y", "c/x_y", "c/a_b", "c/_h", "c/x_k"):
        assert plain in found
    assert "all good" in stoker("verify", tmp_path / "out").stdout


def test_keys_of_tables_hold_no_absolute_path(tmp_path):
    where = tmp_path / "some" / "where"
    where.mkdir(parents=True)
    for i in range(3):
        picture(i, 40, 30).save(where / f"{i}.png")
    picture(3, 40, 30).save(tmp_path / "0.png")
    (where / "t.csv").write_text(f"path,label\n0.png,0\n./1.png,1\n{where}/2.png,2\n{tmp_path}/0.png,3\n../../0.png,4\n")
    pack(where / "t.csv", tmp_path / "out")
    found = keys(tmp_path / "out")
    assert len(set(found)) == 5 and found[0] == "0" and found[2] == "2"
    assert not any("some" in key or ".." in key or key.startswith("/") for key in found)


def test_control_characters_do_not_reach_the_terminal(tmp_path):
    root = tmp_path / "tree" / "c"
    root.mkdir(parents=True)
    picture(0, 40, 30).save(root / "good.jpg")
    odd = b"\x1b[31mred\r\nall good\x9b\xc2\x9bz\x7f.jpg"
    with open(os.fsencode(root) + b"/" + odd, "wb") as file:
        file.write(b"no image")
    for arguments in (("verify", tmp_path / "tree"), ("info", tmp_path / "tree"), ("pack", tmp_path / "tree", tmp_path / "out"),
                      ("info", os.fsdecode(odd))):  # fmt: skip
        got = stoker(*arguments, text=False)
        said = got.stdout + got.stderr
        assert rb"\x1b[31mred\x0d\x0aall good\x9b\xc2\x9bz\x7f.jpg" in said, said
        assert not any(c < 32 and c != 10 or c == 127 for c in said) and b"\nall good" not in said and b"\x9b" not in said


def test_suffixes_of_several_images_stay(tmp_path):
    wds = pytest.importorskip("webdataset")
    image, mask = (np.asarray(picture(i, 40, 30)) for i in (1, 2))
    with wds.TarWriter(str(tmp_path / "in.tar")) as sink:
        for i in range(3):
            sink.write({"__key__": f"d/{i}", "jpg": image, "seg_mask.png": mask, "cls": i, "other.cls": 7})
    pack(tmp_path / "in.tar", tmp_path / "out")
    was, now = ({s["__key__"]: s for s in wds.WebDataset(str(p), shardshuffle=False)}
                for p in (tmp_path / "in.tar", tmp_path / "out" / "shard-000000.tar"))
    assert was.keys() == now.keys()
    for key, sample in was.items():
        for field in ("jpg", "seg_mask.png", "cls", "other.cls"):
            assert sample[field] == now[key][field]


def test_text_and_arrays_compressed(tmp_path):
    wds = pytest.importorskip("webdataset")
    array = np.zeros((50, 100), np.float32)
    with wds.TarWriter(str(tmp_path / "in.tar")) as sink:
        for i in range(4):
            sink.write({"__key__": f"s{i}", "txt": "words " * 300, "json": {"n": i}, "npy": array + i, "cls": i})
    pack(tmp_path / "in.tar", tmp_path / "plain")
    back = list(wds.WebDataset(str(tmp_path / "plain" / "shard-000000.tar"), shardshuffle=False).decode())
    assert [s["cls"] for s in back] == [0, 1, 2, 3] and back[2]["json"] == {"n": 2}
    assert back[1]["txt"] == "words " * 300 and np.array_equal(back[3]["npy"], array + 3)
    got = stoker("pack", tmp_path / "in.tar", tmp_path / "small", "--compress", "zstd")
    if got.returncode == 2:
        pytest.skip("this build has no zstd")
    assert (tmp_path / "small" / "shard-000000.tar").stat().st_size < (
        tmp_path / "plain" / "shard-000000.tar").stat().st_size / 2
    pack(tmp_path / "small", tmp_path / "again")
    assert [m[0] for m in members(tmp_path / "again" / "shard-000000.tar")] == [
        m[0] for m in members(tmp_path / "plain" / "shard-000000.tar")]


# ---- other formats ------------------------------------------------------------------------------


def test_lmdb(tree, tmp_path):
    lmdb = pytest.importorskip("lmdb")
    got = stoker("pack", tree, tmp_path / "out", "--format", "lmdb")
    if got.returncode == 2:
        pytest.skip("this build has no LMDB")
    assert got.returncode == 0, got.stderr
    env = lmdb.open(str(tmp_path / "out"), readonly=True, lock=False)
    with env.begin() as txn:
        values = [bytes(v) for _, v in txn.cursor()]
    env.close()
    assert all(was in now for (was, _), now in zip(folder_samples(tree), values))
    pack(tmp_path / "out", tmp_path / "back")  # and the other direction
    assert tar_samples(tmp_path / "back") == folder_samples(tree)


def test_tfrecord(tree, tmp_path):
    pack(tree, tmp_path / "out", "--format", "tfrecord", "--shard-size", "30K")
    assert len(list((tmp_path / "out").glob("*.tfrecord"))) > 2
    pack(tmp_path / "out", tmp_path / "back")
    assert tar_samples(tmp_path / "back") == folder_samples(tree)
    reader = pytest.importorskip("tfrecord")
    first = next(iter(reader.tfrecord_loader(str(tmp_path / "out" / "shard-000000.tfrecord"), None)))
    assert bytes(first["image/encoded"]) == folder_samples(tree)[0][0] and first["image/class/label"] == 0


def test_npy(tree, even_tree, tmp_path):
    pack(even_tree, tmp_path / "out", "--format", "npy")
    images, labels = (np.load(tmp_path / "out" / f"{n}.npy") for n in ("image", "label"))
    samples = folder_samples(even_tree)
    assert images.shape == (20, 40, 48, 3) and images.dtype == np.uint8
    assert all(np.array_equal(images[i], pixels(s[0])) for i, s in enumerate(samples))
    assert labels.tolist() == [s[1] for s in samples]
    got = pack(tree, tmp_path / "uneven", "--format", "npy", code=1)
    assert "--resize" in got.stderr and not list((tmp_path / "uneven").glob("*.npy"))
    np.save(tmp_path / "in.npy", images)
    pack(tmp_path / "in.npy", tmp_path / "tar")
    assert len(members(tmp_path / "tar" / "shard-000000.tar")) == 21


def test_hdf5(even_tree, tmp_path):
    h5py = pytest.importorskip("h5py")
    got = stoker("pack", even_tree, tmp_path / "out", "--format", "hdf5")
    if got.returncode == 2:
        pytest.skip("this build has no HDF5")
    assert got.returncode == 0, got.stderr
    samples = folder_samples(even_tree)
    with h5py.File(tmp_path / "out" / "data.h5") as file:
        assert file["image"].shape == (20, 40, 48, 3) and file["image"].dtype == np.uint8
        assert all(np.array_equal(file["image"][i], pixels(s[0])) for i, s in enumerate(samples))
        assert file["label"][:].tolist() == [s[1] for s in samples]
    pack(tmp_path / "out", tmp_path / "npy", "--format", "npy")
    assert np.array_equal(np.load(tmp_path / "npy" / "image.npy")[7], pixels(samples[7][0]))
    assert stoker("verify", tmp_path / "out").returncode == 0


# ---- what goes wrong ----------------------------------------------------------------------------


def test_bad_samples_stop_or_go_to_the_ledger(bad_tree, tmp_path):
    got = pack(bad_tree, tmp_path / "stop", code=1)
    assert "b/002.jpg" in got.stderr
    got = pack(bad_tree, tmp_path / "skip", "--on-error", "skip", code=3)
    assert "1 left out" in got.stdout
    ledger = [json.loads(line) for line in (tmp_path / "skip" / "bad_samples.jsonl").read_text().splitlines()]
    assert [entry["name"].endswith("b/002.jpg") for entry in ledger] == [True] and ledger[0]["reason"]
    assert len(tar_samples(tmp_path / "skip")) == 11
    manifest = json.loads((tmp_path / "skip" / "manifest.json").read_text())
    assert manifest["complete"] and manifest["samples"] == 11 and manifest["bad"] == 1


def test_kill_and_resume(tmp_path):
    tree = big_tree(tmp_path / "tree", 60)
    (tree / "c1" / "0001.jpg").write_bytes(b"no image")
    options = ["--shard-size", "50K", "--workers", 2, "--resize", 250, "--on-error", "skip", "--quiet"]
    pack(tree, tmp_path / "whole", *options, code=3)
    out, killed = tmp_path / "out", 0
    for _ in range(50):
        before = len(list(out.glob("shard-*.tar")))
        process = subprocess.Popen([str(PROGRAM), "pack", *map(str, [tree, out, *options])])
        while process.poll() is None and len(list(out.glob("shard-*.tar"))) < before + 2:
            time.sleep(0.0005)
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        if process.returncode == 3:
            break
        for shard in out.glob("shard-*.tar"):  # none is half-written
            assert shard.read_bytes() == (tmp_path / "whole" / shard.name).read_bytes()
    assert killed
    pack(tree, out, *options, code=3)
    names = sorted(p.name for p in out.iterdir())
    assert names == sorted(p.name for p in (tmp_path / "whole").iterdir())
    for name in names:
        if not name.endswith("-index"):
            assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    got = pack(tree, out, *[o for o in options if o != "--quiet"], code=3)
    assert "nothing to do" in got.stdout


def test_other_settings_are_refused(tree, tmp_path):
    pack(tree, tmp_path / "out")
    before = (tmp_path / "out" / "shard-000000.tar").stat().st_mtime_ns
    got = pack(tree, tmp_path / "out", "--quality", 50, code=1)
    assert "other settings" in got.stderr
    assert (tmp_path / "out" / "shard-000000.tar").stat().st_mtime_ns == before


def test_a_folder_with_other_things_is_not_touched(tree, tmp_path):
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "thesis.txt").write_text("precious")
    got = pack(tree, tmp_path / "own", code=1)
    assert "thesis.txt" in got.stderr and [p.name for p in (tmp_path / "own").iterdir()] == ["thesis.txt"]


def test_no_room_is_a_clear_error_and_can_be_resumed(tmp_path):
    tree = big_tree(tmp_path / "tree", 30)
    limit = 1_000_000

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    got = pack(tree, tmp_path / "out", code=1, preexec_fn=small_files)
    assert "make room" in got.stderr and got.stderr.count("\n") == 1
    assert not list((tmp_path / "out").glob("*.tar")) and not list((tmp_path / "out").glob(".partial*"))
    pack(tree, tmp_path / "out")
    assert len(tar_samples(tmp_path / "out")) == 30


@pytest.mark.parametrize("arguments, said", [
    ([], "which dataset"),
    (["a"], "which folder to write?"),
    (["a", "b", "c"], "unexpected argument 'c'; usage: stoker pack SRC DST [OPTIONS]"),
    (["a", "b", "--formt", "tar"], "Did you mean '--format'?"),
    (["a", "b", "--format", "zip"], "--format must be tar, tfrecord, lmdb, hdf5 or npy, not 'zip'"),
    (["a", "b", "--quality", "101"], "--quality must be a whole number from 1 to 100, not '101'"),
    (["a", "b", "--resize", "0x5"], "--resize must be N or WxH with sides from 1 to 65500"),
    (["a", "b", "--format", "npy", "--crop-ready"], "--crop-ready does not apply to --format npy"),
])
def test_usage(arguments, said):
    got = pack(*arguments, code=2)
    assert said in got.stderr and got.stderr.count("\n") == 1


# ---- what it says -------------------------------------------------------------------------------


def on_terminal(*arguments, columns=200, kind="xterm") -> str:
    """What a person sees: standard error on a terminal."""
    ours, its = pty.openpty()
    termios.tcsetwinsize(its, (24, columns))
    process = subprocess.Popen([str(PROGRAM), *map(str, arguments)], stderr=its, stdout=subprocess.DEVNULL,
                               env={**os.environ, "TERM": kind})
    os.close(its)
    seen = b""
    try:
        while piece := os.read(ours, 4096):
            seen += piece
    except OSError:  # it has closed its end
        pass
    os.close(ours)
    assert process.wait() == 0
    return seen.decode()


def copied(tree, begin, end):
    """Adds copies of the first three pictures."""
    for i in range(begin, end):
        shutil.copy(tree / f"c{i % 3}" / f"{i % 3:04}.jpg", tree / f"c{i % 3}" / f"{i:04}.jpg")


def test_progress_on_a_terminal(tmp_path):
    tree = big_tree(tmp_path / "tree", 3, (1600, 1200), progressive=True)
    copied(tree, 3, 30)
    seen = on_terminal("pack", tree, tmp_path / "out", "--crop-ready", "--workers", 1)
    shown = re.findall(r"\rpacking \d+:\d\d left \[(#*)(\.*)\] (\d+)/30  (\d+) samples/s  ([\d.]+ [KM]B)", seen)
    assert len(shown) >= 2, seen
    assert all(len(full) + len(empty) == 24 and len(full) == 24 * int(done) // 30 for full, empty, done, *_ in shown)
    done = [int(s[2]) for s in shown]
    assert done == sorted(done) and done[0] < done[-1] and all(int(s[3]) > 0 for s in shown)
    assert seen.endswith("\r\033[K")  # nothing of it is left
    copied(tree, 30, 60)  # enough for a fast machine to be seen at work
    pack(tree, tmp_path / "many")
    assert "\rverifying 0:" in on_terminal("verify", tmp_path / "many", "--deep", "--workers", 1)
    assert not on_terminal("pack", tree, tmp_path / "quiet", "--crop-ready", "--quiet")


def test_progress_on_other_terminals(tmp_path):
    """Lines are cut to the columns there are, and not redrawn where that is impossible."""
    tree = big_tree(tmp_path / "tree", 3, (1600, 1200), progressive=True)
    copied(tree, 3, 30)
    seen = on_terminal("verify", tree, "--deep", "--workers", 1, columns=40)
    lines = re.split(r"\x1b\[K|\r", seen)
    assert max(map(len, lines)) == 39 and any(line.startswith("verifying 0:") for line in lines), seen
    assert "\x1b" not in on_terminal("verify", tree, "--deep", "--workers", 1, kind="dumb")



def test_summary(bad_tree, tmp_path):
    got = pack(bad_tree, tmp_path / "out", "--on-error", "skip", "--crop-ready", code=3)
    lines = {line.split()[0]: line for line in got.stdout.splitlines()}
    assert re.search(rf"packed +11 samples into 1 file of [\d.]+ KB in {tmp_path}/out$", lines["packed"])
    assert re.search(r"read +[\d.]+ KB at [\d.]+ [KM]B/s, \d+ samples/s, [\d.]+ s$", lines["read"])
    assert re.search(r"crop-ready +\d+ JPEG files, at [01]\.\d+ of the size; \d+ left unchanged$", lines["crop-ready"])
    assert re.search(rf"bad samples +1 left out: see {tmp_path}/out/bad_samples.jsonl$", lines["bad"])
    assert not pack(bad_tree, tmp_path / "quiet", "--on-error", "skip", "--quiet", code=3).stdout
