# SPDX-License-Identifier: Apache-2.0
"""A DataLoader's options: which of them need the engine, and what their defaults resolve to."""

from __future__ import annotations

import sys
from typing import Any

from .._base.tensors import torch_if_installed
from .._base.warn import warn_user
from .._steps.blockers import Blocker
from .compile import Compiled

# Options that need the engine, with the value that requests nothing.
ENGINE_ONLY: dict[str, Any] = {
    "dtype": None,
    "memory_format": None,
    "augment_on": "auto",
    "pinned_limit": None,
    "batch_transforms": None,
    "fidelity": "exact",
    "jpeg_hardware": "known",
    "pillow": 13,
    "exif_rotate": False,
    "ragged": None,
    "output": None,
    "read_ahead": None,
    "max_memory": None,
    "pixel_limit": None,
}


def refuse_what_needs_the_engine(why: list[Blocker], given: dict[str, Any]) -> None:
    needed = [name for name, value in given.items() if value is not None and value != ENGINE_ONLY.get(name)]
    reasons = "; ".join(why)
    if needed:
        names = ", ".join(f"{name}={given[name]!r}" for name in needed)
        seeded = ". In Python, seed is for seed_by='sample'" if "seed" in needed else ""
        raise NotImplementedError(
            f"{names} {'needs' if len(needed) == 1 else 'need'} the engine, which cannot run this dataset: {reasons}. "
            f"Remove {'the option' if len(needed) == 1 else 'these options'}, or change what the engine cannot run"
            f"{seeded}"
        )
    if torch_if_installed() is None:
        raise NotImplementedError(
            f"the engine cannot run this dataset: {reasons}. Running it in Python needs torch, which is not installed"
        )


def renamed(old: str, given: Any, new: str, value: Any) -> Any:
    """Return the value of an option that may be given by its former name."""
    if given is None:
        return value
    warn_user(f"{old}= is deprecated: use {new}=", DeprecationWarning)
    return given


def required(why: list[Blocker]) -> NotImplementedError:
    reasons = "".join(f"\n- {reason}" for reason in why)
    return NotImplementedError(f"compile='require', but the engine cannot run this dataset:{reasons}")


def refused_in_python(dataset: Any, seed: Any, seed_by: str, on_error: str) -> dict[str, Any]:
    """Return the options that this dataset cannot have when it runs in Python."""
    if torch_if_installed() is None:
        return {}  # it cannot run at all
    from torch.utils.data import IterableDataset

    refused: dict[str, Any] = {}
    if on_error == "replace":
        refused["on_error"] = on_error
    if seed is not None and seed_by != "sample":
        refused["seed"] = seed
    if isinstance(dataset, IterableDataset):
        if seed_by == "sample":
            raise ValueError("seed_by='sample' needs sample numbers, which an IterableDataset does not have")
        if on_error == "skip":
            refused["on_error"] = on_error
    return refused


def worker_count(num_workers: int | str, compiled: Compiled | None) -> int:
    """Return a number for torch, which does not accept "auto": 0 for Python. The engine's threads are counted once they
    exist."""
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
    """Return the device with the number of torch's current GPU if none is given."""
    torch: Any = sys.modules.get("torch")
    if device != "cuda" or torch is None or not torch.cuda.is_available():
        return device
    return f"cuda:{torch.cuda.current_device()}"
