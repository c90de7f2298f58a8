# SPDX-License-Identifier: Apache-2.0
"""Ops of the engine that have no class in stoker.transforms: other libraries' transforms become them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .arguments import op
from .base import Transform


class EngineOp(Transform):
    """An op by its name, with its parameters and the steps inside of it.

    >>> EngineOp("crop", width=4, height=3)._spec()
    'crop(width=4, height=3)'
    """

    def __init__(self, name: str, inner: Sequence[Transform] = (), **params: Any) -> None:
        self._name = name
        self._inner = inner
        self._params = params

    def _spec(self) -> str:
        inner = "; ".join(step._spec() for step in self._inner)
        return op(self._name, **self._params) + (f"{{{inner}}}" if inner else "")
