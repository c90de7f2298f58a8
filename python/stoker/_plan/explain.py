# SPDX-License-Identifier: Apache-2.0
"""The plan of a loader as a table, and one line in the log if images are decoded in Python."""

from __future__ import annotations

import logging
import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple, Protocol

from .. import audio
from .._base.tables import counted, html_table, text_table
from .._base.tensors import has_cuda
from .._data.joint import OF_VALUES
from .._steps.base import MAKES_TENSORS, Transform, library_of, proved
from .._steps.blockers import COLLATE, DECODE, LABEL, READ, TRANSFORM, WORKERS, Blocker, held_by
from .known_datasets import leaves_of
from .pillow_use import opens_images

_WIDTH = 80  # columns of the text


class Row(NamedTuple):
    """One row of a plan.

    Attributes:
        stage: What is done.
        where: Where it runs: the engine, worker processes or this process.
        why: Why it runs there.
        remedy: What would change that; "" if nothing would.
        cost: Milliseconds that a sample takes there, if it was measured. Steps of the engine that are made together have one
            cost, which the last of them has.
    """

    stage: str
    where: str
    why: str = ""
    remedy: str = ""
    cost: float | None = None


class Plan(str):
    """What DataLoader.explain() returns: what would change the plan, then a table; it shows as one in a notebook.

    Attributes:
        rows: The rows of the table as values.
    """

    rows: list[Row]

    def __new__(cls, rows: Sequence[Row]) -> Plan:
        self = super().__new__(cls, "\n\n".join(filter(None, (_remedies(rows), _table(rows)))))
        self.rows = list(rows)
        return self

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = ("stage", "runs in", "ms per sample", "what would change it", "why")
        cells = [(row.stage, row.where, _number(row.cost), row.remedy, row.why) for row in self.rows]
        filled = [k for k in range(len(head)) if k < 2 or any(row[k] for row in cells)]
        return html_table([head[k] for k in filled], [[row[k] for k in filled] for row in cells])


def _remedies(rows: Sequence[Row]) -> str:
    """Return what would change the plan, one paragraph for each remedy."""
    stages: dict[str, list[str]] = {}
    for row in rows:
        if row.remedy:
            stages.setdefault(row.remedy, []).append(row.stage)
    if not stages:
        return ""
    lines = [f"- {', '.join(dict.fromkeys(names))}: {remedy}" for remedy, names in stages.items()]
    return "\n".join(["what would change it:", *(textwrap.fill(x, _WIDTH, subsequent_indent="  ") for x in lines)])


def _table(rows: Sequence[Row]) -> str:
    """Return the table. Consecutive stages with the same place and reason share a row."""
    joined = []
    for (where, why), same in groupby(rows, lambda row: (row.where, row.why)):
        group = list(same)
        costs = [row.cost for row in group if row.cost is not None]
        joined.append((", ".join(row.stage for row in group), where, _number(sum(costs) if costs else None), why))
    head = ["stage", "runs in", "ms/sample", "why"]
    kept = [k for k in range(4) if k < 2 or any(row[k] for row in joined)]
    widest = [min(max(len(row[k]) for row in [head, *joined]), 24 if k < 2 else _WIDTH) for k in kept]
    if kept[-1] == 3:
        widest[-1] = _WIDTH - sum(widest[:-1]) - 2 * len(widest[:-1])
    return text_table([head[k] for k in kept], [[row[k] for k in kept] for row in joined], widest=widest)


def _number(cost: float | None) -> str:
    return "" if cost is None else f"{cost:.2f}"


def engine_plan(loader: Any) -> Plan:
    """Return the plan of a loader whose dataset the engine runs."""
    native = loader._native
    engine = f"engine, {counted(native.threads(), 'thread')}" if native.threads() else "engine, in this process"
    rows = [Row("read", engine), Row("decode", engine)]
    rows += [Row(name, engine, why) for name, why in _step_names(native.compiled.transform)]
    if native.compiled.target_transform is not None:
        rows.append(
            Row(
                "target_transform",
                "this process",
                f"{native.compiled.target_transform!r} is a Python function, called for each label of a batch",
            )
        )
    if native.compiled.transposes:
        rows.append(Row("collate_fn", "this process", "it takes a batch apart into samples, whose pixels are not copied"))
    else:
        rows.append(Row("collate", engine, "each sample is written directly into the batch"))
    if loader.batch_transforms is not None:
        rows.append(Row("batch_transforms", "this process", "they apply to whole batches"))
    return Plan([*rows, *_tuning_rows(loader), _copy_row(loader)])


