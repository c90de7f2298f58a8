# SPDX-License-Identifier: Apache-2.0
"""Frameworks that rebuild a DataLoader from one of ours.

Accelerate's prepare() and skip_first_batches() create torch's DataLoader from a loader's dataset, samplers and
attributes. While they work on one of ours, the name DataLoader in Accelerate's module refers to ours, so that the new
loader has the engine inside, and the options that torch's does not have. Other loaders are not touched.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.abc
import importlib.util
import sys
import types
import warnings
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from typing import Any

from .._base.locks import Lock
from .._plan.options import ENGINE_ONLY

_ACCELERATE = "accelerate.data_loader"
_FUNCTIONS = ("prepare_data_loader", "skip_first_batches")
_replaced: list[tuple[Any, Any]] = []  # modules whose name DataLoader refers to ours, and what it referred to
_loader_class: Any = None  # stoker.DataLoader, which passes itself to attach()
_watching = False
_warned = False


def options_beyond_torch(loader: Any) -> dict[str, Any]:
    """Return the arguments of a loader that torch's DataLoader does not have, or has with other values, for frameworks that
    rebuild a loader from torch's attributes. Shares are left to their samplers."""
    own = ("compile", "device", "device_batches", "error_limit", "on_error", "order", "seed", "seed_by", "snapshot_every_n_steps")
    options = {name: getattr(loader, name) for name in (*own, *ENGINE_ONLY)}
    if loader._native is not None:
        names = ("num_workers", "prefetch_factor", "persistent_workers")
        options |= {name: getattr(loader._requested, name) for name in names}
    return options


def attach(loader_class: type) -> None:
    """Hook Accelerate, now or when it is imported. Every new loader of `loader_class` calls this."""
    global _loader_class, _watching
    _loader_class = loader_class
    module = sys.modules.get(_ACCELERATE)
    if module is not None:
        _hook(module)
    elif not _watching:
        _watching = True
        sys.meta_path.insert(0, _Watch())


class _Watch(importlib.abc.MetaPathFinder):
    """Hooks Accelerate when it is imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name != _ACCELERATE:
            return None
        with contextlib.suppress(ValueError):
            sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and hasattr(spec.loader, "exec_module"):
            loader: Any = spec.loader
            execute = loader.exec_module

            def execute_and_hook(module: types.ModuleType) -> None:
                execute(module)
                _hook(module)

            loader.exec_module = execute_and_hook
        return spec


def _hook(module: Any) -> None:
    for name in _FUNCTIONS:
        function = getattr(module, name, None)
        if function is not None and not hasattr(function, "hooked_by_stoker"):
            replace_in_modules(function, _hooked(module, function))
    adapter = getattr(module, "DataLoaderAdapter", None)
    load = getattr(adapter, "load_state_dict", None)
    if load is not None and not hasattr(load, "hooked_by_stoker"):
        adapter.load_state_dict = _hooked_load(load)  # type: ignore[union-attr]


def _hooked(module: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def hooked(dataloader: Any, *args: Any, **kwargs: Any) -> Any:
        origin = _ours(dataloader)
        if origin is None:
            return function(dataloader, *args, **kwargs)
        # Ours has state_dict itself, and does not need a StatefulDataLoader.
        stateful = bool(kwargs.get("use_stateful_dataloader"))
        if stateful:
            kwargs["use_stateful_dataloader"] = False
        if function.__name__ == _FUNCTIONS[0]:
            _refuse_shares(origin)
        with _lock.held():
            _replaced.append((module, getattr(module, "DataLoader", None)))
            module.DataLoader = functools.partial(_make, origin)
            try:
                made = function(dataloader, *args, **kwargs)
            finally:
                _restore_one()
        if _ours(made) is None:
            _warn_of_torchs()
        elif "base_dataloader" in vars(made):
            made.use_stateful_dataloader = stateful
        return made

    hooked.hooked_by_stoker = True  # type: ignore[attr-defined]
    return hooked


def _restore_one() -> None:
    module, torchs = _replaced[-1]
    module.DataLoader = torchs
    _replaced.pop()


def _restore_all() -> None:
    """In a forked child: the thread that replaced the name is gone."""
    while _replaced:
        _restore_one()


_lock = Lock(_restore_all)


def _ours(loader: Any) -> Any:
    """Return the loader itself, or the one inside it, if it is ours; else None."""
    inner = vars(loader).get("base_dataloader", loader) if hasattr(loader, "__dict__") else loader
    return inner if isinstance(inner, _loader_class) else None


def _make(origin: Any, dataset: Any, **arguments: Any) -> Any:
    """Return a loader with the arguments of Accelerate, and the options of `origin` that Accelerate does not know."""
    return _loader_class(dataset, **{**arguments, **options_beyond_torch(origin)})


def _hooked_load(function: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
    """Return load_state_dict for what prepare() returns. It also restores its count of epochs, from which it sets the
    epoch of samplers."""

    @functools.wraps(function)
    def load_state_dict(prepared: Any, state: Any) -> None:
        function(prepared, state)
        if _ours(prepared) is not None and "epoch" in state:
            prepared.iteration = int(state["epoch"])

    load_state_dict.hooked_by_stoker = True  # type: ignore[attr-defined]
    return load_state_dict


def _refuse_shares(origin: Any) -> None:
    if (origin.world_size or 1) > 1:
        raise ValueError(
            "this loader already has a share of the samples (shard=True, or rank and world_size), which Accelerate's "
            "prepare() would divide again: remove shard, rank and world_size"
        )


def _warn_of_torchs() -> None:
    global _warned
    if not _warned:
        _warned = True
        version = getattr(sys.modules.get("accelerate"), "__version__", "?")
        warnings.warn(
            f"Accelerate {version} creates loaders in a way that Stoker does not support: this loader is torch's, and "
            "Python does the work. Please report the version",
            stacklevel=4,
        )


def replace_in_modules(old: Any, new: Any) -> list[tuple[types.ModuleType, str]]:
    """Replace `old` by `new` under every name that it has in any module, except in this package."""
    found = []
    package = __name__.partition(".")[0]
    for module in list(sys.modules.values()):
        if not isinstance(module, types.ModuleType) or str(module.__name__).partition(".")[0] == package:
            continue
        for name, value in list(vars(module).items()):
            if value is old:
                vars(module)[name] = new
                found.append((module, name))
    return found
