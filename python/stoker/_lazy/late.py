# SPDX-License-Identifier: Apache-2.0
"""Tensors of samples that are not made before it is known where: straight into the row of their batch.

While a worker fills a batch row by row, what a Compose makes of a file is a BatchTensor: an ordinary tensor as soon as
anybody looks at its elements, in the dataset or later. Untouched, it is made where its batch is, instead of being made
elsewhere and copied. Its bytes are those of the file as it was read, so nothing that happens in between changes it.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from .. import _ext
from .._engine.batch_tensor import BatchTensor, source_of

_TYPE = torch.float32  # what ToTensor makes


class _Here(threading.local):
    fills_rows = False


_here = _Here()


@contextlib.contextmanager
def filling_rows() -> Iterator[None]:
    """Samples that this thread makes in here are put into rows, one by one, each before the next."""
    before, _here.fills_rows = _here.fills_rows, True
    try:
        yield
    finally:
        _here.fills_rows = before


def is_wanted() -> bool:
    return _here.fills_rows


class _Nobody:
    """Whom the use of such a tensor concerns."""

    def sent(self, device: torch.device, layout: torch.memory_format) -> None: ...
    def read(self) -> None: ...


class Late:
    """What makes the tensor: a file, edits, and the steps from ToTensor on, as the engine's and as torchvision's."""

    usage = _Nobody()

    def __init__(self, source: Any, edits: Any, single: _ext.Single, steps: Sequence[Any], size: tuple[int, int]) -> None:
        self._source, self._edits, self._single = source, edits, single
        self._steps, self._size = steps, size
        self._is_made = False

    def meta(self) -> tuple[tuple[int, ...], tuple[int, ...], torch.dtype]:
        width, height = self._size
        return (3, height, width), (height * width, width, 1), _TYPE

    def copied(self, *how: Any) -> torch.Tensor | None:
        return None

    def is_pinned(self) -> bool:
        return False

    def make_into(self, memory: memoryview) -> bool:
        """Make it here, unless that was done before: whoever keeps a tensor to use it again wants it made once."""
        from .pixels import REFUSALS

        if self._is_made:
            return False
        self._is_made = True
        try:
            self._source.run_into(memory, self._single, self._edits)
        except REFUSALS:
            return False
        return True

    def fetch(self, pinned: bool) -> torch.Tensor:
        from .._base.tensors import take_capsule
        from .pixels import REFUSALS

        try:
            return take_capsule()(self._source.run(self._single, self._edits).__dlpack__())  # type: ignore[no-any-return]
        except REFUSALS:
            return self._made_by_torchvision()

    def _made_by_torchvision(self) -> torch.Tensor:
        from .images import deferred

        value: Any = deferred(self._source, self._edits, "RGB", self._size, {})
        for step in self._steps:
            value = step(value)
        assert type(value) is torch.Tensor
        return value


def late_of(tensor: BatchTensor) -> Late | None:
    """Return what will make it; None if that has happened."""
    source = source_of(tensor)
    return source if isinstance(source, Late) else None
