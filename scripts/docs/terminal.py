# SPDX-License-Identifier: Apache-2.0
"""Runs a command in a terminal and draws what it shows, when it shows it, as an SVG that plays once in real time.

    python scripts/docs/terminal.py docs/img/demo.svg stoker demo
    python scripts/docs/terminal.py --still --file docs/img/train.py docs/img/verdict.svg stoker run -- python train.py

The command runs twice in a folder that is empty but for the files given, and the second run is recorded: the first
fills the caches. Viewers that cannot animate, or whose users prefer reduced motion, show the last screen; so does --still.
"""

from __future__ import annotations

import argparse
import codecs
import itertools
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

ROWS, COLUMNS = 50, 110
LEFT, TOP, LINE, CHARACTER = 18, 34, 18, 7.8
CONTROL = re.compile(r"\033\[[0-9]+m|\033\[K|[\r\n]|[^\033\r\n\x00-\x1f]+|(?s:.)")
STYLES = {"0": "", "1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow"}
STYLE = """
    text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #e6edf3;
           white-space: pre }
    .paper { fill: #0d1117; stroke: #30363d }
    .bold { font-weight: 700; fill: #ff8a4c }
    .dim { fill: #9da7b3 }
    .red { fill: #ff7b72 }
    .green { fill: #7ee787 }
    .yellow { fill: #e3b341 }
    .small { font-size: 12px; fill: #9da7b3 }
    .past { visibility: hidden }
    @keyframes appear { from { visibility: hidden } }
    @keyframes show { from, to { visibility: visible } }
    @media (prefers-reduced-motion: reduce) { text { animation: none !important } }
"""


class Span(NamedTuple):
    text: str
    style: str  # classes


class Shown(NamedTuple):
    """What a row showed from a moment on."""

    start: float
    spans: list[Span]


class Screen:
    """A terminal that knows what Stoker's programs send: lines, carriage returns, erasing to the end, and styles."""

    def __init__(self) -> None:
        self.rows: list[list[Shown]] = []
        self._cells: list[list[Span]] = [[]]
        self._column = 0
        self._style = ""

    def feed(self, moment: float, text: str) -> None:
        for found in CONTROL.finditer(text):
            self._take(found[0])
        while len(self.rows) < len(self._cells):
            self.rows.append([])
        for cells, history in zip(self._cells, self.rows, strict=True):
            spans = _joined(cells)
            if spans != (history[-1].spans if history else []):
                history.append(Shown(moment, spans))

    def _take(self, piece: str) -> None:
        row = self._cells[-1]
        if piece == "\r":
            self._column = 0
        elif piece == "\n":
            self._cells.append([])
        elif piece == "\033[K":
            del row[self._column :]
        elif piece[2:-1] in STYLES and piece.startswith("\033["):
            style = STYLES[piece[2:-1]]
            self._style = f"{self._style} {style}".strip() if style else ""
        elif ord(piece[0]) < 32:
            raise ValueError(f"{piece!r} is not among the control characters that are drawn")
        else:
            row += [Span(" ", "")] * (self._column - len(row))
            row[self._column : self._column + len(piece)] = [Span(character, self._style) for character in piece]
            self._column += len(piece)


def _joined(cells: list[Span]) -> list[Span]:
    out: list[Span] = []
    for cell in cells:
        if out and out[-1].style == cell.style:
            out[-1] = Span(out[-1].text + cell.text, cell.style)
        else:
            out.append(cell)
    return out


def record(command: list[str], folder: Path, environment: dict[str, str]) -> Screen:
    """Run the command in a terminal, and return what it showed. Its prompt is row 0."""
    screen = Screen()
    screen.feed(0, f"$ {shlex.join(command)}\r\n")
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (ROWS, COLUMNS))
    child = subprocess.Popen(command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    start = time.monotonic()
    decode = codecs.getincrementaldecoder("utf-8")().decode
    held = ""
    while True:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:  # EIO: the last program that had the terminal open has ended
            data = b""
        # A sequence may come in two parts: the first waits for the second.
        text = held + decode(data)
        cut = re.search(r"\033(\[\d*)?$", text) if data else None
        held = cut[0] if cut else ""
        screen.feed(time.monotonic() - start, text.removesuffix(held))
        if not data:
            break
    os.close(ours)
    if child.wait() != 0:
        sys.exit(f"{shlex.join(command)} failed with status {child.returncode}")
    return screen


def draw(screen: Screen, foot: str) -> str:
    rows = screen.rows
    while rows and not rows[-1]:
        rows.pop()
    longest = max(sum(len(span.text) for span in shown.spans) for history in rows for shown in history)
    width = round(2 * LEFT + max(longest, len(foot) * 12 / 13, 80) * CHARACTER)
    height = TOP + (len(rows) + 1) * LINE
    last = "\n".join("".join(span.text for span in history[-1].spans) if history else "" for history in rows)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        'aria-labelledby="title description">',
        f'  <title id="title">{escape(rows[0][-1].spans[0].text)}</title>',
        f'  <desc id="description">{escape(last)}</desc>',
        f"  <style>{STYLE}  </style>",
        f'  <rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="6" class="paper"/>',
    ]
    for number, history in enumerate(rows):
        for shown, later in itertools.zip_longest(history, history[1:]):
            if shown.spans:
                out.append(_text(TOP + number * LINE, shown, later))
    out += [f'  <text x="{LEFT}" y="{height - 12}" class="small">{escape(foot)}</text>', "</svg>"]
    return "\n".join(out) + "\n"


def _text(y: int, shown: Shown, later: Shown | None) -> str:
    """A row as it is until `later`, or to the end. The length is stated since monospaced fonts differ in width."""
    length = sum(len(span.text) for span in shown.spans) * CHARACTER
    words = "".join(
        f'<tspan class="{span.style}">{escape(span.text)}</tspan>' if span.style else escape(span.text)
        for span in shown.spans
    )
    if later:
        kind = f'class="past" style="animation: show {later.start - shown.start:.3f}s {shown.start:.3f}s"'
    else:
        kind = f'style="animation: appear 1ms {shown.start:.3f}s backwards"'
    return f'  <text x="{LEFT}" y="{y}" textLength="{length:.1f}" xml:space="preserve" {kind}>{words}</text>'


def machine() -> str:
    """The CPUs that this process may use, the day, and how busy the machine is."""
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    count = len(os.sched_getaffinity(0))
    name = model[1] if model else os.uname().machine
    plural = "s" if count > 1 else ""
    return f"{count} CPU{plural} ({name}), {time.strftime('%Y-%m-%d')}, load average {os.getloadavg()[0]:.1f} before"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, action="append", default=[], help="is copied into the folder")
    parser.add_argument("--still", action="store_true", help="draw the last screen only")
    parser.add_argument("out", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    where = machine()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TERM": "xterm", "XDG_CACHE_HOME": ".cache"}
        environment.pop("NO_COLOR", None)
        for file in arguments.file:
            shutil.copy(file, folder)
        subprocess.run(arguments.command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=True)
        screen = record(arguments.command, Path(folder), environment)
    if arguments.still:
        screen.rows = [[Shown(0, history[-1].spans)] if history else [] for history in screen.rows]
    arguments.out.write_text(draw(screen, where if arguments.still else f"{where}; real time"))


if __name__ == "__main__":
    main()
