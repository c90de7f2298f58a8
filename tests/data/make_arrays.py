"""npy and npz files, written by NumPy."""

import struct
import subprocess
import zipfile

import numpy as np
from expected import (
    ECORRUPT, EINVAL, ENOTFOUND, EUNSUPPORTED, NUMBER_TYPES, expect, folder, numbers, patches_between, piece, refused,
)


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
        ("cut_header", whole[:60], ECORRUPT, "states a header"), ("cut_data", whole[:-1], ECORRUPT, "only 179 follow"),
        ("lying_header", whole.replace(b"(3, 5", b"(9, 5"), ECORRUPT, "states 540 bytes"),
        ("huge_shape", whole.replace(b"'shape': (3, 5, 4, 3), }" + b" " * 10, b"'shape': (9999999999, 5, 999), }  "),
         ECORRUPT, "bytes of elements"),
        ("wrong_key", whole.replace(b"descr", b"descX"), ECORRUPT, "invalid npy header"),
        ("version9", whole[:6] + b"\x09" + whole[7:], EUNSUPPORTED, "version 9.0"),
    ]:
        refused(out / f"{name}.expect", "npy:rgb.npy", code, words, patches=patches_between(whole, data))
    for name, array, words in [
        ("objects", np.array([{}, None], dtype=object), "never loaded"), ("scalar", np.array(3), "a single value"),
        ("fortran", np.asfortranarray(numbers((3, 4), "f4")), "Fortran order"), ("complex", np.zeros(2, "c8"), "<c8"),
        ("structured arrays", np.zeros(2, [("a", "i4")]), "structured arrays"), ("dates", np.zeros(2, "M8[s]"), "<M8[s]"),
    ]:
        np.save(out / f"{name}.npy", array, allow_pickle=True)
        refused(out / f"{name}.expect", f"npy:{name}.npy", EINVAL if name == "scalar" else EUNSUPPORTED, words)
    refused(out / "two_fields.expect", "npy:rgb.npy", EINVAL, "one field", "a,b")
    refused(out / "not_an_image.expect", "npy:floats.npy", EINVAL, "cannot be read as image", "a=image")
    refused(out / "missing.expect", "npy:no_such.npy", ENOTFOUND, "No such file")


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
    refused(out / "objects.expect", "npz:words.npz", EUNSUPPORTED, "never loaded")
    refused(out / "no_such_field.expect", "npz:stored.npz", EINVAL, "there is no array masks", "images,masks")
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
    refused(out / "bomb.expect", "npz:bomb.npz", ECORRUPT, "3221225472 bytes, which cannot come from")
