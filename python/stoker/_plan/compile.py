# SPDX-License-Identifier: Apache-2.0
"""From a dataset with its transforms to what the engine runs, or to the reasons why it cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _ext
from .._base.remember import remembering
from .._data.base import EngineDataset
from .._data.dicts import Dicts
from .._data.field_dataset import FieldDataset
from .._data.fields import AUDIO, worked_on
from .._steps.base import Transform, compile_transform, gives_array, library_of, pipeline_text, steps_of_libraries
from .._steps.blockers import COLLATE, LABEL, TRANSFORM, WORKERS, Blocked, Blocker
from .._steps.views import have_one_size, views_in
from .known_boxes import BoxLeaf, Targets
from .known_collates import is_default_collate, transposes_into
from .known_datasets import Leaf, Watch, leaves_of, lower
from .known_masks import MaskLeaf


class Compiled:
    """A dataset for the engine: its handle, the text of its pipeline, and what Python does to the labels."""

    def __init__(
        self,
        handle: _ext.Dataset,
        text: str,
        target_transform: Any = None,
        leaves: Sequence[Leaf | MaskLeaf | BoxLeaf] = (),
        watch: Watch | None = None,
        transposes: Callable[[Any], Any] | None = None,
    ) -> None:
        self.handle = handle
        self.text = text
        self.target_transform = target_transform
        self._leaves = leaves
        self._watch = watch or Watch()
        self.transposes = transposes  # tuple or list, if a collate_fn makes that of zip(*batch)

    @property
    def transform(self) -> Any:
        """The transform that all parts of the dataset share."""
        return next((leaf.transform for leaf in self._leaves), None)

    def targets(self) -> tuple[str | None, str | None]:
        """Return the fields that are masks and boxes, as the engine takes them."""
        return next((leaf.targets for leaf in self._leaves), (None, None))

    def shaped(self, fields: list[Any]) -> list[Any]:
        """Return the fields of a batch in the shape that the library's dataset gives them."""
        leaf = next(iter(self._leaves), None)
        return leaf.shaped(fields) if isinstance(leaf, MaskLeaf) else fields

    @property
    def needs_torch(self) -> bool:
        """Whether parts of a batch have torch's shapes and types."""
        return any(isinstance(leaf, MaskLeaf) for leaf in self._leaves)

    def transform_makes_tensors(self) -> bool:
        """Return whether transforms make tensors of all samples."""
        return all(leaf.transform is not None and compile_transform(leaf.transform)._makes_tensor for leaf in self._leaves)

    @property
    def views(self) -> int:
        """How many views of each sample there are."""
        return views_in(self.text)

    @property
    def is_apart(self) -> bool:
        """Whether batches are made of single samples: transposed, or with a dict for each."""
        return self.transposes is not None or self.form() is not None

    def form(self) -> Dicts | Targets | None:
        """Return how a sample becomes an image and a dict; None if it does not."""
        leaf = next(iter(self._leaves), None)
        if isinstance(leaf, BoxLeaf):
            return leaf.form()
        forms = (leaf.dataset._form() for leaf in self._leaves if isinstance(leaf.dataset, FieldDataset))
        form = next(forms, None)
        return form and form._replace(channels_last=gives_array(self.text))

    def is_of_files(self) -> bool:
        """Return whether each sample is one encoded image or an array, not a part of an archive."""
        return not any(isinstance(leaf.dataset, FieldDataset) or isinstance(leaf, MaskLeaf) for leaf in self._leaves)

    def renewed(self, dataset: Any) -> Compiled:
        """Return self, or a new one if the dataset has changed in the meantime. Raises Blocked."""
        if self._watch.changed():
            return compile_dataset(dataset, self.transposes)
        blockers = _blockers_of_samples(self._leaves) if self.transposes else []
        text = _common_text(self._leaves, blockers)
        target = _common_target(self._leaves, blockers)
        if blockers:
            raise Blocked(blockers)
        if views_in(text) != self.views:
            raise Blocked([Blocker(TRANSFORM, "the number of views was changed", "make a new loader")])
        if text == self.text and target is self.target_transform:
            return self
        return Compiled(self.handle, text, target, self._leaves, self._watch, self.transposes)


