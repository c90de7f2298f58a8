#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what the compiler does not: includes point down, imports form a tree, files and names keep to the rules.
Speaks TAP.

    check_layers.py [ROOT]
"""
import ast
import re
import sys
from functools import cache
from pathlib import Path

LAYERS = ["base", "order", "source", "codec", "op", "pipe", "gpu", "api"]
# The folders of the doctor, from the ground up, and what it may include of the program, whose other parts never include
# the doctor: main.c knows its commands by name.
DOCTOR = ["run", "probe", "record", "model", "rule", "tune", "report", "top", "machine", "command"]
SHARED_BY_COMMANDS = ["cli/cli.h", "cli/json.h", "cli/out.h"]
# The Python package, from the ground up: folders and modules, each of which may import those of lines before its own.
PACKAGE = [
    "_ext",
    "_base",
    "_steps",
    "_data",
    "transforms audio",
    "datasets",
    "_plan",
    "_order",
    "_engine",
    "_lazy",
    "_workers",
    "_loader",
    "dataloader",
    "_install _monitor _open _verdict synth",
    "__init__",
    "demo __main__",
]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
# Comments, strings and characters; and what is defined at the outermost level of a C file for other files to use.
NOT_CODE = re.compile(r"""/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])+'""", re.S)
NOT_SHARED = r"^(?!static\b|ST_INLINE\b|extern\b|typedef\b|(?:struct|union|enum)\s+\w+\s*[;{])(?:[A-Za-z]\w*[\s*]+)+"
DEFINITION = re.compile(NOT_SHARED + r"(\w+)(?:\s*\([^;{}]*\)\s*\{|(?:\[[^\]]*\])*\s*[=;])", re.M)
INLINE = re.compile(r"^(?:static\s+inline|ST_INLINE)\b[^;{}()]*?(\w+)\s*\([^;{}]*\)\s*\{", re.M)
WORD = re.compile(r"\b[A-Za-z_]\w*\b")
# Layers whose files can be read one after the other: none needs a header of one that needs its own in turn.
LEVELS = ["src/order", "src/pipe", "src/gpu", "src/api", "python/ext"]
MOST_LINES = 500
MOST_COLUMNS = 105

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent)
checks = 0
failed = 0


def check(problems, what):
    global checks, failed
    checks += 1
    failed += bool(problems)
    print(f"{'not ok' if problems else 'ok'} {checks} - {what}")
    for problem in problems:
        print(f"#   {problem}")


def sources(*folders):
    for folder in folders:
        yield from sorted(p for p in (ROOT / folder).rglob("*.[ch]"))


def includes(path):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = INCLUDE.match(line)
        if found:
            yield number, found.group(1)


def upward_includes():
    for path in sources("src"):
        layer = path.relative_to(ROOT / "src").parts[0]
        if layer not in LAYERS:
            yield f"{path.relative_to(ROOT)}: '{layer}' is no layer"
            continue
        for number, name in includes(path):
            target = name.split("/")[0]
            where = f"{path.relative_to(ROOT)}:{number}: includes \"{name}\""
            if target in ("stoker", "st_config.h"):
                continue
            if target not in LAYERS:
                yield f"{where}: name the layer, as in \"{layer}/{name}\""
            elif LAYERS.index(target) > LAYERS.index(layer):
                yield f"{where}, which lies above"


def upward_includes_of_the_doctor():
    for path in sources("doctor"):
        folder = path.relative_to(ROOT / "doctor").parts[0]
        if folder not in DOCTOR:
            yield f"{path.relative_to(ROOT)}: '{folder}' has no place in DOCTOR"
            continue
        for number, name in includes(path):
            target, _, rest = name.partition("/")
            where = f"{path.relative_to(ROOT)}:{number}: includes \"{name}\""
            if target == "cli" and name not in SHARED_BY_COMMANDS:
                yield f"{where}, which belongs to other commands"
            elif target == "doctor" and rest.split("/")[0] not in DOCTOR[: DOCTOR.index(folder) + 1]:
                yield f"{where}, which lies above"
            elif target not in ("cli", "doctor", "stoker", "st_config.h", *LAYERS):
                yield f"{where}: name the folder, as in \"doctor/{folder}/{name}\""


