# SPDX-License-Identifier: Apache-2.0
"""stoker.open: a data set by its path."""

from __future__ import annotations

from typing import Any, Unpack, cast

from . import _ext, datasets
from ._fields import Fields, fields_text
from ._where import Where, joined, where_options

_KINDS: dict[str, Any] = {
    "csv": datasets.Manifest,
    "hdf5": datasets.HDF5,
    "jsonl": datasets.Manifest,
    "lmdb": datasets.LMDB,
    "npy": datasets.Npy,
    "npz": datasets.Npz,
    "tar": datasets.WebDataset,
    "tfrecord": datasets.TFRecord,
    "zip": datasets.Zip,
}


def open(
    path_or_uri: Any,
    fields: Fields = None,
    transform: Any = None,
    *,
    db: str | None = None,
    **where: Unpack[Where],
) -> datasets.EngineDataset:
    """A data set by its path: what it is its name or its first bytes say, or "kind:path" (folder, flat,
    tar, tfrecord, hdf5, lmdb, zip, npy, npz, csv, jsonl), also by an http://, https:// or s3:// URL; a list
    of paths, braces or a pattern for several files of one kind; a folder that `stoker pack` wrote, or that
    holds archives of one kind. The answer is one of stoker.datasets; `where` is index_dir, cache_dir,
    cache_bytes, timeout, connections and max_memory, as there, and `db` the name of a database in an LMDB
    file.

    >>> type(stoker.open("images")).__name__
    'ImageFolder'
    """
    uri = joined(path_or_uri)
    handle = _ext.Dataset.open(uri, fields=fields_text(fields), db=db, **where_options(where))
    kind = handle.kind
    assert kind is not None
    path = uri.removeprefix(f"{kind}:")
    made: Any = _KINDS.get(kind, datasets.FlatFolder if kind == "flat" else datasets.ImageFolder)
    data: Any = made.__new__(made)
    data._handle, data._scheme = handle, kind
    if kind not in _KINDS:
        if fields is not None:
            raise ValueError(f"fields={fields!r}: samples of a folder are an image and a label")
        made.__init__(data, path, transform, index_dir=where.get("index_dir"))
    elif made is datasets.LMDB:
        made.__init__(data, path, None, transform, fields=fields, db=db, **where)
    else:
        made.__init__(data, path, fields, transform, **where)
    return cast(datasets.EngineDataset, data)
