# SPDX-License-Identifier: Apache-2.0
"""The datasets of drawn programs: what people write, each with a cheap store of its own, and what is planted in making a sample.

Samples take the time that they are given: `sleep` waits, as for a device, `cpu` counts the thread's own CPU time, so that a
busy machine makes it later but not less.
"""

import contextlib
import fcntl
import gzip
import io
import multiprocessing
import os
import sqlite3
import subprocess
import time
import urllib.request
import zipfile
from pathlib import Path

import numpy as np
import torch
from common import OWN, data_folder, make_jpegs
from torch.utils.data import (
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    get_worker_info,
)

ROWS = 64  # of every store
MUTEX = multiprocessing.Lock()  # workers that are forked share it


def spend(milliseconds: float, how: str) -> None:
    if how == "sleep":
        time.sleep(milliseconds / 1e3)
        return
    end = time.thread_time() + milliseconds / 1e3
    while time.thread_time() < end:
        pass


@contextlib.contextmanager
def held(planted: set[str], own: bool):
    """The lock that is planted, if any: one sample at a time is made with it. With `own` every process has a database."""
    if "mutex" in planted:
        with MUTEX:
            yield
    elif planted & {"flock", "lockf"}:
        with open(OWN / "lock", "a") as file:
            (fcntl.flock if "flock" in planted else fcntl.lockf)(file, fcntl.LOCK_EX)
            yield
    elif own or "sqlite" in planted:
        name = f"seen-{os.getpid()}.db" if own else "seen.db"
        with contextlib.closing(sqlite3.connect(OWN / name, timeout=100, isolation_level=None)) as link:
            link.execute("CREATE TABLE IF NOT EXISTS seen (count INTEGER)")
            link.execute("BEGIN IMMEDIATE")
            yield
            link.execute("INSERT INTO seen VALUES (1)")
            link.execute("COMMIT")
    else:
        yield


class Map(Dataset):
    """What all datasets with indices share; `read` differs."""

    def __init__(self, args, planted: set[str]):
        self.args, self.planted = args, planted
        self.filling = args.filling  # samples that this process makes late

    def __len__(self):
        return self.args.steps * self.args.batch_size

    def work(self, index: int) -> float:
        """Milliseconds of this sample."""
        args = self.args
        if self.filling > 0:
            self.filling -= 1
            return args.late_ms
        if "wander" in self.planted and index // args.batch_size // 4 % 2 == args.rank:  # the other rank has slow batches
            return args.quick_ms
        if "one_late" in self.planted and index // args.batch_size % args.every == args.every // 2:
            return args.late_ms
        return args.work_ms

    def read(self, index: int) -> float:
        return float(index)

    def __getitem__(self, index):
        number = self.read(index)
        if "children" in self.planted:
            subprocess.run(["sleep", f"{self.work(index) / 1e3:.4f}"], check=True)
        else:
            with held(self.planted, self.args.cause == "sqlite" and not self.planted):
                spend(self.work(index), self.args.work)
        return index, torch.full((64,), number)


class Dicts(Map):
    def __getitem__(self, index):
        index, values = super().__getitem__(index)
        return {"index": index, "values": values, "name": f"sample {index}"}


class Batched(Map):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


class Files(Map):
    """A small file of text for each sample."""

    def read(self, index):
        folder = data_folder("drawn_texts", lambda to: [(to / f"{k}.txt").write_text(str(k)) for k in range(ROWS)])
        return float((folder / f"{index % ROWS}.txt").read_text())


class Arrays(Map):
    """numpy.load of a file."""

    def read(self, index):
        folder = data_folder("drawn_arrays", lambda to: [np.save(to / f"{k}.npy", np.full(256, k)) for k in range(ROWS)])
        return float(np.load(folder / f"{index % ROWS}.npy")[0])


class Mapped(Map):
    """Rows of a mapped file, opened where they are read."""

    rows = None

    def read(self, index):
        if self.rows is None:
            folder = data_folder("drawn_rows", lambda to: np.save(to / "rows.npy", np.arange(ROWS * 256.0).reshape(ROWS, 256)))
            self.rows = np.load(folder / "rows.npy", mmap_mode="r")
        return float(self.rows[index % ROWS].mean())


class Members(Map):
    """Members of a zip file that each process opens once."""

    archive = None

    def read(self, index):
        if self.archive is None:
            folder = data_folder("drawn_zip", lambda to: make_zip(to / "few.zip", ROWS))
            self.archive = zipfile.ZipFile(folder / "few.zip")
        return float(self.archive.read(f"{index % ROWS}.txt"))


class Table(Map):
    """Rows of an SQLite database that is only read, with a connection for each process."""

    link = None

    def read(self, index):
        if self.link is None:
            folder = data_folder("drawn_table", lambda to: make_table(to / "rows.db"))
            self.link = sqlite3.connect(f"file:{folder / 'rows.db'}?mode=ro", uri=True)
        return float(self.link.execute("SELECT value FROM rows WHERE id = ?", (index % ROWS,)).fetchone()[0])


