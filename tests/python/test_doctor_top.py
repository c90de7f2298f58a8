# SPDX-License-Identifier: Apache-2.0
"""`stoker top` on runs and on processes, and the runs that `stoker tune` makes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from packing import PROGRAM
from watching import DESCENT

STOKER = PROGRAM


def stoker(*args, **options):
    options = {"capture_output": True, "text": True, "timeout": 120, "check": False, **options}
    return subprocess.run([STOKER, *map(str, args)], **options)


def test_top_of_a_run_without_training(tmp_path):
    assert stoker("run", "--quiet", "--dir", tmp_path / "run", "--", "sleep", "0.3").returncode == 0
    got = stoker("top", "--once", tmp_path / "run")
    assert got.returncode == 0 and "sleep 0.3" in got.stdout and "finished" in got.stdout
    assert "\033" not in got.stdout and max(len(line) for line in got.stdout.splitlines()) <= 80


def test_top_says_what_it_cannot_find(tmp_path):
    with subprocess.Popen(["sleep", "600"]) as other:  # this process itself may still have loaders of other tests
        unwatched = (str(other.pid),), "not part of a 'stoker run'"
        for words, sentence in (((), "there is no run"), (("nowhere",), "nowhere"), unwatched):
            got = stoker("top", "--once", *words, cwd=tmp_path)
            assert got.returncode == 1 and sentence in got.stderr, got.stderr
        other.kill()
    assert stoker("top", "--twice").returncode == 2


LOADS = """
import sys, time
import stoker
from stoker import transforms as T
data = stoker.datasets.ImageFolder(sys.argv[1], T.Compose([T.RandomResizedCrop(24), T.ToTensor()]))
loader = stoker.DataLoader(data, 2, num_workers=1)
print("ready", flush=True)
until = time.monotonic() + 60
while time.monotonic() < until:
    for batch in loader:
        time.sleep(0.02)
