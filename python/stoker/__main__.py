# SPDX-License-Identifier: Apache-2.0
"""python -m stoker train.py: run a script with stoker.DataLoader in place of torch's."""

from __future__ import annotations

import importlib.util
import io
import os
import sys
import types
from importlib.machinery import ModuleSpec, SourceFileLoader
from typing import Any, NoReturn

_USAGE = """\
usage: python -m stoker SCRIPT [ARGUMENTS]
       python -m stoker -m MODULE [ARGUMENTS]

Run a script or a module as python does, with stoker.DataLoader in place of torch.utils.data.DataLoader
(stoker.install()). Under torchrun:  torchrun [OPTIONS] -m stoker SCRIPT [ARGUMENTS]

  -h, --help     print this text
  -V, --version  print the version

The exit code is that of the script; 2 if there is no such script or option.
"""


def _fail(sentence: str) -> NoReturn:
    sys.stderr.write(f"python -m stoker: {sentence}\n")
    sys.exit(2)


def _script(path: str) -> tuple[Any, dict[str, Any]]:
    """Return the code of a script, and the names that python sets in its module."""
    whole = os.path.abspath(path)
    try:
        with io.open_code(whole) as file:
            source = file.read()
    except OSError as error:
        _fail(f"can't open file '{path}': {error.strerror}")
    if not sys.flags.safe_path:
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    names = {"__file__": whole, "__loader__": SourceFileLoader("__main__", whole)}
    return compile(source, whole, "exec", dont_inherit=True), names


def _module(name: str) -> tuple[Any, dict[str, Any]]:
    """Return the same for a module, or for the __main__ of a package."""
    try:
        spec: ModuleSpec | None = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name = f"{name}.__main__"
            spec = importlib.util.find_spec(name)
    except (ImportError, ValueError) as error:
        _fail(f"can't import '{name}': {error}")
    code = getattr(spec.loader, "get_code", lambda name: None)(name) if spec is not None else None
    if spec is None or code is None:
        _fail(f"no module named '{name}', or it cannot be run")
    sys.argv[0] = str(spec.origin)
    return code, {
        "__file__": spec.origin,
        "__cached__": spec.cached,
        "__loader__": spec.loader,
        "__package__": spec.parent,
        "__spec__": spec,
    }


def main() -> None:
    """Run the command line."""
    arguments = sys.argv[1:]
    first = arguments[0] if arguments else ""
    if first in ("-h", "--help"):
        print(_USAGE, end="")
        return
    if first in ("-V", "--version"):
        from . import __version__

        print(f"stoker {__version__}")
        return
    is_module = first == "-m"
    if len(arguments) <= is_module:
        _fail("-m requires the name of a module" if is_module else "a script is required; see python -m stoker --help")
    if first.startswith("-") and not is_module:
        _fail(f"unknown option '{first}'; see python -m stoker --help")
    sys.argv[:] = arguments[is_module:]
    code, names = _module(sys.argv[0]) if is_module else _script(sys.argv[0])
    from ._base.traces import hide_ours
    from ._engine import device_batches, gpu_queues
    from ._install import install

    if not device_batches.refused(None):
        gpu_queues.more_for_script()
    install()
    hide_ours()
    # It is not removed afterwards: threads, exit handlers and pickles that the script leaves behind need it.
    module = types.ModuleType("__main__")
    vars(module).update({"__builtins__": __builtins__, "__cached__": None, **names})
    sys.modules["__main__"] = module
    exec(code, vars(module))


if __name__ == "__main__":
    main()
