# SPDX-License-Identifier: Apache-2.0
"""The base classes of all datasets."""

from __future__ import annotations

import itertools
import operator
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _ext
from ._convert import default_seed, to_numpy, to_torch, torch_if_installed
from ._steps import pipeline_text
from ._tables import counted


class EngineDataset:
    """Base class of all datasets in stoker.datasets: the engine knows where the bytes of each sample are.

    `len(data)` and `data[i]` work as in torch, so that every dataset also works in torch's DataLoader. Any number
    of threads may use `data[i]` at once. In stoker.DataLoader, no Python runs for a sample.

    Attributes:
        transform: What is done to each image or sound; it may be replaced between epochs.
    """

    transform: Any
    _handle: _ext.Dataset | None = None
    _scheme = ""  # its kind, for datasets that a path opens

    def __init__(self, transform: Any) -> None:
        self.transform = transform
        self._singles: list[tuple[Any, _ext.Loader]] = []  # idle loaders that make single samples for data[i]
        self._calls = itertools.count()
        pipeline_text(transform)  # raises now what would fail later

    def _open(self) -> _ext.Dataset:
        raise NotImplementedError

    def _engine(self) -> _ext.Dataset:
        if self._handle is None:
            self._handle = self._open()  # two threads may do this at once: either handle is valid
        return self._handle

    def _subset(self, indices: Sequence[int]) -> _ext.Dataset:
        """Return a dataset of these samples only."""
        raise NotImplementedError

    def _bytes(self, index: int) -> tuple[bytes, str]:
        """Return the encoded image and its name in messages."""
        raise NotImplementedError

    def __len__(self) -> int:
        """The number of samples."""
        return len(self._engine())

    def __getitem__(self, index: int) -> tuple[Any, int]:
        """Return one sample.

        Args:
            index: The number of the sample; negative numbers count from the end.

        Returns:
            The image and its label. Without a transform the image is a uint8 array of shape height x width x 3;
            with one it is what a loader would make of it, with random draws that differ from call to call.

        Raises:
            IndexError: There is no such sample.
            CorruptSample: The sample is damaged.
        """
        count, index = len(self), operator.index(index)
        if not -count <= index < count:
            raise IndexError(f"sample {index} is out of range: the dataset has {counted(count, 'sample')}")
        index %= count
        if self.transform is None:
            data, name = self._bytes(index)
            return to_numpy(_ext.decode(data, name=name)), self._engine().label(index)
        return self._finished(self._batch_of(index)), self._engine().label(index)

    @staticmethod
    def _finished(batch: _ext.Batch) -> Any:
        """Return the image of a batch of one, as a torch tensor or a NumPy array."""
        image: Any = batch.images[0] if isinstance(batch.images, list) else batch.images
        out = to_torch(image) if torch_if_installed() else to_numpy(image)
        return out if batch.ragged else out[0]

    def _batch_of(self, index: int) -> _ext.Batch:
        """Return a batch of one sample. Each call has a loader to itself, so that threads do not share one."""
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
        """The label of each sample, as a list."""
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
    """Base class of datasets whose labels are classes with names."""

    @property
    def classes(self) -> list[str]:
        """The names of the classes. The label of a class is its position in this list."""
        return self._engine().classes

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class, by its name."""
        return {name: label for label, name in enumerate(self.classes)}
