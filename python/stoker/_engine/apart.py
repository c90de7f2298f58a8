# SPDX-License-Identifier: Apache-2.0
"""Batches taken apart into samples, for collate functions that transpose them, and for samples with a dict."""

from __future__ import annotations

from typing import Any

from .. import _ext
from .._data.fields import in_order
from .._plan.compile import Compiled
from .labels import BLANK, labels_of


def _alone(value: Any) -> Any:
    """Return a sample's value of a column: Python's number for one of NumPy's."""
    return value.item() if getattr(value, "shape", None) == () else value


def columns_of(batch: _ext.Batch, compiled: Compiled, images: Any, *, blanks: bool) -> list[tuple[Any, ...]]:
    """Return what `dataset[i]` returns for each sample of a batch, transposed: a tuple of the images, and so on. `images` is
    what the engine made, converted already; None for samples without one."""
    labels = labels_of(batch, compiled.handle, blanks=blanks)
    target = compiled.target_transform
    if target is not None:
        labels = [label if blanks and label == BLANK else target(label) for label in labels]
    fields = in_order(compiled.handle, batch, compiled.text, [images], labels, "numpy")
    columns = [tuple(map(_alone, field)) for field in fields]
    form = compiled.form()
    if form is None:
        return columns
    samples = [form.sample(*values) for values in zip(*columns, strict=True)]
    return [tuple(image for image, _ in samples), tuple(target for _, target in samples)]