"""


def test_top_of_a_process_that_nobody_watches(even_tree):
    process = subprocess.Popen([sys.executable, "-c", LOADS, str(even_tree)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        until = time.monotonic() + 30
        while "samples" not in (got := stoker("top", "--once", process.pid)).stdout and time.monotonic() < until:
            time.sleep(0.2)
        assert got.returncode == 0 and "1 worker," in got.stdout, got.stdout + got.stderr
        (loader,) = json.loads(stoker("top", "--json", process.pid).stdout)["loaders"]
        assert loader["workers"] == 1 and loader["samples"] > 0 and loader["batches"] > 0
    finally:
        process.kill()
        process.wait()
    assert stoker("top", "--once", process.pid).returncode == 1


TRAINS = f"""
import time, torch
from torch.utils.data import DataLoader, Dataset
{DESCENT}
class Data(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        time.sleep(0.01)
        return torch.ones(4)

model = torch.nn.Linear(4, 1)
optimizer = Descent(model.parameters(), 1e-3)
loader = DataLoader(Data(), batch_size=2, num_workers=1)
for batch in loader:
    model(batch).sum().backward()
    optimizer.step()
print("the end")
"""


STATEFUL = TRAINS.replace("from torch.utils.data import DataLoader,", "from torchdata.stateful_dataloader import StatefulDataLoader\n"
                          "from torch.utils.data import").replace("= DataLoader(", "= StatefulDataLoader(")


@pytest.mark.parametrize(
    ("program", "probe", "most"),
    [
        (TRAINS, "mode=time;skip=4;seconds=1;num_workers=2;stoker=1", 105),  # 10 ms per sample: 100 batches/s at most
        (STATEFUL, "mode=loader;skip=4;seconds=1;num_workers=4", 250),  # 200 batches/s, and those made beforehand
    ],
    ids=["stoker", "torchdata"],
)
def test_runs_of_tune(tmp_path, program, probe, most):
    """Those that test_tune_to_its_end does not make, or does not show by themselves."""
    (tmp_path / "train.py").write_text(program)
    got = stoker("run", "--quiet", "--no-report", "--dir", tmp_path / "run", "--", sys.executable, tmp_path / "train.py",
                 env={**os.environ, "STOKER_PROBE": probe})
    assert got.returncode == 0 and "the end" not in got.stdout, got.stdout + got.stderr
    batches, seconds = (tmp_path / "run").glob("probe-*").__next__().read_text().split()
    assert 5 < int(batches) / float(seconds) < most


def test_tune_to_its_end(tmp_path):
    """A loader with one worker that waits: more workers are faster, and the page shows how much. It waits so long that
    a machine with other work changes nothing about it."""
    program = TRAINS.replace("time.sleep(0.01)", "time.sleep(0.04)")
    (tmp_path / "train.py").write_text(program)
    got = stoker("tune", "--json", "--quick", "--seconds", "1", "--", sys.executable, "train.py", cwd=tmp_path,
                 timeout=400)
    assert got.returncode == 0, got.stderr
    result = json.loads(got.stdout)
    # One worker makes a batch in 80 ms; the model alone takes much less than a millisecond.
    assert result["step_seconds"] > 0.06 > result["step_seconds_without_loading"]
    assert [point["workers"] for point in result["loader_alone"]][:2] == [1, 2]
    assert result["fit"]["one_worker"] > 0 and result["predicted_speed_up"] > 1.2
    assert result["recommendation"] in ("settings", "stoker") and result["after"]["speed_up"] > 1.2
    change = result["change"]
    assert Path(change["file"]).name == "train.py" and int(change["settings"]["num_workers"]) > 1
    assert change["old_call"] == "DataLoader(Data(), batch_size=2, num_workers=1)" and not change["applied"]
    assert f"num_workers={change['settings']['num_workers']}" in change["new_call"]
    directory = tmp_path / ".stoker" / "tune-0001"
    assert result["directory"] == str(directory) and result["report"] == str(directory / "report.html")
    assert json.loads((directory / "tune.json").read_text()) == result
    page = (directory / "report.html").read_text()
    assert page.count("class=dot") == 3 and f"<td>{result['predicted_speed_up']:.2f}x</td>" in page
    assert "the end" not in got.stderr and program == (tmp_path / "train.py").read_text()


def test_tune_says_how_it_is_used(tmp_path):
    assert stoker("tune").returncode == 2 and stoker("tune", "--").returncode == 2
    assert stoker("tune", "--seconds", "never", "--", "true").returncode == 2


@pytest.mark.parametrize(("given", "command", "said"), [
    ((), "echo one; echo no loader here; exit 3", "the command ended with status 3 before"),
    ((), "echo one; echo no loader here; kill -9 $$", "the command was ended by signal 9 (Killed) before"),
    (("--wait", "1"), "echo one; echo no loader here; exec sleep 3600", "delivered a batch within 1 s, so tune ended it"),
])
def test_tune_says_who_ended_the_command(tmp_path, given, command, said):
    got = stoker("tune", "--quick", *given, "--", "sh", "-c", command, cwd=tmp_path)
    assert got.returncode == 1 and said in got.stderr
    # The last lines of its output, each on a line of its own.
    assert got.stderr.endswith("tune-0001/01.log:\n    one\n    no loader here\n") and "\\x0a" not in got.stderr
    assert ("--wait 5" in got.stderr) == bool(given) and "status 143" not in got.stderr
    assert f"up to {given[1] if given else 600} s to its first batch (--wait)" in got.stderr


def test_tune_counts_the_batches_of_a_short_command(tmp_path):
    (tmp_path / "train.py").write_text("from torch.utils.data import DataLoader\nfor _ in DataLoader([1, 2, 3]): pass\n")
    got = stoker("tune", "--quick", "--", sys.executable, "train.py", cwd=tmp_path)
    assert got.returncode == 1 and "its DataLoader delivered 3, and at least 10 are needed" in got.stderr
