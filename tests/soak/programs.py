#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs drawn at random, each run with torch's DataLoader and with Stoker's: nothing but the speed may differ.

    programs.py [--seconds S] [--seed N] [--count N] [--only K] [--jobs N] [--keep FOLDER]

Program K depends on K alone: a way to write a dataset, transforms, options of the loader, a use of it, and seeds
(program_draw.py). It runs once in a process in which Stoker is not imported, and once with stoker.DataLoader, with
stoker.install(), or under `python -m stoker`. All batches are compared byte for byte with their types, all exceptions
with their class, message and place, and the states of the generators of torch, random and NumPy after each epoch.

Programs N, N + 1, ... are tried for S seconds, or as many as --count says; --only K tries one and prints it. One that
differs is saved in FOLDER (build/programs) as a script of its own, the first few also reduced. Every program runs in a child of a
process that has imported torch, so that none sees what another one left behind. If torch itself does not give the same
twice, as with random streams on several workers, a program is not counted.
"""

from __future__ import annotations

import argparse
import atexit
import concurrent.futures
import contextlib
import gc
import json
import os
import pprint
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HANGS = 600  # seconds
REDUCED = 5  # programs: each takes as long as dozens of others


# ---- in the child ----


def play_here(request):
    """Play a program in this process, and write down what it saw."""
    import program_idioms
    import torch
    from program_play import play

    if request["way"] == "install":
        import stoker

        stoker.install()
    loader = torch.utils.data.DataLoader
    if request["way"] == "stoker":
        import stoker

        loader = stoker.DataLoader
    names = {**vars(program_idioms), "DataLoader": loader}
    entries = play(request["spec"], names, Path(request["folder"]))
    with_stoker = "stoker" in sys.modules
    assert with_stoker == (request["way"] != "torch"), "Stoker must be imported on one side only"
    Path(request["out"]).write_text(json.dumps(entries))


def child(request):
    os.setsid()
    with open(request["out"] + ".err", "w") as file:
        os.dup2(file.fileno(), 2)
        os.dup2(file.fileno(), 1)
    code = 1
    try:
        if request["way"] == "module":
            import stoker.__main__

            sys.argv[:] = ["python -m stoker", __file__, "--play", json.dumps(request)]
            stoker.__main__.main()
        else:
            play_here(request)
        gc.collect()
        atexit._run_exitfuncs()
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def serve(side):
    """Fork a child for each request that comes in, and say how it ended."""
    import program_idioms  # noqa: F401 (imported here once, not in every child)
    import program_play  # noqa: F401
    import torch
    from PIL import Image

    torch.set_num_threads(1)
    Image.init()
    if side == "stoker":
        import stoker.__main__
        import stoker.dataloader  # noqa: F401
    gc.freeze()  # children that collect garbage then copy no page of it
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            child(request)
        deadline = time.monotonic() + HANGS
        while True:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                break
            if time.monotonic() > deadline:
                os.killpg(pid, signal.SIGKILL)
                status = os.waitpid(pid, 0)[1]
                break
            time.sleep(0.005)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # workers that it left behind
        print(json.dumps({"status": os.waitstatus_to_exitcode(status)}), flush=True)


# ---- the two sides ----


class Server:
    def __init__(self, side):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--serve", side], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,  # what torch says at its end; programs have files for theirs
        )  # fmt: skip

    def play(self, spec, folder, way):
        out = f"{folder}.{way}"
        Path(out).unlink(missing_ok=True)
        request = {"spec": spec, "folder": str(folder), "way": way, "out": out}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        if answer["status"] == 0 and Path(out).exists():
            return json.loads(Path(out).read_text())
        last = Path(out + ".err").read_text(errors="replace")[-2000:]
        return [["the program ended", f"with status {answer['status']}: {last}"]]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Pair:
    """Plays programs with torch and with ours."""

    def __init__(self, folder):
        self.folder = folder
        self.torch = Server("torch")
        self.stoker = Server("stoker")
        self.number = 0

    def files(self, spec):
        from program_files import make_files

        self.number += 1
        folder = self.folder / str(self.number)
        folder.mkdir(parents=True)
        make_files(folder, *spec["files"])
        return folder

    def compare(self, spec):
        """Lines that say where they differ; None if torch does not repeat itself."""
        from program_play import differences

        folder = self.files(spec)
        try:
            theirs = self.torch.play(spec, folder, "torch")
            ours = self.stoker.play(spec, folder, spec["way"])
            strict = "datasets.ImageFolder" not in spec["dataset"]  # the engine's messages say more
            found = differences(theirs, ours, strict)
            if found and any(differences(theirs, self.torch.play(spec, folder, "torch")) for _ in range(2)):
                return None
            return found
        finally:
            shutil.rmtree(folder)

    def close(self):
        self.torch.close()
        self.stoker.close()


# ---- the campaign ----


def save(pair, spec, keep, found, reduce):
    """Save a program that differs, and say how it does."""
    from program_saved import reduced, script

    command = f"{Path(__file__).name} --only {spec['number']}"
    keep.mkdir(parents=True, exist_ok=True)
    scripts = [keep / f"program-{spec['number']}.py"]
    scripts[0].write_text(script(spec, command))
    if reduce:
        spec = reduced(spec, pair.compare)
        scripts.append(keep / f"program-{spec['number']}-reduced.py")
        scripts[1].write_text(script(spec, command))
    about = ", ".join(str(spec[name]) for name in ("dataset", "options", "use", "files", "prelude", "way"))
    lines = [f"program {spec['number']} differs:", *(f"  {line:.700}" for line in found), f"  it is: {about}",
             *(f"  again: {sys.executable} {path}" for path in scripts)]  # fmt: skip
    print("\n".join(lines), flush=True)


def campaign(options):
    from program_draw import draw

    last = options.seed + options.count if options.count else None
    lock = threading.Lock()
    state = {"next": options.seed, "tried": 0, "differ": 0, "unstable": 0}
    end = time.monotonic() + options.seconds if options.seconds else None

    def take():
        with lock:
            number = state["next"]
            if (last is not None and number >= last) or (end is not None and time.monotonic() >= end):
                return None
            state["next"] += 1
            return number

    def work(folder):
        pair = Pair(folder)
        try:
            while (number := take()) is not None:
                spec = draw(number)
                found = pair.compare(spec)
                with lock:
                    state["tried"] += found is not None
                    state["unstable"] += found is None
                    state["differ"] += bool(found)
                    reduce = state["differ"] <= REDUCED
                if found:
                    save(pair, spec, options.keep, found, reduce)
        finally:
            pair.close()

    with tempfile.TemporaryDirectory(prefix="stoker-programs-") as own:
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for done in [pool.submit(work, Path(own) / str(job)) for job in range(options.jobs)]:
                done.result()
    if state["unstable"]:
        print(f"{state['unstable']} programs were not counted: torch does not repeat itself")
    print(f"programs: {state['tried']:,} programs, {state['differ']} differ")
    return state["differ"] > 0


def only(number, keep):
    from program_draw import draw

    spec = draw(number)
    pprint.pp(spec, width=120)
    with tempfile.TemporaryDirectory(prefix="stoker-programs-") as own:
        pair = Pair(Path(own))
        found = pair.compare(spec)
        if found:
            save(pair, spec, keep, found, True)
        pair.close()
    print("programs: torch does not repeat itself" if found is None else f"programs: 1 programs, {bool(found):d} differ")
    return bool(found)


def main():
    parser = argparse.ArgumentParser(description="Compare Stoker's DataLoader with torch's on random programs.")
    parser.add_argument("--seconds", type=float, help="how long to go on")
    parser.add_argument("--seed", type=int, default=0, help="the first program")
    parser.add_argument("--count", type=int, help="how many programs")
    parser.add_argument("--only", type=int, help="this program only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="programs at once")
    parser.add_argument("--keep", type=Path, default=Path("build/programs"), help="where to save programs that differ")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--play", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    if options.play:
        return play_here(options.play)
    if options.only is not None:
        return only(options.only, options.keep)
    if options.seconds is None and options.count is None:
        parser.error("say for how long (--seconds) or how many programs (--count)")
    return campaign(options)


if __name__ == "__main__":
    code = main()
    if "--play" not in sys.argv:
        sys.exit(code)
