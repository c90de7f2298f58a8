# SPDX-License-Identifier: Apache-2.0
"""Tables as text for terminals and as HTML for notebooks, and numbers as people read them."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

_WIDEST = 60  # characters in a cell before it is wrapped
_CELL = "text-align:left;vertical-align:top;padding:2px 12px 2px 0"


def text_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], widest: int | Sequence[int] = _WIDEST
) -> str:
    """Return rows under a heading, in aligned columns. Without a heading, rows alone.

    Cells longer than `widest`, which is one number or one for each column, are wrapped.
    """
    lines = [list(head)] if head else []
    for row in rows:
        most = [widest] * len(row) if isinstance(widest, int) else widest
        cells = [textwrap.wrap(cell, width) or [""] for cell, width in zip(row, most, strict=False)]
        for number in range(max(map(len, cells))):
            lines.append([cell[number] if number < len(cell) else "" for cell in cells])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    if head:
        lines.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the same as an HTML table."""
    from html import escape  # it has a large table of entities, which only notebooks need

    titles = "".join(f'<th style="{_CELL}">{escape(title)}</th>' for title in head)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table>{f'<thead><tr>{titles}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"


def bytes_text(count: float) -> str:
    """Return a number of bytes with a unit.

    >>> bytes_text(512), bytes_text(1_234_567), bytes_text(64e9)
    ('512 B', '1.2 MB', '64.0 GB')
    """
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 1000:
            break
    return f"{count:,.1f} {unit}"


def counted(count: int, unit: str) -> str:
    """Return a number of things.

    >>> counted(1, "batch"), counted(0, "sample"), counted(12_000, "batch")
    ('1 batch', '0 samples', '12,000 batches')
    """
    plural = "" if count == 1 else "es" if unit.endswith(("ch", "s")) else "s"
    return f"{count:,} {unit}{plural}"
