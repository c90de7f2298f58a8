# SPDX-License-Identifier: Apache-2.0
"""Datasets made of others: Concat, Subset and Mix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _ext
from .._base.tables import counted
from .field_dataset import FieldDataset
from .base import EngineDataset, targets_of
from .in_python import engine_text


class _Compound(FieldDataset):
    def __init__(self, parts: Sequence[EngineDataset], transform: Any) -> None:
        for part in parts:
            if not isinstance(part, EngineDataset):
                raise TypeError(
                    f"{type(self).__name__} combines datasets of stoker.datasets, not {type(part).__qualname__}"
                )
        joint = False
        if transform is None and parts:
            texts = [engine_text(part.transform) for part in parts]
            if len({id(part.transform) if text is None else text for part, text in zip(parts, texts)}) > 1:
                raise ValueError(
                    f"the datasets of the {type(self).__name__} have different transforms: pass transform=, which "
                    "then applies to all of them"
                )
            transform = parts[0].transform
            joint = getattr(parts[0], "is_joint", False)
        targets = set(map(targets_of, parts))
        if len(targets) > 1:
            raise ValueError(f"the datasets of the {type(self).__name__} have different masks or boxes")
        self._masks, self._boxes = next(iter(targets), (None, None))
        self._of_objects = next((part._of_objects for part in parts), ())
        self._as_dict = any(getattr(part, "_as_dict", False) for part in parts)
        self._parts = list(parts)
        super().__init__(*(None, transform) if joint else (transform,))

    def _handles(self) -> tuple[_ext.Dataset, ...]:
        return tuple(part._engine() for part in self._parts)

    @property
    def classes(self) -> list[str]:
        """The names of the classes, if all parts have the same."""
        return self._engine().classes


class Concat(_Compound):
    """Concatenate datasets.

    Args:
        datasets: Datasets of stoker.datasets with the same types of fields.
        transform: Applied to the samples of all; by default the one that all of them have.

    Raises:
        ValueError: Types of fields or transforms differ.
        TypeError: One of them is not of stoker.datasets.

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
    """Select samples of a dataset, in any order; samples may be repeated.

    Args:
        dataset: A dataset of stoker.datasets.
        indices: Sample numbers; negative numbers count from the end.
        transform: By default that of the dataset.

    Raises:
        IndexError: There is no such sample.
        TypeError: The dataset is not of stoker.datasets.

    >>> data = stoker.datasets.Subset(stoker.datasets.ImageFolder("images"), [11, 0, -1])
    >>> [label for image, label in data]
    [1, 0, 1]
    """

    def __init__(self, dataset: EngineDataset, indices: Sequence[int], transform: Any = None) -> None:
        self.dataset = dataset
        self.indices = list(indices)
        if isinstance(dataset, EngineDataset):
            every = range(len(dataset))
            try:
                self.indices = [every[i] for i in self.indices]
            except IndexError:
                wrong = next(i for i in self.indices if not -len(every) <= i < len(every))
                raise IndexError(
                    f"indices of the Subset contain {wrong}, but the dataset has {counted(len(every), 'sample')}"
                ) from None
        super().__init__([dataset], transform)

    def _open(self) -> _ext.Dataset:
        return self.dataset._engine().subset(np.asarray(self.indices, np.int64))


class Mix(_Compound):
    """Mix datasets by weight. Any stretch of samples has its share of each dataset, and all samples of a dataset
    come once, in an order that depends on the seed, before any of them comes again.

    Args:
        datasets: Datasets of stoker.datasets with the same types of fields.
        weights: A weight for each.
        samples: The number of samples. By default enough for every sample of every dataset to come once.
        seed: Determines the order.
        transform: Applied to the samples of all; by default the one that all of them have.

    Raises:
        ValueError: `samples` is not positive, there is not one weight per dataset, or types of fields or transforms
            differ.
        TypeError: One of them is not of stoker.datasets.

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
            raise ValueError(f"samples={samples} is not a positive number")
        self.datasets = list(datasets)
        self.weights = [float(weight) for weight in weights]
        self.samples = samples
        self.seed = int(seed)
        super().__init__(self.datasets, transform)

    def _open(self) -> _ext.Dataset:
        weights = np.asarray(self.weights, np.float64)
        return _ext.Dataset.mix(self._handles(), weights, self.samples or 0, self.seed)
