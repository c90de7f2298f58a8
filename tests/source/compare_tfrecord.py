# SPDX-License-Identifier: Apache-2.0
"""The TFRecord source against what TensorFlow wrote and read back (tests/data/make_tfrecord.py). Speaks TAP.

Where TensorFlow is installed, in this Python or in the one that STOKER_TENSORFLOW names, files are also made anew.
"""

import importlib.util
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import tap

DATA = Path(__file__).parent.parent / "data"
FIELDS = ("image/encoded=image,image/class/label=int,image/class/text=text,box=float[2x2],score=float,ids=int[],"
          "raw=u8[3x4],big=int[5]")


def as_f32(values):
    return struct.pack(f"<{len(values)}f", *values)


def as_i64(values):
    return struct.pack(f"<{len(values)}q", *values)


def expected(record):
    return (bytes.fromhex(record["image/encoded"][0]), record["image/class/label"][0],
            bytes.fromhex(record["image/class/text"][0]), as_f32(record["box"]), record["score"][0],
            as_i64(record["ids"]), bytes.fromhex(record["raw"][0]), as_i64(record["big"]))


def copied(folder, root):
    """The files in a folder of the test's own: indexes are written beside them."""
    target = Path(tempfile.mkdtemp(dir=root))
    for path in folder.iterdir():
        shutil.copy(path, target)
    return target


def examples(folder, who):
    for name in "examples", "gzip", "zlib":
        want = json.loads((folder / f"{name}.json").read_text())
        got = tap.Opened(f"tfrecord:{folder}/{name}.tfrecord", FIELDS)
        tap.same(got.samples, [expected(record) for record in want], f"{who}: {name}")
    shapes = [piece["shape"] for piece in got.raw[-1]["pieces"] if "shape" in piece]
    tap.same(shapes, [[], [], [2, 2], [len(want[-1]["ids"])], [3, 4], [5]], f"{who}: shapes")


def sequences(folder, who):
    want = json.loads((folder / "sequences.json").read_text())
    got = tap.Opened(folder / "sequences.tfrecord", "label=int,tokens=int[],frames=float[?,3]")
    tap.same(got.samples, [(r["label"][0], as_i64(r["tokens"]), as_f32(r["frames"])) for r in want],
             f"{who}: feature lists, step by step")
    tap.same(got.raw[4]["pieces"][2]["shape"], [4, 3], f"{who}: an axis of any length")


def own_choice(folder):
    got = tap.Opened(folder / "examples.tfrecord")
    tap.same(got.fields, [("image/encoded", "image"), ("big", "array"), ("box", "array"), ("ids", "array"),
                          ("image/class/label", "int"), ("image/class/text", "bytes"), ("raw", "bytes"),
                          ("score", "float")],
             "fields that nobody named: those of the first record, images first")
    tap.same(tap.Opened(folder / "examples.tfrecord", "score,image/encoded,box").fields,
             [("score", "float"), ("image/encoded", "image"), ("box", "array")], "types that nobody named")


def refusals(folder):
    path = folder / "examples.tfrecord"
    for fields, word in [("box=float[3x2", "expected name=type"), ("box=float[3]", "do not fit"),
                         ("box=int[4]", "do not fit"), ("many=bytes", "do not fit"), ("none=int", "no feature none"),
                         ("box=array", "type of its elements"), ("raw=text[3]", "not take a shape"),
                         ("box=float[?x?]", "expected name=type"),
                         ("box=complex", "unknown type"), ("raw=u8", "expected name=type"), ("raw=u16[5]", "do not fit"),
                         ("empty=bytes", "no feature empty"), ("raw=image[12]", "2 or 3 dimensions")]:
        said = tap.refused(path, fields) or str(tap.Opened(path, fields).samples[1])
        tap.ok(word in said, f"{fields}: {said}")
    tap.same(tap.Opened(path, "raw=image[2x2x3]").raw[1]["pieces"][0]["shape"], [2, 2, 3], "pixels as they are")
    tap.same(tap.Opened(path, "raw=u16[?]").raw[1]["pieces"][0]["shape"], [6], "elements of two bytes")


