"""What tests/source/test_formats.c is to find in the files: its lines, and what the files are made of."""

import io
import pathlib
import random
import shutil
import struct
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


EINVAL, EIO, ECORRUPT, EUNSUPPORTED, ELIMIT, ENOTFOUND = -1, -3, -4, -5, -6, -10
NUMBER_TYPES = ["u1", "<u2", ">u2", "<u4", ">u4", "<u8", ">u8", "i1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8",
                "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "?"]


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
