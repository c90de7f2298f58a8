# SPDX-License-Identifier: Apache-2.0
"""Runs notebooks without Jupyter, and turns them into pages.

    python scripts/docs/notebook.py docs/notebooks/NAME.ipynb        # runs it here, and prints what its cells say

Cells run in one namespace; the value of a last expression is shown, as HTML if it has _repr_html_, and so are the figures
of matplotlib. Magics and shell escapes are not known: notebooks call subprocess instead, and so run in any front end.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple


class Output(NamedTuple):
    kind: str  # "text", "html", "png", or "note": a sentence in place of what is not shown
    data: str


class Cell(NamedTuple):
    kind: str  # "markdown" or "code"
    source: str
    outputs: list[Output]
    measures: bool = False  # has the tag "measures": its output says how long something took


def cells_of(path: Path) -> list[Cell]:
    cells = json.loads(path.read_text())["cells"]
    return [Cell(c["cell_type"], "".join(c["source"]), [], "measures" in c["metadata"].get("tags", ())) for c in cells]


def without_measurements(cells: list[Cell], share: float) -> list[Cell]:
    """The cells of a run during which other programs used this share of the CPUs."""
    said = (
        f"Not shown: this cell measures, and other programs used {share:.0%} of the CPUs while this page was built. Run the "
        "notebook to see its output."
    )
    return [cell._replace(outputs=[Output("note", said)]) if cell.measures and cell.outputs else cell for cell in cells]


def run(path: Path, names: dict[str, Any] | None = None) -> list[Cell]:
    """All cells with what they show. An exception ends it, and names the cell. Variables are left in `names`."""
    import matplotlib

    matplotlib.use("Agg")
    names = {} if names is None else names
    names["__name__"] = "__main__"
    out = []
    for number, cell in enumerate(cells_of(path), 1):
        if cell.kind != "code":
            out.append(cell)
            continue
        try:
            out.append(cell._replace(outputs=_run_cell(f"{path.name}[{number}]", cell.source, names)))
        except Exception as error:
            error.add_note(f"in cell {number} of {path.name}")
            raise
    return out


def _run_cell(name: str, source: str, names: dict[str, Any]) -> list[Output]:
    import matplotlib.pyplot as plt

    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    said, value = io.StringIO(), None
    with contextlib.redirect_stdout(said):
        exec(compile(tree, name, "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval"), names)
    out = [Output("text", said.getvalue())] if said.getvalue() else []
    for number in plt.get_fignums():
        picture = io.BytesIO()
        plt.figure(number).savefig(picture, format="png", dpi=110, bbox_inches="tight")
        out.append(Output("png", base64.b64encode(picture.getvalue()).decode()))
    if plt.get_fignums():
        plt.close("all")
    elif value is not None:
        html = getattr(value, "_repr_html_", None)
        out.append(Output("html", html()) if html is not None else Output("text", f"{value!r}\n"))
    return out


def page(path: Path, cells: list[Cell], pictures: Path, link: str) -> str:
    """The notebook as Markdown; figures go into the folder `pictures`, and `link` leads to the file itself."""
    out: list[str] = []
    for cell in cells:
        if cell.kind == "markdown":
            out += [cell.source, ""]
            if len(out) == 2:
                out += [f"[The notebook]({link}) itself, to run it. Outputs are those of the run that built this page.", ""]
            continue
        out += ["```python", cell.source.rstrip(), "```", ""]
        for number, output in enumerate(cell.outputs):
            if output.kind == "png":
                name = f"{path.stem}-{len(out)}-{number}.png"
                (pictures / name).write_bytes(base64.b64decode(output.data))
                out += [f"![What the cell draws]({name})", ""]
            elif output.kind == "note":
                out += [f"*{output.data}*", ""]
            elif output.kind == "html":
                out += ["<div class=\"notebook-output\">", output.data, "</div>", ""]
            else:
                out += ["```text", output.data.rstrip(), "```", ""]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    for ran in run(Path(sys.argv[1])):
        for shown in ran.outputs:
            print(shown.data if shown.kind == "text" else f"<{shown.kind}, {len(shown.data)} characters>")
