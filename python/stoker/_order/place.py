# SPDX-License-Identifier: Apache-2.0
"""The position of a loader as plain values."""

from __future__ import annotations

import base64
from dataclasses import dataclass, replace
from typing import Any

VERSION = 1
_SAMPLES = slice(16, 24)  # of the engine's position: how many came before it (src/pipe/state.c)


@dataclass(frozen=True)
class Place:
    """A position in an epoch."""

    epoch: int
    seed: int
    cursor: bytes | None  # the engine's position; None: the beginning
    origin: dict[str, Any] | None  # how Python can draw the order again
    more: bool = False  # whether the sampler has more than was drawn so far

    def at(self, cursor: bytes) -> Place:
        return replace(self, cursor=cursor)

    def samples_done(self) -> int:
        """Return how many samples of its part of the order came before the position."""
        return 0 if self.cursor is None else int.from_bytes(self.cursor[_SAMPLES], "little")

    def as_dict(self) -> dict[str, Any]:
        out: dict[str, Any] = {"stoker": VERSION, "epoch": self.epoch, "seed": self.seed}
        if self.cursor is not None:
            out["cursor"] = base64.b64encode(self.cursor).decode()
        if self.origin is not None:
            out["order"] = self.origin
        return out

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Place:
        if not isinstance(state, dict) or state.get("stoker") != VERSION:
            raise ValueError("this is not a state of a stoker.DataLoader, or is of another version")
        cursor = state.get("cursor")
        return cls(
            int(state["epoch"]),
            int(state["seed"]),
            None if cursor is None else base64.b64decode(cursor),
            state.get("order"),
        )
