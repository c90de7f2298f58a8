# SPDX-License-Identifier: Apache-2.0
"""Datasets in one file, as mutants know them: seeds, where their numbers and parts lie, and their sums put right."""

from __future__ import annotations

import gzip
import io
import os
import pathlib
import re
import tarfile
import time
import zlib

import sums

TESTS = pathlib.Path(__file__).parent.parent
DATA, CORPUS = TESTS / "data", TESTS / "fuzz" / "corpus"


def files(folder, pattern="*"):
    """Their bytes, in the order of their names; large ones would only slow everything down."""
    found = [f.read_bytes() for f in sorted(folder.glob(pattern)) if f.is_file()]
    return [data for data in found if 0 < len(data) <= 80_000]


def u32(data, at):
    return int.from_bytes(data[at:at + 4], "little")


def digits(data, most=4096):
    return [(m.start(), len(m[0]), "d") for m in re.finditer(rb"\d+", bytes(data[:most]))]


class Format:
    """`way` is how the program of mutant.c is to open it; `path` what the mutant is called."""

    text = False

    def __init__(self, name, way, seeds):
        self.name, self.way, self.seeds, self.path = name, way, seeds, "mutant"

    def fields(self, data):
        return []

    def cuts(self, data):
        return []

    def repair(self, data, seed):
        return data

    def prepare(self, folder, ask):
        """Called once a folder; `ask` is a function that has the program read a path."""


class Text(Format):
    text = True

    def fields(self, data):
        return digits(data)

    def cuts(self, data):
        return [m.end() for m in re.finditer(rb"\n", data)]


# ---- tar ---------------------------------------------------------------------------------------------


def tar(members, **options):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", **options) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def samples():
    """Members of a few samples: an image each, a label, some text and an array."""
    images = [f.read_bytes() for f in (DATA / "manifest" / "a.jpg", CORPUS / "png" / "rgb", CORPUS / "webp" / "rgb-lossy")]
    array = (DATA / "npy" / "floats.npy").read_bytes()
    for i, image in enumerate(images):
        yield from ((f"{i}.jpg", image), (f"{i}.cls", b"%d" % i), (f"{i}.json", b'{"a": [1, null]}'), (f"{i}.npy", array))


class Tar(Format):
    def __init__(self, name="tar", pack=lambda data: data):
        long = [("d/" * 80 + n, data) for n, data in samples()]
        made = [tar(list(samples()), format=tarfile.USTAR_FORMAT), tar(long, format=tarfile.GNU_FORMAT),
                tar(long, format=tarfile.PAX_FORMAT), tar(list(samples()), format=tarfile.PAX_FORMAT,
                                                          pax_headers={"comment": "hello", "size": "12"})]
        super().__init__(name, "tar", made + files(CORPUS / "tar") + files(CORPUS / "tar_inside"))
        self.pack, self.path = pack, f"mutant.{name}"

    def heads(self, data):
        """Blocks that look like headers, wherever a walk would find them."""
        return [at for at in range(0, len(data) - 511, 512) if data[at + 257:at + 262] == b"ustar"]

    def fields(self, data):
        return [field for at in self.heads(data)
                for field in ((at + 124, 12, "o"), (at + 124, 12, "o"), (at + 156, 1, "<"), (at, 1, "<"), (at + 345, 1, "<"),
                              (at + 386, 12, "o"), (at + 483, 12, "o"), (at + 257, 8, "<"))] + digits(data, 2048)

    def cuts(self, data):
        return list(range(0, len(data), 512))

    def repair(self, data, seed):
        data = bytearray(data)
        for at in self.heads(data):
            data[at + 148:at + 156] = b" " * 8
            data[at + 148:at + 156] = b"%06o\0 " % sum(data[at:at + 512])
        return self.pack(bytes(data))


# ---- TFRecord ------------------------------------------------------------------------------------------


