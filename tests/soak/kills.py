# SPDX-License-Identifier: Apache-2.0
"""`stoker pack` killed, or let down by the disk, at every call that writes: the same command then goes on, and the end
is as if nothing had been. Speaks TAP.

    kills.py STOKER SHIM [--seconds S] [--seed N] [--every K] [--keep FOLDER] [--only CASE ...]

SHIM is the library of shim.c: it kills the process right before call number N, or when half of that write is done, or
lets the call fail. Runs of calls that write rows to the same file are long and all alike: of these the first, the last
and some in the middle are taken; all others, and so every call of a checkpoint, each in its turn. What is packed with
faults is compared with what an uninterrupted run writes. FOLDER (build/kills) must be on a disk, because calls in memory
take other ways; what ends badly is kept there, with the command that repeats it.
"""

from __future__ import annotations

import argparse
import itertools
import os
import pathlib
import random
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from typing import NamedTuple

TESTS = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(TESTS / "mutants"))

import archives
from faults import EMULATOR, preload, share_of

# An output of one piece is checkpointed after each 1,000 samples; shards are small.
SINGLE, SHARDED = 2050, 120
BAD = {7, 999, 1000, 1500}
FORMATS = {"tar": (SHARDED, ["--shard-size", "40K"]), "tfrecord": (SHARDED, ["--format", "tfrecord", "--shard-size", "8K"]),
           "lmdb": (SINGLE, ["--format", "lmdb"]), "hdf5": (SINGLE, ["--format", "hdf5"]),
           "npy": (SINGLE, ["--format", "npy"])}
KILLS = ["kill", "torn"]
KINDS = [*KILLS, "eio", "enospc", "eintr", "short", "chain"]
ALIKE = 6  # calls in a row on the same file, above which only some are taken
MEMORY = {"tmpfs", "ramfs"}


class Case(NamedTuple):
    form: str
    kind: str

    def __str__(self):
        return f"{self.form}, {self.kind}"


# Calls of libraries, on these files: liblmdb takes an interrupted call or a part of a write for an error, and libhdf5 an
# interrupted ftruncate. The next run goes on.
GIVES_UP = {Case("lmdb", "eintr"): "data.mdb", Case("lmdb", "short"): "data.mdb", Case("hdf5", "eintr"): "data.h5"}


