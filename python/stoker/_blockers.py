# SPDX-License-Identifier: Apache-2.0
"""What keeps work from the engine, and what would change that."""

from __future__ import annotations

from collections.abc import Iterable

READ, DECODE, TRANSFORM, LABEL, COLLATE, WORKERS = "read", "decode", "transform", "label", "collate", "workers"


class Blocker(str):
    """A sentence that says why, followed by the remedy, if there is one."""

    why: str
    remedy: str
    stage: str  # what part of the work stays in Python for it
    step: object  # the transform that it is about

    def __new__(cls, stage: str, why: str, remedy: str = "", step: object = None) -> Blocker:
        self = super().__new__(cls, f"{why}: {remedy}" if remedy else why)
        self.stage, self.why, self.remedy, self.step = stage, why, remedy, step
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return Blocker, (self.stage, self.why, self.remedy)


class Blocked(NotImplementedError):
    """All that keeps something from the engine."""

    def __init__(self, blockers: Iterable[Blocker]) -> None:
        self.blockers = list(blockers)
        super().__init__("; ".join(self.blockers))
