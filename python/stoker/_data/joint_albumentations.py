# SPDX-License-Identifier: Apache-2.0
"""Albumentations' transforms in Python, on samples with masks or boxes: all parts of a sample are one call's arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

Parts = dict[str, Any]


def _to_format(boxes: Any, name: str, width: int, height: int) -> Any:
    """Return boxes of left, top, right and bottom in pixels in a format of Albumentations."""
    first, second = boxes[:, :2], boxes[:, 2:]
    if name == "coco":
        boxes = np.concatenate([first, second - first], 1)
    elif name == "yolo":
        boxes = np.concatenate([(first + second) / 2, second - first], 1)
    return boxes / np.array([width, height] * 2, np.float32) if name in ("yolo", "albumentations") else boxes


class OfArrays:
    """Calls a transform of Albumentations with an image and its target.

    `masks` and `others` are names of parts, `boxes` of those with boxes that the values in `others` belong to. Boxes get the
    format of the transform's bbox_params, and keep it.
    """

    def __init__(self, transform: Any, masks: list[str], boxes: list[str], others: list[str]) -> None:
        if len(boxes) > 1:
            raise NotImplementedError(f"{transform!r} in transforms= runs in Python, where boxes={boxes} may be only one field")
        self._transform = transform
        self._masks = masks
        self._boxes = boxes
        self._others = others

    def __call__(self, image: Any, parts: Parts) -> tuple[Any, Parts]:
        if not hasattr(image, "convert"):
            raise TypeError(f"{self._transform!r} in transforms= comes after the image has become a tensor: move it before that")
        given: Parts = {"image": np.array(image)}
        masks = [np.array(parts[name]) for name in self._masks]
        if masks:
            given |= {"mask": masks[0]} if len(masks) == 1 else {"masks": masks}
        fields = self._add_boxes(given, parts)
        made = self._transform(**given)
        out = dict(parts)
        for k, name in enumerate(self._masks):
            out[name] = made["mask"] if len(masks) == 1 else made["masks"][k]
        if self._boxes:
            boxes = np.asarray(made["bboxes"], np.float32).reshape(-1, 4 if fields else 5)
            kept = np.asarray(made[fields[0]] if fields else boxes[:, 4]).astype(np.int64)
            out[self._boxes[0]] = np.ascontiguousarray(boxes[:, :4])
            out |= {name: np.asarray(parts[name])[kept] for name in self._others}
        return made["image"], out

    def _add_boxes(self, given: Parts, parts: Parts) -> list[str]:
        """Add boxes to the arguments, with their numbers: as fields, whose names are returned, or as a column."""
        processor = (getattr(self._transform, "processors", None) or {}).get("bboxes")
        if not self._boxes:
            return []
        if processor is None:
            raise ValueError(f"{self._transform!r} in transforms= needs bbox_params, because the dataset has boxes")
        height, width = given["image"].shape[:2]
        corners = np.asarray(parts[self._boxes[0]], np.float32).reshape(-1, 4)
        boxes = _to_format(corners, processor.params.format, width, height)
        numbers = np.arange(len(boxes))
        fields = list(processor.params.label_fields or [])
        given["bboxes"] = boxes if fields else np.concatenate([boxes, numbers[:, None].astype(np.float32)], 1)
        given |= dict.fromkeys(fields, numbers.tolist())
        return fields
