# SPDX-License-Identifier: Apache-2.0
"""What `stoker run` puts into Python processes leaves other programs alone, hides no error, and costs little."""

from __future__ import annotations

import contextlib
import os
import signal
import struct
import subprocess
import sys
import time

from watching import FETCH, NEXT, Process, environment, run_in


def test_a_program_without_torch_is_left_alone(tmp_path, prepared):
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys\nsys.flavour = 'sweet'\n")
    script = tmp_path / "plain.py"
    script.write_text(
        "import os, sys, sitecustomize\n"
        "print(getattr(sys, 'flavour', None), sitecustomize.__file__, [type(f).__name__ for f in sys.meta_path])\n"
        "print(os.environ.get('PYTHONPATH'))\n"
    )
    out = run_in(prepared, script, path=str(own))
    assert out.stdout.startswith(f"sweet {own}/sitecustomize.py ['_Finder', ")
    assert f"{prepared}/inject" in out.stdout and not out.stderr
    off = run_in(prepared, script, path=str(own), STOKER_OFF="1")
    assert off.stdout.startswith(f"sweet {own}/sitecustomize.py [") and "_Finder" not in off.stdout
    elsewhere = {**environment(prepared, str(own))}
    del elsewhere["STOKER_RUN"]
    unset = subprocess.run(
        [sys.executable, str(script)], env=elsewhere, capture_output=True, text=True, timeout=600, check=False
    )
    assert "_Finder" not in unset.stdout and unset.stdout.startswith("sweet")
    script.write_text("print('fine')")
    for option in ("-I", "-S", "-E"):
        out = run_in(prepared, script, options=[option])
        assert (out.stdout, out.stderr, out.returncode) == ("fine\n", "", 0)
    (own / "sitecustomize.py").write_text("raise ValueError('mine')\n")
    with_it, without = run_in(prepared, script, path=str(own)), run_in(None, script, path=str(own))
    assert with_it.stdout == without.stdout and with_it.returncode == without.returncode
    assert with_it.stderr == without.stderr and "ValueError: mine" in with_it.stderr
    assert sorted(os.listdir(prepared)) == ["inject"]


SMALL = """
import os, sys, signal
import torch
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, index):
        {body}
        return torch.ones(2) * index
if __name__ == "__main__":
    {before}
    for batch in DataLoader(Data(), 4, num_workers={workers}):
        print(batch.tolist())
"""


def test_a_fault_of_the_watch_does_not_reach_the_program(tmp_path, prepared, watch):
    broken = "import sys; sys.modules['_stoker_watch']._queue_of = lambda iterator: iterator.nothing"
    run = watch(SMALL.format(body="pass", before=broken, workers=0))
    assert run.out.returncode == 0 and not run.out.stderr and len(run.out.stdout.splitlines()) == 10
    assert run.trainer.said["watch.error"].startswith("AttributeError")
    assert not run.trainer.of(NEXT)
    script = tmp_path / "program.py"
    nowhere = run_in(prepared, script, STOKER_RUN="/dev/null/run")
    assert nowhere.stdout == run.out.stdout and nowhere.returncode == 0 and not nowhere.stderr


def test_what_user_code_raises_is_raised(tmp_path, prepared, watch):
    code = SMALL.format(body="if index == 9: raise KeyError('nine')", before="pass", workers=0)
    run = watch(code)
    plain = run_in(None, tmp_path / "program.py")
    assert (run.out.stdout, run.out.returncode) == (plain.stdout, plain.returncode) and plain.returncode == 1
    assert run.out.stderr.endswith("KeyError: 'nine'\n")
    assert run.out.stderr.count("  File ") >= 4 and "sitecustomize" not in run.out.stderr, "none of our frames"
    assert [event.batch for event in run.trainer.of(FETCH)] == [0, 1]


def test_a_worker_that_is_killed(tmp_path, prepared, watch):
    run = watch(SMALL.format(body="if index == 30: os.kill(os.getpid(), signal.SIGKILL)", before="pass", workers=2))
    assert run.out.returncode == 1 and "Error" in run.out.stderr  # torch has several ways to say it
    assert run.out.stdout.startswith("[[0.0, 0.0], [1.0, 1.0]")
    assert len(run.workers) == 2 and all(each.of(FETCH) for each in run.workers)


