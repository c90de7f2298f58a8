# SPDX-License-Identifier: Apache-2.0
"""Whether other programs used the CPUs while something was measured: what is measured then is not published."""

from __future__ import annotations

import os
import re
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_MOST = 0.05  # of all CPUs; a machine that does nothing else uses less


class Watch:
    """Counts CPU time from now on: that of the whole machine, and that of this process and its children."""

    def __init__(self) -> None:
        self._before = self._now()

    @staticmethod
    def _now() -> tuple[float, float, float]:
        total, idle = machine_seconds(Path("/proc/stat").read_text())
        own = os.times()
        return total, idle, own.user + own.system + own.children_user + own.children_system

    def others(self) -> float:
        """The share of all CPUs that other programs used so far."""
        return share_of_others(self._before, self._now())


def machine_seconds(stat: str) -> tuple[float, float]:
    """What /proc/stat counts: CPU seconds in all, and those of them in which nothing ran. What the host of a virtual
    machine withholds is not idle. Guests are counted in user time already."""
    found = re.search(r"^cpu +(.*)$", stat, re.M)
    assert found is not None
    user, nice, system, idle, waiting, *others = (int(word) / _TICKS for word in found[1].split()[:8])
    return user + nice + system + idle + waiting + sum(others), idle + waiting


def share_of_others(before: tuple[float, float, float], now: tuple[float, float, float]) -> float:
    total, idle, own = (b - a for a, b in zip(before, now, strict=True))
    return max(total - idle - own, 0) / total if total > 0 else 0.0


def too_busy(share: float) -> bool:
    return share > _MOST
