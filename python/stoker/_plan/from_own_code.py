# SPDX-License-Identifier: Apache-2.0
"""How users' own classes and functions become steps, where it is proved what they do."""

from __future__ import annotations

import inspect
import sys
from types import FunctionType
from typing import Any

from .. import transforms as T
from .._base.unmodified import original_of
from .._steps.base import Compose, Transform, compile_transform, library_of, provers
from .._steps.functions import ToRGB
from .._steps.traced import Fork, Run, Tracer, Unproved, entry_of, explored, looks_up_plainly
from .._steps.views import Views
from .own_calls import Picture, are_independent, function_for, known, with_step


class Proved(Compose):
    """The steps that a user's code has been proved to be."""

    def __repr__(self) -> str:
        return ", then ".join(map(_shown, self.transforms)) or "a step that changes nothing"


def _shown(step: Any) -> str:
    """Return the text of a step, in one line."""
    if isinstance(step, (T.RandomApply, T.RandomChoice)):
        return f"{type(step).__name__}([{', '.join(map(_shown, step.transforms))}], p={step.p})"
    return " ".join(repr(step).split())


def _text_of(step: Any) -> tuple[str, str]:
    """Return what a step is to the engine, for images in colour and for grey ones."""
    whole = Compose([step])
    return whole._spec(), whole._spec_of_grey()


def _row(tree: Any) -> list[Any]:
    """Return the steps that a tree of outcomes is."""
    if not isinstance(tree, Fork):
        if type(tree) is not Picture:
            raise Unproved
        return list(tree._stoker[0])
    rows = [_row(way) for _, way in tree.ways]
    before, after = _taken(rows, 0), _taken(rows, -1)
    return [*before, *_chosen(rows, [weight for weight, _ in tree.ways]), *reversed(after)]


def _taken(rows: list[list[Any]], end: int) -> list[Any]:
    """Take the steps away that all rows begin with, or end with, and return them. Draws are independent of each other, so
    these steps are what they are without the fork."""
    taken = []
    while all(rows) and len({_text_of(row[end]) for row in rows}) == 1:
        taken.append([row.pop(end) for row in rows][0])
    return taken


def _ends_grey(row: list[Any]) -> bool:
    """Return whether the image has lost its channels, which steps behind a fork would not know."""
    return Compose([*row, ToRGB()])._spec() != Compose(row)._spec()


def _chosen(rows: list[list[Any]], weights: list[float]) -> list[Any]:
    """Return the step that is one of several rows of steps with these probabilities, or no step."""
    likely: dict[Any, tuple[list[Any], float]] = {}
    for row, weight in zip(rows, weights, strict=True):
        key = tuple(text for text in map(_text_of, row) if any(text))
        likely[key] = row, weight + likely.get(key, ((), 0.0))[1]
    nothing = likely.pop((), ((), 0.0))[1]
    rows = [row for row, _ in likely.values()]
    weights = [weight for _, weight in likely.values()]
    if any(compile_transform(step)._makes_tensor for row in rows for step in row) or any(map(_ends_grey, rows)):
        raise Unproved
    if not rows:
        return []
    chosen: Transform
    if len(rows) > 1:
        chosen = T.RandomChoice([row[0] if len(row) == 1 else Compose(row) for row in rows], weights)
        chosen = T.RandomApply([chosen], min(sum(weights), 1.0)) if nothing else chosen
    else:
        chosen = T.RandomApply(rows[0], min(weights[0], 1.0))
    chosen._wants_image = any(getattr(step, "_wants_image", False) for row in rows for step in row)
    return [chosen]


def _takes_one(function: Any, but: int = 0) -> bool:
    """Return whether it takes an image alone, beside `but` others: with its target it might do something else."""
    code = function.__code__
    return code.co_argcount == 1 + but and not code.co_flags & inspect.CO_VARARGS


def _called(transform: Any, run: Run) -> Any:
    """Return what the code makes of an image."""
    tracer = Tracer(run, known)
    if type(transform) is FunctionType:
        function = function_for(transform)
        if not _takes_one(original_of(transform)):
            raise Unproved
        return (function or tracer.function(transform))(Picture())
    module: Any = getattr(sys.modules.get("torch.nn"), "Module", None)
    if not looks_up_plainly(type(transform), (module,)):
        raise Unproved
    call = entry_of(type(transform), "__call__")
    if module is None or not isinstance(transform, module) or call is not vars(module)["__call__"]:
        if not _takes_one(call, but=1):
            raise Unproved
        return tracer.method(transform, "__call__")(Picture())
    torch = sys.modules["torch"]
    if transform._forward_hooks or transform._forward_pre_hooks or torch.nn.modules.module._has_any_global_hook():
        raise Unproved
    if type(transform) is torch.nn.Sequential:
        out = Picture()
        for step in transform:
            out = with_step(out, step)
        return out
    if "forward" in vars(transform) or not _takes_one(entry_of(type(transform), "forward"), but=1):
        raise Unproved
    return tracer.method(transform, "forward")(Picture())


def _views(made: Any) -> Views | None:
    """Return the views of an image that a list is; None if it is none."""
    if type(made) not in (list, tuple) or len(made) < 2:
        return None
    rows = [_row(view) for view in made]
    if not are_independent(made):
        raise Unproved
    return Views(rows)


def prove(transform: Any) -> Proved | Views | None:
    """Return the steps that a user's function or object is; None if that cannot be proved."""
    if isinstance(transform, type) or library_of(transform) not in ("", "functions"):
        return None
    try:
        made = explored(lambda run: _called(transform, run))
        proved = _views(made) or Proved(_row(made))
        proved._spec()
    except Exception:  # whatever the code raises when it gets what it does not expect
        return None
    return proved


provers.append(prove)
