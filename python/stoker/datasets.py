# SPDX-License-Identifier: Apache-2.0
"""Datasets: folders of images and sounds, encoded images in memory, archives, tables, and combinations of these.

>>> from stoker import datasets
>>> data = datasets.ImageFolder("images")       # one subfolder per class
>>> data.classes, len(data)
(['cat', 'dog'], 12)
>>> image, label = data[0]                       # without a transform: the pixels, height x width x 3
>>> image.shape, label
((48, 64, 3), 0)
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _ext, audio
from ._base.suggest import no_attribute
from ._data.archives import HDF5, LMDB, Manifest, Npy, Npz, TFRecord, WebDataset, Zip
from ._data.base import Classes, EngineDataset
from ._data.compound import Concat, Mix, Subset
from ._data.detection import CocoDetection, VOCDetection, YOLODetection
from ._data.field_dataset import FieldDataset
from ._data.masks import Cityscapes, ImageMaskFolder, ImagePairs, OxfordIIITPet, VOCSegmentation

__all__ = [
    "HDF5",
    "LMDB",
    "AudioFolder",
    "Cityscapes",
    "CocoDetection",
    "Concat",
    "EngineDataset",
    "FieldDataset",
    "FlatFolder",
    "ImageBytes",
    "ImageFolder",
    "ImageMaskFolder",
    "ImagePairs",
    "Manifest",
    "Mix",
    "Npy",
    "Npz",
    "OxfordIIITPet",
    "Subset",
    "TFRecord",
    "VOCDetection",
    "VOCSegmentation",
    "WebDataset",
    "YOLODetection",
    "Zip",
]

if not TYPE_CHECKING:  # a type checker knows all names

    def __getattr__(name: str) -> Any:
        raise no_attribute(__name__, name, __all__)


def __dir__() -> list[str]:
    return __all__


_OPENED_AS = re.compile(r": open ((\w+):(.*))$")  # what the engine suggests for another kind of data


def _instead(found: re.Match[str]) -> str:
    """Return what opens in Python what the engine suggests to open."""
    uri, kind, path = found.groups()
    return f": use stoker.datasets.FlatFolder({path!r})" if kind == "flat" else f": use stoker.open({uri!r})"


class _Folder(EngineDataset):
    _extensions: Sequence[str] | None = None  # None: those of image files

    def __init__(self, root: Any, transform: Any, index_dir: Any, allow_empty: bool) -> None:
        super().__init__(transform)
        self.root = os.path.expanduser(os.fspath(root))
        self.index_dir = index_dir
        self.allow_empty = allow_empty
        self._samples: list[tuple[str, int]] | None = None
        self._engine()

    def _open(self) -> _ext.Dataset:
        os.scandir(self.root).close()  # raises Python's usual exceptions if the folder does not exist
        try:
            return _ext.Dataset.open(
                f"{self._scheme}:{os.fsdecode(self.root)}",
                index_dir=self.index_dir,
                extensions=self._extensions,
                allow_empty=self.allow_empty,
            )
        except ValueError as err:
            raise FileNotFoundError(_OPENED_AS.sub(_instead, str(err))) from None

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
        """The path and the label of each sample."""
        if self._samples is None:
            engine = self._engine()
            self._samples = [(engine.name(i), label) for i, label in enumerate(self.targets)]
        return self._samples

    def _where(self) -> str:
        return os.fsdecode(self.root)


class ImageFolder(Classes, _Folder):
    """Images in one subfolder per class, in the order of torchvision's ImageFolder.

    Args:
        root: The folder.
        transform: One of stoker.transforms or torchvision's, applied to each image. Anything else that can be called
            with a PIL image works too, and runs in Python.
        target_transform: Must be None; the argument exists so that positional arguments match torchvision's.
        loader: Must be None: the engine decodes files itself.
        is_valid_file: Must be None: files are chosen by their extension.
        allow_empty: Accept class folders without images.
        index_dir: A folder to keep the list of files in. It is reused as long as the tree is unchanged, so that a
            million files need not be listed again. Which JPEGs a GPU's hardware may decode (`jpeg_hardware` of DataLoader)
            is kept there too.

    Raises:
        FileNotFoundError: The folder does not exist, or has no class folders, or a class has no images.
        NotImplementedError: target_transform, loader or is_valid_file is given.

    >>> data = stoker.datasets.ImageFolder("images", T.Compose([T.Resize((32, 32)), T.ToTensor()]))
    >>> data.class_to_idx, data.samples[0]
    ({'cat': 0, 'dog': 1}, ('images/cat/0.png', 0))
    >>> tuple(data[0][0].shape)
    (3, 32, 32)
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
                "files are chosen by extension; DataLoader(on_error='skip') handles bad ones",
            ),
        ):
            if value is not None:
                raise NotImplementedError(f"stoker.datasets.ImageFolder does not support {name}={value!r}: {remedy}")
        super().__init__(root, transform, index_dir, allow_empty)

    @property
    def imgs(self) -> list[tuple[str, int]]:
        """The same as `samples`, as in torchvision."""
        return self.samples


class AudioFolder(Classes, _Folder):
    """Sounds in one subfolder per class: WAV, FLAC, Ogg, Opus and MP3 files.

    A sample is (sound, label). Batches are [sounds, labels], or [sounds, lengths, labels] if the transform does not
    give all sounds the same length; sounds are then padded with zeros.

    Args:
        root: The folder.
        transform: One of stoker.audio. Without one, the samples are as they are in the files.
        allow_empty: Accept class folders without sounds.
        index_dir: A folder to keep the list of files in.

    Raises:
        FileNotFoundError: The folder does not exist, or has no class folders, or a class has no sounds.
        TypeError: The transform does not begin with one of stoker.audio.

    >>> import os, wave
    >>> from stoker import audio as A
    >>> os.makedirs("sounds/hum")
    >>> with wave.open("sounds/hum/0.wav", "wb") as file:
    ...     file.setparams((1, 2, 8000, 0, "NONE", ""))
    ...     file.writeframes(bytes(20))
    >>> data = stoker.datasets.AudioFolder("sounds", A.PadTrim(16))
    >>> sound, label = data[0]
    >>> tuple(sound.shape), label, data.classes
    ((1, 16), 0, ['hum'])
    """

    _scheme = "folder"
    _extensions = audio.EXTENSIONS

    def __init__(
        self, root: Any, transform: Any = None, allow_empty: bool = False, *, index_dir: Any = None
    ) -> None:
        transform = audio.Decode() if transform is None else transform
        if not audio.is_on_sounds(transform):
            raise TypeError(
                f"transform={transform!r} does not begin with a transform of stoker.audio, which AudioFolder requires"
            )
        super().__init__(root, transform, index_dir, allow_empty)


class FlatFolder(_Folder):
    """All images below a folder, in sorted order, with label 0.

    Args:
        root: The folder.
        transform: One of stoker.transforms or torchvision's, applied to each image.
        index_dir: A folder to keep the list of files in.

    Raises:
        FileNotFoundError: The folder does not exist, or has no images.

    >>> len(stoker.datasets.FlatFolder("images"))
    12
    """

    _scheme = "flat"

    def __init__(self, root: Any, transform: Any = None, *, index_dir: Any = None) -> None:
        super().__init__(root, transform, index_dir, allow_empty=False)


class ImageBytes(EngineDataset):
    """Encoded images in memory. They are not copied.

    Args:
        images: Encoded images as bytes, or other objects with the buffer protocol.
        labels: A label for each image; by default 0.
        transform: One of stoker.transforms or torchvision's, applied to each image.

    Raises:
        ValueError: There are more or fewer labels than images.

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
