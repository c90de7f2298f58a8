# SPDX-License-Identifier: Apache-2.0
"""Samples as torchvision's detection models take them: an image, and a dict of tensors that say what they are."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._steps.boxes import format_word


class Dicts(NamedTuple):
    """How the fields of a sample become its image and a dict of the others."""

    names: tuple[str, ...]  # of the fields, of which the first is the image
    boxes: tuple[str, ...]  # among them
    masks: tuple[str, ...]
    format: str
    channels_last: bool = False  # tensors of images are height x width x channels

    def sample(self, image: Any, *values: Any) -> tuple[Any, dict[str, Any]]:
        """Return a sample of these values of its fields."""
        kinds: Any = importlib.import_module("torchvision.tv_tensors")
        torch: Any = importlib.import_module("torch")
        target = {}
        for name, value in zip(self.names[1:], values, strict=True):
            part = torch.from_numpy(value) if isinstance(value, np.ndarray) else value
            if name in self.boxes:
                part = kinds.BoundingBoxes(part, format=self.format, canvas_size=_size_of(image, self.channels_last))
            elif name in self.masks:
                part = kinds.Mask(part)
            target[name] = part
        return image, target


def _size_of(image: Any, channels_last: bool) -> Sequence[int]:
    """Return the height and the width of Pillow's image, an array, or a tensor."""
    if hasattr(image, "convert"):
        return image.size[::-1]  # type: ignore[no-any-return]
    return tuple(image.shape[:2] if channels_last or isinstance(image, np.ndarray) else image.shape[-2:])


# Of Albumentations' bbox_params; torchvision's boxes are in pixels.
_ALBUMENTATIONS = {"pascal_voc": "XYXY", "coco": "XYWH"}


def _formats(transform: Any) -> Iterator[str]:
    if type(transform).__module__.startswith("albumentations."):
        params = getattr((getattr(transform, "processors", None) or {}).get("bboxes"), "params", None)
        if params is not None and params.format not in _ALBUMENTATIONS:
            raise ValueError(f"as_dict=True makes torchvision's boxes, which are in pixels, not of format={params.format!r}")
        yield "XYXY" if params is None else _ALBUMENTATIONS[params.format]
        return
    for step in getattr(transform, "transforms", ()) if type(transform).__name__ == "Compose" else [transform]:
        if step is not transform:
            yield from _formats(step)
        elif type(step).__name__ == "ConvertBoundingBoxFormat":
            yield format_word(step.format).upper()


def format_after(transform: Any) -> str:
    """Return the format that a transform gives boxes.

    Raises:
        ValueError: torchvision does not have it.

    >>> from stoker._data.dicts import format_after
    >>> format_after(T.Compose([T.ConvertBoundingBoxFormat("xywh"), T.ToTensor()])), format_after(None)
    ('XYWH', 'XYXY')
    """
    return ["XYXY", *_formats(transform)][-1]
