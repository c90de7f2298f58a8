# SPDX-License-Identifier: Apache-2.0
"""stoker.monitor: what is measured, to whom it is written, and the callbacks for frameworks."""

from __future__ import annotations

import sys
import types

import pytest
import stoker
from stoker import _monitor


class Clock:
    """Time that passes only when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture()
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(_monitor, "_clock", clock)
    return clock


def loader(clock, batches, wait):
    for batch in batches:
        clock.now += wait
        yield batch


def test_what_is_measured(clock):
    written = []
    monitor = stoker.monitor(lambda values, step: written.append((step, values)), every=10)
    for _ in monitor(loader(clock, [[1, 2, 3, 4]] * 10, 3.0)):
        clock.now += 1.0
    assert [step for step, _ in written] == [3, 6, 9]  # 11, then 12 seconds each
    first, second, _ = (values for _, values in written)
    assert first == pytest.approx({"stoker/stall_share": 9 / 11, "stoker/samples_per_second": 12 / 11})
    assert second == pytest.approx({"stoker/stall_share": 9 / 12, "stoker/samples_per_second": 12 / 12})
    assert (monitor.step, monitor.last["stall_share"]) == (10, 9 / 12)
    clock.now += 1000
    monitor.flush()
    assert written[-1][1] == pytest.approx({"stoker/stall_share": 3 / 5, "stoker/samples_per_second": 4 / 5})
    monitor.flush()
    assert len(written) == 4, "nothing new was measured"


def test_a_loop_that_is_left_and_an_evaluation_do_not_count(clock):
    monitor = stoker.monitor(lambda values, step: None, every=0)
    for _ in monitor(loader(clock, [[1]] * 3, 1.0)):
        clock.now += 1.0
        break
    monitor.rests()
    clock.now += 50.0
    for _ in monitor(loader(clock, [[1]], 1.0)):
        pass
    assert monitor.last["stall_share"] == pytest.approx(0.5)


def test_writers():
    class TensorBoard:
        def __init__(self):
            self.got = []

        def add_scalar(self, tag, scalar_value, global_step=None):
            self.got.append((tag, scalar_value >= 0, global_step))

    class Run:
        def __init__(self):
            self.got = []

        def log(self, data, step=None, commit=None):
            self.got.append((sorted(data), step, commit))

    class Plain:
        def log(self, data):
            self.got = sorted(data)

    board, run, plain = TensorBoard(), Run(), Plain()
    for writer in (board, run, plain):
        for _ in stoker.monitor(writer, every=0, prefix="data.")([[1, 2]]):
            pass
    names = ["data.samples_per_second", "data.stall_share"]
    assert sorted(board.got) == [(name, True, 1) for name in names]
    assert run.got == [(names, None, False)], "the program's count of steps is its own"
    assert plain.got == names
    for wrong in (None, 3, object()):
        with pytest.raises(TypeError, match="add_scalar"):
            stoker.monitor(wrong)
    for every in (-1, float("nan")):
        with pytest.raises(ValueError, match="every="):
            stoker.monitor(print, every=every)


@pytest.mark.parametrize(("batch", "rows"), [
    ([[1, 2, 3]], 3), ({"a": types.SimpleNamespace(shape=(5, 2))}, 5), ((), 0), (["x", "y"], 2), ("text", 1), (None, 1),
    (types.SimpleNamespace(shape=()), 1), ([types.SimpleNamespace(shape=(7,)), 1], 7)])  # fmt: skip
def test_the_samples_of_a_batch(batch, rows):
    assert _monitor._rows(batch) == rows


def test_batches_that_are_ready():
    """As torch's iterator with workers counts them: those set aside, and those in the queue."""

    class Iterator:
        _task_info = {3: (0,), 4: (1, "data")}
        _data_queue = types.SimpleNamespace(qsize=lambda: 2)
        left = 1

        def __iter__(self):
            return self

        def __next__(self):
            self.left -= 1
            if self.left < 0:
                raise StopIteration
            return [1]

    monitor = stoker.monitor(lambda values, step: None, every=0)
    list(monitor(Iterator()))
    assert monitor.last["batches_ready"] == 3


def test_callbacks(clock, monkeypatch):
    """With modules that have what is used of the frameworks; test_lightning.py uses the real one."""
    for name, base in (("pytorch_lightning", "Callback"), ("transformers", "TrainerCallback")):
        monkeypatch.setitem(sys.modules, name, types.SimpleNamespace(**{base: type(base, (), {})}))
    batch = types.SimpleNamespace(shape=(8, 3))
    monitor = stoker.monitor(lambda values, step: None, every=1e9)
    hooks = monitor.lightning()
    hooks.on_train_epoch_start(None, None)
    for _ in range(2):
        clock.now += 3
        hooks.on_train_batch_start(None, None, batch, 0)
        clock.now += 1
        hooks.on_train_batch_end(None, None, None, batch, 0)
    hooks.on_validation_start(None, None)
    clock.now += 100
    hooks.on_validation_end(None, None)
    hooks.on_train_epoch_end(None, None)
    hooks.on_train_end(None, None)
    assert monitor.last == pytest.approx({"stall_share": 6 / 8, "samples_per_second": 2})
    monitor = stoker.monitor(lambda values, step: None, every=1e9)
    hooks = monitor.transformers()
    given = types.SimpleNamespace(train_batch_size=4, gradient_accumulation_steps=2)
    hooks.on_epoch_begin(given, None, None)
    for _ in range(2):
        clock.now += 1
        hooks.on_step_begin(given, None, None, model=None)
        clock.now += 3
        hooks.on_step_end(given, None, None)
        clock.now += 50
        hooks.on_evaluate(given, None, None, metrics={})
    hooks.on_epoch_end(given, None, None)
    hooks.on_train_end(given, None, None)
    assert monitor.last == pytest.approx({"stall_share": 2 / 8, "samples_per_second": 2})
