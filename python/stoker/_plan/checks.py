# SPDX-License-Identifier: Apache-2.0
"""Checks of a DataLoader's arguments, with torch's messages where torch has the same check."""

from __future__ import annotations

import errno
import numbers
import os
import re
import warnings
from typing import Any

import numpy as np

from .._base.suggest import similar
from .._base.tables import counted

_UNITS = {"": 1, **{f"{k}B": 1000**n for n, k in enumerate(("", "K", "M", "G", "T"))}}
_UNITS |= {f"{k}iB": 1024**n for n, k in enumerate("KMGT", 1)}


def check_bytes(name: str, value: Any) -> int | None:
    """Return a number of bytes, from a number or a string such as "256MiB" or "1.5 GB"."""
    if value is None:
        return None
    allowed = 'a positive number of bytes, or a string with a unit such as "256MiB" or "4 GB"'
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


def check_dataset(dataset: Any) -> None:
    """Raise an error for a path: torch would give its letters. Other strings are left to torch."""
    if not isinstance(dataset, str):
        return
    folder, name = os.path.split(dataset)
    if os.path.exists(dataset):
        raise TypeError(
            f"dataset={dataset!r} is a path, not a dataset: pass stoker.open({dataset!r}), or one of stoker.datasets"
        )
    try:
        meant = similar(name, os.listdir(folder or "."))
    except OSError:
        meant = None
    if folder or meant is not None:
        hint = "" if meant is None else f" (did you mean {os.path.join(folder, meant)!r}?)"
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT) + hint, dataset)


def check_shuffle(shuffle: Any) -> None:
    """Warn of values that torch accepts although they are no answer: shuffle="no" shuffles."""
    if shuffle is None or isinstance(shuffle, (bool, numbers.Integral, np.bool_)):
        return
    warnings.warn(
        f"shuffle={shuffle!r} is not a bool, and counts as {bool(shuffle)}: pass shuffle={bool(shuffle)}", stacklevel=4
    )


def check_threads(threads: int) -> None:
    """Warn as torch does if there are more workers than CPUs."""
    most = len(os.sched_getaffinity(0))
    if threads > most:
        warnings.warn(
            f"num_workers={threads}: this DataLoader will create {threads} threads, but this process may use only "
            f"{counted(most, 'CPU')}, and more threads take memory and slow it down: num_workers='auto' creates one for each",
            stacklevel=6,
        )


def check_workers(num_workers: int, prefetch_factor: int | None, timeout: float) -> None:
    """Raise what torch raises when an epoch begins."""
    if num_workers and prefetch_factor == 0:
        raise AssertionError("prefetch_factor=0: at least one batch must be kept ready; pass 1 or more, or None")
    if num_workers == 0 and timeout > 0:
        raise AssertionError(
            f"timeout={timeout} is for workers: set num_workers, or leave timeout out.\n"
            "_SingleProcessDataLoaderIter requires timeout == 0"
        )


def check_arguments(
    num_workers: Any,
    timeout: Any,
    prefetch_factor: Any,
    compile: Any,
    order: Any,
    output: Any,
    seed_by: Any,
    on_error: Any,
) -> None:
    if not isinstance(timeout, numbers.Real):
        raise TypeError(f"timeout={timeout!r} is not a number of seconds")
    if not isinstance(prefetch_factor, (numbers.Integral, type(None))):
        raise TypeError(f"prefetch_factor={prefetch_factor!r} is neither a whole number nor None")
    if prefetch_factor is not None and prefetch_factor < 1 and num_workers == "auto":
        raise ValueError(f"prefetch_factor={prefetch_factor!r}: at least one batch must be kept ready, or pass None")
    if num_workers != "auto" and not isinstance(num_workers, numbers.Integral):
        raise TypeError(f"num_workers={num_workers!r} is neither a number nor 'auto'")
    if compile not in (True, False, "require"):
        raise ValueError(f"compile={compile!r} is not one of True, False, 'require'")
    if order not in ("stoker", "torch"):
        raise ValueError(f"order={order!r} is neither 'stoker' nor 'torch'")
    if seed_by not in ("worker", "sample"):
        raise ValueError(f"seed_by={seed_by!r} is neither 'worker' nor 'sample'")
    if on_error not in ("raise", "skip", "replace"):
        raise ValueError(f"on_error={on_error!r} is not one of 'raise', 'skip', 'replace'")
    if output not in (None, "torch", "numpy", "dlpack"):
        raise ValueError(f"output={output!r} is not one of 'torch', 'numpy', 'dlpack'")


def check_device(
    device: str | None, augment_on: str, output: str, batch_size: int | None, batch_transforms: Any
) -> None:
    if augment_on not in ("auto", "cpu", "cuda"):
        raise ValueError(f"augment_on={augment_on!r} is not one of 'auto', 'cpu', 'cuda'")
    if augment_on == "cuda" and device is None:
        raise ValueError("augment_on='cuda' needs device='cuda'")
    if device is not None and output == "numpy":
        raise ValueError(
            f"device={device!r} and output='numpy': NumPy arrays are in CPU memory. Use torch tensors "
            "(output='torch'), output='dlpack' for other libraries, or remove device="
        )
    if batch_transforms and batch_size is None:
        raise ValueError("batch_transforms needs batches, but batch_size=None gives single samples")
    if batch_transforms and output != "torch":
        raise ValueError(f"batch_transforms works on torch tensors, so output={output!r} is not supported with it")


def check_apart(as_dict: bool, output: str, batch_transforms: Any) -> None:
    """Check the options of batches that are made of single samples."""
    what = "as_dict=True" if as_dict else "a collate_fn that transposes samples"
    if batch_transforms:
        raise ValueError(f"batch_transforms works on stacked images and labels, which {what} does not give")
    if output != "torch" and (as_dict or output == "dlpack"):
        raise ValueError(f"output={output!r} is not possible with {what}: use output='torch'")
