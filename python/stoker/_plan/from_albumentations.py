# SPDX-License-Identifier: Apache-2.0
"""How a pipeline of Albumentations becomes one of ours: what holds steps, their probabilities, and the end.

Albumentations is never imported here: its objects are recognised by the names of their classes. The steps themselves are
registered by from_albumentations_*.py. Whatever the engine does not have leaves the whole pipeline to Python, since an
array of Albumentations is not what other steps take.
"""

from __future__ import annotations

import contextlib
import copy
import math
import numbers
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from .. import transforms as T
from .._steps.base import Transform, WithProbability, changes_of, converters
from .._steps.blockers import TRANSFORM, Blocked, Blocker
from .._steps.engine_op import EngineOp

_NEWEST = (2, 0, 8)  # the last release whose results the engine was compared with

Converter = Callable[[Any], Transform]
_steps: dict[str, Converter] = {}
converters["albumentations"] = {}


def register(name: str, converter: Converter) -> None:
    """Add a transform of Albumentations by the name of its class. `converter` returns one of ours that does always what that
    does; its `p` is seen to here. It checks all options, and raises `cannot(...)` for what the engine lacks."""
    _steps[name] = converter
    converters["albumentations"][name] = _whole


def cannot(t: Any, why: str) -> NotImplementedError:
    """Return what to raise for a transform that the engine does not have."""
    return NotImplementedError(f"Albumentations' {type(t).__name__} cannot be compiled: {why}")


def number(t: Any, name: str, least: float = -math.inf, most: float = math.inf) -> float:
    """Return an attribute that is to be a finite number in a range."""
    return checked(t, name, getattr(t, name), least, most)


