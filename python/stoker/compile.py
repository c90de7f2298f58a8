# SPDX-License-Identifier: Apache-2.0
"""From torchvision's objects to what the engine runs, or a sentence that says why not.

torchvision is never imported here: its objects are known by the names of their classes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _ext
from . import transforms as T
from ._arguments import op
from ._convert import dtype_name
from ._mix import BatchTransform

class _Nothing(T.Transform):
    """A step that changes nothing here."""

    def _spec(self) -> str:
        return ""


class _ToImage(_Nothing):
    """A tensor of bytes. torchvision's further ops take tensors, the engine's images: it is put off."""

    _makes_tensor = _deferred = True


def _pad(t: Any) -> T.Transform:
    return T.Pad(t.padding, _fill(t.fill), t.padding_mode)


def _random_crop(t: Any) -> T.Transform:
    padding = t.padding
    if padding is not None and _is_v2(t):
        left, right, top, bottom = padding  # v2 keeps them in this order
        padding = [left, top, right, bottom]
    return T.RandomCrop(t.size, padding, t.pad_if_needed, _fill(t.fill), t.padding_mode)


def _fill(fill: Any) -> Any:
    if isinstance(fill, dict):
        raise NotImplementedError(f"fill={fill!r}: a fill for each type is not compiled; give one value")
    return 0 if fill is None else fill


class _ToDtype(T.ConvertImageDtype):
    """v2's scaling multiplies by 1/255 where v1's divides, which may differ in the last bit."""

    def _spec(self) -> str:
        return op("convert_image_dtype", dtype=dtype_name(self.dtype), product=True)


def _to_dtype(t: Any) -> T.Transform:
    if isinstance(t.dtype, dict) or not t.scale:
        raise NotImplementedError(f"{t!r} cannot be compiled: only ToDtype(dtype, scale=True) can")
    return _ToDtype(t.dtype)


def _erasing(t: Any) -> T.Transform:
    return T.RandomErasing(t.p, t.scale, t.ratio, "random" if t.value is None else t.value)


def _resize(t: Any) -> T.Transform:
    if t.size is None:
        raise NotImplementedError(
            f"{t!r} cannot be compiled: Resize needs a size, max_size alone will not do"
        )
    size = t.size[0] if isinstance(t.size, (list, tuple)) and len(t.size) == 1 else t.size
    return T.Resize(size, t.interpolation, t.max_size, t.antialias)


def _jitter(t: Any) -> T.Transform:
    values = [t.brightness, t.contrast, t.saturation, t.hue]
    return T.ColorJitter(*(0 if value is None else value for value in values))


_COMPILERS: dict[str, Callable[[Any], T.Transform]] = {
    "CenterCrop": lambda t: T.CenterCrop(t.size),
    "ColorJitter": _jitter,
    "Compose": lambda t: T.Compose(list(t.transforms)),
    "ConvertImageDtype": lambda t: T.ConvertImageDtype(t.dtype),
    "GaussianBlur": lambda t: T.GaussianBlur(t.kernel_size, t.sigma),
    "Grayscale": lambda t: T.Grayscale(t.num_output_channels),
    "Identity": lambda t: _Nothing(),
    "Normalize": lambda t: T.Normalize(t.mean, t.std),
    "PILToTensor": lambda t: _ToImage(),
    "Pad": _pad,
    "RGB": lambda t: _Nothing(),
    "RandomApply": lambda t: T.RandomApply(list(t.transforms), t.p),
    "RandomCrop": _random_crop,
    "RandomErasing": _erasing,
    "RandomGrayscale": lambda t: T.RandomGrayscale(t.p),
    "RandomHorizontalFlip": lambda t: T.RandomHorizontalFlip(t.p),
    "RandomResizedCrop": lambda t: T.RandomResizedCrop(
        t.size, t.scale, t.ratio, t.interpolation, t.antialias
    ),
    "RandomVerticalFlip": lambda t: T.RandomVerticalFlip(t.p),
    "Resize": _resize,
    "ToDtype": _to_dtype,
    "ToImage": lambda t: _ToImage(),
    "ToPureTensor": lambda t: _ToImage(),
    "ToTensor": lambda t: T.ToTensor(),
}

# What torchvision computes otherwise once the image is a tensor: floats in between, not Pillow's bytes.
_DIFFERS_ON_TENSORS = {
    "Resize",
    "RandomResizedCrop",
    "ColorJitter",
    "GaussianBlur",
    "Grayscale",
    "RandomGrayscale",
}


def _is_v2(transform: Any) -> bool:
    return type(transform).__module__.startswith("torchvision.transforms.v2")


def compile_transform(transform: Any) -> T.Transform:
    """A transform of stoker's, from one of torchvision's (v1 or v2) or of stoker's own."""
    kind = type(transform)
    if isinstance(transform, T.Transform):
        if type(transform)._spec is T.Transform._spec:
            raise TypeError(
                f"{transform!r} is a transform of its own: the engine does not know it"
            )
        return transform
    if kind.__module__.startswith("torchvision.transforms") and kind.__name__ in _COMPILERS:
        if kind.__name__ == "Compose":
            _warn_of_tensor_ops(transform.transforms)
        return _COMPILERS[kind.__name__](transform)
    if isinstance(transform, BatchTransform) or kind.__name__ in ("MixUp", "CutMix"):
        raise TypeError(
            f"{transform!r} works on whole batches: it belongs in DataLoader(batch_transforms=...)"
        )
    known = ", ".join(sorted(_COMPILERS))
    raise NotImplementedError(
        f"the transform {transform!r} ({kind.__module__}.{kind.__qualname__}) cannot be "
        f"compiled. Compiled are: {known}"
    )


