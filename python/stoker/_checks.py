# SPDX-License-Identifier: Apache-2.0
"""What a DataLoader refuses, with torch's sentences where torch has one."""

from __future__ import annotations

import numbers
import re
from typing import Any

_UNITS = {"": 1, **{f"{k}B": 1000**n for n, k in enumerate(("", "K", "M", "G", "T"))}}
_UNITS |= {f"{k}iB": 1024**n for n, k in enumerate("KMGT", 1)}


def check_bytes(name: str, value: Any) -> int | None:
    """A number of bytes, or a text that stands for one: "256MiB", "1.5 GB"."""
    if value is None:
        return None
    allowed = 'a positive number of bytes, or one with a unit, such as "256MiB" or "4 GB"'
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?i?B|)\s*", value)
        if not found or found[2] not in _UNITS:
            raise ValueError(f"{name}={value!r} is not {allowed}")
        value = round(float(found[1]) * _UNITS[found[2]])
    elif isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name}={value!r} is not {allowed}")
    if not 0 < value < 2**63:
        raise ValueError(f"{name}={value!r} is not {allowed}")
    return int(value)


def check_workers(
    num_workers: Any,
    timeout: float,
    prefetch_factor: int | None,
    persistent_workers: bool | None,
    multiprocessing_context: Any,
) -> None:
    if num_workers != "auto" and not isinstance(num_workers, numbers.Integral):
        raise TypeError(f"num_workers={num_workers!r} is neither a number nor 'auto'")
    if num_workers != "auto" and num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if timeout > 0 and num_workers == 0:
        raise ValueError("timeout option needs num_workers > 0")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if multiprocessing_context is not None and num_workers == 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading "
            f"(num_workers > 0), but got num_workers={num_workers}"
        )


def check_device(
    device: str | None, augment_on: str, output: str, batch_size: int | None, batch_transforms: Any
) -> None:
    if augment_on not in ("auto", "cpu", "cuda"):
        raise ValueError(f"augment_on={augment_on!r} is none of 'auto', 'cpu', 'cuda'")
    if augment_on == "cuda" and device is None:
        raise ValueError("augment_on='cuda' needs device='cuda'")
    if device is not None and output == "numpy":
        raise ValueError(
            f"device={device!r} and output='numpy': NumPy's arrays lie in the CPU's memory. Take torch's "
            "tensors (output='torch'), output='dlpack' for other libraries, or leave device= out"
        )
    if batch_transforms and batch_size is None:
        raise ValueError("batch_transforms needs batches: batch_size=None gives single samples")
    if batch_transforms and output != "torch":
        raise ValueError(f"batch_transforms works on torch's tensors, not with output={output!r}")


def check_order(
    batch_size: int | None,
    shuffle: bool | None,
    sampler: Any,
    batch_sampler: Any,
    drop_last: bool,
    order: str,
    rank: int | None,
    world_size: int | None,
) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, "
                "and drop_last"
            )
    elif batch_size is None:
        if drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
            )
    elif isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size <= 0:
        raise ValueError(
            f"batch_size should be a positive integer value, but got batch_size={batch_size}"
        )
    if not isinstance(drop_last, bool):
        raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
    if order not in ("stoker", "torch"):
        raise ValueError(f"order={order!r} is neither 'stoker' nor 'torch'")
    if (rank is None) != (world_size is None):
        raise ValueError("rank and world_size belong together")
    if world_size is not None and rank is not None:
        if sampler is not None or batch_sampler is not None:
            raise ValueError("rank and world_size are mutually exclusive with sampler and batch_sampler")
        if not 0 <= rank < world_size:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {world_size - 1}]"
            )
