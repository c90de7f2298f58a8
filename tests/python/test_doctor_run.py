# SPDX-License-Identifier: Apache-2.0
"""`stoker run` leaves the command alone: its output, input, signals and exit code; and sees its processes."""

from __future__ import annotations

import json
import os
import pty
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from packing import PROGRAM
from watching import DESCENT


def run(*arguments, cwd, **more):
    more = {"capture_output": True, "timeout": 120, "check": False, **more}
    return subprocess.run([str(PROGRAM), "run", *map(str, arguments)], cwd=cwd, **more)


def start(*arguments, cwd, **more):
    return subprocess.Popen([str(PROGRAM), "run", *map(str, arguments)], cwd=cwd, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **more)


def python(code):
    return "--", sys.executable, "-S", "-c", code


def records(path: Path):
    """(kind, payload) of RUN/samples."""
    data = path.read_bytes()
    assert data[:8] == b"stkrsm1\0"
    at = 8
    while at + 8 <= len(data):
        kind, size = struct.unpack_from("II", data, at)
        if at + 8 + size > len(data):
            return
        yield kind, data[at + 8 : at + 8 + size]
        at += 8 + size


def ticks(folder: Path):
    return [struct.unpack_from("Q", payload)[0] / 1e9 for kind, payload in records(folder / "samples") if kind == 7]


def processes(folder: Path):
    return {payload[12:-1].decode(): struct.unpack_from("i", payload, 4)[0]
            for kind, payload in records(folder / "samples") if kind == 5}


def end(folder: Path):
    *_, last = (payload for kind, payload in records(folder / "samples") if kind == 8)
    _, own, code, finished = struct.unpack("Qdii", last)
    return own, code, finished


def test_output_is_the_commands_own(tmp_path):
    code = "import sys,os; sys.stdout.buffer.write(bytes(range(256)) * 400); sys.stdout.flush(); os.write(2, b'mine')"
    alone = subprocess.run([*python(code)[1:]], capture_output=True, check=True)
    got = run(*python(code), cwd=tmp_path)
    assert got.returncode == 0
    assert got.stdout == alone.stdout
    assert b"mine" in got.stderr
    assert b"run directory .stoker/0001" in got.stderr.splitlines()[0]
    assert (tmp_path / ".stoker/0001/samples").exists()


def test_a_second_run_has_the_next_number(tmp_path):
    for _ in range(2):
        assert run("--no-report", "--", "true", cwd=tmp_path).returncode == 0
    assert sorted(p.name for p in (tmp_path / ".stoker").iterdir()) == ["0001", "0002"]


def test_input_is_passed_through(tmp_path):
    got = run("--quiet", "--", "cat", cwd=tmp_path, input=b"\0line\n" * 10000)
    assert got.stdout == b"\0line\n" * 10000


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_the_exit_code_is_the_commands_own(tmp_path, code):
    assert run("--no-report", "--", "sh", "-c", f"exit {code}", cwd=tmp_path).returncode == code
    own, recorded, finished = end(tmp_path / ".stoker/0001")
    assert (recorded, finished) == (code, 1) and 0 <= own < 30


def test_a_command_that_was_killed(tmp_path):
    got = run("--no-report", "--", "sh", "-c", "kill -KILL $$", cwd=tmp_path)
    assert got.returncode == 128 + signal.SIGKILL
    assert end(tmp_path / ".stoker/0001")[1] == 137


def test_no_such_command(tmp_path):
    got = run("--", "no-such-command-here", cwd=tmp_path)
    assert got.returncode == 127 and b"no-such-command-here" in got.stderr
    (tmp_path / "text").write_text("not a program")
    assert run("--", "./text", cwd=tmp_path).returncode == 126
    assert run("--", "./nothing", cwd=tmp_path).returncode == 127
    assert run("--", "/tmp", cwd=tmp_path).returncode == 126
    assert not list(tmp_path.glob(".stoker/*")), "a command that never ran leaves no run"


