# SPDX-License-Identifier: Apache-2.0
"""`stoker pack` where it cannot write, or should not: nothing half-written has a name, and the same command goes on
when the trouble is over."""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from conftest import picture
from packing import archive, big_tree, pack, stoker
from test_sources_url import Ranges

FORMATS = ["tar", "tfrecord", "lmdb", "hdf5", "npy"]
COUNT = 1400


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Path:
    """5 MB of pixels, in small files."""
    return archive(tmp_path_factory.mktemp("trouble") / "in.tar", COUNT, size=(40, 32))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.endswith("-index")}


def packed_whole(source: Path, folder: Path, form: str) -> dict[str, bytes]:
    got = stoker("pack", source, folder, "--format", form)
    if got.returncode == 2:
        pytest.skip(f"this build has no {form}")
    assert got.returncode == 0, got.stderr
    return contents(folder)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own that can be made larger; only root may mount."""
    point = tmp_path / "disk"
    point.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(point)], capture_output=True, text=True,
                          check=False)
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    yield point
    subprocess.run(["umount", str(point)], check=True)


def assert_clean_failure(got, out: Path, whole: dict[str, bytes]):
    assert got.returncode == 1 and "make room" in got.stderr and got.stderr.count("\n") == 1, got.stderr
    assert got.stderr.startswith("stoker: ")
    for path in out.glob("[!.]*"):
        assert path.name == "manifest.json" or path.read_bytes() == whole[path.name]
    if (out / "manifest.json").exists():
        assert not json.loads((out / "manifest.json").read_text())["complete"]


@pytest.mark.parametrize("form", FORMATS)
def test_a_full_disk(source, small_disk, tmp_path, form):
    whole = packed_whole(source, tmp_path / "whole", form)
    out = small_disk / "out"
    assert_clean_failure(stoker("pack", source, out, "--format", form), out, whole)
    assert_clean_failure(stoker("pack", source, out, "--format", form), out, whole)  # and again
    subprocess.run(["mount", "-o", "remount,size=32m", str(small_disk)], check=True)
    pack(source, out, "--format", form)
    assert contents(out) == whole


@pytest.mark.parametrize("form", FORMATS)
def test_a_disk_without_any_room(source, small_disk, tmp_path, form):
    whole = packed_whole(source, tmp_path / "whole", form)
    with pytest.raises(OSError), open(small_disk / "filler", "wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))
    out = small_disk / "out"
    assert_clean_failure(stoker("pack", source, out, "--format", form), out, whole)
    (small_disk / "filler").unlink()
    subprocess.run(["mount", "-o", "remount,size=32m", str(small_disk)], check=True)
    pack(source, out, "--format", form)
    assert contents(out) == whole


@pytest.mark.parametrize("form", FORMATS)
def test_a_limit_on_files(source, tmp_path, form):
    """As a quota does it; and without being root."""
    whole = packed_whole(source, tmp_path / "whole", form)
    out = tmp_path / "out"
    limit = 3_000_000 if form in ("tar", "tfrecord") else 4_700_000

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    assert_clean_failure(stoker("pack", source, out, "--format", form, preexec_fn=small_files), out, whole)
    kept = json.loads((out / "manifest.json").read_text()).get("under_way")
    assert form not in ("lmdb", "npy") or kept["samples"] == 1000  # and is not done again
    got = pack(source, out, "--format", form)
    assert ("resumed" in got.stdout) == bool(kept)
    assert contents(out) == whole


def test_lmdb_with_little_address_space(source, tmp_path):
    """LMDB maps what a database may grow to, and some kernels and users have less than four terabytes."""
    lmdb = pytest.importorskip("lmdb")
    packed_whole(source, tmp_path / "whole", "lmdb")
    limit = 8 << 30
    pack(source, tmp_path / "out", "--format", "lmdb", "--workers", "2",
         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    rows = []
    for name in ("whole", "out"):
        with lmdb.open(str(tmp_path / name / "data.mdb"), subdir=False, readonly=True, lock=False) as env, env.begin() as txn:
            rows.append(list(txn.cursor()))
    assert rows[0] == rows[1] and len(rows[0]) == COUNT


@pytest.mark.parametrize("form", FORMATS)
def test_a_bad_sample_in_the_middle_keeps_what_is_done(tmp_path, form):
    source = tmp_path / "in"
    (source / "c").mkdir(parents=True)
    picture(1, 12, 8).save(tmp_path / "one.png")
    for i in range(COUNT):
        shutil.copy(tmp_path / "one.png", source / "c" / f"{i:05}.png")
    (source / "c" / "01200.png").write_bytes(b"no image")
    got = stoker("pack", source, tmp_path / "out", "--format", form)
    if got.returncode == 2:
        pytest.skip(f"this build has no {form}")
    assert got.returncode == 1 and "01200" in got.stderr
    shutil.copy(tmp_path / "one.png", source / "c" / "01200.png")  # mended
    pack(source, tmp_path / "out", "--format", form)
    assert contents(tmp_path / "out") == packed_whole(source, tmp_path / "whole", form)


# ---- folders ------------------------------------------------------------------------------------


def test_a_read_only_folder(source, small_disk):
    (small_disk / "out").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for out in (small_disk / "out", small_disk / "new"):
        got = pack(source, out, code=1)
        assert "Read-only file system" in got.stderr and str(out) in got.stderr and got.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_of_another(source, tmp_path):
    (tmp_path / "out").mkdir(mode=0o555)
    assert "Permission denied" in pack(source, tmp_path / "out", code=1).stderr


def test_a_folder_in_the_source(tmp_path):
    tree = big_tree(tmp_path / "tree", 6, (40, 30))
    link = tmp_path / "link"
    link.symlink_to(tree)
    before = sorted(tree.rglob("*"))
    for where in (tree, tree / "packed", tree / "c0" / "packed", link / "packed", Path(f"{tree}/c1/../packed/")):
        for written in (tree, f"folder:{tree}", link):
            got = pack(written, where, code=1)
            assert "choose a folder elsewhere" in got.stderr and got.stderr.count("\n") == 1
    assert sorted(tree.rglob("*")) == before
    assert stoker("pack", ".", "packed", cwd=tree).returncode == 1
    pack(tree, tmp_path / "tree-packed")  # beside it, with a name that begins alike
    pack(tmp_path / "tree-packed", tmp_path / "tree-packed-again")


def test_what_is_no_folder(source, tmp_path):
    (tmp_path / "file").write_text("mine")
    got = pack(source, tmp_path / "file", code=1)
    assert str(tmp_path / "file") in got.stderr and (tmp_path / "file").read_text() == "mine"
    got = pack(source, tmp_path / "no" / "such", code=1)
    assert "No such file or directory" in got.stderr and not (tmp_path / "no").exists()


def test_a_finished_pack_that_lost_a_file(source, tmp_path):
    """The manifest alone is not believed."""
    out = tmp_path / "out"
    pack(source, out, "--shard-size", "1M")
    assert "nothing to do" in pack(source, out, "--shard-size", "1M").stdout
    shard = out / "shard-000001.tar"
    data = shard.read_bytes()
    shard.write_bytes(data[:-512])
    assert "shard-000001.tar" in pack(source, out, "--shard-size", "1M", code=1).stderr
    shard.unlink()
    assert "shard-000001.tar" in pack(source, out, "--shard-size", "1M", code=1).stderr
    assert "shard-000001.tar" in stoker("verify", out).stdout + stoker("verify", out).stderr
    shard.write_bytes(data)
    assert "nothing to do" in pack(source, out, "--shard-size", "1M").stdout


@pytest.mark.parametrize("line, wrong", [
    ('"shard-000000.tar"', '"../../etc/x.tar"'),
    ('"first": 0', '"first": 7'),
    ('"positions": 1400', '"positions": 4611686018427387903'),
    ('"settings"', '"sittings"'),
    ('"complete": true', '"complete": true,\n"under_way": {"positions": 3, "samples": 9}'),
    ('"complete": true', '"complete": false,\n"under_way": {"positions": 99999999, "samples": 9}'),
    ('"complete": true', '"complete": true,\n{"file": "../x.npy", "bytes": 1, "crc32c": "0"}'),
    ('{"name"', '{"name": '),
])
def test_a_manifest_that_lies(source, tmp_path, line, wrong):
    out = tmp_path / "out"
    pack(source, out)
    text = (out / "manifest.json").read_text()
    assert line in text
    (out / "manifest.json").write_text(text.replace(line, wrong, 1))
    before = sorted(tmp_path.rglob("*"))
    got = pack(source, out, code=1)
    assert got.stderr.count("\n") == 1 and "out" in got.stderr
    assert sorted(tmp_path.rglob("*")) == before


# ---- URLs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["tar", "npy"])
def test_from_a_url(tmp_path, form):
    """The names in a pack are the samples' own, so that all but the manifest is as from the file."""
    source = archive(tmp_path / "in.tar", 30)
    whole = packed_whole(source, tmp_path / "whole", form)
    with ThreadingHTTPServer(("127.0.0.1", 0), Ranges) as server:
        server.files, server.asked = {"/in.tar": source.read_bytes()}, []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        got = stoker("pack", f"{url}/in.tar", tmp_path / "out", "--format", form)
        missing = stoker("pack", f"{url}/no.tar", tmp_path / "none", "--format", form)
        server.shutdown()
    if "no libcurl" in got.stderr:
        pytest.skip("this build has no libcurl")
    assert got.returncode == 0, got.stderr
    assert missing.returncode == 1 and "404" in missing.stderr and not (tmp_path / "none").exists()
    made = contents(tmp_path / "out")
    assert made.keys() == whole.keys()
    assert all(made[name] == whole[name] for name in made if name != "manifest.json")
