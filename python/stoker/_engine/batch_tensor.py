# SPDX-License-Identifier: Apache-2.0
"""Tensors of batches that are on a GPU before the script asks.

A BatchTensor is a CPU tensor in name: its shape, type and strides are those of the tensor that the script would get in
pinned memory, and its bytes are elsewhere. Sent to the GPU that has them, they are copied there; whatever else is done
with it, it has its bytes fetched once and is an ordinary tensor from then on. It has no storage, so code that asks for
its memory without asking it first gets an error, and never bytes of another batch.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable, Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any, Protocol, Self

import torch
from torch.utils import _python_dispatch
from torch.utils._pytree import tree_map_only

from .._base.locks import Lock

_Tensor: Any = torch.Tensor
_NAMES = (
    "shape", "dtype", "device", "layout", "ndim", "requires_grad", "is_leaf", "grad", "grad_fn", "names", "itemsize",
    "nbytes", "is_cpu", "is_cuda", "is_meta", "is_sparse", "is_quantized", "is_nested", "output_nr", "_version",
)  # fmt: skip
_METHODS = (
    "size", "dim", "ndimension", "numel", "nelement", "stride", "storage_offset", "is_contiguous", "element_size",
    "is_floating_point", "is_complex", "is_signed", "is_inference", "get_device", "__len__", "__hash__", "has_names",
)  # fmt: skip
# What is said of a tensor without looking at its bytes.
_METADATA = {getattr(_Tensor, name).__get__ for name in _NAMES if hasattr(_Tensor, name)}
_METADATA |= {getattr(_Tensor, name) for name in _METHODS if hasattr(_Tensor, name)}
_METADATA |= {torch.numel, torch.is_floating_point, torch.is_complex}
_CPU = torch.device("cpu")
_lock = Lock()  # two threads may read the same tensor


class Usage(Protocol):
    """Is told what a script does with its batches."""

    def sent(self, device: torch.device, layout: torch.memory_format) -> None: ...
    def read(self) -> None: ...


class Source(Protocol):
    """Where the bytes of a BatchTensor are."""

    usage: Usage

    def meta(self) -> tuple[tuple[int, ...], tuple[int, ...], torch.dtype]:
        """Return the shape, the strides and the type that the tensor has on the CPU."""

    def copied(
        self, device: torch.device, dtype: torch.dtype, non_blocking: bool, layout: torch.memory_format
    ) -> torch.Tensor | None:
        """Return a copy for use in the device's current stream; None if it has to be made of an ordinary CPU tensor.

        Always a copy: the script may change what it gets and use the batch again, and it may tell torch's allocator which
        streams read it."""

    def is_pinned(self) -> bool:
        """Return whether the tensor on the CPU is in pinned memory."""
        ...

    def fetch(self, pinned: bool) -> torch.Tensor:
        """Return a new CPU tensor with the bytes. Nothing else may have a reference to it."""


class _Held:
    """What a BatchTensor refers to: its source until the bytes were fetched, then the ordinary tensor with them."""

    def __init__(self, source: Source) -> None:
        self.source: Source | None = source
        self.usage = source.usage
        self.plain: torch.Tensor | None = None
        self.is_shared = False  # others have `plain`, perhaps in other threads: it must stay what it is
        with _lock.held():  # whoever goes through them has the lock, too
            _held.add(self)

    def fetched(self, pinned: bool = True) -> torch.Tensor:
        with _lock.held():
            if self.plain is None:
                assert self.source is not None
                with _undisturbed():
                    self.plain = self.source.fetch(pinned)
                self.source = None
            return self.plain

    def read(self) -> torch.Tensor:
        if self.plain is None:
            self.usage.read()
        return self.fetched()

    def shared(self) -> torch.Tensor:
        """Return the ordinary tensor to somebody who may use it at any time."""
        self.is_shared = True
        return self.read()


_held: weakref.WeakSet[_Held] = weakref.WeakSet()


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Ordinary tensors are made in here, whatever modes of torch's or of the script's are active."""
    modes = _python_dispatch._disable_current_modes() if torch._C._len_torch_dispatch_stack() else contextlib.nullcontext()
    with torch._C.DisableTorchFunction(), modes, torch.inference_mode(False), torch.no_grad():
        yield


