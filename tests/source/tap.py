# SPDX-License-Identifier: Apache-2.0
"""A test is a program that prints "ok 1 - what" lines; and the dump program's answers as Python values."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys

done = failed = 0
# Programs of another architecture run under an emulator, which Meson names.
EMULATOR = shlex.split(os.environ.get("MESON_EXE_WRAPPER", ""))
DUMP = sys.argv[1] if len(sys.argv) > 1 else ""
# Hundreds of short runs: the search for leaks takes longer than all else, and the C tests have it.
ENVIRONMENT = dict(os.environ, ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")


def ok(holds, what):
    global done, failed
    done += 1
    failed += not holds
    print(f"{'ok' if holds else 'not ok'} {done} - {what}", flush=True)
    return holds


def note(text):
    for line in str(text).splitlines():
        print(f"# {line}", flush=True)


def same(got, want, what):
    if not ok(got == want, what):
        note(f"got  {got!r}"[:2000])
        note(f"want {want!r}"[:2000])


def share_of(count):
    """As in tap.h: STOKER_TEST_SHARE percent of so many repetitions, at least one."""
    return max(1, int(count * float(os.environ.get("STOKER_TEST_SHARE", "100")) / 100))


def skip(what, why):
    ok(True, f"{what} # SKIP {why}")


def skip_all(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


def finish():
    print(f"1..{done}")
    sys.exit(failed != 0)


class Refused(Exception):
    """What the open said."""


def text(hexadecimal):
    return os.fsdecode(bytes.fromhex(hexadecimal))


def run(*arguments, **options):
    answer = subprocess.run([*EMULATOR, DUMP, *map(str, arguments)], capture_output=True, env=ENVIRONMENT, **options)
    if answer.returncode:
        raise RuntimeError(f"dump {arguments}: {answer.returncode}: {answer.stderr.decode()[-1500:]}")
    return answer.stdout.decode().splitlines()


def parts(lines):
    """The lines in front of each dot."""
    found, part = [], []
    for line in lines:
        if line == ".":
            found.append(part)
            part = []
        else:
            part.append(line)
    return found


def value(piece):
    if "bytes" in piece:
        return bytes.fromhex(piece["bytes"])
    return piece.get("int", piece.get("float"))


class Opened:
    """A dataset: its fields, and for each sample a tuple of values or an Exception."""

    def __init__(self, uri, fields="", index_dir=None, lines=None):
        lines = lines or run("open", uri, fields, *([index_dir] if index_dir else []))
        lines = [json.loads(line) for line in lines]
        if "error" in lines[0]:
            raise Refused(text(lines[0]["error"]))
        self.kind = lines[0]["kind"]
        self.fields = [(text(f["name"]), f["kind"]) for f in lines[0]["fields"]]
        self.raw = lines[1:]
        self.samples = [Refused(text(s["error"])) if "error" in s else tuple(map(value, s["pieces"])) for s in self.raw]
        self.names = [text(s.get("name", "")) for s in self.raw]
        assert len(self.samples) == lines[0]["count"]


def opened_each(uri, fields):
    """The dataset with each of these lists of fields, by a single process."""
    return [Opened(uri, lines=lines) for lines in parts(run("each", uri, *fields))]


def refused(uri, fields=""):
    """The sentence of an open that fails; "" when it does not."""
    try:
        Opened(uri, fields)
    except Refused as why:
        return str(why)
    return ""
