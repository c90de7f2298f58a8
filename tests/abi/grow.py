# SPDX-License-Identifier: Apache-2.0
"""Writes the header of a later version: every structure that may grow has more members, an enumeration one constant more.

    grow.py STOKER_H OUT
"""

import re
import sys
from pathlib import Path


def grow(header: str) -> str:
    header, structures = re.subn(
        r"(\nstruct stoker_\w+ \{\n    size_t size;[^}]*)(\n\};)", r"\1\n    uint64_t grown[3];\2", header
    )
    header, stages = re.subn(r"\n( *)STOKER_STAGE_COUNT ", r"\n\1STOKER_STAGE_GROWN,\n\1STOKER_STAGE_COUNT ", header)
    header, versions = re.subn(
        r"(#define STOKER_VERSION_MINOR) (\d+)", lambda found: f"{found[1]} {int(found[2]) + 1}", header
    )
    sized = len(re.findall(r"\n    size_t size;", header)) - len(re.findall(r"\n    size_t size; /\* bytes of", header))
    if structures < 15 or structures != sized or stages != 1 or versions != 1:
        sys.exit(f"{structures} structures grew of {sized} that have a size, {stages} enumerations, {versions} versions")
    return header


source, out = map(Path, sys.argv[1:])
text = grow(source.read_text())
if not out.exists() or out.read_text() != text:  # or everything would be compiled again
    out.write_text(text)
