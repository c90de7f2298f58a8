# SPDX-License-Identifier: Apache-2.0
"""Steps that only Python has, on samples with masks or boxes: they get the image and its target together.

The steps before the first such step run in the engine, which moves all parts of a sample with one draw. Behind it
torchvision's v2 does, and what only changes values gets the image alone.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _ext
from .._steps.base import Compose, Transform, compile_transform, gives_array, library_of
from .._steps.blockers import Blocked
from .._steps.boxes import SanitizeBoundingBoxes
from .._steps.single import as_pnm
from .base import opened
from .in_python import HOLDERS, arguments_of, callable_for, engine_text
from .joint_albumentations import OfArrays

# Steps that do not move pixels.
OF_VALUES = {
    "ColorJitter",
    "ConvertImageDtype",
    "GaussianBlur",
    "GaussianNoise",
    "Grayscale",
    "JPEG",
    "Normalize",
    "PILToTensor",
    "RandomAdjustSharpness",
    "RandomAutocontrast",
    "RandomChannelPermutation",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomInvert",
    "RandomPhotometricDistort",
    "RandomPosterize",
    "RandomSolarize",
    "ToDtype",
    "ToImage",
    "ToPILImage",
    "ToPureTensor",
    "ToTensor",
}
Parts = dict[str, Any]
_Step = Callable[[Any, Parts], tuple[Any, Parts]]


class Joint:
    """A transform of images with their targets.

    `masks` and `boxes` are the names of fields, for boxes each with the names of what belongs to them, among which
    `of_objects` are masks, one for each box. With one mask and no boxes the target is the mask; otherwise it is a dict of all
    these parts.
    """

    def __init__(self, transform: Any, masks: list[str], boxes: list[list[str]], of_objects: tuple[str, ...]) -> None:
        self.masks = masks
        self._of_objects = of_objects
        self.boxes = [group[0] for group in boxes]
        self._others = [name for group in boxes for name in group[1:]]
        self.names = [*masks, *self.boxes, *self._others]
        self._alone = len(self.names) == 1 and bool(masks)
        steps = list(_steps_of(transform))
        self._last = steps[-1]
        count = _known_at_first(steps)
        head = Compose(steps[:count])
        self.text = engine_text(head) or ""  # what the engine does before
        self.makes_tensor = head._makes_tensor
        self._steps = list(self._in_groups(steps[count:]))

    def __call__(self, image: Any, parts: Parts) -> tuple[Any, Parts]:
        """Return the image and the parts of its target after the steps behind the engine's. The image is Pillow's, or a
        tensor; masks are uint8 [height, width]."""
        parts = {name: self._for_steps(name, part, image) for name, part in parts.items()}
        for step in self._steps:
            image, parts = step(image, parts)
        return image, {name: _for_batch(part) for name, part in parts.items()}

    def _for_steps(self, name: str, part: Any, image: Any) -> Any:
        if name in self.masks:
            from PIL import Image

            return Image.fromarray(part)
        tensor = importlib.import_module("torch").as_tensor(part)
        if name in self._of_objects:
            return importlib.import_module("torchvision.tv_tensors").Mask(tensor)
        return self._as_boxes(tensor, image) if name in self.boxes else tensor

    def _in_groups(self, steps: list[Any]) -> Iterator[_Step]:
        """Yield a function for each step; for several in a row that only change values one for all."""
        values: list[Any] = []
        for step in [*steps, None]:
            if step is not None and type(step).__name__ in OF_VALUES and _is_theirs(step):
                values.append(step)
                continue
            if values:
                yield self._of_values(callable_for(Compose(values)))
                values = []
            if step is not None:
                yield self._of(step)

    def _of(self, step: Any) -> _Step:
        """Return what applies one step to all parts."""
        if library_of(step) == "albumentations":
            return self._of_arrays(step)
        if _is_known(step):
            return self._of_parts(self._v2(step))
        if type(step).__name__ in _CHOOSE and _is_theirs(step):
            return self._of_some(_CHOOSE[type(step).__name__], step)
        if _is_of_v2(step):  # it takes Pillow's images for images, masks too: they are to be its tensors
            return self._of_parts(step)
        return self._of_python(step)

    def _of_arrays(self, step: Any) -> _Step:
        """Return what calls Albumentations. Behind it boxes may have another format, which other steps do not know."""
        processors = getattr(step, "processors", None) or {}
        changed = "bboxes" in processors and processors["bboxes"].params.format != "pascal_voc"
        if self._of_objects or (changed and self.boxes and step is not self._last):
            why = "masks of objects" if self._of_objects else "boxes of this format behind it"
            raise NotImplementedError(f"{step!r} in transforms= runs in Python, where {why} are not possible")
        return OfArrays(step, self.masks, self.boxes, self._others)

    def _of_some(self, choose: Callable[[Any], list[int]], step: Any) -> _Step:
        """Return what applies some of the steps in a RandomApply, RandomChoice or RandomOrder."""
        inner = [list(self._in_groups([one])) for one in step.transforms]

        def call(image: Any, parts: Parts) -> tuple[Any, Parts]:
            for number in choose(step):
                for one in inner[number]:
                    image, parts = one(image, parts)
            return image, parts

        return call

    def _of_python(self, step: Callable[..., Any]) -> _Step:
        """Return what calls a step that is not known."""

        def call(image: Any, parts: Parts) -> tuple[Any, Parts]:
            made = step(image, next(iter(parts.values())) if self._alone else parts)
            if not isinstance(made, (tuple, list)) or len(made) != 2:
                raise TypeError(
                    f"{step!r} in transforms= returned {type(made).__name__}, but must return two values, the image and "
                    f"{'its mask' if self._alone else 'the dict of its targets'}, both of which it gets"
                )
            image, target = made
            if self._alone:
                return image, {self.masks[0]: target}
            if not isinstance(target, dict) or not target.keys() >= set(self.names):
                raise TypeError(f"{step!r} in transforms= must return a dict with {', '.join(self.names)} for the targets")
            return image, {name: target[name] for name in self.names}

        return call

    @staticmethod
    def _of_values(transform: Callable[[Any], Any]) -> _Step:
        def call(image: Any, parts: Parts) -> tuple[Any, Parts]:
            if getattr(image, "mode", None) == "RGB":  # opened again it may be lazy, and the engine makes the tensor
                image = opened(as_pnm(image))
            return transform(image), parts

        return call

    def _of_parts(self, step: Any) -> _Step:
        """Return what lets a step of torchvision's v2 move all parts."""
        masks: Any = importlib.import_module("torchvision.tv_tensors").Mask

        def call(image: Any, parts: Parts) -> tuple[Any, Parts]:
            held = dict(parts)
            for name in self.masks:
                held[name] = masks(np.array(parts[name]) if hasattr(parts[name], "convert") else parts[name])
            for name in self._of_objects:
                held[name] = masks(parts[name])
            for name in self.boxes:
                held[name] = self._as_boxes(parts[name], image)
            image, held = step(image, held)
            for name in self.masks:
                held[name] = _like(parts[name], held[name])
            return image, held

        return call

    def _v2(self, step: Any) -> Any:
        """Return the transform of torchvision's v2 for one of ours, or of torchvision's."""
        if _is_of_v2(step) and not hasattr(step, "transforms"):
            return step
        v2: Any = importlib.import_module("torchvision.transforms.v2")
        ours = compile_transform(step)
        made = ours._of_v2(v2)
        if made is not None:
            return made
        if isinstance(ours, HOLDERS):
            weights = {"p": ours.p} if getattr(ours, "p", None) is not None else {}  # type: ignore[union-attr]
            name = "Compose" if isinstance(ours, Compose) else type(ours).__name__  # a user's own steps are one, too
            return getattr(v2, name)(list(map(self._v2, ours.transforms)), **weights)
        given = arguments_of(ours, v2)
        if isinstance(ours, SanitizeBoundingBoxes):
            given["labels_getter"] = self._belonging
        if hasattr(ours, "mask_fill"):
            kinds: Any = importlib.import_module("torchvision.tv_tensors")
            number = 0 if self._of_objects else ours.mask_fill
            given["fill"] = {kinds.Mask: number, "others": given["fill"]}
        return getattr(v2, type(ours).__name__)(**given)

    def _belonging(self, inputs: Any) -> Any:
        return tuple(inputs[1][name] for name in self._others) or None

    @staticmethod
    def _as_boxes(boxes: Any, image: Any) -> Any:
        kind: Any = importlib.import_module("torchvision.tv_tensors").BoundingBoxes
        size = image.size[::-1] if hasattr(image, "convert") else tuple(image.shape[-2:])
        return kind(boxes, format="XYXY", canvas_size=size)


