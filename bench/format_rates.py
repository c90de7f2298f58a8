# SPDX-License-Identifier: Apache-2.0
"""How fast samples come, and files that no longer lie in the page cache."""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import mmap
import os
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Rate:
    samples: float  # a second
    work: float | None  # microseconds of CPU time for a sample, of all processes; None: not known


def family():
    """This process and all that it started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:  # ended meanwhile
            continue
    own = {os.getpid()}
    while more := {child for child, parent in parents.items() if parent in own} - own:
        own |= more
    return own


def work():
    """Seconds of CPU time that it all took so far, with those who have ended."""
    ticks = 0
    for process in family():
        try:
            ticks += sum(map(int, Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11:15]))
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def drain(samples, seconds, once=None):
    """The rate after the first hundred samples; or of a single pass of so many, all but the first batch."""
    iterator = iter(samples)
    for _ in itertools.islice(iterator, 32 if once else 100):
        pass
    left = once - 32 if once else 1 << 60
    count, worked, began = 0, work(), time.perf_counter()
    while (took := time.perf_counter() - began) < seconds and count < left:
        for _ in itertools.islice(iterator, 64):
            count += 1
    return Rate(count / took, (work() - worked) / count * 1e6)


def resident(path):
    """How many pages of the file are in memory."""
    size = path.stat().st_size
    if not size:
        return 0
    with open(path, "rb") as file, \
            mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as view:
        flags = (ctypes.c_ubyte * (-(-size // mmap.PAGESIZE)))()
        start = ctypes.addressof(ctypes.c_char.from_buffer(view))
        if ctypes.CDLL(None, use_errno=True).mincore(ctypes.c_void_p(start), ctypes.c_size_t(size), flags):
            raise OSError(ctypes.get_errno(), "mincore")
        return sum(flag & 1 for flag in flags)


def forget(folder):
    """Takes the files out of the page cache; what stays is dropped with all else there is in it, as root may."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    for path in paths:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    if any(map(resident, paths)):
        with contextlib.suppress(PermissionError):
            Path("/proc/sys/vm/drop_caches").write_text("3\n")
    if left := sum(map(resident, paths)):
        raise SystemExit(f"{folder}: {left} pages stay in the page cache; run --cold as root, or with another TMPDIR")
