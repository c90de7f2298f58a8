# SPDX-License-Identifier: Apache-2.0
"""What a DataLoader does before an epoch: it looks at its dataset, its attributes and its sampler, which may have been
changed since the last one."""

from __future__ import annotations

from typing import Any

from .._engine.native import Native
from .._engine.opening import open_engine, settings
from .._order.ranks import sampler_epoch
from .._plan.compile import blockers_in_python, compile_loader
from .._plan.options import ENGINE_ONLY, refuse_what_needs_the_engine, refused_in_python, required
from .._steps.blockers import Blocked, Blocker


def compile_again(loader: Any) -> None:
    """Compile the dataset as it is now: its transform or its samples may have been changed."""
    native = loader._native
    if native is None:
        return
    try:
        if (loader.collate_fn, loader.worker_init_fn) != loader._defaults:
            raise Blocked(blockers_in_python(loader.collate_fn, loader.worker_init_fn))
        native.use(native.compiled.renewed(loader.dataset))
    except Blocked as reasons:
        _fall_back_to_python(loader, native, reasons.blockers)


def _fall_back_to_python(loader: Any, native: Native, why: list[Blocker]) -> None:
    """Run the dataset in Python, because the engine can no longer run it."""
    if loader.compile == "require":
        raise required(why)
    seed = loader.seed if loader._share is None else None
    given = {name: getattr(loader, name) for name in ENGINE_ONLY}
    given |= refused_in_python(loader.dataset, seed, loader.seed_by, loader.on_error)
    refuse_what_needs_the_engine(why, given)
    if native.is_pending():
        raise NotImplementedError(
            "the loaded state belongs to the engine, which can no longer run this dataset: " + "; ".join(why)
        )
    native.close()
    loader._epochs.set(native.epoch)
    loader._native, loader._why_python = None, why
    if loader._requested.num_workers == "auto":
        loader.num_workers = 0


def open_again(loader: Any) -> None:
    """Open the engine of a loader that was unpickled, as far as it can run the dataset here."""
    batched = loader.batch_size is not None or loader.batch_sampler is not None
    sized, on_device = loader.batch_sampler is not None, loader.device is not None
    compiled, loader._why_python = compile_loader(
        loader.dataset, loader.collate_fn, None, batched=batched, sized=sized, on_device=on_device
    )
    loader._native = None if compiled is None else open_engine(loader, compiled, loader._requested)
    loader._opened = settings(loader)


def reopen_if_changed(loader: Any) -> None:
    """Reopen the engine if attributes of the loader have changed since it was opened."""
    before, now = loader._native, settings(loader)
    changed = {name for name, value in now.items() if value is not loader._opened[name]}
    if not changed:
        return
    requested = {name: now[name] for name in ("num_workers", "prefetch_factor") if name in changed}
    loader._requested = loader._requested._replace(**requested)
    loader._native = open_engine(loader, before.compiled, loader._requested)
    loader._native.succeed(before)
    loader._opened = now


def settle_epoch(loader: Any) -> None:
    """Determine the next epoch of a dataset in Python: a sampler whose epoch was set decides it, and a loaded state of
    another epoch is dropped. The sampler of a share, and the engine's shuffle, follow the loader's count of epochs."""
    epoch = sampler_epoch(loader.sampler, loader.batch_sampler)
    if epoch is not None and epoch != loader._sampler_epoch:
        loader._epochs.set(epoch)
    if loader._share is not None or getattr(loader.sampler, "is_keyed", False):
        pending = loader._epochs.pending
        epoch = loader._epochs.next if pending is None else int(pending["epoch"])
        loader.sampler.set_epoch(epoch)
    loader._sampler_epoch = epoch
