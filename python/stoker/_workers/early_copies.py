# SPDX-License-Identifier: Apache-2.0
"""Pinned batches of datasets written in Python, copied to the GPU to which the script sends them before it does."""

from __future__ import annotations

import itertools
from typing import Any

import torch

from .._engine.batch_sources import CopiedEarly, InMemory
from .._engine.device_batches import DeviceBatches

_LARGE = 1 << 20  # bytes of a tensor whose copy takes time
_PLAIN = (str, bytes, int, float, bool, type(None))


def lent(batch: Any, decided: DeviceBatches) -> Any:
    """Return a batch as the script gets it. Its large tensors are BatchTensors while it is being watched, and when they are
    on their way to the GPU."""
    decided.decide()
    if not decided.is_on() or type(batch) not in (list, dict):
        return batch
    items = dict(batch.items() if type(batch) is dict else enumerate(batch))
    large = {place: value for place, value in items.items() if _is_large(value)}
    if not large or not _share_nothing(list(items.values())):
        return batch
    try:
        sources = [_source(tensor, decided) for tensor in large.values()]
    except torch.OutOfMemoryError as error:
        decided.out_of_memory(error)
        return batch
    for place, tensor in zip(large, decided.given(sources), strict=True):
        batch[place] = tensor
    return batch


def _is_large(value: Any) -> bool:
    plain = type(value) is torch.Tensor and value.layout == torch.strided and not value.requires_grad
    return plain and value.nbytes >= _LARGE and value.is_pinned()


def _share_nothing(values: list[Any]) -> bool:
    """Return whether no two tensors are in the same memory: a change of one would be missing in the other's copy. What may
    hold further tensors is not looked into."""
    tensors = [value for value in values if type(value) is torch.Tensor and value.layout == torch.strided]
    others = [value for value in values if type(value) is not torch.Tensor or value.layout != torch.strided]
    ranges = sorted(map(_range, tensors))
    alone = all(before[1] <= after[0] for before, after in itertools.pairwise(ranges))
    return alone and all(map(_holds_no_tensor, others))


def _range(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the addresses between which its elements are."""
    steps = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    start = tensor.data_ptr()
    return start, start + (steps + 1 if tensor.numel() else 0) * tensor.element_size()


def _holds_no_tensor(value: Any) -> bool:
    if type(value) is list:
        return all(type(one) in _PLAIN for one in value)
    return type(value) in _PLAIN


def _source(tensor: torch.Tensor, decided: DeviceBatches) -> Any:
    if decided.place is None:
        return InMemory(tensor, decided)
    return CopiedEarly(tensor, decided, torch.device(decided.place))
