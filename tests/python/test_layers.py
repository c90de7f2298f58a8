# SPDX-License-Identifier: Apache-2.0
"""scripts/check_layers.py: sees circles of files, folders and imports, and long lines, and only where they are."""
import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "scripts/check_layers.py"


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
    assert "src/base/a uses st_b of src/base/b uses st_a of src/base/a" in output


def test_a_circle_through_a_variable_and_a_third_file(tmp_path):
    b = c_file("b.c", '#include "base/a.h"', "int st_b(int n)", "{", "    return n - st_start[0];", "}")
    c = c_file("c.c", '#include "base/a.h"', "const int st_start[] = {1, sizeof(st_a(0))};")
    found, output = failures(tmp_path, {"cli/a.h": HEADER, "cli/a.c": A, "cli/b.c": b, "cli/c.c": c, "src/base/a.h": HEADER})
    assert found == ["C files that use each other form no circle"]
    assert "cli/c uses st_a of cli/a" in output


def function(name, value):
    return f"int st_{name}(int n)", "{", f"    return {value};", "}"


def test_a_circle_through_an_inline_function(tmp_path):
    """low.c uses high.c, which uses an inline function of low.h."""
    low, high = '#include "base/low.h"', '#include "base/high.h"'
    half = "static inline int st_half(int n) { return n / 2; }"
    files = {
        "src/base/low.h": c_file("low.h", "int st_low(int n);", half),
        "src/base/low.c": c_file("low.c", low, high, *function("low", "st_high(n)")),
        "src/base/high.h": c_file("high.h", "int st_high(int n);"),
        "src/base/high.c": c_file("high.c", high, low, *function("high", "st_half(n)")),
    }
    found, output = failures(tmp_path, files)
    assert found == ["C files that use each other form no circle"]
    assert "src/base/high uses st_half of src/base/low uses st_high of src/base/high" in output


def test_a_circle_through_what_an_inline_function_uses(tmp_path):
    low, high = '#include "base/low.h"', '#include "base/high.h"'
    inline = ("static inline int st_low(int n)", "{", "    return st_high(n);", "}")
    files = {
        "src/base/low.h": c_file("low.h", high, *inline),
        "src/base/low.c": c_file("low.c", low, *function("deep", "n")),
        "src/base/high.h": c_file("high.h", "int st_high(int n);", "int st_deep(int n);"),
        "src/base/high.c": c_file("high.c", high, *function("high", "st_deep(n)")),
    }
    assert failures(tmp_path, files)[0] == ["C files that use each other form no circle"]


def test_files_that_need_the_headers_of_each_other(tmp_path):
    """ticket.c takes what worker.h describes, and worker.c calls ticket.c."""
    files = {
        "src/pipe/ticket.h": c_file("ticket.h", "int st_ticket(int n);"),
        "src/pipe/ticket.c": c_file("ticket.c", '#include "pipe/worker.h"', *function("ticket", "(struct st_worker){n}.n")),
        "src/pipe/worker.h": c_file("worker.h", "struct st_worker { int n; };"),
        "src/pipe/worker_main.c": c_file("worker_main.c", '#include "pipe/ticket.h"', *function("work", "st_ticket(n)")),
    }
    found, output = failures(tmp_path, files)
    assert found == ["files of the layers in LEVELS form no circle, headers included"]
    assert "src/pipe: ticket needs worker needs ticket" in output


def test_names_that_only_look_alike(tmp_path):
    """b.c has an argument with the name of a function that it does not know."""
    files = {
        "src/base/a.h": c_file("a.h", "int st_a(int n);", '#include "base/b.h"'),
        "src/base/a.c": c_file("a.c", '#include "base/a.h"', *function("a", "st_b(n)")),
        "src/base/b.h": c_file("b.h", "int st_b(int n);"),
        "src/base/b.c": c_file("b.c", '#include "base/b.h"', "int st_b(int st_a)", "{", "    return st_a;", "}"),
    }
    assert failures(tmp_path, files)[0] == []


ROOMS = "folders of a layer form no circle"


def test_folders_that_include_each_other(tmp_path):
    files = {
        "src/op/near/a.h": c_file("a.h", "struct st_a { int n; };"),
        "src/op/near/b.c": c_file("b.c", '#include "op/far/c.h"'),
        "src/op/far/c.h": c_file("c.h", "struct st_c { int n; };"),
        "src/op/far/d.c": c_file("d.c", '#include "op/near/a.h"'),
    }
    found, output = failures(tmp_path, files)
    assert found == [ROOMS]
    assert "src/op/far/d.c includes op/near/a.h, src/op/near/b.c includes op/far/c.h" in output


def test_folders_whose_functions_use_each_other(tmp_path):
    """All that they include is a header beside them."""
    include = '#include "op/all.h"'
    files = {
        "src/op/all.h": c_file("all.h", *(f"int st_{name}(int n);" for name in "abcd")),
        "src/op/near/a.c": c_file("a.c", include, *function("a", "st_c(n)")),
        "src/op/near/b.c": c_file("b.c", include, *function("b", "n")),
        "src/op/far/c.c": c_file("c.c", include, *function("c", "n")),
        "src/op/far/d.c": c_file("d.c", include, *function("d", "st_b(n)")),
    }
    found, output = failures(tmp_path, files)
    assert found == [ROOMS]
    assert "src/op/far/d uses st_b of src/op/near/b" in output


