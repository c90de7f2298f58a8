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

from .. import _ext

_GRAIN = 2 << 20  # slots are registered in multiples of this


class _Events:
    """CUDA events, kept by device, since an event belongs to the device in which it was first recorded. They are reused
    and never destroyed: destroying one in a forked child, which has these objects but no CUDA context, would end the
    process."""

    def __init__(self) -> None:
        self._all: list[torch.cuda.Event] = []
        self._idle: dict[int, list[torch.cuda.Event]] = {}

    def take(self, device: int) -> torch.cuda.Event:
        try:
            return self._idle[device].pop()
        except (KeyError, IndexError):
            self._all.append(torch.cuda.Event())
            return self._all[-1]

    def give(self, device: int, event: torch.cuda.Event) -> None:
        self._idle.setdefault(device, []).append(event)


_events = _Events()
_Marks = dict[tuple[int, int], torch.cuda.Event]  # by device and stream


def _mark_current_streams(marks: _Marks) -> None:
    """Record events in the streams that are current in this thread, one on each GPU that is in use: a tensor may have
    been copied to any of them. A stream that was marked before is marked again, further on. One that is being captured is
    not: its work runs later, with the graph, and an event would become part of it."""
    in_use = getattr(torch._C, "_cuda_hasPrimaryContext", lambda device: True)
    captured = torch.cuda.current_device() if torch.cuda.is_current_stream_capturing() else None
    for device in range(torch.cuda.device_count()):
        if device == captured or not in_use(device):
            continue
        stream = torch.cuda.current_stream(device)
        place = device, int(stream.cuda_stream)
        if place not in marks:
            marks[place] = _events.take(device)
        marks[place].record(stream)


class PinnedSlots:
    """Registers slots with CUDA, each once, so that the tensors in them are pinned without a copy. A released slot
    becomes free when the streams that were current when its tensors were dropped, one by one, have reached these points,
    since they may still copy from it."""

    def __init__(self, exchange: _ext.Exchange) -> None:
        self._exchange = exchange
        self._refused = False
        registered: dict[int, int] = {}  # bytes, by address
        lent: dict[int, _Marks] = {}  # marks of slots that still have tensors
        released: collections.deque[tuple[_Marks, int]] = collections.deque()
        self._registered, self._released = registered, released

        # These have no reference to self or the exchange, which would otherwise form a cycle.
        def drop(slot: int) -> None:
            if not sys.is_finalizing():
                _mark_current_streams(lent.setdefault(slot, {}))

        def keep(slot: int) -> None:
            released.append((lent.pop(slot, {}), slot))

        def forget() -> None:
            if sys.is_finalizing():
                return
            for marks, _ in released:
                for event in marks.values():
                    event.synchronize()
            for address in registered:
                torch.cuda.cudart().cudaHostUnregister(address)

        exchange.regular = 1 << 30  # registered memory must never be returned to the system
        exchange.on_drop = drop
        exchange.on_release = keep
        exchange.before_unmap = forget

    def free_finished(self, wait: bool = False) -> None:
        """Free the slots that nobody reads any more. `wait`: at least one, if there are any."""
        freed = False
        for _ in range(len(self._released)):
            marks, slot = self._released.popleft()
            if all(event.query() for event in marks.values()):
                self._free(marks, slot)
                freed = True
            else:
                self._released.append((marks, slot))  # once all were looked at, they are in order again
        if wait and not freed and self._released:
            marks, slot = self._released.popleft()
            for event in marks.values():
                event.synchronize()
            self._free(marks, slot)

    def _free(self, marks: _Marks, slot: int) -> None:
        for (device, _), event in marks.items():
            _events.give(device, event)
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