class Records(Format):
    def __init__(self):
        seeds = [data for data in files(DATA / "tfrecord", "*.tfrecord") + files(CORPUS / "record") if self.starts(data)]
        super().__init__("tfrecord", "tfrecord", seeds + [zlib.compress(seeds[0]), gzip.compress(seeds[0], mtime=0)])

    @staticmethod
    def starts(data):
        """Of records, as far as their lengths make sense."""
        at, found = 0, []
        while at + 16 <= len(data):
            size = int.from_bytes(data[at:at + 8], "little")
            if size > len(data) - at - 16:
                break
            found.append(at)
            at += 16 + size
        return found

    def fields(self, data):
        return [field for at in self.starts(data)
                for field in ((at, 8, "<"), *((at + 12 + k, 1, "<") for k in range(24)))]

    def cuts(self, data):
        return self.starts(data)

    def repair(self, data, seed):
        data = bytearray(data)
        at = 0
        while at + 12 <= len(data):  # the sum of a length that lies is right, too
            size = int.from_bytes(data[at:at + 8], "little")
            data[at + 8:at + 12] = sums.masked(data[at:at + 8])
            if size <= len(data) - at - 16:
                data[at + 12 + size:at + 16 + size] = sums.masked(data[at + 12:at + 12 + size])
            at += 16 + size
        return bytes(data)


# ---- zip -----------------------------------------------------------------------------------------------


