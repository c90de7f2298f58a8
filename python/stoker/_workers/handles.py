# SPDX-License-Identifier: Apache-2.0
"""Finds open handles in a dataset's attributes that a forked worker must not use, and warns of them."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .._base.warn import warn_user

_DEPTH = 8  # how deep attributes are followed; each Subset takes one level, each ConcatDataset two
_MOST = 1024  # how many objects are inspected
_OF_EACH = 16  # how many elements of a list or dict: they are mostly alike, and may be millions

_H5_FILE = "an open h5py.File"
_H5_DATASET = "a dataset of an open h5py.File"
_H5_GROUP = "a group of an open h5py.File"
_LMDB = "an open lmdb.Environment"
_LMDB_READER = "a transaction of an open lmdb.Environment"
_SQLITE = "a sqlite3 connection"
_SQLITE_CURSOR = "a cursor of a sqlite3 connection"
_FILE = "an open file"

# By the module and name of their classes, so that none of the libraries is imported here.
_HANDLES = {
    ("h5py._hl.files", "File"): _H5_FILE,
    ("h5py._hl.dataset", "Dataset"): _H5_DATASET,
    ("h5py._hl.group", "Group"): _H5_GROUP,
    ("lmdb.cpython", "Environment"): _LMDB,
    ("lmdb.cffi", "Environment"): _LMDB,
    ("builtins", "Environment"): _LMDB,
    ("builtins", "Transaction"): _LMDB_READER,
    ("lmdb.cpython", "Transaction"): _LMDB_READER,
    ("zipfile", "ZipFile"): "an open zipfile.ZipFile",
    ("zipfile._path", "ZipFile"): "an open zipfile.ZipFile",
    ("tarfile", "TarFile"): "an open tarfile.TarFile",
    ("sqlite3", "Connection"): _SQLITE,
    ("sqlite3", "Cursor"): _SQLITE_CURSOR,
    ("gzip", "GzipFile"): "an open gzip file",
    ("bz2", "BZ2File"): "an open bz2 file",
    ("lzma", "LZMAFile"): "an open lzma file",
    ("_io", "BufferedReader"): _FILE,
    ("_io", "BufferedRandom"): _FILE,
    ("_io", "FileIO"): _FILE,
    ("_io", "TextIOWrapper"): _FILE,
}
_PLAIN = (str, bytes, int, float, complex, type(None))
_warned: set[str | int] = set()  # places in datasets, and names of files


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        yield from ((f"[{key!r}]", each) for key, each in list(itertools.islice(value.items(), _OF_EACH)))
    elif isinstance(value, (list, tuple)):
        yield from ((f"[{n}]", each) for n, each in enumerate(value[:_OF_EACH]))
    elif hasattr(value, "__dict__") and not isinstance(value, type):
        yield from ((f".{name}", each) for name, each in list(vars(value).items()))


def find_handles(value: Any) -> list[tuple[str, str]]:
    """Return the path and a description of each open handle."""
    return [(path, description) for path, description, _ in _find(value)]


def _find(value: Any) -> list[tuple[str, str, Any]]:
    """Return the path and a description of each open handle, and the handle."""
    found: list[tuple[str, str, Any]] = []
    seen: set[int] = set()
    level = [("dataset", value)]
    for _ in range(_DEPTH):
        following = []
        for path, each in level:
            if id(each) in seen or len(seen) > _MOST:
                continue
            seen.add(id(each))
            kind = _kind_of(type(each))
            if kind is not None:
                found += [(path, kind, each)] if _is_open(each) else []
            elif type(each).__module__ != "builtins" or isinstance(each, (dict, list, tuple)):
                following += [(path + name, one) for name, one in _inside(each) if not isinstance(one, _PLAIN)]
        level = following
    return found


def _is_open(handle: Any) -> bool:
    """Return whether a handle is open and read from: others do no harm. Each library shows that differently."""
    if getattr(handle, "closed", False) or getattr(handle, "fp", handle) is None:  # files, tar; zip
        return False
    kind = _kind_of(type(handle))
    try:
        if kind == _FILE:
            return handle.readable() and handle not in (sys.stdin, sys.__stdin__)
        if kind in _ASK:
            return _ASK[kind](handle) is not False
    except Exception as error:  # each library's own class, also for what only another thread may ask
        return "closed" not in str(error)
    return True


# What is False or raises an error if the handle is closed.
_ASK: dict[str | None, Callable[[Any], Any]] = {
    _H5_FILE: bool,
    _H5_DATASET: bool,
    _H5_GROUP: bool,
    _SQLITE: lambda connection: connection.total_changes,
    _SQLITE_CURSOR: lambda cursor: cursor.connection.total_changes,
    _LMDB: lambda environment: environment.path(),
    _LMDB_READER: lambda transaction: transaction.id(),
}


def _kind_of(kind: type) -> str | None:
    """Return what instances of a class are, if they are handles."""
    names = ((base.__module__, base.__qualname__) for base in kind.__mro__)
    return next((_HANDLES[name] for name in names if name in _HANDLES), None)


def _file_of(kind: str, handle: Any) -> str | int:
    """Return what identifies the file of a handle, since several handles may be of one file: its name, or the id of the
    object that has it open."""
    try:
        if kind in (_H5_FILE, _H5_DATASET, _H5_GROUP):
            return f"HDF5 file {handle.file.filename}"
        if kind == _LMDB:
            return f"LMDB database {handle.path()}"
        return id(handle.connection if kind == _SQLITE_CURSOR else handle)
    except Exception:  # each library's own class
        return id(handle)


def warn_of_handles(dataset: Any) -> None:
    """Warn once for each file: handles opened before the fork are shared by all workers, with their offsets."""
    here: set[str | int] = set()
    for path, kind, handle in _find(dataset):
        place, file = f"{type(dataset).__qualname__}{path}", _file_of(kind, handle)
        is_new = place not in _warned and file not in _warned | here
        here.add(file)
        _warned.update({place, file} if isinstance(file, str) else {place})  # an id may be that of another object later
        if is_new:
            warn_user(
                f"{path} is {kind}, opened before the workers are forked: they would all share its file offset and "
                "its state, and read wrong data or hang. Open it in the worker, when the first sample is requested "
                "(keep the path, and set the handle to None in __init__), or in worker_init_fn"
            )