def _warn_of_tensor_ops(transforms: Any) -> None:
    """Says so where torchvision would work on a tensor and the engine works on the image."""
    tensor = False
    for transform in transforms:
        name = type(transform).__name__
        if tensor and name in _DIFFERS_ON_TENSORS:
            warnings.warn(
                f"{name} comes after the image was made a tensor; torchvision would compute it in "
                "floats, Stoker does it as for images, with Pillow's result, which may differ by a "
                "level or two. Move ToImage (or PILToTensor) behind it to have the same in both",
                stacklevel=6,
            )
            return
        tensor = tensor or name in ("ToImage", "PILToTensor", "ToTensor")


# ---- data sets ----


class Compiled:
    """A data set as the engine takes it: the handle, and the text of the pipeline."""

    def __init__(self, handle: _ext.Dataset, text: str) -> None:
        self.handle = handle
        self.text = text


def compile_loader(
    dataset: Any, collate_fn: Any, worker_init_fn: Any
) -> tuple[Compiled | None, list[str]]:
    """The data set for the engine; or None, and all that keeps it from running there."""
    why = []
    compiled = None
    try:
        compiled = compile_dataset(dataset)
    except (TypeError, NotImplementedError) as reason:
        why.append(str(reason))
    if not _is_default_collate(collate_fn):
        why.append(f"collate_fn={collate_fn!r} is Python's")
    if worker_init_fn is not None:
        why.append(f"worker_init_fn={worker_init_fn!r} is Python's")
    return (None, why) if why else (compiled, [])


def pipeline_of(dataset: Any) -> str:
    """The text of the transforms that a data set has now."""
    return T.pipeline_text(_unwrap(dataset)[0].transform)


def compile_dataset(dataset: Any) -> Compiled:
    """From stoker's data sets, torchvision's ImageFolder, or a Subset of these."""
    from .datasets import EngineDataset

    if isinstance(dataset, EngineDataset):
        return Compiled(dataset._engine(), T.pipeline_text(dataset.transform))
    inner, indices = _unwrap(dataset)
    if isinstance(inner, EngineDataset) and indices is not None:
        return Compiled(inner._subset(indices), T.pipeline_text(inner.transform))
    samples = _image_folder_samples(inner)
    if indices is not None:
        samples = [samples[i] for i in indices]
    labels = np.asarray([label for _, label in samples], np.int64)
    return Compiled(
        _ext.Dataset.from_files([path for path, _ in samples], labels), T.pipeline_text(inner.transform)
    )


def _unwrap(dataset: Any) -> tuple[Any, list[int] | None]:
    """The data set inside torch's Subsets, and which of its samples they choose."""
    indices: list[int] | None = None
    subset = getattr(sys.modules.get("torch.utils.data"), "Subset", None)
    while subset is not None and type(dataset) is subset:
        chosen = [int(i) for i in dataset.indices]
        indices = chosen if indices is None else [chosen[i] for i in indices]
        dataset = dataset.dataset
    return dataset, indices


def _image_folder_samples(dataset: Any) -> Any:
    """The files of a torchvision ImageFolder that does nothing but what torchvision's own does."""
    kind = type(dataset)
    module: Any = sys.modules.get("torchvision.datasets.folder")
    base = getattr(module, "ImageFolder", None)
    if base is None or not isinstance(dataset, base):
        raise TypeError(
            f"the data set {kind.__module__}.{kind.__qualname__} cannot be compiled: only "
            "stoker.datasets, torchvision.datasets.ImageFolder and torch's Subset of these can"
        )
    for name in ("__getitem__", "__len__", "__getitems__"):
        if getattr(kind, name, None) is not getattr(base, name, None):
            raise TypeError(
                f"{kind.__qualname__} overrides {name}, which the engine would not call"
            )
    if dataset.loader is not module.default_loader and dataset.loader is not module.pil_loader:
        raise NotImplementedError(
            f"the loader {dataset.loader!r} of {kind.__qualname__} cannot be compiled: "
            "the engine decodes files itself"
        )
    if dataset.target_transform is not None:
        raise NotImplementedError(
            f"the target_transform {dataset.target_transform!r} cannot be compiled: "
            "apply it to the labels of the batch"
        )
    if (
        getattr(dataset, "transforms", None) is not None
        and type(dataset.transforms).__name__ != "StandardTransform"
    ):
        raise NotImplementedError(
            f"transforms={dataset.transforms!r} of {kind.__qualname__} cannot be "
            "compiled: give transform= instead"
        )
    return dataset.samples


def _is_default_collate(collate_fn: Any) -> bool:
    """torch's own default collate is what the engine does."""
    return collate_fn is None or (
        getattr(collate_fn, "__name__", "") == "default_collate"
        and getattr(collate_fn, "__module__", "").startswith("torch.utils.data")
    )
