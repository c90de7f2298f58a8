# SPDX-License-Identifier: Apache-2.0
"""Names of types, and the engine's tensors as torch's or NumPy's. torch is imported only when needed."""

from __future__ import annotations

import importlib.util
import sys
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
_LAYOUTS = {"contiguous_format": "nchw", "nchw": "nchw", "channels_last": "nhwc", "nhwc": "nhwc"}


def torch_if_installed() -> ModuleType | None:
    """The torch module, imported if it has not been yet; None where there is none."""
    if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
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
    """The same memory as a torch tensor."""
    return sys.modules["torch"].from_dlpack(tensor)


def default_seed(otherwise: int = 0) -> int:
    """torch's seed where torch is in use, so that torch.manual_seed makes runs repeatable."""
    torch = sys.modules.get("torch")
    return int(torch.initial_seed()) % 2**64 if torch else otherwise
