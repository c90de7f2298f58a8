# SPDX-License-Identifier: Apache-2.0
"""Reasons why the engine cannot do a part of the work, and what would change that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

READ, DECODE, TRANSFORM, LABEL, COLLATE, WORKERS = "read", "decode", "transform", "label", "collate", "workers"


class Blocker(str):
    """A sentence with the reason, followed by the remedy if there is one."""

    why: str
    remedy: str
    stage: str  # the part of the work that stays in Python because of it
    step: object  # the transform that it is about

    def __new__(cls, stage: str, why: str, remedy: str = "", step: object = None) -> Blocker:
        self = super().__new__(cls, f"{why}: {remedy}" if remedy else why)
        self.stage, self.why, self.remedy, self.step = stage, why, remedy, step
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return Blocker, (self.stage, self.why, self.remedy)


class Blocked(NotImplementedError):
    """Raised with all reasons why the engine cannot do something."""

    def __init__(self, blockers: Iterable[Blocker]) -> None:
        self.blockers = list(blockers)
        super().__init__("; ".join(self.blockers))


def held_by(step: Any) -> Sequence[Any]:
    """Return the steps inside one, such as a RandomApply; a user's class may hold a Compose instead of a list."""
    held = getattr(step, "transforms", None)
    if not _are_several(held):
        return (held,) if _are_several(getattr(held, "transforms", None)) else ()
    return tuple(held)


def _are_several(held: Any) -> bool:
    return isinstance(held, (list, tuple)) or type(held).__name__ == "ModuleList"
