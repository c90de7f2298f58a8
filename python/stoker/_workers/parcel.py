# SPDX-License-Identifier: Apache-2.0
"""What a worker process made, as bytes in a slot: tensors and arrays as raw memory, the rest pickled.

Tensors that were collated into the slot are not copied again. On the loader's side they become views of the slot, which
is reused when the last of them is gone.
"""

from __future__ import annotations

import copyreg
import io
import pickle
import struct
import threading
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch

from .. import _ext

_ALIGN = 64
_IN_BAND = 2048  # arrays of fewer bytes are pickled with the rest
_here = threading.local()


class TooLarge(RuntimeError):
    """A batch does not fit into a slot."""


class Room:
    """The memory of one slot while a batch is put into it."""

    def __init__(self, exchange: _ext.Exchange, slot: int) -> None:
        self.memory = exchange.room(slot)
        self.address = exchange.address(slot)
        self.size = exchange.stride
        self.used = 0
        self.rows: Any = None  # the samples that were put here one by one (_rows.py)
        self._copies: list[tuple[torch.Tensor, int, int, int]] = []  # copied tensors: begin, end, offset in the slot

    def take(self, count: int) -> int:
        """Allocate bytes in the slot, and return their offset."""
        offset = -(-self.used // _ALIGN) * _ALIGN
        if offset + count > self.size:
            raise TooLarge(
                f"a batch of more than {self.size >> 20} MiB does not fit into the memory shared with the workers: "
                "make batches smaller, raise the limit of the address space if there is one (ulimit -v), or use a "
                "smaller prefetch_factor"
            )
        self.used = offset + count
        return offset

    def tensor(self, shape: Any, dtype: torch.dtype) -> torch.Tensor:
        """Return a new contiguous tensor in the slot."""
        count = 1
        for size in shape:
            count *= size
        return _view(self.memory, self.take(count * dtype.itemsize), dtype, tuple(shape), None)

    def part(self, tensor: torch.Tensor) -> memoryview:
        """Return the memory of a contiguous tensor in the slot."""
        offset = tensor.data_ptr() - self.address
        return self.memory[offset : offset + tensor.nbytes]  # type: ignore[no-any-return]

    def find(self, tensor: torch.Tensor) -> int | None:
        """Return the offset of a tensor that was allocated in the slot, or is part of one that was copied there; else
        None. Tensors that share memory therefore share it on the loader's side as well."""
        begin = tensor.data_ptr()
        end = begin + _extent(tensor.shape, tensor.stride()) * tensor.dtype.itemsize
        offset = begin - self.address
        if 0 <= offset < self.used:
            return offset
        for _, first, last, there in self._copies:
            if first <= begin and end <= last:
                return there + begin - first
        return None

    def copied(self, tensor: torch.Tensor, offset: int) -> None:
        """Remember a copied tensor. Keeping it alive ensures that its address is not reused."""
        begin = tensor.data_ptr()
        self._copies.append((tensor, begin, begin + tensor.nbytes, offset))


def _extent(shape: Any, stride: Any) -> int:
    """Return the number of elements from the first of a tensor to its last. The tensor is not empty."""
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def _view(memory: Any, offset: int, dtype: torch.dtype, shape: Any, stride: Any) -> torch.Tensor:
    count = 1
    for size in shape:
        count *= size
    if not count:
        return torch.empty(shape, dtype=dtype)
    if stride is not None:
        count = _extent(shape, stride)
    flat = torch.frombuffer(memory, dtype=dtype, count=count, offset=offset)
    return flat.view(shape) if stride is None else flat.as_strided(shape, stride)


def _restore(offset: int, dtype: torch.dtype, shape: Any, stride: Any, requires_grad: bool) -> Any:
    tensor = _view(_here.part(), offset, dtype, shape, stride)
    return tensor.requires_grad_() if requires_grad else tensor


def _empty(shape: Any, dtype: torch.dtype) -> Any:
    return torch.empty(shape, dtype=dtype)


def _is_plain(tensor: Any) -> bool:
    return (
        type(tensor) is torch.Tensor
        and tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and not (tensor.is_quantized or tensor.is_nested)
        and (tensor.is_leaf or not tensor.requires_grad)
    )


def _is_dense(tensor: torch.Tensor) -> bool:
    """Return whether the elements fill their memory without gaps, in any order of dimensions."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size == 1:
            continue
        if stride != expected:
            return False
        expected *= size
    return True


def _place(room: Room, tensor: torch.Tensor) -> tuple[int, Any]:
    """Put a tensor into the slot, unless it is there already. Return its offset, and its strides if not contiguous."""
    tensor = tensor.detach().resolve_conj().resolve_neg()
    offset = room.find(tensor)
    if offset is not None:
        return offset, None if tensor.is_contiguous() else tensor.stride()
    # Expanded dimensions are copied once.
    once = tensor[tuple(slice(0, 1) if step == 0 else slice(None) for step in tensor.stride())]
    dense = once.is_contiguous() or _is_dense(once)
    offset = room.take(once.numel() * once.dtype.itemsize)
    stride = None if once.is_contiguous() or not dense else once.stride()
    there = _view(room.memory, offset, once.dtype, tuple(once.shape), stride).copy_(once)
    if dense:
        room.copied(once, offset)
    if once.shape != tensor.shape:
        stride = there.expand(tensor.shape).stride()
    return offset, stride


class _Packer(pickle.Pickler):
    """Pickles as torch.multiprocessing does, with CPU tensors in the slot."""

    def __init__(self, file: Any, room: Room, outside: Any) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL, buffer_callback=outside)
        self.dispatch_table = {**copyreg.dispatch_table, **ForkingPickler._extra_reducers}
        self._room = room

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, np.ndarray) and not obj.flags.writeable:
            # With torch's workers it can be written to: they pickle in a protocol that does not know what is read-only.
            return obj.copy("K").__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        if not isinstance(obj, torch.Tensor) or not _is_plain(obj):
            return NotImplemented
        if not obj.numel():
            return _empty, (tuple(obj.shape), obj.dtype)
        offset, stride = _place(self._room, obj)
        return _restore, (offset, obj.dtype, tuple(obj.shape), stride, obj.requires_grad)


def pack(room: Room, value: Any) -> tuple[int, int]:
    """Put a value into the slot. Return the offset and length of its description."""
    arrays: list[tuple[int, int]] = []

    def outside(buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _IN_BAND:
            return True
        offset = room.take(raw.nbytes)
        room.memory[offset : offset + raw.nbytes] = raw
        arrays.append((offset, raw.nbytes))
        return False

    text = io.BytesIO()
    _Packer(text, room, outside).dump(value)
    table = struct.pack(f"<{2 * len(arrays) + 1}Q", len(arrays), *(n for pair in arrays for n in pair))
    message = table + text.getvalue()
    offset = room.take(len(message))
    room.memory[offset : offset + len(message)] = message
    return offset, len(message)


def unpack(lease: _ext.Lease | bytearray, offset: int, length: int) -> Any:
    """Return the value in a slot. Each tensor or array in the slot's memory keeps a part of the lease."""
    message = memoryview(lease)[offset : offset + length]
    (count,) = struct.unpack_from("<Q", message)
    table = struct.unpack_from(f"<{2 * count}Q", message, 8)

    def part() -> Any:
        return lease.part() if isinstance(lease, _ext.Lease) else lease

    buffers = [memoryview(part())[at : at + size] for at, size in zip(table[::2], table[1::2], strict=True)]
    _here.part = part
    try:
        return pickle.loads(message[8 + 16 * count :], buffers=buffers)
    finally:
        del _here.part
