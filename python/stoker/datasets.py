# SPDX-License-Identifier: Apache-2.0
"""Data sets: folders of images, and encoded images in memory.

>>> from stoker import datasets
>>> data = datasets.ImageFolder("images")       # one sub-folder for each class
>>> data.classes, len(data)
(['cat', 'dog'], 12)
>>> image, label = data[0]                       # without a transform: the pixels, height x width x 3
>>> image.shape, label
((48, 64, 3), 0)
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _ext
from ._convert import default_seed, to_numpy, to_torch, torch_if_installed
from .transforms import pipeline_text

__all__ = ["EngineDataset", "FlatFolder", "ImageBytes", "ImageFolder"]


class EngineDataset:
    """What the data sets here have in common: the engine knows where the bytes of each sample are."""

    transform: Any

    def __init__(self, transform: Any) -> None:
        self.transform = transform
        self._handle: _ext.Dataset | None = None
        self._single: tuple[Any, _ext.Loader] | None = None  # makes single samples for data[i]
        self._calls = itertools.count()
        pipeline_text(transform)  # refuses now what cannot be done later

    def _open(self) -> _ext.Dataset:
        raise NotImplementedError

    def _engine(self) -> _ext.Dataset:
        if self._handle is None:
            self._handle = self._open()
        return self._handle

    def _subset(self, indices: Sequence[int]) -> _ext.Dataset:
        """A data set of these samples alone."""
        raise NotImplementedError

    def _bytes(self, index: int) -> tuple[bytes, str]:
        """The encoded image, and what messages call it."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._engine())

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """The image and its label. Without a transform the image is an array of uint8, height x width
        x 3; with one it is what the loader would make of it, chance differing from call to call."""
        index = range(len(self))[index]
        if self.transform is None:
            data, name = self._bytes(index)
            return to_numpy(_ext.decode(data, name=name)), self._engine().label(index)
        loader = self._single_loader()
        loader.start(next(self._calls), np.array([index], np.int64))
        batch = loader.next()
        assert batch is not None
        image = batch.images[0] if isinstance(batch.images, list) else batch.images
        out = to_torch(image) if torch_if_installed() else to_numpy(image)
        return (out if batch.ragged else out[0]), self._engine().label(index)

    def _single_loader(self) -> _ext.Loader:
        key = (os.getpid(), pipeline_text(self.transform))
        if self._single is None or self._single[0] != key:
            self._single = (
                key,
                _ext.Loader(
                    self._engine(), _ext.Pipeline(key[1]), workers=0, order="given", seed=default_seed()
                ),
            )
        return self._single[1]

    @property
    def targets(self) -> list[int]:
        """The label of each sample."""
        return list(map(int, to_numpy(self._engine().labels())))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_handle": None, "_single": None}

    def _where(self) -> str:
        return ""

    def __repr__(self) -> str:
        lines = [f"Dataset {type(self).__name__}", f"Number of datapoints: {len(self)}"]
        if self._where():
            lines.append(f"Root location: {self._where()}")
        if self.transform is not None:
            lines.append("Transform: " + repr(self.transform).replace("\n", "\n" + " " * 15))
        return "\n    ".join(lines)


class _Folder(EngineDataset):
    _scheme = ""

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


class ImageFolder(_Folder):
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
    def classes(self) -> list[str]:
        """The names of the classes; a class's label is its place here."""
        return self._engine().classes

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class."""
        return {name: label for label, name in enumerate(self.classes)}

    @property
    def imgs(self) -> list[tuple[str, int]]:
        """The same as samples."""
        return self.samples


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
