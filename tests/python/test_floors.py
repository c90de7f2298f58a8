# SPDX-License-Identifier: Apache-2.0
"""scripts/check_floors.py: sees circles of files and imports, and long lines; and nothing where there is none."""
import subprocess
import sys
from pathlib import Path

CHECK = Path(__file__).parents[2] / "scripts/check_floors.py"


def c_file(name, *lines):
    return "\n".join([f"/* {name} - an example", " *", " * SPDX-License-Identifier: Apache-2.0", " */", *lines, ""])


def failures(root, files):
    """The names of the checks that fail for a tree of these files, and the whole output."""
    for path, text in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True, check=False)
    found = [line.partition(" - ")[2] for line in done.stdout.splitlines() if line.startswith("not ok")]
    assert bool(done.returncode) == bool(found), done.stdout + done.stderr
    return found, done.stdout


HEADER = c_file("a.h", "int st_a(int n);", "int st_b(int n);", "extern const int st_start[];")
A = c_file("a.c", '#include "base/a.h"', "int st_a(int n)", "{", "    return n ? st_b(n - 1) : 0;", "}")


def test_files_without_a_circle(tmp_path):
    b = c_file(
        "b.c",
        '#include "base/a.h"',
        "/* st_a calls this. */",
        "int st_b(int n)",
        "{",
        '    return n + *"st_a";',
        "}",
    )
    assert failures(tmp_path, {"src/base/a.h": HEADER, "src/base/a.c": A, "src/base/b.c": b})[0] == []


def test_functions_of_two_files_that_call_each_other(tmp_path):
    b = c_file("b.c", '#include "base/a.h"', "int st_b(int n)", "{", "    return n ? st_a(n - 1) : 0;", "}")
    found, output = failures(tmp_path, {"src/base/a.h": HEADER, "src/base/a.c": A, "src/base/b.c": b})
    assert found == ["C files that use each other form no circle"]
    assert "src/base/a.c uses st_b of src/base/b.c uses st_a of src/base/a.c" in output


def test_a_circle_through_a_variable_and_a_third_file(tmp_path):
    b = c_file("b.c", '#include "base/a.h"', "int st_b(int n)", "{", "    return n - st_start[0];", "}")
    c = c_file("c.c", '#include "base/a.h"', "const int st_start[] = {1, sizeof(st_a(0))};")
    found, output = failures(tmp_path, {"cli/a.h": HEADER, "cli/a.c": A, "cli/b.c": b, "cli/c.c": c, "src/base/a.h": HEADER})
    assert found == ["C files that use each other form no circle"]
    assert "cli/c.c uses st_a of cli/a.c" in output


def test_headers_that_include_each_other(tmp_path):
    files = {f"src/base/{a}.h": c_file(f"{a}.h", f'#include "base/{b}.h"') for a, b in ("ab", "ba")}
    assert failures(tmp_path, files)[0] == ["includes of headers form no circle"]


PACKAGE_CIRCLE = "imports of the Python package form no circle"
PACKAGE_LAYERS = "imports of the Python package point down"


def python_files(**texts):
    return {f"python/stoker/{name.replace('__', '/')}.py": text for name, text in texts.items()}


def test_modules_that_import_each_other(tmp_path):
    files = python_files(_base__a="from . import b\n", _base__b="def f():\n    from .a import g\n")
    assert failures(tmp_path, files)[0] == [PACKAGE_CIRCLE]


def test_a_circle_for_type_checkers_alone(tmp_path):
    files = python_files(_base__a="import stoker._base.b\n", _base__b="if TYPE_CHECKING:\n    from .a import g\n")
    assert failures(tmp_path, files)[0] == [PACKAGE_CIRCLE]


def test_an_import_of_a_room_above(tmp_path):
    files = python_files(_base__a="def f():\n    from .._order.b import g\n", _order__b="from .._base import c\n")
    found, output = failures(tmp_path, files)
    assert found == [PACKAGE_LAYERS]
    assert "stoker._base.a imports stoker._order.b, which lies above" in output


def test_a_module_without_a_place(tmp_path):
    found, output = failures(tmp_path, python_files(somewhere="import os\n"))
    assert found == [PACKAGE_LAYERS] and "'somewhere' has no place in PACKAGE" in output


def test_a_line_of_106_columns(tmp_path):
    lines = ["/* " + "x" * (width - 6) + " */" for width in (105, 106)]
    found, output = failures(tmp_path, {"src/base/a.c": c_file("a.c", *lines)})
    assert found == ["no line has more than 105 columns"]
    assert output.count(" columns") == 2 and "src/base/a.c:6: 106 columns" in output


def test_an_include_of_a_floor_above(tmp_path):
    files = {"src/base/a.c": c_file("a.c", '#include "op/b.h"'), "src/op/b.h": c_file("b.h")}
    assert failures(tmp_path, files)[0] == ["includes point down"]
