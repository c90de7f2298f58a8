# SPDX-License-Identifier: Apache-2.0
"""What all data sets here have in common."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _ext
from ._convert import default_seed, to_numpy, to_torch, torch_if_installed
from ._steps import pipeline_text


class EngineDataset:
    """What the data sets here have in common: the engine knows where the bytes of each sample are."""

    transform: Any
    _handle: _ext.Dataset | None = None
    _scheme = ""  # its kind, where a path opens it

    def __init__(self, transform: Any) -> None:
        self.transform = transform
        self._singles: list[tuple[Any, _ext.Loader]] = []  # idle ones, which make single samples for data[i]
        self._calls = itertools.count()
        pipeline_text(transform)  # refuses now what cannot be done later

    def _open(self) -> _ext.Dataset:
        raise NotImplementedError

    def _engine(self) -> _ext.Dataset:
        if self._handle is None:
            self._handle = self._open()  # by two threads at once: either will do
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
        x 3; with one it is what the loader would make of it, chance differing from call to call. Any
        number of threads may ask at once."""
        index = range(len(self))[index]
        if self.transform is None:
            data, name = self._bytes(index)
            return to_numpy(_ext.decode(data, name=name)), self._engine().label(index)
        return self._finished(self._batch_of(index)), self._engine().label(index)

    @staticmethod
    def _finished(batch: _ext.Batch) -> Any:
        """The image of a batch of one, as torch's tensor or NumPy's array."""
        image: Any = batch.images[0] if isinstance(batch.images, list) else batch.images
        out = to_torch(image) if torch_if_installed() else to_numpy(image)
        return out if batch.ragged else out[0]

    def _batch_of(self, index: int) -> _ext.Batch:
        """A batch of one sample. While a call lasts its loader is its own, so that threads do not meet."""
        key = (os.getpid(), pipeline_text(self.transform))
        loader = self._take_single(key)
        try:
            loader.start(next(self._calls), np.array([index], np.int64))
            batch = loader.next()
        finally:
            self._singles.append((key, loader))
        assert batch is not None
        return batch

    def _take_single(self, key: tuple[int, str]) -> _ext.Loader:
        while self._singles:
            try:
                made_for, loader = self._singles.pop()
            except IndexError:  # another thread was faster
                break
            if made_for == key:
                return loader
        return _ext.Loader(
            self._engine(), _ext.Pipeline(key[1]), workers=0, order="given", seed=default_seed()
        )

    @property
    def targets(self) -> list[int]:
        """The label of each sample."""
        return list(map(int, to_numpy(self._engine().labels())))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_handle": None, "_singles": []}

    def _where(self) -> str:
        return ""

    def __repr__(self) -> str:
        lines = [f"Dataset {type(self).__name__}", f"Number of datapoints: {len(self)}"]
        if self._where():
            lines.append(f"Root location: {self._where()}")
        if self.transform is not None:
            lines.append("Transform: " + repr(self.transform).replace("\n", "\n" + " " * 15))
        return "\n    ".join(lines)


class Classes(EngineDataset):
    """Of data sets whose labels are classes with names."""

    @property
    def classes(self) -> list[str]:
        """The names of the classes; a class's label is its place here."""
        return self._engine().classes

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class."""
        return {name: label for label, name in enumerate(self.classes)}
