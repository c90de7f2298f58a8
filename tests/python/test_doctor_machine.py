# SPDX-License-Identifier: Apache-2.0
"""`stoker doctor`: the machine line by line."""

from __future__ import annotations

import json
import os

from packing import stoker

GRADES = {"good", "improve", "broken", "n/a"}


def checks(*arguments, **more):
    got = stoker("doctor", "--json", *arguments, **more)
    answer = json.loads(got.stdout)
    assert got.returncode == (3 if answer["worst"] == "broken" else 0)
    return {line["topic"]: line for line in answer["checks"]}


def test_every_line_has_a_grade_and_a_remedy_where_one_is_due():
    lines = checks()
    assert {"CPUs", "NUMA", "memory", "/dev/shm", "open files", "storage", "io_uring", "GPU", "copies", "codec"} <= set(lines)
    for line in lines.values():
        assert line["grade"] in GRADES and line["text"]
        assert line["remedy"] or line["grade"] in ("good", "n/a"), line


def test_few_open_files_are_broken():
    line = checks(preexec_fn=lambda: __import__("resource").setrlimit(7, (128, 1024)))["open files"]
    assert line["grade"] == "broken" and line["text"] == "128" and "ulimit -n" in line["remedy"]


def test_too_many_threads(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4096")
    assert checks()["threads"]["grade"] == "improve"


def test_data_is_read(tmp_path):
    for i in range(4):
        (tmp_path / f"{i}.bin").write_bytes(os.urandom(1 << 20))
    os.sync()
    lines = checks("--data", tmp_path)
    assert str(tmp_path) in lines["storage"]["text"]
    assert "4 files, 1.05 MB each" in lines["reading"]["text"]
    assert checks("--data", tmp_path / "0.bin")["reading"]["text"].count("(1 file,")


def test_data_that_is_not_there(tmp_path):
    assert checks("--data", tmp_path / "nothing")["storage"]["grade"] == "broken"
    assert checks("--data", tmp_path)["reading"]["grade"] == "n/a"


def test_text_and_usage():
    got = stoker("doctor")
    assert got.stdout.splitlines()[0].split()[1] in ("CPUs", "others")  # the latter comes first on a busy machine
    assert stoker("doctor", "--no-such").returncode == 2
    assert stoker("doctor", "--data").returncode == 2