class Zip(Format):
    HEADS = {b"PK\x03\x04": ((4, 2), (6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)),
             b"PK\x01\x02": ((6, 2), (8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (30, 2), (32, 2), (42, 4)),
             b"PK\x05\x06": ((4, 2), (6, 2), (8, 2), (10, 2), (12, 4), (16, 4), (20, 2)),
             b"PK\x06\x06": ((4, 8), (24, 8), (32, 8), (40, 8), (48, 8)), b"PK\x06\x07": ((4, 4), (8, 8), (16, 4))}

    def heads(self, data):
        return [(m.start(), m[0]) for m in re.finditer(rb"PK(\x03\x04|\x01\x02|\x05\x06|\x06\x06|\x06\x07)", data)]

    def fields(self, data):
        return [(at + k, size, "<") for at, head in self.heads(data) for k, size in self.HEADS[head]] + \
            [(m.start() + 10, 2, "<") for m in re.finditer(rb"\x93NUMPY", data)] + digits(data)

    def cuts(self, data):
        return [at for at, _ in self.heads(data)]

    def repair(self, data, seed):
        """Of entries that lie where the directory says."""
        data = bytearray(data)
        for at, head in self.heads(data):
            if head != b"PK\x01\x02" or at + 46 > len(data):
                continue
            packed, local, way = u32(data, at + 20), u32(data, at + 42), data[at + 10]
            start = local + 30 + int.from_bytes(data[local + 26:local + 28], "little") + \
                int.from_bytes(data[local + 28:local + 30], "little")
            body = bytes(data[start:start + packed])
            if way == 8:
                try:
                    body = zlib.decompressobj(-15).decompress(body, 1 << 20)
                except zlib.error:
                    continue
            data[at + 16:at + 20] = zlib.crc32(body).to_bytes(4, "little")
            if local + 18 <= len(data):
                data[local + 14:local + 18] = data[at + 16:at + 20]
        return bytes(data)


# ---- LMDB ----------------------------------------------------------------------------------------------


class Lmdb(Format):
    PAGE = 4096

    def __init__(self):
        super().__init__("lmdb", "lmdb", files(DATA / "lmdb", "**/*.mdb") + files(CORPUS / "lmdb"))

    def fields(self, data):
        found = []
        for page in range(0, len(data), self.PAGE):
            found += [(page, 8, "<"), (page + 10, 2, "<"), (page + 12, 2, "<"), (page + 14, 2, "<"), (page + 12, 4, "<")]
            if page < 2 * self.PAGE:  # the two heads: sizes, and the records of two trees
                found += [(page + 16 + k, size, "<") for k, size in ((0, 4), (4, 4), (16, 8))]
                found += [(page + 40 + tree + k, size, "<") for tree in (0, 48)
                          for k, size in ((0, 4), (4, 2), (6, 2), (8, 8), (16, 8), (24, 8), (32, 8), (40, 8))]
                found += [(page + 136, 8, "<"), (page + 144, 8, "<")]
                continue
            lower = int.from_bytes(data[page + 12:page + 14], "little")
            for slot in range(16, min(lower, 16 + 2 * 40), 2):
                node = page + int.from_bytes(data[page + slot:page + slot + 2], "little") % self.PAGE
                found += [(page + slot, 2, "<"), *((node + k, 2, "<") for k in (0, 2, 4, 6)), (node, 4, "<"),
                          (node + 8, 8, "<")]
        return found

    def cuts(self, data):
        return list(range(0, len(data), self.PAGE))


# ---- HDF5 ----------------------------------------------------------------------------------------------


class Hdf5(Format):
    HEADS = re.compile(rb"\x89HDF|OHDR|OCHK|FAHD|FADB|EAHD|EAIB|EADB|EASB|BTHD|BTIN|BTLF|FRHP|FHDB|FHIB|FSHD|FSSE|SMTB|"
                       rb"SMLI|TREE|SNOD|HEAP|GCOL")
    SIZES = {b"FAHD": 24, b"BTHD": 34, b"EAHD": 68, b"FRHP": 142, b"FSHD": 78}
    SEARCHED = 410  # a structure with a sum is not longer, or its sum stays as it is

    def __init__(self):
        super().__init__("hdf5", "hdf5", files(DATA / "hdf5", "*.h5"))
        self.sealed = {}

    def heads(self, data):
        return [(m.start(), m[0]) for m in self.HEADS.finditer(data)]

    def fields(self, data):
        """Where a structure begins, and all words that could be an offset or a size in this file."""
        found = [(at + k, size, "<") for at, _ in self.heads(data) for k in range(4, 40)
                 for size in (1, 2, 8) if k % size == 0]
        for at in range(0, len(data) - 8, 8):
            word = int.from_bytes(data[at:at + 8], "little")
            if 0 < word < 4 * len(data) or word == (1 << 64) - 1:
                found += [(at, 8, "<"), (at, 2, "<"), (at + 2, 2, "<")]
        return found

    def cuts(self, data):
        return [at for at, _ in self.heads(data)]

    def length(self, data, at, head):
        """Of what the sum behind it is of; 0 where none is found."""
        if head == b"OHDR":
            flags = data[at + 5]
            size = 6 + (16 if flags & 32 else 0) + (4 if flags & 16 else 0) + (1 << (flags & 3))
            tries = [size + int.from_bytes(data[at + size - (1 << (flags & 3)):at + size], "little")]
        elif head == b"\x89HDF":
            tries = [44]
        elif head in (b"TREE", b"SNOD", b"HEAP", b"GCOL"):
            tries = []
        else:
            tries = [self.SIZES[head]] if head in self.SIZES else range(8, self.SEARCHED)
        for size in tries:
            if sums.lookup3(data[at:at + size]) == u32(data, at + size):
                return size
        return 0

    def repair(self, data, seed):
        if seed not in self.sealed:
            found = [(at, head, self.length(seed, at, head)) for at, head in self.heads(seed)]
            self.sealed[seed] = [part for part in found if part[2]]
        data = bytearray(data)
        for at, head, size in self.sealed[seed]:
            if data[at:at + 4] == head and at + size + 4 <= len(data):
                data[at + size:at + size + 4] = sums.lookup3(data[at:at + size]).to_bytes(4, "little")
        return bytes(data)


# ---- numpy, tables and indexes ---------------------------------------------------------------------------


class Npy(Text):
    def __init__(self):
        super().__init__("npy", "npy", files(DATA / "npy", "*.npy") + files(CORPUS / "npy"))

    def fields(self, data):
        return [(6, 1, "<"), (7, 1, "<"), (8, 2, "<"), (8, 4, "<"), *digits(data, 512) * 3]

    def cuts(self, data):
        return [10, 64, 128]


class Table(Text):
    """Beside the files that it names."""

    def __init__(self, name, pattern):
        super().__init__(name, name, files(DATA / "manifest", pattern))
        self.path = f"mutant.{name}"

    def prepare(self, folder, ask):
        for file in (DATA / "manifest").glob("**/*.jpg"):
            target = folder / file.relative_to(DATA / "manifest")
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(file.read_bytes())


class Annotations(Text):
    """Masks, boxes and keypoints of images; JSON and XML are all on a line, so parts begin at their brackets."""

    def __init__(self, name):
        super().__init__(name, name, files(CORPUS / name))

    def cuts(self, data):
        return [m.start() for m in re.finditer(rb"[\n\[{<,]", data)]


class Index(Format):
    """Kept for an archive, which is whole: `path` is the index, `archive` what is opened."""

    def __init__(self, kind, data):
        super().__init__(f"{kind} index", kind, [])
        self.archive, self.data, self.path = f"whole.{kind}", data, f"whole.{kind}.stoker-index"

    def prepare(self, folder, ask):
        (folder / self.archive).write_bytes(self.data)
        os.utime(folder / self.archive, (1_600_000_000, 1_600_000_000))
        ask(self.way, folder / self.archive)
        self.seeds = [(folder / self.path).read_bytes()]

    def fields(self, data):
        return [(at, 8, "<") for at in range(0, len(data) - 7, 8)] + [(at, 4, "<") for at in range(0, len(data) - 3, 4)]

    def cuts(self, data):
        return list(range(0, len(data), 8))

    def repair(self, data, seed):
        data = bytearray(data)
        if len(data) >= 24:
            data[16:24] = len(data).to_bytes(8, "little")
            data[12:16] = sums.crc32c(data[16:]).to_bytes(4, "little")
        return bytes(data)


class TreeIndex(Index):
    """Kept for a folder of images, in another folder."""

    def __init__(self):
        super().__init__("tree", b"")
        self.way, self.archive = "kept", "tree"

    def prepare(self, folder, ask):
        for i, name in enumerate(("cat/a.jpg", "cat/b.jpg", "dog/c.png", "dog/in/d.png")):
            target = folder / "tree" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(files(CORPUS / ("png" if i > 1 else "jpeg"))[i])
        for _ in range(100):  # an index is kept once the folders have settled
            ask("kept", folder / "tree")
            kept = list((folder / "tree.index").glob("*.stoker-index"))
            if kept:
                self.path = os.path.relpath(kept[0], folder)
                self.seeds = [kept[0].read_bytes()]
                return
            time.sleep(0.1)
        raise RuntimeError("no index was kept")


class Foreign(Text):
    """Another program's index beside a tar file."""

    def __init__(self):
        super().__init__("idx", "tar", files(CORPUS / "tar_idx"))
        self.archive, self.path = "other.tar", "other.tar.idx"

    def prepare(self, folder, ask):
        (folder / self.archive).write_bytes(tar(list(samples()), format=tarfile.USTAR_FORMAT))


# ---- compressed as a whole, and packs ----------------------------------------------------------------------


def zstd(data):
    """A frame of zstd whose blocks are stored as they are."""
    blocks = [data[at:at + 65536] for at in range(0, len(data), 65536)] or [b""]
    out = bytes.fromhex("28b52ffd e0") + len(data).to_bytes(8, "little")  # one segment, its size in 8 bytes
    for number, block in enumerate(blocks):
        out += ((number == len(blocks) - 1) | len(block) << 3).to_bytes(3, "little") + block
    return out


class Squeezed(Format):
    """The outer format of what is compressed as a whole: gzip or zstd."""

    def __init__(self, name, way, seeds):
        super().__init__(name, way, seeds)
        self.path = f"mutant.{name}"

    def fields(self, data):
        ends = [*range(min(24, len(data))), *range(max(0, len(data) - 12), len(data))]
        return [(at, size, "<") for at in ends for size in (1, 2, 3, 4, 8)]

    def cuts(self, data):
        return [10, 18, len(data) // 2, max(0, len(data) - 8)]


class SqueezedTable(Squeezed):
    prepare = Table.prepare


class Pack(Text):
    """The manifest of a folder that `stoker pack` wrote; its shards are whole."""

    SHARDS = 2

    def __init__(self):
        super().__init__("pack", "plain", [])
        self.archive, self.path = "packed", "packed/manifest.json"

    def prepare(self, folder, ask):
        (folder / self.archive).mkdir()
        lines, first = [], 0
        members = list(samples())
        for number in range(self.SHARDS):
            data, name = tar(members, format=tarfile.USTAR_FORMAT), f"shard-{number:06}.tar"
            (folder / self.archive / name).write_bytes(data)
            lines.append(f'{{"name": "{name}", "first": {first}, "positions": 3, "samples": 3, "bytes": {len(data)}, '
                         f'"crc32c": "{sums.crc32c(data):08x}", "source": "0123456789abcdef"}}')
            first += 3
        text = ('{\n"stoker_pack": 1,\n"settings": {"source": "in", "source_samples": 6, "fields": "", "format": "tar"},\n'
                '"source_archives": "0123456789abcdef",\n"complete": true,\n"samples": 6,\n"bad": 0,\n'
                f'"bytes": {2 * len(data)},\n"ledger_size": 0,\n"classes": [\n{{"class": "cat"}},\n{{"class_hex": "ff"}},\n'
                '{"class": "dog"}\n],\n"shards": [\n' + ",\n".join(lines) + "\n]\n}\n").encode()
        self.seeds = [text, *files(CORPUS / "pack_manifest")]
