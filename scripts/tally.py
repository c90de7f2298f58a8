#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts test results of any layer and adds them up.

    tally.py add FILE LAYER meson LOG.json    results of `meson test` whose programs speak TAP
    tally.py add FILE LAYER tap TEXT STATUS   one program's TAP output and its exit status
    tally.py add FILE LAYER junit REPORT.xml STATUS
    tally.py add FILE LAYER files FOLDER STATUS    a NAME.xml and NAME.status for each file of tests; the status of all
    tally.py sum FILE                         the totals; exits 1 when anything failed

FILE collects one line a layer: name, passed, failed, skipped. FILE.failures collects what failed, which the sum
repeats: a log of thousands of lines is read from its end.
"""
import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def tap_counts(text, status, failures):
    passed = failed = skipped = 0
    for line in text.splitlines():
        if re.match(r"\s*not ok\b", line):
            failed += 1
            failures.append(line.strip())
        elif re.match(r"1\.\.0\s*#\s*SKIP", line, re.I):  # the whole program
            skipped += 1
        elif re.match(r"\s*ok\b", line):
            if re.search(r"#\s*SKIP", line, re.I):
                skipped += 1
            else:
                passed += 1
    if status and not failed:  # it crashed, or a sanitizer spoke
        failed += 1
        failures.append(f"exit status {status}")
    if not status and passed + skipped + failed == 0:
        failed += 1
        failures.append("no test ran")
    return passed, failed, skipped


def meson_counts(path, failures):
    total = [0, 0, 0]
    with open(path) as log:
        for line in log:
            test = json.loads(line)
            good = test["result"] in ("OK", "SKIP", "EXPECTEDFAIL")
            found = []
            counts = tap_counts(test.get("stdout", ""), 0 if good else 1, found)
            if found:
                failures.append(f"{test['name']}: {test['result']}")
                failures += found + test.get("stderr", "").splitlines()[-40:]
            total = [a + b for a, b in zip(total, counts)]
    return total


def junit_counts(path, status, failures):
    passed = failed = skipped = 0
    try:
        for case in ET.parse(path).getroot().iter("testcase"):
            bad = [*case.iter("failure"), *case.iter("error")]
            if bad:
                failed += 1
                failures.append(f"{case.get('classname')}::{case.get('name')}")
                failures += (bad[0].get("message") or "").splitlines()[:10]
            elif case.find("skipped") is not None:
                skipped += 1
            else:
                passed += 1
    except (OSError, ET.ParseError) as why:
        failures.append(f"no report: {why}")
        return 0, 1, 0
    if status and not failed:
        failed += 1
        failures.append(f"exit status {status}")
    return passed, failed, skipped


def files_counts(folder, status, failures):
    total = [0, 0, 0]
    for path in sorted(Path(folder).glob("*.status")):
        found = []
        counts = junit_counts(path.with_suffix(".xml"), int(path.read_text()), found)
        if not sum(counts):
            counts = 0, 1, 0
            found.append("no test ran")
        failures += [f"{path.stem}: {line}" for line in found[:1]] + found[1:]
        total = [a + b for a, b in zip(total, counts)]
    if status and not total[1] or not sum(total):
        total[1] += 1
        failures.append(f"exit status {status}")
    return total


def add(file, layer, kind, source, status="0"):
    failures = []
    if kind == "meson":
        counts = meson_counts(source, failures)
    elif kind == "tap":
        with open(source, errors="replace") as text:
            counts = tap_counts(text.read(), int(status), failures)
    elif kind == "junit":
        counts = junit_counts(source, int(status), failures)
    else:
        counts = files_counts(source, int(status), failures)
    with open(file, "a") as out:
        print(layer, *counts, file=out)
    with open(file + ".failures", "a") as out:
        for line in failures:
            print(f"   {layer}: {line}", file=out)
            print(f"   {line}")
    print("   {}: {} passed, {} failed, {} skipped".format(layer, *counts))


def total(file):
    sums = [0, 0, 0]
    print(f"\n{'layer':<16}{'passed':>8}{'failed':>8}{'skipped':>8}")
    for line in open(file):
        layer, *counts = line.split()
        print(f"{layer:<16}{counts[0]:>8}{counts[1]:>8}{counts[2]:>8}")
        sums = [a + int(b) for a, b in zip(sums, counts)]
    print("\n" + open(file + ".failures").read(), end="")
    print("{} passed, {} failed, {} skipped".format(*sums))
    return 1 if sums[1] or not sums[0] else 0


if sys.argv[1] == "add":
    add(*sys.argv[2:])
else:
    sys.exit(total(sys.argv[2]))
