# SPDX-License-Identifier: Apache-2.0
"""`stoker pack` into a folder that another run writes into, or has left; and what `stoker verify` makes of it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from packing import PROGRAM, archive, big_tree, pack, stoker

FORMATS = ["tar", "tfrecord", "lmdb", "hdf5", "npy"]


def skip_without(got, form):
    if got.returncode == 2:
        pytest.skip(f"this build has no {form}")


@pytest.mark.parametrize("form", FORMATS)
def test_two_runs_into_one_folder(tmp_path, form):
    source = archive(tmp_path / "in.tar", 4000, size=(40, 32))
    out, lock = tmp_path / "out", tmp_path / "out" / ".stoker-pack-lock"
    command = [str(PROGRAM), "pack", str(source), str(out), "--format", form]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as first:
        deadline = time.monotonic() + 60
        while first.poll() is None and time.monotonic() < deadline and not (lock.exists() and lock.read_text()):
            time.sleep(0.001)
        if first.returncode == 2:
            pytest.skip(f"this build has no {form}")
        os.kill(first.pid, signal.SIGSTOP)
        try:
            second = stoker("pack", source, out, "--format", form)
            other = stoker("pack", source, out, "--format", "tar", "--shard-size", "64K")
        finally:
            os.kill(first.pid, signal.SIGCONT)
        said = first.communicate(timeout=600)
        assert first.returncode == 0, said
    for got in (second, other):
        assert got.returncode == 1 and got.stderr.count("\n") == 1
        assert f"process {first.pid} on {socket.gethostname()}" in got.stderr and str(out) in got.stderr
    assert not lock.exists()
    assert "all good" in stoker("verify", out).stdout
    assert json.loads((out / "manifest.json").read_text())["samples"] == 4000


def test_a_lock_that_a_killed_run_left(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / ".stoker-pack-lock").write_text("process 1 on nowhere\n")
    pack(archive(tmp_path / "in.tar", 10), out)
    assert not (out / ".stoker-pack-lock").exists()


@pytest.mark.parametrize("form", FORMATS)
def test_verify_compares_counts(tmp_path, form):
    """Files whose sums are right, and in which samples are missing."""
    out, small = tmp_path / "out", tmp_path / "small"
    got = stoker("pack", archive(tmp_path / "in.tar", 40), out, "--format", form)
    skip_without(got, form)
    pack(archive(tmp_path / "few.tar", 30), small, "--format", form)
    assert stoker("verify", out).returncode == 0
    fewer = json.loads((small / "manifest.json").read_text())
    text = (out / "manifest.json").read_text()
    for file in fewer["shards"] + fewer.get("beside", []):
        name = file.get("name") or file["file"]
        shutil.copy(small / name, out / name)
        text = re.sub(rf'("{name}".*"bytes": )\d+(, "crc32c": ")[0-9a-f]*', rf'\g<1>{file["bytes"]}\g<2>{file["crc32c"]}', text)
    (out / "manifest.json").write_text(text)
    got = stoker("verify", out)
    assert got.returncode == 3 and "has 30 samples; the manifest lists 40" in got.stdout, got.stdout + got.stderr
    assert "all good" not in got.stdout


def test_verify_an_empty_lmdb(tmp_path):
    lmdb = pytest.importorskip("lmdb")
    out = tmp_path / "out"
    skip_without(stoker("pack", archive(tmp_path / "in.tar", 40), out, "--format", "lmdb"), "lmdb")
    (out / "data.mdb").unlink()
    lmdb.open(str(out)).close()
    got = stoker("verify", out)
    assert got.returncode != 0 and "all good" not in got.stdout


def test_verify_a_manifest_whose_sums_differ(tmp_path):
    out = tmp_path / "out"
    pack(archive(tmp_path / "in.tar", 40), out)
    text = (out / "manifest.json").read_text()
    (out / "manifest.json").write_text(text.replace('"samples": 40,\n', '"samples": 41,\n', 1))
    got = stoker("verify", out)
    assert got.returncode == 1 and "states 41 samples, but its shards have 40" in got.stderr


def test_verify_nothing(tmp_path):
    """An archive without a sample is no good one."""
    np = pytest.importorskip("numpy")
    np.save(tmp_path / "x.npy", np.zeros((0, 4, 4), np.uint8))
    got = stoker("verify", tmp_path / "x.npy")
    assert got.returncode == 3 and "no samples" in got.stdout


# ---- a source that changes between two runs ----


def half_done(tree: Path, out: Path, *more) -> Path:
    """As a killed run leaves it: some shards finished, and the manifest says so."""
    pack(tree, out, "--shard-size", "8K", *more)
    manifest = json.loads((out / "manifest.json").read_text())
    first, *others = manifest["shards"]
    assert others
    for shard in others:
        for file in out.glob(shard["name"] + "*"):
            file.unlink()
    lines = (out / "manifest.json").read_text().replace('"complete": true', '"complete": false').splitlines(True)
    lines = [line for line in lines if not any(shard["name"] in line for shard in others)]
    text = "".join(lines).replace("},\n]", "}\n]")
    text = text.replace(f'"samples": {manifest["samples"]},\n', f'"samples": {first["samples"]},\n', 1)
    (out / "manifest.json").write_text(text)
    return out


def renamed(tree: Path) -> Path:
    """What was packed comes last now, and would be stored twice; what was second is first, and would be lost."""
    (tree / "c0" / "0000.jpg").rename(tree / "c2" / "9999.jpg")
    return tree / "c0" / "0003.jpg"


def grown(tree: Path) -> Path:
    path = tree / "c0" / "0000.jpg"
    stat = path.stat()
    path.write_bytes(path.read_bytes() + b"x")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    return path


def touched(tree: Path) -> Path:
    path = tree / "c0" / "0000.jpg"
    os.utime(path, ns=(1, path.stat().st_mtime_ns + 1))
    return path


@pytest.mark.parametrize("change", [renamed, grown, touched])
def test_a_source_that_was_changed_is_refused(tmp_path, change):
    tree = big_tree(tmp_path / "tree", 12, (60, 40))
    out = half_done(tree, tmp_path / "out")
    path = change(tree)
    got = pack(tree, out, "--shard-size", "8K", code=1)
    assert "has changed since this pack was started" in got.stderr and got.stderr.count("\n") == 1
    assert "remove the folder" in got.stderr and str(path) in got.stderr and "shard-000000.tar" in got.stderr


def test_a_shuffled_source_that_was_changed(tmp_path):
    tree = big_tree(tmp_path / "tree", 12, (60, 40))
    out = half_done(tree, tmp_path / "out", "--shuffle", "3")
    for path in tree.rglob("*.jpg"):
        os.utime(path, ns=(1, 1))
    assert "names, sizes or times differ" in pack(tree, out, "--shard-size", "8K", "--shuffle", "3", code=1).stderr


def test_a_source_that_was_not_changed_goes_on(tmp_path):
    tree = big_tree(tmp_path / "tree", 12, (60, 40))
    pack(tree, tmp_path / "whole", "--shard-size", "8K")
    out = half_done(tree, tmp_path / "out")
    os.utime(tree / "c2" / "0011.jpg", ns=(1, 1))  # is not packed yet, and may be mended
    got = pack(tree, out, "--shard-size", "8K")
    assert "resumed" in got.stdout and "all good" in stoker("verify", out).stdout
    for file in (tmp_path / "whole").glob("*.tar"):
        assert file.read_bytes() == (out / file.name).read_bytes()


@pytest.mark.parametrize("kind", ["tar", "csv"])
def test_an_archive_that_was_changed_is_refused(tmp_path, kind):
    if kind == "tar":
        source = archive(tmp_path / "in.tar", 60)
    else:
        big_tree(tmp_path / "tree", 12, (60, 40))
        source = tmp_path / "in.csv"
        source.write_text("path,label\n" + "".join(f"tree/c{i % 3}/{i:04}.jpg,{i}\n" for i in range(12)))
    out = half_done(source, tmp_path / "out")
    os.utime(source, ns=(1, source.stat().st_mtime_ns + 1))
    got = pack(source, out, "--shard-size", "8K", code=1)
    assert f"{source} has changed since this pack was started" in got.stderr
