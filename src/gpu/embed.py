# SPDX-License-Identifier: Apache-2.0
"""Makes a C file of the kernels that nvcc compiled: embed.py FATBIN ABOUT OUTPUT"""
import struct
import sys

source, about, target = sys.argv[1:]
with open(source, "rb") as file:
    data = file.read()
data += bytes(-len(data) % 64)
words = [f"0x{word:x}," for (word,) in struct.iter_unpack("<Q", data)]
lines = [" ".join(words[i : i + 8]) for i in range(0, len(words), 8)]
with open(target, "w") as file:
    file.write('#include "gpu/image.h"\n\n')
    file.write("_Alignas(64) const uint64_t st_gpu_image[] = {\n" + "\n".join(lines) + "\n};\n")
    file.write(f'const char st_gpu_image_about[] = "{about}";\n')