def compile_loader(
    dataset: Any,
    collate_fn: Any,
    worker_init_fn: Any,
    *,
    batched: bool,
    sized: bool = False,
    on_device: bool = False,
    wanted: bool = True,
) -> tuple[Compiled | None, list[Blocker]]:
    """Return the dataset for the engine, or None and every reason why it cannot run there, or is not wanted there. `sized`:
    a batch_sampler says which samples a batch has."""
    if not wanted:
        return None, [Blocker("", "compile=False")]
    why: list[Blocker] = []
    compiled = None
    transposes = transposes_into(collate_fn) if batched else None
    try:
        compiled = compile_dataset(dataset, transposes)
    except Blocked as reasons:
        why += reasons.blockers
    if compiled is not None and isinstance(compiled.form(), Targets) and transposes is None:
        remedy = "pass collate_fn=lambda batch: tuple(zip(*batch))"
        why.append(Blocker(COLLATE, "images have different numbers of boxes, of which no batch can be made", remedy))
    if compiled is not None and compiled.views > 1:
        why += _blockers_of_views(compiled, transposes, sized=sized or not batched, on_device=on_device)
    why += blockers_in_python(None if transposes else collate_fn, worker_init_fn)
    return (None, why) if why else (compiled, [])


def _blockers_of_views(
    compiled: Compiled, transposes: Callable[[Any], Any] | None, *, sized: bool, on_device: bool
) -> list[Blocker]:
    """Return why batches of several views of each sample would not be what the transform returns, collated."""
    found = []
    if transposes is not None:
        found.append(Blocker(COLLATE, "collate_fn gets several views of each sample", "leave collate_fn out"))
    if not compiled.transform_makes_tensors():
        found.append(Blocker(COLLATE, "views are no tensors, of which batches could be made", "end their transforms with ToTensor"))
    if sized:
        found.append(Blocker(COLLATE, "batches of several views have one size, batch_size", "give batch_size and a sampler"))
    if compiled.target_transform is not None:
        found.append(Blocker(LABEL, "there are several views of each sample, and a target_transform"))
    if not compiled.is_of_files():
        found.append(Blocker(TRANSFORM, "only samples of an image and a label may have several views"))
    if on_device and not have_one_size(compiled.text):
        found.append(Blocker(TRANSFORM, "views of different sizes cannot be made for a device", "leave device= out"))
    return found


def _blockers_of_samples(leaves: Sequence[Leaf | MaskLeaf | BoxLeaf]) -> list[Blocker]:
    """Return why the rows of the engine's batches would not be what the datasets return for single samples."""
    why = []
    for leaf in leaves:
        if isinstance(leaf, BoxLeaf):
            continue
        names = [type(step).__name__ for step in _flat(leaf.transform)]
        own = isinstance(leaf.dataset, EngineDataset)
        if isinstance(leaf, MaskLeaf):
            why.append(Blocker(COLLATE, "collate_fn gets masks that are tv_tensors"))
        elif leaf.transform is None or not own and not compile_transform(leaf.transform)._makes_tensor:
            why.append(Blocker(COLLATE, "collate_fn gets images that are no tensors", "end the transform with ToTensor"))
        elif not own and "ToImage" in names and "ToPureTensor" not in names:
            why.append(Blocker(COLLATE, "collate_fn gets images that are tv_tensors", "end the transform with ToPureTensor"))
        elif worked_on(text := pipeline_text(leaf.transform, grey=leaf.grey)) == AUDIO:
            why.append(Blocker(COLLATE, "collate_fn gets sounds"))
        elif gives_array(text):
            why.append(Blocker(COLLATE, "collate_fn gets images that are arrays", "end the transform with ToTensorV2()"))
    return why


def _flat(transform: Any) -> Iterator[Any]:
    if type(transform).__name__ != "Compose":
        yield transform
    for step in transform.transforms if type(transform).__name__ == "Compose" else ():
        yield from _flat(step)


def blockers_in_python(collate_fn: Any, worker_init_fn: Any) -> list[Blocker]:
    """Return the Python functions of the script that the engine cannot call."""
    why = []
    if not is_default_collate(collate_fn):
        why.append(
            Blocker(COLLATE, f"collate_fn={collate_fn!r} is a Python function", "remove collate_fn; default_collate is built in")
        )
    if worker_init_fn is not None:
        why.append(Blocker(WORKERS, f"worker_init_fn={worker_init_fn!r} is a Python function", "remove worker_init_fn"))
    return why


