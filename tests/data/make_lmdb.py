"""LMDB databases, written by lmdb."""

import io
import pickle
import struct
import zlib

import numpy as np
from expected import (
    ECORRUPT, EINVAL, EUNSUPPORTED, expect, folder, jpeg, numbers, patches_between, piece, refused, rng,
)


def recipes(out, database):
    """The ways in which others store an image and what belongs to it."""
    words = ["one", "", "gr\u00f6\u00dfer", "17", "x" * 3000]
    texts = [(b"image-%09d" % (i + 1), jpeg(i)) for i in range(5)] + \
            [(b"label-%09d" % (i + 1), word.encode()) for i, word in enumerate(words)]
    note = "keys that are not samples: num-samples"
    database("words", [*texts, (b"num-samples", b"5")])
    lines = [[piece("image", jpeg(i), "image"), piece("label", word)] for i, word in enumerate(words)]
    expect(out / "words.expect", "lmdb:words", lines, note=note)
    numbers_only = [[f"error {ECORRUPT} is not an integer"] for _ in words]
    numbers_only[3] = ["key text 15 %08x" % zlib.crc32(b"image-000000004"), "label int 17"]
    expect(out / "words_int.expect", "lmdb:words", numbers_only, "key,label=int", note=note)
    database("words_missing", [*texts[:6], *texts[7:], (b"num-samples", b"5")])  # label-000000002
    lines[1] = [f"error {ECORRUPT} has no key label-000000002"]
    expect(out / "words_missing.expect", "lmdb:words_missing", lines, note=note)

    def packed(image, label):
        return b"\x92\xc5" + struct.pack(">H", len(image)) + image + label

    labels = {b"\x07": 7, b"\xff": -1, b"\xcd\x03\xe7": 999, b"\xd2\xff\xff\xff\xfe": -2,
              b"\xcf" + b"\x7f" + b"\xff" * 7: 2**63 - 1}
    entries = [(b"%d" % i, packed(jpeg(i), label)) for i, label in enumerate(labels)]
    entries += [(b"8", packed(jpeg(8), b"\xcf" + b"\xff" * 8)), (b"9", b"\x93\x01\x02\x03")]
    database("msgpack", entries)
    lines = [[piece("image", jpeg(i), "image"), piece("label", label, "int")] for i, label in enumerate(labels.values())]
    expect(out / "msgpack.expect", "lmdb:msgpack", lines + [[f"error {ECORRUPT} not an image and a number"]] * 2)
    other = b"\x83\xa5image\xc4\x03abc\xa5label\x05\xa4name\xc0"
    database("msgpack_map", [(b"a", other)])
    refused(out / "msgpack_map.expect", "lmdb:msgpack_map", EUNSUPPORTED, "are MessagePack")
    expect(out / "msgpack_bytes.expect", "lmdb:msgpack_map", [[piece("value", other), piece("key", "a")]], "value,key")
    database("pickle", [(b"a", pickle.dumps((jpeg(0), 5)))])
    refused(out / "pickle.expect", "lmdb:pickle", EUNSUPPORTED, "pickles, which are never loaded")
    expect(out / "pickle_bytes.expect", "lmdb:pickle", [[piece("key", "a")]], "key")
    names = [b"__x__", b"__len__", b"length", b"lengths", b"num-samples"]
    database("no_metadata", [(name, jpeg(i)) for i, name in enumerate(names)])
    expect(out / "no_metadata.expect", "lmdb:no_metadata",
           [[piece("image", jpeg(names.index(name)), "image"), piece("key", name.decode())] for name in sorted(names)])


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
    beside = "keys that are not samples: __keys__, __len__, num-samples"
    pairs = [(k, v) for k, v in read("images") if not k.startswith((b"__", b"num"))]
    expect(out / "images.expect", "lmdb:images", [[piece("image", v, "image"), piece("key", k.decode())]
                                                  for k, v in pairs], note=beside)
    expect(out / "values.expect", "lmdb:images", [[piece("key", k.decode()), piece("value", v)] for k, v in pairs],
           "key,value", note=beside)
    expect(out / "looks.expect", "auto:images", [[piece("key", k.decode())] for k, v in pairs], "key", note=beside)
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
            pixels = planes.transpose(1, 2, 0)  # three planes are blue, green and red
            lines.append([piece("image", np.ascontiguousarray(pixels[:, :, ::-1] if len(planes) == 3 else pixels)),
                          piece("label", label, "int")])
    database("datum", datums)
    expect(out / "datum.expect", "lmdb:datum", lines)
    refused(out / "no_label.expect", "lmdb:images", EINVAL, "not Datums", "image,label")
    refused(out / "no_field.expect", "lmdb:images", EINVAL, "mask", "image,mask")
    env = lmdb.open(str(out / "duplicates"), map_size=1 << 16, max_dbs=2, lock=False)
    named = env.open_db(b"named")
    with env.begin(write=True) as txn:
        txn.put(b"a", b"1")
        txn.put(b"x", b"2", db=named)
    env.close()
    (out / "duplicates").rename(out / "named")
    expect(out / "named.expect", "lmdb:named", [[piece("value", b"1")]], "value")

    env = lmdb.open(str(out / "only_named"), map_size=1 << 16, max_dbs=3, lock=False)
    for name in b"train", b"val":
        with env.begin(write=True) as txn:
            txn.put(b"x", jpeg(1), db=env.open_db(name, txn=txn))
    env.close()
    refused(out / "only_named.expect", "lmdb:only_named", EINVAL, "choose one with db=: train, val")
    recipes(out, database)

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
    spoil("cut", "truncated", lambda d: d[:-page])
    spoil("no_magic", "not an LMDB", both(0, "<I", 7))
    spoil("version", "version 9", both(4, "<I", 9), EUNSUPPORTED)
    spoil("page_size", "0 bytes", both(24, "<I", 0))
    spoil("deep", "99 levels", both(24 + 48 + 6, "<H", 99))
    spoil("far_root", "out of range", both(24 + 48 + 40, "<Q", 1 << 40))
    spoil("cyclic", "not a leaf page", put(child, "<I", root))
    spoil("shared", "keys, but", put(struct.unpack_from("<H", whole, root * page + 18)[0] + root * page, "<I", leaf))
    spoil("bad_list", "list of nodes", put(leaf * page + 12, "<H", 65534))
    spoil("bad_node", "past the page", put(leaf * page + 16, "<H", 4095))
    spoil("long_key", "past the page", put(struct.unpack_from("<H", whole, leaf * page + 16)[0] + leaf * page + 6,
                                           "<H", 60000))
    spoil("long_value", "past the page", put(struct.unpack_from("<H", whole, leaf * page + 16)[0] + leaf * page,
                                             "<I", 1 << 30))
    spoil("duplicates", "DUPSORT", both(24 + 48 + 4, "<H", 4), EUNSUPPORTED)
