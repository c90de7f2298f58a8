#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds of fuzz_doctor.c: tests/fuzz/corpus/doctor"""
import struct
from pathlib import Path

CORPUS = Path(__file__).resolve().parent / "corpus" / "doctor"
NEXT, STALL, STEP, ITER, PIN, COPY, SYNC, SAVE, GC, EPOCH, FETCH, READ, PUT, OPENED, SLOWEST, DISCARDED, SHARED = [
    *range(1, 11), 16, 17, 23, 24, 25, 26, 27]
MS = 10**6


def event(kind, start, dur, batch=0, a=0, b=0, loader=0):
    return struct.pack("=QQIHHII", start, dur, batch, kind, loader, a, b)


def events(records, capacity, written=None):
    written = len(records) if written is None else written
    header = struct.pack("=8sIIQQQ", b"stkrev1", 32, 7, capacity, written, 1000).ljust(4096, b"\0")
    return header + b"".join(records).ljust(32 * capacity, b"\0")


def steps(count, epochs=1, workers=0):
    out, now = [], 1000 * MS
    for _ in range(epochs):
        out.append(event(ITER, now, 5 * MS, a=workers))
        now += 5 * MS
        for batch in range(count):
            if not workers:
                out += [event(FETCH, now, 9 * MS, batch, 8, 5000), event(READ, now, MS, batch, 8, 10)]
                out += [event(OPENED, now, 0, batch, 8, 100), event(SLOWEST, now, 3 * MS, batch, 4)]
                out += [event(DISCARDED, now, MS // 2, batch, READ), event(SHARED, now, MS // 4, batch, 2, 20)]
            out.append(event(NEXT, now, 10 * MS, batch, 1, 8 | (0 if batch else 4) | 700 << 8))
            out += [event(COPY, now + 11 * MS, MS, a=64, b=1), event(STEP, now + 15 * MS, MS)]
            out.append(event(STALL, now, 8 * MS, batch))
            now += 30 * MS
        out.append(event(EPOCH, now, MS))
        out += [event(SAVE, now + MS, 50 * MS), event(NEXT, now + 60 * MS, MS, 0, 0, 4, loader=1)]
        now += 100 * MS
    return out


def write(name, said, data):
    CORPUS.mkdir(parents=True, exist_ok=True)
    text = said.encode()
    (CORPUS / name).write_bytes(struct.pack("<H", len(text)) + text + data)


SAID = "role trainer\nloader.0.workers 0\nloader.0.batch_size 8\nloader.0.batches 12\nloader.0.samples 96\n"
write("inline", SAID, events(steps(12, 2), 256))
write("workers", SAID.replace("workers 0", "workers 3") + "loader.0.prefetch 2\n", events(steps(15, 1, 3), 128))
write("round", "role trainer\na\\nb \\\\\n", events(steps(20)[:64], 64, 1000))
write("cut", SAID, events(steps(4), 64)[:-40])
write("empty", "", b"")
