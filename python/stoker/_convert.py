# SPDX-License-Identifier: Apache-2.0
"""Names of types, and the engine's tensors as torch's or NumPy's. torch is imported only when needed."""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from . import _ext

_DTYPES = {
    "uint8": "uint8",
    "float32": "float32",
    "float": "float32",
    "fp32": "float32",
    "float16": "float16",
    "half": "float16",
    "fp16": "float16",
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
}
CPU = 1  # DLPack's number
LEGACY_STREAM = 1  # DLPack's name for CUDA's default stream
_LAYOUTS = {"contiguous_format": "nchw", "nchw": "nchw", "channels_last": "nhwc", "nhwc": "nhwc"}


def torch_if_installed() -> ModuleType | None:
    """The torch module, imported if it has not been yet; None where there is none."""
    if "torch" in sys.modules:
        return sys.modules["torch"]  # None where somebody forbids the import
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    return torch


def dtype_name(dtype: Any) -> str | None:
    """uint8, float32, float16 or bfloat16, from a string or a type of torch's or NumPy's."""
    if dtype is None:
        return None
    text = dtype if isinstance(dtype, str) else str(dtype)
    if isinstance(dtype, (type, np.dtype)):
        text = np.dtype(dtype).name
    name = _DTYPES.get(text.removeprefix("torch."))
    if name is None:
        raise ValueError(f"dtype={dtype!r} is none of uint8, float32, float16, bfloat16")
    return name


def layout_name(memory_format: Any) -> str:
    """nchw or nhwc, from None, a string or a torch.memory_format."""
    if memory_format is None:
        return "nchw"
    name = _LAYOUTS.get(str(memory_format).removeprefix("torch."))
    if name is None:
        raise ValueError(
            f"memory_format={memory_format!r} is neither 'contiguous_format' nor 'channels_last'"
        )
    return name


def to_numpy(tensor: _ext.Tensor) -> np.ndarray:
    """The same memory as a NumPy array. bfloat16 needs the ml_dtypes package."""
    if tensor.dtype != "bfloat16":
        return np.asarray(tensor)
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(
            "NumPy has no bfloat16 of its own: install ml_dtypes, take torch tensors "
            "(output='torch'), or choose dtype='float32'"
        ) from None
    return np.asarray(tensor.bits()).view(ml_dtypes.bfloat16)


def to_torch(tensor: _ext.Tensor) -> Any:
    """The same memory as a torch tensor; on a GPU, for use in torch's current stream."""
    torch = sys.modules["torch"]
    kind, index = tensor.__dlpack_device__()
    if kind == CPU:
        return torch.from_dlpack(tensor)
    # What torch.from_dlpack(tensor) does as well, in several times the time.
    return torch.from_dlpack(tensor.__dlpack__(stream=current_stream(index)))


def current_stream(index: int | None = None) -> int:
    """torch's current stream in this thread, on GPU `index` or the current one, as DLPack numbers streams:
    the default one where torch has not begun to use a GPU."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return LEGACY_STREAM
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is None:
        return int(torch.cuda.current_stream(index).cuda_stream) or LEGACY_STREAM
    # The same without an object made for it, which took half the time of handing out a batch.
    return int(raw(torch.cuda.current_device() if index is None else index)) or LEGACY_STREAM


def take_capsule() -> Callable[[Any], Any]:
    """What makes a DLPack capsule into a tensor of torch's."""
    torch: Any = sys.modules["torch"]
    return getattr(torch._C, "_from_dlpack", torch.from_dlpack)


def stream_asker(index: int) -> Callable[[], int]:
    """current_stream(index) by the shortest way there is, for a torch that uses the GPU by then."""
    raw = getattr(sys.modules["torch"]._C, "_cuda_getCurrentRawStream", current_stream)
    return functools.partial(raw, index)


def device_name(device: Any) -> str | None:
    """cuda or cuda:N, from a string, the number of a GPU or a torch.device; None stands for the CPU."""
    if device is None:
        return None
    name = f"cuda:{device}" if type(device) is int else str(device)
    if name in ("cpu", "cpu:0"):
        return None
    if not re.fullmatch(r"cuda(:\d{1,4})?", name):
        raise ValueError(f"device={device!r} is neither 'cpu' nor 'cuda' nor 'cuda:N'")
    return name


def has_cuda() -> bool:
    """Whether torch is installed and can use a GPU here."""
    torch = torch_if_installed()
    return torch is not None and torch.cuda.is_available()


def default_seed(otherwise: int = 0) -> int:
    """torch's seed where torch is in use, so that torch.manual_seed makes runs repeatable."""
    torch = sys.modules.get("torch")
    return int(torch.initial_seed()) % 2**64 if torch else otherwise
