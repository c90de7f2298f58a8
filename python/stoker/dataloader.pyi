# SPDX-License-Identifier: Apache-2.0
"""The types of stoker.DataLoader: its options, and what its batches are. test_types.py compares this with dataloader.py."""

from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

import torch
from torch.utils.data import DataLoader as _Base

from ._data.base import EngineDataset
from ._engine.stats import Stats
from ._plan.explain import Plan
from .datasets import AudioFolder, ImageBytes, ImageFolder

__all__ = ["DataLoader"]

_T_co = TypeVar("_T_co", covariant=True)

class _Options(TypedDict, total=False):
    # data and batches
    drop_last: bool
    collate_fn: Any
    batch_transforms: Any
    ragged: Literal["list", "pad"] | None
    # order and randomness
    sampler: Iterable[Any] | None
    batch_sampler: Iterable[Any] | None
    order: Literal["stoker", "torch"] | None
    seed: int | None
    seed_by: Literal["worker", "sample"] | None
    generator: Any
    shard: bool
    rank: int | None
    world_size: int | None
    # workers and memory
    num_workers: int | Literal["auto"]
    prefetch_factor: int | None
    persistent_workers: bool | None
    in_order: bool
    timeout: float
    worker_init_fn: Any
    multiprocessing_context: Any
    snapshot_every_n_steps: int | None
    read_ahead: int | None
    max_memory: int | str | None
    # errors
    on_error: Literal["raise", "skip", "replace"]
    error_limit: int | None
    pixel_limit: int | None
    # device and output
    device: Any
    device_batches: bool | None
    augment_on: Literal["auto", "cpu", "cuda"]
    jpeg_hardware: Literal["known", "all", "off"]
    engines: Literal["known", "all", "off"] | None
    pin_memory: bool
    pin_memory_device: str
    pinned_limit: int | None
    dtype: Any
    memory_format: Any
    # engine
    compile: bool | Literal["require"]
    fidelity: Literal["exact", "fast"]
    pillow: Literal[12, 13]
    exif_rotate: bool

class _OptionsAndOutput(_Options, total=False):
    # device and output
    output: Literal["torch", "numpy", "dlpack"] | None

class DataLoader(_Base[_T_co]):
    # Images and labels, or sounds and labels, as tensors of torch.
    @overload
    def __init__(
        self: DataLoader[list[torch.Tensor]],
        dataset: ImageFolder | AudioFolder | ImageBytes,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        **options: Unpack[_Options],
    ) -> None: ...
    # A column for each field: tensors, arrays, or lists of what the samples hold.
    @overload
    def __init__(
        self: DataLoader[list[Any]],
        dataset: EngineDataset,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        **options: Unpack[_OptionsAndOutput],
    ) -> None: ...
    # What collate_fn makes of the samples.
    @overload
    def __init__(
        self: DataLoader[Any],
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        **options: Unpack[_OptionsAndOutput],
    ) -> None: ...
    @property
    def rank(self) -> int | None: ...
    @property
    def world_size(self) -> int | None: ...
    def __iter__(self) -> Iterator[_T_co]: ...  # type: ignore[override]
    def __len__(self) -> int: ...
    def set_epoch(self, epoch: int) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: dict[str, Any]) -> None: ...
    def stats(self) -> Stats: ...
    def bad_samples(self) -> list[dict[str, Any]]: ...
    def explain(self, measure: int = 0) -> Plan: ...
