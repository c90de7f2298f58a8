# SPDX-License-Identifier: Apache-2.0
"""Samples with several fields: how they are requested, and how fields other than the image reach the user."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import _ext
from .._base.tensors import to_numpy, to_torch

Fields = str | Sequence[str] | Mapping[str, str] | None
IMAGE, AUDIO, INT = "image", "audio", "int"


def fields_text(fields: Fields) -> str | None:
    """Return fields in the engine's notation, "jpg,cls" or "image/encoded=image"; None leaves the choice to it.

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
            raise TypeError(f"fields={fields!r}: {word!r} is not the name of a field")
        if "," in word or not word:
            raise ValueError(
                f"fields={fields!r}: {word!r} is not the name of a field: give one name each, without commas"
            )
    if not words:
        raise ValueError(f"fields={fields!r} is empty: give at least one, or None for the default")
    return ",".join(words)


def worked_on(pipeline: str) -> str:
    """Return the type of the field that a pipeline works on: "audio" if its first op is on sounds, else "image".

    >>> worked_on("random_apply(p=0.5){ audio_mono }"), worked_on("to_tensor"), worked_on("")
    ('audio', 'image', 'image')
    """
    return AUDIO if re.match(r"\s*(random_apply\([^)]*\)\s*\{\s*)*audio_", pipeline) else IMAGE


def first_of(fields: Sequence[tuple[str, str]], kind: str) -> int | None:
    """Return the position of the first field of a type: the one that a pipeline works on, or the label."""
    return next((place for place, (_, each) in enumerate(fields) if each == kind), None)


class _Reader:
    """Converts the columns of a batch to what the user gets."""

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
            raise _ext.CorruptSample(f"{sample}: field {name}: not valid JSON: {why}") from None


def _apart(array: Any, shapes: list[tuple[int, ...]]) -> list[Any]:
    """Split consecutive arrays of different shapes."""
    out, at = [], 0
    for shape in shapes:
        size = math.prod(shape)
        out.append(array[at : at + size].reshape(shape))
        at += size
    return out


def in_order(
    dataset: _ext.Dataset, batch: _ext.Batch, pipeline: str, made: list[Any], labels: Any, output: str
) -> list[Any]:
    """Return a batch as the loader delivers it. `made` (images; or sounds, perhaps with their lengths) replaces the
    field that the pipeline works on, and `labels` the first field of integers. These may be on a device; the other
    fields are in CPU memory."""
    fields, columns = dataset.fields, batch.columns
    place = first_of(fields, worked_on(pipeline))
    if len(columns) != len(fields) - (place is not None):
        return [*made, labels]  # samples without fields: the label is not a column
    reader = _Reader(dataset, batch, output)
    others = [field for k, field in enumerate(fields) if k != place]
    out = [reader.column(name, *column) for (name, _), column in zip(others, columns, strict=True)]
    label = first_of(others, INT)
    if label is not None:
        out[label] = labels
    if place is not None:
        out[place:place] = made
    return out


AS_THEY_ARE = ("text", "json", "bytes")  # types of fields of which a batch is a list


def collated(kinds: Sequence[str], samples: list[Any], collate: Callable[[list[Any]], Any]) -> list[Any]:
    """Return a batch of samples that were made one by one, with the structure of the engine's batches. `collate` is
    torch's function."""
    columns = [list(column) for column in zip(*samples, strict=True)]
    return [
        column if kind in AS_THEY_ARE else list(map(_as_tensor, column)) if _differ(column) else collate(column)
        for kind, column in zip(kinds, columns, strict=True)
    ]


def _differ(column: list[Any]) -> bool:
    """Return whether these are arrays or tensors of different shapes."""
    shapes = [getattr(value, "shape", None) for value in column]
    return None not in shapes and len(set(map(tuple, shapes))) > 1


def _as_tensor(value: Any) -> Any:
    return sys.modules["torch"].as_tensor(value)


def single(value: Any) -> Any:
    """Return the only sample of a field of a batch, with numbers as Python numbers."""
    first = value[0]
    return first.item() if getattr(first, "shape", None) == () else first


def sample(dataset: _ext.Dataset, batch: _ext.Batch, pipeline: str, made: Any) -> tuple[Any, ...]:
    """Return the only sample of a batch, with `made` as the result of the pipeline: Python objects, and arrays that do
    not keep the memory of the batch."""
    fields = in_order(dataset, batch, pipeline, [[made]], to_numpy(batch.labels), "numpy")
    values = [single(field) for field in fields]
    return tuple(
        value.copy() if isinstance(value, np.ndarray) and value.base is not None else value
        for value in values
    )


def pixels_of(batch: _ext.Batch) -> np.ndarray:
    """Return the image of a batch of one, height x width x channels."""
    images: Any = batch.images
    pixels = to_numpy(images[0]) if batch.ragged else to_numpy(images)[0]
    return np.ascontiguousarray(pixels.transpose(1, 2, 0))
