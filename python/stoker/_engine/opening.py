# SPDX-License-Identifier: Apache-2.0
"""How a DataLoader opens the engine: its arguments and attributes as options of the engine."""

from __future__ import annotations

import contextlib
import functools
import warnings
from typing import Any, NamedTuple

from .._base.tables import counted
from .._base.tensors import device_name, dtype_name, has_cuda, layout_name
from .._data.base import EngineDataset
from .._data.fields import AUDIO, worked_on
from .._data.rescue import max_image_pixels, pixel_limit
from .._order.ranks import Share, sampler_epoch
from .._plan.checks import check_apart, check_bytes, check_device
from .._plan.compile import Compiled
from .._plan.options import ENGINE_ONLY, output_of, resolved
from .._steps.base import gives_array
from .._steps.mix import compile_batches
from . import device_batches
from .gpu_queues import more_queues
from .native import Native

_SETTABLE = ("num_workers", "prefetch_factor", "timeout", "pin_memory", "device", "device_batches", "on_error", "error_limit")


class Requested(NamedTuple):
    """Arguments as they were given, for those that torch's attributes change."""

    sampler: Any
    batch_sampler: Any
    num_workers: int | str
    prefetch_factor: int | None
    persistent_workers: bool | None


def settings(loader: Any) -> dict[str, Any]:
    """Return the attributes that the engine is opened with. They may be set later and apply from the next epoch on."""
    now = {name: getattr(loader, name) for name in (*_SETTABLE, *ENGINE_ONLY)}
    return {**now, "MAX_IMAGE_PIXELS": max_image_pixels()}


def _pixel_limit(loader: Any, compiled: Compiled) -> int | None:
    if loader.pixel_limit is not None or worked_on(compiled.text) == AUDIO:
        return loader.pixel_limit
    of_files = compiled.is_of_files()
    return pixel_limit(of_files, warns=of_files and not isinstance(loader.dataset, EngineDataset))


def _torchs_prefetch(requested: Requested) -> int:
    """Return how many batches torch's loader with these arguments sends to its workers before it delivers one."""
    if not isinstance(requested.num_workers, int):
        return 0
    return requested.num_workers * (requested.prefetch_factor or 2)


def open_engine(loader: Any, compiled: Compiled, requested: Requested) -> Native:
    uses_gpu = device_name(loader.device) is not None or loader.pin_memory and not device_batches.refused(loader.device_batches)
    with more_queues() if uses_gpu else contextlib.nullcontext():
        return _opened(loader, compiled, requested)


def _opened(loader: Any, compiled: Compiled, requested: Requested) -> Native:
    output = output_of(loader.output)
    device = resolved(device_name(loader.device))
    size = 1 if loader.batch_sampler is not None else loader.batch_size
    if compiled.is_apart:
        check_apart(compiled.form() is not None, output, loader.batch_transforms)
    if compiled.needs_torch and output != "torch":
        raise ValueError(f"output={output!r} is not possible with masks in torchvision's shape: use output='torch'")
    if compiled.views > 1 and (loader.batch_transforms or loader.ragged or output == "dlpack"):
        raise ValueError("several views of each sample are possible neither with batch_transforms nor with ragged or output='dlpack'")
    if loader.batch_transforms and gives_array(compiled.text):
        raise ValueError("batch_transforms works on images of channels x height x width: end the transform with ToTensorV2()")
    check_device(device, loader.augment_on, output, size, loader.batch_transforms)
    pinned = bool(loader.pin_memory) and device is None and has_cuda()
    share = loader._share or Share(0, 1, False)
    options = {
        "workers": -1 if requested.num_workers == "auto" else requested.num_workers,
        "prefetch": requested.prefetch_factor or 0,
        "read_ahead": loader.read_ahead,
        "drop_last": loader.drop_last,
        "rank": share.rank,
        "world": share.world_size,
        "drop_uneven": share.whole,
        "dtype": dtype_name(loader.dtype),
        "layout": layout_name(loader.memory_format),
        "ragged": loader.ragged or "list",
        "on_error": loader.on_error,
        "error_limit": loader.error_limit,
        "fidelity": loader.fidelity,
        "jpeg_hardware": loader.jpeg_hardware,
        "pillow": loader.pillow,
        "exif_rotate": loader.exif_rotate,
        "pixel_limit": _pixel_limit(loader, compiled),
        "masks": compiled.targets()[0],
        "boxes": compiled.targets()[1],
        "max_memory": check_bytes("max_memory", loader.max_memory),
        "device": device,
        "augment_on": loader.augment_on,
        "pin_memory": pinned,
        "pinned_limit": loader.pinned_limit,
        "timeout_ms": round(loader.timeout * 1000) if requested.num_workers != 0 else 0,
    }
    return Native(
        compiled,
        batch_size=loader.batch_size,
        shuffle=loader.shuffle,
        sampler=requested.sampler,
        batch_sampler=requested.batch_sampler,
        order=loader.order,
        seed=0 if loader.seed is None and loader._share is not None else loader.seed,
        generator=loader.generator if loader._share is None else None,
        share=share,
        sampler_epoch=functools.partial(sampler_epoch, loader.sampler, loader.batch_sampler),
        output=output,
        device=device,
        pinned=pinned,
        own_limit=loader.pixel_limit is not None,
        stacks=loader.ragged is None and not isinstance(loader.dataset, EngineDataset) and not compiled.transposes,
        batch_transforms=compile_batches(loader.batch_transforms, len(compiled.handle.classes)),
        keep_threads=requested.persistent_workers is not False,
        keeps_seed=requested.persistent_workers is True,
        ahead=_torchs_prefetch(requested),
        no_device_batches=device_batches.why_no_device_batches(loader, pinned),
        options=options,
    )


def warn_of_pinning(loader: Any, native: Native) -> None:
    """Give torch's warnings about pin_memory when an epoch begins."""
    if not loader.pin_memory or native.device is not None:
        return
    if loader.pin_memory_device:
        warnings.warn(
            "pin_memory_device is deprecated, the current accelerator will be used as the device,"
            f"ignore pin_memory_device='{loader.pin_memory_device}'.",
            stacklevel=3,
        )
    if not has_cuda():
        warnings.warn(
            "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
            stacklevel=3,
        )


def described(loader: Any, native: Native) -> str:
    """Return the loader's repr."""
    how = (
        "sampler"
        if native.sampler is not None
        else "batch_sampler"
        if native.batch_sampler is not None
        else f"shuffle={loader.shuffle}"
    )
    engine = native.engine()
    threads = "" if engine is None or engine.closed else f" ({counted(engine.workers, 'thread')})"
    device = f", device={native.device!r}" if native.device is not None else ""
    rank = f", rank={native.rank}, world_size={native.world_size}" if native.world_size > 1 else ""
    return (
        f"{type(loader).__name__}({type(loader.dataset).__name__} of {len(native.compiled.handle)}, "
        f"batch_size={loader.batch_size}, {how}, num_workers={loader.num_workers!r}{threads}, "
        f"order={loader.order!r}{device}{rank}, next epoch {native.epoch})"
    )
