# SPDX-License-Identifier: Apache-2.0
"""The base classes of all datasets."""

from __future__ import annotations

import io
import itertools
import operator
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _ext
from .._base.suggest import SuggestsKeywords
from .._base.tables import counted
from .._base.tensors import next_epoch, to_numpy, to_torch, torch_if_installed
from .._steps.base import gives_array
from .fields import AUDIO, IMAGE, INT, worked_on
from .in_python import callable_for, engine_text, key_of
from .rescue import Rescue, pixel_limit, rescue_for


class EngineDataset(SuggestsKeywords):
    """Base class of all datasets in stoker.datasets: the engine knows where the bytes of each sample are.

    `len(data)` and `data[i]` work as in torch, so that every dataset also works in torch's DataLoader. Any number
    of threads may use `data[i]` at once. In stoker.DataLoader, no Python runs for a sample.

    A transform that the engine does not have is called in Python, with a PIL image, as torchvision's datasets do.

    Attributes:
        transform: What is done to each image or sound; it may be replaced between epochs.
    """

    transform: Any
    _handle: _ext.Dataset | None = None
    _scheme = ""  # its kind, for datasets that a path opens
    _asks_pillow = True  # whether Pillow decodes samples that the engine refuses
    _masks: str | None = None  # names of fields that are moved like the image, as the engine takes them,
    _boxes: str | None = None  # and of boxes, each with what belongs to them,
    _of_objects: tuple[str, ...] = ()  # among which these are masks of objects

    def __init__(self, transform: Any) -> None:
        self.transform = transform
        self._singles: list[tuple[Any, _ext.Loader]] = []  # idle loaders that make single samples for data[i]
        self._calls = itertools.count()
        self._rescue: tuple[Any, Rescue | None] | None = None
        self._called: tuple[Any, Any] | None = None  # what runs the transform in Python, and for which transform
        self._text()  # raises now what would fail later

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
            StokerError: The sample cannot be read or decoded. The error is also an instance of what Pillow or Python
                raises for it, such as PIL.UnidentifiedImageError or FileNotFoundError.
        """
        count, index = len(self), operator.index(index)
        if not -count <= index < count:
            raise IndexError(f"sample {index} is out of range: the dataset has {counted(count, 'sample')}")
        index %= count
        text = self._text()
        if text is None:
            image = self._in_python(self._opened(index))
        elif self.transform is None:
            image = self._decoded(index)
        else:
            image = self._finished(self._batch_of(index, text), text)
        return image, self._engine().label(index)

    def _text(self) -> str | None:
        """Return the text of the pipeline that the engine runs; None if the transform is called in Python."""
        key = key_of(self.transform)
        if self._called is not None and self._called[0] == key:
            return None
        text = engine_text(self.transform)
        if text is None:
            self._called = key, self._python_call()
        return text

    def _python_call(self) -> Any:
        """Return what runs the transform in Python."""
        return callable_for(self.transform)

    def _in_python(self, image: Any) -> Any:
        assert self._called is not None
        return self._called[1](image)

    def _opened(self, index: int) -> Any:
        return opened(self._bytes(index)[0])

    def _decoded(self, index: int) -> np.ndarray:
        """Return the pixels, height x width x 3."""
        data, name = self._bytes(index)
        limit = pixel_limit(asks_pillow=True)
        more = {} if limit is None else {"pixel_limit": limit}
        try:
            return to_numpy(_ext.decode(data, name=name, **more))
        except _ext.StokerError as error:
            rescue = self._rescuer()
            image = None if rescue is None else rescue(index, data, error)
            if rescue is not None and image is None:
                raise rescue.as_pillows(error) from None
            if image is None:
                raise
            return to_numpy(_ext.decode(image, name=name, pixel_limit=0))

    def _rescuer(self) -> Rescue | None:
        engine = self._engine()
        if self._rescue is None or self._rescue[0] is not engine:
            self._rescue = engine, rescue_for(engine)
        return self._rescue[1]

    @staticmethod
    def _finished(batch: _ext.Batch, text: str) -> Any:
        """Return the image of a batch of one, as a torch tensor or a NumPy array; a list of them if it has several views.
        `text` is its pipeline."""
        convert = to_torch if torch_if_installed() and not gives_array(text) else to_numpy
        images: Any = batch.images
        views = list(map(convert, images)) if isinstance(images, list) else list(convert(images))
        return views if len(views) > 1 else views[0]

    def _batch_of(
        self, index: int, text: str, encoded: _ext.Dataset | None = None, *, interleaved: bool = False
    ) -> _ext.Batch:
        """Return a batch of one sample. Each call has a loader to itself, so that threads do not share one. `encoded`: of
        this dataset of the same samples, whose first image stays encoded. `interleaved`: the channels of each pixel are
        beside each other in memory, as `pixels_of` needs them."""
        limit = None if worked_on(text) == AUDIO else pixel_limit(self._asks_pillow)
        key = (os.getpid(), text, limit, encoded is not None, interleaved)
        loader = self._take_single(key, encoded)
        try:
            loader.start(next_epoch(self._calls) if text else 0, np.array([index], np.int64))
            batch = loader.next()
        except _ext.StokerError as error:
            rescue = self._rescuer()
            if rescue is None:
                raise
            raise rescue.as_pillows(error) from None
        finally:
            self._singles.append((key, loader))
        assert batch is not None
        return batch

    def _take_single(
        self, key: tuple[int, str, int | None, bool, bool], encoded: _ext.Dataset | None
    ) -> _ext.Loader:
        while self._singles:
            try:
                made_for, loader = self._singles.pop()
            except IndexError:  # another thread was faster
                break
            if made_for == key:
                return loader
        if encoded is not None:
            return _ext.Loader(encoded, _ext.Pipeline(""), workers=0, order="given", pixel_limit=key[2])
        return _ext.Loader(
            self._engine(),
            _ext.Pipeline(key[1]),
            workers=0,
            order="given",
            layout="nhwc" if key[4] else "nchw",
            pixel_limit=key[2],
            rescue=self._rescuer(),
            masks=self._masks,
            boxes=self._boxes,
        )

    def _kinds(self) -> list[str]:
        """Return the types of what a sample consists of."""
        return [IMAGE, INT]

    @property
    def targets(self) -> list[int]:
        """The label of each sample, as a list."""
        return list(map(int, to_numpy(self._engine().labels())))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_handle": None, "_singles": [], "_rescue": None, "_called": None}

    def _where(self) -> str:
        return ""

    def __repr__(self) -> str:
        lines = [f"Dataset {type(self).__name__}", f"Number of datapoints: {len(self)}"]
        if self._where():
            lines.append(f"Root location: {self._where()}")
        if self.transform is not None:
            lines.append("Transform: " + repr(self.transform).replace("\n", "\n" + " " * 15))
        return "\n    ".join(lines)


def opened(data: bytes) -> Any:
    """Return an encoded image as torchvision's datasets load it."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGB")


def targets_of(dataset: Any) -> tuple[str | None, str | None]:
    """Return the names of the fields that are masks, and of those that are boxes, as the engine takes them."""
    return (dataset._masks, dataset._boxes) if isinstance(dataset, EngineDataset) else (None, None)


class Classes(EngineDataset):
    """Base class of datasets whose labels are classes with names."""

    @property
    def classes(self) -> list[str]:
        """The names of the classes. The label of a class is its position in this list."""
        return self._engine().classes

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The label of each class, by its name."""
        engine = self._engine()
        return dict(zip(engine.classes, engine.class_labels, strict=True))
