#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random-access samples a second for each format, against the format's own Python readers in a torch DataLoader.

    bench/formats.py [--row NAME]... [--through loader|source] [--workers N] [--seconds S] [--samples N]
                     [--size BYTES] [--cold] [--quick] [--program P]

A row is a format: how its files are made, and who reads them. Each reader yields samples in an order of its choice
among what it can: at random where the format's library allows it, else front to back, and the table says so. The
ratio is Stoker's rate over the best of the others in the same run.

Through the loader (the default) Stoker is stoker.DataLoader with as many threads as the others have processes, and
payloads are JPEGs that all decode to RGB: Stoker itself, the others by Pillow; arrays of pixels need no decoding.
Through the source it is the program source_bench as built (bytes found, checked and split; --program names it), and
the payloads are random bytes that nobody decodes.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import io
import itertools
import os
import random
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable

ROOT = Path(__file__).resolve().parent.parent


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


@dataclass
class Row:
    make: Callable[[Job], str]  # writes the files; the URI that Stoker opens
    fields: str  # for source_bench
    open: Callable[[str], Any]  # as a data set of stoker.datasets, by the URI's path
    others: dict[str, Callable[[Job], Any]] = field(default_factory=dict)  # each an iterable of samples, endless


# ---- what is read -------------------------------------------------------------------------------------------------


BATCH = 32


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


def finish(job, data):
    """What the others make of a payload."""
    if not job.decode:
        return data
    import numpy
    from PIL import Image
    return numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def drain(samples, seconds):
    """Samples a second, after the first hundred."""
    iterator = iter(samples)
    for _ in itertools.islice(iterator, 100):
        pass
    count, began = 0, time.perf_counter()
    while (took := time.perf_counter() - began) < seconds:
        for _ in itertools.islice(iterator, 64):
            count += 1
    return count / took


def torch_loader(dataset, job, batch_size=None):
    """For data sets that iterate by themselves, over batches unless a size is given."""
    try:
        import torch.utils.data
    except ImportError as why:
        raise Absent(str(why)) from why
    loader = torch.utils.data.DataLoader(dataset, batch_size=batch_size, num_workers=job.workers)
    for batch in itertools.chain.from_iterable(itertools.repeat(loader)):
        yield from itertools.repeat(batch, BATCH)


# ---- tar ----------------------------------------------------------------------------------------------------------


SHARDS = 4


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


def read_webdataset(job):
    """As its documents advise: shards shuffled, and samples from a buffer of a thousand."""
    try:
        import webdataset
    except ImportError as why:
        raise Absent(str(why)) from why
    data = webdataset.WebDataset(f"{job.folder}/s-{{0..{SHARDS - 1}}}.tar", shardshuffle=SHARDS, empty_check=False)
    data = data.shuffle(1000).decode("rgb8").to_tuple(tar_suffix(job), "cls").batched(BATCH)
    return torch_loader(data, job)


class TarByIndex:
    """What one would write oneself: offsets by tarfile, then a seek and a read for each member."""

    def __init__(self, paths, job):
        self.items, self.files, self.job = [], {}, job
        for path in paths:
            with tarfile.open(path) as archive:
                members = archive.getmembers()
            self.items += [(path, a.offset_data, a.size, b.offset_data, b.size)
                           for a, b in zip(members[::2], members[1::2], strict=True)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        path, *spans = self.items[i]
        if path not in self.files:
            self.files[path] = open(path, "rb", buffering=0)
        file = self.files[path]
        file.seek(spans[0])
        data = file.read(spans[1])
        file.seek(spans[2])
        return finish(self.job, data), int(file.read(spans[3]))


def read_tarfile(job):
    return batch_loader(TarByIndex(sorted(job.folder.glob("*.tar")), job), job)


# ---- TFRecord -----------------------------------------------------------------------------------------------------


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


def read_tfrecord(job):
    """The package of that name, with its index and its own parser; front to back, shuffled in a queue."""
    try:
        from tfrecord.torch.dataset import MultiTFRecordDataset
    except ImportError as why:
        raise Absent(str(why)) from why
    data = MultiTFRecordDataset(
        f"{job.folder}/s-{{}}.tfrecord", f"{job.folder}/s-{{}}.offsets", {str(i): 1 / SHARDS for i in range(SHARDS)},
        {"image/encoded": "byte", "label": "int"}, shuffle_queue_size=1000, infinite=True,
        transform=lambda record: {**record, "image/encoded": finish(job, bytes(record["image/encoded"]))})
    return torch_loader(data, job, BATCH)


def read_tf_data(job):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    try:
        import tensorflow as tf
    except ImportError as why:
        raise Absent(str(why)) from why
    features = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}
    data = tf.data.TFRecordDataset(sorted(map(str, job.folder.glob("*.tfrecord"))), num_parallel_reads=SHARDS)
    data = data.shuffle(1000).repeat().map(lambda r: tf.io.parse_single_example(r, features), job.workers)
    if job.decode:
        data = data.map(lambda r: {**r, "image/encoded": tf.io.decode_jpeg(r["image/encoded"])}, job.workers)
    return data.prefetch(64).as_numpy_iterator()


