# SPDX-License-Identifier: Apache-2.0
"""`stoker run --metrics PORT`: what Prometheus reads while a program runs, and that no client holds the run up."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from packing import PROGRAM, stoker

# What the watch writes for a training process: 200 steps of 0.1 s, half of which are waits, up to now.
PROGRAM_TEXT = """
import os, struct, sys, time
run, pid = os.environ["STOKER_RUN"], os.getpid()
os.makedirs(run + "/process", exist_ok=True), os.makedirs(run + "/events", exist_ok=True)
with open(f"{run}/process/{pid}", "w") as file:
    file.write(f"pid {pid}\\nparent {os.getppid()}\\nrole trainer\\nloader.0.class torch.DataLoader\\nloader.0.workers 0\\n"
               "loader.0.prefetch 2\\nloader.0.batch_size 8\\nloader.0.in_order 1\\n")
events, steps = b"", 200
for i in range(steps):
    now = time.monotonic_ns() - (steps - i) * 100_000_000
    events += struct.pack("=QQIHHII", now, 50_000_000, i, 1, 0, 3, 8 | (4 if i == 0 else 0))
    events += struct.pack("=QQIHHII", now, 50_000_000, i, 16, 0, 8, 50_000)
    events += struct.pack("=QQIHHII", now + 99_000_000, 900, i, 3, 0, 0, 0)
header = struct.pack("=8sIIQQQ", b"stkrev1\\0", 32, pid, 1000, 3 * steps, 1000)
with open(f"{run}/events/{pid}", "wb") as file:
    file.write(header.ljust(4096, b"\\0") + events.ljust(32000, b"\\0"))
print("ready", flush=True)
sys.stdin.readline()
sys.exit(5)
"""


def ask(port, path="/metrics"):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return answer.read().decode()


@pytest.fixture()
def running(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [PROGRAM, "run", "--no-report", "--metrics", str(port), "--", sys.executable, "-S", "-c", PROGRAM_TEXT],
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "ready\n", process.communicate()
    yield process, port
    process.kill()
    process.communicate()


def test_numbers_while_it_runs(running):
    process, port = running
    until = time.monotonic() + 60
    while "stoker_stall_share" not in (text := ask(port)) and time.monotonic() < until:
        time.sleep(0.5)
    values = {name: float(value) for name, value in re.findall(r"^(\w+) (\S+)$", text, re.M)}
    assert values["stoker_stall_share"] == pytest.approx(0.5, abs=0.02)
    assert values["stoker_samples_per_second"] == pytest.approx(80, rel=0.02)
    assert values["stoker_batches_ready"] == 3
    for name in values:
        assert re.search(rf"^# HELP {name} .*\n# TYPE {name} gauge\n{name} ", text, re.M), text
    for path in ("/", "/metrics?x=1"):
        assert "stoker_stall_share" in ask(port, path)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        ask(port, "/other")
    slow = [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(6)]  # more than are listened to
    for each in slow[:3]:
        each.sendall(b"GET /met")
    with socket.create_connection(("127.0.0.1", port), timeout=60) as large:
        large.sendall(b"x" * 100_000)
        assert "stoker_stall_share" in ask(port), "all of them are dropped after a while"
    for each in slow:
        each.close()
    out, err = process.communicate("\n", timeout=600)
    assert (process.returncode, out) == (5, "") and f"metrics at http://127.0.0.1:{port}/metrics" in err


def test_a_port_that_is_taken(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        got = stoker("run", "--metrics", server.getsockname()[1], "--", "touch", "made", cwd=tmp_path)
    assert got.returncode == 1 and "cannot listen on port" in got.stderr
    assert not (tmp_path / "made").exists() and not (tmp_path / ".stoker").exists(), "before anything is run"
    for port in ("0", "65536", "x", ""):
        got = stoker("run", "--metrics", port, "--", "true", cwd=tmp_path)
        assert got.returncode == 2 and "from 1 to 65535" in got.stderr