def png(number):
    """An image of 8 x 6 pixels."""
    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    lines = b"".join(b"\0" + bytes((number * 31 + i * 7 + y) % 256 for i in range(24)) for y in range(6))
    head = struct.pack(">IIBBBBB", 8, 6, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def write_source(path, count):
    images = [png(number) for number in range(16)]
    members = []
    for i in range(count):
        members += [(f"{i:05}.png", b"no image" if i in BAD else images[i * 7 % 16]), (f"{i:05}.cls", b"%d" % i)]
    path.write_bytes(archives.tar(members))


def file_system(path):
    """The type of the file system that holds this folder."""
    best = ("", "")
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind = line.split()[:3]
        if path.is_relative_to(where.replace("\\040", " ")) and len(where) >= len(best[0]):
            best = (where, kind)
    return best[1]


def contents(folder):
    """Without indexes, which go by the archive's inode and time and may be missing, and without the lock, which may stay
    where a disk fails: only whether it is held counts."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*"))
            if path.suffix != ".stoker-index" and path.name != ".stoker-pack-lock"}


def chosen(calls, chance):
    """Numbers of the calls to take."""
    numbers = []
    for _, run in itertools.groupby(calls, key=lambda call: call[1:]):
        run = [int(call[0]) for call in run]
        if len(run) > ALIKE:
            run = sorted({*run[:2], *chance.sample(run, 2), *run[-2:]})
        numbers += run
    return numbers


class Campaign:
    def __init__(self, options):
        self.options, self.root = options, options.keep.absolute()
        self.stoker = os.path.abspath(options.stoker)
        self.preload = preload(self.stoker, os.path.abspath(options.shim))
        self.out, self.chance = self.root / "out", random.Random(options.seed)
        self.whole, self.calls = {}, {}
        self.fired = 0
        self.bad = []
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True)
        for count in (SINGLE, SHARDED):
            write_source(self.root / f"{count}.tar", count)

    def command(self, form, out):
        count, more = FORMATS[form]
        return [self.stoker, "pack", str(self.root / f"{count}.tar"), str(out), "--on-error", "skip", "--workers",
                "1", "--quiet", *more]

    def pack(self, form, out, fault=None, log=None):
        environment = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        if fault:
            environment |= {"LD_PRELOAD": self.preload, "STOKER_FAULT": fault, "STOKER_FAULT_UNDER": str(out)}
        if log:
            environment["STOKER_FAULT_LOG"] = str(log)
        return subprocess.run(self.command(form, out), env=environment, capture_output=True, text=True, timeout=600,
                              check=False)

    def prepare(self, case):
        """What an uninterrupted run writes, and its calls; False where the format is missing."""
        if case.form not in self.whole:
            out = self.root / f"whole-{case.form}"
            got = self.pack(case.form, out)
            self.whole[case.form] = contents(out) if got.returncode == 3 else None
            if got.returncode not in (2, 3):
                raise RuntimeError(got.stderr)
        kind = "kill" if case.kind == "chain" else case.kind
        if self.whole[case.form] is not None and (case.form, kind) not in self.calls:
            log = self.root / f"calls-{case.form}-{kind}"
            shutil.rmtree(self.out, ignore_errors=True)
            self.pack(case.form, self.out, f"{kind}:0", log)
            self.calls[case.form, kind] = [line.split("\t") for line in log.read_text().splitlines()]
        return self.whole[case.form] is not None

    def differs(self, form):
        """From what an uninterrupted run writes; None if it is the same."""
        found, whole = contents(self.out), self.whole[form]
        if sorted(found) != sorted(whole):
            return f"files {sorted(found)} instead of {sorted(whole)}"
        other = [name for name in found if found[name] != whole[name]]
        return f"other bytes in {other}" if other else None

    def after_kill(self, form, got):
        if got.returncode != -signal.SIGKILL:
            return f"status {got.returncode}: {got.stderr}"
        # A file that has its name is whole; notes about the run are not part of the result.
        notes = {"manifest.json", "bad_samples.jsonl"}
        cut = [name for name, data in contents(self.out).items()
               if name[0] != "." and name not in notes and data != self.whole[form].get(name)]
        return f"not whole: {cut}" if cut else None

    def after_fault(self, case, got):
        if got.returncode == 3:
            return self.differs(case.form)
        if case.kind in ("eintr", "short") and GIVES_UP.get(case, "nothing") not in got.stderr:
            return f"an error that should not be: {got.stderr}"
        clean = got.returncode == 1 and got.stderr.count("\n") == 1 and str(self.out) in got.stderr
        return None if clean else f"status {got.returncode}: {got.stderr}"

    def once(self, case, number):
        """What is wrong, or None."""
        shutil.rmtree(self.out, ignore_errors=True)
        got = self.pack(case.form, self.out, f"{case.kind}:{number}")
        self.fired += 1
        wrong = self.after_kill(case.form, got) if case.kind in KILLS else self.after_fault(case, got)
        return wrong or self.resumed(case.form)

    def chain(self, case):
        """Killed several times in a row."""
        shutil.rmtree(self.out, ignore_errors=True)
        numbers = [self.chance.choice(self.calls[case.form, "kill"])[0] for _ in range(5)]
        for number in numbers:
            got = self.pack(case.form, self.out, f"kill:{number}")
            if got.returncode != -signal.SIGKILL:
                break  # what was left to do took fewer calls
            self.fired += 1
        return numbers, self.resumed(case.form)

    def resumed(self, form):
        got = self.pack(form, self.out)
        if got.returncode != 3:
            return f"cannot be resumed: {got.stderr}"
        return self.differs(form)

    def report(self, case, numbers, wrong):
        kept = self.root / f"bad-{len(self.bad)}"
        if self.out.exists():
            self.out.rename(kept)
        kind = "kill" if case.kind == "chain" else case.kind
        place = [f"LD_PRELOAD={shlex.quote(self.preload)}", f"STOKER_FAULT_UNDER={self.out}"]
        command = shlex.join(self.command(case.form, self.out))
        self.bad.append(f"{case}, call {' '.join(map(str, numbers))}: {wrong}".strip())
        print(f"# {self.bad[-1]}".replace("\n", " "), f"#   {kept}", *(
            f"#   {' '.join(place)} STOKER_FAULT={kind}:{number} {command}" for number in numbers), sep="\n", flush=True)

    def series(self, case, enough):
        """Each call in its turn, until there has been enough."""
        if not self.prepare(case):
            return f" # SKIP this build has no {case.form}"
        if case.kind == "chain":
            for _ in range(max(1, 10 // self.options.every)):
                numbers, wrong = self.chain(case)
                if wrong:
                    self.report(case, numbers, wrong)
            return ""
        for number in chosen(self.calls[case], self.chance)[::self.options.every]:
            if enough():
                break
            wrong = self.once(case, number)
            if wrong:
                self.report(case, [number], wrong)
        return ""


def parse():
    parser = argparse.ArgumentParser()
    for name in ("stoker", "shim"):
        parser.add_argument(name)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("build/kills"))
    parser.add_argument("--only", nargs="+", default=[])
    return parser.parse_args()


def main():
    options = parse()
    if EMULATOR:
        print("1..0 # SKIP the emulator would load the shim, not the program")
        return False
    options.every = share_of(options.every)
    campaign = Campaign(options)
    if file_system(campaign.root) in MEMORY:
        print("1..0 # SKIP", campaign.root, "is in memory: name a folder on a disk with --keep")
        return options.seconds is not None
    cases = [Case(form, kind) for form in FORMATS for kind in KINDS]
    cases = [case for case in cases if not options.only or str(case).startswith(tuple(options.only))]
    start, done = time.monotonic(), 0

    def enough():
        return options.seconds is not None and time.monotonic() - start >= options.seconds

    while not done or (options.seconds is not None and not enough()):
        for case in campaign.chance.sample(cases, len(cases)) if options.seconds is not None else cases:
            if done and enough():
                break
            before, done = len(campaign.bad), done + 1
            skipped = campaign.series(case, enough)
            if options.seconds is None:
                print(f"{'ok' if len(campaign.bad) == before else 'not ok'} {done} - {case}{skipped}", flush=True)
    if options.seconds is None:
        print(f"1..{done}")
    print(f"# kills: {campaign.fired:,} kills and faults in {done:,} series, {len(campaign.bad)} wrong")
    return len(campaign.bad) > 0


if __name__ == "__main__":
    raise SystemExit(main())
