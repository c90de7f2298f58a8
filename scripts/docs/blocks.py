# SPDX-License-Identifier: Apache-2.0
"""The Python blocks of the site's pages: found, compiled, and run one after the other in one process.

    python scripts/docs/blocks.py [PAGE...]        # runs all blocks, or those of some pages, on small data made here

Blocks of a page share their names, as cells of a notebook do. Remarks in front of a block say how it is treated:

    <!-- skip: needs a GPU -->      not run; the page shows the reason
    <!-- output -->                 behind a block: what it printed is shown there

A block inside of a remark that begins with "<!-- run" is run and not shown.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent))

from pages import ROOT, SITE, own_pages  # noqa: E402

_PART = re.compile(
    r"<!-- run\n(?P<hidden>.*?)-->|"
    r"(?:<!-- skip: (?P<skip>[^\n]*?) -->\n)?```python[^\n]*\n(?P<shown>.*?)^```$",
    re.M | re.S,
)


class Block(NamedTuple):
    page: str
    line: int
    code: str
    skip: str | None  # why it cannot run here
    shown: bool


def blocks_of(path: Path) -> list[Block]:
    text = path.read_text()
    page = path.relative_to(SITE if path.is_relative_to(SITE) else ROOT).as_posix()
    out = []
    for found in _PART.finditer(text):
        name = "hidden" if found["hidden"] is not None else "shown"
        line = text.count("\n", 0, found.start(name)) + 1
        skip = found["skip"] or (None if path.is_relative_to(SITE) else _why_not(found[name]))
        out.append(Block(page, line, found[name], skip, name == "shown"))
    return out


def _why_not(code: str) -> str | None:
    """Why a block of the manual, which has no remarks for this program, cannot run here."""
    for sign, why in (("cuda", "needs a GPU"), ("shard=True", "needs torchrun"), ("(...)", "is a fragment"),
                      ("{000..127}", "names files that are not here")):
        if sign in code:
            return why
    return None


def compiled(block: Block) -> Any:
    """The block's code; its lines are those of the page, so that errors name them."""
    return compile("\n" * (block.line - 1) + block.code, block.page, "exec")


def all_pages() -> list[Path]:
    """The site's own pages, and the manual's."""
    return [*own_pages(), *sorted((ROOT / "docs").glob("*.md"))]


class Result(NamedTuple):
    outputs: dict[tuple[str, int], str]  # what a block printed, by page and line
    ran: int
    skipped: Counter[str]
    failed: list[str]


def run_pages(paths: list[Path], folder: Path) -> Result:
    """Runs the blocks of these pages, each page in a directory of its own that holds the sample data."""
    from sample_data import make

    world = make(folder / "data")
    outputs: dict[tuple[str, int], str] = {}
    skipped: Counter[str] = Counter()
    failed: list[str] = []
    ran, before = 0, os.getcwd()
    for number, path in enumerate(paths):
        place = folder / f"page-{number}"
        place.mkdir()
        for entry in world.iterdir():
            (place / entry.name).symlink_to(entry)
        names: dict[str, Any] = {"__name__": "__main__"}
        os.chdir(place)
        try:
            for block in blocks_of(path):
                if block.skip is not None:
                    skipped[block.skip] += 1
                    continue
                ran += 1
                said = io.StringIO()
                try:
                    with contextlib.redirect_stdout(said):
                        exec(compiled(block), names)
                except Exception:
                    last = traceback.format_exc().splitlines()[-12:]
                    failed.append(f"{block.page}:{block.line}:\n" + "\n".join(last))
                    break  # the blocks behind it use its names
                outputs[block.page, block.line] = said.getvalue()
        finally:
            os.chdir(before)
            _undo(names)
    return Result(outputs, ran, skipped, failed)


def _undo(names: dict[str, Any]) -> None:
    """What a page may leave behind that another would see."""
    import stoker

    stoker.uninstall()
    names.clear()


def main(arguments: list[str]) -> int:
    import torch

    torch.set_num_threads(1)
    paths = [Path(a).resolve() for a in arguments] or all_pages()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        result = run_pages(paths, Path(folder))
    print(summary(result) + f", {time.perf_counter() - began:.0f} s")
    for failure in result.failed:
        print(failure)
    return bool(result.failed)


def summary(result: Result) -> str:
    reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(result.skipped.items()))
    count = sum(result.skipped.values())
    return f"blocks: {result.ran} run, {len(result.failed)} failed, {count} skipped" + (f" ({reasons})" if count else "")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
