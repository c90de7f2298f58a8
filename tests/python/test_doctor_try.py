# SPDX-License-Identifier: Apache-2.0
"""`stoker run --try-stoker` makes samples of the run once more, and the program does not notice."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from packing import PROGRAM
from watching import DESCENT, Run, environment

# The handler that is registered before torch is imported runs after everything of the watch.
TRAIN = f"""
import atexit, hashlib, os, random, sys

def state():
    known = random.getstate(), np.random.get_state()[1].tobytes(), torch.get_rng_state().numpy().tobytes()
    return hashlib.sha256(repr(known).encode()).hexdigest()

atexit.register(lambda: print("afterwards", state(), len(made), os.getpid() == process))
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from PIL import Image
{DESCENT}
made, process = [], os.getpid()

class Own(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        print("made", index, flush=True)
        made.append(index)
        with Image.open(f"images/a/{{index % 4}}.png") as image:
            values = torch.frombuffer(bytearray(image.convert("RGB").resize((8, 8)).tobytes()), dtype=torch.uint8)
        return values + random.random() + np.random.rand() + torch.rand(()), index % 2

def data(kind):
    if kind == "own":
        return Own()
    import stoker
    from stoker import transforms as T
    return stoker.datasets.ImageFolder("images", T.Compose([T.RandomCrop(6), T.ToTensor()]))

class Batches:  # iterators, which nobody else may use up

    def __len__(self):
        return 10

    def __iter__(self):
        for first in range(0, 40, 4):
            yield iter(torch.randperm(4).add(first).tolist())

random.seed(1), np.random.seed(2), torch.manual_seed(3)
loader = DataLoader(data(sys.argv[1]), batch_size=4, shuffle=True)
if sys.argv[1] == "own":
    loader = DataLoader(data(sys.argv[1]), batch_sampler=Batches())
model = torch.nn.LazyLinear(1)
optimizer = None
for _ in range(int(sys.argv[2])):
    for values, label in loader:
        loss = model(values.float().flatten(1)).sum()
        optimizer = optimizer or Descent(model.parameters(), lr=1e-6)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("at the end", state(), len(made), True)
sys.stdout.write("not flushed")
if sys.argv[1] == "own":
    raise SystemExit(7)
"""


@pytest.fixture()
def folder(tmp_path):
    from PIL import Image

    (tmp_path / "images/a").mkdir(parents=True)
    for number in range(20):
        Image.new("RGB", (9 + number, 8), (number, 90, 7)).save(tmp_path / f"images/a/{number}.png")
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "epochs", "plan", "code", "made", "tried"), [("own", 2, "python", 7, 80, 2), ("folder", 4, "engine", 0, 0, 5)]
)
def test_the_program_does_not_notice(folder, kind, epochs, plan, code, made, tried):
    command = [PROGRAM, "run", "--try-stoker", "--quiet", "--dir", "run", "--", sys.executable, "train.py", kind, str(epochs)]
    out = subprocess.run(command, cwd=folder, env=environment(None), capture_output=True, text=True, timeout=600, check=False)
    assert out.returncode == code, out.stderr
    end, afterwards = out.stdout.splitlines()[-2:]
    assert afterwards == "not flushed" + end.replace("at the end", "afterwards"), "the state of all generators"
    assert end.endswith(f" {made} True") and out.stdout.count("made") == made
    assert out.stdout.count("afterwards") == 1, "no other process has run the program's handlers"
    run = Run(folder / "run", out)
    said = run.trainer.said
    assert said["loader.0.try.plan"] == plan and "loader.0.try.error" not in said, said
    both = [run.trainer.of(number) for number in (13, 14)]
    assert [len(events) for events in both] == [tried, tried]
    assert {event.a for events in both for event in events} == {16}
    assert not any("watch.error" in each.said for each in run.process)
    report = json.loads((folder / "run/run.json").read_text())
    assert report["tried"]["plan"] == plan and report["tried"]["samples"] == 16 * tried
    assert report["tried"]["share_low"] < report["tried"]["share"] < report["tried"]["share_high"]
    offer = report["verdict"]["with_stoker"]
    assert offer["command"] == "python -m stoker train.py" and offer["sentence"]
    assert " STOKER   python -m stoker train.py: " in out.stderr
    page = (folder / "run/report.html").read_text()
    assert "With Stoker" in page and "python -m stoker train.py" in page
