# SPDX-License-Identifier: Apache-2.0
"""Datasets in files: tar, TFRecord, HDF5, LMDB, zip, NumPy, tables.

A sample is a tuple in the order of `fields`. `transform` applies to the first image, or, if it is one of
stoker.audio, to the first sound. Further images are uint8 arrays of shape height x width x 3. All formats are read
in place, with random access.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Unpack


from .. import _ext
from .base import Classes
from .field_dataset import FieldDataset
from .fields import Fields, fields_text
from .file_options import Where, boxes_text, joined, masks_text, where_options

__all__ = [
    "HDF5",
    "LMDB",
    "Manifest",
    "Npy",
    "Npz",
    "TFRecord",
    "WebDataset",
    "Zip",
]


class _Files(Classes, FieldDataset):
    """Base class of datasets that are opened by a path, or by several: a list, braces ("a-{000..127}.h5"), a pattern
    ("*.h5"), or a folder with files of this kind."""

    def __init__(self, path: Any, fields: Fields, transform: Any, where: Where, **options: Any) -> None:
        self.path = path
        self.fields = dict(fields) if isinstance(fields, Mapping) else fields
        self.where = where_options(where) | options
        self._masks, self._boxes = masks_text(where), boxes_text(where)
        super().__init__(transform, where.get("transforms"))

    def _where(self) -> str:
        return joined(self.path)

    def _open(self) -> _ext.Dataset:
        return _ext.Dataset.open(
            f"{self._scheme}:{self._where()}", fields=fields_text(self.fields), **self.where
        )


class _Unlabelled(_Files):
    @property
    def targets(self) -> list[int]:
        """Not available: the labels are only known once the samples are read."""
        raise AttributeError(f"{type(self).__name__} has no targets: its labels are inside its samples; read those")


class WebDataset(_Unlabelled):
    """Samples in tar files, grouped as the package webdataset groups them, but with random access.

    Args:
        urls: A path or an http://, https:// or s3:// URL, also with braces ("train-{000..127}.tar") or as a pattern
            ("train-*.tar"), or a list of these.
        fields: Suffixes; several alternatives for one field ("jpg;jpeg;png"); or "__key__". Members without a name
            before the first dot ("...", "..jpg") belong to no sample, as in the package webdataset. The last part of a
            suffix determines the type, unless a dict gives types: {"jpg": "image", "seg": "bytes"}. With None, the
            fields of the first sample are used, images first.
        transform: One of stoker.transforms, stoker.audio or torchvision's, for the first image or sound.
        **where: All datasets in files accept these:

            - `index_dir`: a folder for the index of the samples. By default it is kept next to the files, if they are
              in a writable folder.
            - `cache_dir`: a folder that keeps what was read from URLs.
            - `cache_bytes`: the most bytes in `cache_dir`; by default 64 GiB.
            - `timeout`: seconds for one request of a URL, including retries; by default 60.
            - `connections`: the most connections to servers at once; by default 256.
            - `max_memory`: the most bytes of archives that must be unpacked as a whole; by default a quarter of the
              memory.
            - `masks`: the names of fields that are masks, images of class numbers. They are moved like the first image,
              and become uint8 [height, width]; in a dict with the type "int32", PNGs of 16 bits become int32.
            - `images`: the names of further images of the sample's size, such as the right one of a pair. They become what
              the first one does, with the same draws.
            - `boxes`: the name of a field that has boxes, float32 [n, 4] (left, top, right, bottom, in pixels), which are moved
              like the first image; or a dict of such names, each with a list of the fields that have a value for each box.
            - `keypoints`: the names of fields that have key points, float32 [..., 2] (x, y) or [..., 3] (x, y, visibility), which
              are moved like the first image; those that `boxes` names for a field of boxes are removed with these. Or a dict of
              such names, each with a list of the fields that have a value for each key point of [n, 2] or [n, 3].
            - `box_format`: how boxes are stored, if not so: "xywh" (left, top, width, height) or "cxcywh" (centre, width,
              height), or one of these after "relative_" if they are fractions of the image's width and height, as YOLO's
              "relative_cxcywh" are. They become left, top, right and bottom in pixels.
            - `transforms`: with `masks` or `boxes`, in place of `transform`, a transform that may have steps of your own
              (stoker.datasets.ImageMaskFolder).

    Compressed tar files (.tar.gz, .tar.zst) are unpacked into memory if they fit into `max_memory`, and refused
    otherwise. Pickles are never loaded.

    Raises:
        OSError: A file cannot be read.
        CorruptSample: A file is not a tar file, or is damaged.
        ValueError: There is no such field, or an option has a value that is not allowed.

    >>> import io, tarfile
    >>> with tarfile.open("train.tar", "w") as archive:
    ...     for name, data in (("0.png", open("images/cat/0.png", "rb").read()), ("0.cls", b"7")):
    ...         member = tarfile.TarInfo(name)
    ...         member.size = len(data)
    ...         archive.addfile(member, io.BytesIO(data))
    >>> image, label = stoker.datasets.WebDataset("train.tar", fields=("png", "cls"))[0]
    >>> image.shape, label
    ((48, 64, 3), 7)
    """

    _scheme = "tar"

    def __init__(
        self, urls: Any, fields: Fields = ("jpg", "cls"), transform: Any = None, **where: Unpack[Where]
    ) -> None:
        super().__init__(urls, fields, transform, where)


_IMAGENET = MappingProxyType({"image/encoded": "image", "image/class/label": "int"})


class TFRecord(_Unlabelled):
    """Records of tf.train.Example or SequenceExample, with random access and verified checksums.

    Args:
        paths: Files, as in WebDataset.
        fields: Features and their types: image, text, json or bytes for one value of bytes; int or float for one
            number; "int[2x?]" or "float[]" for several; "u8[32x32x3]" for raw elements in bytes. By default those of
            ImageNet. With None, those of the first record.
        transform: One of stoker.transforms, stoker.audio or torchvision's, for the first image or sound.
        **where: index_dir, cache_dir, cache_bytes, timeout, connections and max_memory, as in WebDataset.

    Raises:
        OSError: A file cannot be read.
        CorruptSample: A file is damaged, or a record does not have one of the fields.

    >>> from tfrecord.writer import TFRecordWriter
    >>> writer = TFRecordWriter("train.tfrecord")
    >>> writer.write({"image/encoded": (open("images/cat/0.png", "rb").read(), "byte"), "image/class/label": (7, "int")})
    >>> writer.close()
    >>> image, label = stoker.datasets.TFRecord("train.tfrecord")[0]
    >>> image.shape, label
    ((48, 64, 3), 7)
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
    """Rows of the datasets in HDF5 files.

    Rows of uint8 [H, W] and [H, W, C] are images, and so are variable-length sequences of uint8 that hold an encoded
    image. Single numbers are int or float, strings are text, and all others are arrays.

    Args:
        path: One or several files, as in WebDataset.
        fields: Names of datasets in the file. With None, all at the root of the file.
        transform: One of stoker.transforms, stoker.audio or torchvision's, for the first image or sound.
        **where: index_dir, cache_dir, cache_bytes, timeout, connections and max_memory, as in WebDataset.

    Raises:
        OSError: A file cannot be read.
        ValueError: There is no such dataset in the file.
        Unsupported: This build has no HDF5, or a filter of the file is missing.

    >>> import h5py
    >>> with h5py.File("train.h5", "w") as file:
    ...     file["images"] = np.zeros((4, 8, 8, 3), np.uint8)
    ...     file["labels"] = np.arange(4)
    >>> image, label = stoker.datasets.HDF5("train.h5")[3]
    >>> image.shape, label
    ((8, 8, 3), 3)
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
    """The entries of an LMDB database, in the order of their keys.

    Args:
        path: One or several databases, as in WebDataset.
        value: What the entries are: "image" (a sample is an encoded image and its key), "datum" (Caffe's: image and
            label) or "bytes" (bytes and key). By default the first entry determines it; an image and a number in
            MessagePack, and keys image-N with texts label-N, are recognized, too.
        transform: One of stoker.transforms, stoker.audio or torchvision's, for the first image or sound.
        fields: Instead of `value`: a choice of image, label, key and value, also with a type:
            ("image=u8[32x32x3]", "key").
        db: The name of a named database in the file.
        **where: index_dir, cache_dir, cache_bytes, timeout, connections and max_memory, as in WebDataset.

    The channels of raw Datums are reordered from Caffe's BGR to RGB. Pickles are never loaded.

    Raises:
        OSError: A file cannot be read.
        ValueError: `value` is none of the above, or given together with `fields`; or there is no such database.

    >>> import lmdb
    >>> with lmdb.open("train.lmdb") as environment, environment.begin(write=True) as transaction:
    ...     _ = transaction.put(b"first", open("images/cat/0.png", "rb").read())
    >>> image, key = stoker.datasets.LMDB("train.lmdb", value="image")[0]
    >>> image.shape, key
    ((48, 64, 3), 'first')
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
                f"value={value!r}: give one of " + ", ".join(self._VALUES) + ", or give fields, not both"
            )
        chosen = self._VALUES[value] if value else fields
        super().__init__(path, chosen, transform, where, **({} if db is None else {"db": db}))