def batch_loader(dataset, job):
    """Map-style sets as torch's loader is used with them: shuffled, in batches that workers collate."""
    try:
        import torch.utils.data
    except ImportError as why:
        raise Absent(str(why)) from why
    loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH, shuffle=True, drop_last=True,
                                         num_workers=job.workers, persistent_workers=job.workers > 0)
    for batch in itertools.chain.from_iterable(itertools.repeat(loader)):
        yield from itertools.repeat(batch, BATCH)


# ---- HDF5, LMDB, zip and numpy arrays ---------------------------------------------------------------------------------


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


class ByH5py:
    def __init__(self, path):
        import h5py
        self.path, self.file = path, None
        with h5py.File(path) as file:
            self.count = len(file["labels"])

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if self.file is None:  # in each worker, as its documents demand
            import h5py
            self.file = h5py.File(self.path)
            self.images, self.labels = self.file["images"], self.file["labels"]
        return self.images[i], int(self.labels[i])


def read_h5py(job):
    return batch_loader(ByH5py(str(job.folder / "x.h5")), job)


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


class ByLmdb:
    def __init__(self, path, job):
        self.path, self.count, self.txn, self.job = path, job.samples, None, job

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if self.txn is None:
            import lmdb
            self.env = lmdb.open(self.path, subdir=False, readonly=True, lock=False, readahead=False)
            self.txn = self.env.begin()
        key = b"%08d" % i
        return finish(self.job, self.txn.get(key)), key


def read_lmdb(job):
    return batch_loader(ByLmdb(str(job.folder / "x.mdb"), job), job)


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


class ByZipfile:
    def __init__(self, path, job):
        self.path, self.archive, self.job = path, None, job
        with zipfile.ZipFile(path) as archive:
            self.names = archive.namelist()

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        if self.archive is None:
            self.archive = zipfile.ZipFile(self.path)
        return finish(self.job, self.archive.read(self.names[i])), int(self.names[i].split("/")[0])


def read_zipfile(job):
    return batch_loader(ByZipfile(job.folder / "x.zip", job), job)


def make_npy(job):
    import numpy
    numpy.save(job.folder / "x.npy", pictures(job))
    return f"npy:{job.folder}/x.npy"


class ByNumpy:
    def __init__(self, path):
        self.path, self.rows = path, None

    def __len__(self):
        import numpy
        return len(numpy.load(self.path, mmap_mode="r"))

    def __getitem__(self, i):
        import numpy
        if self.rows is None:
            self.rows = numpy.load(self.path, mmap_mode="r")
        return numpy.array(self.rows[i])


def read_numpy(job):
    return batch_loader(ByNumpy(job.folder / "x.npy"), job)


# ---- the table ----------------------------------------------------------------------------------------------------


def by_class(kind, *fields):
    """Opens a data set of stoker.datasets with these fields."""
    def opened(path):
        from stoker import datasets
        return getattr(datasets, kind)(path, fields=fields)

    return opened


def hdf5_row(chunk, **options):
    return Row(make_hdf5(chunk, **options), "images,labels", by_class("HDF5", "images", "labels"), {"h5py": read_h5py})


def zip_row(packed):
    return Row(make_zip(packed), "image,label", by_class("Zip", "image", "label"), {"zipfile": read_zipfile})


