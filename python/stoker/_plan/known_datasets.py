# SPDX-License-Identifier: Apache-2.0
"""From datasets of torchvision and torch, as they are now, to one that the engine reads.

Neither library is imported here: classes are recognized by their modules. If a subclass overrides a method, or
somebody has set or patched one, the dataset is left to Python.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _ext
from .._base.unmodified import changes_of_class, changes_of_instance
from .._data.base import EngineDataset, targets_of
from .._steps.blockers import DECODE, LABEL, READ, Blocker
from .known_boxes import BoxLeaf, wrapped_boxes
from .known_coco import CocoLeaf, is_coco, read_coco
from .known_masks import OURS, MaskLeaf, is_wrapped, wrapped_files

_METHODS = ("__getitem__", "__len__", "__getitems__")
SUBSET_ATTRIBUTES = ("dataset", "indices")
CONCAT_ATTRIBUTES = ("datasets", "cumulative_sizes")


class Leaf(NamedTuple):
    """A dataset that has images and transforms itself, rather than wrapping another one."""

    dataset: Any
    grey: bool  # its images have one channel

    @property
    def transform(self) -> Any:
        return getattr(self.dataset, "transform", None)

    @property
    def target_transform(self) -> Any:
        return getattr(self.dataset, "target_transform", None)

    @property
    def targets(self) -> tuple[str | None, str | None]:
        """The fields that are masks and boxes, as the engine takes them."""
        return targets_of(self.dataset)

    def for_engine(self) -> Any:
        """Return the transform, of which it is not known whether the engine has all steps."""
        return self.transform


class Watch:
    """Remembers the attributes that were read from a dataset, to notice when they change."""

    def __init__(self) -> None:
        self._seen: list[tuple[Any, str, Any, Any]] = []
        self._owners: list[tuple[Any, type, tuple[str, ...]]] = []

    def changes(self, dataset: Any, base: type, attributes: tuple[str, ...]) -> list[str]:
        """Return what the dataset changes compared with its library's class `base`."""
        self._owners.append((dataset, base, attributes))
        return _changes(dataset, base, attributes)

    def take(self, owner: Any, name: str, *, live: bool = False) -> Any:
        """Return an attribute. `live`: the engine reads the array in place, so new values in it are not a change."""
        value = getattr(owner, name)
        self._seen.append((owner, name, value, _place(value) if live else _contents(value)))
        return value

    def changed(self) -> bool:
        return any(_changes(*owner) for owner in self._owners) or not all(
            getattr(owner, name, None) is value and _is_still(value, noted)
            for owner, name, value, noted in self._seen
        )


def _changes(dataset: Any, base: type, attributes: tuple[str, ...]) -> list[str]:
    found = changes_of_class(type(dataset), base, _METHODS, attributes)
    return found + changes_of_instance(dataset, _METHODS)


class _Address(tuple[Any, ...]):
    """The address and layout of an array."""


def _place(array: Any) -> _Address:
    array = array if isinstance(array, np.ndarray) else array.detach().numpy()
    return _Address((array.__array_interface__["data"], array.shape, array.strides, array.dtype))


def _contents(value: Any) -> Any:
    """Return a copy of a value that may change in place, including rows of nested lists."""
    if isinstance(value, list):
        if list not in set(map(type, value)):
            return value[:]
        return [row[:] if isinstance(row, list) else row for row in value]
    if isinstance(value, np.ndarray):
        return value.copy()
    return value.detach().clone() if hasattr(value, "detach") else value


def _is_still(value: Any, noted: Any) -> bool:
    if isinstance(noted, _Address):
        return _place(value) == noted
    try:
        if isinstance(value, (list, np.ndarray)) or hasattr(value, "detach"):
            same = value == noted
            return bool(same if isinstance(same, bool) else same.all())
    except (TypeError, ValueError, RuntimeError):
        return False
    return True