def test_other_children_write_nothing(watch):
    run = watch(
        """
        import os, subprocess, sys, torch
        from torch.utils.data import DataLoader
        for batch in DataLoader(list(range(8)), 4): pass
        if not (child := os.fork()):
            torch.ones(3).sum().item()
            os._exit(0)
        os.waitpid(child, 0)
        subprocess.run([sys.executable, "-c", "import torch; torch.save(1, '/dev/null')"], check=True)
        """
    )
    assert run.out.returncode == 0, run.out.stderr
    assert len(run.process) == 1 and len(os.listdir(run.folder / "process")) == 1
    assert "watch.error" not in run.trainer.said


def test_events_are_there_while_it_runs(tmp_path, prepared):
    script = tmp_path / "program.py"
    script.write_text(
        "import time, torch\nfrom torch.utils.data import DataLoader\n"
        "while True:\n    for batch in DataLoader(list(range(100)), 1): time.sleep(0.001)\n"
    )
    child = subprocess.Popen([sys.executable, str(script)], env=environment(prepared))
    try:
        deadline, seen = time.monotonic() + 120, 0
        while time.monotonic() < deadline and seen < 300:
            time.sleep(0.1)
            if (prepared / "events" / str(child.pid)).exists():
                with contextlib.suppress(struct.error, AssertionError):
                    process = Process(prepared, str(child.pid))
                    seen = len(process.of(NEXT))
        assert seen >= 300 and child.poll() is None
        assert all(event.start and event.dur for event in process.of(NEXT))
        assert process.said["loader.0.batches"] == "100" and "loader.1.batches" not in process.said
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()


def test_it_costs_little(watch):
    """Batches of one millisecond. By its own account, and by the fastest of many batches with it and without it: 3 to
    4 %. In CPU time, which does not depend on what else the machine does, and with limits far above that."""
    run = watch(
        """
        import sys, time, torch
        from torch.utils.data import DataLoader, Dataset
        class Data(Dataset):
            def __len__(self):
                return 1600
            def __getitem__(self, index):
                end = time.thread_time_ns() + 125_000
                while time.thread_time_ns() < end: pass
                return index
        def fastest(on):
            sys.modules["_stoker_watch"]._on = on
            least = float("inf")
            batches = iter(DataLoader(Data(), 8))
            last = time.thread_time_ns()
            for batch in batches:
                now = time.thread_time_ns()
                least, last = min(least, now - last), now
            return least
        with_it, without = zip(*[(fastest(True), fastest(False)) for _ in range(3)])
        print(min(with_it), min(without))
        """
    )
    assert run.out.returncode == 0, run.out.stderr
    with_it, without = map(int, run.out.stdout.split())
    trainer = run.trainer
    whole = sum(event.dur for event in trainer.of(NEXT))
    print(f"with {with_it} ns, without {without} ns, by its own account {trainer.spent / whole:.2%}")
    assert with_it < 1.25 * without
    assert trainer.spent < 0.25 * whole


def test_a_step_costs_little(watch):
    """What the watch adds to a step with worker processes: about 6 us of CPU time, measured as the fastest of many
    repetitions. The limit leaves room for slow machines."""
    run = watch(
        """
        import sys, time, torch
        from torch.utils.data import DataLoader, TensorDataset
        watch = sys.modules["_stoker_watch"]
        batches = iter(DataLoader(TensorDataset(torch.zeros(64, 8)), 8, num_workers=1, multiprocessing_context="fork"))
        next(batches)
        optimizer = object()
        def step():
            call = watch._begin_next(batches)
            watch._note_empty(batches)
            watch._end_next(call, batches, None, None)
            watch._before_step(optimizer, (), {})
            watch._after_step(optimizer, (), {})
        least = float("inf")
        for _ in range(200):
            start = time.thread_time_ns()
            for _ in range(50): step()
            least = min(least, (time.thread_time_ns() - start) / 50)
        print(least)
        """
    )
    assert run.out.returncode == 0, run.out.stderr
    assert "watch.error" not in run.trainer.said
    print(f"{float(run.out.stdout) / 1e3:.1f} us per step")
    assert float(run.out.stdout) < 100_000
