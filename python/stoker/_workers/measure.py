# SPDX-License-Identifier: Apache-2.0
"""What the steps of a transform cost where samples are made in Python, measured for explain()."""

from __future__ import annotations

import copy
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from .._data.base import EngineDataset
from .._data.in_python import callable_for, key_of
from .._lazy import switch as lazy
from .._plan.compile import blockers_of
from .._plan.explain import steps_of
from .._plan.known_datasets import Leaf, leaves_of
from .._steps.base import Compose
from .._steps.blockers import DECODE, READ
from .seeds import generators_kept

def in_engine(step: Any, made_tensor: bool) -> bool:
    """Return whether the engine makes the pixels of a step that is called with a lazy image, or what follows the step that
    made a tensor of one."""
    try:
        from .._lazy.compose import is_recorded
    except ImportError:  # there is no Pillow
        return False
    return is_recorded(step, made_tensor)


class _Timed:
    """A transform that notes what its steps take. Steps that the engine makes at once are called at once."""

    def __init__(self, transform: Any, costs: dict[Any, float]) -> None:
        self._costs = costs
        self._groups = list(_groups(transform))
        self.seconds = 0.0

    def __call__(self, value: Any) -> Any:
        from PIL import Image

        from .._lazy.files import as_opened
        from .._lazy.images import Lazy

        began = time.perf_counter()
        for step, call, is_own in self._groups:
            if is_own and isinstance(value, Lazy):
                self._count(DECODE, value.load)
            elif isinstance(value, Image.Image) and not is_own:
                value = as_opened(value)  # as in a Compose, which goes on in the engine
            value = self._count(id(step), call, value)
        self.seconds += time.perf_counter() - began
        return value

    def _count(self, key: Any, call: Any, *arguments: Any) -> Any:
        began = time.perf_counter()
        out = call(*arguments)
        self._costs[key] += time.perf_counter() - began
        return out


def _groups(transform: Any) -> Iterator[tuple[Any, Any, bool]]:
    """Yield the last step of each group, what calls the group, and whether it is a step that only Python has."""
    known: list[Any] = []
    for step in steps_of(transform):
        if not blockers_of(step):
            known.append(step)
            continue
        if known:
            yield known[-1], callable_for(Compose(known)), False
            known = []
        yield step, callable_for(step), True
    if known:
        yield known[-1], callable_for(Compose(known)), False


def measured(dataset: Any, count: int) -> dict[Any, float]:
    """Return the milliseconds that reading, decoding and each step take for a sample, on average over `count` samples of a
    dataset that torchvision or this package has; nothing for others."""
    leaf = next(leaves_of(dataset), None)
    if not isinstance(leaf, Leaf) or leaf.transform is None or getattr(leaf.dataset, "is_joint", False) or not len(leaf.dataset):
        return {}
    costs: dict[Any, float] = defaultdict(float)
    timed = _Timed(leaf.transform, costs)
    data = copy.copy(leaf.dataset)
    if isinstance(data, EngineDataset):
        data._singles, data._called = [], (key_of(leaf.transform), timed)
        if data._text() is not None:
            return {}  # the engine makes whole samples
    else:
        data.transform = timed
    size = len(data)
    with generators_kept(), lazy.fetching():
        data[0]  # what happens only once
        costs.clear()
        timed.seconds = 0.0
        began = time.perf_counter()
        for number in range(count):
            data[number * size // count]
        whole = time.perf_counter() - began
    costs[READ] = whole - timed.seconds
    return {key: 1000 * seconds / count for key, seconds in costs.items()}