ROWS = {
    "tar": Row(make_tar, "bin,cls", by_class("WebDataset", "jpg", "cls"),
               {"webdataset (buffer of 1000)": read_webdataset, "tarfile's offsets, seek and read": read_tarfile}),
    "tfrecord": Row(make_tfrecord, "image/encoded=bytes,label=int",
                    by_class("TFRecord", "image/encoded=image", "label=int"),
                    {"tfrecord (buffer of 1000)": read_tfrecord, "tf.data (buffer of 1000)": read_tf_data}),
    "hdf5": hdf5_row(1, compression="gzip"),
    "hdf5-16": hdf5_row(16, compression="gzip"),
    "hdf5-i4": hdf5_row(1, compression="gzip", shuffle=True),
    "hdf5-lzf": hdf5_row(1, compression="lzf"),
    "hdf5-flat": hdf5_row(0),
    "lmdb": Row(make_lmdb, "value,key", by_class("LMDB", "image", "key"), {"lmdb": read_lmdb}),
    "zip": zip_row(False),
    "zip-packed": zip_row(True),
    "npy": Row(make_npy, "row", by_class("Npy", "row"), {"numpy (mmap_mode)": read_numpy}),
}


def forget(folder):
    """Takes the files out of the page cache, as far as the system lets us."""
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def loader_samples(uri, row, job):
    """stoker.DataLoader's, one epoch after the other."""
    try:
        import stoker
    except ImportError as why:
        raise Absent(str(why)) from why
    loader = stoker.DataLoader(row.open(uri.partition(":")[2]), batch_size=BATCH, shuffle=True, drop_last=True, seed=0,
                               num_workers=job.workers)
    for batch in itertools.chain.from_iterable(itertools.repeat(loader)):
        yield from itertools.repeat(batch, BATCH)


def stoker_rate(program, uri, row, job):
    if job.decode:
        return drain(loader_samples(uri, row, job), job.seconds)
    command = [program, uri, row.fields, str(job.workers), str(job.seconds)]
    answer = subprocess.run(command, capture_output=True, text=True)
    if answer.returncode:
        raise Absent(answer.stderr.strip() or f"source_bench ended with {answer.returncode}")
    return float(answer.stdout.split()[0])


def measure(name, row, job, program, cold):
    uri = row.make(job)
    rates = {}
    readers = {"stoker": lambda: stoker_rate(program, uri, row, job)}
    readers |= {who: (lambda read=read: drain(read(job), job.seconds)) for who, read in row.others.items()}
    for who, read in readers.items():
        if cold:
            forget(job.folder)
        try:
            rates[who] = read()
        except Absent as why:
            print(f"{name:10} {who:34} not here: {why}")
            continue
        print(f"{name:10} {who:34} {rates[who]:10.0f} samples/s", flush=True)
    best = max((rate for who, rate in rates.items() if who != "stoker"), default=0)
    if best and "stoker" in rates:
        print(f"{name:10} {'ratio':34} {rates['stoker'] / best:10.2f}", flush=True)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--row", action="append", choices=ROWS, help="only these formats")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--seconds", type=float, default=5)
    options.add_argument("--samples", type=int, default=4000)
    options.add_argument("--size", type=int, default=100_000, help="bytes of a payload")
    options.add_argument("--cold", action="store_true", help="drop the files from the page cache before each reader")
    options.add_argument("--through", choices=["loader", "source"], default="loader", help="what of Stoker is measured")
    options.add_argument("--quick", action="store_true", help="a second for each reader, and 400 samples")
    options.add_argument("--program", default=str(ROOT / "build/bench/source_bench"))
    given = options.parse_args()
    warnings.filterwarnings("ignore", message="The given NumPy array is not writable")  # nobody writes to it
    if given.quick:
        given.seconds, given.samples = 1, 400
    for name in given.row or ROWS:
        with tempfile.TemporaryDirectory(prefix="stoker-formats-") as folder:
            job = Job(Path(folder), given.samples, given.size, given.workers, given.seconds, given.through == "loader")
            measure(name, ROWS[name], job, given.program, given.cold)


if __name__ == "__main__":
    sys.exit(main())
