#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets for zip, npy, npz, lmdb, csv, jsonl, datum and hdf5_index to
tests/fuzz/corpus/<target>/, out of the files in tests/data (tests/data/make_formats.py).

Files named crash-* were found by fuzzing, and stay.
"""

import pathlib
import re
import struct

HERE = pathlib.Path(__file__).parent
CORPUS, DATA = HERE / "corpus", HERE.parent / "data"


def write(target, name, data):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def damaged(text, base):
    """The file that an expectation damages."""
    data = bytearray(base)
    for offset, patch in re.findall(r"^patch (\d+) ([0-9a-f]+)$", text, re.M):
        data[int(offset):int(offset) + len(patch) // 2] = bytes.fromhex(patch)
    cut = re.search(r"^cut (\d+)$", text, re.M)
    return bytes(data[:int(cut[1])] if cut else data)


def from_expectations(target, folder, scheme, longest=16384):
    for name, text in sections(DATA / folder / "expect"):
        kind, file = text.splitlines()[0].split(":", 1)
        path = DATA / folder / file
        path = path / "data.mdb" if path.is_dir() else path
        if kind in (scheme, "auto") and path.exists() and path.name.endswith((scheme, "mdb", "tsv")):
            data = damaged(text, path.read_bytes())
            if len(data) <= longest:
                write(target, name, data)


def sections(path):
    for part in re.split(r"^== ", path.read_text(), flags=re.M)[1:]:
        name, text = part.split("\n", 1)
        yield name, text


def datums():
    write("datum", "raw", bytes.fromhex("080110021802220461626364") + b"\x28\x05")
    write("datum", "encoded", b"\x22\x03abc\x28\x01\x38\x01")
    write("datum", "negative", b"\x08\x01\x10\x01\x18\x01\x22\x01x\x28" + b"\xff" * 9 + b"\x01")
    write("datum", "floats", b"\x08\x01\x10\x01\x18\x02\x35\0\0\x80\x3f\x35\0\0\0\0")
    write("datum", "unknown", b"\x08\x01\x10\x01\x18\x01\x22\x01x\x79" + bytes(8) + b"\x82\x06\x02hi")
    write("datum", "cut", b"\x08\x01\x10\x02\x18\x02\x22\x7fabcd")


def hdf5_indexes():
    """A header and a tree by hand, of one dimension: the smallest of the kind."""
    def node(level, entries):
        keys = b"".join(struct.pack("<IIQQQ", 2, 0, place, 0, child) for place, child in entries)
        return b"TREE\1" + bytes([level]) + struct.pack("<HQQ", len(entries), 2**64 - 1, 2**64 - 1) + keys

    def layout(tree):
        return struct.pack("<BBBQII", 3, 2, 2, tree, 2, 1)

    first = struct.pack("<HHBBBB", 8, 24, 0, 0, 0, 0) + layout(88).ljust(24, b"\0")
    head = bytes([0, 16]) + bytes(14) + struct.pack("<BBHII4x", 1, 0, 1, 1, 56) + first + bytes(24)
    write("hdf5_index", "leaf", (head + node(0, [(0, 0), (2, 4), (4, 8), (6, 2)])).ljust(400, b"\0"))
    write("hdf5_index", "branch", head + node(1, [(0, 200), (4, 300)]).ljust(112, b"\0") +
          node(0, [(0, 0), (2, 4)]).ljust(100, b"\0") + node(0, [(4, 8), (6, 2)]).ljust(100, b"\0"))
    write("hdf5_index", "cyclic", head + node(1, [(0, 88), (4, 88)]).ljust(200, b"\0"))
    second = b"OHDR\2\0" + bytes([60]) + struct.pack("<BHB", 8, 19, 0) + layout(88)
    write("hdf5_index", "second", (bytes([0, 16]) + bytes(14) + second).ljust(88, b"\0") +
          node(0, [(0, 0)]).ljust(100, b"\0"))
    loop = struct.pack("<HHBBBBQQ", 16, 16, 0, 0, 0, 0, 32, 24)
    write("hdf5_index", "continued", bytes([0, 16]) + bytes(14) + struct.pack("<BBHII4x", 1, 0, 1, 1, 24) + loop)


for target, folder in [("zip", "zip"), ("npy", "npy"), ("npz", "npz"), ("csv", "manifest"), ("jsonl", "manifest")]:
    from_expectations(target, folder, target)
from_expectations("lmdb", "lmdb", "lmdb", 40000)
datums()
hdf5_indexes()
