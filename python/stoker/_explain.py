# SPDX-License-Identifier: Apache-2.0
"""The plan of a loader as a table, and one line in the log if images are decoded in Python."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ._blockers import COLLATE, DECODE, LABEL, READ, TRANSFORM, WORKERS, Blocker
from ._compile_datasets import leaves_of
from ._tables import html_table, text_table

_HEAD = ("stage", "runs in", "why", "what would change it")


class Row(NamedTuple):
    """One row of a plan.

    Attributes:
        stage: What is done.
        where: Where it runs: the engine, worker processes or this process.
        why: Why it runs there.
        remedy: What would change that; "" if nothing would.
    """

    stage: str
    where: str
    why: str = ""
    remedy: str = ""


class Plan(str):
    """What DataLoader.explain() returns: a table as text, which shows as one in a notebook.

    Attributes:
        rows: The rows of the table as values.
    """

    rows: list[Row]

    def __new__(cls, rows: Sequence[Row]) -> Plan:
        self = super().__new__(cls, text_table(*_shown(rows)))
        self.rows = list(rows)
        return self

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_table(*_shown(self.rows))


def _shown(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the heading and the cells, without columns that are empty in all rows."""
    columns = [0, 1] + [k for k in (2, 3) if any(row[k] for row in rows)]
    return [_HEAD[k] for k in columns], [[row[k] for k in columns] for row in rows]


def _ops(text: str) -> Iterator[str]:
    """Yield the ops of a pipeline's text, each random_apply together with the ops inside it."""
    depth, begin = 0, 0
    for place, letter in enumerate(text + ";"):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == ";" and depth == 0:
            if text[begin:place].strip():
                yield text[begin:place].strip()
            begin = place + 1


def engine_plan(loader: Any) -> Plan:
    """Return the plan of a loader whose dataset the engine runs."""
    native = loader._native
    engine = f"engine, {native.threads()} threads" if native.threads() else "engine, in this process"
    rows = [Row("read", engine), Row("decode", engine)]
    rows += [Row(op, engine) for op in _ops(native.compiled.text)]
    if native.compiled.target_transform is not None:
        rows.append(
            Row(
                "target_transform",
                "this process",
                f"{native.compiled.target_transform!r} is a Python function, called for each label of a batch",
            )
        )
    rows.append(Row("collate", engine, "each sample is written directly into the batch"))
    if loader.batch_transforms is not None:
        rows.append(Row("batch_transforms", "this process", "they apply to whole batches"))
    return Plan([*rows, *_tuning_rows(loader), _copy_row(loader)])


def _tuning_rows(loader: Any) -> list[Row]:
    """Return the current settings of the engine's threads, and which of them the caller fixed."""
    native = loader._native
    if not native.threads():
        return []
    now = native.stats()["tuning"]
    requested = {name: getattr(loader._requested, name) for name in ("num_workers", "prefetch_factor")}
    requested["read_ahead"] = loader.read_ahead
    given = [name for name, value in requested.items() if value not in (None, 0, "auto")]
    active = f"{now['workers']} of {native.threads()} threads active"
    setting = f"{active}, up to {now['prefetch']} batches prefetched, {now['read_ahead']} samples read ahead"
    why = f"last change: {now['last']}" if now["last"] else "not changed so far"
    return [Row("settings", setting, why, f"remove {', '.join(given)}" if given else "")]


def _copy_row(loader: Any) -> Row:
    if loader.device is not None:
        return Row("copy to device", f"the loader's CUDA stream, to {loader.device}")
    if loader.pin_memory:
        return Row("copy to device", "the script", "batches are in pinned memory if there is a GPU")
    return Row("copy to device", "the script", "batches are in CPU memory", "device='cuda'")


def gather_plan(loader: Any) -> Plan:
    """Return the plan for a dataset of tensors."""
    here = "this process"
    why = "samples are rows of tensors: whole batches are gathered at once"
    return Plan([Row("read", here, why), Row("collate", here, why), _copy_row(loader)])


def python_plan(loader: Any) -> Plan:
    """Return the plan for a dataset that runs in Python."""
    count = loader.num_workers
    where = f"{count} worker process{'es' if count > 1 else ''}" if count else "this process"
    blockers: list[Blocker] = loader._why_python
    general = [b for b in blockers if b.stage not in (READ, DECODE, TRANSFORM, LABEL, COLLATE)]
    rows: list[Row] = []
    for stage in (READ, DECODE, TRANSFORM, LABEL, COLLATE):
        own = [b for b in blockers if b.stage == stage]
        if stage == TRANSFORM:
            rows += _transform_rows(loader.dataset, own, where)
        elif own or stage in (READ, COLLATE) or stage == DECODE and any(leaves_of(loader.dataset)):
            because = own or (general if stage == READ else []) or [_follows(stage)]
            rows += [Row(stage, where, b.why, b.remedy) for b in because]
    if rows[0].why == _FOLLOWS and not general:
        rows[0] = rows[0]._replace(why="a later stage runs in Python")
    rows += [Row(b.stage, where, b.why, b.remedy) for b in general if b.stage == WORKERS]
    if loader.compile is not False:
        rows.append(Row("images opened by Pillow", f"engine, in {where}", _LAZY, ""))
    return Plan([*rows, _copy_row(loader)])


_LAZY = "decoded when torchvision's transforms have determined which part is needed"
_FOLLOWS = "the dataset runs in Python"


def _follows(stage: str) -> Blocker:
    return Blocker(stage, _FOLLOWS)


def _transform_rows(dataset: Any, blockers: list[Blocker], where: str) -> list[Row]:
    """Return a row for each step of the known transforms."""
    by_step = {id(b.step): b for b in blockers if b.step is not None}
    rows = []
    for leaf in leaves_of(dataset):
        for step in _steps(leaf.transform):
            blocker = by_step.get(id(step))
            if blocker is None:
                rows.append(Row(type(step).__name__, where, "the engine has it, but the dataset runs in Python"))
            else:
                rows.append(Row(type(step).__name__, where, blocker.why, blocker.remedy))
    rows += [Row("transform", where, b.why, b.remedy) for b in blockers if b.step is None]
    return rows


def _steps(transform: Any) -> Iterator[Any]:
    if transform is None:
        return
    if type(transform).__name__ == "Compose" and hasattr(transform, "transforms"):
        for step in transform.transforms:
            yield from _steps(step)
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
        "%s is decoded and transformed in Python, because %s%s. DataLoader.explain() lists all reasons, and "
        "compile=False silences this warning",
        type(loader.dataset).__name__,
        first,
        more,
    )
