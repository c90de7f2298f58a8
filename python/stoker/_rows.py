# SPDX-License-Identifier: Apache-2.0
"""Samples of a batch that is being made: their large tensors go into the slot one by one, while the cache still
holds them, and their own memory serves the next sample. default_collate then finds them stacked."""

from __future__ import annotations

import sys
from typing import Any

import torch

from ._parcel import Room, TooLarge

_LEAST = 32 << 10  # bytes; smaller ones are stacked afterwards


def is_stackable(tensor: Any) -> bool:
    """Whether it is a tensor that torch.stack puts beside others without a further thought. An image of
    torchvision's is: what comes out is torch's in any case."""
    kind = type(tensor)
    if kind is not torch.Tensor and kind is not getattr(sys.modules.get("torchvision.tv_tensors"), "Image", None):
        return False
    return bool(
        not (tensor.is_nested or tensor.is_quantized or tensor.requires_grad)
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
    )


class _Column:
    def __init__(self, whole: torch.Tensor) -> None:
        self.whole = whole
        self.rows: list[torch.Tensor] = []


class Rows:
    """The columns of one batch of at most `count` samples."""

    def __init__(self, room: Room, count: int) -> None:
        self._room = room
        self._count = count
        self._columns: dict[tuple[Any, ...], _Column] = {}  # by where in a sample its tensor stands
        self._of: dict[int, _Column] = {}  # by the id of its first row

    def put(self, sample: Any, row: int) -> Any:
        """The sample, with its large tensors in the slot."""
        return self._put(sample, row, ())

    def _put(self, value: Any, row: int, path: tuple[Any, ...]) -> Any:
        kind = type(value)
        if kind is tuple or kind is list:
            return kind([self._put(one, row, (*path, at)) for at, one in enumerate(value)])
        if kind is dict:
            return {key: self._put(one, row, (*path, key)) for key, one in value.items()}
        if not isinstance(value, torch.Tensor) or not is_stackable(value) or value.nbytes < _LEAST:
            return value
        column = self._columns.get(path) if row else self._begin(path, value)
        if column is None or len(column.rows) != row:
            return value
        whole = column.whole
        if value.dtype is not whole.dtype or value.shape != whole.shape[1:]:
            return value
        place = whole[row]
        place.copy_(value)
        column.rows.append(place)
        if not row:
            self._of[id(place)] = column
        return place

    def _begin(self, path: tuple[Any, ...], first: torch.Tensor) -> _Column | None:
        try:
            column = _Column(self._room.tensor((self._count, *first.shape), first.dtype))
        except TooLarge:
            return None
        self._columns[path] = column
        return column

    def stacked(self, batch: Any) -> torch.Tensor | None:
        """The tensor that these are the rows of."""
        column = self._of.get(id(batch[0]))
        if column is None or len(column.rows) != len(batch):
            return None
        if any(one is not row for one, row in zip(batch, column.rows, strict=True)):
            return None
        return column.whole[: len(batch)]
