# SPDX-License-Identifier: Apache-2.0
"""Whether a loader with pin_memory makes its batches on the GPU to which the script sends them.

The first batches are made in pinned memory, and the loader looks at what the script does with them. If it sends each of
them to one GPU, and does nothing else with the images, the engine makes the next ones there. If that changes, or there
is no memory for it, the epoch goes on in pinned memory. The bytes are the same, whatever is decided.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

from .. import _ext
from .._base.tables import counted
from .._base.warn import warn_user
from .labels import labels_of

VARIABLE = "STOKER_DEVICE_BATCHES"
_WATCHED = 8  # batches that the script must have sent to one GPU
_PATIENCE = 8 * _WATCHED  # batches after which a script that sends none is not expected to begin
_KEPT = 8  # batches that a script may have at a time, besides those sent
_READ = 8  # every which batch may be read on the CPU, on average
_SLOTS = 4  # batches on the GPU besides those that are prefetched
_LEFT = 8  # part of the GPU's memory that is left to the script


def refused(option: bool | None) -> str:
    """Return what switches it off: the loader's option, else the environment; "": nothing."""
    if option is not None:
        return "" if option else "device_batches=False"
    return f"{VARIABLE}=0 is set" if os.environ.get(VARIABLE) == "0" else ""


def why_no_device_batches(loader: Any, pinned: bool, one_engine: bool = True) -> str:
    """Return why pinned batches are not made on the GPU to which the script sends them; "": they may be."""
    if not pinned:
        return "pin_memory=True asks for it" if not loader.pin_memory else "torch finds no GPU"
    if one_engine and (loader.error_limit is not None or loader.on_error == "replace"):
        return f"error_limit={loader.error_limit}, on_error={loader.on_error!r}"
    return refused(loader.device_batches)


class DeviceBatches:
    """Where the batches of one loader are made, and why. It is told how the script uses them (batch_tensor.Usage)."""

    def __init__(self, why_not: str, prefetch: int, layout: str = "nchw") -> None:
        self.place: str | None = None  # the GPU on which batches are made; None: in pinned memory
        self.why_not = why_not
        self._prefetch = prefetch or 2
        self._layout = layout  # of the tensors on the CPU
        self._delivered = self._sent = self._read = 0
        self._devices: set[Any] = set()
        self._layouts: set[str] = set()
        self.is_channels_last = False  # only on the GPU, because the script asks for it whenever it sends a batch
        self._alive: weakref.WeakSet[Any] = weakref.WeakSet()  # what holds the bytes of images
        self._bytes = 0  # of a batch's images

    def is_on(self) -> bool:
        return not self.why_not

    def said(self) -> str:
        """Return why batches are where they are."""
        if self.place is not None:
            return "the script sends its batches there"
        if self.why_not:
            return f"batches are in pinned memory if there is a GPU, and are not made there: {self.why_not}"
        return f"batches are in pinned memory until {_WATCHED} of them were sent to one GPU; so far {self._sent} were"

    # ---- what the script does ----

    def sent(self, device: Any, layout: Any) -> None:
        self._sent += 1
        self._devices.add(device)
        self._layouts.add(str(layout))

    def read(self) -> None:
        self._read += 1

    # ---- what follows ----

    def decide(self) -> None:
        """Look at what the script did with its batches. This is called before each batch."""
        if self.why_not:
            return
        if len(self._devices) > 1:
            self.stop("the script sends batches to several GPUs")
        elif len(self._alive) > _KEPT:
            self.stop("the script keeps its batches")
        elif self._read > (0 if self.place is None else 2 + self._delivered // _READ):
            self.stop("the script reads batches on the CPU")
        elif self.place is None and self._sent >= _WATCHED:
            self._settle(self._devices.copy().pop())
        elif self._sent == 0 and self._delivered >= _PATIENCE:
            self.stop(f"the script has sent none of {counted(self._delivered, 'batch')} to a GPU")

    def _settle(self, device: Any) -> None:
        import torch

        free, total = torch.cuda.mem_get_info(device)
        needed = (self._prefetch + _SLOTS) * self._bytes
        if free < needed + total // _LEFT:
            self.stop(f"{device} has {free >> 20:,} MiB free, too few for batches of {self._bytes >> 20:,} MiB")
        else:
            self.place = str(device)
            self.is_channels_last = self._layouts == {"torch.channels_last"} and self._layout == "nchw"

    def stop(self, why: str) -> None:
        """Make all further batches in pinned memory, and fetch those that the script still has."""
        self.place, self.why_not = None, why
        for held in list(self._alive):
            held.fetched()
        self._alive.clear()

    def refused_by_engine(self, error: _ext.StokerError) -> None:
        """It cannot be opened there."""
        if isinstance(error, _ext.OutOfMemory):
            self.out_of_memory(error)
        else:
            self.stop(str(error))

    def out_of_memory(self, error: Exception) -> None:
        """Warn once: after that it is off."""
        warn_user(f"the GPU has no memory for batches: from now on they are in pinned memory ({error})")
        self.stop("the GPU had no memory for them")

    def lent(self, batch: Any, dataset: _ext.Dataset) -> Any:
        """Return a batch as the script gets it: of [images, labels] in memory, or of the engine's batch on the GPU, whose
        labels do not keep it."""
        from .batch_sources import InMemory, OnDevice, pinned_integers

        if isinstance(batch, _ext.Batch):
            labels = pinned_integers(labels_of(batch, dataset, blanks=False))
            return [*self.given([OnDevice(batch.images, self, contiguous=self.is_channels_last)]), labels]  # type: ignore[arg-type]
        return [*self.given([InMemory(batch[0], self)]), batch[1]]

    def given(self, sources: list[Any]) -> list[Any]:
        """Return the tensors of a batch that the script gets, whose bytes are there."""
        from .batch_tensor import BatchTensor

        tensors = [BatchTensor(source) for source in sources]
        self._delivered += 1
        self._bytes = sum(tensor.nbytes for tensor in tensors)
        self._alive.update(tensor._held for tensor in tensors)
        return tensors
