# SPDX-License-Identifier: Apache-2.0
"""Runs one image through a pipeline."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _ext
from .._base.tensors import dtype_name, layout_name, to_numpy


def as_pnm(image: Any) -> bytes:
    """Return an image as a PGM or PPM file."""
    if hasattr(image, "convert"):
        image = image.convert("RGB")
    array = np.asarray(image)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[:, :, 0]
    if array.dtype != np.uint8 or not (array.ndim == 2 or array.ndim == 3 and array.shape[2] == 3):
        what = f"an array of {array.dtype} with shape {array.shape}" if array.ndim else repr(image)[:80]
        raise TypeError(
            f"the image is {what}; a PIL image, or a uint8 array of shape height x width x 3 or height x width is "
            "required. Transforms of tensors (Normalize, ConvertImageDtype, RandomErasing) "
            "work after ToTensor in the same Compose"
        )
    magic = b"P5" if array.ndim == 2 else b"P6"
    return b"%s\n%d %d\n255\n" % (magic, array.shape[1], array.shape[0]) + array.tobytes()


def run(
    text: str, image: Any, epoch: int, *, seed: int, dtype: Any, memory_format: Any, pillow: int
) -> np.ndarray:
    """Return the result of the pipeline `text` for the image: channels x height x width."""
    if "views(" in text:
        raise NotImplementedError("the transform makes several views of an image, and one is wanted: call it with the image")
    loader = _ext.Loader(
        _ext.Dataset.from_memory([as_pnm(image)]),
        _ext.Pipeline(text),
        workers=0,
        seed=seed,
        dtype=dtype_name(dtype),
        layout=layout_name(memory_format),
        pillow=pillow,
    )
    loader.start(epoch)
    batch = loader.next()
    assert batch is not None
    images = batch.images
    assert images is not None
    return to_numpy(images[0]) if isinstance(images, list) else to_numpy(images)[0]
