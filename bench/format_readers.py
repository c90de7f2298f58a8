# SPDX-License-Identifier: Apache-2.0
"""How others read the files of bench/formats.py: each reader an endless iterable of samples."""

from __future__ import annotations

import io
import itertools
import tarfile
import zipfile

from format_files import BATCH, SHARDS, Absent, tar_suffix


def finish(job, data):
    """What the others make of a payload."""
    if not job.decode:
        return data
    import numpy
    from PIL import Image
    return numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def torch_loader(dataset, job, batch_size=None):
    """For datasets that iterate by themselves, over batches unless a size is given."""
    try:
        import torch.utils.data
    except ImportError as why:
        raise Absent(str(why)) from why
    loader = torch.utils.data.DataLoader(dataset, batch_size=batch_size, num_workers=job.workers)
    for batch in itertools.chain.from_iterable(itertools.repeat(loader)):
        yield from itertools.repeat(batch, BATCH)


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
