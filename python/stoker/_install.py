# SPDX-License-Identifier: Apache-2.0
"""install() replaces torch's DataLoader by ours, for scripts and frameworks that create their own."""

from __future__ import annotations

import copyreg
import inspect
from abc import ABCMeta
from collections.abc import Callable
from typing import Any, TypeVar

from . import dataloader
from ._base.tensors import torch_if_installed
from ._loader.frameworks import replace_in_modules

_SIGNATURE = inspect.signature(dataloader.DataLoader.__init__)
_T_co = TypeVar("_T_co", covariant=True)
_Torchs: Any = dataloader._Base  # torch.utils.data may already have ours under that name


class DataLoader(dataloader.DataLoader[_T_co], metaclass=ABCMeta):
    """stoker.DataLoader under the name of torch's. Loaders of torch's own class count as instances of it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(**_as_torch(_SIGNATURE.bind(self, *args, **kwargs).arguments))

    __init__.__signature__ = _SIGNATURE  # type: ignore[attr-defined] # frameworks inspect it

    @classmethod
    def __subclasshook__(cls, other: type) -> Any:
        return True if cls is DataLoader and issubclass(other, _Torchs) else NotImplemented


def install() -> None:
    """Replace torch.utils.data.DataLoader by stoker.DataLoader in this process.

    The name is replaced in torch and in all modules that have imported it; modules imported later get it as well.
    Existing loaders and classes derived from torch's stay as they are. With it, shuffle=True gives torch's order, with
    the same random draws (order="torch"), and num_workers=0 lets the engine choose the number of threads.

    `python -m stoker train.py` runs a script that way. Processes that a script starts with spawn must call it again.

    Raises:
        ModuleNotFoundError: torch is not installed.

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
        raise ModuleNotFoundError("stoker.install() replaces torch's DataLoader, but torch is not installed")
    replace_in_modules(_Torchs, DataLoader)
    # pickle looks a class up by its name, and would find ours.
    copyreg.pickle(_Torchs, _reduce)  # type: ignore[arg-type]


def uninstall() -> None:
    """Undo `install`: restore torch's DataLoader in all modules.

    >>> stoker.uninstall()
    """
    replace_in_modules(DataLoader, _Torchs)
    copyreg.dispatch_table.pop(_Torchs, None)


def _reduce(loader: Any) -> tuple[Callable[[], Any], tuple[()], dict[str, Any]]:
    return _one_of_torchs, (), loader.__dict__


def _one_of_torchs() -> Any:
    return _Torchs.__new__(_Torchs)


def _as_torch(given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with which ours behaves as torch's does with those given."""
    given = {"order": "torch", "num_workers": 0, **given}
    del given["self"]
    # With arguments that need worker processes, 0 is an error, as in torch.
    needs = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "timeout")
    if given["num_workers"] == 0 and not any(given.get(name) for name in needs):
        given["num_workers"] = "auto"
    return given
