# SPDX-License-Identifier: Apache-2.0
"""Samples of a batch in progress: large tensors are copied into the slot one by one, while they are in the CPU's cache,
and their memory is reused for the next sample. default_collate then finds them already stacked."""

from __future__ import annotations

import math
import sys
from typing import Any

import torch

from .. import _ext
from .._engine.batch_tensor import BatchTensor, become
from .._lazy.late import late_of
from .parcel import Room, TooLarge

_LEAST = 32 << 10  # bytes; smaller tensors are stacked at the end


def is_stackable(tensor: Any) -> bool:
    """Return whether torch.stack of such tensors is a plain copy. That includes torchvision's images: the result is a
    plain torch tensor in any case."""
    kind = type(tensor)
    if kind is not torch.Tensor and kind is not getattr(sys.modules.get("torchvision.tv_tensors"), "Image", None):
        return False
    return bool(
        not (tensor.is_nested or tensor.is_quantized or tensor.requires_grad)
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
    )


def copy_row(place: torch.Tensor, value: torch.Tensor) -> None:
    """Copy a stackable tensor to its row. Images whose channels are interleaved, as ToTensorV2 of Albumentations and v2
    leave them, take torch much longer than others."""
    _, height, width = value.shape if value.dim() == 3 else (0, 0, 0)
    interleaved = value.dtype is torch.float32 and value.stride() == (1, 3 * width, 3) and not value.is_neg()
    if not (interleaved and height and _ext.copy_packed(place.numpy(), value.numpy())):
        place.copy_(value)


class _Column:
    def __init__(self, whole: torch.Tensor) -> None:
        self.whole = whole
        self.rows: list[torch.Tensor] = []


class Rows:
    """The columns of one batch of at most `count` samples."""

    def __init__(self, room: Room, count: int) -> None:
        self._room = room
        self._count = count
        self._columns: dict[tuple[Any, ...], _Column] = {}  # by the path of the tensor in a sample
        self._of: dict[int, _Column] = {}  # by the id of the first row

    def put(self, sample: Any, row: int) -> Any:
        """Return the sample, with its large tensors in the slot."""
        return self._put(sample, row, ())

    def _put(self, value: Any, row: int, path: tuple[Any, ...]) -> Any:
        kind = type(value)
        if kind is tuple or kind is list:
            return kind([self._put(one, row, (*path, at)) for at, one in enumerate(value)])
        if kind is dict:
            return {key: self._put(one, row, (*path, key)) for key, one in value.items()}
        if kind is BatchTensor:
            return self._put_late(value, row, path)
        return self._put_tensor(value, row, path)

    def _put_late(self, value: BatchTensor, row: int, path: tuple[Any, ...]) -> Any:
        """Make a tensor in its row."""
        late = late_of(value)
        if late is not None:
            shape, _, dtype = late.meta()
            column = self._column(path, row, shape, dtype)
            if column is not None and late.make_into(self._room.part(place := column.whole[row])):
                return self._keep(column, row, place)
        return self._put_tensor(become(value), row, path)

    def _put_tensor(self, value: Any, row: int, path: tuple[Any, ...]) -> Any:
        if not isinstance(value, torch.Tensor) or not is_stackable(value):
            return value
        column = self._column(path, row, value.shape, value.dtype)
        if column is None:
            return value
        place = column.whole[row]
        copy_row(place, value)
        return self._keep(column, row, place)

    def _keep(self, column: _Column, row: int, place: torch.Tensor) -> torch.Tensor:
        column.rows.append(place)
        if not row:
            self._of[id(place)] = column
        return place

    def _column(self, path: tuple[Any, ...], row: int, shape: Any, dtype: torch.dtype) -> _Column | None:
        """Return the column whose next row is this one; None if such a tensor has no place there."""
        if math.prod(shape) * dtype.itemsize < _LEAST:
            return None
        column = self._columns.get(path) if row else self._begin(path, shape, dtype)
        if column is None or len(column.rows) != row:
            return None
        return column if dtype is column.whole.dtype and shape == column.whole.shape[1:] else None

    def _begin(self, path: tuple[Any, ...], shape: Any, dtype: torch.dtype) -> _Column | None:
        if path in self._columns:
            return self._columns[path]
        try:
            column = _Column(self._room.tensor((self._count, *shape), dtype))
        except TooLarge:
            return None
        self._columns[path] = column
        return column

    def stacked(self, batch: Any) -> torch.Tensor | None:
        """Return the tensor whose rows these are, or None."""
        column = self._of.get(id(batch[0]))
        if column is None or len(column.rows) != len(batch):
            return None
        if any(one is not row for one, row in zip(batch, column.rows, strict=True)):
            return None
        return column.whole[: len(batch)]
