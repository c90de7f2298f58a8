# SPDX-License-Identifier: Apache-2.0
"""The watch in a program that trains on a GPU: the exposed stall, copies, waits; and it waits for nothing itself."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "python"))

from watching import COPY, NEXT, NON_BLOCKING, PIN, PINNED, STALL, SYNC, Run, prepare, run_in  # noqa: E402

PROGRAM = """
import sys, time
import torch
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __init__(self, seconds):
        self.seconds = seconds
    def __len__(self):
        return 60
    def __getitem__(self, index):
        time.sleep(self.seconds)
        return torch.ones(1 << 16)

side = 4096
a = torch.randn(side, side, device="cuda", dtype=torch.bfloat16)
model = torch.nn.Linear(1 << 16, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

def work(milliseconds):
    # matrix products that keep the GPU busy about so long
    for _ in range(round(milliseconds / once)):
        torch.mm(a, a)

for _ in range(10): torch.mm(a, a)
begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
torch.cuda.synchronize()
begin.record()
for _ in range(50): torch.mm(a, a)
end.record()
torch.cuda.synchronize()
once = begin.elapsed_time(end) / 50
"""


@pytest.fixture()
def train(tmp_path):
    prepared = prepare(tmp_path / "run")

    def trained(code: str) -> Run:
        script = tmp_path / "program.py"
        script.write_text(PROGRAM + textwrap.dedent(code))
        run = Run(prepared, run_in(prepared, script))
        assert run.out.returncode == 0, run.out.stderr
        assert "watch.error" not in run.trainer.said, run.trainer.said["watch.error"]
        return run

    return trained


def middle(values):
    values = sorted(values)
    return values[len(values) // 2] / 1e6


def test_the_stall_is_what_the_loader_costs_beyond_the_gpus_work(train):
    run = train(
        """
        for batch in DataLoader(Data(0.020), 1):
            work(5)
        for batch in DataLoader(Data(0.001), 1, num_workers=2, prefetch_factor=8):
            work(10)
            time.sleep(0.004)       # the GPU has work, and the loader a lead
        with torch.no_grad():
            for batch in DataLoader(Data(0), 1): pass
        torch.cuda.synchronize()
        next(iter(DataLoader(Data(0), 1)))
        """
    )
    trainer = run.trainer
    waited = [event.dur for event in trainer.of(STALL, 0)]
    assert len(waited) >= 55, "the last few may still be under way at the end"
    assert 13 < middle(waited) < 22
    assert middle(event.dur for event in trainer.of(NEXT, 0)) >= 20
    ready = [event.dur for event in trainer.of(STALL, 1)][8:]
    assert middle(ready) < 0.5
    assert not trainer.of(STALL, 2), "that loader trained nothing"
    said = trainer.said
    assert float(said["cuda.capability"]) >= 5 and int(said["cuda.memory_peak"]) > 2 * 4096 * 4096
    assert said["cuda.name"] and said["cuda.uuid"] and int(said["cuda.memory_total"]) > 1 << 30


def test_copies_and_waits(train):
    run = train(
        """
        for batch in DataLoader(Data(0), 1):
            batch.to("cuda")
        for batch in DataLoader(Data(0), 2, pin_memory=True, num_workers=1):
            loss = model(batch.to("cuda", non_blocking=True)).sum()
            loss.backward()
            optimizer.step()
            loss.item()             # here
            float(loss)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            for batch in DataLoader(Data(0), 4):
                model(batch.cuda()).cpu()
                torch.cuda.synchronize()
        """
    )
    trainer = run.trainer
    copies = trainer.of(COPY)
    assert [event.b for event in copies if event.a == 256] == [0] * 60
    assert [event.b for event in copies if event.a == 512] == [PINNED | NON_BLOCKING] * 30
    assert [event.b for event in copies if event.a == 1024] == [0] * 15
    assert len(trainer.of(PIN, 1)) == 30 and all(event.a == 512 for event in trainer.of(PIN, 1))
    assert sorted(event.batch for event in trainer.of(PIN, 1)) == list(range(30))
    where = {trainer.said[f"sync.{event.a}.where"] for event in trainer.of(SYNC)}
    assert {text.split()[-1] for text in where} >= {"item", "__float__", "cpu", "synchronize"}
    assert all(":" in text and "program.py" in text for text in where)
    item = next(text for text in where if text.endswith(" item"))
    number = int(item.split()[0].rpartition(":")[2])
    assert "loss.item()" in Path(item.rpartition(":")[0]).read_text().splitlines()[number - 1]
    assert trainer.said["amp"] == "1" and trainer.said["tf32"] == "0"


def test_many_waits_of_a_step_are_added_up(train):
    run = train(
        """
        loss = torch.ones((), device="cuda")
        for batch in DataLoader(Data(0), 2):
            for _ in range(40): loss.item()
            loss.tolist()
        """
    )
    waits = run.trainer.of(SYNC)
    where = {event.a: run.trainer.said[f"sync.{event.a}.where"].split()[-1] for event in waits}
    items = [event.b for event in waits if where[event.a] == "item"]
    assert items == ([0] * 16 + [24]) * 30, "the last ones at the end of the program"
    assert [event.b for event in waits if where[event.a] == "tolist"] == [1] * 30


def test_nothing_waits_for_the_gpu(train):
    """torch reports every wait as an error; the same with a graph that is being captured."""
    run = train(
        """
        torch.cuda.set_sync_debug_mode("error")
        for batch in DataLoader(Data(0.001), 1, pin_memory=True, num_workers=1):
            loss = model(batch.to("cuda", non_blocking=True)).sum()
            loss.backward()
            optimizer.step()
            work(2)
        torch.cuda.set_sync_debug_mode("default")
        batches = iter(DataLoader(Data(0), 1))
        graph = torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            next(batches)
            torch.mm(a, a)
        graph.replay()
        """
    )
    assert len(run.trainer.of(STALL, 0)) >= 40
    assert len(run.trainer.of(NEXT, 1)) == 1 and not run.trainer.of(STALL, 1)
