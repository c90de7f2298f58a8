# SPDX-License-Identifier: Apache-2.0
"""The page of drawn programs, bench/RESULTS-doctor-drawn.md: all of it from the stored results."""

from __future__ import annotations

import statistics
from collections import Counter

from table import (
    DRAWN_ERROR,
    Result,
    Summary,
    cells,
    machine_line,
    offer_text,
    percent,
    summary,
    times,
)

Part = tuple[dict, list[Result]]  # how the programs were drawn and run, and what came of them


def how_text(how: dict) -> str:
    text = f"seed {how['seed']}, {how['cpus_each']} CPUs each"
    text += f", {how['at_once']} at once" if how["at_once"] > 1 else ""
    text += ", beside a program that uses a CPU" if how["neighbours"] else ""
    return text + (", steps on the GPU" if how["gpu"] else "")


def share(part: int, whole: int) -> str:
    return f"{part} of {whole}" + (f" ({percent(part / whole)})" if whole else "")


def summary_row(name: str, numbers: Summary) -> str:
    texts = [
        name,
        str(numbers.faults + numbers.controls),
        share(numbers.right, numbers.faults),
        share(numbers.two, numbers.faults),
        share(numbers.controls - numbers.alarms, numbers.controls),
        f"{percent(statistics.median(numbers.errors) if numbers.errors else None)} of {len(numbers.errors)}",
        share(sum(numbers.holds), len(numbers.holds)),
        str(numbers.broken),
        str(numbers.changed + numbers.failed),
    ]
    return f"| {' | '.join(texts)} |"


def planted_of(result: Result) -> str:
    """The cause that is planted, as it was called if it may be called by several names."""
    if result.control:
        return "healthy"
    return result.verdict if result.verdict in result.expected else result.expected[0].partition("+")[0]


def matrix(results: list[Result]) -> list[str]:
    """A row for each planted cause, a column for each first cause. Codes below ST200 and the state of a healthy run are
    no causes."""
    seen: Counter[tuple[str, str]] = Counter()
    for result in results:
        if result.right is not None and not result.error:
            quiet = result.control and result.right
            seen[planted_of(result), "none" if quiet else result.verdict or "none"] += 1
    rows = sorted({planted for planted, _ in seen})
    columns = sorted({said for _, said in seen})
    lines = [f"| | {' | '.join(said.removeprefix('ST') for said in columns)} |", "|---" * (len(columns) + 1) + "|"]
    for planted in rows:
        numbers = (seen[planted, said] for said in columns)
        lines.append(f"| {planted} | {' | '.join(str(number) if number else '' for number in numbers)} |")
    return lines


def drawn_markdown(parts: list[Part], machines: list[dict]) -> str:
    everything = [result for _, results in parts for result in results]
    traceml = any(result.traceml for result in everything)
    head = ["run", "right in the first cause", "all causes in the first two", "healthy, without a finding"]
    head += ["median error of the gain", "interval holds", "promises not kept", "changed or failed"]
    lines = [
        "# The doctor on drawn programs",
        "",
        "Written by `tests/faults/run_faults.py --markdown` from the stored results of programs that nobody has written",
        "([how they are drawn](../tests/faults/README.md#drawn-programs)). Measured is the speed of the program without what is",
        "planted, divided by its speed with it, both in runs of their own or, with --lean, the latter while it was watched. A",
        "promise is not kept if that is less than the interval of the stated gain. What the machine could not run is left out.",
        "What mends ST219, ST221, ST233 and ST234 makes nothing faster.",
        "",
        *dict.fromkeys(machine_line(about) for about in machines),
        "",
        f"| programs | {' | '.join(head)} |",
        "|---" * (len(head) + 1) + "|",
        *(summary_row(how_text(how), summary(results)) for how, results in parts),
    ]
    if len(parts) > 1:
        lines.append(summary_row("all", summary(everything)))
    lines += ["", "## Planted (rows) and first cause (columns)", "", *matrix(everything)]
    for how, results in parts:
        if how.get("try_stoker"):
            lines += ["", f"## python -m stoker: {how_text(how)}", "", *tried_table(results)]
            continue
        title = f"## {how_text(how)}".replace("seed", "Seed", 1)
        lines += ["", title, "", *table(results, machines[0]["traceml"] if traceml else None)]
    return "\n".join(lines) + "\n"


def tried_table(results: list[Result]) -> list[str]:
    lines = ["Expected is what `stoker run --try-stoker` says, measured the program unchanged with `python -m stoker`.", ""]
    lines += ["| program | expected gain | measured | error |", "|---|---|---|---|"]
    for result in results:
        if result.tried:
            row = [result.name, offer_text(result), times(result.gained()), percent(result.offer_miss())]
            lines.append(f"| {' | '.join(row)} |")
    misses = summary(results).offers
    within = share(sum(miss <= DRAWN_ERROR for miss in misses), len(misses))
    return [*lines, "", f"Within {percent(DRAWN_ERROR)}: {within}."]


def table(results: list[Result], traceml: str | None) -> list[str]:
    head = ["program", "planted", "first cause", "right", "expected gain", "measured", "error"]
    head += [f"TraceML {traceml}"] if traceml else []
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for result in results:
        row = cells(result) + ([(result.traceml or "-").replace("|", "/")] if traceml else [])
        lines.append(f"| {' | '.join(row)} |")
    return lines