def compile_dataset(dataset: Any, transposes: Callable[[Any], Any] | None = None) -> Compiled:
    """Compile one of stoker.datasets, or one of torchvision's or torch's that _compile_datasets knows. Raises Blocked."""
    blockers: list[Blocker] = []
    watch = Watch()
    part = lower(dataset, watch, blockers)
    leaves = part.leaves if part is not None else list(leaves_of(dataset))
    text = _common_text(leaves, blockers)
    target = _common_target(leaves, blockers)
    if len({leaf.targets for leaf in leaves}) > 1:
        why = "the parts of a ConcatDataset have different masks or boxes"
        blockers.append(Blocker(TRANSFORM, why, "name the same fields"))
    if len({getattr(leaf.dataset, "_as_dict", False) for leaf in leaves}) > 1:
        blockers.append(Blocker(COLLATE, "the parts of a ConcatDataset differ in as_dict", "give all the same"))
    if len({leaf.form() for leaf in leaves if isinstance(leaf, BoxLeaf)}) > 1:
        blockers.append(Blocker(COLLATE, "the parts of a ConcatDataset make different tensors", "give all the same transforms"))
    if transposes and not blockers:
        blockers += _blockers_of_samples(leaves)
    if blockers or part is None:
        raise Blocked(blockers)
    return Compiled(part.handle(), text, target, leaves, watch, transposes)


def _common_text(leaves: Sequence[Leaf | MaskLeaf | BoxLeaf], blockers: list[Blocker]) -> str:
    """Return the pipeline that all parts share."""
    texts = {}
    with remembering():
        for leaf in leaves:
            found = _blockers_of_leaf(leaf) or _blockers_of_arrays(leaf)
            blockers += [blocker for blocker in found if blocker not in blockers]
            if not found:
                texts[_text_of(leaf, blockers)] = None
    if len(texts) > 1:
        blockers.append(
            Blocker(
                TRANSFORM,
                "the parts of a ConcatDataset have different transforms",
                "give all the same transform, or load each part with its own DataLoader",
            )
        )
    return next(iter(texts), "")


def _blockers_of_arrays(leaf: Leaf | MaskLeaf | BoxLeaf) -> list[Blocker]:
    """Return a blocker if another library's dataset calls Albumentations, which does not take its images."""
    if isinstance(leaf.dataset, EngineDataset):
        return []
    found = [step for step in steps_of_libraries([leaf.transform]) if library_of(step) == "albumentations"]
    kind = type(leaf.dataset).__name__
    why = f"{kind} calls its transform with a PIL image, and Albumentations takes an array named image="
    return [Blocker(TRANSFORM, why, f"use stoker.datasets.{kind}", found[0])] if found else []


def _blockers_of_leaf(leaf: Leaf | MaskLeaf | BoxLeaf) -> list[Blocker]:
    try:
        return blockers_of(leaf.for_engine())
    except Blocked as reasons:
        return reasons.blockers


def _text_of(leaf: Leaf | MaskLeaf | BoxLeaf, blockers: list[Blocker]) -> str:
    transform = leaf.for_engine()
    text = pipeline_text(transform, grey=leaf.grey)
    if isinstance(leaf.transform, Transform):
        return text  # written for the engine: its author shall see the engine's error when the pipeline is opened
    try:
        _ext.Pipeline(text)
    except (ValueError, _ext.StokerError) as reason:
        blockers.append(Blocker(TRANSFORM, f"the engine cannot run these transforms in this order: {reason}"))
    return text


def _common_target(leaves: Sequence[Leaf | MaskLeaf | BoxLeaf], blockers: list[Blocker]) -> Any:
    targets = {id(leaf.target_transform): leaf.target_transform for leaf in leaves}
    if len(targets) > 1:
        blockers.append(
            Blocker(
                LABEL,
                "the parts of a ConcatDataset have different target_transforms",
                "give all the same one, or load each part with its own DataLoader",
            )
        )
    return next(iter(targets.values()), None)


def blockers_of(transform: Any) -> list[Blocker]:
    """Return a blocker for every step of a transform that the engine does not have."""
    if transform is None:
        return []
    kind = type(transform)
    known = isinstance(transform, Transform) or kind.__module__.startswith("torchvision.transforms")
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