def includes_of_the_doctor():
    for path in sources("src", "include", "cli", "python/ext", "bench", "examples"):
        for number, name in includes(path):
            if "doctor" in name.split("/")[:-1]:
                yield f"{path.relative_to(ROOT)}:{number}: includes \"{name}\""


def find_circle(graph):
    """A circle of a graph {node: set of nodes}, as a list that ends where it begins; [] if there is none."""
    rest = {node: {n for n in following if n in graph and n != node} for node, following in graph.items()}
    while ends := [node for node, following in rest.items() if not following & rest.keys()]:
        for node in ends:
            del rest[node]
    path = sorted(rest)[:1]
    while rest and path[-1] not in path[:-1]:  # every node that is left leads to another one
        path.append(min(rest[path[-1]] & rest.keys()))
    return path[path.index(path[-1]) :] if path else []


def imports(path, modules):
    """The modules of the package that a file imports, also inside of functions, or for type checkers alone."""
    folder = ["stoker", *path.relative_to(ROOT / "python/stoker").parent.parts]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = folder[: len(folder) + 1 - node.level] if node.level else []
            home = ".".join([*base, *filter(None, [node.module])])
            found = [f"{home}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in found:
            if name.split(".")[0] == "stoker":
                # A name inside of a module stands for the module, and a folder for its __init__.
                known = [m for m in (name, f"{name}.__init__", name.rpartition(".")[0]) if m in modules]
                yield known[0] if known else "stoker.__init__"


def package():
    """What the modules of the Python package import: {module: set of modules}."""
    home = ROOT / "python"
    files = {".".join(p.relative_to(home).with_suffix("").parts): p for p in sorted(home.glob("stoker/**/*.py"))}
    return {name: set(imports(path, {"stoker._ext", *files})) for name, path in files.items()}


def upward_imports():
    levels = {part: level for level, line in enumerate(PACKAGE) for part in line.split()}
    for name, imported in package().items():
        part = name.split(".")[1]
        if part not in levels:
            yield f"{name}: '{part}' has no place in PACKAGE"
            continue
        for target in sorted(imported):
            other = target.split(".")[1]
            if other != part and levels.get(other, -1) >= levels[part]:
                yield f"{name} imports {target}, which lies {'above' if levels[other] > levels[part] else 'beside it'}"


def import_circles():
    """Modules of the Python package that import each other, whether at once or later."""
    circle = find_circle(package())
    if circle:
        yield "python/stoker: " + " imports ".join(circle)


def header_circles():
    """Headers that include each other."""
    for folder, home in (("src", ROOT / "src"), ("doctor", ROOT), ("cli", ROOT)):
        headers = [path for path in sources(folder) if path.suffix == ".h"]
        circle = find_circle({str(p.relative_to(home)): {name for _, name in includes(p)} for p in headers})
        if circle:
            yield f"{folder}: " + " includes ".join(circle)


def home_of(name, path):
    """The file that an include of `path` means, if it is in the tree."""
    places = [ROOT / "src" / name, ROOT / "include" / name, ROOT / name, path.parent / name]
    return next((p for p in places if p.is_file()), None)


@cache
def words_of(path):
    return frozenset(WORD.findall(NOT_CODE.sub(" ", path.read_text())))


def seen_from(path, found):
    """Collects in `found` the headers that a file includes, directly or not."""
    for _, name in includes(path):
        header = home_of(name, path)
        if header and header not in found:
            found.add(header)
            seen_from(header, found)
    return found


def bodies(text):
    """The inline functions of a header, and what they consist of: pairs."""
    for begin in INLINE.finditer(text):
        one_line = text[begin.start() : text.index("\n", begin.end())]
        end = begin.end() if one_line.rstrip().endswith("}") else text.find("\n}", begin.end())
        yield begin.group(1), text[begin.start() : text.find("\n", end + 1)]


def module(path):
    """A .c file and the header of its name are one module."""
    return path.with_suffix("")


def uses(folder):
    """What modules use of each other: {module: {module: a name}}. Functions and variables count where a header that
    declares them is included, directly or not, and inline functions where theirs is."""
    files = {p: NOT_CODE.sub(" ", p.read_text()) for p in sources(folder)}
    inline = {p: dict(bodies(text)) for p, text in files.items() if p.suffix == ".h"}
    homes = {}  # name: {module: the header, for an inline function}
    for path, text in files.items():
        for name in inline.get(path) or DEFINITION.findall(text if path.suffix == ".c" else ""):
            homes.setdefault(name, {})[module(path)] = path if path.suffix == ".h" else None
    used = {module(path): {} for path in files}
    for path, text in files.items():
        seen = seen_from(path, {path} if path.suffix == ".h" else set())
        declared = set().union(*map(words_of, seen))
        code = " ".join(inline[path].values()) if path.suffix == ".h" else text
        for name in sorted(homes.keys() & declared & set(WORD.findall(code))):
            if module(path) not in homes[name]:
                near = {home for home, header in homes[name].items() if header is None or header in seen}
                used[module(path)].update((home, name) for home in near)
    return used


def file_circles():
    """Modules whose functions call each other, so that none of them can be understood, tested or moved alone."""
    for folder in ("src", "cli", "doctor", "python/ext"):
        used = uses(folder)
        circle = find_circle({path: found.keys() for path, found in used.items()})
        if circle:
            steps = (f"{a.relative_to(ROOT)} uses {used[a][b]} of" for a, b in zip(circle, circle[1:]))
            yield " ".join([*steps, str(circle[-1].relative_to(ROOT))])


def room_circles():
    """Folders of one layer whose files include or use each other. Files beside them belong to no folder: they are below
    all, like source.h, or above all, like a registry, which file_circles and header_circles tell apart."""
    why = {}

    def connect(path, target, how):
        room, other = (p.relative_to(ROOT / "src").parts[:2] for p in (path.parent / "", target.parent / ""))
        if len(room) == len(other) == 2 and room[0] == other[0] and room != other:
            why.setdefault("/".join(room), {}).setdefault("/".join(other), how)

    for path in sources("src"):
        for _, name in includes(path):
            if header := home_of(name, path):
                connect(path, header, f"{path.relative_to(ROOT)} includes {name}")
    for path, found in uses("src").items():
        for target, name in found.items():
            connect(path, target, f"{path.relative_to(ROOT)} uses {name} of {target.relative_to(ROOT)}")
    circle = find_circle({room: others.keys() for room, others in why.items()})
    if circle:
        yield ", ".join(why[a][b] for a, b in zip(circle, circle[1:]))


def unit(path, files):
    """The name of what a file belongs to: x.c and x.h are one, with those parts x_y.c that have no header of their own."""
    name = path.with_suffix("")
    if path.suffix == ".c" and path.with_suffix(".h") not in files:
        words = name.name.split("_")
        homes = (name.with_name("_".join(words[:count])) for count in range(len(words) - 1, 0, -1))
        name = next((home for home in homes if home.with_suffix(".h") in files), name)
    return name


def needs(layer):
    """What files with their headers need of each other, by includes and by names: {unit: set of units}."""
    files = set(sources(layer))
    graph = {unit(path, files): set() for path in files}
    for path in files:
        targets = {place / name for _, name in includes(path) for place in (ROOT / "src", ROOT, path.parent)}
        graph[unit(path, files)].update(unit(target, files) for target in targets & files)
    for used, found in uses(layer).items():
        home = unit(used.with_suffix(".c"), files)
        graph[home].update(unit(target.with_suffix(".c"), files) for target in found)
    return graph


def unit_circles():
    """Files that need each other if their headers are counted: no order of the layer's files is one of levels."""
    for layer in LEVELS:
        circle = find_circle(needs(layer))
        if circle:
            yield f"{layer}: " + " needs ".join(str(part.relative_to(ROOT / layer)) for part in circle)


def missing_headers():
    for path in sources("src", "cli", "doctor"):
        for number, name in includes(path):
            if name != "st_config.h" and not home_of(name, path):
                yield f"{path.relative_to(ROOT)}:{number}: there is no \"{name}\""


def without_purpose():
    for path in sources("src", "cli", "doctor", "include", "examples", "python/ext"):
        text = path.read_text()
        if not text.startswith(f"/* {path.name} - "):
            yield f"{path.relative_to(ROOT)}: does not begin with '/* {path.name} - purpose'"
        if "SPDX-License-Identifier: Apache-2.0" not in text[:4000]:
            yield f"{path.relative_to(ROOT)}: no SPDX line"


def long_files():
    for path in [*sources("src", "cli", "doctor", "python/ext"), *sorted((ROOT / "python/stoker").rglob("*.py"))]:
        lines = path.read_text().count("\n")
        if lines > MOST_LINES:
            yield f"{path.relative_to(ROOT)}: {lines} lines"


def long_lines():
    for path in sources("src", "cli", "doctor", "python/ext", "examples"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if len(line) > MOST_COLUMNS:
                yield f"{path.relative_to(ROOT)}:{number}: {len(line)} columns"


def foreign_names():
    """CUDA is named in its own folder only."""
    call = re.compile(r"\bcu(da|Mem|Stream)\w*\(")
    for path in sources("src"):
        if path.relative_to(ROOT / "src").parts[0] != "gpu" and call.search(path.read_text()):
            yield f"{path.relative_to(ROOT)}: calls CUDA outside src/gpu"


def noisy_library():
    """The library never exits, aborts or prints in its host's process."""
    word = re.compile(r"(?<![\w.>\"])(?:exit|abort|_exit|printf|puts|putchar|perror|fprintf|vprintf)\s*\(")
    for path in sources("src"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if word.search(line) and not line.lstrip().startswith(("*", "/*")):
                yield f"{path.relative_to(ROOT)}:{number}: {line.strip()}"


def not_installed():
    """What is imported from the checkout works without it; what users install does not."""
    files = [path for path in sorted((ROOT / "python/stoker").rglob("*")) if path.suffix in (".py", ".pyi")]
    listed = re.findall(r"'(\w+\.pyi?)'", (ROOT / "python/meson.build").read_text()) if files else []
    for path in files:
        if path.name not in listed:
            yield f"{path.relative_to(ROOT)} is not in python/meson.build"


check(list(upward_includes()), "includes point down")
check(list(upward_includes_of_the_doctor()), "includes of the doctor point down")
check(list(includes_of_the_doctor()), "nothing but the doctor includes the doctor")
check(list(upward_imports()), "imports of the Python package point down")
check(list(import_circles()), "imports of the Python package form no circle")
check(list(header_circles()), "includes of headers form no circle")
check(list(file_circles()), "C files that use each other form no circle")
check(list(room_circles()), "folders of a layer form no circle")
check(list(unit_circles()), "files of the layers in LEVELS form no circle, headers included")
check(list(missing_headers()), "every included project header exists")
check(list(without_purpose()), "every file says its purpose and licence")
check(list(long_files()), f"no file has more than {MOST_LINES} lines")
check(list(long_lines()), f"no line has more than {MOST_COLUMNS} columns")
check(list(foreign_names()), "CUDA is called in src/gpu only")
check(list(noisy_library()), "the library neither prints nor exits")
check(list(not_installed()), "every file of the Python package is installed")
print(f"1..{checks}")
sys.exit(failed > 0)
