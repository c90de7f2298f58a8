# SPDX-License-Identifier: Apache-2.0
"""From torchvision's objects to what the engine runs, or a sentence that says why not.

torchvision is never imported here: its objects are known by the names of their classes.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from . import _ext
from . import transforms as T
from ._arguments import op
from ._blockers import COLLATE, LABEL, TRANSFORM, WORKERS, Blocked, Blocker
from ._compile_datasets import Leaf, Watch, leaves_of, lower
from ._convert import dtype_name
from ._mix import BatchTransform
from ._untouched import changes_of_step


class _Nothing(T.Transform):
    """A step that changes nothing here."""

    def _spec(self) -> str:
        return ""


class _ToRGB(_Nothing):
    """Three channels. Images have them, but for those that were grey or have been made so."""

    def _spec_of_grey(self) -> str:
        return op("grayscale", num_output_channels=3)


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


def _preset(t: Any) -> T.Transform:
    """What weights.transforms() gives."""
    size = t.resize_size[0] if len(t.resize_size) == 1 else t.resize_size
    return T.Compose(
        [
            T.Resize(size, t.interpolation, None, t.antialias),
            T.CenterCrop(t.crop_size),
            T.PILToTensor(),
            T.ConvertImageDtype("float32"),
            T.Normalize(t.mean, t.std),
        ]
    )


_COMPILERS: dict[str, Callable[[Any], T.Transform]] = {
    "CenterCrop": lambda t: T.CenterCrop(t.size),
    "ColorJitter": _jitter,
    "Compose": lambda t: T.Compose(list(t.transforms)),
    "ConvertImageDtype": lambda t: (_ToDtype if _is_v2(t) else T.ConvertImageDtype)(t.dtype),
    "GaussianBlur": lambda t: T.GaussianBlur(t.kernel_size, t.sigma),
    "Grayscale": lambda t: T.Grayscale(t.num_output_channels),
    "Identity": lambda t: _Nothing(),
    "ImageClassification": _preset,
    "Normalize": lambda t: T.Normalize(t.mean, t.std),
    "PILToTensor": lambda t: _ToImage(),
    "Pad": _pad,
    "RGB": lambda t: _ToRGB(),
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
        changes = changes_of_step(transform, "torchvision")
        if changes:
            raise Blocked([Blocker(TRANSFORM, why, "", transform) for why in changes])
        if kind.__name__ == "Compose":
            _warn_of_tensor_ops(transform)
        return _COMPILERS[kind.__name__](transform)
    if isinstance(transform, BatchTransform) or kind.__name__ in ("MixUp", "CutMix"):
        raise TypeError(
            f"{transform!r} works on whole batches: it belongs in DataLoader(batch_transforms=...)"
        )
    why = f"the transform {transform!r} ({kind.__module__}.{kind.__qualname__}) cannot be compiled"
    raise Blocked([Blocker(TRANSFORM, why, "leave it out, or take one that stoker.transforms has", transform)])


_warned_of: weakref.WeakSet[Any] = weakref.WeakSet()


def _warn_of_tensor_ops(compose: Any) -> None:
    """Says so, once, where torchvision would work on a tensor and the engine works on the image."""
    if compose in _warned_of:
        return
    _warned_of.add(compose)
    tensor = False
    for transform in compose.transforms:
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
    """A data set as the engine takes it: the handle, the text of the pipeline, and what Python does to labels."""

    def __init__(
        self,
        handle: _ext.Dataset,
        text: str,
        target_transform: Any = None,
        leaves: Sequence[Leaf] = (),
        watch: Watch | None = None,
    ) -> None:
        self.handle = handle
        self.text = text
        self.target_transform = target_transform
        self._leaves = leaves
        self._watch = watch or Watch()

    def renewed(self, dataset: Any) -> Compiled:
        """The same, or another where the data set has changed in the meantime. Raises Blocked."""
        if self._watch.changed():
            return compile_dataset(dataset)
        blockers: list[Blocker] = []
        text = _common_text(self._leaves, blockers)
        target = _common_target(self._leaves, blockers)
        if blockers:
            raise Blocked(blockers)
        if text == self.text and target is self.target_transform:
            return self
        return Compiled(self.handle, text, target, self._leaves, self._watch)


def compile_loader(
    dataset: Any, collate_fn: Any, worker_init_fn: Any
) -> tuple[Compiled | None, list[Blocker]]:
    """The data set for the engine; or None, and all that keeps it from running there."""
    why: list[Blocker] = []
    compiled = None
    try:
        compiled = compile_dataset(dataset)
    except Blocked as reasons:
        why += reasons.blockers
    why += blockers_in_python(collate_fn, worker_init_fn)
    return (None, why) if why else (compiled, [])


def blockers_in_python(collate_fn: Any, worker_init_fn: Any) -> list[Blocker]:
    """Functions of the script's own, which the engine cannot call."""
    why = []
    if not is_default_collate(collate_fn):
        why.append(
            Blocker(COLLATE, f"collate_fn={collate_fn!r} is Python's", "leave it out for torch's default_collate")
        )
    if worker_init_fn is not None:
        why.append(Blocker(WORKERS, f"worker_init_fn={worker_init_fn!r} is Python's", "leave it out"))
    return why


