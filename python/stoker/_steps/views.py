# SPDX-License-Identifier: Apache-2.0
"""Several views of each image: what users' own steps are that return a list of images, such as SimCLR's or DINO's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .arguments import op
from .base import Compose, Transform, flat
from .chosen import Alternatives


class _ByView(Alternatives):
    """Steps of which each view has those of its number."""

    def __init__(self, transforms: Sequence[Any]) -> None:
        self.transforms = transforms

    def _around(self, inner: str) -> str:
        return "by_view{" + inner + "}"


def _taken(rows: list[list[Transform]], end: int) -> list[Transform]:
    """Take the steps away that all rows have at this end, and return them from the end inwards."""
    taken = []
    while all(rows) and len({_texts(row[end]) for row in rows}) == 1:
        taken.append([row.pop(end) for row in rows][0])
    return taken


def _texts(step: Transform) -> tuple[str, str]:
    return step._spec(), step._spec_of_grey()


class Views(Transform):
    """A list of images, each made of the same one by steps of its own, with draws of its own."""

    _makes_views = True

    def __init__(self, rows: Sequence[Sequence[Any]]) -> None:
        self.transforms: list[Any] = []  # none that all views have in a row
        self.rows = rows
        self._makes_tensor = all(Compose(row)._makes_tensor for row in rows)

    def _whole(self) -> Compose:
        rows = [list(flat(row)) for row in self.rows]
        before, after = _taken(rows, 0), _taken(rows, -1)
        apart = [_ByView([Compose(row) for row in rows])] if any(rows) else []
        return Compose([*before, *apart, *reversed(after)])

    def _spec(self) -> str:
        return self._around(self._whole()._spec())

    def _spec_of_grey(self) -> str:
        return self._around(self._whole()._spec_of_grey())

    def _around(self, text: str) -> str:
        return "; ".join(filter(None, [op("views", n=len(self.rows)), text]))

    def __repr__(self) -> str:
        shown = [" ".join(repr(Compose(row)).split()) for row in self.rows]
        kinds = list(dict.fromkeys(shown))
        return f"{len(self.rows)} views of {', '.join(f'{shown.count(kind)} x {kind}' for kind in kinds)}"


def views_in(text: str) -> int:
    """Return how many views of a sample a pipeline makes.

    >>> from stoker._steps.views import views_in
    >>> views_in("views(n=2); random_horizontal_flip(p=0.5)"), views_in("to_tensor")
    (2, 1)
    """
    found = re.search(r"\bviews\(n=(\d+)\)", text)
    return int(found[1]) if found else 1


def have_one_size(text: str) -> bool:
    """Return whether all views of a pipeline have the same size, as far as its text says."""
    inner = re.search(r"\bby_view\{(.*)\}", text)
    if inner is None:
        return True
    depth, rows = 0, [""]
    for letter in inner[1]:
        depth += (letter == "{") - (letter == "}")
        if letter == ";" and depth == 0:
            rows.append("")
        rows[-1] += letter
    return len({tuple(re.findall(r"\bsize=([^ )]*)[,)]", row)[-1:]) for row in rows}) == 1
