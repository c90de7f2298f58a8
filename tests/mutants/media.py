# SPDX-License-Identifier: Apache-2.0
"""Images and sounds, as mutants know them: seeds, where their numbers and parts lie, and their sums put right."""

from __future__ import annotations

import re
import zlib

import sums
from archives import CORPUS, Format, Text, digits, files


class Media(Format):
    def __init__(self, name, seeds=None):
        super().__init__(name, "file", seeds or files(CORPUS / name))


class Jpeg(Media):
    def marks(self, data):
        return [m.start() for m in re.finditer(rb"\xff[\xc0-\xfe]", data)]

    def fields(self, data):
        found = []
        for at in self.marks(data):
            found += [(at + 1, 1, ">"), (at + 2, 2, ">")]
            if data[at + 1] in (0xC0, 0xC1, 0xC2, 0xC9, 0xCA):
                found += [(at + 4, 1, ">"), (at + 5, 2, ">"), (at + 7, 2, ">")] * 2
            if data[at + 1] != 0xD9:
                found += [(at + k, 1, ">") for k in range(4, 24)]
        return found

    def cuts(self, data):
        return self.marks(data)


class Png(Media):
    def chunks(self, data):
        at, found = 8, []
        while at + 12 <= len(data):
            found.append(at)
            at += 12 + int.from_bytes(data[at:at + 4], "big")
        return found

    def fields(self, data):
        found = [(at + k, size, ">") for at in self.chunks(data) for k, size in ((0, 4), (4, 1), (8, 1), (9, 1))]
        return found + [(16, 4, ">"), (20, 4, ">"), *((k, 1, ">") for k in range(24, 29))] * 2

    def cuts(self, data):
        return self.chunks(data)

    def repair(self, data, seed):
        data = bytearray(data)
        for at in self.chunks(data):
            size = int.from_bytes(data[at:at + 4], "big")
            if size <= len(data) - at - 12:
                data[at + 8 + size:at + 12 + size] = zlib.crc32(data[at + 4:at + 8 + size]).to_bytes(4, "big")
        return bytes(data)


class Riff(Media):
    """WebP and WAV."""

    def chunks(self, data):
        at, found = 12, []
        while at + 8 <= len(data):
            found.append(at)
            at += 8 + (int.from_bytes(data[at + 4:at + 8], "little") + 1 & ~1)
        return found

    def fields(self, data):
        return [(4, 4, "<")] + [(at + k, size, "<") for at in self.chunks(data)
                                for k, size in ((0, 1), (4, 4), *((j, n) for j in range(8, 28, 2) for n in (1, 2, 4)))]

    def cuts(self, data):
        return self.chunks(data)


class Bmp(Media):
    def fields(self, data):
        return [(k, 4, "<") for k in (2, 10, 14, 18, 22, 30, 34, 38, 46, 50, 54, 58)] + [(26, 2, "<"), (28, 2, "<")] * 2

    def cuts(self, data):
        return [14, 54]


class Pnm(Media, Text):
    def fields(self, data):
        return digits(data, 64)

    def cuts(self, data):
        return [m.end() for m in re.finditer(rb"\s", data[:64])]


class Tiff(Media):
    def order(self, data):
        return "<" if data[:2] == b"II" else ">"

    def fields(self, data):
        order, found = self.order(data), [(2, 2, self.order(data)), (4, 4, self.order(data))]
        name = "little" if order == "<" else "big"
        at = int.from_bytes(data[4:8], name)
        count = min(100, int.from_bytes(data[at:at + 2], name))
        for entry in range(at + 2, at + 2 + 12 * count, 12):
            found += [(entry, 2, order), (entry + 2, 2, order), (entry + 4, 4, order), (entry + 8, 4, order),
                      (entry + 8, 2, order)]
            values = int.from_bytes(data[entry + 8:entry + 12], name)
            found += [(values, 4, order), (values + 4, 4, order), (values, 2, order)]
        return found

    def cuts(self, data):
        return [8]


class Flac(Media):
    def fields(self, data):
        found, at = [], 4
        while at + 4 <= min(len(data), 2000):
            found += [(at, 1, ">"), (at + 1, 3, ">"), *((at + k, 2, ">") for k in range(4, 22, 2))]
            at += 4 + int.from_bytes(data[at + 1:at + 4], "big")
        return found + [(m.start() + k, 1, ">") for m in re.finditer(rb"\xff\xf8", data) for k in range(2, 8)]


class Ogg(Media):
    def pages(self, data):
        return [m.start() for m in re.finditer(rb"OggS", data)]

    def fields(self, data):
        return [(at + k, size, "<") for at in self.pages(data)
                for k, size in ((5, 1), (6, 8), (14, 4), (18, 4), (26, 1), *((j, 1) for j in range(27, 60)), (39, 4))]

    def cuts(self, data):
        return self.pages(data)

    def repair(self, data, seed):
        data = bytearray(data)
        for at in self.pages(data):
            count = data[at + 26] if at + 27 <= len(data) else 0
            end = at + 27 + count + sum(data[at + 27:at + 27 + count])
            if end <= len(data):
                data[at + 22:at + 26] = bytes(4)
                data[at + 22:at + 26] = sums.ogg(data[at:end]).to_bytes(4, "little")
        return bytes(data)


class Mp3(Media):
    def fields(self, data):
        return [(m.start() + k, 1, ">") for m in re.finditer(rb"\xff[\xe0-\xff]|Xing|Info|LAME", data) for k in range(1, 36)]


def sounds(pattern):
    return files(CORPUS / "audio", pattern)