class Part:
    """Samples in a form that the engine accepts: files with labels, or a dataset of the engine."""

    def __init__(
        self,
        leaves: Sequence[Leaf | MaskLeaf | BoxLeaf],
        handle: _ext.Dataset | None = None,
        files: Sequence[tuple[Any, int]] | None = None,
        choose: Callable[[Sequence[int]], _ext.Dataset] | None = None,
    ) -> None:
        self.leaves = leaves
        self._handle = handle
        self._files = files
        self._choose = choose

    def __len__(self) -> int:
        return len(self._files) if self._files is not None else len(self.handle())

    def handle(self) -> _ext.Dataset:
        if self._handle is None:
            assert self._files is not None
            labels = np.array([label for _, label in self._files], np.int64)
            self._handle = _ext.Dataset.from_files([path for path, _ in self._files], labels)
        return self._handle

    def subset(self, indices: Any) -> Part:
        if self._files is not None:
            return Part(self.leaves, files=[self._files[i] for i in indices])
        if self._choose is not None:
            return Part(self.leaves, self._choose(indices))
        return Part(self.leaves, self.handle().subset(np.asarray(indices, np.int64)))

    @staticmethod
    def joined(parts: Sequence[Part]) -> Part:
        leaves = [leaf for part in parts for leaf in part.leaves]
        if all(part._files is not None for part in parts):
            return Part(leaves, files=list(itertools.chain.from_iterable(part._files or () for part in parts)))
        return Part(leaves, _ext.Dataset.concat(tuple(part.handle() for part in parts)))


class _Kind(NamedTuple):
    """A class of a library, and the attributes that the engine reads from it."""

    module: str
    name: str
    attributes: tuple[str, ...]
    lower: Callable[[Any, Watch, list[Blocker]], Part | None]

    def base(self) -> type | None:
        return getattr(sys.modules.get(self.module), self.name, None)


def lower(dataset: Any, watch: Watch, blockers: list[Blocker]) -> Part | None:
    """Return the dataset for the engine; or None, and add all reasons why it cannot run there to `blockers`."""
    if isinstance(dataset, EngineDataset):
        return _lower_own(dataset, blockers)
    if is_wrapped(dataset):
        return _lower_wrapped(dataset, watch, blockers)
    for kind in _KINDS:
        base = kind.base()
        if base is None or not isinstance(dataset, base):
            continue
        why = watch.changes(dataset, base, kind.attributes)
        blockers.extend(Blocker(READ, reason, f"use {kind.name} itself") for reason in why)
        return None if why else kind.lower(dataset, watch, blockers)
    kind_ = type(dataset)
    blockers.append(
        Blocker(
            READ,
            f"the dataset {kind_.__module__}.{kind_.__qualname__} cannot be compiled",
            f"use stoker.datasets.{kind_.__name__}"
            if kind_.__module__.startswith("torchvision.") and kind_.__name__ in OURS
            else "use one of stoker.datasets, torchvision's DatasetFolder, ImageFolder, ImageNet, CIFAR or MNIST, or torch's "
            "Subset or ConcatDataset of these",
        )
    )
    return None


def leaves_of(dataset: Any) -> Iterator[Leaf | MaskLeaf | BoxLeaf]:
    """Yield the datasets with known transforms inside one that the engine cannot run."""
    if isinstance(dataset, EngineDataset):
        yield Leaf(dataset, False)
    if is_wrapped(dataset):
        yield _leaf_of_wrapped(dataset)
        return
    for kind in _KINDS:
        base = kind.base()
        if base is None or not isinstance(dataset, base):
            continue
        if "transform" in kind.attributes:
            yield Leaf(dataset, kind.lower is _lower_mnist)
        for inner in getattr(dataset, "datasets", [getattr(dataset, "dataset", None)]):
            yield from leaves_of(inner)


def _lower_own(dataset: Any, blockers: list[Blocker]) -> Part | None:
    for name in _METHODS:
        owner = next((c for c in type(dataset).__mro__ if name in vars(c)), None)
        if owner is not None and owner.__module__.partition(".")[0] != "stoker":
            blockers.append(
                Blocker(READ, f"{owner.__qualname__} overrides {name}, which the engine would not call")
            )
            return None
    return Part([Leaf(dataset, False)], dataset._engine(), choose=dataset._subset)


