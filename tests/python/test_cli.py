# SPDX-License-Identifier: Apache-2.0
"""What all commands of `stoker` share: options, errors, exit codes, --json and completion."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from packing import PROGRAM, stoker

ROOT = Path(__file__).parents[2]
HELP = json.loads(stoker("help", "--json").stdout)
COMMANDS = {command["name"]: command for command in HELP["commands"]}


def strict(text):
    def refuse(word):
        raise ValueError(word)

    return json.loads(text, parse_constant=refuse)


# ---- help ---------------------------------------------------------------------------------------


def test_help_lists_commands_and_exit_codes():
    text = stoker("help").stdout
    flowing = " ".join(text.split())
    for name, command in COMMANDS.items():
        assert re.search(rf"^  {name} ", text, re.M) and f" {name} {command['summary']} " in flowing
    for code in HELP["exit_codes"]:
        assert f" {code['code']} {' '.join(code['meaning'].split())} " in flowing
    assert [code["code"] for code in HELP["exit_codes"]] == [0, 1, 2, 3]
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_usage_of_each_command(name):
    text = stoker("help", name).stdout
    assert text.startswith(f"usage: stoker {name}") and max(map(len, text.splitlines())) <= 80
    for option in COMMANDS[name]["options"]:
        assert f"  {option['name']}" in text and bool(option["value"]) == bool(option["allowed"])
    assert stoker(name, "--help").stdout == text


def on_a_terminal(columns, *arguments):
    ours, its = pty.openpty()
    termios.tcsetwinsize(its, (24, columns))
    process = subprocess.Popen([str(PROGRAM), *arguments], stdout=its, stderr=its)
    os.close(its)
    seen = b""
    try:
        while piece := os.read(ours, 4096):
            seen += piece
    except OSError:  # it has closed its end
        pass
    os.close(ours)
    assert process.wait(600) == 0
    return seen.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [40, 72, 100, 300])
def test_help_is_as_wide_as_the_terminal(columns):
    for name in COMMANDS:
        text = on_a_terminal(columns, "help", name)
        assert text.split() == stoker("help", name).stdout.split()
        for line in text.splitlines():
            # Tables, and words and names of options that are longer than what is left, stay whole.
            assert len(line) <= min(columns, 100) or line.startswith(("usage: ", "       stoker", "  ")), line
    prose = on_a_terminal(columns, "help", "run").split("\n\n")[1].splitlines()
    assert max(map(len, prose)) <= min(columns, 100) < max(map(len, prose)) + 16


def test_the_man_page_has_every_option_and_exit_code():
    page = (ROOT / "docs/man/stoker.1").read_text()
    for command in HELP["commands"]:
        for option in command["options"]:
            name = option["name"].removeprefix("-").replace("-", "[-]")
            assert re.search(rf"Fl {name}\b", page), (command["name"], option["name"])
    status = page[page.index(".Sh EXIT STATUS"):page.index(".Sh EXAMPLES")]
    for code in HELP["exit_codes"]:
        assert re.search(rf"^\.It {code['code']}$", status, re.M)
    for command in COMMANDS:
        assert re.search(rf"^\.It Cm {command}\b", page, re.M), command


def test_the_demo_has_the_options_of_the_table():
    got = subprocess.run([sys.executable, "-m", "stoker.demo", "--help"], capture_output=True, text=True, timeout=600, check=True)
    listed = set(re.findall(r"^  (--[a-z-]+)", got.stdout, re.M))
    assert listed == {option["name"] for option in COMMANDS["demo"]["options"]}


# ---- environment variables ----------------------------------------------------------------------


def read_by(*folders, pattern):
    """Names of environment variables that the sources of these folders read."""
    found = set()
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".c", ".h", ".py"):
                found |= set(re.findall(pattern, path.read_text()))
    return found


# "AWS_..." are names that one function looks up.
IN_C = r'getenv\("([A-Z_]+)"\)|"((?:AWS|LC)_[A-Z_0-9]+|LANG)"'
IN_PYTHON = r'environ(?:\.get\(|\[)"([A-Z_]+)"'
BETWEEN_OURSELVES = {"STOKER_RUN", "STOKER_PROBE", "STOKER_TRY"}  # from `stoker run` and `stoker tune` to what they start
OF_EVERY_PROGRAM = {"PATH", "PYTHONPATH"}


def test_stoker_h_names_every_variable_that_the_library_reads():
    head = (ROOT / "include/stoker/stoker.h").read_text()
    begin = head.index("It reads these environment variables")
    named = set(re.findall(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\b", re.sub(r"\([^)]*\)", "", head[begin:head.index("libcurl", begin)])))
    read = {name for names in read_by("src", pattern=IN_C) for name in names if name}
    assert named - {"It"} == read


def test_the_man_page_names_every_variable_that_the_program_reads():
    page = (ROOT / "docs/man/stoker.1").read_text()
    page = page[page.index(".Sh ENVIRONMENT"):page.index(".Sh EXIT STATUS")]
    named = set(re.findall(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\b(?:TERM|LANG|COLUMNS|HOME|TMPDIR)\b", page))
    read = {name for names in read_by("src", "cli", "doctor", pattern=IN_C) for name in names if name}
    read |= read_by("doctor/inject", pattern=IN_PYTHON) | {"XDG_CACHE_HOME"}  # by stoker.demo
    read -= {name for name in read if name.startswith("AWS_")} | BETWEEN_OURSELVES | OF_EVERY_PROGRAM
    # Variables that the doctor examines, or that a launcher sets for the program that is watched.
    examined = {"LOCAL_RANK", "RANK", "WORLD_SIZE"}
    assert named >= read - examined and not named - read, (named ^ read) - examined


def test_docs_name_every_variable_for_s3():
    text = (ROOT / "docs/data.md").read_text()
    for name in {name for names in read_by("src/source/remote", pattern=IN_C) for name in names if name}:
        assert f"`{name}`" in text or name == "HOME", name


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, said", [
    (["run"], "run: no command given"),
    (["run", "--every", "0.5", "--", "true"], "run: --every must be a number of seconds from 1 to 86400, not '0.5'"),
    (["run", "--json", "--", "true"], "run: --json requires a value: the name of a file, or - for standard output"),
    (["run", "--jsn=x", "--", "true"], "Did you mean '--json'?"),
    (["run", "--quiet=1", "--", "true"], "run: --quiet takes no value, but was given '1'"),
    (["check", "--max-stall", "101%"], "check: --max-stall must be a share from 0 to 1, such as 10% or 0.1, not '101%'"),
    (["check", "1", "2", "--max-step", "1"], "check: unexpected argument '2'"),
    (["report", "--html", "--json"], "report: --html requires a value"),
    (["report", "--diff", "1", "--json"], "report: --diff takes two runs"),
    (["report", "3", "--diff", "1", "2"], "not with '3'"),
    (["top", "a", "b"], "top: unexpected argument 'b'; usage: stoker top [RUN | PID] [--once | --json]"),
    (["tune", "--seconds", "never", "--", "true"], "tune: --seconds must be a number of seconds from 1 to 600, not 'never'"),
    (["doctor", "here"], "doctor: unexpected argument 'here'"),
    (["demo", "--image", "9"], "demo: there is no option '--image'. Did you mean '--images'?"),
    (["demo", "--images", "0"], "demo: --images must be a whole number of at least 1, not '0'"),
    (["demo", "here"], "demo: unexpected argument 'here'; usage: stoker demo [OPTIONS]"),
    (["verify"], "verify: which dataset?"),
    (["verify", "a", "--workers", "1025"], "verify: --workers must be a whole number from 1 to 1024, not '1025'"),
    (["info", "--html", "x"], "info: --html needs a dataset"),
    (["completion"], "completion: name a shell: bash, zsh or fish"),
    (["completion", "csh"], "not 'csh'"),
    (["help", "nothing"], "there is no command 'nothing'"),
    (["--verison"], "there is no option '--verison'. Did you mean '--version'?"),
    (["version"], "there is no command 'version'. Did you mean '--version'?"),
    (["vrify"], "there is no command 'vrify'. Did you mean 'verify'?"),
    (["explain", "--markdown", "--json"], "without '--json'"),
])
def test_errors_name_option_value_and_what_is_allowed(tmp_path, arguments, said):
    got = stoker(*arguments, cwd=tmp_path)
    assert got.returncode == 2 and not got.stdout
    assert said in got.stderr and got.stderr.startswith("stoker: ") and got.stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_what_is_not_possible_is_said(tmp_path, bad_tree):
    (tmp_path / "file").write_text("x")
    for arguments, said in (
        (("pack", bad_tree, tmp_path / "file"), "file is a file: name a folder to write into"),
        (("verify", bad_tree, "--fields", "jgp"), "there are no fields to choose from"),
        (("pack", bad_tree, tmp_path / "out", "--fields", "jpg"), "there are no fields to choose from"),
    ):
        got = stoker(*arguments)
        assert got.returncode == 1 and said in got.stderr and not got.stdout, got


@pytest.mark.parametrize("arguments", [["help"], ["info"], ["--version"], ["explain", "--json"]])
def test_a_full_disk_is_said(arguments):
    with open("/dev/full", "w") as full:
        got = subprocess.run([str(PROGRAM), *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=600)
    assert got.returncode == 1 and got.stderr == "stoker: cannot write to standard output: No space left on device\n"


def test_demo_without_the_package_says_what_to_do(tmp_path):
    shutil.copy(PROGRAM, tmp_path / "stoker")
    python = tmp_path / "python3"
    python.write_text(f'#!/bin/sh\nexec "{os.path.realpath(sys.executable)}" -I -S "$@"\n')
    python.chmod(0o755)
    got = subprocess.run([tmp_path / "stoker", "demo"], capture_output=True, text=True, timeout=600)
    assert got.returncode == 1 and "does not have the Python package stoker: install it there" in got.stderr
    assert got.stderr.count("\n") == 1


def test_every_option_with_a_value_requires_it():
    for name, command in COMMANDS.items():
        for option in command["options"]:
            if option["value"]:
                got = stoker(name, option["name"])
                assert got.returncode == 2 and f"{option['name']} requires a value: {option['allowed']}" in got.stderr


# ---- --json -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bad_tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("cli") / "tree"
    from conftest import picture
    for i in range(8):
        (root / f"c{i % 2}").mkdir(parents=True, exist_ok=True)
        picture(i, 40 + i, 30).save(root / f"c{i % 2}" / f"{i}.jpg")
    (root / "c0" / "bad.jpg").write_bytes(b"no image")
    return root


def documented():
    """Keys in docs/json.md, by command."""
    text = (ROOT / "docs/json.md").read_text()
    parts = re.split(r"^## `stoker (\w+)[^`]*`$", text, flags=re.M)
    found = {}
    for name, part in zip(parts[1::2], parts[2::2]):
        found.setdefault(name, set()).update(re.findall(r"`(\w+)`", part))
    return found


def all_keys(value):
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from all_keys(item)
    elif isinstance(value, list):
        for item in value:
            yield from all_keys(item)


def test_every_command_has_json():
    assert {name for name, command in COMMANDS.items() if "--json" not in [o["name"] for o in command["options"]]} == {
        "completion"}
    assert set(documented()) == set(COMMANDS) - {"completion"}


def keys_are_documented(name, value, besides=()):
    unknown = set(all_keys(value)) - documented()[name] - set(besides)
    assert not unknown, f"not in docs/json.md: {sorted(unknown)}"


def test_json_of_data_commands(bad_tree, tmp_path):
    got = stoker("info", bad_tree, "--json")
    info = strict(got.stdout)
    keys_are_documented("info", info, besides=("jpg",))
    assert got.returncode == 0 and (info["samples"], info["classes"], info["bad"]) == (9, 2, 1)
    assert "bad.jpg" in info["first_bad"] and info["images"]["max_width"] == 47 and info["sounds"] is None
    assert sum(side["images"] for side in info["images"]["longer_side"]) == 8

    got = stoker("verify", bad_tree, "--json")
    verified = strict(got.stdout)
    keys_are_documented("verify", verified)
    assert got.returncode == 3 and verified["bad_count"] == len(verified["bad"]) == 1 and verified["error"] is None
    assert "bad.jpg" in verified["bad"][0]["what"] and verified["samples"] == 9
    assert stoker("verify", tmp_path / "absent", "--json").stdout == ""

    got = stoker("pack", bad_tree, tmp_path / "out", "--on-error", "skip", "--crop-ready", "--json")
    packed = strict(got.stdout)
    keys_are_documented("pack", packed)
    assert got.returncode == 3 and (packed["samples"], packed["bad"], packed["resumed"]) == (8, 1, 0)
    assert Path(packed["bad_samples"]).exists() and packed["crop_ready"]["files"] + packed["crop_ready"]["unchanged"] == 8
    again = strict(stoker("pack", bad_tree, tmp_path / "out", "--on-error", "skip", "--crop-ready", "--json").stdout)
    assert (again["samples"], again["packed_now"]) == (8, 0)
    assert strict(stoker("verify", tmp_path / "out", "--json").stdout)["files_checked"] >= 1


def test_json_of_bench(bad_tree, tmp_path):
    (tmp_path / "tree").mkdir()
    shutil.copytree(bad_tree / "c1", tmp_path / "tree" / "c1")
    got = stoker("bench", tmp_path / "tree", "--seconds", "0.4", "--workers", "2", "--batch", "2", "--json")
    bench = strict(got.stdout)
    keys_are_documented("bench", bench)
    assert got.returncode == 0 and [p["workers"] for p in bench["pipelines"]] == [1, 2]
    assert all(p["samples_per_second"] > 0 for p in bench["pipelines"]) and bench["read"]["files_per_second"] > 0


def test_json_of_the_build_and_the_machine():
    build = strict(stoker("info", "--json").stdout)
    keys_are_documented("info", build)
    assert any(f["name"] == "jpeg" or "jpeg" in f["name"].lower() for f in build["features"]) and build["cpus"] >= 1
    keys_are_documented("doctor", strict(stoker("doctor", "--json").stdout))
    keys_are_documented("explain", strict(stoker("explain", "ST206", "--json").stdout))
    keys_are_documented("help", HELP)


def test_json_of_a_run(tmp_path):
    got = stoker("run", "--quiet", "--json", "out.json", "--", "sh", "-c", "echo mine; exit 5", cwd=tmp_path)
    assert (got.returncode, got.stdout) == (5, "mine\n")
    run = strict((tmp_path / "out.json").read_text())
    keys_are_documented("run", run, besides=("plan", "workers", "prefetch", "in_order", "persistent", "shared_samples", "cpus",
                                             "wall_scale", "cpu_scale", "step_scale", "low", "mid", "high"))
    assert run["exit_code"] == 5 and "ended with status 5" in run["verdict"]["sentence"] and run["findings"] == []
    assert strict(Path(run["run_json"]).read_text())["verdict"] == run["verdict"]
    assert Path(run["report_html"]).exists() and Path(run["trace_json"]).exists()

    got = stoker("run", "--quiet", "--no-report", "--json", "-", "--", "echo", "mine", cwd=tmp_path)
    first, rest = got.stdout.split("\n", 1)
    assert first == "mine" and strict(rest)["verdict"] is None and strict(rest)["run_json"] is None

    got = stoker("run", "--quiet", "--json", "no/such/folder", "--", "true", cwd=tmp_path)
    assert got.returncode == 0 and "cannot write no/such/folder" in got.stderr

    shown = strict(stoker("top", "1", "--json", cwd=tmp_path).stdout)
    assert shown["run"]["exit_code"] == 5 and shown["run"]["finished"] and shown["verdict"] == run["verdict"]
    assert shown["run"]["started"] > 1_700_000_000


def test_json_of_check(tmp_path):
    from test_doctor_report import write_run
    write_run(tmp_path / ".stoker" / "0001", wait=0.05)
    for limit, code, word in (("10%", 3, "exceeded"), ("60%", 0, "ok")):
        got = stoker("check", "--max-stall", limit, "--json", cwd=tmp_path)
        checked = strict(got.stdout)
        keys_are_documented("check", checked)
        assert (got.returncode, checked["result"], checked["limits"][0]["result"]) == (code, word, word)
        assert 0.45 < checked["limits"][0]["value"] < 0.55 and checked["limits"][0]["bound"] == "max"


# ---- completion ---------------------------------------------------------------------------------

BASH = shutil.which("bash")


def complete(tmp_path, *words):
    """What bash offers for the last word."""
    script = stoker("completion", "bash").stdout
    line = " ".join(shlex.quote(word) for word in ("stoker", *words))
    program = f"{script}\nCOMP_WORDS=({line})\nCOMP_CWORD={len(words)}\n_stoker\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    got = subprocess.run([BASH, "--norc", "-u", "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=600,
                         check=False)
    assert got.returncode == 0 and not got.stderr, got.stderr
    return set(got.stdout.split())


@pytest.mark.skipif(not BASH, reason="no bash is installed")
def test_bash_completes_commands_options_and_values(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "date.txt").write_text("")
    assert complete(tmp_path, "") == {*COMMANDS, "--help", "--version"}
    assert complete(tmp_path, "ve") == {"verify"}
    for name, command in COMMANDS.items():
        assert complete(tmp_path, name, "--") == {*(option["name"] for option in command["options"]), "--help"}
    assert complete(tmp_path, "pack", "a", "b", "--format", "t") == {"tar", "tfrecord"}
    assert complete(tmp_path, "pack", "a", "--format", "=", "l") == {"lmdb"}
    assert complete(tmp_path, "pack", "a", "--quality", "") == set()
    assert complete(tmp_path, "pack", "dat") == {"data", "date.txt"}
    assert complete(tmp_path, "report", "dat") == {"data"}
    assert complete(tmp_path, "report", "--html", "dat") == {"data", "date.txt"}
    assert complete(tmp_path, "explain", "ST20") == {f"ST20{i}" for i in range(1, 10)}
    assert complete(tmp_path, "help", "ex") == {"explain"} and complete(tmp_path, "completion", "z") == {"zsh"}
    for words in (("run", "--"), ("run", "--dir", "x", "--quiet", "--"), ("tune", "--json"), ("run", "--json=x")):
        assert complete(tmp_path, *words, "dat") >= {"date"} or shutil.which("date") is None
    assert complete(tmp_path, "run", "--", "cat", "dat") == {"data", "date.txt"}
    assert complete(tmp_path, "run", "--dir", "dat") == {"data"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_everything_and_parse(shell):
    script = stoker("completion", shell).stdout
    for name, command in COMMANDS.items():
        assert re.search(rf"\b{name}\b", script)
        for option in command["options"]:
            assert (option["name"] if shell != "fish" else f"-l {option['name'][2:]}") in script
    if shutil.which(shell):
        check = subprocess.run([shell, "-n"], input=script, capture_output=True, text=True, timeout=600, check=False)
        assert check.returncode == 0 and not check.stderr, check.stderr


@pytest.mark.skipif(not shutil.which("fish"), reason="no fish is installed")
def test_fish_completes_commands_options_and_values(tmp_path):
    def complete(line):
        program = f"{stoker('completion', 'fish').stdout}\ncomplete -C {shlex.quote(line)}\n"
        got = subprocess.run(["fish", "--no-config", "-c", program], cwd=tmp_path, capture_output=True, text=True,
                             timeout=600, check=False, env={**os.environ, "HOME": str(tmp_path)})
        assert got.returncode == 0 and not got.stderr, got.stderr
        return {found.split("\t")[0] for found in got.stdout.splitlines()}

    assert complete("stoker ve") == {"verify"}
    assert complete("stoker pack --fo") == {"--format"}
    assert complete("stoker pack --format t") == {"tar", "tfrecord"}
    assert complete("stoker completion z") == {"zsh"}
