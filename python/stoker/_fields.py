# SPDX-License-Identifier: Apache-2.0
"""Samples of several fields: which are asked for, and what becomes of those that are not the image."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _ext
from ._convert import to_numpy, to_torch

Fields = str | Sequence[str] | Mapping[str, str] | None
IMAGE, AUDIO, INT = "image", "audio", "int"


def fields_text(fields: Fields) -> str | None:
    """As the engine wants them, "jpg,cls" or "image/encoded=image"; None leaves the choice to it.

    >>> fields_text(("jpg;png", "cls")), fields_text({"boxes": "float[?x4]"})
    ('jpg;png,cls', 'boxes=float[?x4]')
    """
    if fields is None or isinstance(fields, str):
        return fields
    if isinstance(fields, Mapping):
        words = [f"{name}={kind}" for name, kind in fields.items()]
    else:
        words = list(fields)
    for word in words:
        if not isinstance(word, str):
            raise TypeError(f"fields={fields!r}: {word!r} is no name of a field")
        if "," in word or not word:
            raise ValueError(
                f"fields={fields!r}: {word!r} cannot be asked for: give names without commas"
            )
    if not words:
        raise ValueError("fields: none is given")
    return ",".join(words)


def worked_on(pipeline: str) -> str:
    """The type of the field that a pipeline works on: sounds for ops on sounds, else images.

    >>> worked_on("random_apply(p=0.5){ audio_mono }"), worked_on("to_tensor"), worked_on("")
    ('audio', 'image', 'image')
    """
    return AUDIO if re.match(r"\s*(random_apply\([^)]*\)\s*\{\s*)*audio_", pipeline) else IMAGE


def first_of(fields: Sequence[tuple[str, str]], kind: str) -> int | None:
    """Which field is the first of this type: the one a pipeline works on, and the label."""
    return next((place for place, (_, each) in enumerate(fields) if each == kind), None)


class _Reader:
    """What the columns of a batch are to those who read it."""

    def __init__(self, dataset: _ext.Dataset, batch: _ext.Batch, output: str) -> None:
        self.dataset = dataset
        self.batch = batch
        self.convert: Callable[[_ext.Tensor], Any] = to_torch if output == "torch" else to_numpy

    def column(self, name: str, kind: str, values: Any, shape: Any) -> Any:
        if kind == "json":
            return [self._parse(name, row, text) for row, text in enumerate(values)]
        if shape is None:
            return values
        array = self.convert(values)
        return array.reshape(shape) if isinstance(shape, tuple) else _apart(array, shape)

    def _parse(self, name: str, row: int, text: bytes) -> Any:
        try:
            return json.loads(text) if text else None
        except ValueError as why:
            sample = self.dataset.name(int(to_numpy(self.batch.samples)[row]))
            raise _ext.CorruptSample(f"{sample}: field {name}: no JSON: {why}") from None


def _apart(array: Any, shapes: list[tuple[int, ...]]) -> list[Any]:
    """Arrays of several shapes that lie one behind the other."""
    out, at = [], 0
    for shape in shapes:
        size = math.prod(shape)
        out.append(array[at : at + size].reshape(shape))
        at += size
    return out


def in_order(
    dataset: _ext.Dataset, batch: _ext.Batch, pipeline: str, made: list[Any], labels: Any, output: str
) -> list[Any]:
    """A batch as the loader hands it out. What the pipeline `made` (images; sounds, perhaps with their
    lengths) stands in the place of its field, and `labels` in that of the first field of whole numbers;
    these may lie on a device, and the other fields are in the CPU's memory."""
    fields, columns = dataset.fields, batch.columns
    place = first_of(fields, worked_on(pipeline))
    if len(columns) != len(fields) - (place is not None):
        return [*made, labels]  # samples without fields, whose label is in no column
    reader = _Reader(dataset, batch, output)
    others = [field for k, field in enumerate(fields) if k != place]
    out = [reader.column(name, *column) for (name, _), column in zip(others, columns, strict=True)]
    label = first_of(others, INT)
    if label is not None:
        out[label] = labels
    if place is not None:
        out[place:place] = made
    return out


def single(value: Any) -> Any:
    """The one sample of a batch's field: numbers as Python's own."""
    first = value[0]
    return first.item() if getattr(first, "shape", None) == () else first


def sample(dataset: _ext.Dataset, batch: _ext.Batch, pipeline: str, made: Any) -> tuple[Any, ...]:
    """The one sample of a batch, with what the pipeline made given: Python's own objects, and arrays that
    do not keep the memory of the batch."""
    fields = in_order(dataset, batch, pipeline, [[made]], to_numpy(batch.labels), "numpy")
    values = [single(field) for field in fields]
    return tuple(
        value.copy() if isinstance(value, np.ndarray) and value.base is not None else value
        for value in values
    )
