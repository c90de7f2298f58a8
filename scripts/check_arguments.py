#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks for calls in which one argument reads what another writes. Speaks TAP.

    check_arguments.py [ROOT]

C does not say in which order arguments are evaluated, so in `ok(read(&n) == 0, "%d", n)` the sentence may
show, or in the case of `text + strlen(text)` compute with, what was there before. Compilers warn of
assignments, but not of this. Looked at are the functions that take a format, where it happens: an argument
that hands &thing to a function, and another that names the thing or a part of it. Arrays are no values that
could be read too early; of those only the one of errors and bad samples is known here.
"""
import re
import sys
from pathlib import Path

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
FORMATTING = {"ok", "note", "st_fail", "st_fail_errno", "printf", "fprintf", "snprintf", "asprintf"}
TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.S)
PLACE = r"[A-Za-z_]\w*(?:(?:\.|->)\w+)*"
HANDED_OVER = re.compile(rf"[(,]\s*&\s*({PLACE})\b(?!\s*\()")
NAMED = re.compile(rf"(?<![\w.>])(?<!&)({PLACE})\b")
ARRAY = re.compile(rf"{PLACE}(?:\.|->)(?:message|reason)")


def without_text(source):
    """The same places and lines, but neither strings nor comments."""
    return TEXT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), source)


def calls(source):
    """The name, the place and the arguments of each call in the source."""
    under_way = []
    for found in re.finditer(r"[()\[\]{},]", source):
        at, sign = found.start(), found.group()
        if sign in "([{":
            name = re.search(r"(\w+)\s*$", source[max(0, at - 80) : at]) if sign == "(" else None
            under_way.append((name and name.group(1), [at + 1]))
        elif sign == "," and under_way:
            under_way[-1][1].append(at + 1)
        elif sign in ")]}" and under_way:
            name, starts = under_way.pop()
            if name:
                ends = [start - 1 for start in starts[1:]] + [at]
                yield name, starts[0], [source[a:b].strip() for a, b in zip(starts, ends)]


def is_part(a, b):
    return a == b or a.startswith((b + ".", b + "->"))


def early_reads(path):
    source = without_text(path.read_text())
    for name, at, arguments in calls(source):
        if name not in FORMATTING:
            continue
        for writer in arguments:
            for written in HANDED_OVER.findall(writer):
                for reader in arguments:
                    if reader is writer or ARRAY.fullmatch(reader) or reader.startswith("sizeof"):
                        continue
                    if any(is_part(a, written) or is_part(written, a) for a in NAMED.findall(reader)):
                        line = source.count("\n", 0, at) + 1
                        yield f"{path.relative_to(ROOT)}:{line}: {reader!r} may be read before &{written} is written"


paths = sorted(p for folder in ("src", "cli", "doctor", "tests", "bench", "python", "examples", "include")
               for p in (ROOT / folder).rglob("*.[ch]"))
problems = sorted({problem for path in paths for problem in early_reads(path)})
print(f"{'not ok' if problems else 'ok'} 1 - no argument reads what another of the same call writes ({len(paths)} files)")
for problem in problems:
    print(f"#   {problem}")
print("1..1")
sys.exit(bool(problems))