def compile_dataset(dataset: Any) -> Compiled:
    """From stoker's data sets, and torchvision's and torch's of which _compile_datasets knows. Raises Blocked."""
    blockers: list[Blocker] = []
    watch = Watch()
    part = lower(dataset, watch, blockers)
    leaves = part.leaves if part is not None else list(leaves_of(dataset))
    text = _common_text(leaves, blockers)
    target = _common_target(leaves, blockers)
    if blockers or part is None:
        raise Blocked(blockers)
    return Compiled(part.handle(), text, target, leaves, watch)


def _common_text(leaves: Sequence[Leaf], blockers: list[Blocker]) -> str:
    """The pipeline that the images of all parts go through."""
    texts = {}
    for leaf in leaves:
        found = blockers_of(leaf.transform)
        blockers += [blocker for blocker in found if blocker not in blockers]
        if not found:
            texts[_text_of(leaf, blockers)] = None
    if len(texts) > 1:
        blockers.append(
            Blocker(TRANSFORM, "the parts of a ConcatDataset have different transforms", "give all parts the same")
        )
    return next(iter(texts), "")


def _text_of(leaf: Leaf, blockers: list[Blocker]) -> str:
    text = T.pipeline_text(leaf.transform, grey=leaf.grey)
    if isinstance(leaf.transform, T.Transform):
        return text  # what the engine says against it is for who wrote it for the engine
    try:
        _ext.Pipeline(text)
    except (ValueError, _ext.StokerError) as reason:
        blockers.append(Blocker(TRANSFORM, f"the engine cannot do these transforms in this order: {reason}"))
    return text


def _common_target(leaves: Sequence[Leaf], blockers: list[Blocker]) -> Any:
    targets = {id(leaf.target_transform): leaf.target_transform for leaf in leaves}
    if len(targets) > 1:
        blockers.append(
            Blocker(LABEL, "the parts of a ConcatDataset have different target_transforms", "give all parts the same")
        )
    return next(iter(targets.values()), None)


def blockers_of(transform: Any) -> list[Blocker]:
    """Every step of a transform that the engine does not have."""
    if transform is None:
        return []
    kind = type(transform)
    known = isinstance(transform, T.Transform) or kind.__module__.startswith("torchvision.transforms")
    if known and kind.__name__ in ("Compose", "RandomApply"):
        inner = [blocker for step in transform.transforms for blocker in blockers_of(step)]
        if inner:
            return inner
    try:
        compile_transform(transform)._spec()
    except Blocked as reasons:
        return reasons.blockers
    except (TypeError, ValueError, NotImplementedError) as reason:
        return [Blocker(TRANSFORM, str(reason), "", transform)]
    return []


def is_default_collate(collate_fn: Any) -> bool:
    """torch's own default collate is what the engine does."""
    return collate_fn is None or (
        getattr(collate_fn, "__name__", "") == "default_collate"
        and getattr(collate_fn, "__module__", "").startswith("torch.utils.data")
    )
