# SPDX-License-Identifier: Apache-2.0
"""The reference page of the program, from its own help."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(sys.executable).parent / "stoker"


def _said(*arguments: str) -> str:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=True).stdout.rstrip()


def page() -> str:
    general = _said("--help")
    out = ["# Command line", "", "What `stoker help` and `stoker help COMMAND` print. `man stoker` says more.", "",
           "```text", general, "```", ""]
    for name in re.findall(r"^  ([a-z]+) {2,}", general, re.M):
        if name != "help":
            out += [f"## stoker {name}", "", "```text", _said("help", name), "```", ""]
    return "\n".join(out) + "\n"
