# SPDX-License-Identifier: Apache-2.0
"""Batches of TensorDatasets, and of Subsets and ConcatDatasets of them: whole batches are gathered from each tensor at
once, where torch takes sample by sample and stacks them.

Order, seeds and errors are torch's: its samplers give the batches, and anything unusual is left to torch's code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import ConcatDataset, Subset, TensorDataset, default_collate
from torch.utils.data._utils import collate as _collate

from .._plan.known_datasets import CONCAT_ATTRIBUTES, SUBSET_ATTRIBUTES, Watch, part_sizes_agree, whole_indices


class _Rows(NamedTuple):
    """Samples as rows of datasets of tensors."""

    sets: list[Any]
    which: np.ndarray | None  # the set of each sample; None: the first one for all
    row: np.ndarray | None  # the row of each sample in its set; None: its number
    count: int


class Gather:
    """Gathers batches of a dataset."""

    def __init__(self, rows: _Rows, watch: Watch) -> None:
        self._rows = rows
        self._watch = watch
        self._lengths = _lengths(rows.sets)

    def changed(self) -> bool:
        return (
            self._watch.changed()
            or not _collates_as_usual()
            or not _are_plain(self._rows.sets)
            or _lengths(self._rows.sets) != self._lengths
        )

    def fetch(self, indices: Any) -> list[torch.Tensor] | None:
        """Return a batch as default_collate makes it; None if the indices are not a list of valid sample numbers."""
        if type(indices) is not list or set(map(type, indices)) != {int}:
            return None
        try:
            rows = np.array(indices, np.int64)
        except OverflowError:
            return None
        if rows.min() < 0 or rows.max() >= self._rows.count:
            return None
        which = None if self._rows.which is None else self._rows.which[rows]
        rows = rows if self._rows.row is None else self._rows.row[rows]
        first = 0 if which is None else which[0]
        out = [_empty(tensor, len(rows)) for tensor in self._rows.sets[first].tensors]
        if which is None or (which == first).all():
            _take_all(self._rows.sets[first].tensors, rows, out)
        else:
            self._take_mixed(which, rows, out)
        return out

    def _take_mixed(self, which: np.ndarray, rows: np.ndarray, out: list[torch.Tensor]) -> None:
        """Gather a batch whose samples come from several datasets."""
        for number in np.unique(which).tolist():
            place = np.flatnonzero(which == number)
            tensors = self._rows.sets[number].tensors
            some = [_empty(tensor, len(place)) for tensor in tensors]
            _take_all(tensors, rows[place], some)
            for into, taken in zip(out, some, strict=True):
                into[torch.from_numpy(place)] = taken


def _lengths(sets: list[Any]) -> list[int]:
    return [len(data.tensors[0]) for data in sets]


def _empty(tensor: torch.Tensor, count: int) -> torch.Tensor:
    return torch.empty((count, *tensor.shape[1:]), dtype=tensor.dtype, device=tensor.device)


_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def _bits(tensor: torch.Tensor) -> np.ndarray:
    """Return the tensor's memory as integers of the same size: NumPy does not have all of torch's types."""
    return tensor.numpy() if tensor.itemsize not in _BITS else tensor.view(_BITS[tensor.itemsize]).numpy()


def _take_all(tensors: Any, rows: np.ndarray, out: list[torch.Tensor]) -> None:
    """Gather with NumPy, in this thread: torch's index_select uses several threads, which, when other processes use the
    CPUs too, wait for each other longer than the copy takes."""
    for tensor, into in zip(tensors, out, strict=True):
        if not tensor.is_cpu:
            torch.index_select(tensor, 0, torch.from_numpy(rows).to(tensor.device), out=into)
        elif tensor.is_contiguous():
            np.take(_bits(tensor), rows, axis=0, out=_bits(into), mode="clip")  # "raise" would copy twice
        else:
            _bits(into)[...] = _bits(tensor)[rows]


def gather(dataset: Any, collate_fn: Callable[[Any], Any]) -> Gather | None:
    """Return a Gather if whole batches of the dataset can be gathered, else None."""
    watch = Watch()
    if collate_fn is not default_collate or not _collates_as_usual():
        return None
    rows = _lower(dataset, watch)
    return None if rows is None or not _are_plain(rows.sets) else Gather(rows, watch)


def _collates_as_usual() -> bool:
    """Return whether nobody has registered another way to collate tensors, or tuples of them."""
    table = _collate.default_collate_fn_map
    if table.get(torch.Tensor) is not _collate.collate_tensor_fn:
        return False
    kinds = [kind for entry in table for kind in (entry if isinstance(entry, tuple) else (entry,))]
    return not any(issubclass(tuple, kind) for kind in kinds)


def _are_plain(sets: list[Any]) -> bool:
    """Return whether gathering rows at once gives the same as torch.stack of the rows."""
    models = [[(t.dtype, t.shape[1:], t.device) for t in data.tensors] for data in sets]
    return all(model == models[0] for model in models) and all(
        type(tensor) is torch.Tensor
        and tensor.layout is torch.strided
        and tensor.device.type in ("cpu", "cuda")
        and tensor.ndim
        and not (tensor.requires_grad or tensor.is_quantized or tensor.is_nested or tensor.is_conj() or tensor.is_neg())
        and len(tensor) == len(data.tensors[0])
        for data in sets
        for tensor in data.tensors
    )


def _lower(dataset: Any, watch: Watch) -> _Rows | None:
    for base, attributes, lower in _KINDS:
        if isinstance(dataset, base):
            return None if watch.changes(dataset, base, attributes) else lower(dataset, watch)
    return None


def _lower_tensors(dataset: Any, watch: Watch) -> _Rows | None:
    tensors = watch.take(dataset, "tensors")
    return _Rows([dataset], None, None, len(tensors[0])) if tensors else None


def _lower_subset(dataset: Any, watch: Watch) -> _Rows | None:
    whole = _lower(watch.take(dataset, "dataset"), watch)
    indices = None if whole is None else whole_indices(dataset, watch, whole.count)
    if whole is None or indices is None:
        return None
    which = None if whole.which is None else whole.which[indices]
    return _Rows(whole.sets, which, indices if whole.row is None else whole.row[indices], len(indices))


def _lower_concat(dataset: Any, watch: Watch) -> _Rows | None:
    watch.take(dataset, "cumulative_sizes")
    parts = [_lower(each, watch) for each in watch.take(dataset, "datasets")]
    whole = [part for part in parts if part is not None]
    if len(whole) < len(parts) or not part_sizes_agree(dataset, [part.count for part in whole]):
        return None
    sets = [data for part in whole for data in part.sets]
    starts = np.cumsum([0] + [len(part.sets) for part in whole])
    which = [
        (np.zeros(part.count, np.int64) if part.which is None else part.which) + start
        for part, start in zip(whole, starts[:-1], strict=True)
    ]
    row = [np.arange(part.count) if part.row is None else part.row for part in whole]
    return _Rows(sets, np.concatenate(which), np.concatenate(row), sum(part.count for part in whole))


_KINDS: tuple[tuple[type, tuple[str, ...], Callable[[Any, Watch], _Rows | None]], ...] = (
    (TensorDataset, ("tensors",), _lower_tensors),
    (Subset, SUBSET_ATTRIBUTES, _lower_subset),
    (ConcatDataset, CONCAT_ATTRIBUTES, _lower_concat),
)
