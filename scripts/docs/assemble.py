# SPDX-License-Identifier: Apache-2.0
"""Gathers the pages of the site as Markdown, with the reference generated and examples run.

    python scripts/docs/assemble.py OUT [--no-run]        # OUT/pages and OUT/mkdocs.yml; then mkdocs builds the site
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import blocks  # noqa: E402
import command_line  # noqa: E402
import gallery  # noqa: E402
import header  # noqa: E402
import load  # noqa: E402
import notebook  # noqa: E402
import pages  # noqa: E402
import reference  # noqa: E402
from pages import ROOT, SITE  # noqa: E402

NOTEBOOKS = ROOT / "docs" / "notebooks"
_EXAMPLE = re.compile(r"^<!-- example: (\S+) -->$", re.M)
_PICTURE = re.compile(r"^<!-- picture: (\S+): (.*) -->$", re.M)
_OUTPUT = re.compile(r"^<!-- output -->$", re.M)
_CHANGED = re.compile(r"  # (was: (?P<before>.*)|added)$")


def assemble(
    out: Path, outputs: dict[tuple[str, int], str], ran: dict[str, list[notebook.Cell]], report: bytes = b""
) -> None:
    """`outputs`: what blocks printed; `ran`: notebooks that were run; `report`: the report page that one of them made.
    What is missing is left out."""
    shutil.rmtree(out, ignore_errors=True)
    for path in pages.own_pages():
        _write(out / path.relative_to(SITE), _shown(path, outputs))
    for source, page in pages.included().items():
        _write(out / page, pages.adapted(source, _shown(ROOT / source, outputs)))
    for picture in pages.pictures():
        _write_bytes(out / "files" / picture.name, picture.read_bytes())
    for own in [*SITE.glob("*.css"), *SITE.glob("*.js")]:
        shutil.copy(own, out)
    _write(out / "reference/stoker.md", reference.page("stoker"))
    _write(out / "reference/dataloader.md", reference.class_page("stoker", "DataLoader"))
    for name in ("datasets", "transforms", "audio"):
        _write(out / f"reference/{name}.md", reference.page(f"stoker.{name}"))
    _write(out / "reference/c.md", header.page((ROOT / "include/stoker/stoker.h").read_text()))
    _write(out / "reference/command-line.md", command_line.page())
    _write(out / pages.GALLERY, gallery.page(out / pages.GALLERY.removesuffix(".md")))
    for path in notebooks():
        (out / "notebooks").mkdir(exist_ok=True)
        shutil.copy(path, out / "notebooks")
        cells = ran.get(path.stem) or notebook.cells_of(path)
        text = notebook.page(path, cells, out / "notebooks", path.name)
        if report:
            text = text.replace("`report.html`", "[`report.html`](report.html)")
        _write(out / f"notebooks/{path.stem}.md", text)
    if report:
        _write_bytes(out / "notebooks/report.html", report)


def notebooks() -> list[Path]:
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def _write(path: Path, text: str) -> None:
    _write_bytes(path, text.encode())


def _write_bytes(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _shown(path: Path, outputs: dict[tuple[str, int], str]) -> str:
    """A page whose remarks for the runner have become what readers see."""
    text = path.read_text()
    found = blocks.blocks_of(path)
    # From the end, so that what is in front keeps its place.
    for place in reversed(list(_OUTPUT.finditer(text))):
        line = text.count("\n", 0, place.start()) + 1
        before = [block for block in found if block.line < line and block.shown]
        said = outputs.get((before[-1].page, before[-1].line), "") if before else ""
        shown = f"```text\n{said.rstrip()}\n```" if said else ""
        text = text[: place.start()] + shown + text[place.end() :]
    text = re.sub(r"<!-- skip: ([^\n]*?) -->\n```python", lambda m: f'```python title="Not run here: {m[1]}"', text)
    text = re.sub(r"<!-- run\n.*?-->\n?", "", text, flags=re.S)
    text = _PICTURE.sub(lambda m: _picture(path, m[1], m[2]), text)
    return _EXAMPLE.sub(lambda m: example(ROOT / m[1]), text)


def _picture(page: Path, source: str, words: str) -> str:
    """A picture that is recorded by hand on an idle machine, and so may not be there."""
    if not (ROOT / source).exists():
        print(f"{page.relative_to(ROOT)}: there is no {source}, so the page has no such picture")
        return ""
    return f"![{words}]({os.path.relpath(SITE / 'files' / Path(source).name, page.parent)})"


def example(path: Path) -> str:
    """A program as a block in which the lines that Stoker changes are highlighted."""
    text = path.read_text()
    if path.suffix == ".py":
        text = text.split('"""', 2)[2]
    lines = text.strip("\n").splitlines()
    changed = " ".join(str(k) for k, line in enumerate(lines, 1) if _CHANGED.search(line))
    marks = f' hl_lines="{changed}"' if changed else ""
    language = "python" if path.suffix == ".py" else "c"
    return "\n".join([f'```{language} title="{path.relative_to(ROOT).as_posix()}"{marks}', *lines, "```"])


def before_stoker(source: str) -> str:
    """An example as it was with torch's DataLoader: lines marked "# was: ..." undone, lines marked "# added" left out."""
    out = []
    for line in source.splitlines():
        found = _CHANGED.search(line)
        if found is None:
            out.append(line)
        elif found["before"] is not None:
            out.append(line[: len(line) - len(line.lstrip())] + found["before"])
    return "\n".join(out) + "\n"


def configuration(folder: Path) -> str:
    """mkdocs.yml, with the navigation; JSON is YAML."""
    nav = json.dumps(pages.navigation([path.stem for path in notebooks()]), indent=2)
    return (SITE / "mkdocs.yml").read_text() + f"\ndocs_dir: {folder / 'pages'}\nnav: {nav}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--no-run", action="store_true", help="leave out what examples print")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    outputs: dict[tuple[str, int], str] = {}
    ran: dict[str, list[notebook.Cell]] = {}
    failed: list[str] = []
    report = b""
    if not arguments.no_run:
        failed, report = _run_all(outputs, ran)
    assemble(out / "pages", outputs, ran, report)
    (out / "mkdocs.yml").write_text(configuration(out))
    broken = pages.broken_links(out / "pages")
    for line in [*failed, *(f"leads nowhere: {link}" for link in broken)]:
        print(line)
    return bool(failed or broken)


def _run_all(outputs: dict[tuple[str, int], str], ran: dict[str, list[notebook.Cell]]) -> tuple[list[str], bytes]:
    """Fills both, and returns what failed and the report page of the run that a notebook watches."""
    import torch

    torch.set_num_threads(1)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        result = blocks.run_pages(blocks.all_pages(), Path(folder))
    outputs.update(result.outputs)
    print(f"{blocks.summary(result)}, {time.perf_counter() - began:.0f} s")
    report = b""
    for path in notebooks():
        began, watch = time.perf_counter(), load.Watch()
        names: dict[str, Any] = {}
        ran[path.stem] = notebook.run(path, names)
        print(f"notebook {path.name}: {time.perf_counter() - began:.0f} s")
        share = watch.others()
        if load.too_busy(share):
            ran[path.stem] = notebook.without_measurements(ran[path.stem], share)
            print(f"notebook {path.name}: other programs used {share:.0%} of the CPUs, so what it measured is left out")
            continue
        page = Path(names.get("folder", "/"), ".stoker/0001/report.html")
        report = page.read_bytes() if page.exists() else report
    return result.failed, report


if __name__ == "__main__":
    sys.exit(main())
