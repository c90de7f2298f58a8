# SPDX-License-Identifier: Apache-2.0
"""A DataLoader's options: which only the engine has, and what they come to."""

from __future__ import annotations

import sys
from typing import Any

from ._blockers import Blocker
from ._convert import torch_if_installed
from .compile import Compiled

# What only the engine can do, with the value that asks for nothing.
ENGINE_ONLY: dict[str, Any] = {
    "dtype": None,
    "memory_format": None,
    "augment_on": "auto",
    "pinned_limit": None,
    "batch_transforms": None,
    "fidelity": "exact",
    "pillow": 13,
    "exif_rotate": False,
    "ragged": "list",
    "output": None,
    "read_ahead": None,
    "max_memory": None,
    "pixel_limit": None,
}


def refuse_what_needs_the_engine(why: list[Blocker], given: dict[str, Any]) -> None:
    asked = [name for name, value in given.items() if value is not None and value != ENGINE_ONLY.get(name)]
    reasons = "; ".join(why)
    if asked:
        names = ", ".join(f"{name}={given[name]!r}" for name in asked)
        raise NotImplementedError(
            f"{names}: the engine alone does that, and it cannot do this data set: {reasons}. Leave "
            f"{'it' if len(asked) == 1 else 'them'} out, or mend what the engine cannot do"
        )
    if torch_if_installed() is None:
        raise NotImplementedError(
            f"the engine cannot do this: {reasons}. Data sets written in Python need torch, which is not "
            "installed"
        )


def required(why: list[Blocker]) -> NotImplementedError:
    reasons = "".join(f"\n- {reason}" for reason in why)
    return NotImplementedError(f"compile='require', and the engine cannot do this:{reasons}")


def refused_in_python(dataset: Any, seed: Any, seed_by: str, on_error: str) -> dict[str, Any]:
    """Options that a data set written in Python cannot have, unlike others."""
    if torch_if_installed() is None:
        return {}  # it cannot be run at all
    from torch.utils.data import IterableDataset

    refused: dict[str, Any] = {}
    if on_error == "replace":
        refused["on_error"] = on_error
    if seed is not None and seed_by != "sample":
        refused["seed"] = seed
    if isinstance(dataset, IterableDataset):
        if seed_by == "sample":
            raise ValueError("seed_by='sample' needs samples with numbers, which an IterableDataset has not")
        if on_error == "skip":
            refused["on_error"] = on_error
    return refused


def worker_count(num_workers: int | str, compiled: Compiled | None) -> int:
    """"auto" for torch, which wants a number: none where Python does the work; the engine's threads are
    counted when they are there."""
    if num_workers != "auto":
        return num_workers  # type: ignore[return-value]
    return 0 if compiled is None else 1


def output_of(output: str | None) -> str:
    if output not in (None, "torch"):
        return output
    if torch_if_installed() is not None:
        return "torch"
    if output == "torch":
        raise ModuleNotFoundError("output='torch' needs torch, which is not installed")
    return "numpy"


def resolved(device: str | None) -> str | None:
    """torch's current GPU, where the number is left open."""
    torch: Any = sys.modules.get("torch")
    if device != "cuda" or torch is None or not torch.cuda.is_available():
        return device
    return f"cuda:{torch.cuda.current_device()}"
