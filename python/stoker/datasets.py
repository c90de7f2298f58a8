# SPDX-License-Identifier: Apache-2.0
"""Data sets: folders of images, encoded images in memory, and the archives of stoker.archives.

>>> from stoker import datasets
>>> data = datasets.ImageFolder("images")       # one sub-folder for each class
>>> data.classes, len(data)
(['cat', 'dog'], 12)
>>> image, label = data[0]                       # without a transform: the pixels, height x width x 3
>>> image.shape, label
((48, 64, 3), 0)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _ext, audio
from ._dataset import Classes, EngineDataset
from .archives import (
    HDF5,
    LMDB,
    Concat,
    FieldDataset,
    Manifest,
    Mix,
    Npy,
    Npz,
    Subset,
    TFRecord,
    WebDataset,
    Zip,
)

__all__ = [
    "HDF5",
    "LMDB",
    "AudioFolder",
    "Concat",
    "EngineDataset",
    "FieldDataset",
    "FlatFolder",
    "ImageBytes",
    "ImageFolder",
    "Manifest",
    "Mix",
    "Npy",
    "Npz",
    "Subset",
    "TFRecord",
    "WebDataset",
    "Zip",
]


class _Folder(EngineDataset):
    _extensions: Sequence[str] | None = None  # None: those of images

    def __init__(self, root: Any, transform: Any, index_dir: Any, allow_empty: bool) -> None:
        super().__init__(transform)
        self.root = os.path.expanduser(os.fspath(root))
        self.index_dir = index_dir
        self.allow_empty = allow_empty
        self._samples: list[tuple[str, int]] | None = None
        self._engine()

    def _open(self) -> _ext.Dataset:
        os.scandir(self.root).close()  # Python's own exceptions for a folder that is not there
        try:
            return _ext.Dataset.open(
                f"{self._scheme}:{os.fsdecode(self.root)}",
                index_dir=self.index_dir,
                extensions=self._extensions,
                allow_empty=self.allow_empty,
            )
        except ValueError as err:
            raise FileNotFoundError(str(err)) from None

    def _subset(self, indices: Sequence[int]) -> _ext.Dataset:
        engine = self._engine()
        labels = np.array([engine.label(i) for i in indices], np.int64)
        return _ext.Dataset.from_files([engine.name(i) for i in indices], labels)

    def _bytes(self, index: int) -> tuple[bytes, str]:
        path = self._engine().name(index)
        with open(path, "rb") as file:
            return file.read(), path

    @property
    def samples(self) -> list[tuple[str, int]]:
        """(path, label) of each sample."""
        if self._samples is None:
            engine = self._engine()
            self._samples = [(engine.name(i), label) for i, label in enumerate(self.targets)]
        return self._samples

    def _where(self) -> str:
        return os.fsdecode(self.root)


class ImageFolder(Classes, _Folder):
    """Images in one sub-folder for each class, in the order of torchvision's ImageFolder.

    `index_dir` is a folder to keep the list of files in; it is used again as long as the tree is
    unchanged, so that a million files need not be listed anew.
    """

    _scheme = "folder"

    def __init__(
        self,
        root: Any,
        transform: Any = None,
        target_transform: None = None,
        loader: None = None,
        is_valid_file: None = None,
        allow_empty: bool = False,
        *,
        index_dir: Any = None,
    ) -> None:
        for name, value, remedy in (
            ("target_transform", target_transform, "apply it to the labels of the batch"),
            ("loader", loader, "the engine decodes files itself"),
            (
                "is_valid_file",
                is_valid_file,
                "files are chosen by extension; on_error='skip' of the DataLoader deals with bad ones",
            ),
        ):
            if value is not None:
                raise NotImplementedError(f"ImageFolder cannot take {name}={value!r}: {remedy}")
        super().__init__(root, transform, index_dir, allow_empty)

    @property
    def imgs(self) -> list[tuple[str, int]]:
        """The same as samples."""
        return self.samples


class AudioFolder(Classes, _Folder):
    """Sounds in one sub-folder for each class. `transform` is one of stoker.audio; without one, the samples
    are as the files have them. A sample is (sound, label); a loader gives [sounds, labels], or
    [sounds, lengths, labels] where the transform leaves lengths that differ."""

    _scheme = "folder"
    _extensions = audio.EXTENSIONS

    def __init__(
        self, root: Any, transform: Any = None, allow_empty: bool = False, *, index_dir: Any = None
    ) -> None:
        transform = audio.Decode() if transform is None else transform
        if not audio.is_on_sounds(transform):
            raise TypeError(
                f"transform={transform!r} works on images: AudioFolder wants those of stoker.audio"
            )
        super().__init__(root, transform, index_dir, allow_empty)


class FlatFolder(_Folder):
    """All images below a folder, in sorted order, with label 0."""

    _scheme = "flat"

    def __init__(self, root: Any, transform: Any = None, *, index_dir: Any = None) -> None:
        super().__init__(root, transform, index_dir, allow_empty=False)


class ImageBytes(EngineDataset):
    """Encoded images that are in memory already; they are kept, not copied.

    >>> image = open("images/cat/0.png", "rb").read()
    >>> data = ImageBytes([image, image], labels=[3, 4])
    >>> data.targets
    [3, 4]
    """

    def __init__(
        self, images: Sequence[Any], labels: Sequence[int] | None = None, transform: Any = None
    ) -> None:
        super().__init__(transform)
        self.images = list(images)
        self.labels = [0] * len(self.images) if labels is None else [int(label) for label in labels]
        self._engine()

    def _open(self) -> _ext.Dataset:
        return _ext.Dataset.from_memory(self.images, np.array(self.labels, np.int64))

    def _subset(self, indices: Sequence[int]) -> _ext.Dataset:
        return _ext.Dataset.from_memory(
            [self.images[i] for i in indices], np.array([self.labels[i] for i in indices], np.int64)
        )

    def _bytes(self, index: int) -> tuple[bytes, str]:
        return self.images[index], self._engine().name(index)