def _never_compiled(function: Any) -> Any:
    """Have torch.compile run it, and what it calls, as it is. torch.compiler.disable does that, and imports the compiler."""
    with contextlib.suppress(AttributeError, TypeError):
        frames = torch._C._dynamo.eval_frame
        skip = frames._FrameAction.SKIP
        frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))
    function._torchdynamo_disable = True
    return function


class BatchTensor(torch.Tensor):
    """A tensor that is on the CPU in name. See above."""

    _held: _Held

    @staticmethod
    def __new__(cls, source: Source) -> Self:
        shape, stride, dtype = source.meta()
        make: Any = _Tensor._make_wrapper_subclass
        made: Self = make(cls, shape, strides=stride, dtype=dtype, device="cpu")
        # Else its address would be 0.
        getattr(torch._C, "_set_throw_on_mutable_data_ptr", lambda tensor: None)(made)
        made._held = _Held(source)
        return made

    @classmethod
    @_never_compiled
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        first: Any = args[0] if args else None
        _refuse_tracing()
        held = _held_by(first)
        source = None if held is None else held.source
        if source is not None:
            if func in _METADATA:
                with torch._C.DisableTorchFunctionSubclass():
                    return func(*args, **kwargs)
            answer = _ANSWERS.get(func)
            answered = NotImplemented if answer is None else answer(func, first, source, args[1:], kwargs)
            if answered is not NotImplemented:
                return answered
        result = func(*_plain(args, become), **_plain(kwargs, become))
        return first if held is not None and result is held.plain else result

    @classmethod
    @_never_compiled
    def __torch_dispatch__(  # type: ignore[override] # torch's is disabled
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """C++ has asked, which did not ask in Python before. It has references of its own to what it was given."""
        _refuse_tracing()
        return func(*_plain(args, _inner), **_plain(kwargs or {}, _inner))


def _refuse_tracing() -> None:
    """The bytes would become a constant of what is traced."""
    key = getattr(getattr(torch._C, "_TorchDispatchModeKey", None), "PROXY", None)
    if torch._C._get_tracing_state() is not None or key is not None and torch._C._get_dispatch_mode(key) is not None:
        raise RuntimeError(
            "a batch that is on the GPU already cannot be traced: trace with images.clone(), or set STOKER_DEVICE_BATCHES=0"
        )


def source_of(tensor: BatchTensor) -> Source | None:
    """Return where its bytes are; None if they were fetched."""
    held = _held_by(tensor)
    return None if held is None else held.source


def _held_by(tensor: Any) -> _Held | None:
    """Return what a BatchTensor refers to. None: it is none, or another thread has just made it an ordinary tensor."""
    return tensor.__dict__.get("_held") if type(tensor) is BatchTensor else None


def _plain(values: Any, change: Callable[[BatchTensor], torch.Tensor]) -> Any:
    return tree_map_only(BatchTensor, change, values)


def _inner(tensor: BatchTensor) -> torch.Tensor:
    """Return an ordinary tensor with the bytes."""
    with _lock.held():
        held = _held_by(tensor)
        return tensor if held is None else held.shared()


def become(tensor: BatchTensor) -> torch.Tensor:
    """Make it an ordinary tensor with its bytes, or, where references of C++ forbid that, return one."""
    with _lock.held():
        held = _held_by(tensor)
        if held is None:
            return tensor  # another thread has made it one
        plain = held.read()
        with torch._C.DisableTorchFunctionSubclass():
            busy = weakref.getweakrefs(tensor) or tensor._use_count() > 1 or plain._use_count() > 1
            if held.is_shared or busy or not _swapped(tensor, plain):
                return held.shared()
        return tensor


def _swapped(tensor: BatchTensor, plain: torch.Tensor) -> bool:
    """Exchange what the two objects are, as torch.utils.swap_tensors does, but so that a refusal changes nothing."""
    try:
        torch._C._swap_tensor_impl(tensor, plain)
    except (AttributeError, RuntimeError):  # an older torch, or references that are not counted
        return False
    own = {name: value for name, value in tensor.__dict__.items() if name != "_held"}
    tensor.__class__ = torch.Tensor  # type: ignore[assignment]
    tensor.__dict__ = {**plain.__dict__, **own}
    return True


# ---- what is answered without the bytes ----


def _to(func: Any, tensor: BatchTensor, source: Source, args: Any, kwargs: Any) -> Any:
    options = dict(kwargs)
    copy = options.pop("copy", False)
    try:
        with torch._C.DisableTorchFunctionSubclass():
            device, dtype, non_blocking, layout = torch._C._nn._parse_to(*args, **options)
    except (AttributeError, RuntimeError, TypeError):
        return NotImplemented  # torch says what is wrong
    if device is not None and device.type == "cuda":
        return _sent(tensor, source, (device, dtype, non_blocking, layout))
    stays = device in (None, _CPU) and dtype in (None, tensor.dtype) and layout in (None, torch.preserve_format)
    return tensor if stays and not copy else NotImplemented


def _cuda(func: Any, tensor: BatchTensor, source: Source, args: Any, kwargs: Any) -> Any:
    given = dict(zip(("device", "non_blocking"), args)) | kwargs
    if set(given) - {"device", "non_blocking", "memory_format"} or len(args) > 2:
        return NotImplemented
    where: Any = given.get("device")
    if where is None or type(where) is int:
        where = f"cuda:{where}" if where is not None else "cuda"
    try:
        device = torch.device(where)
    except (RuntimeError, TypeError):
        return NotImplemented
    if device.type != "cuda":
        return NotImplemented
    how = device, None, given.get("non_blocking", False), given.get("memory_format")
    return _sent(tensor, source, how)


def _sent(tensor: BatchTensor, source: Source, how: tuple[torch.device, Any, bool, Any]) -> Any:
    """Return a copy on a GPU."""
    device, dtype, non_blocking, layout = how
    if device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    dtype, layout = dtype or tensor.dtype, layout or torch.preserve_format
    with _lock.held():
        held = _held_by(tensor)
        if held is None or held.source is not source:
            return NotImplemented  # another thread has fetched the bytes
        source.usage.sent(device, layout)
        made = source.copied(device, dtype, non_blocking, layout)
        if made is not None:
            return made
        # As today's tensor is sent.
        return held.fetched().to(device, dtype, non_blocking, copy=True, memory_format=layout)


def _cpu(func: Any, tensor: BatchTensor, source: Source, args: Any, kwargs: Any) -> Any:
    return NotImplemented if args or kwargs else tensor


def _pin_memory(func: Any, tensor: BatchTensor, source: Source, args: Any, kwargs: Any) -> Any:
    return NotImplemented if args or kwargs or not source.is_pinned() else tensor


def _contiguous(func: Any, tensor: BatchTensor, source: Source, args: Any, kwargs: Any) -> Any:
    return NotImplemented if args or kwargs or not tensor.is_contiguous() else tensor


def _is_pinned(func: Any, tensor: BatchTensor, source: Source, args: Any, kwargs: Any) -> Any:
    return NotImplemented if args or kwargs else source.is_pinned()


_ANSWERS: dict[Any, Callable[[Any, BatchTensor, Source, Any, Any], Any]] = {
    _Tensor.to: _to,
    _Tensor.cuda: _cuda,
    _Tensor.cpu: _cpu,
    _Tensor.pin_memory: _pin_memory,
    _Tensor.contiguous: _contiguous,
    _Tensor.is_pinned: _is_pinned,
}


# ---- other processes ----


def _reduce(tensor: BatchTensor) -> Any:
    """Pickle it for another process as torch does an ordinary one."""
    from torch.multiprocessing.reductions import reduce_tensor

    return reduce_tensor(become(tensor))


ForkingPickler.register(BatchTensor, _reduce)


def _before_fork() -> None:
    """A forked child cannot use the GPU, nor memory that is pinned, but it may read its parent's batches."""
    with _lock.held():
        alive = list(_held)
    for held in alive:
        with contextlib.suppress(RuntimeError):
            held.fetched(pinned=False)


os.register_at_fork(before=_before_fork)
