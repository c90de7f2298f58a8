# SPDX-License-Identifier: Apache-2.0
"""Applies target_transform to the labels of a batch that the engine has made."""

from __future__ import annotations

from typing import Any

from .. import _ext
from .._base.tensors import to_numpy, to_torch
from .._data.fields import INT

BLANK = -100  # the label of a bad sample with on_error="replace"
_CUDA = 2  # DLPack's number for CUDA


def labels_of(batch: _ext.Batch, dataset: _ext.Dataset, *, blanks: bool) -> list[int]:
    """Return the labels of a batch, which may still be on its way to a GPU: they are looked up by sample, because
    reading them from the GPU would wait for it. Labels that are fields are in memory, too; those of blanks only there."""
    if batch.device[0] != _CUDA:
        return list(to_numpy(batch.labels).tolist())
    if blanks:
        return list(to_torch(batch.labels).tolist())
    if batch.columns:
        return list(next(to_numpy(values) for kind, values, _ in batch.columns if kind == INT).tolist())
    return [dataset.label(sample) for sample in to_numpy(batch.samples).tolist()]


def transformed(
    labels: list[int], target_transform: Any, *, blanks: bool, device: Any, pinned: bool, output: str
) -> Any:
    """Return the transformed labels, collated by torch's default_collate, on the same device as the images."""
    from torch.utils.data import default_collate
    from torch.utils.data._utils.pin_memory import pin_memory

    from .gpu_copies import each_tensor

    # A tuple, as default_collate makes it when it transposes samples: strings are returned in it unchanged.
    found = (label if blanks and label == BLANK else target_transform(label) for label in labels)
    collated = default_collate(tuple(found))
    if output == "numpy":
        return each_tensor(collated, _ToNumpy())
    if device is not None:
        return each_tensor(collated, _ToDevice(device))
    return pin_memory(collated) if pinned else collated


class _ToNumpy:
    device = "cpu"

    def __call__(self, tensor: Any) -> Any:
        return tensor.numpy()


class _ToDevice:
    """Copies in the current stream. The CPU does not wait: that takes pinned memory, which torch keeps until it is
    copied."""

    def __init__(self, device: str) -> None:
        self.device = device

    def __call__(self, tensor: Any) -> Any:
        ready = tensor.pin_memory() if tensor.is_cpu and not tensor.is_sparse else tensor
        return ready.to(self.device, non_blocking=True)
