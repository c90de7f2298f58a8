# SPDX-License-Identifier: Apache-2.0
"""stoker.open: open a dataset by its path."""

from __future__ import annotations

from typing import Any, Unpack, cast

from . import _ext, datasets
from ._base.suggest import suggests_keywords
from ._data.fields import Fields, fields_text
from ._data.file_options import Where, joined, where_options

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


@suggests_keywords
def open(
    path_or_uri: Any,
    fields: Fields = None,
    transform: Any = None,
    *,
    db: str | None = None,
    **where: Unpack[Where],
) -> datasets.EngineDataset:
    """Open a dataset of any kind by its path.

    Args:
        path_or_uri: A folder of images; an archive or table; a folder that `stoker pack` wrote, or with archives of one
            kind; a list of paths, braces or a pattern for several files of one kind; or an http://, https:// or s3://
            URL. The kind follows from the name or the first bytes, or is given as "kind:path", with folder, flat, tar,
            tfrecord, hdf5, lmdb, zip, npy, npz, csv or jsonl.
        fields: What a sample consists of, as in the class of stoker.datasets; by default all that is there.
        transform: One of stoker.transforms, stoker.audio or torchvision's.
        db: The name of a named database in an LMDB file.
        **where: index_dir, cache_dir, cache_bytes, timeout, connections, max_memory, masks, boxes, keypoints and box_format,
            as in stoker.datasets.WebDataset.

    Returns:
        An object of one of the classes in stoker.datasets.

    Raises:
        FileNotFoundError: There is nothing at that path.
        ValueError: The kind is unknown, or an option has a value that is not allowed.
        Unsupported: This build cannot read that kind.

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
            raise ValueError(f"fields={fields!r}: samples of a folder are always an image and a label")
        for name in ("masks", "boxes", "keypoints", "box_format"):
            if name in where:
                raise ValueError(f"{name}= needs fields, and samples of a folder are always an image and a label")
        made.__init__(data, path, transform, index_dir=where.get("index_dir"))
    elif made is datasets.LMDB:
        made.__init__(data, path, None, transform, fields=fields, db=db, **where)
    else:
        made.__init__(data, path, fields, transform, **where)
    return cast(datasets.EngineDataset, data)