def test_a_folder_that_is_not_empty_is_refused(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    got = run("--dir", "full", "--", "true", cwd=tmp_path)
    assert got.returncode == 1 and b"not empty" in got.stderr
    assert [p.name for p in (tmp_path / "full").iterdir()] == ["mine"]
    (tmp_path / "empty").mkdir()
    assert run("--no-report", "--dir=empty", "--", "true", cwd=tmp_path).returncode == 0
    assert run("--no-report", "--dir", "new", "--", "true", cwd=tmp_path).returncode == 0
    assert (tmp_path / "new/samples").exists() and (tmp_path / "empty/samples").exists()


def test_usage(tmp_path):
    assert run(cwd=tmp_path).returncode == 2
    assert run("--no-such-option", "--", "true", cwd=tmp_path).returncode == 2
    assert run("--every", "never", "--", "true", cwd=tmp_path).returncode == 2


def test_the_commands_environment(tmp_path):
    code = "import os; print(os.environ['STOKER_RUN']); print(os.environ['PYTHONPATH'])"
    got = run("--no-report", *python(code), cwd=tmp_path, env={**os.environ, "PYTHONPATH": "/mine"})
    folder = (tmp_path / ".stoker/0001").resolve()
    assert got.stdout.decode().split() == [str(folder), f"{folder}/inject:/mine"]


# The handler does not print: the signal may come while 'ready' is still being printed.
WAITS = """
import os, signal, sys, time
def got(number, frame):
    os.write(1, b'got %d\\n' % number)
    count.append(number)
count = []
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, got)
print('ready', flush=True)
while not count:
    time.sleep(0.05)
time.sleep(0.6)
sys.exit(len(count))
"""


def wait_ready(program):
    assert program.stdout.readline() == b"ready\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
@pytest.mark.parametrize("group", [False, True])
def test_signals_come_once(tmp_path, number, group):
    program = start("--no-report", *python(WAITS), cwd=tmp_path, start_new_session=True)
    wait_ready(program)
    (os.killpg if group else os.kill)(program.pid, number)
    out, err = program.communicate(timeout=600)
    assert out.split() == [b"got", str(int(number)).encode()], err
    assert program.returncode == 1, "the handler ran once"


def test_a_signal_that_ends_the_command(tmp_path):
    program = start("--no-report", "--", "sh", "-c", "echo ready; exec sleep 60", cwd=tmp_path)
    wait_ready(program)
    program.terminate()
    program.communicate(timeout=600)
    assert program.returncode == 128 + signal.SIGTERM


def test_ctrl_c_at_a_terminal(tmp_path):
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.execv(PROGRAM, [str(PROGRAM), "run", "--no-report", *python(WAITS)])
    out = b""
    while b"ready" not in out:
        out += os.read(terminal, 1000)
    os.write(terminal, b"\x03")
    try:
        while chunk := os.read(terminal, 1000):
            out += chunk
    except OSError:  # the other side is closed
        pass
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1, out
    assert out.count(b"got 2") == 1
    os.close(terminal)


def test_signals_that_were_ignored_before(tmp_path):
    code = "import signal; print(*(int(signal.getsignal(s)) for s in (signal.SIGCHLD, signal.SIGHUP)))"
    ignore = lambda: [signal.signal(s, signal.SIG_IGN) for s in (signal.SIGCHLD, signal.SIGHUP)]  # noqa: E731
    got = run("--no-report", *python(code), cwd=tmp_path, preexec_fn=ignore)
    assert (got.returncode, got.stdout) == (0, b"1 1\n")


def test_stop_and_continue(tmp_path):
    program = start("--no-report", *python("print('ready', flush=True); input()"), cwd=tmp_path, start_new_session=True,
                    stdin=subprocess.PIPE)
    wait_ready(program)
    os.killpg(program.pid, signal.SIGTSTP)
    for _ in range(1200):
        if Path(f"/proc/{program.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T":
            break
        time.sleep(0.05)
    else:
        pytest.fail("it did not stop")
    os.killpg(program.pid, signal.SIGCONT)
    program.communicate(b"\n", timeout=600)
    assert program.returncode == 0


# They live until they were seen.
TREE = """
import os, sys, time
def wait():
    while not os.path.exists('seen'):
        time.sleep(0.05)
if os.fork() == 0:
    if os.fork() == 0:                     # a grandchild
        open('/proc/self/comm', 'w').write('grandchild')
        wait()
        os._exit(0)
    os.wait()
    os._exit(0)
if os.fork() == 0:                         # an orphan: its parent ends at once
    if os.fork() == 0:
        os.setsid()
        open('/proc/self/comm', 'w').write('orphan')
        wait()
    os._exit(0)
wait()
time.sleep(0.5)
"""


def test_descendants_are_seen_and_none_is_left(tmp_path):
    program = start("--no-report", *python(TREE), cwd=tmp_path)
    folder = tmp_path / ".stoker/0001"
    seen = {}
    for _ in range(2400):
        seen = processes(folder) if (folder / "samples").exists() else {}
        if "grandchild" in seen and "orphan" in seen:
            break
        time.sleep(0.05)
    (tmp_path / "seen").touch()
    _, err = program.communicate(timeout=600)
    assert program.returncode == 0, err
    assert "grandchild" in seen and "orphan" in seen
    seen = processes(folder)
    assert not any("sentinel" in name for name in seen)
    for pid in seen.values():
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        assert state != "Z", "no zombie is left"


def test_ten_ticks_a_second_for_little(tmp_path):
    assert run("--no-report", "--", "sleep", "3", cwd=tmp_path).returncode == 0
    folder = tmp_path / ".stoker/0001"
    times = ticks(folder)
    own, _, _ = end(folder)
    print(f"{len(times)} ticks in {times[-1] - times[0]:.2f} s, {own:.3f} s of CPU time")
    # 10 Hz, as far as a busy machine keeps it, and the two at the ends
    assert 6 <= len(times) <= 10 * (times[-1] - times[0]) + 3
    assert all(b > a for a, b in zip(times, times[1:]))
    assert own < 0.6, f"{own} s of CPU time in 3 s"


def test_a_live_run_can_be_read(tmp_path):
    program = start("--no-report", "--", "sleep", "60", cwd=tmp_path)
    folder = tmp_path / ".stoker/0001"
    for _ in range(1200):
        if (folder / "samples").exists() and len(ticks(folder)) >= 5:
            break
        time.sleep(0.05)
    assert end(folder)[2] == 0 and "sleep" in processes(folder)
    program.terminate()
    program.communicate(timeout=600)
    assert end(folder)[1:] == (143, 1)


@pytest.mark.parametrize(("seconds", "status"), [(0, 7), (1, 0)])
def test_no_python_and_no_steps_is_said(tmp_path, seconds, status):
    got = run("--", "sh", "-c", f"sleep {seconds}; exit {status}", cwd=tmp_path)
    assert got.returncode == status
    assert (b"status 7 before its first" in got.stderr) == (status == 7)  # it has said itself why
    assert (b"ST901" in got.stderr) == (b"DO THIS" in got.stderr) == (status == 0)
    folder = tmp_path / ".stoker/0001"
    assert json.loads((folder / "run.json").read_text())["verdict"]["kind"] == "cannot tell"
    assert (folder / "report.html").stat().st_size > 1000
    json.loads((folder / "trace.json").read_text())


TRAIN = f"""
import time, torch
from torch.utils.data import DataLoader, Dataset
{DESCENT}
class Data(Dataset):
    def __len__(self):
        return 320
    def __getitem__(self, i):
        time.sleep(0.005)
        return torch.full((8,), float(i))
model = torch.nn.Linear(8, 1)
optimizer = Descent(model.parameters(), 0.01)
for batch in DataLoader(Data(), batch_size=4, num_workers=1):
    model(batch).mean().backward()
    optimizer.step()
print("trained")
"""


def test_training_that_waits_for_data(tmp_path):
    (tmp_path / "train.py").write_text(TRAIN)
    got = run("--every", 1, "--", sys.executable, "train.py", cwd=tmp_path, timeout=600)
    assert (got.returncode, got.stdout) == (0, b"trained\n"), got.stderr
    judged = json.loads((tmp_path / ".stoker/0001/run.json").read_text())
    assert judged["verdict"]["kind"] == "data-bound", got.stderr
    assert b"VERDICT" in got.stderr and b"stoker  " in got.stderr
