# SPDX-License-Identifier: Apache-2.0
"""What datasets of images with masks and those with boxes have in common."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from .. import _ext
from .field_dataset import FieldDataset


class Pairs(FieldDataset):
    """Base class of images and the files that belong to them, in one of the engine's layouts."""

    _layout: ClassVar[str]

    def __init__(self, images: Any, targets: Any, transform: Any, transforms: Any = None, **options: Any) -> None:
        self._paths = tuple(
            None if path is None else os.path.expanduser(os.fsdecode(path)) for path in (images, targets)
        )
        self._options = options
        super().__init__(transform, transforms)

    def _open(self) -> _ext.Dataset:
        images, targets = self._paths
        assert images is not None
        return _ext.Dataset.from_pairs(images, targets, layout=self._layout, **self._options)

    def _where(self) -> str:
        return str(self._paths[0])


def voc_folder(root: Any, year: str) -> str:
    """Return the folder of a year in the folder that contains VOCdevkit, as torchvision's classes take it."""
    return os.path.join(os.fsdecode(root), "TrainVal" if year == "2011" else "", "VOCdevkit", f"VOC{year}")
