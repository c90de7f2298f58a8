#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what the compiler does not: includes point down, files and names keep to the rules. Speaks TAP.

    check_floors.py [ROOT]
"""
import re
import sys
from pathlib import Path

FLOORS = ["base", "order", "source", "codec", "op", "pipe", "gpu", "api"]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
MOST_LINES = 500

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
        floor = path.relative_to(ROOT / "src").parts[0]
        if floor not in FLOORS:
            yield f"{path.relative_to(ROOT)}: '{floor}' is no floor"
            continue
        for number, name in includes(path):
            target = name.split("/")[0]
            where = f"{path.relative_to(ROOT)}:{number}: includes \"{name}\""
            if target in ("stoker", "st_config.h"):
                continue
            if target not in FLOORS:
                yield f"{where}: name the floor, as in \"{floor}/{name}\""
            elif FLOORS.index(target) > FLOORS.index(floor):
                yield f"{where}, which lies above"


def missing_headers():
    for path in sources("src", "cli"):
        for number, name in includes(path):
            places = [ROOT / "src" / name, ROOT / "include" / name, ROOT / name, path.parent / name]
            if name != "st_config.h" and not any(p.exists() for p in places):
                yield f"{path.relative_to(ROOT)}:{number}: there is no \"{name}\""


def without_purpose():
    for path in sources("src", "cli", "include", "examples", "python/ext"):
        text = path.read_text()
        if not text.startswith(f"/* {path.name} - "):
            yield f"{path.relative_to(ROOT)}: does not begin with '/* {path.name} - purpose'"
        if "SPDX-License-Identifier: Apache-2.0" not in text[:4000]:
            yield f"{path.relative_to(ROOT)}: no SPDX line"


def long_files():
    for path in sources("src", "cli", "python/ext"):
        lines = path.read_text().count("\n")
        if lines > MOST_LINES:
            yield f"{path.relative_to(ROOT)}: {lines} lines"


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


check(list(upward_includes()), "includes point down")
check(list(missing_headers()), "every included project header exists")
check(list(without_purpose()), "every file says its purpose and licence")
check(list(long_files()), f"no file has more than {MOST_LINES} lines")
check(list(foreign_names()), "CUDA is called in src/gpu only")
check(list(noisy_library()), "the library neither prints nor exits")
print(f"1..{checks}")
sys.exit(failed > 0)
