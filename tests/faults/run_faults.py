# SPDX-License-Identifier: Apache-2.0
"""Runs the planted faults under `stoker run`, and measures what its advice is worth.

For each case of cases.py: the program bare (A), watched, and bare with the advice applied (B), A and B by turns. Then the
table, the share of right first causes, false alarms, and the median error of the predicted gain. Exit code 1 where the
limits below are missed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import math
import os
import platform
import queue
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path

import generate
from cases import CASES, Case
from drawn_table import drawn_markdown
from limits import REFUSED
from table import Result, confusions, markdown, plain_row, plain_summary, summary

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build/faults"
DATA = WORK / "data"
TRACEML = WORK / "traceml/bin/traceml"
TRACEML_VERSION = "0.5.0"
SECONDS = 240  # of one run; one takes about eight


class Skipped(Exception):
    """The machine lacks what the case needs."""


def program(name: str) -> str:
    """A program of this build: that of the environment that runs us, or that of the path."""
    beside = Path(sys.executable).with_name(name)
    return str(beside) if beside.exists() else shutil.which(name) or name


def core_of(cpu: int) -> tuple[int, int, int]:
    topology = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
    try:
        return int((topology / "physical_package_id").read_text()), int((topology / "core_id").read_text()), cpu
    except (OSError, ValueError):
        return 0, cpu, cpu


def cpu_groups(at_once: int, each: int) -> list[set[int]]:
    """CPUs for each of several programs: those of a core stay together, so that programs do not slow each other down."""
    cpus = sorted(os.sched_getaffinity(0), key=core_of)
    if at_once * each > len(cpus):
        raise SystemExit(f"--at-once {at_once} --cpus-each {each}: there are only {len(cpus)} CPUs")
    return [set(cpus[k * each : (k + 1) * each]) for k in range(at_once)]


RUNNING: set[subprocess.Popen] = set()
STOPPED = threading.Event()


def stop_all() -> None:
    """Ends what is running, process groups and all, and begins nothing more."""
    STOPPED.set()
    for child in list(RUNNING):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)


def late_server(case: Case) -> contextlib.AbstractContextManager[str]:
    """The server of the benchmarks, for a file of random bytes."""
    if not case.latency_ms:
        return contextlib.nullcontext("")
    spec = importlib.util.spec_from_file_location("late_server", ROOT / "bench/late_server.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = DATA / "shard.bin"
    if not path.exists():  # several may find it missing at once
        new = path.with_name(f"{path.name}.{threading.get_ident()}")
        new.write_bytes(os.urandom(8 << 20))
        new.rename(path)
    return module.late_server(path, case.latency_ms)


@contextlib.contextmanager
def neighbours(count: int) -> Iterator[None]:
    """Other programs, each of which uses one of the CPUs that the case may use."""
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


def evict(case: Case) -> None:
    """Drops the case's data from the page cache; its pages are clean."""
    for name in case.cold:
        for path in (DATA / name).rglob("*"):
            fd = os.open(path, os.O_RDONLY)
            try:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)


