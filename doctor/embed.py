#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Embeds a text file in C: embed.py NAME INPUT OUTPUT defines NAME_source, zero-terminated, and NAME_size."""
import sys

name, source, target = sys.argv[1:]
with open(source, "rb") as file:
    data = file.read()
rows = [", ".join(map(str, data[i : i + 32])) for i in range(0, len(data), 32)]
with open(target, "w") as file:
    file.write("#include <stddef.h>\n")
    file.write(f"extern const char {name}_source[];\nextern const size_t {name}_size;\n")
    file.write(f"const char {name}_source[] = {{\n" + ",\n".join([*rows, "0"]) + "};\n")
    file.write(f"const size_t {name}_size = {len(data)};\n")
