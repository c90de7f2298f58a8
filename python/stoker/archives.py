# SPDX-License-Identifier: Apache-2.0
"""Data sets in files: tar, TFRecord, HDF5, LMDB, zip, NumPy, tables; and data sets made of others.

A sample is a tuple in the order of `fields`; `transform` applies to the first that is an image, one of
stoker.audio to the first that is a sound. Further images are arrays of uint8, height x width x 3. All are
read in place, at random, and work in stoker.DataLoader and, by len(data) and data[i], in torch's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar, Unpack

import numpy as np

from . import _ext
from ._convert import to_numpy
from ._dataset import Classes, EngineDataset
from ._fields import Fields, fields_text, first_of, sample, worked_on
from ._steps import pipeline_text
from ._where import Where, joined, where_options

__all__ = [
    "HDF5",
    "LMDB",
    "Concat",
    "FieldDataset",
    "Manifest",
    "Mix",
    "Npy",
    "Npz",
    "Subset",
    "TFRecord",
    "WebDataset",
    "Zip",
]


class FieldDataset(EngineDataset):
    """What data sets have in common whose samples are tuples of fields."""

    def __init__(self, transform: Any) -> None:
        super().__init__(transform)
        fields, kind = self._engine().fields, worked_on(pipeline_text(transform))
        if transform is not None and first_of(fields, kind) is None:
            raise ValueError(
                f"transform={transform!r}: no field is of the type {kind}; the fields are "
                + ", ".join(f"{name} ({kind})" for name, kind in fields)
            )

    @property
    def field_types(self) -> dict[str, str]:
        """The names and types of what a sample has, in order: image, audio, int, float, array, text,
        json or bytes."""
        return dict(self._engine().fields)

    def _subset(self, indices: Sequence[int]) -> _ext.Dataset:
        return self._engine().subset(np.asarray(indices, np.int64))

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        """The fields of a sample. Without a transform the image is an array of uint8, height x width x 3;
        with one it is what the loader would make of it, chance differing from call to call. Further
        images are as without a transform. Other fields are int, float, str, bytes, NumPy's arrays, or
        what JSON says."""
        batch = self._batch_of(range(len(self))[index])
        return sample(self._engine(), batch, pipeline_text(self.transform), self._image(batch))

    def _image(self, batch: _ext.Batch) -> Any:
        if self.transform is not None:
            return self._finished(batch)
        images: Any = batch.images
        if images is None:
            return None
        pixels = to_numpy(images[0]) if batch.ragged else to_numpy(images)[0]
        return np.ascontiguousarray(pixels.transpose(1, 2, 0))


class _Files(Classes, FieldDataset):
    """Opened by a path, or by several: a list, braces ("a-{000..127}.h5"), a pattern ("*.h5"), or a folder
    that holds files of this kind."""

    def __init__(self, path: Any, fields: Fields, transform: Any, where: Where, **options: Any) -> None:
        self.path = path
        self.fields = dict(fields) if isinstance(fields, Mapping) else fields
        self.where = where_options(where) | options
        super().__init__(transform)

    def _where(self) -> str:
        return joined(self.path)

    def _open(self) -> _ext.Dataset:
        return _ext.Dataset.open(
            f"{self._scheme}:{self._where()}", fields=fields_text(self.fields), **self.where
        )


class _Unlabelled(_Files):
    @property
    def targets(self) -> list[int]:
        """Not known without reading the samples."""
        raise AttributeError(f"the labels of a {type(self).__name__} lie in its samples: read these")


class WebDataset(_Unlabelled):
    """Samples in tar files, as the package webdataset reads them, but at random.

    `urls` is a path, with braces ("train-{000..127}.tar") or as a pattern ("train-*.tar"), or a list of
    such. Fields are suffixes, also several that may stand for one another ("jpg;jpeg;png"), or
    "__key__". The last part of a suffix says what it is, unless a dict gives types:
    {"jpg": "image", "seg": "bytes"}.
    With fields=None they are those of the first sample, images first. A tar file that is packed as a
    whole (.tar.gz, .tar.zst) is unpacked into memory if that is small enough, and refused otherwise.
    Pickles are never opened.

    `index_dir` is a folder for the list of what lies where, which is otherwise kept beside the files,
    where these may be written. Files may also be http://, https:// or s3:// URLs; then `cache_dir` keeps
    what was read, up to `cache_bytes`, `timeout` limits the seconds that one request may take, and
    `connections` (256) how many are open at once.
    `max_memory` limits the bytes of archives that must be unpacked as a whole (by default a quarter of
    the memory). All data sets in files take these six.
    """

    _scheme = "tar"

    def __init__(
        self, urls: Any, fields: Fields = ("jpg", "cls"), transform: Any = None, **where: Unpack[Where]
    ) -> None:
        super().__init__(urls, fields, transform, where)


_IMAGENET = MappingProxyType({"image/encoded": "image", "image/class/label": "int"})


class TFRecord(_Unlabelled):
    """Records of tf.train.Example or SequenceExample, at random, their checksums verified.

    `paths` are as WebDataset's. Fields are features with their types: image, text, json or bytes for one
    value of bytes, int or float for one number, "int[2x?]" or "float[]" for several, "u8[32x32x3]" for
    elements that lie in bytes as they are. With fields=None they are those of the first record.
    """

    _scheme = "tfrecord"

    def __init__(
        self,
        paths: Any,
        fields: Fields = _IMAGENET,
        transform: Any = None,
        **where: Unpack[Where],
    ) -> None:
        super().__init__(paths, fields, transform, where)


class HDF5(_Files):
    """Row i of data sets of an HDF5 file, whose names are the fields; None: all at the file's root. `path`
    may be several files, one behind the other, as WebDataset's; so with all kinds that follow.

    Rows of uint8 [H, W] and [H, W, C] are images, and so are sequences of uint8 of any length that begin
    as an image does; single numbers are int or float, strings text, all others arrays.
    """

    _scheme = "hdf5"

    def __init__(
        self,
        path: Any,
        fields: Fields = ("images", "labels"),
        transform: Any = None,
        **where: Unpack[Where],
    ) -> None:
        super().__init__(path, fields, transform, where)


class LMDB(_Unlabelled):
    """The entries of an LMDB database, in the order of their keys; `db` is the name of one that has a name.

    `value` says what they are: "image" (a sample is an encoded image and its key), "datum" (Caffe's:
    image and label) or "bytes" (bytes and key). By default it is found out from the first, also an image
    and a number in MessagePack, and keys image-N with the texts label-N. `fields` chooses among image,
    label, key and value itself, also with a type: ("image=u8[32x32x3]", "key"). The channels of raw Datums
    are turned from Caffe's BGR to RGB. Pickles are never opened.
    """

    _scheme = "lmdb"
    _VALUES: ClassVar = {
        "image": ("image", "key"),
        "datum": ("image", "label"),
        "bytes": ("value", "key"),
    }

    def __init__(
        self,
        path: Any,
        value: str | None = None,
        transform: Any = None,
        *,
        fields: Fields = None,
        db: str | None = None,
        **where: Unpack[Where],
    ) -> None:
        if value is not None and (value not in self._VALUES or fields is not None):
            raise ValueError(
                f"value={value!r}: give one of " + ", ".join(self._VALUES) + ", or fields instead"
            )
        chosen = self._VALUES[value] if value else fields
        super().__init__(path, chosen, transform, where, **({} if db is None else {"db": db}))


class Zip(_Files):
    """The images of a zip archive, with the order and the classes of ImageFolder on the unpacked archive.
    Fields: image, label, name."""

    _scheme = "zip"

    def __init__(
        self, path: Any, fields: Fields = None, transform: Any = None, **where: Unpack[Where]
    ) -> None:
        super().__init__(path, fields, transform, where)


class Npy(_Files):
    """Row i of an array in a .npy file: an image if it is uint8 [H, W] or [H, W, C], else numbers."""

    _scheme = "npy"

    def __init__(
        self, path: Any, fields: Fields = None, transform: Any = None, **where: Unpack[Where]
    ) -> None:
        super().__init__(path, fields, transform, where)


class Npz(Npy):
    """Row i of the arrays of a .npz file, whose names are the fields; by default all."""

    _scheme = "npz"


class Manifest(_Files):
    """Files named in a table: CSV or TSV whose first line names the columns, or one JSON object a line.

    Fields are columns, that of the files first, or the first with "=image"; paths are relative to the
    table's folder or URL, and may be URLs themselves. Words in a column of labels are classes, numbered in
    sorted order, unless most of them are whole numbers, which are labels as they stand. Damaged rows are bad
    samples, and so are those with an empty cell, or a word, where a number should stand.
    """

    def __init__(
        self, path: Any, fields: Fields = None, transform: Any = None, **where: Unpack[Where]
    ) -> None:
        if not self._scheme:
            name = joined(path).split("::")[0].lower()
            if name.startswith(("http://", "https://")):
                name = re.split("[?#]", name)[0]
            name = name.removesuffix(".gz").removesuffix(".zst")
            self._scheme = "jsonl" if name.endswith((".jsonl", ".ndjson", ".json")) else "csv"
        super().__init__(path, fields, transform, where)


# ---- made of others ----


class _Compound(FieldDataset):
    def __init__(self, parts: Sequence[EngineDataset], transform: Any) -> None:
        for part in parts:
            if not isinstance(part, EngineDataset):
                raise TypeError(
                    f"{type(self).__name__} is made of stoker.datasets, not of {type(part).__qualname__}"
                )
        if transform is None and parts:
            if len({pipeline_text(part.transform) for part in parts}) > 1:
                raise ValueError(
                    f"the data sets of the {type(self).__name__} have different transforms: give it a "
                    "transform of its own, which then applies to all"
                )
            transform = parts[0].transform
        self._parts = list(parts)
        super().__init__(transform)

    def _handles(self) -> tuple[_ext.Dataset, ...]:
        return tuple(part._engine() for part in self._parts)

    @property
    def classes(self) -> list[str]:
        """The names of the classes, where all parts have the same."""
        return self._engine().classes


class Concat(_Compound):
    """Data sets one behind the other, all with the same types of fields. `transform` is by default
    theirs.

    >>> data = stoker.datasets.ImageFolder("images")
    >>> len(stoker.datasets.Concat([data, data])) == 2 * len(data)
    True
    """

    def __init__(self, datasets: Sequence[EngineDataset], transform: Any = None) -> None:
        self.datasets = list(datasets)
        super().__init__(self.datasets, transform)

    def _open(self) -> _ext.Dataset:
        return _ext.Dataset.concat(self._handles())


class Subset(_Compound):
    """Some samples of a data set, in any order, any of them more than once.

    >>> data = stoker.datasets.Subset(stoker.datasets.ImageFolder("images"), [11, 0, -1])
    >>> [label for image, label in data]
    [1, 0, 1]
    """

    def __init__(self, dataset: EngineDataset, indices: Sequence[int], transform: Any = None) -> None:
        self.dataset = dataset
        every = range(len(dataset)) if isinstance(dataset, EngineDataset) else range(0)
        self.indices = [every[i] for i in indices] if every else list(indices)
        super().__init__([dataset], transform)

    def _open(self) -> _ext.Dataset:
        return self.dataset._engine().subset(np.asarray(self.indices, np.int64))


class Mix(_Compound):
    """Data sets mixed by weights: of any run of samples each has its share, and all its samples come once
    before any comes again, in an order that depends on the seed. It has `samples` samples, or by default
    as many as it takes until all of all parts have come.

    >>> data = stoker.datasets.ImageFolder("images")
    >>> len(stoker.datasets.Mix([data, data], weights=[3, 1], samples=100))
    100
    """

    def __init__(
        self,
        datasets: Sequence[EngineDataset],
        weights: Sequence[float],
        *,
        samples: int | None = None,
        seed: int = 0,
        transform: Any = None,
    ) -> None:
        if samples is not None and samples < 1:
            raise ValueError(f"samples={samples} should be positive")
        self.datasets = list(datasets)
        self.weights = [float(weight) for weight in weights]
        self.samples = samples
        self.seed = int(seed)
        super().__init__(self.datasets, transform)

    def _open(self) -> _ext.Dataset:
        weights = np.asarray(self.weights, np.float64)
        return _ext.Dataset.mix(self._handles(), weights, self.samples or 0, self.seed)
