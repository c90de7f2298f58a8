# SPDX-License-Identifier: Apache-2.0
"""Runs a command under real limits, as a container would: limits.py [--cpu 0.5] [...] -- COMMAND

Control groups of version 1 or 2 are made below the caller's own, and removed afterwards. Exit code 77 and a sentence on
stderr say that this machine does not allow it; else the exit code is the command's.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

REFUSED = 77
PREFIX = "stoker-faults-"  # and the process that made the group
PERIOD = 100_000  # microseconds, the kernel's default


class Refused(Exception):
    """The machine does not allow the limit."""


def own_groups() -> dict[str, Path]:
    """Where this process's control group lies, for each controller; version 2 is under the key ''."""
    mounts = {}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, flags, *_ = line.split()
        if kind == "cgroup2":
            mounts[""] = place
        elif kind == "cgroup":
            mounts.update(dict.fromkeys(flags.split(","), place))
    groups = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in mounts:
                groups[controller] = Path(mounts[controller] + path)
    return groups


def disk_of(path: str) -> str:
    """MAJOR:MINOR of the whole disk on which `path` lies: partitions cannot be limited."""
    number = os.stat(path).st_dev
    name = f"{os.major(number)}:{os.minor(number)}"
    device = Path("/sys/dev/block", name)
    if not device.exists():
        raise Refused(f"{path} lies on no block device, whose reads could be limited")
    if (device / "partition").exists():
        name = (device.resolve().parent / "dev").read_text().strip()
    return name


def wanted(args: argparse.Namespace, version: int) -> dict[str, list[tuple[str, str]]]:
    """The files to write, by controller."""
    todo: dict[str, list[tuple[str, str]]] = {}
    if args.cpu:
        quota = int(args.cpu * PERIOD)
        files = [("cpu.max", f"{quota} {PERIOD}")] if version == 2 else [("cpu.cfs_quota_us", str(quota))]
        todo["cpu"] = files
    if args.memory:
        name = "memory.max" if version == 2 else "memory.limit_in_bytes"
        todo["memory"] = [(name, str(args.memory << 20))]
    for rate, word in ((args.read_mbps * 10**6, "bps"), (args.read_iops, "iops")):
        if rate:
            disk = disk_of(args.disk)
            line = ("io.max", f"{disk} r{word}={rate}")
            old = (f"blkio.throttle.read_{word}_device", f"{disk} {rate}")
            todo.setdefault("io" if version == 2 else "blkio", []).append(line if version == 2 else old)
    return todo


def remove(groups: list[Path]) -> None:
    for group in groups:
        for _ in range(50):  # the last process may still be leaving
            try:
                group.rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.1)


def sweep(parent: Path) -> None:
    """Removes the groups of runs that were killed."""
    for group in parent.glob(f"{PREFIX}*"):
        if not Path("/proc", group.name.removeprefix(PREFIX)).exists():
            remove([group])


def make_groups(args: argparse.Namespace) -> list[Path]:
    """New control groups with the limits; the caller removes them."""
    own = own_groups()
    version = 1 if any(name in own for name in ("cpu", "memory", "blkio")) else 2
    made: list[Path] = []
    try:
        for controller, files in wanted(args, version).items():
            parent = own.get(controller if version == 1 else "")
            if parent is None:
                raise Refused(f"there is no control group for '{controller}'")
            sweep(parent)
            group = parent / f"{PREFIX}{os.getpid()}"
            if version == 2:
                (parent / "cgroup.subtree_control").write_text(f"+{controller}")
            if group not in made:
                group.mkdir()
                made.append(group)
            for name, text in files:
                (group / name).write_text(text)
    except (OSError, Refused) as error:
        remove(made)
        raise Refused(f"control groups: {error}") from error
    return made


def with_small_shm(command: list[str], megabytes: int) -> list[str]:
    mount = f'mount -t tmpfs -o size={megabytes}m tmpfs /dev/shm || exit {REFUSED}; exec "$@"'
    inside = ["unshare", "--mount", "--propagation", "private", "sh", "-c"]
    if not shutil.which("unshare"):
        raise Refused("there is no unshare")
    probe = subprocess.run([*inside, mount, "sh", "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        raise Refused(f"no mount namespace: {probe.stderr.strip()}")
    return [*inside, mount, "sh", *command]


def run(args: argparse.Namespace) -> int:
    command = args.command
    if args.shm:
        command = with_small_shm(command, args.shm)
    cpus = sorted(os.sched_getaffinity(0))
    if args.cpus and len(cpus) <= args.cpus:
        raise Refused(f"there are no more than {len(cpus)} CPUs")
    groups = make_groups(args)

    def enter() -> None:
        for group in groups:
            (group / "cgroup.procs").write_text(str(os.getpid()))
        if args.cpus:
            os.sched_setaffinity(0, cpus[: args.cpus])

    try:
        with subprocess.Popen(command, preexec_fn=enter) as child:
            signal.signal(signal.SIGTERM, lambda *_: child.terminate())
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the command gets it too, and decides
            code = child.wait()
    except subprocess.SubprocessError as error:
        raise Refused(f"the limits cannot be entered: {error}") from error
    finally:
        remove(groups)
    return code if code >= 0 else 128 - code


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cpu", type=float, default=0, help="CPUs' time, by quota")
    parser.add_argument("--cpus", type=int, default=0, help="CPUs, by affinity")
    parser.add_argument("--memory", type=int, default=0, help="MiB, page cache included")
    parser.add_argument("--read-mbps", type=int, default=0, help="MB/s read from the disk")
    parser.add_argument("--read-iops", type=int, default=0, help="reads per second from the disk")
    parser.add_argument("--disk", default=".", help="a path on that disk")
    parser.add_argument("--shm", type=int, default=0, help="MiB of /dev/shm")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    args.command = args.command[args.command[:1] == ["--"] :]
    try:
        return run(args)
    except Refused as refusal:
        print(f"limits: {refusal}", file=sys.stderr)
        return REFUSED


if __name__ == "__main__":
    sys.exit(main())
