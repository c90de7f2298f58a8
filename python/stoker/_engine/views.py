# SPDX-License-Identifier: Apache-2.0
"""Batches of several views of each sample, as default_collate makes them of the lists that a transform returns."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def in_views(images: Any, views: int) -> list[Any]:
    """Return the images of each view. A batch has those of all first views before those of all second ones; if their sizes
    differ, it is a list."""
    count = len(images) // views
    parts = [images[number * count : (number + 1) * count] for number in range(views)]
    if not isinstance(images, list):
        return parts
    stack = np.stack if isinstance(images[0], np.ndarray) else sys.modules["torch"].stack
    return list(map(stack, parts))  # views of one number that differ in size raise what torch's loader raises
