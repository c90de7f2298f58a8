# SPDX-License-Identifier: Apache-2.0
"""The doctor on planted faults, in the short form: a few programs whose cause is plain on any machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
FAULTS = Path(__file__).resolve().parents[1] / "faults"
STOKER = Path(sys.executable).with_name("stoker")


def cases():
    sys.path.insert(0, str(FAULTS))
    try:
        import cases as table
    finally:
        sys.path.remove(str(FAULTS))
    return table.CASES


def can_watch() -> bool:
    return subprocess.run([STOKER, "help", "run"], capture_output=True, check=False).returncode == 0


def test_table_of_cases():
    table = cases()
    assert len({case.name for case in table}) == len(table)
    faults, controls = ([case for case in table if case.control == control] for control in (False, True))
    assert len(faults) >= 26 and len(controls) >= 7
    assert all(case.codes for case in faults)
    for group in (faults, controls):
        assert abs(sum(case.held_out for case in group) - len(group) / 2) <= 1
    assert not [case.name for case in table if case.short and case.held_out]
    assert not [case.program for case in table if not (FAULTS / "programs" / case.program).exists()]
    described = (FAULTS / "README.md").read_text()
    assert not [case.name for case in table if f"`{case.name}`" not in described]


@pytest.mark.skipif(not can_watch(), reason="this build has no `stoker run`")
def test_short_form(tmp_path):
    out = tmp_path / "faults.json"
    done = subprocess.run(
        [sys.executable, FAULTS / "run_faults.py", "--short", "--out", out],
        capture_output=True, text=True, timeout=600, check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(json.loads(out.read_text())["results"]) >= 5
