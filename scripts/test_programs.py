#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The C tests of a build folder without those that match a pattern, or the programs that they need.

    meson introspect FOLDER --targets --tests | scripts/test_programs.py tests|programs [PATTERN]
"""
import json
import os
import re
import sys


def full_name(target: dict) -> str:
    """Return a target's name as `meson compile` takes it: the program and the library have the same short one."""
    folder = os.path.relpath(os.path.dirname(target["defined_in"]))
    return f"./{folder}/{target['name']}:{target['type'].replace(' ', '_')}"


def main() -> None:
    kind, pattern = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    known = json.load(sys.stdin)
    tests = [test for test in known["tests"] if not re.fullmatch(pattern, test["name"])]
    if kind == "tests":
        print(*(test["name"] for test in tests), sep="\n")
        return
    names = {target["id"]: full_name(target) for target in known["targets"]}
    print(*sorted({names[program] for test in tests for program in test["depends"]}), sep="\n")


main()
