# SPDX-License-Identifier: Apache-2.0
"""install() puts our DataLoader in the place of torch's, for scripts and frameworks that make their own."""

from __future__ import annotations

import copyreg
import inspect
from abc import ABCMeta
from collections.abc import Callable
from typing import Any

from . import dataloader
from ._convert import torch_if_installed
from ._frameworks import replace_in_modules

_SIGNATURE = inspect.signature(dataloader.DataLoader.__init__)
_Torchs: Any = dataloader._Base  # torch.utils.data may have ours under the name by now


class DataLoader(dataloader.DataLoader, metaclass=ABCMeta):
    """stoker.DataLoader under the name of torch's: loaders of torch's own class are instances of it, too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(**_as_torch(_SIGNATURE.bind(self, *args, **kwargs).arguments))

    __init__.__signature__ = _SIGNATURE  # type: ignore[attr-defined] # frameworks look at it

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        return True if cls is DataLoader and issubclass(other, _Torchs) else NotImplemented


def install() -> None:
    """Puts stoker.DataLoader in the place of torch.utils.data.DataLoader in this process, under that name and in
    all modules that have it from there; modules imported later find it there as well. Loaders that exist and
    classes derived from torch's stay as they are. shuffle=True has torch's order then, by the same draws
    (order="torch"), and num_workers=0 leaves the number of threads to the engine where it does the work.

    `python -m stoker train.py` runs a script so. Processes that a script starts by spawn call it themselves.

    >>> import torch
    >>> stoker.install()
    >>> loader = torch.utils.data.DataLoader(stoker.datasets.ImageFolder("images", T.ToTensor()), batch_size=5)
    >>> isinstance(loader, stoker.DataLoader)
    True
    >>> stoker.uninstall()
    >>> torch.utils.data.DataLoader.__module__
    'torch.utils.data.dataloader'
    """
    if torch_if_installed() is None:
        raise ModuleNotFoundError("stoker.install() takes the place of torch's DataLoader, and torch is not installed")
    replace_in_modules(_Torchs, DataLoader)
    # pickle looks a class up by its name, where it would find ours.
    copyreg.pickle(_Torchs, _reduce)  # type: ignore[arg-type]


def uninstall() -> None:
    """Puts torch's DataLoader back everywhere."""
    replace_in_modules(DataLoader, _Torchs)
    copyreg.dispatch_table.pop(_Torchs, None)


def _reduce(loader: Any) -> tuple[Callable[[], Any], tuple[()], dict[str, Any]]:
    return _one_of_torchs, (), loader.__dict__


def _one_of_torchs() -> Any:
    return _Torchs.__new__(_Torchs)


def _as_torch(given: dict[str, Any]) -> dict[str, Any]:
    """Arguments for ours that mean what torch's do."""
    given = {"order": "torch", "num_workers": 0, **given}
    del given["self"]
    # With what needs worker processes 0 is an error, which stays one.
    needs = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout")
    if given["num_workers"] == 0 and not any(given.get(name) for name in needs):
        given["num_workers"] = "auto"
    return given
