#!/usr/bin/env python3
"""Writes small files of each format, tests/data/<format>/, with the format's own library, and beside each what that
library reads from it (the file expect), for tests/source/test_formats.c.

Usage: make_formats.py [FORMAT ...]

Needs numpy, Pillow, h5py and lmdb. The same files come out each time, but for what the libraries themselves write.
"""

import csv
import gzip
import io
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import warnings
import zipfile
import zlib

import numpy as np
from PIL import Image

DATA = pathlib.Path(__file__).parent
rng = np.random.default_rng(7)


def collect_expectations(path):
    """All of a folder's expectations in one file, each behind a line "== NAME"."""
    found = sorted(path.glob("*.expect"))
    (path / "expect").write_text("".join(f"== {one.stem}\n{one.read_text()}" for one in found))
    for one in found:
        one.unlink()


def folder(name):
    path = DATA / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def crc(data):
    return f"{len(data)} {zlib.crc32(data):08x}"


def piece(name, value, kind=None):
    """The line for one piece, as tests/source/pieces.h prints it."""
    if isinstance(value, str):
        return f"{name} {kind or 'text'} {crc(value.encode())}"
    if isinstance(value, bytes):
        return f"{name} {kind or 'bytes'} {crc(value)}"
    value = np.asarray(value)
    if kind is None and value.ndim == 0:
        kind = "float" if value.dtype.kind == "f" else "int"
    if kind == "int":
        return f"{name} int {int(value)}"
    if kind == "float":
        return f"{name} float {struct.pack('>d', float(value)).hex()}"
    if kind is None:
        pixels = value.dtype == np.uint8 and (value.ndim == 2 or value.ndim == 3 and 1 <= value.shape[2] <= 4)
        kind = "image" if pixels else "array"
    native = np.ascontiguousarray(value.astype(value.dtype.newbyteorder("=")))
    shape = " " + "x".join(map(str, value.shape)) if value.ndim else ""
    return f"{name} {kind} {value.dtype.name}{shape} {crc(native.tobytes())}"


def expect(path, uri, samples, fields="-", classes=(), note=None):
    """samples: for each one a list of lines."""
    lines = [uri, fields, f"count {len(samples)}"] + [f"class {name}" for name in classes]
    lines += [f"note {note}"] if note else []
    for i, sample in enumerate(samples):
        lines += [f"sample {i}"] + sample
    path.write_text("\n".join(lines) + "\n")


def damaged(path, base, good, bad, errors):
    """As the expectations of `base`, but that these samples have errors: number to (code, words)."""
    uri, fields, *lines = base.read_text().splitlines()
    out, sample = [], None
    for line in lines:
        if line.startswith("sample "):
            sample = int(line[7:])
            out.append(line)
            if sample in errors:
                out.append("error %d %s" % errors[sample])
        elif sample not in errors:
            out.append(line)
    path.write_text(f"{uri}\n{fields}\n{patches_between(good, bad)}" + "\n".join(out) + "\n")


def refused(path, uri, code, words, fields="-", patches=""):
    path.write_text(f"{uri}\n{fields}\n{patches}refused {code} {words}\n")


def patches_between(good, bad):
    """Lines that make the one of the other: the test damages a copy, so that the good file alone is kept here."""
    lines, at = "", 0
    while at < min(len(good), len(bad)):
        end = at
        while end < min(len(good), len(bad)) and good[end] != bad[end]:
            end += 1
        if end > at:
            lines += f"patch {at} {bytes(bad[at:end]).hex()}\n"
        at = end + 1
    return lines + (f"cut {len(bad)}\n" if len(bad) < len(good) else "")


EINVAL, EIO, ECORRUPT, EUNSUPPORTED, ELIMIT = -1, -3, -4, -5, -6


def numbers(shape, dtype):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(max(info.min, -2**62), min(info.max, 2**62), shape, endpoint=True).astype(dtype)
    values = rng.standard_normal(shape).astype(dtype)
    values.flat[:1] = np.inf
    return values


def jpeg(seed, size=(9, 7), **options):
    chance = random.Random(seed)
    image = Image.frombytes("RGB", size, bytes(chance.randrange(256) for _ in range(size[0] * size[1] * 3)))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=50, **options)
    return out.getvalue()


