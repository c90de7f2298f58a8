# SPDX-License-Identifier: Apache-2.0
"""Makes one Python file of the parts, and a C file of that: embed.py OUTPUT (.py or .c)

One file is what a Python process takes as its sitecustomize; the parts share its names."""
import sys
from pathlib import Path

PARTS = ("watch.py", "stages.py", "workers.py", "loaders.py", "steps.py", "own.py", "probe.py", "start.py")


def assembled() -> str:
    folder = Path(__file__).resolve().parent
    return "\n\n".join((folder / part).read_text(encoding="utf-8") for part in PARTS)


def in_c(source: bytes) -> str:
    rows = [", ".join(str(byte) for byte in source[i : i + 32]) for i in range(0, len(source), 32)]
    return (
        "#include <stddef.h>\n\nextern const char dr_inject_source[];\nextern const size_t dr_inject_size;\n"
        "const char dr_inject_source[] = {\n" + ",\n".join(rows) + ",\n0};\n"
        f"const size_t dr_inject_size = {len(source)};\n"
    )


if __name__ == "__main__":
    target = Path(sys.argv[1])
    source = assembled()
    compile(source, "watch.py", "exec")
    target.write_text(source if target.suffix == ".py" else in_c(source.encode("utf-8").replace(b"\r", b"")))