def _has_boxes(wrapped: Any) -> bool:
    kind = type(wrapped._dataset)
    return kind.__name__ == "VOCDetection" and kind.__module__.startswith("torchvision.datasets.")


def _leaf_of_wrapped(dataset: Any) -> MaskLeaf | BoxLeaf:
    if is_coco(dataset):
        return CocoLeaf(dataset)
    return BoxLeaf(dataset) if _has_boxes(dataset) else MaskLeaf(dataset)


def _lower_wrapped(dataset: Any, watch: Watch, blockers: list[Blocker]) -> Part | None:
    if is_coco(dataset):
        found = read_coco(dataset, watch, blockers)
        return None if found is None else Part([found[0]], found[1])
    if _has_boxes(dataset):
        data = wrapped_boxes(dataset, watch, blockers)
        return None if data is None else Part([BoxLeaf(dataset)], data)
    files = wrapped_files(dataset, watch, blockers)
    if blockers or files is None:
        return None
    return Part([MaskLeaf(dataset)], _ext.Dataset.concat(tuple(map(_ext.Dataset.from_files, files)), True))


def _lower_folder(dataset: Any, watch: Watch, blockers: list[Blocker]) -> Part | None:
    module: Any = sys.modules["torchvision.datasets.folder"]
    loader = dataset.loader
    before = len(blockers)
    if loader is not module.default_loader and loader is not module.pil_loader:
        blockers.append(
            Blocker(
                DECODE,
                f"the loader {loader!r} of {type(dataset).__qualname__} cannot be compiled",
                "remove it, so that the engine decodes the files",
            )
        )
    elif loader is module.default_loader and sys.modules["torchvision"].get_image_backend() != "PIL":
        blockers.append(
            Blocker(DECODE, "torchvision's image backend is not PIL", "call torchvision.set_image_backend('PIL')")
        )
    samples = watch.take(dataset, "samples")
    if not _are_whole_numbers([label for _, label in samples]):
        blockers.append(_labels_blocker(dataset, "samples"))
    return Part([Leaf(dataset, False)], files=samples) if len(blockers) == before else None


def _are_whole_numbers(labels: list[Any]) -> bool:
    """Return whether all labels are Python ints: others are collated into other types."""
    return set(map(type, labels)) <= {int} and (not labels or -(2**63) <= min(labels) <= max(labels) < 2**63)


def _labels_blocker(dataset: Any, name: str) -> Blocker:
    return Blocker(
        LABEL,
        f"{name} of {type(dataset).__qualname__} is not a list of integers, one for each image",
        "make its elements Python ints",
    )


def _array_labels(targets: Any, count: int) -> np.ndarray | None:
    """Return labels as an int64 array that the engine can read in place; None if they are not stored as one."""
    if hasattr(targets, "detach"):
        if targets.device.type != "cpu":
            return None
        targets = targets.detach().numpy()
    if not isinstance(targets, np.ndarray) or targets.dtype != np.int64 or targets.ndim != 1:
        return None
    return targets[:count] if targets.flags.c_contiguous and len(targets) >= count else None


def _lower_cifar(dataset: Any, watch: Watch, blockers: list[Blocker]) -> Part | None:
    data = dataset.data
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 4 or data.shape[3] != 3:
        blockers.append(_array_blocker(dataset, "a uint8 array of shape images x height x width x 3"))
        return None
    watch.take(dataset, "data", live=True)
    targets = dataset.targets
    if isinstance(targets, list):
        labels = watch.take(dataset, "targets")[: len(data)]
        if not _are_whole_numbers(labels) or len(labels) < len(data):
            blockers.append(_labels_blocker(dataset, "targets"))
            return None
        return _of_array(dataset, data, np.asarray(labels, np.int64), grey=False)
    there = _array_labels(targets, len(data)) if dataset.target_transform is None else None
    if there is None:  # also with a target_transform, which would be called with other types than int
        blockers.append(_labels_blocker(dataset, "targets"))
        return None
    watch.take(dataset, "targets", live=True)
    return _of_array(dataset, data, there, grey=False)


