#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of the fuzz targets for archives: tests/fuzz/corpus/{tar,tar_idx,tar_inside,record,
shard_index,fields,unpack}.

Usage: make_archives.py DUMP

DUMP is the program tests/source/dump as built, which writes indexes. Files named crash-* were found by fuzzing, and
stay.
"""

import gzip
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zlib

HERE = pathlib.Path(__file__).parent
CORPUS = HERE / "corpus"


def write(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def tar(members, **options):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", **options) as archive:
        for name, data in members:
            info = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def tars():
    plain = [("a.jpg", b"1"), ("a.cls", b"7"), ("b/c.seg.png", b""), ("README", b"x" * 600)]
    write("tar", "ustar", tar(plain, format=tarfile.USTAR_FORMAT))
    write("tar", "gnu-long", tar([("d/" * 80 + "x.jpg", b"1"), ("y.jpg", b"2")], format=tarfile.GNU_FORMAT))
    write("tar", "pax-long", tar([("d/" * 80 + "é.jpg", b"1"), ("y.jpg", b"2")], format=tarfile.PAX_FORMAT))
    write("tar", "pax-global", tar(plain, format=tarfile.PAX_FORMAT, pax_headers={"comment": "hello"}))
    write("tar", "cut", tar(plain)[:1200])
    big = tarfile.TarInfo("big.bin")
    big.size = 9 << 30
    write("tar", "base256", big.tobuf(format=tarfile.GNU_FORMAT) + b"data")
    write("tar", "pax-size", big.tobuf(format=tarfile.PAX_FORMAT) + b"data")
    sparse = tarfile.TarInfo("s.bin")
    sparse.type = tarfile.GNUTYPE_SPARSE
    write("tar", "sparse", tar([(sparse, b"12345")]))
    nameless = tarfile.TarInfo("long")
    nameless.type = tarfile.GNUTYPE_LONGNAME
    write("tar", "gnu-empty-name", nameless.tobuf() + tar(plain))
    write("tar", "empty", b"")
    write("tar", "zeros", bytes(1024))
    write("tar_idx", "right", b"v1.2 3\nbin 512 5 a.bin\nbin 1536 5 b.bin\nbin 2560 5 c.bin\n")
    write("tar_idx", "pairs", b"v1.2 1\nbin 512 5 a.bin cls 1536 5 a.cls\n")
    write("tar_idx", "wrong", b"v1.2 2\nbin 512 9 a.bin\nbin 512 5 a.bin\n")
    write("tar_idx", "old", b"v1.1 1\nbin 512 5\n")


def records():
    for path in (HERE.parent / "data" / "tfrecord").glob("*.tfrecord"):
        data = path.read_bytes()
        write("record", path.stem, data)
        if len(data) > 20 and path.stem in ("examples", "sequences"):
            length = int.from_bytes(data[:8], "little")
            write("record", f"{path.stem}-one", data[12:12 + length])
    write("record", "unpacked-numbers", bytes.fromhex("0a120a100a03696473120908011a0512030a0105"))
    write("record", "offsets", b"0 100\n100 200\n")


def indexes(dump):
    with tempfile.TemporaryDirectory() as folder:
        for name in "ustar", "gnu-long", "cut":
            path = pathlib.Path(folder) / f"{name}.tar"
            shutil.copy(CORPUS / "tar" / name, path)
            os.utime(path, (1e9, 1e9))
            subprocess.run([dump, "open", path], check=True, stdout=subprocess.DEVNULL)
            write("shard_index", name, path.with_suffix(".tar.stoker-index").read_bytes())
        path = pathlib.Path(folder) / "r.tfrecord"
        shutil.copy(HERE.parent / "data" / "tfrecord" / "examples.tfrecord", path)
        os.utime(path, (1e9, 1e9))
        subprocess.run([dump, "open", path], check=True, stdout=subprocess.DEVNULL)
        write("shard_index", "records", path.with_suffix(".tfrecord.stoker-index").read_bytes())


def insides(dump):
    """Of the archive that fuzz_tar_inside.c makes; the archive's size, which its stamp begins with, is that before it."""
    stamp_at = 32
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "three.tar"
        path.write_bytes(tar([(f"{letter}.bin", b"12345") for letter in "abc"]))
        os.utime(path, (1e9, 1e9))
        subprocess.run([dump, "open", path], check=True, stdout=subprocess.DEVNULL)
        index = path.with_suffix(".tar.stoker-index").read_bytes()
    for name, size in ("right", 3072), ("early", 2560), ("late", 3584):
        write("tar_inside", name, index[:stamp_at] + size.to_bytes(8, sys.byteorder) + index[stamp_at + 8:])
    write("tar_inside", "empty", b"")


def fields():
    for i, text in enumerate([b"jpg;jpeg;png,cls", b"image/encoded=image,box=float[2x4]", b"a=int[],b=u8[?,3]", b"x.gz=bytes",
                              b"a-{000..003}.tar", b"{a,b{1..3},{x,y}}", b"\\{{-05..5..5}\\}", b"{Z..a..2}", b"pyd"]):
        write("fields", f"text-{i}", text)


def packed():
    data = b"words and words and more words " * 40
    write("unpack", "gzip", gzip.compress(data, mtime=0))
    write("unpack", "gzip-two", gzip.compress(data, mtime=0) + gzip.compress(b"", mtime=0) + bytes(5))
    write("unpack", "gzip-bomb", gzip.compress(bytes(300000), mtime=0))
    write("unpack", "gzip-cut", gzip.compress(data, mtime=0)[:40])
    write("unpack", "zlib", zlib.compress(data))
    if shutil.which("zstd"):
        for name, text in ("zstd", data), ("zstd-bomb", bytes(300000)):
            write("unpack", name, subprocess.run(["zstd", "-q", "-c"], input=text, capture_output=True, check=True).stdout)


tars()
records()
indexes(sys.argv[1])
insides(sys.argv[1])
fields()
packed()
