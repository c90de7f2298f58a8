# SPDX-License-Identifier: Apache-2.0
"""Stoker feeds the GPU: it turns datasets of images and sounds into finished training batches, in threads, without
Python in the loop. The batches do not depend on the number of threads.

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

| name | what it is for |
|---|---|
| `DataLoader` | batches, with the arguments of torch's DataLoader |
| `datasets`, `open` | folders, archives and tables of samples, on disk or behind URLs |
| `transforms`, `audio` | what happens to each image or sound |
| `install`, `lazy_images` | the engine inside code that uses torch and Pillow |
| `Stats`, `Plan` | what `stats()` and `explain()` of a DataLoader return |
| `decode`, `order_indices` | parts of the engine on their own |
| `info`, `cpus`, `GpuWatch`, `verdict` | this build, this machine, and what `stoker run` found out |
| `monitor` | how long training waits for data, in TensorBoard, W&B, Lightning, Hugging Face's Trainer |
| `StokerError` | the base class of every error that the engine raises |
"""

from __future__ import annotations

import importlib
import io
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _ext, audio, datasets, transforms
from ._base.suggest import no_attribute
from ._base.tables import counted, html_table
from ._base.tensors import to_numpy
from ._engine.stats import Stats
from ._ext import (
    CorruptSample,
    GpuWatch,
    InternalError,
    InvalidArgument,
    LimitReached,
    NotFound,
    OutOfMemory,
    ReadError,
    StokerError,
    TransientError,
    Unsupported,
)
from ._lazy.switch import lazy_images
from ._monitor import Monitor, monitor
from ._open import open
from ._plan import from_albumentations_distortions as _from_albumentations_distortions  # noqa: F401 (it fills in a table)
from ._plan import from_albumentations_dropout as _from_albumentations_dropout  # noqa: F401 (likewise)
from ._plan import from_albumentations_geometry as _from_albumentations_geometry  # noqa: F401 (likewise)
from ._plan import from_albumentations_noises as _from_albumentations_noises  # noqa: F401 (likewise)
from ._plan import from_albumentations_pixels as _from_albumentations_pixels  # noqa: F401 (likewise)
from ._plan import from_albumentations_sizes as _from_albumentations_sizes  # noqa: F401 (likewise)
from ._plan import from_albumentations_warps as _from_albumentations_warps  # noqa: F401 (likewise)
from ._plan import from_own_code as _from_own_code  # noqa: F401 (likewise)
from ._plan import from_timm as _from_timm  # noqa: F401 (likewise)
from ._plan import from_torchvision as _from_torchvision  # noqa: F401 (likewise)
from ._plan.explain import Plan

try:
    from ._verdict import Verdict, verdict
except ModuleNotFoundError:  # a build without the doctor
    pass

__all__ = [
    "CorruptSample",
    "DataLoader",
    "GpuWatch",
    "Info",
    "InternalError",
    "InvalidArgument",
    "LimitReached",
    "Monitor",
    "NotFound",
    "OutOfMemory",
    "Plan",
    "ReadError",
    "Stats",
    "StokerError",
    "TransientError",
    "Unsupported",
    "Verdict",
    "audio",
    "cpus",
    "datasets",
    "decode",
    "info",
    "install",
    "lazy_images",
    "monitor",
    "open",
    "order_indices",
    "transforms",
    "uninstall",
    "verdict",
    "__version__",
]

_OF_THE_DOCTOR = ("Verdict", "verdict")
if "verdict" not in globals():
    for _name in _OF_THE_DOCTOR:
        __all__.remove(_name)

__version__: str = _ext.version()

if TYPE_CHECKING:
    from ._install import install as install
    from ._install import uninstall as uninstall
    from .dataloader import DataLoader as DataLoader

# These import torch, which takes a second: they are loaded on first use.
_LATER = {"DataLoader": "dataloader", "install": "_install", "uninstall": "_install"}