def _lower_mnist(dataset: Any, watch: Watch, blockers: list[Blocker]) -> Part | None:
    torch: Any = sys.modules["torch"]
    data, targets = dataset.data, dataset.targets
    if type(data) is not torch.Tensor or data.dtype is not torch.uint8 or data.ndim != 3 or not data.is_cpu:
        blockers.append(_array_blocker(dataset, "a uint8 tensor of shape images x height x width"))
        return None
    if type(targets) is not torch.Tensor or targets.ndim != 1 or len(targets) < len(data):
        blockers.append(_labels_blocker(dataset, "targets"))
        return None
    watch.take(dataset, "data", live=True)
    there = _array_labels(targets, len(data))
    watch.take(dataset, "targets", live=there is not None)
    if there is None:
        there = targets[: len(data)].to("cpu", torch.int64).contiguous().numpy()
    return _of_array(dataset, data.detach().numpy(), there, grey=True)


def _array_blocker(dataset: Any, wanted: str) -> Blocker:
    return Blocker(READ, f"data of {type(dataset).__qualname__} is not {wanted}", "convert it to that type and shape")


def _of_array(dataset: Any, images: np.ndarray, labels: np.ndarray, grey: bool) -> Part:
    return Part([Leaf(dataset, grey)], _ext.Dataset.from_array(images, labels))


def whole_indices(dataset: Any, watch: Watch, count: int) -> Any:
    """Return the samples that a Subset selects, all in [0, count); None if its indices are anything else."""
    given = watch.take(dataset, "indices")
    try:
        numbers = np.asarray(given)
        if numbers.size == 0 and numbers.ndim == 1:
            return numbers.astype(np.int64)
        if numbers.dtype.kind not in "iu" or numbers.ndim != 1:
            return None
        if isinstance(given, (list, tuple)) and bool in set(map(type, given)):
            return None
    except (TypeError, ValueError, RuntimeError):
        return None
    numbers = numbers.astype(np.int64)
    numbers = np.where(numbers < 0, numbers + count, numbers)
    return numbers if 0 <= numbers.min() and numbers.max() < count else None


def _lower_subset(dataset: Any, watch: Watch, blockers: list[Blocker]) -> Part | None:
    whole = lower(watch.take(dataset, "dataset"), watch, blockers)
    if whole is None:
        return None
    indices = whole_indices(dataset, watch, len(whole))
    if indices is None:
        blockers.append(Blocker(READ, "the indices of a Subset are not a list of sample numbers"))
        return None
    return whole.subset(indices.tolist())


def part_sizes_agree(dataset: Any, sizes: list[int]) -> bool:
    """Return whether the cumulative sizes of a ConcatDataset still match the lengths of its parts."""
    return list(dataset.cumulative_sizes) == list(itertools.accumulate(sizes))


def _lower_concat(dataset: Any, watch: Watch, blockers: list[Blocker]) -> Part | None:
    datasets = watch.take(dataset, "datasets")
    watch.take(dataset, "cumulative_sizes")
    parts = [lower(each, watch, blockers) for each in datasets]
    whole = [part for part in parts if part is not None]
    if len(whole) < len(parts):
        return None
    if not part_sizes_agree(dataset, list(map(len, whole))):
        blockers.append(
            Blocker(READ, "the lengths of a ConcatDataset's parts have changed since it was made", "create a new one")
        )
        return None
    try:
        return Part.joined(whole)
    except (ValueError, _ext.StokerError) as reason:
        blockers.append(Blocker(READ, str(reason)))
        return None


_KINDS = (
    _Kind(
        "torchvision.datasets.folder",
        "DatasetFolder",
        ("samples", "loader", "transform", "target_transform"),
        _lower_folder,
    ),
    _Kind(
        "torchvision.datasets.cifar", "CIFAR10", ("data", "targets", "transform", "target_transform"), _lower_cifar
    ),
    _Kind(
        "torchvision.datasets.mnist", "MNIST", ("data", "targets", "transform", "target_transform"), _lower_mnist
    ),
    _Kind("torch.utils.data.dataset", "Subset", SUBSET_ATTRIBUTES, _lower_subset),
    _Kind("torch.utils.data.dataset", "ConcatDataset", CONCAT_ATTRIBUTES, _lower_concat),
)
