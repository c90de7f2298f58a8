# SPDX-License-Identifier: Apache-2.0
"""Transforms of stoker.datasets that the engine does not have: they are called in Python, with a PIL image, or with an
array if they are Albumentations'.

Transforms of this package beside them become torchvision's of the same name, which take whatever the steps before them
return: images or tensors.
"""

from __future__ import annotations

import copy
import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _ext
from .._base.tensors import dtype_name
from .._steps.base import Compose, Transform, in_python, pipeline_text
from .._steps.chosen import RandomApply, RandomChoice, RandomOrder

HOLDERS = (Compose, RandomApply, RandomChoice, RandomOrder)


def engine_text(transform: Any) -> str | None:
    """Return the text of the pipeline that the engine runs for a dataset's transform; None if Python runs it."""
    try:
        text = pipeline_text(transform)
        if transform is None or isinstance(transform, Transform):
            return text  # written for the engine: its author shall see the engine's error when the pipeline is opened
        _ext.Pipeline(text)
    except (NotImplementedError, _ext.InvalidArgument) as reason:
        if not callable(transform):
            raise TypeError(f"transform={transform!r} is neither a transform nor a function") from reason
        return None
    return text


def key_of(transform: Any) -> Any:
    """Return what changes whenever `callable_for` would return something else."""
    if isinstance(transform, HOLDERS) or _is_theirs_with_steps(transform):
        own = type(transform) if isinstance(transform, HOLDERS) else id(transform)
        return own, repr(getattr(transform, "p", None)), tuple(map(key_of, transform.transforms))
    return (type(transform), transform._spec()) if isinstance(transform, Transform) else id(transform)


def callable_for(transform: Any) -> Callable[[Any], Any]:
    """Return a function that does the same to a PIL image, or to what the steps before it have made of it."""
    if _is_theirs_with_steps(transform):
        return _with_steps_of_theirs(transform)
    if not isinstance(transform, Transform):
        return _OfArrays(transform) if _is_of_arrays(transform) else transform
    try:
        theirs: Any = importlib.import_module("torchvision.transforms")
    except ImportError:
        raise ModuleNotFoundError(
            f"the transform has a step that runs in Python, where {type(transform).__name__} needs torchvision: install "
            "it, or remove that step"
        ) from None
    name = type(transform).__name__
    if isinstance(transform, HOLDERS):
        weights = {"p": transform.p} if isinstance(transform, (RandomApply, RandomChoice)) else {}
        return getattr(theirs, name)(list(map(callable_for, transform.transforms)), **weights)
    if not hasattr(theirs, name):
        theirs = importlib.import_module("torchvision.transforms.v2")
    return getattr(theirs, name)(**arguments_of(transform, theirs))


def _called(transform: Transform, image: Any) -> Any:
    """Return what a transform with steps that only Python has makes of an image."""
    if isinstance(image, np.ndarray):
        from PIL import Image

        image = Image.fromarray(image)
    return callable_for(transform)(image)


in_python.append(_called)


def _is_of_arrays(transform: Any) -> bool:
    """Return whether it is a transform of Albumentations, which takes an array by name and returns a dict."""
    return any(kind.__module__.startswith("albumentations.") for kind in type(transform).__mro__)


class _OfArrays:
    """Calls a transform of Albumentations with an image."""

    def __init__(self, transform: Any) -> None:
        self._transform = transform

    def __call__(self, image: Any) -> Any:
        return self._transform(image=np.array(image))["image"]


def _is_theirs_with_steps(transform: Any) -> bool:
    """Return whether it is torchvision's Compose, RandomApply, RandomChoice or RandomOrder of a list of steps."""
    steps = getattr(transform, "transforms", None)
    return type(transform).__module__.startswith("torchvision.transforms") and isinstance(steps, (list, tuple))


def _with_steps_of_theirs(transform: Any) -> Any:
    """Return the same transform, in which steps of this package have become torchvision's."""
    steps = list(map(callable_for, transform.transforms))
    if all(made is given for made, given in zip(steps, transform.transforms, strict=True)):
        return transform
    made = copy.copy(transform)
    made.transforms = steps
    return made


def arguments_of(transform: Transform, theirs: Any) -> dict[str, Any]:
    """Return the arguments of torchvision's transform of the same name."""
    made_with = inspect.signature(type(transform)).parameters
    given = {name: getattr(transform, name) for name in made_with if name != "mask_fill"}  # images alone run in Python
    if "interpolation" in given:
        given["interpolation"] = theirs.InterpolationMode(given["interpolation"].value)
    if "dtype" in given:
        given["dtype"] = getattr(importlib.import_module("torch"), str(dtype_name(given["dtype"])))
    if "brightness" in given:  # ColorJitter keeps None for what does not change
        given = {name: 0 if value is None else value for name, value in given.items()}
    return given

