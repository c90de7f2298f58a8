#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets for zip, npy, npz, lmdb, csv, jsonl, datum, inflate, hdf5_index and hdf5_heap to
tests/fuzz/corpus/<target>/, out of the files in tests/data (tests/data/make_formats.py); and those for json, for
answers of servers, for ~/.aws, for the manifest of `stoker pack` and for JPEGs to be made ready for crops.

Files named crash-* were found by fuzzing, and stay.
"""

import pathlib
import random
import re
import struct
import zlib

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


def deflated():
    """Blocks of each kind: stored, fixed, and codes of many lengths; matches near and far, short and long."""
    chance = random.Random(0)
    text = (HERE / "replay.c").read_bytes()
    kinds = {
        "text": text, "zeros": bytes(5000), "short": b"abcabcabc",
        "noise": bytes(chance.choices(range(256), k=1500)), "few": bytes(chance.choices(range(5), k=3000)),
        "skewed": bytes(min(255, int(chance.expovariate(0.08))) for _ in range(4000)),
        "near": b"".join(bytes([i]) * 3 + b"xy" * (i % 40) for i in range(100)),
        "far": text[:600] + bytes(chance.choices(range(256), k=40)) * 3 + bytes(33000) + text[:600],
    }
    for name, data in kinds.items():
        for way, level, strategy in ("fixed", 6, zlib.Z_FIXED), ("dynamic", 9, 0), ("letters", 6, zlib.Z_HUFFMAN_ONLY):
            packer = zlib.compressobj(level, zlib.DEFLATED, -15, 9, strategy)
            write("inflate", f"{name}-{way}", packer.compress(data) + packer.flush())
    packer = zlib.compressobj(0, zlib.DEFLATED, -15)
    write("inflate", "stored", packer.compress(b"stored") + packer.flush())


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

    def header(message, data):
        padded = data.ljust(-(-len(data) // 8) * 8, b"\0")
        return bytes([0, 16]) + bytes(14) + struct.pack("<BBHII4x", 1, 0, 1, 1, 8 + len(padded)) + \
            struct.pack("<HHBBBB", message, len(padded), 0, 0, 0, 0) + padded

    def tree2(kind, record, count):
        return b"BTHD\0" + bytes([kind]) + struct.pack("<IHHBBQHQI", 64, len(record), 0, 98, 40, 144, count, count, 0) + \
            bytes(6) + b"BTLF\0" + bytes([kind]) + record * count

    old = header(17, struct.pack("<QQ", 80, 140)).ljust(80, b"\0") + \
        b"TREE\0\0" + struct.pack("<HQQQQQ", 1, 2**64 - 1, 2**64 - 1, 0, 212, 0)
    old = old.ljust(140, b"\0") + b"HEAP\0\0\0\0" + struct.pack("<QQQ", 32, 8, 172) + b"name\0\0\0\0" + \
        struct.pack("<QQ", 1, 24)
    write("hdf5_index", "links", old.ljust(212, b"\0") + b"SNOD\1\0\1\0" + struct.pack("<QQII16x", 0, 16, 0, 0))
    write("hdf5_index", "links2", header(2, struct.pack("<BBQQ", 0, 0, 16, 100)).ljust(100, b"\0") +
          tree2(5, bytes(11), 3).ljust(108, b"\0"))
    chunks = struct.pack("<BBBBBBBBIBBQ", 4, 2, 0, 2, 1, 2, 1, 5, 64, 98, 40, 100)
    write("hdf5_index", "chunks2", header(8, chunks).ljust(100, b"\0") +
          tree2(11, struct.pack("<QBIQ", 16, 2, 0, 0), 1).ljust(108, b"\0"))


def hdf5_heaps():
    """A reference, and a collection at byte 16."""
    def reference(length, at=16, number=2):
        return struct.pack("<IQI", length, at, number)

    def item(number, data, size=None):
        return struct.pack("<HHIQ", number, 1, 0, len(data) if size is None else size) + data + bytes(-len(data) % 8)

    def collection(items, size=None):
        return b"GCOL\1\0\0\0" + struct.pack("<Q", 16 + len(items) if size is None else size) + items

    free = struct.pack("<HHIQ", 0, 0, 0, 64).ljust(64, b"\0")
    two = item(1, b"first") + item(2, b"12345678")
    many = b"".join(item(k, b"") for k in range(3, 300)) + item(2, b"12345678")
    for name, data in {
        "sound": reference(8) + collection(two + free), "full": reference(8) + collection(two),
        "empty": reference(0, 0, 0), "many": reference(8) + collection(many),
        "length": reference(800) + collection(two + free), "number": reference(8, 16, 7) + collection(two),
        "elsewhere": reference(8, 2**64 - 8) + collection(two), "long": reference(8) + collection(item(1, b"", 2**64 - 1)),
        "large": reference(8) + collection(two, 2**63), "small": reference(8) + collection(two, 8),
        "none": reference(8) + b"GCOM\1".ljust(64, b"\0"),
    }.items():
        write("hdf5_heap", name, data)


def tables_of_urls():
    rows = ["http://h/a b.jpg", "https://u:p@h/x?y#z", "s3://bucket/k", "s3://", "../../x", "/y"]
    write("csv", "urls.csv", ("path,label\n" + "".join(f"{row},{i}\n" for i, row in enumerate(rows))).encode())
    write("jsonl", "urls.jsonl", "".join('{"path": "%s", "label": 1}\n' % row for row in rows).encode())


def answers():
    """See fuzz_answer.c."""
    def answer(status, content_range="", *more):
        lines = [f"HTTP/1.1 {status} x", "Content-Type: image/jpeg", 'ETag: "tag"',
                 "Last-Modified: Sun, 15 Nov 2026 08:00:00 GMT"]
        return "\n".join([*lines, f"Content-Range: {content_range}" if content_range else "Server: x", *more]) + "\n"

    first = answer(206, "bytes 0-4095/9000")
    for name, text in {
        "first": "0 4095\n" + first + "=4096\n",
        "first-short": "0 4095\n" + answer(206, "bytes 0-99/100") + "=100\n",
        "known": "500 99 known\n" + answer(206, "bytes 500-599/10000") + "=60\n=40\n",
        "again": "0 4095\n" + first + "=1000\n" + answer(206, "bytes 1000-4095/9000") + "=3096\n",
        "again-smaller": "0 4095\n" + first + "=1000\n" + answer(206, "bytes 1000-4095/50") + "=65536\n",
        "again-other": "0 4095\n" + first + "=9\n" + answer(206, "bytes 9-4095/9000", 'ETag: "other"') + "=3\n",
        "redirected": "0 9\n" + answer(302, "bytes 0-1/2", "Location: http://x/") + first + "=10\n",
        "s3-200": "0 99\n" + answer(200, "bytes 0-99/9000") + "=100\n",
        "whole": "0 99\n" + answer(200) + "=9000\n",
        "unsatisfied": "0 99\n" + answer(416, "bytes */0") + "=10\n",
        "no-total": "0 99\n" + answer(206, "bytes 0-99/*") + "=100\n",
        "more": "0 99 known\n" + answer(206, "bytes 0-99/10000") + "=101\n",
        "huge": "0 99\n" + answer(206, "bytes 0-99/99999999999999999999999") + "=100\n",
        "backwards": "0 99\n" + answer(206, "bytes 99-0/1000") + "=100\n",
        "broken": "0 99\n" + answer(206, "bytes 0", "Content-Range: bytes 0-", "Content-Range:", ":") + "=100\n",
        "region": "0 99\n" + answer(301, "", "x-amz-bucket-region: eu-central-1") + "=100\n",
        "long": "0 99\n" + answer(206, "bytes 0-99/100" + "0" * 600, "ETag: " + "x" * 700) + "=100\n",
    }.items():
        write("answer", name, text.encode())


def settings():
    keys = "aws_access_key_id = K\naws_secret_access_key=S\n"
    for name, text in {
        "credentials": f"[default]\n{keys}[other]\n{keys}aws_session_token = T\n",
        "config": "[default]\nregion = x\n[profile other]\nregion=y\nendpoint_url = http://127.0.0.1:9000/\n",
        "nested": f"# c\n[ other ]\r\ns3 =\n  region = z\n;{keys}{keys}",
        "odd": "[\n[]\n]\n=\n==\n[default]\n =x\nregion\nregion=\nregion = \0x\n",
        "long": "[default]\n" + "region" * 2000 + "= x\naws_access_key_id = " + "k" * 300 + "\n" + keys.rstrip(),
        "s3-url": "s3://bucket/dir/a b%?#.csv\n../../x/./y z",
        "http-url": "http://user:pass@host:1/dir/t.csv?q=/x#/y\n/root/../a/%",
        "bare-url": "https://host",
    }.items():
        write("aws", name, text.encode())


def jsons():
    for name, text in {
        "object": '{"a": [1, -2.5e+3, true, false, null, {"b": "\\u00fc\\ud83d\\ude00\\n"}]}',
        "text": ' "\u20ac\U0001f600" ',
        "numbers": "[0, -0, 1e5, NaN, Infinity, -Infinity, 0.5]", "deep": "[" * 600, "cut": '{"a": "b', "empty": "",
        "quotes": "{'a': 1}", "comma": "[1,]", "mark": "\ufeff{}", "escape": '"\\x"',
    }.items():
        write("json", name, text.encode())
    write("json", "latin", b'"\xfc"')


def pack_manifests():
    head = ('{\n"stoker_pack": 1,\n"settings": {"source": "in", "source_samples": 5, "fields": "", "format": "tar"},\n'
            '"complete": %s,\n"samples": 5,\n"bad": 0,\n"bytes": 30,\n"ledger_size": 7,\n')
    shard = '{"name": "%s", "first": %d, "positions": %d, "samples": %d, "bytes": 10, "crc32c": "0badcafe"}'
    two = ",\n".join([shard % ("000000.tar", 0, 3, 2), shard % ("000001.tar", 3, 2, 2)])
    for name, text in {
        "complete": head % "true" + f'"shards": [\n{two}\n]\n}}\n',
        "begun": head % "false" + '"shards": [\n]\n}\n',
        "under-way": head % "false" + '"under_way": {"positions": 9, "samples": 4},\n"shards": [\n]\n}\n',
        "beside": head % "true" + f'"shards": [\n{two}\n],\n"beside": [\n'
                  '{"file": "a.npy", "bytes": 3, "crc32c": "01"}\n]\n}\n',
        "elsewhere": head % "true" + '"shards": [\n' + shard % ("../../etc/x", 0, 1, 1) + "\n]\n}\n",
        "gap": head % "true" + '"shards": [\n' + shard % ("a.tar", 7, 1, 1) + "\n]\n}\n",
        "more-than-all": head % "true" + '"shards": [\n' + shard % ("a.tar", 0, 1, 2) + "\n]\n}\n",
        "huge": head % "true" + '"shards": [\n' + shard % ("a.tar", 0, 2**63, 1) + "\n]\n}\n",
        "cut": (head % "true" + f'"shards": [\n{two}')[:-30], "empty": "", "other": "[1, 2]\n",
    }.items():
        write("pack_manifest", name, text.encode())


def crop_ready():
    for path in sorted((CORPUS / "jpeg").iterdir()):
        if not path.name.startswith("crash-") and path.stat().st_size < 4000:
            write("crop_ready", path.name, path.read_bytes())


for target, folder in [("zip", "zip"), ("npy", "npy"), ("npz", "npz"), ("csv", "manifest"), ("jsonl", "manifest")]:
    from_expectations(target, folder, target)
from_expectations("lmdb", "lmdb", "lmdb", 40000)
datums()
deflated()
hdf5_indexes()
hdf5_heaps()
tables_of_urls()
answers()
settings()
jsons()
pack_manifests()
crop_ready()