class Zip(_Files):
    """The images of a zip archive, with the order and the classes that ImageFolder has for the unpacked archive.

    Args:
        path: One or several archives, as in WebDataset.
        fields: A choice of image, label and name; by default image and label.
        transform: One of stoker.transforms or torchvision's, for the image.
        **where: index_dir, cache_dir, cache_bytes, timeout, connections and max_memory, as in WebDataset.

    Raises:
        OSError: A file cannot be read.
        CorruptSample: A file is not a zip archive, or is damaged.

    >>> import shutil
    >>> _ = shutil.make_archive("pets", "zip", "images")
    >>> stoker.datasets.Zip("pets.zip").classes
    ['cat', 'dog']
    """

    _scheme = "zip"

    def __init__(
        self, path: Any, fields: Fields = None, transform: Any = None, **where: Unpack[Where]
    ) -> None:
        super().__init__(path, fields, transform, where)


class Npy(_Files):
    """Rows of an array in a .npy file: images if they are uint8 [H, W] or [H, W, C], otherwise numbers.

    Args:
        path: One or several files, as in WebDataset.
        fields: A name for the only field, also with a type: {"x": "array"}. By default "row".
        transform: One of stoker.transforms or torchvision's, for images.
        **where: index_dir, cache_dir, cache_bytes, timeout, connections and max_memory, as in WebDataset.

    Raises:
        OSError: A file cannot be read.
        CorruptSample: A file is not a .npy file, or is damaged.

    >>> import numpy as np
    >>> np.save("images.npy", np.zeros((10, 8, 8, 3), np.uint8))
    >>> len(stoker.datasets.Npy("images.npy"))
    10
    """

    _scheme = "npy"

    def __init__(
        self, path: Any, fields: Fields = None, transform: Any = None, **where: Unpack[Where]
    ) -> None:
        super().__init__(path, fields, transform, where)


