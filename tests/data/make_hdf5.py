"""HDF5 files, written by h5py."""

import struct

import numpy as np
from expected import (
    ECORRUPT, EINVAL, EIO, EUNSUPPORTED, NUMBER_TYPES, damaged, expect, folder, jpeg, numbers, patches_between, piece,
    refused,
)


def variables(out):
    """Strings and sequences of any length, whose bytes lie in the global heap."""
    import h5py
    words = ["", "eins", "gr\u00f6\u00dfer", "a\nb", "x" * 5000, "six", "", "eight"]

    def fill(file, name, dtype, values, **options):
        made = file.create_dataset(name, (len(values),), dtype=dtype, **options)
        for i, value in enumerate(values):
            made[i] = value

    def expectations(file, name):
        sets = [name for name in file if isinstance(file[name], h5py.Dataset)]
        lines = [[piece(field, bytes(value), "image") if field.startswith("image") else
                  piece(field, np.arange(i * 3, dtype="i4")) if field == "integers" else  # h5py forgets the byte order
                  piece(field, value.decode() if isinstance(value, bytes) else value)
                  for field in sets for value in [file[field][i]]] for i in range(len(words))]
        expect(out / f"{name}.expect", f"hdf5:{name}.h5", lines)

    for name, options in {"variable": {}, "variable_v110": {"libver": ("v110", "v110")},
                          "variable_block": {"userblock_size": 512}}.items():
        with h5py.File(out / f"{name}.h5", "w", **options) as file:
            images = [np.frombuffer(jpeg(i), "u1") for i in range(len(words))]
            images[0] = images[0][:0]
            fill(file, "image", h5py.vlen_dtype(np.dtype("u1")), images)
            fill(file, "image_chunks", h5py.vlen_dtype(np.dtype("u1")), images, chunks=(3,), maxshape=(None,))
            fill(file, "bytes", h5py.vlen_dtype(np.dtype("u1")), [np.frombuffer(w.encode(), "u1") for w in words])
            file["a type with a name"] = h5py.string_dtype()
            fill(file, "text", file["a type with a name"], words, chunks=(2,), compression="gzip", shuffle=True)
            fill(file, "integers", h5py.vlen_dtype(np.dtype(">i4")), [np.arange(i * 3) for i in range(len(words))],
                 chunks=(8,), shuffle=True)
            fill(file, "reals", h5py.vlen_dtype(np.dtype("<f8")), [np.arange(i) / 3 for i in range(len(words))],
                 chunks=(5,), compression="lzf")
            partly = file.create_dataset("partly", (len(words),), dtype=h5py.string_dtype(), chunks=(2,), fillvalue="none")
            partly[3] = "three"
            file.create_dataset("never", (len(words),), dtype=h5py.string_dtype())
            compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            compact.set_layout(h5py.h5d.COMPACT)
            h5py.h5d.create(file.id, b"small", h5py.h5t.py_create(h5py.string_dtype(), logical=True),
                            h5py.h5s.create_simple((len(words),)), compact)
            file["small"][...] = words[::-1]
            file["image"][5] = images[3]  # its first object is freed
            expectations(file, name)  # HDF5 cannot read a fill value of this kind from a file it may not write
    damaged_heaps(out)


def damaged_heaps(out):
    """What references and the global heap can say that is not so: one sample is bad each time, and says why."""
    good = (out / "variable.h5").read_bytes()
    picture = good.index(jpeg(2))
    heap = good.rindex(b"GCOL", 0, picture)
    number = struct.unpack("<H", good[picture - 16:picture - 14])[0]
    reference = good.index(struct.pack("<IQI", len(jpeg(2)), heap, number))
    cases = {
        "length": (reference, struct.pack("<I", 100 * len(jpeg(2))), "elements of 1 bytes, but object"),
        "shorter": (reference, struct.pack("<I", len(jpeg(2)) - 1), "elements of 1 bytes, but object"),
        "elsewhere": (reference + 4, struct.pack("<Q", 1 << 40), "past the end of the file"),
        "wrapped": (reference + 4, struct.pack("<Q", 2**64 - 8), "past the end of the file"),
        "no_heap": (reference + 4, struct.pack("<Q", heap + 8), "not a collection of version 1"),
        "no_address": (reference + 4, bytes(8), "its reference is damaged"),
        "no_object": (reference + 12, struct.pack("<I", 999), "has no object 999"),
        "object_0": (reference + 12, bytes(4), "its reference is damaged"),
        "object_size": (picture - 8, struct.pack("<Q", len(jpeg(2)) + 1), "elements of 1 bytes, but object"),
    }
    for name, (at, patch, words) in cases.items():
        bad = good[:at] + patch + good[at + len(patch):]
        damaged(out / f"heap_{name}.expect", out / "variable.expect", good, bad, {2: (ECORRUPT, words)})


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
           "never_written,never_written_whole,partly_written,compact")
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

    refused(out / "missing.expect", "hdf5:odd.h5", EINVAL, "; the root contains ", "masks")
    refused(out / "uneven.expect", "hdf5:layouts_earliest.h5", EINVAL, "; the root contains ", "deflate,x")
    refused(out / "group.expect", "hdf5:odd.h5", EINVAL, "; the root contains ", "inner")
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
    refused(out / "zero_bytes.expect", "hdf5:many.h5", EIO, "cannot open it as an HDF5 file",
            patches=patches_between(whole, b""))
    refused(out / "no_hdf5.expect", "hdf5:many.h5", EIO, "cannot open it as an HDF5 file",
            patches=patches_between(whole, b"x" * 8 + whole[8:]))
    refused(out / "cut.expect", "hdf5:many.h5", EIO, "cannot open it as an HDF5 file",
            patches=patches_between(whole, whole[:-10]))
    variables(out)
