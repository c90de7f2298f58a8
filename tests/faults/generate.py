# SPDX-License-Identifier: Apache-2.0
"""Cases that nobody has written: drawn from a grammar of datasets, loaders, steps and causes, by a seed.

The truth follows from the numbers that are drawn: with batches of `work_ms` per sample in W workers, a step of `step_ms`
waits if and only if a batch takes longer than W steps. What lies near the limit is not drawn. The remedy is another
number of workers, or the same program without what is planted.
"""

from __future__ import annotations

import math
import random

from cases import Case

DATASETS = ("map", "dict", "batched", "files", "stream")
STEPS = 120


def _case(name: str, codes: str, advice: str, settings: dict, remedy: dict | None, **more: object) -> Case:
    def words(values: dict) -> tuple[str, ...]:
        return tuple(
            word for key, value in values.items() if value is not False
            for word in ([f"--{key}"] if value is True else [f"--{key}", str(value)])
        )  # fmt: skip

    advised = None if remedy is None else words({**settings, **remedy})
    return Case(name, "generated.py", frozenset(codes.split()), advice, words(settings), advised, **more)


def _in_time(draw: random.Random, settings: dict) -> dict:
    """Workers whose batches wait for the step, not the other way round."""
    workers = draw.randint(1, 4)
    batch = settings["step-ms"] * workers * draw.uniform(0.2, 0.5)
    return {"num_workers": workers, "work_ms": batch / settings["batch-size"]}


def _late(draw: random.Random, settings: dict, workers: int) -> float:
    """Milliseconds of a sample, such that these workers (0: none) are too few by far."""
    return settings["step-ms"] * max(workers, 1) * draw.uniform(1.6, 3.5) / settings["batch-size"]


def _workers_for(settings: dict) -> int:
    return math.ceil(1.3 * settings["work_ms"] * settings["batch-size"] / settings["step-ms"])


def _none(draw, settings):
    return "", "more workers", _in_time(draw, settings), {"num_workers": 6}


def _serial(draw, settings):
    slow = {"num_workers": 0, "work_ms": _late(draw, settings, 0)}
    return "ST202", "workers", slow, {"num_workers": _workers_for({**settings, **slow})}


def _few(draw, settings):
    workers = draw.randint(1, 3)
    slow = {"num_workers": workers, "work_ms": _late(draw, settings, workers)}
    return "ST203", "more workers", slow, {"num_workers": _workers_for({**settings, **slow})}


def _lock(draw, settings):
    held = settings["step-ms"] / settings["batch-size"] * draw.uniform(1.8, 3)  # one holds it at a time
    return "ST231", "no lock", {"num_workers": 4, "work_ms": held}, {"fixed": True}


def _sampler(draw, settings):
    cost = settings["step-ms"] * draw.uniform(0.4, 1.5)
    return "ST230", "a quick sampler", {**_in_time(draw, settings), "dataset": "map", "cost_ms": cost}, {"fixed": True}


def _collate(draw, settings):
    cost = settings["step-ms"] * draw.uniform(2.5, 4)  # of two CPUs
    small = {"num_workers": 2, "work_ms": 0.02, "cost_ms": cost}
    return "ST229 ST204", "a quick collate_fn", small, {"fixed": True}


def _garbage(draw, settings):
    return "ST307", "no gc.collect()", {**_in_time(draw, settings), "objects": draw.randint(10, 30) * 20_000}, {"fixed": True}


def _each(code: str, advice: str):
    def rule(draw, settings):
        cost = settings["step-ms"] * draw.uniform(0.5, 2)
        return code, advice, {**_in_time(draw, settings), "cost_ms": cost}, {"fixed": True}

    return rule


def _rarely(draw, settings):
    cost = settings["step-ms"] * draw.uniform(8, 14)
    often = {**_in_time(draw, settings), "cost_ms": cost, "every": draw.randint(8, 14), "cause": "logging"}
    return "ST306", "not in the loop", often, {"fixed": True}


def _respawn(draw, settings):
    short = {"steps": 15, "epochs": 8, "start_ms": draw.randint(200, 500), **_in_time(draw, settings)}
    return "ST214", "persistent_workers", short, {"persistent": True}


CAUSES = {
    "none": _none, "serial": _serial, "few": _few, "lock": _lock, "sampler": _sampler, "collate": _collate, "gc": _garbage,
    "save": _each("ST308", "save rarely"), "validation": _each("ST309", "validate rarely"),
    "logging": _each("ST310", "log rarely"), "rarely": _rarely, "respawn": _respawn,
}  # fmt: skip


def draw_case(seed: int, number: int) -> Case:
    """The same for the same seed and number, however many are drawn."""
    draw = random.Random(f"{seed} {number}")
    cause = draw.choice([*CAUSES, "none", "none"])  # healthy programs are what most are
    settings = {
        "cause": cause, "dataset": draw.choice(DATASETS), "batch-size": draw.choice((2, 4, 8, 16)),
        "step-ms": round(draw.uniform(12, 40), 1), "steps": STEPS,
    }  # fmt: skip
    codes, advice, more, remedy = CAUSES[cause](draw, settings)
    settings |= more
    spelled = {key.replace("num_workers", "num-workers"): value for key, value in settings.items()}
    mended = {key.replace("num_workers", "num-workers"): value for key, value in remedy.items()}
    for key in ("work_ms", "cost_ms"):
        if key in spelled:
            spelled[key] = round(spelled[key], 3)
    return _case(f"{cause}_{seed}_{number}", codes, advice, spelled, mended, control=cause == "none")


def cases(seed: int, count: int) -> list[Case]:
    return [draw_case(seed, number) for number in range(count)]
