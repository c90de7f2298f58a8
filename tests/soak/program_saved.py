# SPDX-License-Identifier: Apache-2.0
"""Saves a program of programs.py as a script of its own, with the definitions that it uses and no others; and reduces a
program that differs."""

from __future__ import annotations

import ast
import copy
import pprint
from pathlib import Path

HERE = Path(__file__).parent
PARTS = ("program_files", "program_images", "program_photos", "program_idioms", "program_play")

TAIL = '''

SPEC = {spec}


def run(way):
    module = ["-m", "stoker"] if way == "module" else []
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *module, __file__, way, folder]
        return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.splitlines()[-1])


if __name__ == "__main__":
    if len(sys.argv) == 3:
        if sys.argv[1] in ("stoker", "install"):
            import stoker

        if sys.argv[1] == "install":
            stoker.install()
        DataLoader = stoker.DataLoader if sys.argv[1] == "stoker" else torch.utils.data.DataLoader
        print(json.dumps(play(SPEC, globals(), Path(sys.argv[2]))), flush=True)
    else:
        different = differences(run("torch"), run(SPEC["way"]), "datasets.ImageFolder" not in SPEC["dataset"])
        print(*(different or ["no difference"]), sep="\\n")
        sys.exit(bool(different))
'''


def defined(statement):
    """The names that a statement at the top of a module defines."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return [statement.name]
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return [(name.asname or name.name).split(".")[0] for name in statement.names]
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    return []


def used(tree):
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):  # expressions in strings
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "(" in node.value:
            try:
                names |= used(ast.parse(node.value, mode="eval"))
            except (SyntaxError, ValueError):
                continue
    return names


def script(spec, command):
    """The text of a script that plays a program with torch and with ours, and compares."""
    kept, wanted = {}, set()
    sources = [(HERE / f"{part}.py").read_text() for part in PARTS]
    statements = [(text, one) for text in sources for one in ast.parse(text).body]
    tail = TAIL.format(spec=pprint.pformat(spec, width=110, sort_dicts=False))
    more = [used(ast.parse(tail))]
    for text in (spec["dataset"], *spec["options"].values()):
        more.append(used(ast.parse(text, mode="eval")))
    wanted = set().union(*more)
    grown = True
    while grown:
        grown = False
        for number, (_, one) in enumerate(statements):
            if number not in kept and wanted & set(defined(one)):
                kept[number] = True
                wanted |= used(one)
                grown = True
    lines = [f"# Reproduces a difference: python THIS_FILE (found by: {command})", "from __future__ import annotations", "",
             "import json", "import subprocess", "import sys", "import tempfile"]  # fmt: skip
    for number, (text, one) in enumerate(statements):
        if number in kept and not isinstance(one, ast.Import | ast.ImportFrom):
            decorators = getattr(one, "decorator_list", [])
            first = min([one.lineno, *(each.lineno for each in decorators)])
            lines += ["", "", *text.splitlines()[first - 1 : one.end_lineno]]
        elif number in kept and not getattr(one, "module", "").startswith(("program_", "__future__")):
            names = [name for name in one.names if (name.asname or name.name).split(".")[0] in wanted]
            lines.append(ast.unparse(type(one)(**{**vars(one), "names": names})))
    return "\n".join(lines) + tail


# ---- reducing ----


def without_an_element(text):
    """The expression with one element of one of its lists left out, in all ways."""
    tree = ast.parse(text, mode="eval")
    lists = [node for node in ast.walk(tree) if isinstance(node, ast.List) and len(node.elts) > 1]
    for number, node in enumerate(lists):
        for place in range(len(node.elts)):
            smaller = copy.deepcopy(tree)
            same = [n for n in ast.walk(smaller) if isinstance(n, ast.List) and len(n.elts) > 1][number]
            del same.elts[place]
            yield ast.unparse(smaller)


def smaller_ones(spec):
    """Programs with one choice less."""
    if spec["use"] != "epochs":
        yield {**spec, "use": "epochs"}
    if spec["prelude"]:
        yield {**spec, "prelude": ""}
    if spec["files"][0] != "ordinary":
        yield {**spec, "files": ["ordinary", *spec["files"][1:]]}
    if spec["way"] != "stoker":
        yield {**spec, "way": "stoker"}
    for name in spec["options"]:
        yield {**spec, "options": {key: value for key, value in spec["options"].items() if key != name}}
    for text in without_an_element(spec["dataset"]):
        yield {**spec, "dataset": text}


def reduced(spec, differs, tries=40):
    """A program with fewer choices for which differs() is still true."""
    grown = True
    while grown and tries > 0:
        grown = False
        for smaller in smaller_ones(spec):
            tries -= 1
            if differs(smaller):
                spec, grown = smaller, True
                break
            if tries <= 0:
                break
    return spec