def _name_of(step: Any) -> str:
    """Return the name of a function, or of a transform's class."""
    return str(getattr(step, "__name__", type(step).__name__))


def _step_names(transform: Any) -> list[tuple[str, str]]:
    """Return the steps as the script wrote them, and what those of its own are; decoding of sounds is a stage of its own."""
    steps = [step for step in steps_of(transform) if type(step) is not audio.Decode]
    return [(type(step).__name__, _own(step)) for step in steps]


def _own(step: Any) -> str:
    """Return as what a step of the user's own code runs in the engine."""
    code = getattr(step, "lambd", step)
    own = None if isinstance(step, Transform) else proved(code)
    return "" if own is None else f"as {own!r}"


def _tuning_rows(loader: Any) -> list[Row]:
    """Return the current settings of the engine's threads, and which of them the caller fixed."""
    native = loader._native
    if not native.threads():
        return []
    now = native.stats()["tuning"]
    requested = {name: getattr(loader._requested, name) for name in ("num_workers", "prefetch_factor")}
    requested["read_ahead"] = loader.read_ahead
    given = [name for name, value in requested.items() if value not in (None, 0, "auto")]
    active = f"{now['workers']} of {counted(native.threads(), 'thread')} active"
    ahead = f"up to {counted(now['prefetch'], 'batch')} prefetched, {counted(now['read_ahead'], 'sample')} read ahead"
    setting = f"{active}, {ahead}"
    why = f"last change: {now['last']}" if now["last"] else "not changed so far"
    return [Row("settings", setting, why, f"remove {', '.join(given)}" if given else "")]


def _copy_row(loader: Any) -> Row:
    if loader.device is not None:
        return Row("copy to device", f"the loader's CUDA stream, to {loader.device}")
    if loader.pin_memory and loader._native is not None:
        return _pinned_row(loader._native.device_batches, "none: batches are made on")
    if loader.pin_memory and loader._epochs is not None:
        loader._epochs.pins(loader, has_cuda())
        return _pinned_row(loader._epochs.device_batches, "a CUDA stream of the loader's, to")
    if loader.pin_memory:
        return Row("copy to device", "the script", "batches are in pinned memory if there is a GPU")
    return Row("copy to device", "the script", "batches are in CPU memory", "device='cuda'")


def _pinned_row(batches: Any, there: str) -> Row:
    return Row("copy to device", "the script" if batches.place is None else f"{there} {batches.place}", batches.said())


def gather_plan(loader: Any) -> Plan:
    """Return the plan for a dataset of tensors."""
    here = "this process"
    why = "samples are rows of tensors: whole batches are gathered at once"
    return Plan([Row("read", here, why), Row("collate", here, why), _copy_row(loader)])


class InEngine(Protocol):
    """Says whether the engine makes the pixels of a step of a dataset that runs in Python."""

    def __call__(self, step: Any, made_tensor: bool) -> bool: ...


def python_plan(loader: Any, in_engine: InEngine, costs: dict[Any, float]) -> Plan:
    """Return the plan for a dataset that runs in Python. `costs` has the milliseconds of what was measured, by the id of
    a step, or "read" and "decode"."""
    count = loader.num_workers
    where = counted(count, "worker process") if count else "this process"
    lazy = loader.compile is not False
    blockers: list[Blocker] = loader._why_python
    general = [b for b in blockers if b.stage not in (READ, DECODE, TRANSFORM, LABEL, COLLATE)]
    rows: list[Row] = []
    for stage in (READ, DECODE, TRANSFORM, LABEL, COLLATE):
        own = [b for b in blockers if b.stage == stage]
        if stage == TRANSFORM:
            rows += _transform_rows(loader.dataset, own, where, in_engine if lazy else _never, costs)
        elif stage == DECODE and lazy and not own and any(leaves_of(loader.dataset)):
            rows.append(Row(DECODE, f"engine, in {where}", _TOGETHER, cost=costs.get(DECODE)))
        elif own or stage in (READ, COLLATE) or stage == DECODE and any(leaves_of(loader.dataset)):
            because = own or [b for b in general if stage == READ and b.stage != WORKERS] or [_follows(stage)]
            rows += [Row(stage, where, b.why, b.remedy) for b in dict.fromkeys(because)]
    if rows[0].why == _FOLLOWS and not general:
        rows[0] = rows[0]._replace(why="a later stage runs in Python")
    rows[0] = rows[0]._replace(cost=costs.get(READ))
    if not count and lazy and any(leaves_of(loader.dataset)):
        rows[0] = rows[0]._replace(remedy=rows[0].remedy or f"num_workers={_cpus()}: worker processes")
    rows += [Row(b.stage, where, b.why, b.remedy) for b in general if b.stage == WORKERS]
    if lazy and not any(leaves_of(loader.dataset)) and opens_images(loader.dataset):
        rows.append(Row("images opened by Pillow", f"engine, in {where}", _LAZY, ""))
    return Plan([*rows, _copy_row(loader)])


