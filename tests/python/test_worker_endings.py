# SPDX-License-Identifier: Apache-2.0
"""Worker processes when a loader is closed: the sample in progress is finished, and no other is begun."""

from __future__ import annotations

import gc
import multiprocessing
import multiprocessing.connection
import os
import signal
import subprocess
import sys
import textwrap

import pytest
import stoker
import torch.utils.data as tud
from torch.utils.data import _utils

_FORK = multiprocessing.get_context("fork")


class Writing(tud.Dataset):
    """Notes when a sample begins and ends; in between, it waits until the gate is opened."""

    def __init__(self, notes, gate):
        self.notes, self.gate = str(notes), gate

    def __len__(self):
        return 400

    def note(self, word):
        with open(self.notes, "a") as file:
            file.write(f"{word}\n")

    def __getitem__(self, index):
        self.note("begin")
        with self.gate:
            self.gate.wait_for(lambda: self.gate.opened.value)
        for _ in range(8):  # a while, as a write takes
            signal.sigtimedwait([], 0.05)
        self.note("end")
        return index


class Streaming(tud.IterableDataset):
    def __init__(self, samples):
        self.samples = samples

    def __iter__(self):
        return map(self.samples.__getitem__, range(len(self.samples)))


def gate():
    made = _FORK.Condition()
    made.opened = _FORK.Value("b", 0)
    return made


def opened(made):
    with made:
        made.opened.value = 1
        made.notify_all()


def words(notes):
    return notes.read_text().split() if notes.exists() else []


def wait_until(true):
    while not true():
        signal.sigtimedwait([], 0.01)


@pytest.fixture()
def closing(monkeypatch):
    """The gate is opened when the loader begins to wait for its workers, which must have been told to stop by then."""
    monkeypatch.setattr(_utils, "MP_STATUS_CHECK_INTERVAL", 600)  # as long as torch waits, but on any machine
    made = gate()
    join = multiprocessing.process.BaseProcess.join

    def open_and_join(process, timeout=None):
        opened(made)
        join(process, timeout)

    monkeypatch.setattr(multiprocessing.process.BaseProcess, "join", open_and_join)
    return made


def leave_by_break(loader, batches):
    del batches


def leave_with_the_loader(loader, batches):
    del batches
    loader._iterator = None
    gc.collect()


def leave_by_exception(loader, batches):
    def train(held):
        raise LookupError("in the loop")

    with pytest.raises(LookupError):
        train([batches])


@pytest.mark.parametrize("leave", [leave_by_break, leave_with_the_loader, leave_by_exception])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("wrapped", [lambda data: data, Streaming, "skip"], ids=["indexed", "stream", "skip"])
def test_samples_in_progress_are_finished_and_no_other_is_begun(tmp_path, closing, leave, persistent, wrapped):
    notes = tmp_path / "notes"
    data = Writing(notes, closing)
    more = {"on_error": "skip"} if wrapped == "skip" else {}
    loader = stoker.DataLoader(
        data if wrapped == "skip" else wrapped(data), 4, num_workers=2, persistent_workers=persistent, **more
    )
    held = [iter(loader)]
    wait_until(lambda: len(words(notes)) == 2)
    workers = held[0]._workers
    leave(loader, held.pop())
    del loader
    gc.collect()
    assert sorted(words(notes)) == ["begin", "begin", "end", "end"]
    assert [worker.exitcode for worker in workers] == [0, 0]


def test_workers_that_do_not_end_are_terminated(tmp_path, monkeypatch):
    monkeypatch.setattr(_utils, "MP_STATUS_CHECK_INTERVAL", 0.01)
    notes = tmp_path / "notes"
    batches = iter(stoker.DataLoader(Writing(notes, gate()), 4, num_workers=2))
    wait_until(lambda: len(words(notes)) == 2)
    workers = batches._workers
    del batches
    assert words(notes) == ["begin", "begin"]
    assert all(worker.exitcode in (0, -signal.SIGTERM) for worker in workers)  # torch's handler ends it with 0


