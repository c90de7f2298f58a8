# SPDX-License-Identifier: Apache-2.0
"""Where the bytes of a BatchTensor come from: pinned memory, from which they may be on their way to a GPU, or the engine's
batch on one."""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from typing import Any

import torch

from .. import _ext
from .._base.tensors import to_torch
from .batch_tensor import Usage

# What is rounded to these is rounded alike on a GPU. What is too large for an integer is not.
_FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


class InMemory:
    """A tensor of a batch that is in memory. Only what the script does with it is of interest."""

    def __init__(self, tensor: torch.Tensor, usage: Usage) -> None:
        self.usage = usage
        self._tensor = tensor

    def meta(self) -> tuple[tuple[int, ...], tuple[int, ...], torch.dtype]:
        return tuple(self._tensor.shape), self._tensor.stride(), self._tensor.dtype

    def copied(self, device: Any, dtype: Any, non_blocking: bool, layout: Any) -> torch.Tensor | None:
        return self._tensor.to(device, dtype, non_blocking, copy=True, memory_format=layout)

    def is_pinned(self) -> bool:
        return self._tensor.is_pinned()

    def fetch(self, pinned: bool) -> torch.Tensor:
        return self._tensor


class CopiedEarly:
    """A pinned tensor, and a copy on a GPU that is under way in a stream of the loader's."""

    def __init__(self, tensor: torch.Tensor, usage: Usage, device: torch.device) -> None:
        self.usage = usage
        self._tensor, self._device, self._stream = tensor, device, _stream(device)
        with torch.cuda.stream(self._stream), torch.inference_mode(False):
            self._copy: torch.Tensor | None = tensor.to(device, non_blocking=True)
            self._copied = self._stream.record_event()

    def meta(self) -> tuple[tuple[int, ...], tuple[int, ...], torch.dtype]:
        return tuple(self._tensor.shape), self._tensor.stride(), self._tensor.dtype

    def copied(self, device: Any, dtype: Any, non_blocking: bool, layout: Any) -> torch.Tensor | None:
        """Give the copy away, which is torch's own memory: once. In a stream that is being captured it cannot be waited for."""
        if device != self._device or dtype not in (self._tensor.dtype, *_FLOATS):
            return None
        current = torch.cuda.current_stream(device)
        with torch.cuda.device(device):
            if torch.cuda.is_current_stream_capturing():
                return self._tensor.to(device, dtype, non_blocking, memory_format=layout)
        made, self._copy = self._copy, None
        if made is None:
            return None
        current.wait_event(self._copied)
        made.record_stream(current)
        return made.to(dtype, memory_format=layout)

    def is_pinned(self) -> bool:
        return True

    def fetch(self, pinned: bool) -> torch.Tensor:
        """Its memory may be used again once the script drops it, in whichever stream: the copy has to be over."""
        self._copied.synchronize()
        return self._tensor

    def __del__(self) -> None:
        """Drop the tensor in the stream of the copy, which its memory then waits for."""
        if not sys.is_finalizing() and hasattr(self, "_copied"):
            with contextlib.suppress(RuntimeError), torch.cuda.stream(self._stream):
                del self._tensor


class OnDevice:
    """A tensor of a batch in a GPU's memory, where the engine made it. `contiguous`: the CPU's tensor is, whatever layout the
    engine has given to this one."""

    def __init__(self, tensor: _ext.Tensor, usage: Usage, contiguous: bool = False) -> None:
        self.usage = usage
        self._contiguous = contiguous
        self._tensor = tensor
        self._dtype: torch.dtype = getattr(torch, tensor.dtype)
        self._device = torch.device("cuda", tensor.__dlpack_device__()[1])

    def meta(self) -> tuple[tuple[int, ...], tuple[int, ...], torch.dtype]:
        shape = self._tensor.shape
        if not self._contiguous:
            return shape, self._tensor.stride, self._dtype
        return shape, tuple(math.prod(shape[k + 1 :]) for k in range(len(shape))), self._dtype

    def copied(self, device: Any, dtype: Any, non_blocking: bool, layout: Any) -> torch.Tensor | None:
        if device != self._device or dtype not in (self._dtype, *_FLOATS):
            return None
        if self._contiguous and layout is torch.preserve_format:
            layout = torch.contiguous_format
        # The current stream is made to wait for the batch, and is marked where the first tensor is let go.
        return to_torch(self._tensor).to(dtype, copy=True, memory_format=layout)

    def is_pinned(self) -> bool:
        return True

    def fetch(self, pinned: bool) -> torch.Tensor:
        """Copy in a stream of its own, which waits for the batch and for nothing that the script has queued."""
        made = _empty(*self.meta(), pinned)
        with torch.cuda.stream(_stream(self._device)):
            made.copy_(to_torch(self._tensor))
        return made


def _empty(shape: Any, stride: Any, dtype: torch.dtype, pinned: bool) -> torch.Tensor:
    make = functools.partial(torch.empty_strided, shape, stride, dtype=dtype, device="cpu")
    try:
        return make(pin_memory=pinned)
    except RuntimeError:  # no more memory can be pinned
        return make()


def pinned_integers(values: list[int]) -> torch.Tensor:
    made = _empty((len(values),), (1,), torch.int64, True)
    made.copy_(torch.tensor(values, dtype=torch.int64, device="cpu"))
    return made


@functools.cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)