NUMBER_TYPES = ["u1", "<u2", ">u2", "<u4", ">u4", "<u8", ">u8", "i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8",
                "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "?"]


def npy():
    out = folder("npy")

    def save(name, array, version=None, field="row", fields="-", kind=None):
        with open(out / f"{name}.npy", "wb") as file:
            np.lib.format.write_array(file, array, version=version, allow_pickle=True)
        again = np.load(out / f"{name}.npy")
        lines = [[piece(field, row.item() if again.dtype.kind in "SU" else row, kind)] for row in again]
        if again.dtype.kind == "S":
            lines = [[piece(field, row.decode())] for row in again]
        expect(out / f"{name}.expect", f"npy:{name}.npy", lines, fields)

    save("floats", numbers((2, 3, 5), "<f4"))
    save("swapped", numbers((2, 3, 5), ">f8"))
    save("labels", numbers(4, ">i2"))
    save("grey", numbers((3, 5, 4), "u1"))
    save("rgb", numbers((3, 5, 4, 3), "u1"))
    save("planes", numbers((2, 3, 6, 5), "u1"))
    save("as_array", numbers((2, 6, 5), "u1"), field="x", fields="x=array", kind="array")
    save("float_of_int", numbers(3, "i4"), fields="row=float", kind="float")
    save("empty", numbers((0, 4), "f4"))
    save("no_columns", np.zeros((3, 0), "f4"))
    save("bytes_padded", np.array([b"one", b"", b"longer\xc3\xa9"]))
    save("strings", np.array(["one", "", "größer", "\U0001f600 x"]))
    save("strings_be", np.array(["ä", "b"], dtype=">U3"))
    save("version2", numbers((2, 2), "f4"), version=(2, 0))
    save("version3", numbers((2, 2), "f4"), version=(3, 0))

    for suffix, pack in ("gz", ["gzip", "-n"]), ("zst", ["zstd", "-q"]):
        packed = subprocess.run(pack, input=(out / "rgb.npy").read_bytes(), capture_output=True, check=True).stdout
        (out / f"rgb.npy.{suffix}").write_bytes(packed)
        text = (out / "rgb.expect").read_text()
        (out / f"packed_{suffix}.expect").write_text(text.replace("npy:rgb.npy", f"auto:rgb.npy.{suffix}"))
        refused(out / f"damaged_{suffix}.expect", f"npy:rgb.npy.{suffix}", ECORRUPT, "damaged",
                patches=patches_between(packed, packed[:-9]))
    (out / "looks.expect").write_text((out / "rgb.expect").read_text().replace("npy:", "auto:"))

    whole = (out / "rgb.npy").read_bytes()
    for name, data, code, words in [
        ("zero_bytes", b"", ECORRUPT, "empty"), ("no_magic", b"P6 1 1 255" + whole[10:], ECORRUPT, "does not begin"),
        ("cut_header", whole[:60], ECORRUPT, "header claims"), ("cut_data", whole[:-1], ECORRUPT, "179 are there"),
        ("lying_header", whole.replace(b"(3, 5", b"(9, 5"), ECORRUPT, "promises 540 bytes"),
        ("huge_shape", whole.replace(b"'shape': (3, 5, 4, 3), }" + b" " * 10, b"'shape': (9999999999, 5, 999), }  "),
         ECORRUPT, "promises"),
        ("wrong_key", whole.replace(b"descr", b"descX"), ECORRUPT, "not one of numpy's"),
        ("version9", whole[:6] + b"\x09" + whole[7:], EUNSUPPORTED, "version 9.0"),
    ]:
        refused(out / f"{name}.expect", "npy:rgb.npy", code, words, patches=patches_between(whole, data))
    for name, array, words in [
        ("objects", np.array([{}, None], dtype=object), "never opened"), ("scalar", np.array(3), "a single value"),
        ("fortran", np.asfortranarray(numbers((3, 4), "f4")), "Fortran order"), ("complex", np.zeros(2, "c8"), "<c8"),
        ("structures", np.zeros(2, [("a", "i4")]), "structures"), ("dates", np.zeros(2, "M8[s]"), "<M8[s]"),
    ]:
        np.save(out / f"{name}.npy", array, allow_pickle=True)
        refused(out / f"{name}.expect", f"npy:{name}.npy", EINVAL if name == "scalar" else EUNSUPPORTED, words)
    refused(out / "two_fields.expect", "npy:rgb.npy", EINVAL, "one field", "a,b")
    refused(out / "not_an_image.expect", "npy:floats.npy", EINVAL, "cannot be read as image", "a=image")
    refused(out / "missing.expect", "npy:no_such.npy", EIO, "No such file")


def npz():
    out = folder("npz")
    images, labels, words = numbers((4, 5, 6, 3), "u1"), numbers(4, "i8"), np.array(["a", "bc", "", "d"])
    rows = [[piece("images", images[i]), piece("labels", labels[i])] for i in range(4)]
    for name, save in [("stored", np.savez), ("deflated", np.savez_compressed)]:
        save(out / f"{name}.npz", images=images, labels=labels)
        expect(out / f"{name}.expect", f"npz:{name}.npz", rows)
        expect(out / f"{name}_turned.expect", f"npz:{name}.npz", [row[::-1] for row in rows], "labels, images")
    (out / "looks.expect").write_text((out / "stored.expect").read_text().replace("npz:", "auto:"))
    for part, types in ("a", NUMBER_TYPES[::2]), ("b", NUMBER_TYPES[1::2]):
        for shape in (3,), (2, 3, 5):
            name = f"types_{part}{len(shape)}"
            arrays = {dtype.replace("<", "le_").replace(">", "be_").replace("?", "bool"): numbers(shape, dtype)
                      for dtype in types}
            np.savez(out / f"{name}.npz", **arrays)
            expect(out / f"{name}.expect", f"npz:{name}.npz",
                   [[piece(k, a[i]) for k, a in arrays.items()] for i in range(shape[0])])
    np.savez(out / "words.npz", words=words, objects=np.array([None] * 4, dtype=object))
    expect(out / "words.expect", "npz:words.npz", [[piece("words", str(w))] for w in words], "words")
    refused(out / "objects.expect", "npz:words.npz", EUNSUPPORTED, "never opened")
    refused(out / "no_such_field.expect", "npz:stored.npz", EINVAL, "no array is called masks", "images,masks")
    np.savez(out / "uneven.npz", a=np.zeros(3), b=np.zeros(4))
    refused(out / "uneven.expect", "npz:uneven.npz", EINVAL, "b: has 4 rows, but a has 3")
    deflated = bytearray((out / "deflated.npz").read_bytes())
    deflated[60] ^= 255
    refused(out / "damaged.expect", "npz:deflated.npz", ECORRUPT, "images: its deflated",
            patches=patches_between((out / "deflated.npz").read_bytes(), deflated))
    with zipfile.ZipFile(out / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", b"\x93NUMPY")
    bomb = bytearray((out / "bomb.npz").read_bytes())
    at = bomb.index(b"PK\x01\x02")
    bomb[at + 24:at + 28] = struct.pack("<I", 3 << 30)
    (out / "bomb.npz").write_bytes(bomb)
    refused(out / "bomb.expect", "npz:bomb.npz", ECORRUPT, "3221225472 bytes cannot have become")


def image_folder_order(names):
    """What os.walk, sorted, makes of these paths, and the classes: as torchvision does."""
    classes = sorted({name.split("/")[0] for name in names if "/" in name})
    listing = {}
    for name in names:
        if "/" in name:
            where, base = name.rsplit("/", 1)
            listing.setdefault((name.split("/")[0], where), []).append(base)
    order = [f"{where}/{base}" for (_, where), bases in sorted(listing.items()) for base in sorted(bases)]
    return order, classes


def zips():
    out = folder("zip")

    def check(name, root="", uri=None, fields="-", flat=False):
        with zipfile.ZipFile(out / f"{name}.zip") as archive:
            names = [n[len(root):] for n in archive.namelist() if n.startswith(root) and n.endswith((".jpg", ".JPG"))]
            order, classes = (sorted(names), []) if flat else image_folder_order(names)
            samples = []
            for inner in order:
                parts = {"image": piece("image", archive.read(root + inner), "image"),
                         "label": piece("label", 0 if flat else classes.index(inner.split("/")[0]), "int"),
                         "name": piece("name", root + inner)}
                samples.append([parts[f] for f in ("image,label" if fields == "-" else fields).split(",")])
        expect(out / f"{uri or name}.expect", f"zip:{name}.zip", samples, fields, classes)

    def write(name, members, method=zipfile.ZIP_STORED, **options):
        with zipfile.ZipFile(out / f"{name}.zip", "w", method, **options) as archive:
            for inner, data in members:
                archive.writestr(zipfile.ZipInfo(inner, (2026, 1, 1, 0, 0, 0)), data, method)

    members = [(f"{c}/{i}.jpg", jpeg(f"{c}{i}")) for c in ("dog", "cat", "a b") for i in (2, 10, 1)]
    nested = members + [("cat/", b""), ("cat/a/x.jpg", jpeg(1)), ("cat/a b.jpg", jpeg(2)), ("cat/a!/y.JPG", jpeg(3)),
                        ("readme.txt", b"words"), ("a/b/c/z.jpg", jpeg(4)), ("cat/größer.jpg", jpeg(5))]
    write("stored", nested)
    check("stored")
    check("stored", uri="stored_names", fields="name,label,image")
    write("deflated", nested, zipfile.ZIP_DEFLATED)
    check("deflated")
    write("rooted", [(f"train/{n}", d) for n, d in members] + [("LICENSE", b"x")])
    check("rooted", "train/")
    write("flat", [(f"{i}.jpg", jpeg(i)) for i in (3, 20, 1)])
    check("flat", flat=True)
    write("flat_below", [(f"a/b/{i}.jpg", jpeg(i)) for i in (3, 20, 1)])
    check("flat_below", "a/b/", flat=True, fields="image,label")

    # Bytes in front (a self-extracting archive), a comment behind, data descriptors, zip64.
    plain = (out / "rooted.zip").read_bytes()
    (out / "prepended.zip").write_bytes(b"#!/bin/sh\n" * 20 + plain)
    check("prepended", "train/")
    with zipfile.ZipFile(out / "commented.zip", "w") as archive:
        archive.comment = b"a comment of some length " * 40
        for inner, data in members:
            archive.writestr(inner, data)
    check("commented")

    class Unseekable(io.RawIOBase):
        def __init__(self, path):
            self.file = open(path, "wb")

        def writable(self):
            return True

        def write(self, data):
            return self.file.write(data)

    stream = Unseekable(out / "streamed.zip")
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for inner, data in members:
            with archive.open(zipfile.ZipInfo(inner), "w", force_zip64=True) as member:
                member.write(data)
    stream.file.close()
    check("streamed")
    big = bytearray(plain)
    at = big.rindex(b"PK\x05\x06")
    entries, size, start = struct.unpack_from("<HII", big, at + 10)
    end64 = struct.pack("<IQHHIIQQQQ", 0x06064b50, 44, 45, 45, 0, 0, entries, entries, size, start)
    locator = struct.pack("<IIQI", 0x07064b50, 0, at, 1)
    end = struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, 0xffff, 0xffff, 0xffffffff, 0xffffffff, 0)
    (out / "zip64.zip").write_bytes(big[:at] + end64 + locator + end)
    check("zip64", "train/")
    entry = plain.index(b"PK\x01\x02")
    with zipfile.ZipFile(out / "traversal.zip", "w") as archive:
        for inner, data in [("../../etc/a.jpg", jpeg(1)), ("../../etc/../b.jpg", jpeg(2)), ("/abs/c.jpg", jpeg(3))]:
            archive.writestr(inner, data)
    order, classes = image_folder_order(["../../etc/a.jpg", "../../etc/../b.jpg", "/abs/c.jpg"])
    with zipfile.ZipFile(out / "traversal.zip") as archive:
        expect(out / "traversal.expect", "zip:traversal.zip", [
            [piece("image", archive.read(n), "image"), piece("label", classes.index(n.split("/")[0]), "int")]
            for n in order], classes=classes)

    def spoil(name, code, words, change, base=plain):
        data = bytearray(base)
        changed = change(data)
        data = data if changed is None else changed
        refused(out / f"{name}.expect", "zip:rooted.zip", code, words, patches=patches_between(base, data))

    def put(offset, form, value):
        return lambda data: struct.pack_into(form, data, offset, value)

    second = plain.index(b"PK\x01\x02", entry + 4)
    last = plain.rindex(b"PK\x05\x06")
    spoil("zero_bytes", ECORRUPT, "too short", lambda d: b"")
    spoil("cut", ECORRUPT, "no zip archive", lambda d: d[:-30])
    spoil("encrypted", EUNSUPPORTED, "is encrypted", put(entry + 8, "<H", 1))
    spoil("outside", ECORRUPT, "lies outside", put(entry + 42, "<I", 1 << 30))
    spoil("lying_size", ECORRUPT, "overlaps what follows", put(entry + 20, "<I", 5000))
    spoil("overlapping", ECORRUPT, "overlaps what follows",
          put(second + 42, "<I", struct.unpack_from("<I", plain, entry + 42)[0]))
    spoil("many_members", ECORRUPT, "more members than", put(last + 10, "<H", 60000))
    spoil("directory_outside", ECORRUPT, "directory lies outside", put(last + 16, "<I", 1 << 30))
    spoil("bad_entry", ECORRUPT, "damaged at member 1", put(second, "<I", 0))
    def one_bad(name, code, words, change):
        data = bytearray(plain)
        change(data)
        with zipfile.ZipFile(out / "rooted.zip") as archive:
            order, _ = image_folder_order([n[6:] for n in archive.namelist() if n.startswith("train/")])
            bad = order.index(archive.namelist()[0][6:])
        damaged(out / f"{name}.expect", out / "rooted.expect", plain, data, {bad: (code, words)})

    def flip(offset):
        def change(data):
            data[offset] ^= 255
        return change

    one_bad("flipped", ECORRUPT, "checksum is wrong", flip(100))
    one_bad("no_local_header", ECORRUPT, "not where the archive's directory says", flip(0))
    one_bad("long_local_name", ECORRUPT, "not where the archive's directory says", put(26, "<H", 60000))
    one_bad("method", EUNSUPPORTED, "method 93", put(entry + 10, "<H", 93))
    one_bad("stored_larger", ECORRUPT, "cannot have become", put(entry + 24, "<I", 5000))
    refused(out / "fields.expect", "zip:rooted.zip", EINVAL, "mask", "image,mask")
    write("no_images", [("a.txt", b"x")])
    refused(out / "no_images.expect", "zip:no_images.zip", EINVAL, "no image in it")
    (out / "looks.expect").write_text((out / "flat.expect").read_text().replace("zip:", "auto:"))


def lmdbs():
    import lmdb
    out = folder("lmdb")

    def database(name, entries, subdir=True, size=1 << 20, lock=False, **options):
        env = lmdb.open(str(out / name), map_size=size, subdir=subdir, lock=lock, **options)
        with env.begin(write=True) as txn:
            for key, value in entries:
                txn.put(key, value)
        env.close()
        for extra in out.rglob("*lock*"):
            extra.unlink()

    def read(name, subdir=True):
        env = lmdb.open(str(out / name), readonly=True, lock=False, subdir=subdir)
        with env.begin() as txn:
            pairs = list(txn.cursor())
        env.close()
        return pairs

    entries = [(f"{i:08d}_{i}.jpg".encode(), jpeg(i)) for i in range(12)]
    database("images", entries + [(b"__len__", b"x"), (b"__keys__", b"y" * 100), (b"num-samples", b"12")])
    pairs = [(k, v) for k, v in read("images") if not k.startswith((b"__", b"num"))]
    expect(out / "images.expect", "lmdb:images", [[piece("image", v, "image"), piece("key", k.decode())]
                                                  for k, v in pairs])
    expect(out / "values.expect", "lmdb:images", [[piece("key", k.decode()), piece("value", v)] for k, v in pairs],
           "key,value")
    expect(out / "looks.expect", "auto:images", [[piece("key", k.decode())] for k, v in pairs], "key")
    many = [(struct.pack(">I", i * 7919 % 100003), bytes([i % 256]) * (i % 50)) for i in range(400)]
    many += [(b"large%d" % i, rng.bytes(4090 + 4096 * i)) for i in range(3)] + [(b"k" * 400, b"deep")]
    database("many.mdb", many, subdir=False)
    expect(out / "many.expect", "lmdb:many.mdb",
           [[piece("value", v), piece("key", k, "bytes")] for k, v in read("many.mdb", False)], "value,key=bytes")
    database("none", [])
    expect(out / "none.expect", "lmdb:none", [])
    pixels = numbers((5, 4, 6, 3), "u1")
    database("raw", [(b"%d" % i, p.tobytes()) for i, p in enumerate(pixels)])
    expect(out / "raw.expect", "lmdb:raw", [[piece("image", p)] for p in pixels], "image=u8[4x6x3]")
    expect(out / "raw_floats.expect", "lmdb:raw", [[piece("value", np.frombuffer(p.tobytes(), "<f4").reshape(9, 2))]
                                                   for p in pixels], "value=f32[9x2]")

    def saved(array):
        file = io.BytesIO()
        np.save(file, array)
        return file.getvalue()

    arrays = [numbers((2, 3), ">f4"), numbers(4, "u1"), numbers((1, 1, 1), "i8"), np.array(5.0)]
    database("npy", [(b"%d" % i, saved(a)) for i, a in enumerate(arrays)])
    expect(out / "npy.expect", "lmdb:npy", [[piece("value", a, "array")] for a in arrays], "value=array")

    def varint(value):
        value &= (1 << 64) - 1
        out = b""
        while value > 127:
            out += bytes([value & 127 | 128])
            value >>= 7
        return out + bytes([value])

    def datum(label, channels=None, height=None, width=None, data=b"", encoded=None):
        parts = [(b"\x08", channels), (b"\x10", height), (b"\x18", width)]
        head = b"".join(tag + varint(v) for tag, v in parts if v is not None)
        tail = b"\x28" + varint(label) + (b"\x38" + varint(encoded) if encoded is not None else b"")
        return head + b"\x22" + varint(len(data)) + data + tail

    datums, lines = [], []
    for i in range(6):
        label = [3, 0, -1, 999, 2**31 - 1, 7][i]
        if i % 2:
            data = jpeg(i)
            datums.append((b"%08d" % i, datum(label, 3, 7, 9, data, 1)))
            lines.append([piece("image", data, "image"), piece("label", label, "int")])
        else:
            planes = numbers((1 + i, 4, 5) if i < 4 else (3, 4, 5), "u1")
            datums.append((b"%08d" % i, datum(label, *planes.shape, planes.tobytes())))
            lines.append([piece("image", np.ascontiguousarray(planes.transpose(1, 2, 0))),
                          piece("label", label, "int")])
    database("datum", datums)
    expect(out / "datum.expect", "lmdb:datum", lines)
    refused(out / "no_label.expect", "lmdb:images", EINVAL, "no Datums", "image,label")
    refused(out / "no_field.expect", "lmdb:images", EINVAL, "mask", "image,mask")
    env = lmdb.open(str(out / "duplicates"), map_size=1 << 16, max_dbs=2, lock=False)
    named = env.open_db(b"named")
    with env.begin(write=True) as txn:
        txn.put(b"a", b"1")
        txn.put(b"x", b"2", db=named)
    env.close()
    (out / "duplicates").rename(out / "named")
    expect(out / "named.expect", "lmdb:named", [[piece("value", b"1")]], "value")

    whole = (out / "many.mdb").read_bytes()
    page = 4096

    def spoil(name, words, change, code=ECORRUPT):
        data = bytearray(whole)
        changed = change(data)
        data = data if changed is None else changed
        refused(out / f"{name}.expect", "lmdb:many.mdb", code, words, "value", patches_between(whole, data))

    heads = [struct.unpack_from("<Q", whole, page * i + 16 + 128)[0] for i in (0, 1)]
    head = page * (heads[1] > heads[0])
    root = struct.unpack_from("<Q", whole, head + 16 + 24 + 48 + 40)[0]
    child = struct.unpack_from("<H", whole, root * page + 16)[0] + root * page
    leaf = struct.unpack_from("<I", whole, child)[0]

    def both(offset, form, value):
        def change(data):
            for i in (0, 1):
                struct.pack_into(form, data, page * i + 16 + offset, value)
        return change

    def put(offset, form, value):
        return lambda data: struct.pack_into(form, data, offset, value)

    spoil("zero_bytes", "too short", lambda d: b"")
    spoil("cut", "cut short", lambda d: d[:-page])
    spoil("no_magic", "no LMDB", both(0, "<I", 7))
    spoil("version", "version 9", both(4, "<I", 9), EUNSUPPORTED)
    spoil("page_size", "0 bytes", both(24, "<I", 0))
    spoil("deep", "99 levels", both(24 + 48 + 6, "<H", 99))
    spoil("far_root", "outside of the file", both(24 + 48 + 40, "<Q", 1 << 40))
    spoil("cyclic", "no leaf", put(child, "<I", root))
    spoil("shared", "keys, where", put(struct.unpack_from("<H", whole, root * page + 18)[0] + root * page, "<I", leaf))
    spoil("bad_list", "list of nodes", put(leaf * page + 12, "<H", 65534))
    spoil("bad_node", "outside of it", put(leaf * page + 16, "<H", 4095))
    spoil("long_key", "outside of it", put(struct.unpack_from("<H", whole, leaf * page + 16)[0] + leaf * page + 6,
                                           "<H", 60000))
    spoil("long_value", "outside of it", put(struct.unpack_from("<H", whole, leaf * page + 16)[0] + leaf * page,
                                             "<I", 1 << 30))
    spoil("duplicates", "DUPSORT", both(24 + 48 + 4, "<H", 4), EUNSUPPORTED)


def hdf5s():
    import h5py
    out = folder("hdf5")

    def rows(file, names, kinds=()):
        lines = []
        for i in range(len(file[names[0]])):
            line = []
            for k, name in enumerate(names):
                value = file[name][i]
                if isinstance(value, np.bytes_) or isinstance(value, bytes) and not h5py.check_string_dtype(file[name].dtype):
                    value = bytes(value)
                elif isinstance(value, bytes):
                    value = value.decode()
                line.append(piece(name, value, dict(kinds).get(name)))
            lines.append(line)
        return lines

    def check(name, names, kinds=(), fields=None, uri=None, slow=()):
        with h5py.File(out / f"{name}.h5", "r") as file:
            expect(out / f"{uri or name}.expect", f"hdf5:{name}.h5", rows(file, names, kinds),
                   fields or ",".join(names), note=slowly(slow))

    def slowly(pairs):
        return "; ".join(f"{n}: read through the HDF5 library, one row at a time ({why})" for n, why in pairs)

    images, labels = numbers((7, 5, 6, 3), "u1"), numbers(7, "i8")
    wave = (np.arange(7 * 50).reshape(7, 50) // 9).astype("<i4")
    layouts = {
        "contiguous": {}, "chunk_row": {"chunks": (1, 5, 6, 3)}, "chunk_rows": {"chunks": (3, 5, 6, 3)},
        "chunk_parts": {"chunks": (2, 2, 4, 2)}, "chunk_large": {"chunks": (20, 7, 6, 3), "maxshape": (None, None, 6, 3)},
    }
    for libver, high in ("earliest", "v110"), ("v108", "v108"), ("v110", "v110"):
        with h5py.File(out / f"layouts_{libver}.h5", "w", libver=(libver, high)) as file:
            for name, options in layouts.items():
                file.create_dataset(name, data=images, **options)
            file.create_dataset("deflate", data=images, chunks=(1, 5, 6, 3), compression="gzip")
            file.create_dataset("shuffle_deflate", data=wave, chunks=(2, 30), compression="gzip", shuffle=True)
            file.create_dataset("shuffle", data=wave, chunks=(3, 50), shuffle=True)
            file.create_dataset("fixed", data=wave, chunks=(1, 7), compression="gzip")
            file.create_dataset("growing", data=wave, chunks=(2, 25), maxshape=(None, 50), compression="gzip")
            file.create_dataset("growing2", data=wave, chunks=(2, 25), maxshape=(None, None), compression="gzip")
            file.create_dataset("single", data=wave, chunks=(7, 50), compression="gzip")
            names = list(file)
        check(f"layouts_{libver}", names)
    with h5py.File(out / "user_block.h5", "w", userblock_size=512) as file:
        for name, options in layouts.items():
            file.create_dataset(name, data=images, **options)
        file.create_dataset("deflate", data=wave, chunks=(2, 30), compression="gzip", shuffle=True)
        names = list(file)
    check("user_block", names)
    for part, types in ("a", NUMBER_TYPES[::2]), ("b", NUMBER_TYPES[1::2]):
        with h5py.File(out / f"types_{part}.h5", "w") as file:
            for k, dtype in enumerate(types):
                name = dtype.replace("<", "le_").replace(">", "be_").replace("?", "bool")
                file.create_dataset(name, data=numbers((3,) if k % 2 else (3, 2, 4), dtype),
                                    **({"chunks": True, "shuffle": True, "compression": 4} if k % 3 == 0 else {}))
            names = list(file)
        check(f"types_{part}", names)
    with h5py.File(out / "odd.h5", "w", track_order=True) as file:
        file.create_dataset("fixed_text", data=np.array([b"one", b"", b"three"]))
        file.create_dataset("text", data=["eins", "", "gr\u00f6\u00dfer"], dtype=h5py.string_dtype())
        file.create_dataset("enumeration", data=np.array([2, 0, 1], "u2"),
                            dtype=h5py.enum_dtype({"a": 0, "b": 1, "c": 2}, basetype="u2"))
        file.create_dataset("sequences", (3,), dtype=h5py.vlen_dtype(np.dtype("<i4")))
        encoded = file.create_dataset("encoded", (3,), dtype=h5py.vlen_dtype(np.dtype("u1")))
        file.create_dataset("raw", data=np.array([b"\0ab", b"cd\0", b"\0\0\0"]).view("V3"))
        file.create_dataset("pairs", (3,), np.dtype(("<i2", (2,))))[...] = numbers((3, 2), "<i2")
        file.create_dataset("no_numbers", data=np.zeros((3, 0), "f4"))
        group = file.create_group("inner/most")
        group.create_dataset("labels", data=numbers(3, "u1"))
        for i in range(3):
            file["sequences"][i] = numbers(i, "<i4")
            encoded[i] = np.frombuffer(jpeg(i), "u1")
        file.create_dataset("never_written", (3, 4), "f4", chunks=(1, 4), fillvalue=2.5)
        file.create_dataset("never_written_whole", (3, 4), ">i2", fillvalue=-3)
        partly = file.create_dataset("partly_written", (3, 4), ">i4", chunks=(1, 2), fillvalue=7, compression="gzip")
        partly[1, 1] = 5
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        small = h5py.h5d.create(file.id, b"compact", h5py.h5t.STD_I32BE, h5py.h5s.create_simple((3, 2)), compact)
        small.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(6, dtype="i4").reshape(3, 2))
    with h5py.File(out / "odd.h5") as file:
        both = [[piece("encoded", bytes(file["encoded"][i]), "image"),
                 piece("text", file["text"][i].decode()),
                 piece("sequences", file["sequences"][i]),
                 piece("fixed_text", bytes(file["fixed_text"][i]), "text"),
                 piece("enumeration", file["enumeration"][i]),
                 piece("raw", file["raw"][i].tobytes(), "bytes"),
                 piece("pairs", file["pairs"][i]),
                 piece("no_numbers", file["no_numbers"][i]),
                 piece("inner/most/labels", file["inner/most/labels"][i]),
                 piece("never_written", file["never_written"][i]),
                 piece("never_written_whole", file["never_written_whole"][i]),
                 piece("partly_written", file["partly_written"][i]),
                 piece("compact", file["compact"][i])] for i in range(3)]
    expect(out / "odd.expect", "hdf5:odd.h5", both,
           "encoded=image,text,sequences,fixed_text,enumeration,raw,pairs,no_numbers,inner/most/labels,"
           "never_written,never_written_whole,partly_written,compact",
           note=slowly([("encoded", "sequences of any length"), ("text", "strings of any length"),
                        ("sequences", "sequences of any length")]))
    with h5py.File(out / "filters.h5", "w") as file:
        file.create_dataset("fletcher32", data=wave, chunks=(2, 30), fletcher32=True)
        file.create_dataset("fletcher32_odd", data=images[:, :, :, 0], chunks=(1, 3, 3), fletcher32=True)
        file.create_dataset("scaleoffset", data=wave, chunks=(2, 30), scaleoffset=0)
        file.create_dataset("images", data=images, chunks=(2, 5, 6, 3), compression="gzip", fletcher32=True)
        file.create_dataset("labels", data=labels)
        names = list(file)
    slow = [("scaleoffset", "the filter scaleoffset")]
    check("filters", names, slow=slow)
    check("filters", names, fields="-", uri="filters_all", slow=slow)
    with h5py.File(out / "lzf.h5", "w") as file:
        file.create_dataset("x", data=wave, chunks=(2, 30), compression="lzf")
        file.create_dataset("y", data=images, chunks=(2, 5, 6, 3), compression="lzf", fletcher32=True)
        file.create_dataset("z", data=wave * 7919, chunks=(3, 50), compression="lzf", shuffle=True)
        file.create_dataset("zeros", data=wave * 0, chunks=(3, 50), compression="lzf")
    check("lzf", ["x", "y", "z", "zeros"])
    with h5py.File(out / "many.h5", "w") as file:
        many = file.create_dataset("x", (600, 2), "u1", chunks=(1, 2), compression="gzip")
        for i in range(0, 600, 7):
            many[i] = (i % 256, i // 256)
    check("many", ["x"])
    (out / "looks.expect").write_text((out / "many.expect").read_text().replace("hdf5:", "auto:"))

    refused(out / "missing.expect", "hdf5:odd.h5", EIO, "no such data set", "masks")
    refused(out / "uneven.expect", "hdf5:layouts_earliest.h5", EIO, "no such data set", "deflate,x")
    refused(out / "group.expect", "hdf5:odd.h5", EIO, "no such data set", "inner")
    refused(out / "no_image.expect", "hdf5:odd.h5", EINVAL, "cannot be read as image", "pairs=image")
    with h5py.File(out / "refused.h5", "w") as file:
        file["compound"] = np.zeros(2, [("a", "i4")])
        file["scalar"] = 5
        file["complex"] = np.zeros(2, "c8")
        file["long"] = np.zeros(3)
    refused(out / "compound.expect", "hdf5:refused.h5", EUNSUPPORTED, "type is not supported", "compound")
    refused(out / "complex.expect", "hdf5:refused.h5", EUNSUPPORTED, "type is not supported", "complex")
    refused(out / "scalar.expect", "hdf5:refused.h5", EINVAL, "0 dimensions", "scalar")
    refused(out / "uneven.expect", "hdf5:refused.h5", EUNSUPPORTED, "type is not supported")
    whole = (out / "many.h5").read_bytes()
    refused(out / "zero_bytes.expect", "hdf5:many.h5", EIO, "cannot be opened as an HDF5 file",
            patches=patches_between(whole, b""))
    refused(out / "no_hdf5.expect", "hdf5:many.h5", EIO, "cannot be opened as an HDF5 file",
            patches=patches_between(whole, b"x" * 8 + whole[8:]))
    refused(out / "cut.expect", "hdf5:many.h5", EIO, "cannot be opened as an HDF5 file",
            patches=patches_between(whole, whole[:-10]))


def manifests():
    out = folder("manifest")
    files = {"a.jpg": jpeg("a"), "b c.jpg": jpeg("b"), "in/d,e.jpg": jpeg("d"), 'in/"q".jpg': jpeg("q")}
    for name, data in files.items():
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_bytes(data)
    table = [  # path, label, weight, words, boxes
        ("a.jpg", "dog", "0.5", "plain", "[1, 2]"), ("b c.jpg", "cat", "-1e3", "two\nlines, and a \"quote\"", "{}"),
        ("in/d,e.jpg", "dog", "7", "", '{"a": [1, {"b": null}]}'), ('in/"q".jpg', "gr\u00f6\u00dfer", "0", " blanks ", "3"),
    ]
    names = ["path", "label", "weight", "words", "boxes"]
    classes = sorted({row[1] for row in table})

    def lines(columns, kinds=()):
        result = []
        for row in table:
            values = dict(zip(names, row))
            made = {"path": piece("path", files[row[0]], "image"), "label": piece("label", classes.index(row[1]), "int"),
                    "weight": piece("weight", float(row[2]), "float"), "words": piece("words", row[3]),
                    "boxes": piece("boxes", values["boxes"], "json")}
            result.append([made[c] for c in columns])
        return result

    every = "path,label,weight,words,boxes=json"

    def write(name, text, columns=names, fields=every, scheme="csv", note=None):
        data = text if isinstance(text, bytes) else text.encode()
        (out / name).write_bytes(data)
        expect(out / f"{name}.expect", f"{scheme}:{name}", lines(columns), fields,
               classes if "label" in columns else ())

    def as_csv(delimiter=",", end="\r\n", quoting=csv.QUOTE_MINIMAL):
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=quoting)
        writer.writerows([names] + table)
        return text.getvalue()

    write("crlf.csv", as_csv())
    write("lf.csv", as_csv(end="\n"), scheme="auto")
    write("quoted.csv", as_csv(quoting=csv.QUOTE_ALL).rstrip(), scheme="auto")
    write("mark.csv", b"\xef\xbb\xbf" + as_csv().encode())
    write("blank_lines.csv", as_csv(end="\n").replace("\nb c", "\n\n\nb c") + "\n\n")
    write("tabs.tsv", as_csv("\t"), scheme="auto")
    write("turned.csv", as_csv(), ["words", "path"], "words,path=image")
    write("usual.csv", as_csv(), ["path", "label"], "-", "auto")
    write("packed.csv.gz", gzip.compress(as_csv().encode(), mtime=0), scheme="auto")
    objects = [dict(zip(names, row)) for row in table]
    for row in objects:
        row["weight"] = float(row["weight"])
        row["boxes"] = json.loads(row["boxes"])
        row["more"] = {"nested": [True, None, "\u20ac"], "deep": [[[]]]}
    write("lines.jsonl", "\n".join(json.dumps(row) for row in objects), scheme="auto")
    write("unicode.jsonl", "\n\n".join(json.dumps(row, ensure_ascii=False) for row in objects) + "\r\n", scheme="jsonl")
    whole = [dict(row, label=i * 5 - 1, ok=i % 2 == 0) for i, row in enumerate(objects)]
    (out / "whole.jsonl").write_text("\n".join(json.dumps(row) for row in whole))
    expect(out / "whole.expect", "jsonl:whole.jsonl",
           [[piece("path", files[r["path"]], "image"), piece("label", r["label"], "int"), piece("ok", int(r["ok"]), "int")]
            for r in whole], "path,label,ok")

    def bad(name, text, words, code=ECORRUPT, fields="path,label"):
        (out / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        refused(out / f"{name}.expect", f"{name.split('.')[-1]}:{name}", code, words, fields)

    def partly(name, text, errors, fields="path,label", kind="int"):
        """Damaged rows are bad samples; all others are a.jpg with 1."""
        bad(name, text, "", fields=fields)
        row = [piece("path", files["a.jpg"], "image"), piece("label", 1, kind)]
        expect(out / f"{name}.expect", f"{name.split('.')[-1]}:{name}",
               [[f"error {ECORRUPT} {words}"] if words else row for words in errors], fields)

    head = "path,label\n"
    bad("empty.csv", "", "is empty", EINVAL)
    partly("short_row.csv", head + "a.jpg,1\n\na.jpg\na.jpg,1\n", [None, "line 4: 1 words, where the first line has 2", None])
    partly("long_row.csv", head + '"a.jpg",1\na.jpg,1,2\n', [None, "line 3: 3 words"])
    partly("open_quote.csv", head + 'a.jpg,1\n"a.jpg,1\na.jpg,1\n', [None, "line 3: a quote is opened", None])
    partly("open_later.csv", head + 'a.jpg,1\n"a\n""b\na.jpg,1\n',
           [None, "line 3: a quote is opened", "line 4: something stands between", None])
    partly("behind_lines.csv", head + '"a\nb"x,1\na.jpg,1\n', ["line 2: something stands between", None])
    bad("open_head.csv", '"path,label\na.jpg,1\n', "line 1: a quote is opened")
    bad("behind_quote.csv", head + '"a".jpg,1\n', "line 2: something stands between")
    bad("zero.csv", head + "a\0.jpg,1\n", "line 2: a zero byte")
    partly("zero_row.csv", head + "a\0.jpg,1\na.jpg,1\n", ["line 2: a zero byte", None])
    partly("no_path.csv", head + "a.jpg,1\n,1\n", [None, "line 3: nothing stands for path"])
    bad("twins.csv", "path,label,label\na,1,1\n", "two columns are called label")
    bad("no_column.csv", "path,x\na,1\n", "no column is called label", EINVAL)
    partly("no_number.csv", head + "a.jpg,1\na.jpg,one\n\"a\n", [None, "line 3: label is one, no number", "line 4: a quote"],
           "path,label=float", "float")
    bad("no_numbers.csv", head + "a.jpg,one\n\"a\n", "line 2: label is one, no number", fields="path,label=float")
    bad("no_usual.csv", "x,y\n1,2\n", "name those wanted in fields", EINVAL, "-")
    good = '{"path": "a.jpg", "label": 1}\n'
    partly("broken.jsonl", good + '{"path": "a.jpg", "label": }\n' + good, [None, "line 2: no JSON object", None])
    partly("broken_first.jsonl", "\n{\n}}\n" + good, ["line 2: no JSON object", "line 3: no JSON object", None], "-")
    bad("half_pair.jsonl", '{"path": "\\ud800", "label": 1}\n', "line 1: no JSON object")
    bad("zero_escape.jsonl", '{"path": "a\\u0000", "label": 1}\n', "line 1: no JSON object")
    bad("deep.jsonl", '{"path": "a.jpg", "label": 1, "x": ' + "[" * 5000 + "]" * 5000 + "}\n", "line 1: no JSON object")
    partly("missing.jsonl", good + '\n{"path": "a.jpg", "label": null}\n', [None, "line 3: nothing stands for label"])
    bad("list.jsonl", '["a.jpg", 1]\n', "line 1: no JSON object")


FORMATS = {"npy": npy, "npz": npz, "zip": zips, "lmdb": lmdbs, "hdf5": hdf5s, "manifest": manifests}

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for wanted in sys.argv[1:] or FORMATS:
        FORMATS[wanted]()
        collect_expectations(DATA / wanted)
