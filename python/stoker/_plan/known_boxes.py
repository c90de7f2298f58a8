# SPDX-License-Identifier: Apache-2.0
"""torchvision's VOCDetection in wrap_dataset_for_transforms_v2 and with transforms= of v2, which move boxes with the image.

Its boxes are whole numbers, of type int64, and stay such: a resize leaves fractions out.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NamedTuple

from .. import _ext
from .._base.unmodified import is_from
from .._data.joint import OF_VALUES
from .._steps.base import Compose, Transform
from .._steps.blockers import READ, Blocked, Blocker
from .known_masks import MOVES, blocked, filled, flat_v2, is_v2, kinds, wrapper_of

_OF_BOXES = {"ClampBoundingBoxes", "RandomIoUCrop", "SanitizeBoundingBoxes"}
_VALUES = OF_VALUES - {"ConvertImageDtype", "RandomErasing"}


class BoxLeaf:
    """A wrapped dataset whose transforms move its boxes, too."""

    grey = False
    target_transform = None
    targets = (None, "boxes=whole_xyxy+labels+difficult")  # as the engine takes them
    remedy = "use stoker.datasets.VOCDetection, whose boxes follow all steps"

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    @property
    def transform(self) -> Any:
        return self.dataset.transforms

    def for_engine(self) -> Transform:
        """Return what the engine does to an image and its boxes. Raises Blocked."""
        found: list[Blocker] = []
        steps, is_plain = [], False
        for step in flat_v2(self.transform):
            name = type(step).__name__
            try:
                if is_plain and name in MOVES | _OF_BOXES:
                    raise blocked(f"after ToPureTensor boxes do not follow {name}", step, "move it before that")
                steps.append(_for_both(step, self.remedy))
            except Blocked as reasons:
                found += reasons.blockers
            is_plain = is_plain or name == "ToPureTensor"
        if found:
            raise Blocked(found)
        made = Compose(steps)
        if not made._makes_tensor:
            raise blocked("samples are images of Pillow", remedy="add ToImage and ToDtype(torch.float32, scale=True)")
        return made

    def form(self) -> Targets:
        """Return how the engine's fields become a sample."""
        names = {type(step).__name__ for step in flat_v2(self.transform)}
        return Targets("ToPureTensor" in names, "ToImage" in names)


class Targets(NamedTuple):
    """How a sample is made of its fields, as torchvision has it: an image, and a dict of boxes and labels."""

    is_plain: bool  # the last steps have made plain tensors of all
    is_image: bool  # the image is torchvision's
    has_id: bool = False  # COCO: there is the image's id,
    may_be_bare: bool = False  # and nothing else if an image has no objects
    is_whole: bool = True  # boxes are int64

    def sample(self, image: Any, boxes: Any, labels: Any, *others: Any) -> tuple[Any, dict[str, Any]]:
        """Return a sample of the values of its fields."""
        torch: Any = sys.modules["torch"]
        target = {"image_id": int(others[-1])} if self.has_id else {}
        made = torch.from_numpy(boxes)
        made = made.to(torch.int64) if self.is_whole else made
        if not self.is_plain:
            made = kinds().BoundingBoxes(made, format="XYXY", canvas_size=tuple(image.shape[-2:]))
            image = kinds().Image(image) if self.is_image else image
        if self.may_be_bare and not len(boxes):
            return image, target
        return image, target | {"boxes": made, "labels": torch.from_numpy(labels)}


def _for_both(step: Any, remedy: str) -> Any:
    """Return a step of v2 as one that the engine has, for the image and its boxes."""
    name = type(step).__name__
    if not is_v2(step):
        raise blocked(f"{step!r} is not a transform of torchvision's v2", step, remedy)
    if name == "ToDtype" and isinstance(step.dtype, dict):
        raise blocked("ToDtype has types for what is not an image", step, "use ToDtype(torch.float32, scale=True)")
    if name == "SanitizeBoundingBoxes" and step.labels_getter != "default":
        raise blocked(f"labels_getter={step.labels_getter!r} of SanitizeBoundingBoxes is a choice of its own", step, remedy)
    if name in _VALUES | _OF_BOXES or name == "RandomApply" and all(type(one).__name__ in _VALUES for one in step.transforms):
        return step
    if name not in MOVES:
        raise blocked(f"{name} moves boxes of whole numbers with an arithmetic that the engine does not have", step, remedy)
    return filled(step, "Image") if hasattr(step, "fill") else step


def check_wrapped(wrapped: Any, watch: Any, blockers: list[Blocker], names: tuple[str, ...]) -> None:
    """Add what was changed in a wrapped dataset, and watch these attributes of the dataset inside."""
    inner, wrapper = wrapped._dataset, wrapper_of(wrapped)
    kind = type(inner)
    blockers.extend(Blocker(READ, why) for why in watch.changes(wrapped, wrapper, ("_dataset", "_wrapper", "transforms")))
    blockers.extend(Blocker(READ, why) for why in watch.changes(inner, kind, names))
    for owner, watched in ((wrapped, ("_dataset", "_target_keys")), (inner, ("transforms", *names))):
        for name in watched:
            watch.take(owner, name)
    if inner.transforms is not None or not is_from("torchvision", wrapped._wrapper):
        blockers.append(Blocker(READ, f"the wrapped {kind.__qualname__} was changed"))


def wrapped_boxes(wrapped: Any, watch: Any, blockers: list[Blocker]) -> _ext.Dataset | None:
    """Return the images and boxes of a wrapped dataset; or None, and add why the engine cannot read it."""
    check_wrapped(wrapped, watch, blockers, ("images", "targets", "image_set"))
    if wrapped._target_keys not in (None, {"boxes", "labels"}, ["boxes", "labels"], ("boxes", "labels")):
        blockers.append(Blocker(READ, f"target_keys={wrapped._target_keys!r}", "leave them out: boxes and labels are the default"))
    return None if blockers else _read(wrapped._dataset, blockers)


def _read(inner: Any, blockers: list[Blocker]) -> _ext.Dataset | None:
    """Return what the engine reads of the same folder, if these are the files that the dataset lists."""
    if not inner.images:
        blockers.append(Blocker(READ, "the dataset is empty"))
        return None
    folder = os.path.dirname(os.path.dirname(inner.images[0]))
    try:
        data = _ext.Dataset.from_pairs(folder, None, layout="voc boxes", set=inner.image_set)
    except (OSError, ValueError, _ext.StokerError) as reason:
        blockers.append(Blocker(READ, str(reason), BoxLeaf.remedy))
        return None
    stems = [os.path.splitext(os.path.basename(data.name(k)))[0] for k in range(len(data))]
    images = [os.path.join(folder, "JPEGImages", f"{stem}.jpg") for stem in stems]
    targets = [os.path.join(folder, "Annotations", f"{stem}.xml") for stem in stems]
    if images != list(map(str, inner.images)) or targets != list(map(str, inner.targets)):
        blockers.append(Blocker(READ, "images or targets of the dataset were changed", BoxLeaf.remedy))
        return None
    return data
