# SPDX-License-Identifier: Apache-2.0
"""Faults below the reader, at every call number once: whatever fails, rows are right or there is an error that names
the file. Speaks TAP.

    faults.py ROWS SHIM STOKER [--seconds S] [--seed N] [--every K] [--keep FOLDER] [--only CASE ...]

ROWS is the program of rows.c, SHIM the library of shim.c. A run loads a small dataset while call 1 goes wrong, the next
while call 2 does, until there are no more calls: of read, pread, open, stat, mmap, write, rename, ... of the C library,
of io_uring, and of libcurl's sockets; and requests 1, 2, ... to a server that breaks them. An interrupted call and a
short read must go unnoticed; so must what a server breaks once. After each fault the dataset is loaded again without
one: what was kept beside it (an index, blocks of a cache) must be right, too. With --every K only every K-th series is
run, and in it every K-th call goes wrong, except where one once did; with --seconds datasets are taken in a random order
until the time is up. Runs that end badly are listed with the command that repeats them, for which the datasets stay in
FOLDER (build/faults).
"""

from __future__ import annotations

import argparse
import os
import pathlib
import random
import shlex
import shutil
import subprocess
import sys
import time
from typing import NamedTuple

import datasets
import server

EMULATOR = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))
KINDS = ["eio", "eintr", "short", "enospc"]
SURE = {"eintr", "short", *server.SURE}  # must succeed
# Once went wrong: these series are whole even with --every.
FOUND = ("folder, inline, eintr", "tar, by URL, short", "hdf5 chunks, inline, eio", "hdf5 variable, inline, eio",
         "pack unfinished, inline, eio")
LEFT_OVER = 3  # runs without a fault that end a series: how many calls there are depends on threads
LACKING = "this build "  # a library that it was built without


class Answer(NamedTuple):
    calls: int
    fired: bool
    sums: str
    outcome: str
    message: str


class Rows:
    """The program, started with the shim."""

    def __init__(self, command, shim):
        self.command = [command]
        self.environment = {"LD_PRELOAD": preload(command, shim)}
        # Thousands of short runs: the search for leaks takes longer than all else, and the C tests have it.
        sane = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        errors="replace", env={**os.environ, **self.environment, "ASAN_OPTIONS": sane})

    def ask(self, words):
        print(*words, sep="\t", file=self.process.stdin, flush=True)
        calls, fired, sums, outcome, message = self.process.stdout.readline().rstrip("\n").split("\t")
        return Answer(int(calls), fired == "1", sums, outcome, message)

    def again(self, words):
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in self.environment.items())
        return f"{settings} {shlex.join([*self.command, *map(str, words)])}"

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def preload(command, shim):
    """A sanitizer wants to be the first library."""
    linked = subprocess.run(["ldd", command], capture_output=True, text=True, check=False).stdout
    sanitizers = [line.split()[2] for line in linked.splitlines() if "libasan.so" in line or "libtsan.so" in line]
    return " ".join([*sanitizers, str(shim)])


class Case(NamedTuple):
    """A dataset, and how it is read."""

    data: datasets.Dataset
    backend: str
    kind: str
    cold: bool  # an index is built and kept
    remote: bool = False

    def __str__(self):
        where = "by URL" if self.remote else self.backend
        return f"{self.data.name}, {where}, {self.kind}{', no index yet' if self.cold else ''}"


def all_cases(made):
    """Each dataset by each way to read, with each kind of fault."""
    cases = []
    for data in made:
        for kind in KINDS:
            cases.append(Case(data, "inline", kind, True))
            if kind != "enospc":
                cases += [Case(data, backend, kind, False) for backend in ("pool", "uring")]
        if data.path.is_file():
            cases += [Case(data, "", kind, True, True) for kind in ("eio", "eintr", "short", *server.FAULTS)]
    return cases