def run_group(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess:
    """Runs it as a process group of its own, all of which ends when it takes too long, or when we do."""
    if STOPPED.is_set():
        raise RuntimeError("stopped")
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as child:
        RUNNING.add(child)
        try:
            out, err = child.communicate(timeout=SECONDS)
        except BaseException:
            os.killpg(child.pid, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(10)  # limits.py removes its control groups
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            raise
        finally:
            RUNNING.discard(child)
    return subprocess.CompletedProcess(command, child.returncode, out, err)


class Runner:
    """Runs the program of a case in the ways there are."""

    def __init__(self, case: Case, url: str, folder: Path, stoker: str):
        self.case = case
        self.folder = folder
        self.stoker = stoker
        self.rate_file = folder / "rate.json"
        own = folder / "own"  # what the program writes, which no other must see
        own.mkdir()
        self.environment = {**os.environ, "FAULTS_DATA": str(DATA), "FAULTS_OWN": str(own), "FAULTS_RATE": str(self.rate_file)}
        if url:
            self.environment["FAULTS_URL"] = url

    def script(self, advised: bool) -> list[str]:
        return [str(HERE / "programs" / self.case.program), *self.case.arguments(advised)]

    def command(self, advised: bool) -> list[str]:
        ranks = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={self.case.ranks}"]
        return [sys.executable, *(ranks if self.case.ranks > 1 else []), *self.script(advised)]

    def run(self, command: list[str], advised: bool = False, **environment: str) -> subprocess.CompletedProcess:
        limits = [word.format(data=DATA) for word in self.case.limits_when(advised)]
        if limits:
            command = [sys.executable, str(HERE / "limits.py"), *limits, "--", *command]
        evict(self.case)
        self.rate_file.unlink(missing_ok=True)
        done = run_group(command, {**self.environment, **environment})
        if done.returncode == REFUSED:  # by limits.py, or by the program
            raise Skipped(done.stderr.strip().splitlines()[-1])
        return done

    def rate(self) -> float | None:
        try:
            return json.loads(self.rate_file.read_text())["steps_per_second"]
        except FileNotFoundError:
            return None

    def bare(self, advised: bool) -> tuple[subprocess.CompletedProcess, float | None]:
        done = self.run(self.command(advised), advised)
        must_fail = self.case.crashes and not advised
        if (done.returncode != 0) != must_fail:
            raise RuntimeError(f"the program {'does not fail' if must_fail else 'fails'} by itself: {done.stderr[-1500:]}")
        return done, self.rate()

    def prepare(self) -> None:
        """Makes the data, which must be on the disk before the page cache is emptied, and before anything is timed."""
        if not all((DATA / name).exists() for name in (*self.case.cold, *self.case.made)):
            few = [*self.command(False), "--steps", "4", "--epochs", "1"]
            subprocess.run(few, capture_output=True, check=True, env=self.environment)

    def watched(self, tried: bool) -> tuple[subprocess.CompletedProcess, dict]:
        folder = self.folder / "stoker"
        more = ["--try-stoker"] if tried else []
        done = self.run([self.stoker, "run", *more, "--dir", str(folder), "--", *self.command(False)])
        try:
            return done, json.loads((folder / "run.json").read_text())
        except (FileNotFoundError, json.JSONDecodeError) as error:
            raise RuntimeError(f"no run.json ({error}): {done.stderr[-1500:]}") from error

    def with_stoker(self) -> float | None:
        """Steps per second of `python -m stoker`, with the cause."""
        done = self.run([sys.executable, "-m", "stoker", *self.script(False)])
        if done.returncode:
            raise RuntimeError(f"with python -m stoker the program fails: {done.stderr[-1500:]}")
        return self.rate()

    def traceml(self) -> str:
        """TraceML's verdict, in its words."""
        folder = self.folder / "traceml"
        script, *args = self.script(False)
        with socket.create_server(("127.0.0.1", 0)) as free:  # several run at once
            port = free.getsockname()[1]
        command = [str(TRACEML), "run", "--logs-dir", str(folder), "--run-name", "run", "--aggregator-port", str(port)]
        command += [f"--nproc-per-node={self.case.ranks}", script, *(["--args", *args] if args else [])]
        done = self.run(command, FAULTS_TRACEML="1")
        return traceml_verdict(folder / "run", done)


def traceml_verdict(folder: Path, done: subprocess.CompletedProcess) -> str:
    for path in folder.rglob("final_summary.txt"):
        lines = [" ".join(line.strip(" |").split()) for line in path.read_text().splitlines()]
        words = [line.removeprefix("Verdict: ") for line in lines if line.startswith(("Verdict:", "Next:"))]
        if words:
            return ". ".join(words)
    return f"no verdict (exit code {done.returncode})"


def first_cause(found: dict) -> str | None:
    findings = found.get("findings") or []
    return findings[0]["code"] if findings else found.get("verdict", {}).get("code")


def is_alarm(code: str, case: Case) -> bool:
    """Codes from ST100 to ST199 name states, not causes."""
    return not code.startswith("ST1") and code not in case.codes


def named(case: Case, codes: list[str]) -> bool:
    """Whether each planted cause is among these."""
    return all(any(code in cause for code in codes) for cause in (case.codes, *case.also))


def judge(case: Case, found: dict, said: str, neighbours: int = 0) -> dict:
    """Neighbours that hold CPUs are a cause, too: that they are named before what is planted is no mistake."""
    findings = found.get("findings") or []
    cause = first_cause(found)
    if neighbours and cause == "ST223" and len(findings) > 1:
        findings, cause = findings[1:], findings[1]["code"]
    alarms = [finding["code"] for finding in findings if is_alarm(finding["code"], case)]
    gain = findings[0].get("gain") if findings else None
    return {
        "verdict": cause,
        "said": said,
        "two": None if case.control else named(case, [cause, *(finding["code"] for finding in findings[:2])]),
        "others": [finding["code"] for finding in findings[1:]],
        "right": not alarms if case.control else any(cause in codes for codes in (case.codes, *case.also)),
        "predicted": gain,
        "overhead": (found.get("overhead") or {}).get("share"),
    }


def differences(case: Case, bare: subprocess.CompletedProcess, watched: subprocess.CompletedProcess) -> list[str]:
    """What the watch changed that the user would see. How far a run gets before it fails is not its doing."""
    found = []
    if bare.returncode != watched.returncode:
        found.append(f"exit code {bare.returncode} became {watched.returncode}")
    order = sorted if case.ranks > 1 else list  # ranks print as they come
    if order(bare.stdout.splitlines()) != order(watched.stdout.splitlines()) and not case.crashes:
        found.append("stdout")
    return found


def failure(watched: subprocess.CompletedProcess) -> list[str]:
    return [f"exit code {watched.returncode}"] if watched.returncode else []


def result_of(case: Case) -> Result:
    codes = sorted(case.codes) + ["+".join(sorted(codes)) for codes in case.also]
    return Result(case.name, codes, case.advice, case.control, case.held_out, case.gain)


def measure(case: Case, args: argparse.Namespace) -> Result:
    result = result_of(case)
    if case.control and args.neighbours:  # which may be said
        case = replace(case, codes=case.codes | {"ST223"})
    with late_server(case) as url, neighbours(args.neighbours), tempfile.TemporaryDirectory(dir=WORK) as folder:
        runner = Runner(case, url, Path(folder), args.stoker)
        runner.prepare()
        for turn in range(args.rounds):
            bare = None
            if not (args.short or args.lean) or args.bare or case.control:  # in the short form, one is enough to compare with
                bare, rate = runner.bare(advised=False)
                if rate:
                    result.before.append(rate)
            if turn == 0 and not args.bare:
                watched, found = runner.watched(args.try_stoker)
                judged = judge(case, found, watched.stderr, args.neighbours)
                result.take(judged, differences(case, bare, watched) if bare else failure(watched))
                result.watched = runner.rate()
                if args.lean and not bare and result.watched:
                    result.before.append(result.watched)
                if args.keep:
                    shutil.copytree(Path(folder) / "stoker", args.keep / case.name, dirs_exist_ok=True)
                if args.try_stoker:
                    result.offer = (found["verdict"].get("with_stoker") or {}).get("gain")
            if args.try_stoker and case.ranks == 1:
                result.tried.append(runner.with_stoker())
            if turn == 0 and args.traceml:
                result.traceml = runner.traceml()
            if not args.short and not args.try_stoker:
                _, rate = runner.bare(advised=True)
                result.after.append(rate)
    return result


def chosen(args: argparse.Namespace) -> Iterator[Case]:
    import torch

    gpu = torch.cuda.is_available()
    for case in generate.cases(*args.generate, args.cpus_each, args.gpu) if args.generate else CASES:
        if args.short:
            case = replace(case, args=(*case.args, *case.short), codes=case.codes | case.short_codes)
        if args.only and case.name not in args.only:
            continue
        if (args.held_out and not case.held_out) or (args.open and case.held_out):
            continue
        if (args.short and not case.short) or (args.gpu and not case.gpu):
            continue
        if case.gpu and not gpu:
            print(f"SKIP {case.name}: there is no GPU", flush=True)
            continue
        yield case


def machine() -> dict:
    import torch

    words = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in words if line.startswith("model name")), platform.machine())
    return {
        "date": date.today().isoformat(),
        "cpu": f"{len(os.sched_getaffinity(0))} CPUs, {model}",
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "kernel": platform.release().partition("-")[0],
        "traceml": TRACEML_VERSION,
    }


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="a few robust cases; verdicts only")
    parser.add_argument("--only", action="append", metavar="NAME", help="this case; may be given several times")
    parser.add_argument("--held-out", action="store_true", help="only the cases that no threshold was set by")
    parser.add_argument("--open", action="store_true", help="only the others")
    parser.add_argument("--gpu", action="store_true", help="only the cases that need a GPU")
    parser.add_argument("--generate", type=int, nargs=2, metavar=("SEED", "N"), help="N drawn programs instead of the table")
    parser.add_argument("--lean", action="store_true", help="the watched run is A, too: a third less to run")
    parser.add_argument("--seconds", type=float, default=math.inf, metavar="N", help="begins no case that would end later")
    parser.add_argument("--try-stoker", action="store_true", help="what that predicts beside `python -m stoker`, not the advice")
    parser.add_argument("--bare", action="store_true", help="without the doctor: is what is planted really the cause?")
    parser.add_argument("--traceml", action="store_true", help="TraceML's verdicts beside ours")
    parser.add_argument("--rounds", type=int, default=2, help="of A and B (2)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keeps what `stoker run` recorded, as DIR/NAME")
    parser.add_argument("--at-once", type=int, default=1, metavar="N", help="cases side by side, each on CPUs of its own")
    parser.add_argument("--cpus-each", type=int, default=0, metavar="N", help="CPUs of each case (all there are, divided)")
    parser.add_argument("--neighbours", type=int, default=0, metavar="N", help="other programs on its CPUs, which compute")
    parser.add_argument("--stoker", default=program("stoker"), metavar="PATH", help="the program; its package by PYTHONPATH")
    parser.add_argument("--out", type=Path, metavar="FILE.json")
    parser.add_argument("--markdown", type=Path, metavar="FILE.md", help="writes the table of --out, or of --read")
    parser.add_argument("--read", type=Path, action="append", metavar="FILE.json", help="runs nothing; results of earlier")
    args = parser.parse_args()
    if args.short:
        args.rounds = 1
    args.cpus_each = args.cpus_each or max(1, len(os.sched_getaffinity(0)) // args.at_once)
    if args.traceml and not TRACEML.exists():
        parser.error(f"there is no {TRACEML}: scripts/faults.sh --traceml fetches it")
    return args


def run_all(args: argparse.Namespace) -> tuple[list[Result], dict]:
    WORK.mkdir(parents=True, exist_ok=True)
    DATA.mkdir(exist_ok=True)
    done, here, cases, writing = {}, machine(), list(chosen(args)), threading.Lock()
    groups: queue.SimpleQueue[set[int]] = queue.SimpleQueue()
    for cpus in cpu_groups(args.at_once, args.cpus_each):
        groups.put(cpus)

    begin, longest = time.monotonic(), [0.0]

    def one(number: int, case: Case) -> None:
        cpus, start = groups.get(), time.monotonic()
        try:
            if start - begin + longest[0] > args.seconds:
                return
            os.sched_setaffinity(0, cpus)  # of this thread, and so of the processes that it starts
            result = measured(case, args)
        finally:
            groups.put(cpus)
        if result is None:
            return
        with writing:
            longest[0] = max(longest[0], time.monotonic() - start)
            done[number] = result
            print(plain_row(result), flush=True)
            if args.out:  # after each, since all take long
                rows = [vars(done[key]) for key in sorted(done)]
                args.out.write_text(json.dumps({"machine": here, "drawn": drawn_how(args), "results": rows}, indent=1))

    with ThreadPoolExecutor(args.at_once) as pool:
        try:
            for ended in [pool.submit(one, *pair) for pair in enumerate(cases)]:
                ended.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            stop_all()
            raise
    return [done[number] for number in sorted(done)], here


def drawn_how(args: argparse.Namespace) -> dict | None:
    """How these programs were drawn and run; None: they are those of the table."""
    if not args.generate:
        return None
    seed, count = args.generate
    names = ("cpus_each", "at_once", "neighbours", "gpu", "lean", "try_stoker")
    return {"seed": seed, "count": count, **{name: getattr(args, name) for name in names}}


def measured(case: Case, args: argparse.Namespace) -> Result | None:
    """None: this machine lacks what the case needs."""
    try:
        return measure(case, args)
    except Skipped as reason:
        print(f"SKIP {case.name}: {reason}", flush=True)
        return None
    except (RuntimeError, subprocess.SubprocessError) as error:
        result = result_of(case)
        result.error = str(error)
        return result


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # and what we run ends with us
    args = arguments()
    if args.read:
        stored = [json.loads(path.read_text()) for path in args.read]
        results = [Result(**row) for part in stored for row in part["results"]]
        about = [part["machine"] for part in stored]
        parts = [(part.get("drawn"), [Result(**row) for row in part["results"]]) for part in stored]
    else:
        results, here = run_all(args)
        about, parts = [here], [(drawn_how(args), results)]
    numbers = summary(results)
    print(plain_summary(numbers, bare=args.bare, drawn=bool(args.generate)))
    for line in confusions(results):
        print(f"    {line}")
    if args.markdown:
        drawn = all(how for how, _ in parts)
        args.markdown.write_text(drawn_markdown(parts, about) if drawn else markdown(results, about))
    if args.bare:
        return 0 if all(result.planted() for result in results) else 1
    good = numbers.passed_drawn() if args.generate else numbers.passed(gains=not args.short)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
