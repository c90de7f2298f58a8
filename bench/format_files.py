# SPDX-License-Identifier: Apache-2.0
"""The files that bench/formats.py reads, one maker for each format."""

from __future__ import annotations

import dataclasses
import functools
import io
import random
import struct
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

BATCH = 32
SHARDS = 4


class Absent(Exception):
    """Why a reader cannot take part, in a sentence."""


@dataclass(frozen=True)
class Job:
    folder: Path
    samples: int
    size: int
    workers: int
    seconds: float
    decode: bool  # payloads are images, and all decode them


def payload(job, i):
    return jpegs(job)[i % 64] if job.decode else random.Random(i).randbytes(job.size)


@functools.lru_cache(maxsize=1)
def jpegs(job):
    """64 images of 256 x 256."""
    try:
        from PIL import Image
    except ImportError as why:
        raise Absent(str(why)) from why
    out = []
    for pixels in pictures(dataclasses.replace(job, samples=64, size=256 * 256 * 3)):
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG", quality=90)
        out.append(file.getvalue())
    return out


def pictures(job):
    """Pixels that pack about as photographs do: smooth, with a little noise."""
    try:
        import numpy
    except ImportError as why:
        raise Absent(str(why)) from why
    side = max(8, int((job.size / 3) ** 0.5))
    chance = numpy.random.default_rng(0)
    x = numpy.linspace(0, 6, side)
    out = numpy.empty((job.samples, side, side, 3), "u1")
    noise = chance.integers(-1, 2, (side + 64, side, 3))
    for i in range(job.samples):
        a, b, c = chance.uniform(0.3, 2, 3)
        wave = numpy.sin(a * x)[:, None, None] * numpy.cos(b * x)[None, :, None] * numpy.array([1, c / 2, 0.5])
        out[i] = (127 + 120 * wave + noise[i % 64 : i % 64 + side]).clip(0, 255)
    return out


# ---- tar and TFRecord ---------------------------------------------------------------------------------------------


def tar_suffix(job):
    return "jpg" if job.decode else "bin"


def make_tar(job):
    for shard in range(SHARDS):
        with tarfile.open(job.folder / f"s-{shard}.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
            for i in range(shard, job.samples, SHARDS):
                for suffix, data in (tar_suffix(job), payload(job, i)), ("cls", b"%d" % (i % 1000)):
                    info = tarfile.TarInfo(f"{i:08}.{suffix}")
                    info.size = len(data)
                    archive.addfile(info, io.BytesIO(data))
    return f"tar:{job.folder}/s-{{0..{SHARDS - 1}}}.tar"


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def tagged(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def example(data, label):
    entries = [(b"image/encoded", tagged(1, tagged(1, data))), (b"label", tagged(3, tagged(1, varint(label))))]
    return tagged(1, b"".join(tagged(1, tagged(1, name) + tagged(2, value)) for name, value in entries))


def make_tfrecord(job):
    try:
        import crc32c
    except ImportError as why:
        raise Absent(f"{why}; it comes with the package tfrecord") from why

    def masked(data):
        crc = crc32c.crc32c(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    for shard in range(SHARDS):
        with open(job.folder / f"s-{shard}.tfrecord", "wb") as file, \
                open(job.folder / f"s-{shard}.offsets", "w") as offsets:
            for i in range(shard, job.samples, SHARDS):
                record = example(payload(job, i), i % 1000)
                head = struct.pack("<Q", len(record))
                offsets.write(f"{file.tell()} {len(record) + 16}\n")
                file.write(head + masked(head) + record + masked(record))
    return f"tfrecord:{job.folder}/s-{{0..{SHARDS - 1}}}.tfrecord"


# ---- HDF5, LMDB, zip and numpy arrays -----------------------------------------------------------------------------


def make_hdf5(chunk, **options):
    def make(job):
        try:
            import h5py
        except ImportError as why:
            raise Absent(str(why)) from why
        images = pictures(job)
        if options.get("shuffle"):  # as numbers of several bytes
            images = (images.astype("i4") * 7919 // 16).astype("i4")
        with h5py.File(job.folder / "x.h5", "w") as file:
            file.create_dataset("images", data=images, chunks=(chunk, *images.shape[1:]) if chunk else None, **options)
            file["labels"] = [i % 1000 for i in range(job.samples)]
        return f"hdf5:{job.folder}/x.h5"

    return make


def make_lmdb(job):
    try:
        import lmdb
    except ImportError as why:
        raise Absent(str(why)) from why
    with lmdb.open(str(job.folder / "x.mdb"), subdir=False, map_size=2 * job.samples * (job.size + 8192)) as env:
        with env.begin(write=True) as txn:
            for i in range(job.samples):
                txn.put(b"%08d" % i, payload(job, i))
    return f"lmdb:{job.folder}/x.mdb"


def make_zip(packed):
    def make(job):
        method = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
        images = pictures(job) if packed and not job.decode else None
        with zipfile.ZipFile(job.folder / "x.zip", "w", method) as archive:
            for i in range(job.samples):
                data = payload(job, i) if images is None else images[i].tobytes()
                archive.writestr(f"{i % 10}/{i:08}.jpg", data)
        return f"zip:{job.folder}/x.zip"

    return make


def make_npy(job):
    import numpy
    numpy.save(job.folder / "x.npy", pictures(job))
    return f"npy:{job.folder}/x.npy"
