# SPDX-License-Identifier: Apache-2.0
"""The doctor on planted faults, in the short form: a few programs whose cause is plain on any machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
FAULTS = Path(__file__).resolve().parents[1] / "faults"
STOKER = Path(sys.executable).with_name("stoker")


@pytest.fixture(scope="module")
def harness():
    """The harness's own modules, which lie beside its programs."""
    sys.path.insert(0, str(FAULTS))
    try:
        import run_faults
    finally:
        sys.path.remove(str(FAULTS))
    return run_faults


def can_watch() -> bool:
    return subprocess.run([STOKER, "help", "run"], capture_output=True, check=False).returncode == 0


def test_table_of_cases(harness):
    table = harness.CASES
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


def test_drawn_cases(harness):
    """The truth of a drawn program follows from its numbers: batches are late where their cause says so, and only there."""
    draw = harness.generate.cases
    assert draw(5, 30)[:7] == draw(5, 7) and draw(5, 30) != draw(6, 30)
    known = (FAULTS.parents[1] / "docs/doctor-codes.md").read_text()
    drawn = [case for seed in range(1, 21) for case in draw(seed, 20)]
    late = ("serial", "few", "feeder", "children", "ranksslow")
    limited = ("quota", "bound", "disk", "smallfiles", "lowmemory")
    locked = ("flock", "lockf", "mutex", "sqlite")
    ready = (*harness.generate.HEALTHY, "spawn", "sampler", "batchsampler", "duplicates", "seeds", "handle", "respawn", "gc", "save")
    ready += ("savearrays", "validation", "logging", "rarelysave", "rarelylogging", "rarelyvalidation")
    for case in drawn:
        cause = case.name.split("_")[0]
        mended = (case.advised, case.limits_when(True)) != (case.args, case.limits)
        assert case.control == (not case.codes) and (mended or not case.gain)
        assert all(code in known for codes in (case.codes, *case.also) for code in codes)
        number = {word[2:]: (*case.args, "")[at + 1] for at, word in enumerate(case.args) if word.startswith("--")}
        workers, step = int(number["num-workers"]), float(number["step-ms"])
        needed = float(number["work_ms"]) * int(number["batch-size"]) / step if step else 0
        at_once = min(workers, 2) if number.get("work") == "cpu" else workers
        assert cause not in late or needed >= 1.5 * max(workers, 1), case
        assert cause not in locked or needed >= 1.7, case  # whatever the number of workers
        assert (cause in limited) == bool(case.limits)
        assert cause not in ready or needed <= 0.41 * at_once, case
    assert len({case.name.split("_")[0] for case in drawn}) == len(harness.generate.CAUSES)
    assert 0.15 < sum(case.control for case in drawn) / len(drawn) < 0.4


def test_drawn_on_a_gpu(harness):
    drawn = [case for seed in range(1, 9) for case in harness.generate.cases(seed, 20, 8, True)]
    assert all(case.gpu and "--device" in case.args and case.ranks == 1 for case in drawn)
    assert set(harness.generate.ON_GPU) <= {case.name.split("_")[0] for case in drawn}


def test_page_of_drawn_programs(harness):
    """Its numbers and its matrix follow from the results alone."""
    page_of = sys.modules[harness.drawn_markdown.__module__]
    good, case, healthy = results(harness)
    good[0].take(harness.judge(case, {"verdict": {"code": "ST203"}, "findings": [{"code": "ST203"}]}, ""), [])
    good[1].predicted = {"low": 2.5, "mid": 2.6, "high": 2.7}
    good[2].offer, good[2].tried = {"low": 1.0, "mid": 1.1, "high": 1.2}, [11.0]
    how = {"seed": 3, "cpus_each": 2, "at_once": 4, "neighbours": 1, "gpu": False, "try_stoker": False}
    page = harness.drawn_markdown([(how, good), ({**how, "try_stoker": True}, good[2:3])], [harness.machine()] * 2)
    assert "| seed 3, 2 CPUs each, 4 at once, beside a program that uses a CPU | 21 | 19 of 20 (95 %) |" in page
    assert page_of.matrix(good) == ["| | 203 | 212 | none |", "|---|---|---|---|", "| ST212 | 1 | 19 |  |", "| healthy |  |  | 1 |"]
    assert harness.summary(good).broken == 1
    assert "| order_audio | 1.10x (1.00-1.20) | 1.05x | 5 % |" in page and "Within 15 %: 1 of 1 (100 %)." in page


def test_a_neighbour_is_a_cause_too(harness):
    case = next(case for case in harness.CASES if case.name == "order_audio")
    gain = {"low": 1.0, "mid": 1.5, "high": 2.0}
    found = {"verdict": {"code": "ST200"}, "findings": [{"code": "ST223"}, {"code": "ST212", "gain": gain}]}
    assert not harness.judge(case, found, "")["right"]
    beside = harness.judge(case, found, "", neighbours=1)
    assert beside["right"] and beside["verdict"] == "ST212" and beside["predicted"] == gain


