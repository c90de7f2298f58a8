"""Zip files, written by zipfile."""

import io
import struct
import zipfile

from expected import ECORRUPT, EINVAL, EUNSUPPORTED, damaged, expect, folder, jpeg, patches_between, piece, refused


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
    check("flat_below", "a/", fields="image,label")

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
    spoil("cut", ECORRUPT, "not a zip archive", lambda d: d[:-30])
    spoil("many_members", ECORRUPT, "more members than", put(last + 10, "<H", 60000))
    spoil("directory_outside", ECORRUPT, "directory is outside", put(last + 16, "<I", 1 << 30))

    def some_bad(name, change, bad):
        data = bytearray(plain)
        change(data)
        with zipfile.ZipFile(out / "rooted.zip") as archive:
            order, _ = image_folder_order([n[6:] for n in archive.namelist() if n.startswith("train/")])
            bad = {order.index(archive.namelist()[member][6:]): why for member, why in bad.items()}
        damaged(out / f"{name}.expect", out / "rooted.expect", plain, data, bad)

    def one_bad(name, code, words, change, member=0):
        some_bad(name, change, {member: (code, words)})

    def flip(offset):
        def change(data):
            data[offset] ^= 255
        return change

    one_bad("encrypted", EUNSUPPORTED, "is encrypted", put(entry + 8, "<H", 1))
    one_bad("outside", ECORRUPT, "is outside", put(entry + 42, "<I", 1 << 30))
    one_bad("lying_size", ECORRUPT, "overlaps what follows", put(entry + 20, "<I", 5000))
    some_bad("overlapping", put(second + 42, "<I", struct.unpack_from("<I", plain, entry + 42)[0]),
             {0: (ECORRUPT, "overlaps what follows"), 1: (ECORRUPT, "checksum is wrong")})
    one_bad("elsewhere", ECORRUPT, "not where the archive's directory says", put(second + 42, "<I", 100), member=1)
    one_bad("bad_entry", ECORRUPT, "entry in the archive's directory is damaged", put(second, "<I", 0), member=1)
    one_bad("bad_name_length", ECORRUPT, "entry in the archive's directory is damaged", put(second + 28, "<H", 60000),
            member=1)
    one_bad("flipped", ECORRUPT, "checksum is wrong", flip(100))
    one_bad("no_local_header", ECORRUPT, "not where the archive's directory says", flip(0))
    one_bad("long_local_name", ECORRUPT, "not where the archive's directory says", put(26, "<H", 60000))
    one_bad("method", EUNSUPPORTED, "method 93", put(entry + 10, "<H", 93))
    one_bad("stored_larger", ECORRUPT, "cannot come from", put(entry + 24, "<I", 5000))
    refused(out / "fields.expect", "zip:rooted.zip", EINVAL, "mask", "image,mask")
    write("no_images", [("a.txt", b"x")])
    refused(out / "no_images.expect", "zip:no_images.zip", EINVAL, "contains no images")
    (out / "looks.expect").write_text((out / "flat.expect").read_text().replace("zip:", "auto:"))