def damage(folder):
    plain = (folder / "examples.tfrecord").read_bytes()
    length = int.from_bytes(plain[:8], "little") + 16

    def after(name, data):
        (folder / name).write_bytes(data)
        return tap.Opened(f"tfrecord:{folder / name}", "score=float").samples

    got = after("data", plain[:length + 30] + b"\x55" + plain[length + 31:])
    tap.ok(len(got) == 7 and "checksum" in str(got[1]) and abs(got[2][0] - 2 / 3) < 1e-7,
           f"a damaged record: {got[1]}")
    got = after("length", plain[:length] + b"\x55" + plain[length + 1:])
    tap.ok(len(got) == 2 and "damaged" in str(got[1]) and f"byte {length}" in str(got[1]), f"a damaged length: {got[1]}")
    got = after("cut", plain[:-3])
    tap.ok(len(got) == 7 and "truncated" in str(got[6]), f"a file cut off in a record: {got[6]}")
    got = after("head", plain[:length + 5])
    tap.ok(len(got) == 2 and "damaged" in str(got[1]), f"a file cut off in a head: {got[1]}")
    (folder / "other").write_bytes(b"no record at all, but long enough")
    tap.ok("not a TFRecord" in tap.refused(f"tfrecord:{folder / 'other'}"), "another file")
    tap.ok("no sample" in tap.refused(folder / "none.tfrecord"), "a file without records")
    packed = (folder / "gzip.tfrecord").read_bytes()
    (folder / "half.tfrecord").write_bytes(packed[:len(packed) // 2])
    tap.ok("gzip data are damaged" in tap.refused(folder / "half.tfrecord"), "half a packed file")


# ---- records made by hand, for what TensorFlow may read but does not write -----------------------------------------


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def framed(record):
    def masked(data):
        crc = crc32c(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    head = struct.pack("<Q", len(record))
    return head + masked(head) + record + masked(record)


def varint(value):
    value &= 2**64 - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, data):
    if isinstance(data, int):
        return varint(number << 3) + varint(data)
    return varint(number << 3 | 2) + varint(len(data)) + data


def entry(name, feature):
    return field(1, field(1, name) + field(2, feature))


def wire(folder):
    """Each record has a feature "n"; the values that must come of it, or None where it must be refused."""
    packed = field(3, field(1, varint(1) + varint(300) + varint(-2)))
    loose = field(3, field(1, 1) + field(1, 300) + field(1, -2))
    mixed = field(3, field(1, varint(1) + varint(300)) + field(1, -2))
    other = field(2, field(1, struct.pack("<f", 5)))
    records = {
        "packed": (field(1, entry(b"n", packed)), [1, 300, -2]),
        "one by one": (field(1, entry(b"n", loose)), [1, 300, -2]),
        "both ways": (field(1, entry(b"n", mixed)), [1, 300, -2]),
        "in two lists": (field(1, entry(b"n", packed + field(3, field(1, 9)))), [1, 300, -2, 9]),
        "after another kind": (field(1, entry(b"n", field(3, field(1, 9)) + other + packed)), [1, 300, -2]),
        "of two with one name the later": (field(1, entry(b"n", field(3, field(1, 9))) + entry(b"n", packed)),
                                           [1, 300, -2]),
        "in two maps": (field(1, entry(b"m", other)) + field(1, entry(b"n", packed)), [1, 300, -2]),
        "value before name": (field(1, field(1, field(2, packed) + field(1, b"n"))), [1, 300, -2]),
        "among fields unknown": (field(9, 7) + field(1, field(8, b"x") + entry(b"n", field(7, b"y") + packed)) +
                                 varint(9 << 3 | 5) + b"1234" + varint(9 << 3 | 1) + b"12345678", [1, 300, -2]),
        "empty": (field(1, entry(b"n", field(3, b""))), []),
        "none": (field(1, entry(b"m", packed)), None),
        "no record at all": (b"", None),
        "another kind": (field(1, entry(b"n", other)), None),
        "cut off": (field(1, entry(b"n", packed))[:-1], None),
        "a number of eleven bytes": (field(1, entry(b"n", field(3, field(1, b"\xff" * 10 + b"\x01")))), None),
        "a group": (bytes([3 << 3 | 3]), None),
        "field 0": (b"\x02\x00", None),
    }
    (folder / "wire").write_bytes(b"".join(framed(record) for record, _ in records.values()))
    got = tap.Opened(f"tfrecord:{folder / 'wire'}", "n=int[]").samples
    for (name, (_, want)), sample in zip(records.items(), got, strict=True):
        if want is None:
            tap.ok(isinstance(sample, Exception), f"whole numbers, {name}: {sample}")
        else:
            tap.same(sample, (as_i64(want),), f"whole numbers, {name}")
    floats = field(2, field(1, struct.pack("<2f", 1, 2))) + field(2, varint(1 << 3 | 5) + struct.pack("<f", 3))
    (folder / "floats").write_bytes(framed(field(1, entry(b"n", floats))) +
                                    framed(field(1, entry(b"n", field(2, field(1, b"12345"))))))
    got = tap.Opened(f"tfrecord:{folder / 'floats'}", "n=float[]").samples
    tap.ok(got[0] == (as_f32([1, 2, 3]),) and isinstance(got[1], Exception), f"floats that lie apart; {got[1]}")


def foreign_index(folder):
    """DALI's tfrecord2idx, as the format is described; and one that is wrong."""
    path = folder / "examples.tfrecord"
    plain, lines, at = path.read_bytes(), [], 0
    while at < len(plain):
        size = int.from_bytes(plain[at:at + 8], "little") + 16
        lines.append(f"{at} {size}\n")
        at += size
    for name, text in ("right", "".join(lines)), ("short", "".join(lines[:-1])), ("wrong", "0 100\n100 200\n"):
        shutil.copy(path, folder / f"{name}.tfrecord")
        (folder / f"{name}.idx").write_text(text)
        got = tap.Opened(folder / f"{name}.tfrecord", "image/class/label=int")
        tap.same(got.samples, [(i - 2,) for i in range(7)], f"an index of another program: {name}")


with tempfile.TemporaryDirectory() as root:
    folder = copied(DATA / "tfrecord", root)
    examples(folder, "TensorFlow's files")
    sequences(folder, "TensorFlow's files")
    own_choice(folder)
    refusals(folder)
    foreign_index(folder)
    wire(folder)
    damage(folder)
    python = os.environ.get("STOKER_TENSORFLOW") or (sys.executable if importlib.util.find_spec("tensorflow") else None)
    if python:
        live = Path(root) / "live"
        subprocess.run([python, DATA / "make_tfrecord.py", live], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        examples(live, "TensorFlow now")
        sequences(live, "TensorFlow now")
    else:
        tap.note("TensorFlow is not installed: its files in the tree stand for it")
tap.finish()
