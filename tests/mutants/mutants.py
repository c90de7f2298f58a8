# SPDX-License-Identifier: Apache-2.0
"""Damaged datasets of every format: none may crash, hang, or take more memory than it is allowed. Speaks TAP.

    mutants.py MUTANT [--count N | --seconds S] [--first N] [--jobs N] [--keep FOLDER] [--only FORMAT [NUMBER]]

MUTANT is the program of mutant.c. N mutants in all, or as many as S seconds allow, numbered from --first; they are the
same every time: mutant NUMBER of a format depends on nothing else. Before mutant 0 come the files of found/, which once
ended badly. Those that do so now are kept in FOLDER (build/mutants), with the command that tries them again.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import functools
import gzip
import os
import pathlib
import random
import shlex
import shutil
import subprocess
import tempfile
import time

import archives
import media
from archives import DATA, files
from change import changed

CLEAN = ("ok", "bad", "refused")
FOUND = pathlib.Path(__file__).parent / "found"
EMULATOR = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))


def squeeze(data):
    return gzip.compress(data, 1, mtime=0)


@functools.cache
def formats():
    tar = archives.Tar()
    return [
        tar, archives.Tar("tar.gz", squeeze), archives.Tar("tar.zst", archives.zstd),
        archives.Squeezed("gz", "tar", [squeeze(tar.seeds[0])]),
        archives.Squeezed("zst", "npy", files(DATA / "npy", "*.zst")),
        archives.SqueezedTable("csv.gz", "csv", files(DATA / "manifest", "*.gz")), archives.Pack(), archives.Records(),
        archives.Hdf5(),
        archives.Lmdb(), archives.Zip("zip", "zip", files(DATA / "zip", "*.zip")),
        archives.Zip("npz", "npz", files(DATA / "npz", "*.npz")), archives.Npy(), archives.Table("csv", "*.[ct]sv"),
        archives.Table("jsonl", "*.jsonl"), archives.Index("tar", tar.seeds[0]),
        archives.Index("tfrecord", (DATA / "tfrecord" / "examples.tfrecord").read_bytes()), archives.TreeIndex(),
        archives.Foreign(), media.Jpeg("jpeg"), media.Jpeg("crop_ready"),
        media.Png("png"), media.Riff("webp"), media.Bmp("bmp"), media.Pnm("pnm"),
        *map(archives.Annotations, ("coco", "voc", "yolo", "yolo-polygons", "yolo-keypoints")),
        media.Tiff("tiff"), media.Riff("wav", media.sounds("*.wav")), media.Flac("flac", media.sounds("*.flac")),
        media.Ogg("ogg", media.sounds("*.ogg")), media.Mp3("mp3", media.sounds("*.mp3")),
    ]


class Program:
    """One that reads mutants, with a folder to write them to."""

    def __init__(self, command, folder):
        self.folder = folder
        quiet = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":allocator_may_return_null=1")
        self.process = subprocess.Popen([*EMULATOR, command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL, env=quiet, errors="replace")

    def ask(self, way, path):
        print(way, path, file=self.process.stdin, flush=True)
        return self.process.stdout.readline().strip() or "died with its parent"

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def make(form, number):
    chance = random.Random(f"{form.name} {number}")
    seed = chance.choice(form.seeds)
    data = changed(chance, seed, form.seeds, form.fields, form.cuts, form.text)
    return form.repair(data, seed) if chance.random() < 0.8 else data


def keep(form, number, data, program, folder):
    """The mutant and what it stands beside; the command that reads it again."""
    place = folder / f"{form.name.replace(' ', '-')}-{number}"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(program.folder, place)
    (place / form.path).write_bytes(data)
    return f"{' '.join(program.process.args)} {form.way} {place / getattr(form, 'archive', form.path)}"


def try_some(command, name, numbers, folder):
    """How often each outcome came, and what ended badly."""
    form = next(f for f in formats() if f.name == name)
    counts, bad = collections.Counter(), []
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="stoker-mutants-", dir=memory) as own:
        program = Program(command, pathlib.Path(own))
        form.prepare(program.folder, program.ask)
        found = sorted(FOUND.glob(f"{name}.*")) if 0 in numbers else []
        for number in [*(file.name for file in found), *numbers]:
            data = make(form, number) if isinstance(number, int) else (FOUND / number).read_bytes()
            target = program.folder / form.path
            target.write_bytes(data)
            answer = program.ask(form.way, program.folder / getattr(form, "archive", form.path))
            outcome = answer.split(" ")[0]
            counts[outcome] += 1
            if outcome not in CLEAN:
                bad.append((number, answer, keep(form, number, data, program, folder)))
                if program.process.poll() is not None:
                    program = Program(command, program.folder)
        program.close()
    return name, counts, bad


def rounds(names, first, until):
    """Some of each format, again and again, while there is time."""
    step = 25
    while time.monotonic() < until:
        for name in names:
            yield name, range(first, first + step)
        first += step


def done_by(pool, work, jobs):
    """Results, with only a little work waiting: it may never end."""
    waiting = collections.deque()
    for one in work:
        waiting.append(pool.submit(try_some, *one))
        if len(waiting) > 2 * jobs:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mutant")
    parser.add_argument("--count", type=int, default=2400)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("build/mutants"))
    parser.add_argument("--only", nargs="+", default=[])
    options = parser.parse_args()
    names = [f.name for f in formats() if not options.only or f.name == options.only[0]]
    count = int(options.count * float(os.environ.get("STOKER_TEST_SHARE", "100")) / 100)
    if EMULATOR:  # translates the program anew in each process
        count = min(count, 5 * len(names))
    each = range(options.first, options.first - (-count // len(names)))
    if len(options.only) > 1:
        each = range(int(options.only[1]), int(options.only[1]) + 1)
    step = 500
    work = [(name, each[k:k + step]) for k in range(0, len(each), step) for name in names]
    totals, bad, start = collections.defaultdict(collections.Counter), 0, time.monotonic()
    until = None if options.seconds is None else start + options.seconds
    if until is not None:
        work = rounds(names, options.first, until)
    command = os.path.abspath(options.mutant)
    with concurrent.futures.ProcessPoolExecutor(options.jobs) as pool:
        for name, counts, failed in done_by(pool, ((command, *w, options.keep.absolute()) for w in work), options.jobs):
            totals[name] += counts
            bad += len(failed)
            for number, answer, again in failed:
                print(f"# {name} {number}: {answer}\n#   {again}", flush=True)
    for i, name in enumerate(names):
        counts = totals[name]
        clean = sum(counts[kind] for kind in CLEAN)
        total = sum(counts.values())
        print(f"{'ok' if clean == total else 'not ok'} {i + 1} - {name}: {total} mutants, {counts['ok']} read, "
              f"{counts['bad']} with bad samples, {counts['refused']} refused"
              + "".join(f", {n} {kind}" for kind, n in counts.items() if kind not in CLEAN))
    print(f"# {sum(sum(c.values()) for c in totals.values())} mutants in {time.monotonic() - start:.1f} s")
    print(f"1..{len(names)}")
    return bad > 0


if __name__ == "__main__":
    raise SystemExit(main())
