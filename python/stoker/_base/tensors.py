# SPDX-License-Identifier: Apache-2.0
"""Names of types, and the engine's tensors as torch tensors or NumPy arrays. torch is imported only when needed."""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np

from .. import _ext

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
CPU = 1  # DLPack's number for the CPU
LEGACY_STREAM = 1  # DLPack's number for CUDA's default stream
_LAYOUTS = {"contiguous_format": "nchw", "nchw": "nchw", "channels_last": "nhwc", "nhwc": "nhwc"}


def torch_if_installed() -> ModuleType | None:
    """Return the torch module, importing it if necessary; None if it is not installed."""
    if "torch" in sys.modules:
        return sys.modules["torch"]  # None if somebody has blocked the import
    found = importlib.util.find_spec("torch")
    if found is None or found.origin is None:  # an empty folder of this name is found, too
        return None
    import torch

    return torch


def dtype_name(dtype: Any) -> str | None:
    """Return uint8, float32, float16 or bfloat16, from a string or a type of torch or NumPy."""
    if dtype is None:
        return None
    text = dtype if isinstance(dtype, str) else str(dtype)
    if isinstance(dtype, (type, np.dtype)):
        text = np.dtype(dtype).name
    name = _DTYPES.get(text.removeprefix("torch."))
    if name is None:
        raise ValueError(f"dtype={dtype!r} is not one of uint8, float32, float16, bfloat16")
    return name


def layout_name(memory_format: Any) -> str:
    """Return nchw or nhwc, from None, a string or a torch.memory_format."""
    if memory_format is None:
        return "nchw"
    name = _LAYOUTS.get(str(memory_format).removeprefix("torch."))
    if name is None:
        raise ValueError(
            f"memory_format={memory_format!r} is neither 'contiguous_format' nor 'channels_last'"
        )
    return name


def to_numpy(tensor: _ext.Tensor) -> np.ndarray:
    """Return the same memory as a NumPy array. bfloat16 needs the ml_dtypes package."""
    if tensor.dtype != "bfloat16":
        return np.asarray(tensor)
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(
            "NumPy has no bfloat16: install ml_dtypes, use torch tensors (output='torch'), or choose dtype='float32'"
        ) from None
    return np.asarray(tensor.bits()).view(ml_dtypes.bfloat16)


def to_torch(tensor: _ext.Tensor) -> Any:
    """Return the same memory as a torch tensor; on a GPU, for use in torch's current stream."""
    torch = sys.modules["torch"]
    kind, index = tensor.__dlpack_device__()
    if kind == CPU:
        return torch.from_dlpack(tensor)
    # torch.from_dlpack(tensor) does the same, but takes several times as long.
    return torch.from_dlpack(tensor.__dlpack__(stream=current_stream(index)))


def current_stream(index: int | None = None) -> int:
    """Return torch's current stream in this thread, on GPU `index` or the current one, as DLPack numbers streams. It is
    the default stream if torch has not initialized CUDA."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return LEGACY_STREAM
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is None:
        return int(torch.cuda.current_stream(index).cuda_stream) or LEGACY_STREAM
    # The same without creating a Python object, which took half the time of delivering a batch.
    return int(raw(torch.cuda.current_device() if index is None else index)) or LEGACY_STREAM


def current_streams() -> tuple[int, ...]:
    """Return torch's current streams in this thread, of all GPUs, except default streams. Pinned memory may be copied to
    any GPU, and the copy is in that GPU's current stream."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return ()
    streams = (current_stream(index) for index in range(torch.cuda.device_count()))
    return tuple(stream for stream in streams if stream != LEGACY_STREAM)


def take_capsule() -> Callable[[Any], Any]:
    """Return the function that makes a torch tensor from a DLPack capsule."""
    torch: Any = sys.modules["torch"]
    return getattr(torch._C, "_from_dlpack", torch.from_dlpack)


def stream_asker(index: int) -> Callable[[], int]:
    """Return a fast version of current_stream(index), to be called once torch has initialized CUDA."""
    raw = getattr(sys.modules["torch"]._C, "_cuda_getCurrentRawStream", current_stream)
    return functools.partial(raw, index)


def device_name(device: Any) -> str | None:
    """Return cuda or cuda:N, from a string, the number of a GPU or a torch.device; None stands for the CPU."""
    if device is None:
        return None
    name = f"cuda:{device}" if type(device) is int else str(device)
    if name in ("cpu", "cpu:0"):
        return None
    if not re.fullmatch(r"cuda(:\d{1,4})?", name):
        raise ValueError(f"device={device!r} is neither 'cpu' nor 'cuda' nor 'cuda:N'")
    return name


def has_cuda() -> bool:
    """Return whether torch is installed and can use a GPU here."""
    torch = torch_if_installed()
    return torch is not None and torch.cuda.is_available()


_EPOCHS = 1 << 62


def next_epoch(calls: Iterator[int]) -> int:
    """Return the epoch of a single sample that no loader makes. If torch is in use, it is drawn from torch's generator: so
    the sample's draws follow from torch.manual_seed, and from the seed of a worker or a sample, whichever process makes
    it."""
    torch = sys.modules.get("torch")
    return int(torch.randint(_EPOCHS, (), device="cpu")) if torch else next(calls)


def default_seed(otherwise: int = 0) -> int:
    """Return torch's seed if torch is in use, so that torch.manual_seed makes runs repeatable."""
    torch = sys.modules.get("torch")
    return int(torch.initial_seed()) % 2**64 if torch else otherwise
