# SPDX-License-Identifier: Apache-2.0
"""Copying batches of datasets written in Python to a GPU: slots pinned in place, and copies in the loader's own
stream."""

from __future__ import annotations

import collections
import collections.abc
import sys
import warnings
from typing import Any

import torch

from . import _ext

_GRAIN = 2 << 20  # slots are registered in multiples of this


# CUDA events are reused and never destroyed: destroying one in a forked child, which has these objects but no CUDA
# context, would end the process.
_events: list[torch.cuda.Event] = []
_idle_events: list[torch.cuda.Event] = []


def _new_event() -> torch.cuda.Event:
    _events.append(torch.cuda.Event())
    return _events[-1]


class PinnedSlots:
    """Registers slots with CUDA, each once, so that the tensors in them are pinned without a copy. A released slot
    becomes free when the stream that was current at that time has reached that point, since it may still be copied
    from."""

    def __init__(self, exchange: _ext.Exchange) -> None:
        self._exchange = exchange
        self._refused = False
        registered: dict[int, int] = {}  # bytes, by address
        released: collections.deque[tuple[torch.cuda.Event, int]] = collections.deque()
        self._registered, self._released = registered, released

        # These have no reference to self or the exchange, which would otherwise form a cycle.
        def keep(slot: int) -> None:
            event = _idle_events.pop() if _idle_events else _new_event()
            event.record()
            released.append((event, slot))

        def forget() -> None:
            if sys.is_finalizing():
                return
            for event, _ in released:
                event.synchronize()
            for address in registered:
                torch.cuda.cudart().cudaHostUnregister(address)

        exchange.regular = 1 << 30  # registered memory must never be returned to the system
        exchange.on_release = keep
        exchange.before_unmap = forget

    def free_finished(self, wait: bool = False) -> None:
        while self._released:
            event, slot = self._released[0]
            if wait:
                event.synchronize()
            elif not event.query():
                return
            wait = False
            self._released.popleft()
            _idle_events.append(event)
            self._exchange.release(slot)

    def register(self, slot: int, used: int) -> None:
        """Pin the part of a slot that a batch uses. What cannot be pinned is later copied into pinned memory."""
        address = self._exchange.address(slot)
        known = self._registered.get(address, 0)
        if used <= known or self._refused:
            return
        size = min(-(-used // _GRAIN) * _GRAIN, self._exchange.stride)
        runtime = torch.cuda.cudart()
        if known:
            runtime.cudaHostUnregister(address)
            del self._registered[address]
        error = runtime.cudaHostRegister(address, size, 0)
        if int(error):
            self._refused = True
            warnings.warn(
                f"CUDA cannot pin the {size >> 20} MiB of a batch in place ({runtime.cudaGetErrorString(error)}), so "
                "batches are copied once more. The limit of locked memory (ulimit -l) may be too low",
                stacklevel=4,
            )
            return
        self._registered[address] = size


def each_tensor(data: Any, change: Any) -> Any:
    """Return the same structure with `change` applied to every tensor, traversed as torch does to pin a batch. Other
    objects that have `to` are copied to `change.device`."""
    if isinstance(data, torch.Tensor):
        return change(data)
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, collections.abc.Mapping):
        made = {key: each_tensor(value, change) for key, value in data.items()}
        try:
            return type(data)(made)  # type: ignore[call-arg]
        except TypeError:
            return made
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(each_tensor(value, change) for value in data))
    if isinstance(data, tuple):
        return [each_tensor(value, change) for value in data]
    if isinstance(data, collections.abc.Sequence):
        made_list = [each_tensor(value, change) for value in data]
        try:
            return type(data)(made_list)  # type: ignore[call-arg]
        except TypeError:
            return made_list
    return data.to(change.device, non_blocking=True) if hasattr(data, "to") else data


class Copier:
    """Copies batches to a device in a separate stream, which the current stream then waits for."""

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)
        self._stream = torch.cuda.Stream(self.device)

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device == self.device:
            return tensor
        moved = tensor.to(self.device, non_blocking=True)
        moved.record_stream(self._current)
        return moved

    def copy(self, held: list[Any]) -> Any:
        """Return the only batch in `held`, copied. `held` is emptied, so that the slot is released in the copying
        stream."""
        self._current = torch.cuda.current_stream(self.device)
        with torch.cuda.stream(self._stream):
            moved = each_tensor(held[0], self)
            held.clear()
        self._current.wait_stream(self._stream)
        return moved
