# SPDX-License-Identifier: Apache-2.0
"""Applies target_transform to the labels of a batch that the engine has made."""

from __future__ import annotations

from typing import Any

BLANK = -100  # the label of a bad sample with on_error="replace"


def transformed(labels: Any, target_transform: Any, *, blanks: bool, device: Any, pinned: bool, output: str) -> Any:
    """Return the transformed labels, collated by torch's default_collate, on the same device as the images."""
    from torch.utils.data import default_collate
    from torch.utils.data._utils.pin_memory import pin_memory

    # A tuple, as default_collate makes it when it transposes samples: strings are returned in it unchanged.
    found = (label if blanks and label == BLANK else target_transform(label) for label in labels.tolist())
    collated = default_collate(tuple(found))
    if output == "numpy":
        return _each_tensor(collated, lambda tensor: tensor.numpy())
    if device is not None:
        return _each_tensor(collated, lambda tensor: tensor.to(device, non_blocking=True))
    return pin_memory(collated) if pinned else collated


def _each_tensor(data: Any, change: Any) -> Any:
    if hasattr(data, "detach"):
        return change(data)
    if isinstance(data, dict):
        return {key: _each_tensor(value, change) for key, value in data.items()}
    if isinstance(data, list):
        return [_each_tensor(value, change) for value in data]
    return data