def __getattr__(name: str) -> Any:
    if name in _OF_THE_DOCTOR:
        raise AttributeError(
            f"stoker.{name}: this build has no doctor, because it was configured with -Ddoctor=disabled; build Stoker "
            "without that option to have it",
            name=name,
        )
    if name not in _LATER:
        raise no_attribute(__name__, name, __all__)
    found = getattr(importlib.import_module(f".{_LATER[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__


def decode(
    data: Any,
    region: Sequence[int] | None = None,
    exif_rotate: bool = False,
    pixel_limit: int | None = None,
) -> npt.NDArray[np.uint8]:
    """Decode an image. The pixels are equal to those of `PIL.Image.open(...).convert("RGB")`.

    Args:
        data: The encoded image as bytes (or any object with the buffer protocol), or the path of a file.
        region: (x, y, width, height): decode this part only.
        exif_rotate: Rotate the image as its EXIF orientation says.
        pixel_limit: Refuse images with more pixels. By default 178,956,970, as in Pillow.

    Returns:
        A uint8 array of shape height x width x 3.

    Raises:
        CorruptSample: The data are damaged, or not an image.
        Unsupported: The format, or a feature of it, is not supported by this build.
        LimitReached: The image has more pixels than `pixel_limit`.
        OSError: The file cannot be read.
        ValueError: `region` is not a part of the image.

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


def order_indices(count: int, **options: Any) -> npt.NDArray[np.int64]:
    """Return the order of the samples in one epoch, as the DataLoader of one rank visits them.

    Args:
        count: The number of samples in the dataset.
        **options: All of these are optional:

            - `kind`: "torch" (the default: `torch.randperm` with a generator seeded with seed + epoch, as in
              DistributedSampler), "shuffle" (needs no memory), "sequential", "weighted" or "given".
            - `seed`, `epoch`: determine the order; both 0 by default.
            - `rank`, `world`: this process and the number of processes that share the samples; 0 and 1 by default.
            - `drop_uneven`: drop the last samples if `world` does not divide their number; otherwise some are
              repeated.
            - `epoch_fixed`: use the same order in every epoch.
            - `indices`: the samples, for "given".
            - `weights`, `draws`: a weight for each sample, and how many to draw, for "weighted".

    Returns:
        An int64 array of sample numbers.

    Raises:
        TypeError: There is no such option.
        ValueError: An option has a value that is not allowed.

    >>> stoker.order_indices(6, kind="sequential", rank=1, world=2).tolist()
    [1, 3, 5]
    """
    for name, kind in (("indices", np.int64), ("weights", np.float64)):
        if options.get(name) is not None:
            options[name] = np.ascontiguousarray(options[name], kind)
    return to_numpy(_ext.order_indices(count, **options))


def cpus() -> int:
    """Return the number of CPUs that this process may use, by its affinity and the quota of its cgroup.

    >>> stoker.cpus() >= 1
    True
    """
    return _ext.cpus()


class Info(dict[str, Any]):
    """What stoker.info() returns: a dict that prints as a table, and shows as one in a notebook.

    It has the keys `version`, `cpus`, and one for each kind of feature. Features are dicts of names to
    `{"present": bool, "detail": str}`.
    """

    def _features(self) -> list[tuple[str, str, str, str]]:
        return [
            (kind, name, "yes" if feature["present"] else "no", feature["detail"])
            for kind, features in self.items()
            if isinstance(features, dict)
            for name, feature in features.items()
        ]

    def _first(self) -> str:
        return f"stoker {self['version']}, {counted(self['cpus'], 'CPU')}"

    def __str__(self) -> str:
        lines = [f"  {kind:8} {name:12} {mark:4} {detail}".rstrip() for kind, name, mark, detail in self._features()]
        return "\n".join([self._first(), *lines])

    def _repr_html_(self) -> str:
        return f"<div><p>{self._first()}</p>{html_table((), self._features())}</div>"


def info() -> Info:
    """Return the version, the libraries, the codecs and the CPU kernels of this build.

    Returns:
        A dict that prints as a table.

    >>> stoker.info()["codec"]["JPEG"]["present"]
    True
    """
    out = Info(version=__version__, cpus=cpus())
    for kind, name, detail, present in _ext.features():
        out.setdefault(kind, {})[name] = {"present": present, "detail": detail}
    return out