class Words(Map):
    """Text that is split and counted."""

    def read(self, index):
        words = ("many words of one sentence " * 8 + str(index)).split()
        return float(len({word: place for place, word in enumerate(words)}))


class Records(Map):
    """A list of dicts in memory."""

    def __init__(self, args, planted):
        super().__init__(args, planted)
        self.records = [{"id": k, "label": k % 10} for k in range(ROWS)]

    def read(self, index):
        return float(self.records[index % ROWS]["label"])


class Transformed(Map):
    """With a transform, as torchvision's datasets have it."""

    def __init__(self, args, planted):
        super().__init__(args, planted)
        self.transform = Blur(args.cost_ms if "augment" in planted else 0.0)

    def read(self, index):
        return float(self.transform(torch.full((4, 4), float(index)))[0, 0])


class Blur:
    def __init__(self, milliseconds: float):
        self.milliseconds = milliseconds

    def __call__(self, image):
        spend(self.milliseconds, "cpu")
        return image


class Stream(IterableDataset):
    """Batches by turns: worker k makes every W-th."""

    def __init__(self, args, planted: set[str]):
        self.args, self.planted = args, planted
        self.inner = Map(args, planted)

    def batches(self, number: int, workers: int) -> range | list[int]:
        every = range(self.args.steps)
        if "duplicates" in self.planted:  # no worker knows of the others
            return every
        if "uneven" in self.planted and workers > 1:  # the first worker's shards hold most of the data
            most = int(len(every) * 0.76)
            return every[:most] if number == 0 else every[most + number - 1 :: workers - 1]
        return every[number::workers]

    def __iter__(self):
        worker = get_worker_info()
        size = self.args.batch_size
        for batch in self.batches(worker.id if worker else 0, worker.num_workers if worker else 1):
            for index in range(batch * size, (batch + 1) * size):
                yield self.inner[index]


class Shards(Stream):
    """Files of several samples each, which belong to a worker."""

    def __iter__(self):
        folder = data_folder("drawn_texts", lambda to: [(to / f"{k}.txt").write_text(str(k)) for k in range(ROWS)])
        for index, sample in super().__iter__():
            if index % 8 == 0:
                (folder / f"{index // 8 % ROWS}.txt").read_text()
            yield index, sample


# ---- datasets that are the cause themselves ---------------------------------------------------------


class Noisy(Map):
    """A generator of random numbers that is made once: every forked worker has a copy in the same state."""

    def __init__(self, args, planted):
        super().__init__(args, planted)
        self.rng = np.random.default_rng(0)

    def read(self, index):
        return float(index + self.rng.standard_normal())


class Shared(Map):
    """A file that is open before workers are forked: they share its position."""

    def __init__(self, args, planted):
        super().__init__(args, planted)
        folder = data_folder("drawn_bytes", lambda to: (to / "bytes").write_bytes(bytes(range(256)) * 64))
        self.file = open(folder / "bytes", "rb")  # noqa: SIM115

    def read(self, index):
        self.file.seek(index % ROWS * 256)
        return float(self.file.read(1)[0])


class Reopened(Map):
    """Opens a large zip file for every sample, which reads its whole directory."""

    def read(self, index):
        folder = data_folder("drawn_large_zip", lambda to: make_zip(to / "many.zip", 4000))
        if "archive" not in self.planted:
            return float(index % ROWS)
        with zipfile.ZipFile(folder / "many.zip") as archive:
            return float(archive.read(f"{index % ROWS}.txt"))


class Photographs(Map):
    """12 megapixels, reduced to a thumbnail; or stored as that."""

    def read(self, index):
        from PIL import Image

        large = "photographs" in self.planted
        width, height = (4000, 3000) if large else (200, 150)
        folder = data_folder(f"drawn_photographs_{width}", lambda to: make_jpegs(to, 4, width, height))
        with Image.open(folder / f"{index % 4:05}.jpg") as image:
            return float(np.asarray(image.convert("RGB").resize((64, 48)))[0, 0, 0])


class Compressed(Map):
    """Several megabytes of numbers in gzip; or plain."""

    def read(self, index):
        folder = data_folder("drawn_gzip", make_gzip)
        packed = "decompress" in self.planted
        data = gzip.decompress((folder / "numbers.gz").read_bytes()) if packed else (folder / "numbers").read_bytes()
        return float(np.frombuffer(data, np.uint8)[index % ROWS])


class Remote(Map):
    """A request for each sample."""

    def read(self, index):
        first = index % ROWS * 1024
        place = os.environ["FAULTS_URL"] + ("?one-at-a-time" if "server" in self.planted else "")
        request = urllib.request.Request(place, headers={"Range": f"bytes={first}-{first + 1023}"})
        with urllib.request.urlopen(request) as answer:
            return float(answer.read()[0])


class Products(Map):
    """Products of matrices, by as many threads as torch has here."""

    def __init__(self, args, planted):
        super().__init__(args, planted)
        self.matrix = torch.full((384, 384), 0.001)

    def read(self, index):
        return float((self.matrix @ self.matrix)[0, 0]) + index