def test_idle_workers_are_not_waited_for(monkeypatch):
    """They end by themselves as soon as they are told: none is terminated, or waited for
    although it has ended."""
    ended = []
    process = multiprocessing.process.BaseProcess
    monkeypatch.setattr(_utils, "MP_STATUS_CHECK_INTERVAL", 600)
    monkeypatch.setattr(process, "terminate", lambda process: ended.append(process))
    read, write = os.pipe()  # never ready, as if another process had the other end of the workers' pipes
    monkeypatch.setattr(process, "sentinel", read)
    monkeypatch.setattr(process, "join", lambda self, seconds=None: multiprocessing.connection.wait([read], seconds))
    batches = iter(stoker.DataLoader(list(range(8)), 2, num_workers=2, persistent_workers=True))
    list(batches)
    workers = batches._workers
    batches._shutdown_workers()
    assert [worker.exitcode for worker in workers] == [0, 0] and ended == []
    os.close(read)
    os.close(write)


def test_a_forked_child_takes_no_batch_of_its_parent():
    batches = iter(stoker.DataLoader(list(range(8)), 2, num_workers=2))
    assert next(batches).tolist() == [0, 1]
    child = os.fork()
    if child == 0:
        try:
            next(batches)
            os._exit(1)
        except RuntimeError as error:
            os._exit(0 if "belongs to the process that made it" in str(error) else 2)
    assert os.waitpid(child, 0)[1] == 0
    assert [batch.tolist() for batch in batches] == [[2, 3], [4, 5], [6, 7]]


SCRIPT = """
    import os, signal, sys, time
    import stoker, torch.utils.data as tud
    from torch.utils.data import _utils

    _utils.MP_STATUS_CHECK_INTERVAL = 600
    where, how = sys.argv[1:]

    class Writing(tud.Dataset):
        def __len__(self): return 400
        def __getitem__(self, index):
            with open(f"{where}/notes", "a") as file: file.write("begin\\n")
            while not os.path.exists(f"{where}/go"): time.sleep(0.01)
            time.sleep(1)
            with open(f"{where}/notes", "a") as file: file.write("end\\n")
            return index

    batches = iter(stoker.DataLoader(Writing(), 4, num_workers=2, persistent_workers=how == "persistent"))
    while not os.path.exists(f"{where}/notes") or len(open(f"{where}/notes").read().split()) < 2: time.sleep(0.01)
    import multiprocessing.process as process
    join = process.BaseProcess.join
    def open_and_join(self, timeout=None):
        open(f"{where}/go", "w").close()
        join(self, timeout)
    process.BaseProcess.join = open_and_join
    print("ready", flush=True)
    if how == "ctrl-c":
        next(batches)
    elif how == "exception":
        raise LookupError("in the loop")
    elif how == "sys.exit":
        sys.exit(0)
"""


@pytest.mark.parametrize("how", ["end", "persistent", "exception", "sys.exit", "ctrl-c"])
def test_the_same_when_the_interpreter_ends(tmp_path, how):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, str(script), str(tmp_path), how]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        if how == "ctrl-c":
            os.killpg(process.pid, signal.SIGINT)  # all processes of the terminal get it
        said = process.communicate()[1]
    assert sorted(words(tmp_path / "notes")) == ["begin", "begin", "end", "end"], said
    wanted = {"exception": "LookupError: in the loop", "ctrl-c": "KeyboardInterrupt"}.get(how, "")
    assert wanted in said and said.count("Traceback") == bool(wanted), said


def test_a_handler_of_the_script_is_kept_in_workers():
    class Handlers(tud.Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            return signal.getsignal(signal.SIGINT).__name__

    def handler(number, frame):
        pass

    before = signal.signal(signal.SIGINT, handler)
    try:
        assert list(stoker.DataLoader(Handlers(), num_workers=1)) == [["handler"], ["handler"]]
    finally:
        signal.signal(signal.SIGINT, before)
