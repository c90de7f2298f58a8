# SPDX-License-Identifier: Apache-2.0
"""stoker.verdict: what `stoker run` found out about a training run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ._base.tables import html_table, text_table

_RUNS = Path(".stoker")
_HEAD = ("cause", "what was measured", "what to change", "expected")


class Verdict:
    """The verdict on a run of `stoker run`, which prints as a table and shows as one in a notebook.

    Attributes:
        directory: The directory of the run.
        data: All of `run.json`; docs/doctor.md defines its numbers.
    """

    directory: Path
    data: dict[str, Any]

    def __init__(self, directory: Path, data: dict[str, Any]) -> None:
        self.directory = directory
        self.data = data

    @property
    def kind(self) -> str:
        """The verdict in a word or two, such as "data-bound" or "cannot tell"."""
        return self.data["verdict"]["kind"]

    @property
    def code(self) -> str:
        """The code of the main cause, for `stoker explain CODE`."""
        return self.data["verdict"]["code"]

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        return self.data["verdict"]["sentence"]

    @property
    def findings(self) -> list[dict[str, Any]]:
        """The causes, the most important first: code, title, sentence, advice, gain and more of each."""
        return self.data["findings"]

    @property
    def report(self) -> Path:
        """The path of the report as a web page."""
        return self.directory / "report.html"

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (f"{f['code']} {f['title']}", f["sentence"] or "", f["advice"] or "", _gain(f["gain"]))
            for f in self.findings
        ]

    def __str__(self) -> str:
        first = f"{self.kind} ({self.code}): {self.sentence}"
        table = [text_table(_HEAD, self._rows(), widest=40)] if self.findings else []
        return "\n\n".join([first, *table, f"report: {self.report}"])

    def __repr__(self) -> str:
        return f"Verdict({str(self.directory)!r}, {self.kind!r}, {self.code!r})"

    def _repr_html_(self) -> str:
        from html import escape  # as in html_table

        table = html_table(_HEAD, self._rows()) if self.findings else ""
        first = f"<b>{escape(self.kind)}</b> ({escape(self.code)}): {escape(self.sentence)}"
        return f"<div><p>{first}</p>{table}<p>Report: {escape(str(self.report))}</p></div>"


def _gain(gain: dict[str, float | None] | None) -> str:
    """Return how many times faster the advice makes the run, with its interval if known."""
    if gain is None or gain["mid"] is None:
        return "unknown"
    low, high = gain["low"], gain["high"]
    interval = "" if low is None or high is None or low == high else f" ({low:.2f} to {high:.2f})"
    return f"{gain['mid']:.2f}x{interval}"


def _newest() -> Path:
    runs = [p for p in _RUNS.iterdir() if p.name.isdecimal()] if _RUNS.is_dir() else []
    if not runs:
        raise FileNotFoundError(
            f"no run in {_RUNS.absolute()}: record one with 'stoker run -- python train.py', or pass the path of one"
        )
    return max(runs, key=lambda p: int(p.name))


def verdict(path: int | str | os.PathLike[str] | None = None) -> Verdict:
    """Read the verdict of a run that `stoker run -- python train.py` recorded.

    Args:
        path: The directory of the run, its `run.json`, or its number in `.stoker`. By default the newest run in
            `.stoker` of the current directory.

    Returns:
        The verdict: print it, show it in a notebook, or use its attributes.

    Raises:
        FileNotFoundError: There is no such run, or it has no `run.json` because it is still running or was
            recorded with `--no-report`.
        ValueError: The file is not a `run.json`.

    >>> import json, pathlib
    >>> pathlib.Path("run").mkdir()
    >>> found = {"kind": "compute-bound", "code": "ST201", "sentence": "the loader keeps up"}
    >>> _ = pathlib.Path("run/run.json").write_text(json.dumps({"verdict": found, "findings": []}))
    >>> stoker.verdict("run").kind
    'compute-bound'
    """
    if path is None:
        where = _newest()
    elif isinstance(path, int) or str(path).isdecimal() and not Path(path).exists():
        where = _RUNS / f"{int(path):04}"
    else:
        where = Path(path)
    if where.name != "run.json":
        where = where / "run.json"
    try:
        text = where.read_text()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{where} does not exist: there is no such run, it is still running, or it was recorded with --no-report. "
            "'stoker report RUN --json > RUN/run.json' writes it for a recorded run"
        ) from None
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict) or not isinstance(data.get("verdict"), dict) or "findings" not in data:
        raise ValueError(f"{where} is not a run.json of 'stoker run'")
    return Verdict(where.parent, data)