def results(harness):
    """Twenty faults and a control, all as they should be."""
    case = next(case for case in harness.CASES if case.name == "order_audio")
    healthy = next(case for case in harness.CASES if case.name == "healthy_cheap")
    found = {"verdict": {"code": "ST200"}, "findings": [{"code": "ST212", "gain": {"low": 1.9, "mid": 2.1, "high": 2.2}}]}
    good = []
    for _ in range(20):
        good.append(harness.Result(case.name, sorted(case.codes), case.advice, False, False, True, [10, 11], [20, 22]))
        good[-1].take(harness.judge(case, found, ""), [])
    good.append(harness.Result(healthy.name, [], healthy.advice, True, False, True, [10], [10]))
    good[-1].take(harness.judge(healthy, {"verdict": {"code": "ST101"}, "findings": []}, ""), [])
    return good, case, healthy


def test_all_right_passes(harness):
    good, _, _ = results(harness)
    assert good[0].measured() == 2 and good[0].miss() == pytest.approx(0.05)
    assert harness.summary(good).passed(gains=True)
    page = harness.markdown(good, [harness.machine()])
    assert "| order_audio | ST212 | ST212 | yes | 2.10x (1.90-2.20) | 2.00x | 5 % |" in page
    assert "| healthy_cheap | healthy | ST101 | yes |" in page


def test_wrong_causes_fail(harness):
    good, case, _ = results(harness)
    for i in range(3):
        assert harness.summary(good).passed(gains=True)
        good[i].take(harness.judge(case, {"verdict": {"code": "ST203"}, "findings": [{"code": "ST203"}]}, ""), [])
    assert not harness.summary(good).passed(gains=True)


def test_false_alarm_fails(harness):
    good, _, healthy = results(harness)
    good[-1].take(harness.judge(healthy, {"verdict": {"code": "ST101"}, "findings": [{"code": "ST203"}]}, ""), [])
    assert not harness.summary(good).passed(gains=True)


def test_bad_predictions_fail(harness):
    good, _, _ = results(harness)
    for result in good[:11]:
        result.predicted = {"low": 2, "mid": 2.5, "high": 3}
    assert not harness.summary(good).passed(gains=True)
    assert harness.summary(good).passed(gains=False)


def test_changed_output_fails(harness):
    good, case, _ = results(harness)
    bare, watched = (subprocess.CompletedProcess([], 0, text, "") for text in ("25 steps", "26 steps"))
    assert harness.differences(case, bare, bare) == []
    good[0].changed = harness.differences(case, bare, watched)
    assert good[0].changed == ["stdout"] and not harness.summary(good).passed(gains=True)


@pytest.mark.parametrize("limit", [["--cpu", "0.5"], ["--cpus", "1"], ["--memory", "300"], ["--shm", "16"]])
def test_limits_hold_and_leave_nothing(harness, limit):
    inside = "import os; print(os.statvfs('/dev/shm').f_blocks * 4096 >> 20, len(os.sched_getaffinity(0)));" \
             "print(open('/proc/self/cgroup').read()); raise SystemExit(5)"
    done = subprocess.run(
        [sys.executable, FAULTS / "limits.py", *limit, "--", sys.executable, "-c", inside],
        capture_output=True, text=True, timeout=600, check=False,
    )
    if done.returncode == harness.REFUSED:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 5, done.stderr
    shm, cpus = done.stdout.split()[:2]
    if limit[0] == "--shm":
        assert shm == "16"
    elif limit[0] == "--cpus":
        assert cpus == "1"
    else:
        (group,) = set(re.findall(r"stoker-faults-\d+", done.stdout))
        assert not list(Path("/sys/fs/cgroup").glob(f"**/{group}"))


@pytest.mark.skipif(not can_watch(), reason="this build has no `stoker run`")
def test_short_form(tmp_path):
    """A case that goes wrong is tried again: the machine may have had other things to do just then."""
    out, wrong, printed = tmp_path / "faults.json", [], ""
    for attempt in range(3):
        done = subprocess.run(
            [sys.executable, FAULTS / "run_faults.py", "--short", "--out", out, *wrong],
            capture_output=True, text=True, timeout=600, check=False,
        )
        printed += done.stdout + done.stderr
        results = json.loads(out.read_text())["results"]
        assert results and (attempt or len(results) >= 4), printed
        if done.returncode == 0:
            return
        wrong = [word for result in results if not result["right"] for word in ("--only", result["name"])]
    raise AssertionError(printed)