def test_folders_with_a_common_header_and_a_registry(tmp_path):
    include = '#include "op/op.h"'
    files = {
        "src/op/op.h": c_file("op.h", "struct st_op { int n; };", "extern const struct st_op st_near, st_far;"),
        "src/op/near/a.c": c_file("a.c", include, "const struct st_op st_near = {1};"),
        "src/op/far/b.c": c_file("b.c", include, "const struct st_op st_far = {2};"),
        "src/op/registry.c": c_file("registry.c", include, "const struct st_op *st_ops[] = {&st_near, &st_far};"),
    }
    assert failures(tmp_path, files)[0] == []


def test_folders_of_two_layers(tmp_path):
    files = {
        "src/base/near/a.h": c_file("a.h", "struct st_a { int n; };"),
        "src/op/near/b.c": c_file("b.c", '#include "base/near/a.h"'),
    }
    assert failures(tmp_path, files)[0] == []


def test_headers_that_include_each_other(tmp_path):
    files = {f"src/base/{a}.h": c_file(f"{a}.h", f'#include "base/{b}.h"') for a, b in ("ab", "ba")}
    assert failures(tmp_path, files)[0] == ["includes of headers form no circle"]


PACKAGE_CIRCLE = "imports of the Python package form no circle"
PACKAGE_LAYERS = "imports of the Python package point down"


def python_files(**texts):
    files = {f"python/stoker/{name.replace('__', '/')}.py": text for name, text in texts.items()}
    return {**files, "python/meson.build": "\n".join(f"'{Path(path).name}'," for path in files)}


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


def test_a_module_that_the_build_forgets(tmp_path):
    files = python_files(_base__a="import os\n", _base__bcd="import os\n")
    files["python/meson.build"] = "'a.py', 'cd.py'"
    found, output = failures(tmp_path, files)
    assert found == ["every file of the Python package is installed"]
    assert "_base/bcd.py is not in python/meson.build" in output and "_base/a.py" not in output


def test_a_line_of_106_columns(tmp_path):
    lines = ["/* " + "x" * (width - 6) + " */" for width in (105, 106)]
    found, output = failures(tmp_path, {"src/base/a.c": c_file("a.c", *lines)})
    assert found == ["no line has more than 105 columns"]
    assert output.count(" columns") == 2 and "src/base/a.c:6: 106 columns" in output


def test_an_include_of_a_floor_above(tmp_path):
    files = {"src/base/a.c": c_file("a.c", '#include "op/b.h"'), "src/op/b.h": c_file("b.h")}
    assert failures(tmp_path, files)[0] == ["includes point down"]


def test_an_include_of_a_folder_of_the_doctor_above(tmp_path):
    files = {f"doctor/{path}.h": c_file(f"{path[-1]}.h") for path in ("run/a", "model/b", "rule/c")}
    down = c_file("d.c", '#include "doctor/run/a.h"', '#include "doctor/model/d.h"', '#include "cli/cli.h"')
    files |= {"doctor/model/d.c": down, "doctor/model/d.h": c_file("d.h"), "cli/cli.h": c_file("cli.h")}
    assert failures(tmp_path, files)[0] == []
    up = c_file("d.c", '#include "doctor/rule/c.h"')
    found, output = failures(tmp_path, {"doctor/model/d.c": up})
    assert found == ["includes of the doctor point down"]
    assert 'doctor/model/d.c:5: includes "doctor/rule/c.h", which lies above' in output


def test_a_part_of_the_doctor_that_includes_another_command_or_names_no_folder(tmp_path):
    files = {"doctor/rule/a.c": c_file("a.c", '#include "cli/pack/b.h"', '#include "c.h"'), "cli/pack/b.h": c_file("b.h")}
    files |= {"doctor/rule/c.h": c_file("c.h"), "doctor/elsewhere/d.c": c_file("d.c")}
    found, output = failures(tmp_path, files)
    assert found == ["includes of the doctor point down"]
    assert 'doctor/rule/a.c:5: includes "cli/pack/b.h", which belongs to other commands' in output
    assert 'doctor/rule/a.c:6: includes "c.h": name the folder, as in "doctor/rule/c.h"' in output
    assert "doctor/elsewhere/d.c: 'elsewhere' has no place in DOCTOR" in output


@pytest.mark.parametrize("place", ["src/api", "cli", "cli/pack", "python/ext", "bench"])
@pytest.mark.parametrize("way", ["", "../", "../../"])
def test_others_that_include_the_doctor(tmp_path, place, way):
    files = {f"{place}/a.c": c_file("a.c", f'#include "{way}doctor/run/b.h"'), "doctor/run/b.h": c_file("b.h")}
    found, output = failures(tmp_path, files)
    assert "nothing but the doctor includes the doctor" in found
    assert f"{place}/a.c:5: includes" in output


def test_every_name_is_defined_and_every_import_used():
    """A name that is not defined is an error only where it is reached."""
    root = CHECK.parents[1]
    folders = ["bench", "examples", "python", "scripts", "tests"]
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--isolated", "--select", "F", "--output-format", "concise"]
    done = subprocess.run([*command, *folders], cwd=root, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout + done.stderr