def _applied(step: Any) -> list[int]:
    chosen = bool(importlib.import_module("torch").rand(1, device="cpu") < step.p)
    return list(range(len(step.transforms))) if chosen else []


def _chosen(step: Any) -> list[int]:
    torch: Any = importlib.import_module("torch")
    weights = torch.tensor([1.0] * len(step.transforms) if step.p is None else step.p, device="cpu")
    return [int(torch.multinomial(weights, 1))]


def _ordered(step: Any) -> list[int]:
    order: list[int] = importlib.import_module("torch").randperm(len(step.transforms), device="cpu").tolist()
    return order


# Which of its steps are applied, and in which order.
_CHOOSE = {"RandomApply": _applied, "RandomChoice": _chosen, "RandomOrder": _ordered}


def _is_theirs(step: Any) -> bool:
    """Return whether it is one of our transforms, or of torchvision's."""
    return isinstance(step, Transform) or type(step).__module__.startswith("torchvision.transforms")


def _is_of_v2(step: Any) -> bool:
    """Return whether it is a transform of torchvision's v2, or derived from one."""
    return isinstance(step, getattr(sys.modules.get("torchvision.transforms.v2"), "Transform", ()))


def _steps_of(transform: Any) -> Iterator[Any]:
    """Yield the steps of a Compose, and of those in it; or the transform itself."""
    if type(transform).__name__ == "Compose" and _is_theirs(transform):
        for step in transform.transforms:
            yield from _steps_of(step)
    else:
        yield transform


