# SPDX-License-Identifier: Apache-2.0
"""Collating in worker processes: torch's default_collate, with its tensors allocated in the slot of the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import default_collate
from torch.utils.data._utils import collate as _torch

from .early_rows import is_stackable
from .parcel import Room, TooLarge

_torch_stack = _torch.collate_tensor_fn


def _is_stackable(batch: Any) -> bool:
    """Return whether these are plain tensors of one type and shape."""
    first = batch[0]
    return all(is_stackable(t) and t.dtype is first.dtype and t.shape == first.shape for t in batch)


def _stack(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Stack into ordinary memory, where torch's function would create a file in /dev/shm for each tensor."""
    if _is_stackable(batch):
        return torch.stack(batch, 0)
    return _torch_stack(batch, collate_fn_map=collate_fn_map)


def avoid_shared_files() -> None:
    """Make default_collate create no files in this worker process, whoever calls it."""
    if stacks_as_torch():
        _torch.default_collate_fn_map[torch.Tensor] = _stack


def stacks_as_torch() -> bool:
    """Return whether nobody has registered another rule for tensors."""
    return _torch.default_collate_fn_map.get(torch.Tensor) in (_torch_stack, _stack)


def collator(collate_fn: Callable[[Any], Any]) -> Callable[[Any, Room], Any]:
    """Return collate_fn with the slot of the batch as a second argument, which only torch's default_collate uses."""
    if collate_fn is not default_collate:
        return lambda samples, room: collate_fn(samples)

    def collate(samples: Any, room: Room) -> Any:
        def stack(batch: Any, *, collate_fn_map: Any = None) -> Any:
            there = None if room.rows is None else room.rows.stacked(batch)
            if there is not None:
                return there
            if not _is_stackable(batch):
                return _torch_stack(batch, collate_fn_map=collate_fn_map)
            try:
                out = room.tensor((len(batch), *batch[0].shape), batch[0].dtype)
            except TooLarge:
                return torch.stack(batch, 0)
            return torch.stack(batch, 0, out=out) if out.numel() else out

        table = dict(_torch.default_collate_fn_map)
        if stacks_as_torch():
            table[torch.Tensor] = stack
        return _torch.collate(samples, collate_fn_map=table)

    return collate