_LAZY = "decoded when torchvision's transforms have determined which part is needed"
_FOLLOWS = "the dataset runs in Python"
_TOGETHER = "recorded, and made at once when pixels are needed"
_THEIRS = "torchvision's, where samples are made in Python"
_WHOLE = "Albumentations calls its steps itself: all of a pipeline, or none, run in the engine"
_OWN = "the script's own; what it does to images is recorded where the engine has it"


def _follows(stage: str) -> Blocker:
    return Blocker(stage, _FOLLOWS)


def _never(step: Any, made_tensor: bool) -> bool:
    return False


def _cpus() -> int:
    return len(os.sched_getaffinity(0))


def _transform_rows(
    dataset: Any, blockers: list[Blocker], where: str, in_engine: InEngine, costs: dict[Any, float]
) -> list[Row]:
    """Return a row for each step of the known transforms."""
    by_step = {id(b.step): b for b in blockers if b.step is not None}
    rows = []
    shown = []
    for leaf in leaves_of(dataset):
        joint = getattr(leaf.dataset, "is_joint", False)
        made_tensor = is_behind = False
        for step in steps_of(leaf.transform):
            name, cost = _name_of(step), costs.get(id(step))
            blocker = by_step.get(id(step)) or _inside(step, by_step)
            if blocker is not None:
                rows.append(Row(name, where, blocker.why, blocker.remedy, cost))
                shown.append(blocker)
                is_behind, in_engine = True, in_engine if not made_tensor else _never
            elif in_engine(step, made_tensor) and not (joint and is_behind and name not in OF_VALUES):
                rows.append(Row(name, f"engine, in {where}", _TOGETHER, cost=cost))
            elif library_of(step) == "albumentations":
                rows.append(Row(name, where, _WHOLE, cost=cost))
            elif library_of(step) not in ("", "functions"):
                rows.append(Row(name, where, _THEIRS, cost=cost))
            else:
                rows.append(Row(name, where, _OWN, cost=cost))
                in_engine = in_engine if not made_tensor else _never
            made_tensor = made_tensor or name in MAKES_TENSORS
    whole = [b for b in blockers if b.step is None or _holds_steps(b.step) and b not in shown]
    rows += [Row("transform", where, b.why, b.remedy) for b in whole]
    return rows


def _holds_steps(transform: Any) -> bool:
    """Return whether its steps have rows, and it has none."""
    return any(step is not transform for step in steps_of(transform))


def _inside(step: Any, by_step: dict[int, Blocker]) -> Blocker | None:
    """Return the reason why a step inside this one, such as a RandomApply, runs in Python."""
    for inner in held_by(step):
        found = by_step.get(id(inner)) or _inside(inner, by_step)
        if found is not None:
            return found
    return None


def steps_of(transform: Any) -> Iterator[Any]:
    """Yield the steps of a transform as the script wrote them, without the Composes around them."""
    if transform is None:
        return
    if type(transform).__name__ == "Compose" and hasattr(transform, "transforms"):
        for step in transform.transforms:
            yield from steps_of(step)
    else:
        yield transform


# ---- the log ----

_said = False


def _has_images_of_torchvision(dataset: Any) -> bool:
    data: Any = sys.modules.get("torch.utils.data")
    if data is not None and isinstance(dataset, data.Subset):
        return _has_images_of_torchvision(dataset.dataset)
    if data is not None and isinstance(dataset, data.ConcatDataset):
        return any(map(_has_images_of_torchvision, dataset.datasets))
    return isinstance(dataset, getattr(sys.modules.get("torchvision.datasets.vision"), "VisionDataset", ()))


def log_once(loader: Any) -> None:
    """Log one warning per process if Python decodes images that the engine could decode."""
    global _said
    if _said or not loader._why_python or not _has_images_of_torchvision(loader.dataset):
        return
    _said = True
    first, others = loader._why_python[0], len(loader._why_python) - 1
    more = f" (and {others} more)" if others else ""
    logging.getLogger("stoker").warning(
        "samples of %s are made in Python, with the engine's pixels where it can, because %s%s. DataLoader.explain() lists "
        "all reasons, and compile=False silences this warning",
        type(loader.dataset).__name__,
        first,
        more,
    )
