# SPDX-License-Identifier: Apache-2.0
"""Joins the parts into one Python file: embed.py OUTPUT

A Python process loads a single file as its sitecustomize; the parts share its namespace."""
import sys
from pathlib import Path

PARTS = (
    "watch.py", "operators.py", "stages.py", "alike.py", "jobs.py", "workers.py", "loaders.py", "steps.py", "costs.py", "own.py",
    "tried.py", "probe.py", "traces.py", "start.py",
)  # fmt: skip


def assembled() -> str:
    folder = Path(__file__).resolve().parent
    return "\n\n".join((folder / part).read_text(encoding="utf-8") for part in PARTS)


if __name__ == "__main__":
    source = assembled()
    compile(source, "watch.py", "exec")
    Path(sys.argv[1]).write_bytes(source.encode("utf-8").replace(b"\r", b""))
