# SPDX-License-Identifier: Apache-2.0
"""What came of one planted fault, and the tables of all: for the terminal and in Markdown."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field

RIGHT = 0.90  # at least this share of first causes
ERROR = 0.10  # at most this median error of the predicted gain
CLEAR = 1.25  # a planted cause is worth at least this, once mended
EQUAL = 0.03  # equal runs differ by this, so that a measured gain is known no better
SAME = 0.12  # a control's advice changes no more than this
# Of drawn programs: all causes among the first two, controls without an alarm, error of gains, intervals that hold.
DRAWN_TWO, DRAWN_QUIET, DRAWN_ERROR, DRAWN_HOLD = 0.97, 0.97, 0.15, 0.80


@dataclass
class Result:
    name: str
    expected: list[str]
    advice: str
    control: bool
    held_out: bool
    gain: bool
    before: list[float] = field(default_factory=list)  # steps per second, bare
    after: list[float] = field(default_factory=list)  # with the advice applied
    watched: float | None = None  # as `before`, under the doctor
    verdict: str | None = None
    others: list[str] = field(default_factory=list)
    right: bool | None = None
    two: bool | None = None  # the first two causes name all that is planted
    said: str | None = None  # the verdict, as it was printed
    predicted: dict | None = None  # low, mid, high
    overhead: float | None = None  # share of the run's time that the watch measured for itself
    changed: list[str] = field(default_factory=list)  # what the watch changed for the user
    traceml: str | None = None
    error: str | None = None
    offer: dict | None = None  # low, mid, high of what --try-stoker says that `python -m stoker` gains
    tried: list[float] = field(default_factory=list)  # steps per second with that

    def take(self, judged: dict, changed: list[str]) -> None:
        for name, value in judged.items():
            setattr(self, name, value)
        self.changed = changed

    def measured(self) -> float | None:
        if not self.before or not self.after:
            return None
        return statistics.median(self.after) / statistics.median(self.before)

    def slowdown(self) -> float | None:
        """What the watch cost: the share by which the rate fell."""
        return None if not self.watched or not self.before else 1 - self.watched / statistics.median(self.before)

    def noise(self) -> float:
        """How far the rates of equal runs lie apart, as a share."""
        return max((max(rates) / min(rates) - 1 for rates in (self.before, self.after) if rates), default=0)

    def miss(self) -> float | None:
        """The error of the predicted gain, where there is one to compare."""
        measured = self.measured()
        if not (self.gain and not self.control and self.right and self.predicted and measured):
            return None
        return abs(self.predicted["mid"] - measured) / measured

    def holds(self) -> bool | None:
        """Whether the measured gain is in the interval of the predicted one."""
        if self.miss() is None or not {"low", "high"} <= self.predicted.keys():
            return None
        low, high = self.predicted["low"] * (1 - EQUAL), self.predicted["high"] * (1 + EQUAL)
        return low <= self.measured() <= high

    def gained(self) -> float | None:
        """With `python -m stoker`."""
        return statistics.median(self.tried) / statistics.median(self.before) if self.tried and self.before else None

    def offer_miss(self) -> float | None:
        if not self.offer or self.offer.get("mid") is None or not self.gained():
            return None
        return abs(self.offer["mid"] - self.gained()) / self.gained()

    def breaks(self) -> bool:
        """Whether less was measured than was promised."""
        return self.holds() is False and self.measured() < self.predicted["low"] * (1 - EQUAL)

    def planted(self) -> bool:
        """Whether the advice helps as much as it must, or not at all."""
        measured = self.measured()
        if self.error:
            return False
        if not self.gain:
            return bool(self.after)
        if self.control:
            return measured is not None and abs(measured - 1) <= SAME
        return measured is not None and measured >= CLEAR


@dataclass
class Summary:
    faults: int
    right: int
    controls: int
    alarms: int
    errors: list[float]
    changed: int
    failed: int
    overheads: list[float]
    slowdowns: list[float]
    two: int
    holds: list[bool]
    broken: int  # promises of more than was measured
    offers: list[float]  # errors of what --try-stoker predicted

    def passed_drawn(self) -> bool:
        """What is asked of drawn programs."""
        return (
            self.right >= RIGHT * self.faults
            and self.two >= DRAWN_TWO * self.faults
            and self.controls - self.alarms >= DRAWN_QUIET * self.controls
            and self.changed == 0
            and self.failed == 0
            and (not self.errors or statistics.median(self.errors) <= DRAWN_ERROR)
            and (not self.holds or sum(self.holds) >= DRAWN_HOLD * len(self.holds))
        )

    def passed(self, gains: bool) -> bool:
        good = self.right >= RIGHT * self.faults and self.alarms == 0 and self.changed == 0 and self.failed == 0
        return good and (not gains or not self.errors or statistics.median(self.errors) <= ERROR)


def summary(results: list[Result]) -> Summary:
    faults = [result for result in results if not result.control]
    controls = [result for result in results if result.control]
    return Summary(
        faults=len(faults),
        right=sum(bool(result.right) for result in faults),
        controls=len(controls),
        alarms=sum(result.right is False for result in controls),
        errors=[miss for result in faults if (miss := result.miss()) is not None],
        changed=sum(bool(result.changed) for result in results),
        failed=sum(result.error is not None for result in results),
        overheads=[result.overhead for result in results if result.overhead is not None],
        slowdowns=[loss for result in results if (loss := result.slowdown()) is not None],
        two=sum(bool(result.two) for result in faults),
        holds=[holds for result in faults if (holds := result.holds()) is not None],
        broken=sum(result.breaks() for result in faults),
        offers=[miss for result in results if (miss := result.offer_miss()) is not None],
    )


def confusions(results: list[Result]) -> list[str]:
    """What the wrong first causes were called."""
    wrong = Counter(
        ("/".join(row.expected) or "healthy", row.verdict or "nothing") for row in results if row.right is False and not row.error
    )
    return [f"{planted} was called {verdict}: {count}" for (planted, verdict), count in wrong.most_common()]


def times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def offer_text(result: Result) -> str:
    offer = result.offer or {}
    return times(offer.get("mid")) + (f" ({offer['low']:.2f}-{offer['high']:.2f})" if offer.get("low") is not None else "")


def percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.0f} %"


def cells(result: Result) -> list[str]:
    """The columns that both tables share."""
    right = {True: "yes", False: "NO", None: "-"}[result.right]
    predicted = result.predicted or {}
    span = f" ({predicted['low']:.2f}-{predicted['high']:.2f})" if {"low", "high"} <= predicted.keys() else ""
    return [
        result.name + (" *" if result.held_out else ""),
        "healthy" if result.control else "/".join(result.expected),
        result.verdict or "none",
        right,
        times(predicted.get("mid")) + span,
        times(result.measured()) + (" noisy" if result.noise() > 0.15 else ""),
        percent(result.miss()),
    ]


def plain_row(result: Result) -> str:
    widths = (25, 12, 7, 4, 20, 12, 6)
    row = " ".join(text.ljust(width) for text, width in zip(cells(result), widths, strict=True))
    notes = [f"the watch changed {what}" for what in result.changed]
    if result.error:
        notes.append(result.error)
    if result.tried:
        notes.append(f"python -m stoker: expected {offer_text(result)}, measured {times(result.gained())}")
    if result.traceml:
        notes.append(f"TraceML: {result.traceml}")
    return "\n    ".join([row.rstrip(), *notes])


def plain_summary(numbers: Summary, bare: bool = False, drawn: bool = False) -> str:
    if bare:
        return f"{numbers.faults} faults and {numbers.controls} controls measured without the doctor"
    lines = [
        f"first cause right      {numbers.right} of {numbers.faults}"
        f" ({percent(numbers.right / numbers.faults) if numbers.faults else '-'}; at least {percent(RIGHT)})",
        f"all causes in two      {numbers.two} of {numbers.faults}" + (f" (at least {percent(DRAWN_TWO)})" if drawn else ""),
        f"false alarms           {numbers.alarms} of {numbers.controls} controls"
        f" ({f'at most {percent(1 - DRAWN_QUIET)}' if drawn else 'none allowed'})",
        f"output changed by us   {numbers.changed} (none allowed)",
        f"runs that failed       {numbers.failed}",
    ]
    if numbers.overheads:
        lines.append(f"overhead of the watch  {100 * statistics.median(numbers.overheads):.1f} % (median, as it measures itself)")
    if numbers.slowdowns:
        lines.append(f"steps slower by        {100 * statistics.median(numbers.slowdowns):.1f} % (median, watched against bare)")
    if numbers.errors:
        median = statistics.median(numbers.errors)
        most = percent(DRAWN_ERROR if drawn else ERROR)
        lines.append(f"median error of gain   {percent(median)} of {len(numbers.errors)} (at most {most})")
    if numbers.offers:
        within = sum(miss <= DRAWN_ERROR for miss in numbers.offers)
        median = percent(statistics.median(numbers.offers))
        lines.append(f"python -m stoker       {within} of {len(numbers.offers)} within {percent(DRAWN_ERROR)} (median {median})")
    if numbers.holds:
        wanted = f" (at least {percent(DRAWN_HOLD)})" if drawn else ""
        lines.append(f"interval of gain holds {sum(numbers.holds)} of {len(numbers.holds)}{wanted}")
        lines.append(f"promises not kept      {numbers.broken}")
    return "\n".join(lines)


def machine_line(about: dict) -> str:
    where = about["cpu"] + (f", {about['gpu']}" if about["gpu"] else "")
    return f"{where}; Linux {about['kernel']}, Python {about['python']}, torch {about['torch']}; {about['date']}."


def markdown(results: list[Result], machines: list[dict]) -> str:
    """bench/RESULTS-doctor.md: all of it, from the stored results."""
    traceml = any(result.traceml for result in results)
    head = ["case", "planted", "first cause", "right", "predicted gain", "measured gain", "error"]
    head += [f"TraceML {machines[0]['traceml']}"] if traceml else []
    lines = [
        "# The doctor on planted faults",
        "",
        "Written by `tests/faults/run_faults.py --markdown`; [tests/faults/README.md](../tests/faults/README.md) describes what each",
        "case plants and why its remedy helps. Cases marked `*` were held out: no threshold was set with them. Predicted is the",
        "gain of the first advice, with its interval; measured is the rate of the same program with the advice applied, divided",
        "by the rate without it, as the median of interleaved runs without the doctor. `noisy` marks cases whose equal runs",
        "differed by more than 15 %.",
        "",
        *(machine_line(about) for about in machines),
        "",
    ]
    for title, control in (("Planted faults", False), ("Healthy controls", True)):
        rows = [result for result in results if result.control == control]
        lines += [f"## {title}", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for result in rows:
            row = cells(result) + ([(result.traceml or "-").replace("|", "/")] if traceml else [])
            lines.append(f"| {' | '.join(row)} |")
        lines.append("")
    lines += ["## Summary", "", "| | all | open | held out |", "|---|---|---|---|"]
    parts = [summary(part) for part in (results, *by_openness(results))]
    lines += summary_rows(parts)
    if wrong := confusions(results):
        lines += ["", "Wrong first causes:", "", *(f"- {line}" for line in wrong)]
    return "\n".join(lines) + "\n"


def by_openness(results: list[Result]) -> tuple[list[Result], list[Result]]:
    return [row for row in results if not row.held_out], [row for row in results if row.held_out]


def summary_rows(parts: list[Summary]) -> list[str]:
    def row(name: str, texts: list[str]) -> str:
        return f"| {name} | {' | '.join(texts)} |"

    return [
        row(f"first cause right (at least {percent(RIGHT)})", [f"{part.right} of {part.faults}" for part in parts]),
        row("false alarms (none)", [f"{part.alarms} of {part.controls}" for part in parts]),
        row(
            f"median error of the predicted gain (at most {percent(ERROR)})",
            [percent(statistics.median(part.errors) if part.errors else None) for part in parts],
        ),
        row("programs whose output or exit code changed (none)", [str(part.changed) for part in parts]),
        row(
            "overhead of the watch as it measures itself, median",
            [f"{100 * statistics.median(part.overheads):.1f} %" if part.overheads else "-" for part in parts],
        ),
        row(
            "steps slower under the watch, median",
            [f"{100 * statistics.median(part.slowdowns):.1f} %" if part.slowdowns else "-" for part in parts],
        ),
    ]