class Campaign:
    def __init__(self, options):
        self.options, self.root = options, options.keep.absolute()
        self.runs = self.fired = 0
        self.bad = []
        shutil.rmtree(self.root, ignore_errors=True)
        self.made = self.root / "data"
        self.made.mkdir(parents=True)
        self.datasets = datasets.make_all(self.made, options.stoker)
        self.server = server.Server(self.made)
        self.rows = Rows(os.path.abspath(options.rows), os.path.abspath(options.shim))
        self.wanted = {}
        self.ways = {}  # by which datasets are read: what the first run without a fault answered

    def words(self, case, number, quiet=False):
        """Of one run. The index and the cache are in folders of their own, on which calls go wrong as well. Bad samples
        are skipped, so that one that is taken for bad shows in the rows; a file of a table may be, if the server lies."""
        data, kind = case.data, "none" if quiet else case.kind
        uri = data.path
        if case.remote:
            uri = self.server.uri(data.path)
            self.server.arm(kind if kind in server.FAULTS else "none", number)
        uri = f"{data.kind}:{uri}" if data.kind else uri
        lied = case.kind in server.LIES and data.name in ("csv", "jsonl")
        patience = 2000 if case.kind == "stall" else 0
        return [kind, number, self.root, case.backend, uri, data.fields, self.root / "index",
                self.root / "cache" if case.remote else "", patience, "raise" if lied else "skip"]

    def run(self, case, number, quiet=False):
        self.runs += 1
        words = self.words(case, number, quiet)
        answer = self.rows.ask(words)
        if not quiet and case.kind in server.FAULTS:
            answer = answer._replace(fired=self.server.fired)
        return answer, words

    def forget(self):
        """Indexes and caches of earlier runs."""
        for name in ("index", "cache"):
            shutil.rmtree(self.root / name, ignore_errors=True)
            (self.root / name).mkdir()

    def verdict(self, case, answer, wanted):
        """What is wrong with it, or None."""
        whole = wanted.sums.split(",")
        got = answer.sums.split(",") if answer.sums else []
        if answer.outcome not in ("ok", "error"):
            return answer.outcome
        if case.data.refused:
            return None if answer.outcome == "error" else "is not refused"
        if got != whole[:len(got)]:
            return "wrong rows"
        if answer.outcome == "ok":
            return None if got == whole else "rows are missing"
        if case.kind in SURE:
            return f"an error that should not be: {answer.message}"
        named = (case.data.path.name, str(self.root), self.server.uri(self.made))
        return None if any(name in answer.message for name in named) else f"names no file: {answer.message}"

    def series(self, case):
        """One fault after the other. Returns what follows the test's name."""
        self.forget()
        if case.data not in self.wanted:
            self.wanted[case.data] = self.run(case._replace(backend="inline", remote=False), 0, quiet=True)[0]
        wanted = self.wanted[case.data]
        way = "by URL" if case.remote else case.backend
        if way not in self.ways:
            self.ways[way] = self.run(case, 0, quiet=True)[0]
        for answer in (wanted, self.ways[way]):
            if answer.outcome == "error" and LACKING in answer.message:
                return f" # SKIP {answer.message}"
        if wanted.outcome != ("error" if case.data.refused else "ok"):
            self.bad.append(f"{case}, without a fault: {wanted.outcome} {wanted.message}")
            print(f"# {self.bad[-1]}", flush=True)
            return ""
        step = 1 if str(case).startswith(FOUND) else self.options.every
        number, without = 1, 0
        while without < (LEFT_OVER if step == 1 else 1):
            if case.cold:
                self.forget()
            answer, words = self.run(case, number)
            without = 0 if answer.fired else without + 1
            self.fired += answer.fired
            wrong = self.verdict(case, answer, wanted)
            if wrong is None and answer.fired and case.cold:  # what this run kept
                after, _ = self.run(case, number, quiet=True)
                wrong = self.verdict(case._replace(kind="short"), after, wanted)
                wrong = wrong and f"in the run after it: {wrong}"
            if wrong:
                self.bad.append(f"{case}, call {number}: {wrong}")
                print(f"# {self.bad[-1]}\n#   {self.again(case, words)}", flush=True)
            number += step if answer.fired else 1
        return ""

    def again(self, case, words):
        """The command that repeats it: a run by URL needs our server."""
        if not case.remote:
            return self.rows.again(words)
        own = [sys.executable, __file__, self.options.rows, self.options.shim, self.options.stoker]
        return shlex.join([*map(str, own), "--only", str(case)])

    def close(self):
        self.rows.close()
        self.server.close()


def share_of(every):
    """As in tap.h: STOKER_TEST_SHARE percent of the repetitions."""
    return max(1, int(every * 100 / float(os.environ.get("STOKER_TEST_SHARE", "100"))))


def parse():
    parser = argparse.ArgumentParser()
    for name in ("rows", "shim", "stoker"):
        parser.add_argument(name)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("build/faults"))
    parser.add_argument("--only", nargs="+", default=[])
    return parser.parse_args()


def main():
    options = parse()
    if EMULATOR:
        print("1..0 # SKIP the emulator would load the shim, not the program")
        return False
    options.every = share_of(options.every)
    campaign = Campaign(options)
    cases = all_cases(campaign.datasets)
    cases = [case for case in cases if not options.only or str(case).startswith(tuple(options.only))]
    cases = [case for number, case in enumerate(cases) if number % options.every == 0 or str(case).startswith(FOUND)]
    start, done = time.monotonic(), 0
    chance = random.Random(options.seed)
    while not done or (options.seconds and time.monotonic() - start < options.seconds):
        order = chance.sample(cases, len(cases)) if options.seconds else cases
        for case in order:
            if options.seconds and done and time.monotonic() - start >= options.seconds:
                break
            before = len(campaign.bad)
            skipped = campaign.series(case)
            done += 1
            if not options.seconds:
                print(f"{'ok' if len(campaign.bad) == before else 'not ok'} {done} - {case}{skipped}", flush=True)
        if not options.seconds:
            print(f"1..{done}")
    campaign.close()
    print(f"# faults: {campaign.fired:,} faults in {campaign.runs:,} runs of {done:,} series, {len(campaign.bad)} wrong")
    return len(campaign.bad) > 0


if __name__ == "__main__":
    raise SystemExit(main())
