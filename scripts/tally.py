#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts test results of any layer and adds them up.

    tally.py add FILE LAYER meson LOG.json    results of `meson test` whose programs speak TAP
    tally.py add FILE LAYER tap TEXT STATUS   one program's TAP output and its exit status
    tally.py add FILE LAYER junit REPORT.xml STATUS
    tally.py sum FILE                         the totals; exits 1 when anything failed

FILE collects one line a layer: name, passed, failed, skipped.
"""
import json
import re
import sys
import xml.etree.ElementTree as ET


def tap_counts(text, status):
    passed = failed = skipped = 0
    for line in text.splitlines():
        if re.match(r"\s*not ok\b", line):
            failed += 1
            print(f"   {line.strip()}")
        elif re.match(r"1\.\.0\s*#\s*SKIP", line, re.I):  # the whole program
            skipped += 1
        elif re.match(r"\s*ok\b", line):
            if re.search(r"#\s*SKIP", line, re.I):
                skipped += 1
            else:
                passed += 1
    if status and not failed:  # it crashed, or a sanitizer spoke
        failed += 1
    if not status and passed + skipped + failed == 0:
        failed += 1  # a test that tests nothing
    return passed, failed, skipped


def meson_counts(path):
    total = [0, 0, 0]
    with open(path) as log:
        for line in log:
            test = json.loads(line)
            good = test["result"] in ("OK", "SKIP", "EXPECTEDFAIL")
            counts = tap_counts(test.get("stdout", ""), 0 if good else 1)
            if counts[1]:
                print(f"   {test['name']}: {test['result']}")
                print("\n".join("     " + t for t in test.get("stderr", "").splitlines()[-40:]))
            total = [a + b for a, b in zip(total, counts)]
    return total


def junit_counts(path, status):
    try:
        suites = ET.parse(path).getroot().iter("testsuite")
        passed = failed = skipped = 0
        for suite in suites:
            bad = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
            left_out = int(suite.get("skipped", 0))
            failed += bad
            skipped += left_out
            passed += int(suite.get("tests", 0)) - bad - left_out
    except (OSError, ET.ParseError):
        return 0, 1, 0
    if status and not failed:
        failed += 1
    return passed, failed, skipped


def add(file, layer, kind, source, status="0"):
    if kind == "meson":
        counts = meson_counts(source)
    elif kind == "tap":
        with open(source, errors="replace") as text:
            counts = tap_counts(text.read(), int(status))
    else:
        counts = junit_counts(source, int(status))
    with open(file, "a") as out:
        print(layer, *counts, file=out)
    print("   {}: {} passed, {} failed, {} skipped".format(layer, *counts))


def total(file):
    sums = [0, 0, 0]
    print(f"\n{'layer':<16}{'passed':>8}{'failed':>8}{'skipped':>8}")
    for line in open(file):
        layer, *counts = line.split()
        print(f"{layer:<16}{counts[0]:>8}{counts[1]:>8}{counts[2]:>8}")
        sums = [a + int(b) for a, b in zip(sums, counts)]
    print("\n{} passed, {} failed, {} skipped".format(*sums))
    return 1 if sums[1] or not sums[0] else 0


if sys.argv[1] == "add":
    add(*sys.argv[2:])
else:
    sys.exit(total(sys.argv[2]))
