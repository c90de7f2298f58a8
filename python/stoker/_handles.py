# SPDX-License-Identifier: Apache-2.0
"""Finds open handles in a data set's attributes that a forked worker must not use, and warns of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

_DEPTH, _MOST = 4, 512  # how deep attributes are followed, and how many objects are inspected

# By the module and name of their classes, so that none of the libraries is imported here.
_HANDLES = {
    ("h5py._hl.files", "File"): "an open h5py.File",
    ("h5py._hl.dataset", "Dataset"): "a data set of an open h5py.File",
    ("h5py._hl.group", "Group"): "a group of an open h5py.File",
    ("lmdb.cpython", "Environment"): "an open lmdb.Environment",
    ("lmdb.cffi", "Environment"): "an open lmdb.Environment",
    ("builtins", "Environment"): "an open lmdb.Environment",
    ("builtins", "Transaction"): "a transaction of an open lmdb.Environment",
    ("lmdb.cpython", "Transaction"): "a transaction of an open lmdb.Environment",
    ("zipfile", "ZipFile"): "an open zipfile.ZipFile",
    ("zipfile._path", "ZipFile"): "an open zipfile.ZipFile",
    ("tarfile", "TarFile"): "an open tarfile.TarFile",
    ("sqlite3", "Connection"): "a sqlite3 connection",
    ("_io", "BufferedReader"): "an open file",
    ("_io", "BufferedRandom"): "an open file",
    ("_io", "FileIO"): "an open file",
}
_warned: set[str] = set()


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", each) for key, each in list(value.items())[:_MOST])
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{n}]", each) for n, each in enumerate(value[:_MOST]))
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        yield from ((f".{name}", each) for name, each in list(vars(value).items()))


def find_handles(value: Any) -> list[tuple[str, str]]:
    """Return the path and a description of each open handle."""
    found: list[tuple[str, str]] = []
    seen: set[int] = set()
    level = [("dataset", value)]
    for _ in range(_DEPTH):
        following = []
        for path, each in level:
            if id(each) in seen or len(seen) > _MOST:
                continue
            seen.add(id(each))
            kind = next((_HANDLES[k] for k in _names(each) if k in _HANDLES), None)
            if kind is not None and _is_open(each):
                found.append((path, kind))
            elif type(each).__module__ != "builtins" or isinstance(each, (dict, list, tuple)):
                following += [(path + name, inner) for name, inner in _inside(each)]
        level = following
    return found


def _is_open(handle: Any) -> bool:
    """Return whether a handle is open: closed ones do no harm. Each library shows that differently."""
    if getattr(handle, "closed", False) or getattr(handle, "fp", handle) is None:  # files, tar; zip
        return False
    return bool(handle) if type(handle).__module__.startswith("h5py") else True


def _names(value: Any) -> list[tuple[str, str]]:
    return [(kind.__module__, kind.__qualname__) for kind in type(value).__mro__]


def warn_of_handles(dataset: Any) -> None:
    """Warn once for each attribute: handles opened before the fork are shared by all workers, with their offsets."""
    for path, kind in find_handles(dataset):
        place = f"{type(dataset).__qualname__}{path}"
        if place in _warned:
            continue
        _warned.add(place)
        warnings.warn(
            f"{path} is {kind}, opened before the workers are forked: they would all share its file offset and "
            "its state, and read wrong data or hang. Open it in the worker, when the first sample is requested "
            "(keep the path, and set the handle to None in __init__), or in worker_init_fn",
            stacklevel=5,
        )