def _is_known(step: Any) -> bool:
    try:
        compile_transform(step)._spec()
    except (Blocked, NotImplementedError):
        return False
    return True


def _known_at_first(steps: list[Any]) -> int:
    """Return how many of the first steps the engine runs."""
    for count in range(1, len(steps) + 1):
        try:
            text = Compose(steps[:count])._spec()
            _ext.Pipeline(text)
        except (NotImplementedError, ValueError):
            return count - 1
        # Boxes come from the engine as left, top, right, bottom: torchvision's v2 says of tensors what else they are.
        if "convert_bounding_box_format" in text or (gives_array(text) and count < len(steps)):
            return count - 1
    return len(steps)


def _like(given: Any, made: Any) -> Any:
    """Return a mask that torchvision has made in the form that was given."""
    if hasattr(given, "convert"):
        from PIL import Image

        return Image.fromarray(made.numpy())
    plain = made.as_subclass(importlib.import_module("torch").Tensor)
    return plain.numpy() if isinstance(given, np.ndarray) else plain


def _for_batch(part: Any) -> Any:
    """Return a part as the engine's samples have it."""
    if hasattr(part, "convert"):
        return np.array(part)
    if hasattr(part, "as_subclass"):
        return part.as_subclass(importlib.import_module("torch").Tensor).detach().numpy()
    return part


def joint_of(transform: Any, masks: str | None, boxes: str | None, of_objects: tuple[str, ...]) -> Joint:
    """Return what applies a transform to images with these masks and boxes, named as the engine takes them; `of_objects` are
    masks that belong to boxes."""
    if "=points" in (boxes or ""):
        raise NotImplementedError(
            f"transforms={transform!r} has a step that the engine does not have, and key points only follow steps of the "
            "engine: remove that step, or leave out keypoints="
        )
    # Without their format: the engine has made it left, top, right, bottom in pixels.
    groups = [re.sub("=[^+]*", "", group).split("+") for group in boxes.split(",")] if boxes else []
    return Joint(transform, re.sub("=[^,]*", "", masks).split(",") if masks else [], groups, of_objects)
