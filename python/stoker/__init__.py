# SPDX-License-Identifier: Apache-2.0
"""Stoker feeds the GPU: data sets of images to finished training batches, in threads, without Python in
the loop, the same bytes for any number of threads.

>>> import stoker
>>> from stoker import transforms as T
>>> data = stoker.datasets.ImageFolder("images", transform=T.Compose([
...     T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor()]))
>>> loader = stoker.DataLoader(data, batch_size=4, shuffle=True, seed=1)
>>> for images, labels in loader:
...     print(tuple(images.shape), len(labels))
(4, 3, 32, 32) 4
(4, 3, 32, 32) 4
(4, 3, 32, 32) 4
"""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _ext, audio, datasets, transforms
from ._convert import to_numpy
from ._ext import CorruptSample, GpuWatch, InternalError, LimitReached, StokerError, TransientError, Unsupported
from ._open import open
from .lazy import lazy_images

__all__ = [
    "CorruptSample",
    "DataLoader",
    "GpuWatch",
    "InternalError",
    "LimitReached",
    "StokerError",
    "TransientError",
    "Unsupported",
    "audio",
    "cpus",
    "datasets",
    "decode",
    "info",
    "install",
    "lazy_images",
    "open",
    "order_indices",
    "transforms",
    "uninstall",
    "__version__",
]

__version__ = _ext.version()

if TYPE_CHECKING:
    from ._install import install as install
    from ._install import uninstall as uninstall
    from .dataloader import DataLoader as DataLoader

# These need torch, which takes a second to import: only when somebody asks for them.
_LATER = {"DataLoader": "dataloader", "install": "_install", "uninstall": "_install"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'stoker' has no attribute '{name}'")
    found = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = found
    return found


def decode(
    data: Any,
    region: Sequence[int] | None = None,
    exif_rotate: bool = False,
    pixel_limit: int | None = None,
) -> np.ndarray:
    """An encoded image (bytes, or the path of a file) as an array of uint8, height x width x 3; equal to
    what PIL.Image.open(...).convert("RGB") gives. With region=(x, y, width, height) only that part is
    decoded.

    >>> stoker.decode("images/cat/0.png").shape
    (48, 64, 3)
    >>> stoker.decode("images/cat/0.png", region=(10, 20, 5, 4)).shape
    (4, 5, 3)
    """
    name = "the image"
    if isinstance(data, (str, os.PathLike)):
        name = os.fsdecode(data)
        with io.open(data, "rb") as file:  # noqa: UP020 (open is this package's own)
            data = file.read()
    limit = {} if pixel_limit is None else {"pixel_limit": pixel_limit}
    return to_numpy(
        _ext.decode(
            data,
            None if region is None else tuple(region),
            name.encode("utf-8", "replace").decode(),
            exif_rotate,
            **limit,
        )
    )


def order_indices(count: int, **options: Any) -> np.ndarray:
    """Which sample comes at which place: the orders of the loader by themselves.

    `kind` is "torch" (the default: torch.randperm under a generator seeded with seed + epoch, as in
    DistributedSampler), "shuffle", "sequential", "weighted" or "given"; further options are seed, epoch,
    rank, world, drop_uneven, epoch_fixed, indices, weights, draws.

    >>> stoker.order_indices(6, kind="sequential", rank=1, world=2).tolist()
    [1, 3, 5]
    """
    for name, kind in (("indices", np.int64), ("weights", np.float64)):
        if options.get(name) is not None:
            options[name] = np.ascontiguousarray(options[name], kind)
    return to_numpy(_ext.order_indices(count, **options))


def cpus() -> int:
    """The CPUs this process may really use: its affinity, and the quota of its cgroup."""
    return _ext.cpus()


class Info(dict[str, Any]):
    """What stoker.info() gives: a dict that prints as a table."""

    def __str__(self) -> str:
        lines = [f"stoker {self['version']}, {self['cpus']} CPUs"]
        for kind, features in self.items():
            for name, feature in features.items() if isinstance(features, dict) else ():
                mark = "yes" if feature["present"] else "no"
                lines.append(f"  {kind:8} {name:12} {mark:4} {feature['detail']}".rstrip())
        return "\n".join(lines)


def info() -> Info:
    """The version, the libraries, the codecs and the kernels in use; print it for a table.

    >>> stoker.info()["codec"]["JPEG"]["present"]
    True
    """
    out = Info(version=__version__, cpus=cpus())
    for kind, name, detail, present in _ext.features():
        out.setdefault(kind, {})[name] = {"present": present, "detail": detail}
    return out
