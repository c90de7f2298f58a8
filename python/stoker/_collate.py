# SPDX-License-Identifier: Apache-2.0
"""Batches in worker processes: torch's default_collate, its tensors made where they are handed over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils.data import default_collate
from torch.utils.data._utils import collate as _torch

from ._parcel import Room, TooLarge
from ._rows import is_stackable

_torch_stack = _torch.collate_tensor_fn


def _is_stackable(batch: Any) -> bool:
    """Whether these are tensors of one kind that torch.stack puts together without a further thought."""
    first = batch[0]
    return all(is_stackable(t) and t.dtype is first.dtype and t.shape == first.shape for t in batch)


def _stack(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Into ordinary memory, where torch's would make a file in /dev/shm for each tensor."""
    if _is_stackable(batch):
        return torch.stack(batch, 0)
    return _torch_stack(batch, collate_fn_map=collate_fn_map)


def avoid_shared_files() -> None:
    """In a worker: default_collate, called by anybody, makes no files."""
    if stacks_as_torch():
        _torch.default_collate_fn_map[torch.Tensor] = _stack


def stacks_as_torch() -> bool:
    """Whether nobody has registered another rule for tensors."""
    return _torch.default_collate_fn_map.get(torch.Tensor) in (_torch_stack, _stack)


def collator(collate_fn: Callable[[Any], Any]) -> Callable[[Any, Room], Any]:
    """collate_fn with a slot to put tensors into, where it is torch's own."""
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
