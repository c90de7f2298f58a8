# SPDX-License-Identifier: Apache-2.0
"""torchvision's CocoDetection in wrap_dataset_for_transforms_v2 and with transforms= of v2, which move boxes with the image.

The dataset does not keep the name of its file, and its tables may have been changed since. So the engine gets what the tables say.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

import numpy as np

from .. import _ext
from .._steps.base import Transform
from .._steps.blockers import READ, Blocker
from .known_boxes import BoxLeaf, Targets, check_wrapped
from .known_masks import blocked, flat_v2

_REMEDY = "use stoker.datasets.CocoDetection"
_KEYS = {"image_id", "boxes", "labels"}
_NEED_BOXES = ("SanitizeBoundingBoxes", "RandomIoUCrop", "ClampBoundingBoxes")


class CocoLeaf(BoxLeaf):
    """A wrapped CocoDetection. `whole`: boxes are whole numbers; `bare`: there are images without objects."""

    remedy = _REMEDY

    def __init__(self, dataset: Any, *, whole: bool = False, bare: bool = False) -> None:
        super().__init__(dataset)
        self._whole, self._bare = whole, bare

    @property
    def targets(self) -> tuple[str | None, str | None]:  # type: ignore[override]
        return None, f"boxes={'whole_' * self._whole}xyxy+labels+area+iscrowd"

    def for_engine(self) -> Transform:
        """Return what the engine does to an image and its boxes. Raises Blocked."""
        for step in flat_v2(self.transform) if self._bare else ():
            if type(step).__name__ in _NEED_BOXES:
                raise blocked("there are images without objects, whose targets have no boxes at all", step, "leave them out")
        return super().for_engine()

    def form(self) -> Targets:
        """Return how the engine's fields become a sample."""
        return super().form()._replace(has_id=True, may_be_bare=self._bare, is_whole=self._whole)


def is_coco(wrapped: Any) -> bool:
    """Return whether a wrapped dataset is torchvision's CocoDetection."""
    kind = type(wrapped._dataset)
    return kind.__name__ == "CocoDetection" and kind.__module__.startswith("torchvision.datasets.")


def read_coco(wrapped: Any, watch: Any, blockers: list[Blocker]) -> tuple[CocoLeaf, _ext.Dataset] | None:
    """Return a wrapped CocoDetection as the engine reads it; or None, and add why it cannot."""
    inner = wrapped._dataset
    keys = wrapped._target_keys
    check_wrapped(wrapped, watch, blockers, ("coco", "ids", "root"))
    if type(inner.coco).__module__ != "pycocotools.coco":
        blockers.append(Blocker(READ, f"its tables are a {type(inner.coco).__qualname__}, not those of pycocotools", _REMEDY))
    if keys is not None and set(keys) != _KEYS:
        blockers.append(Blocker(READ, f"target_keys={keys!r}", "leave them out: image_id, boxes and labels are the default"))
    if blockers:
        return None
    for name in ("imgs", "anns", "imgToAnns"):
        watch.take(inner.coco, name)
    try:
        images, objects = _tables(inner)
        whole = _are_whole(objects)
        data = _of_tables(str(inner.root), images, [each for of_image in objects for each in of_image])
        if [each["id"] for each in images] != inner.ids:
            places = {each["id"]: place for place, each in enumerate(images)}
            data = data.subset(np.array([places[id_] for id_ in inner.ids], np.int64))
    except (KeyError, TypeError, ValueError, OSError, _ext.StokerError) as reason:
        blockers.append(Blocker(READ, f"{type(reason).__name__}: {reason}" if isinstance(reason, KeyError) else str(reason), _REMEDY))
        return None
    return CocoLeaf(wrapped, whole=whole, bare=not all(objects)), data


def _tables(inner: Any) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]:
    """Return the images of the dataset in the order of their ids, and the objects of each."""
    for id_ in inner.ids:
        if type(id_) is not int:
            raise ValueError(f"the id of an image, {id_!r}, is not a whole number")
    images, objects = [], []
    for id_ in sorted(set(inner.ids)):
        path = inner.coco.loadImgs(id_)[0]["file_name"]
        found = inner._load_target(id_)
        images.append({"id": id_, "file_name": os.fspath(path)})
        objects.append([_object(id_, each) for each in found])
    return images, objects


def _object(id_: int, given: dict[str, Any]) -> dict[str, Any]:
    box, label = given["bbox"], given["category_id"]
    if len(box) != 4 or not {*map(type, box)} <= {int, float}:
        raise ValueError(f"the box of an object in image {id_}, {box!r}, is not four numbers")
    if type(label) is not int:
        raise ValueError(f"the category of an object in image {id_}, {label!r}, is not a whole number")
    return {"image_id": id_, "category_id": label, "bbox": box}


def _are_whole(objects: list[list[dict[str, Any]]]) -> bool:
    """Return whether boxes are whole numbers, of which torchvision makes int64."""
    kinds = {all(type(side) is int for each in of_image for side in each["bbox"]) for of_image in objects if of_image}
    if len(kinds) == 2:
        raise ValueError("boxes of some images are whole numbers, and torchvision gives them another type than those of the others")
    return kinds == {True}


def _of_tables(root: str, images: list[dict[str, Any]], objects: list[dict[str, Any]]) -> _ext.Dataset:
    """Return the engine's dataset of tables in COCO's format, which it reads from a file."""
    labels = sorted({each["category_id"] for each in objects})
    categories = [{"id": label, "name": str(label)} for label in labels]
    with tempfile.NamedTemporaryFile("w", suffix=".json", prefix="stoker-") as file:
        file.write(json.dumps({"images": images, "categories": categories, "annotations": objects}, allow_nan=False))
        file.flush()
        return _ext.Dataset.from_pairs(root, file.name, layout="coco")