class Objects(Map):
    """Many small tensors in a sample; or one."""

    def __getitem__(self, index):
        index, _ = super().__getitem__(index)
        values = torch.full((64, 4), float(index))
        return index, list(values.unbind()) if "objects" in self.planted else values


class Library(Map):
    """Products by NumPy, whose library may have threads of its own."""

    def __init__(self, args, planted):
        super().__init__(args, planted)
        self.matrix = np.full((320, 320), 0.001, np.float32)

    def read(self, index):
        return float((self.matrix @ self.matrix)[0, 0]) + index


class Corpus(Map):
    """Lines of text, as strings or in an array."""

    LINES = 1000  # of one sample

    def __init__(self, args, planted):
        super().__init__(args, planted)
        lines = (f"line {k:09} of a corpus that is kept in memory as text" for k in range(len(self) * self.LINES))
        self.lines = list(lines) if "growing" in planted else np.array(list(lines), "S64")

    def read(self, index):
        return float(sum(map(len, self.lines[index * self.LINES : (index + 1) * self.LINES])))


class Blocks(Map):
    """Rows of one large file, read by their place; with `disk`, four times as many bytes as are used."""

    SIZE, COUNT = 262144, 480

    def read(self, index):
        folder = data_folder("drawn_blocks", lambda to: make_blocks(to / "blocks", self.COUNT, self.SIZE))
        wanted = self.SIZE if "disk" in self.planted else self.SIZE // 4
        with open(folder / "blocks", "rb", buffering=0) as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
            file.seek(index % self.COUNT * self.SIZE)
            return float(file.read(wanted)[0])


class Pieces(Map):
    """Small files, or all of them in one."""

    COUNT = 1280

    def read(self, index):
        folder = data_folder("drawn_pieces", lambda to: make_pieces(to, self.COUNT))
        number = index * 7919 % self.COUNT
        if "pieces" in self.planted:
            return float((folder / f"{number}.bin").read_bytes()[0])
        with open(folder / "all", "rb") as file:
            file.seek(index % self.COUNT * 6000)
            return float(file.read(6000)[0])


class Large(Map):
    """480 MB in files of 512 KiB, which every epoch reads in another order."""

    def read(self, index):
        folder = data_folder("drawn_large", lambda to: [(to / f"{k}.bin").write_bytes(os.urandom(1 << 19)) for k in range(960)])
        return float((folder / f"{index * 7919 % 960}.bin").read_bytes()[0])


class Batches(Dataset):
    """Whole batches of so many megabytes, in memory that workers share."""

    def __init__(self, args, planted):
        self.steps = args.steps
        size = args.size // 4 if args.cause == "pinning" and not planted else args.size
        self.batches = [torch.randn(size, 1 << 18).share_memory_() for _ in range(4)]

    def __len__(self):
        return self.steps

    def __getitem__(self, index):
        return self.batches[index % len(self.batches)]


def make_blocks(path: Path, count: int, size: int) -> None:
    with open(path, "wb") as file:
        for _ in range(count):
            file.write(os.urandom(size))


def make_pieces(to: Path, count: int) -> None:
    with open(to / "all", "wb") as whole:
        for number in range(count):
            piece = os.urandom(6000)
            (to / f"{number}.bin").write_bytes(piece)
            whole.write(piece)


def make_zip(path: Path, members: int) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for number in range(members):
            archive.writestr(f"{number}.txt", str(number))


def make_table(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as link, link:
        link.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, value REAL)")
        link.executemany("INSERT INTO rows VALUES (?, ?)", [(k, k) for k in range(ROWS)])


def make_gzip(to: Path) -> None:
    numbers = np.random.default_rng(1).integers(0, 64, 1_500_000, np.uint8).tobytes()
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=4) as file:
        file.write(numbers)
    (to / "numbers").write_bytes(numbers)
    (to / "numbers.gz").write_bytes(packed.getvalue())


def subset(args, planted):
    data = Map(args, planted)
    return Subset(data, list(range(len(data)))[::-1])


def joined(args, planted):
    whole = Map(args, planted)
    half = len(whole) // 2
    return ConcatDataset([Subset(whole, range(half)), Subset(whole, range(half, len(whole)))])


DATASETS = {
    "map": Map, "dicts": Dicts, "batched": Batched, "files": Files, "arrays": Arrays, "mapped": Mapped, "members": Members,
    "table": Table, "words": Words, "records": Records, "transformed": Transformed, "subset": subset, "joined": joined,
    "stream": Stream, "shards": Shards,
    "noisy": Noisy, "shared": Shared, "reopened": Reopened, "photographs": Photographs, "compressed": Compressed,
    "remote": Remote, "products": Products, "objects": Objects, "library": Library, "corpus": Corpus, "blocks": Blocks,
    "pieces": Pieces, "large": Large, "batches": Batches,
}  # fmt: skip