def checked(t: Any, name: str, value: Any, least: float = -math.inf, most: float = math.inf) -> float:
    """Return a value if it is a finite number in a range; `name` says in messages what it is."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real) or not math.isfinite(value):
        raise cannot(t, f"{name}={value!r} is not a number")
    if not least <= value <= most:
        raise cannot(t, f"{name}={value!r} is not from {least:g} to {most:g}")
    return float(value)


def integer(t: Any, name: str, value: Any, least: int, most: int) -> int:
    """Return a value if it is an integer in a range."""
    given = checked(t, name, value, least, most)
    if given != int(given):
        raise cannot(t, f"{name}={value!r} is not an integer")
    return int(given)


def whole(t: Any, name: str, least: int, most: int) -> int:
    """Return an attribute that is to be an integer in a range."""
    return integer(t, name, getattr(t, name), least, most)


def several(t: Any, name: str, count: int, least: float = -math.inf, most: float = math.inf) -> list[float]:
    """Return an attribute that is to be so many numbers in a range."""
    values = getattr(t, name)
    if not isinstance(values, (Sequence, np.ndarray)) or isinstance(values, str) or len(values) != count:
        raise cannot(t, f"{name}={values!r} is not {count} numbers")
    return [checked(t, name, value, least, most) for value in values]


def is_on(t: Any, name: str) -> bool:
    """Return an attribute that is to be true or false."""
    value = getattr(t, name)
    if not isinstance(value, (bool, np.bool_)):
        raise cannot(t, f"{name}={value!r} is neither True nor False")
    return bool(value)


# ---- a whole pipeline ----


class ToTensor(Transform):
    """The end of a pipeline: an array becomes a tensor."""

    _makes_tensor = True

    def __init__(self, of_floats: bool = False) -> None:
        self.of_floats = of_floats

    def _spec(self) -> str:
        return "" if self.of_floats else "pil_to_tensor"


class ToArray(Transform):
    """The end of a pipeline without one: an array is what it is."""

    _makes_array = True

    def _spec(self) -> str:
        return "to_array"


class MakesFloats(Transform):
    """A step behind which the image consists of floats."""

    def __init__(self, step: Transform) -> None:
        self._step = step

    def _spec(self) -> str:
        return self._step._spec()


def _whole(t: Any) -> Transform:
    """Return the transform for what is not inside of another one of Albumentations."""
    module = sys.modules.get("albumentations")
    version = str(getattr(module, "__version__", "0"))
    if not (2, 0, 0) <= _numbers_of(version) <= _NEWEST:
        newest = ".".join(map(str, _NEWEST))
        raise Blocked([Blocker(TRANSFORM, f"the engine knows Albumentations 2.0 up to {newest}, this is {version}", "", t)])
    with _reasons(t):
        boxes = _Boxes(t)
    steps = list(_flat(_Pipeline(boxes.behind).step(t)))
    while steps and steps[-1] in boxes.behind:
        steps.pop()
    end: Transform = ToArray()
    if steps and isinstance(steps[-1], ToTensor):
        steps.pop()
        end = ToTensor(any(isinstance(step, MakesFloats) for step in steps))
    if any(isinstance(step, ToTensor) for step in steps):
        raise Blocked([Blocker(TRANSFORM, "ToTensorV2 is not its last step", "move it to the end", t)])
    text = T.Compose(steps)._spec()
    if getattr(t, "processors", None):
        _refuse_what_repeats_or_hides(t, text)
    if "crop_to_mask" in text and "crop_around_boxes" in text:
        raise Blocked([Blocker(TRANSFORM, str(cannot(t, "one step chooses by the mask, and another one by boxes")), "", t)])
    return T.Compose([*boxes.before, *steps, *boxes.end, end])


# What the engine does not do to boxes and key points: those in such a border are there twice.
_NOT_FOR_BOXES = {
    r"\b(padding_mode=(?!constant)|cv_(affine|perspective)\([^)]*border=reflect)": "its border repeats boxes and key points, "
    "which the engine does not; use border_mode=cv2.BORDER_CONSTANT",
}
_NOT_FOR_POINTS = {
    r"\bcv_(elastic|grid_distortion|optical_distortion)\((?![^)]*\bpoints=true)": "distortions lose key points, which the "
    'engine does not; use keypoint_remapping_method="direct"',
}


def _refuse_what_repeats_or_hides(t: Any, text: str) -> None:
    refused = _NOT_FOR_BOXES | (_NOT_FOR_POINTS if "keypoints" in t.processors else {})
    why = [reason for pattern, reason in refused.items() if re.search(pattern, text)]
    if why:
        raise Blocked([Blocker(TRANSFORM, str(cannot(t, reason)), "", t) for reason in why])


def _numbers_of(version: str) -> tuple[int, ...]:
    parts = version.split(".")[:3]
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else (0,)


def _flat(step: Transform) -> Iterator[Transform]:
    if isinstance(step, T.Compose):
        for one in step.transforms:
            yield from _flat(one)
    else:
        yield step


@contextlib.contextmanager
def _reasons(t: Any) -> Iterator[None]:
    """Make of errors the reason why a transform cannot be compiled."""
    try:
        yield
    except Blocked:
        raise
    except (NotImplementedError, TypeError, ValueError, AttributeError) as reason:
        raise Blocked([Blocker(TRANSFORM, str(reason), "", t)]) from None


class _Boxes:
    """What a pipeline does with boxes before its steps, behind each of them, and at the end."""

    def __init__(self, t: Any) -> None:
        self.before: list[Transform] = []
        self.behind: list[Transform] = []
        self._filters: list[Transform] = []
        self._format: list[Transform] = []
        given = dict(getattr(t, "processors", None) or {})
        boxes, points = given.pop("bboxes", None), given.pop("keypoints", None)
        if given:
            raise cannot(t, f"it has targets of other kinds: {', '.join(map(str, given))}")
        if points is not None:
            self._read_points(t, points.params)
        if boxes is not None:
            self._read(t, boxes.params)
        self.end = [*self._filters, *self._format]

    def _read(self, t: Any, params: Any) -> None:
        if params.format not in _BOX_FORMATS:
            raise cannot(t, f"bbox_params: the engine does not know format={params.format!r}")
        begin = {"clip": is_on(params, "clip"), "remove_invalid": is_on(params, "filter_invalid_bboxes")}
        limits = {name: number(params, name, 0, 1e9) for name in ("min_area", "min_width", "min_height")}
        ratio = None if params.max_accept_ratio is None else number(params, "max_accept_ratio", 1, 1e9)
        visible = number(params, "min_visibility", 0, 1)
        self._add(params, EngineOp("begin_boxes", **begin), EngineOp("filter_boxes", **limits, min_visibility=visible, max_ratio=ratio))
        self._format = _BOX_FORMATS[params.format]

    def _read_points(self, t: Any, params: Any) -> None:
        if params.format != "xy":
            raise cannot(t, f"keypoint_params: format={params.format!r} is not 'xy'")
        if is_on(params, "remove_invisible"):
            self._add(params, EngineOp("begin_points"), EngineOp("filter_points"))

    def _add(self, params: Any, begin: Transform, remove: Transform) -> None:
        self.before.append(begin)
        self._filters.append(remove)
        if is_on(params, "check_each_transform"):
            self.behind.append(remove)


# What makes them of left, top, right, bottom.
_BOX_FORMATS: dict[str, list[Transform]] = {
    "pascal_voc": [],
    "coco": [T.ConvertBoundingBoxFormat("XYWH")],
    "yolo": [EngineOp("convert_bounding_box_format", format="cxcywh", relative=True)],
    "albumentations": [EngineOp("convert_bounding_box_format", format="xyxy", relative=True)],
}

# ---- one step, and what holds steps ----


class _Pipeline:
    """Makes our transforms. `behind` is what is done to boxes behind each step."""

    def __init__(self, behind: Sequence[Transform]) -> None:
        self._behind = behind

    def step(self, t: Any, forced: bool = False) -> Transform:
        """Return our transform for one of Albumentations. `forced`: whatever its probability is, as in OneOf. SomeOf and
        OneOrOther look at theirs all the same.

        Raises:
            Blocked: With every reason why there is none.
        """
        kind = type(t)
        if not kind.__module__.startswith("albumentations."):
            why = f"only Python knows {kind.__module__}.{kind.__qualname__}"
            raise Blocked([Blocker(TRANSFORM, why, "use a transform of Albumentations, without a class of your own", t)])
        if kind.__name__ not in _steps and kind.__name__ not in _holders:
            raise Blocked([Blocker(TRANSFORM, f"the engine does not have Albumentations' {kind.__name__}", "", t)])
        changes = changes_of(t)
        if changes:
            raise Blocked([Blocker(TRANSFORM, why, "", t) for why in changes])
        with _reasons(t):
            if getattr(t, "replay_mode", False):
                raise cannot(t, "it replays what another one has drawn")
            p = number(t, "p")
            hold = _holders.get(kind.__name__)
            step = hold(self, t) if hold else _steps[kind.__name__](t)
            if hold is _Pipeline.one_or_other:
                return step
            return _with_p(step, 1.0 if forced and p > 0 and hold is not _Pipeline.some else p)

    def _inner(self, t: Any, forced: bool = False, checked: bool = False) -> list[Transform]:
        """Return the steps inside a transform, or raise Blocked with the reasons of all of them. `checked`: boxes are looked
        at behind each."""
        out: list[Transform] = []
        blockers = []
        for one in t.transforms:
            try:
                step = self.step(one, forced)
            except Blocked as reasons:
                blockers += reasons.blockers
                continue
            out.append(T.Compose([step, *self._behind]) if checked else step)
        if blockers:
            raise Blocked(blockers)
        return out

    def row(self, t: Any) -> Transform:
        return T.Compose(self._inner(t, checked=True))

    def one_of(self, t: Any) -> Transform:
        weights = [float(weight) for weight in t.transforms_ps]
        steps = self._inner(t, forced=True)
        if len(weights) != len(steps):
            raise cannot(t, "its transforms were changed after it was made")
        likely = [(step, weight) for step, weight in zip(steps, weights, strict=True) if weight > 0]
        return T.RandomChoice([step for step, _ in likely], [weight for _, weight in likely])

    def one_or_other(self, t: Any) -> Transform:
        steps = self._inner(t, forced=True)
        p = min(max(number(t, "p"), 0.0), 1.0)
        if p in (0, 1):
            return steps[0 if p else -1]
        return T.RandomChoice([steps[0], steps[-1]], [p, 1 - p])

    def some(self, t: Any) -> Transform:
        """SomeOf runs those that it has chosen in their order, RandomOrder in the order in which it has drawn them."""
        steps, n, again = self._inner(t, checked=True), whole(t, "n", 0, 256), is_on(t, "replace")
        in_order = type(t).__name__ == "SomeOf"
        if n == 0:
            return T.Compose([])
        if n > len(steps) and not again:
            raise cannot(t, f"n={n} is more than its {len(steps)} transforms")
        if n == 1:
            return T.RandomChoice(steps)
        if again and in_order:
            raise cannot(t, "replace=True")
        if again:
            return T.Compose([T.RandomChoice(steps)] * n)
        return _SomeOf(steps, n, in_order)


class _SomeOf(Transform):
    """Several of some transforms, each of which is one op of the text, as in RandomChoice."""

    def __init__(self, steps: Sequence[Transform], n: int, in_order: bool) -> None:
        self._steps, self._n, self._in_order = steps, n, in_order

    def _spec(self) -> str:
        inner = T.RandomOrder(self._steps)._spec().removeprefix("random_order")
        return EngineOp("random_some", n=self._n, sorted=self._in_order or None)._spec() + inner


def _with_p(step: Transform, p: float) -> Transform:
    """Return what does a step with a probability."""
    if p >= 1:
        return step
    if p <= 0:
        return T.Compose([])
    if isinstance(step, WithProbability) and step.p == 1:
        step = copy.copy(step)
        step.p = p
        return step
    if any(isinstance(one, (ToTensor, MakesFloats)) for one in _flat(step)):
        raise NotImplementedError(f"with p={p} some images become tensors, or floats, and others do not")
    return T.RandomApply([step], p)


_holders: dict[str, Callable[[_Pipeline, Any], Transform]] = {
    "Compose": _Pipeline.row,
    "OneOf": _Pipeline.one_of,
    "OneOrOther": _Pipeline.one_or_other,
    "RandomOrder": _Pipeline.some,
    "ReplayCompose": _Pipeline.row,  # samples do not have what was drawn, which it records
    "Sequential": _Pipeline.row,
    "SomeOf": _Pipeline.some,
}
converters["albumentations"].update(dict.fromkeys(_holders, _whole))
register("NoOp", lambda t: T.Compose([]))