class Npz(Npy):
    """Rows of the arrays in a .npz file.

    Args:
        path: One or several files, as in WebDataset.
        fields: Names of arrays; by default all.
        transform: One of stoker.transforms or torchvision's, for the first image.
        **where: index_dir, cache_dir, cache_bytes, timeout, connections and max_memory, as in WebDataset.

    Raises:
        OSError: A file cannot be read.
        ValueError: There is no such array in the file.

    >>> import numpy as np
    >>> np.savez("set.npz", images=np.zeros((10, 8, 8, 3), np.uint8), labels=np.arange(10))
    >>> image, label = stoker.datasets.Npz("set.npz", fields=("images", "labels"))[3]
    >>> image.shape, label
    ((8, 8, 3), 3)
    """

    _scheme = "npz"


class Manifest(_Files):
    """Files named in a table: CSV or TSV with a header line, or one JSON object per line.

    Args:
        path: One or several tables, as in WebDataset.
        fields: Columns, with the column of the files first, or marked with "=image". Paths are relative to the folder
            or URL of the table, and may be URLs themselves.
        transform: One of stoker.transforms, stoker.audio or torchvision's, for the first image or sound.
        **where: index_dir, cache_dir, cache_bytes, timeout, connections and max_memory, as in WebDataset.

    Words in a column of labels are classes, numbered in sorted order, unless most of them are integers, which are used
    as labels directly. Damaged rows are bad samples, and so are rows with an empty cell or a word instead of a number.

    Raises:
        OSError: A file cannot be read.
        ValueError: There is no such column.

    >>> with open("pets.csv", "w") as table:
    ...     _ = table.write("file,label\\nimages/cat/0.png,cat\\nimages/dog/0.png,dog\\n")
    >>> data = stoker.datasets.Manifest("pets.csv")
    >>> data.classes, data[1][1]
    (['cat', 'dog'], 1)
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
