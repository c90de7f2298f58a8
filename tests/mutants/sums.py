# SPDX-License-Identifier: Apache-2.0
"""Checksums that formats carry: a mutant whose sums are right again gets past the first check."""

from __future__ import annotations

import zlib


def table(polynomial, reflected):
    """Of a CRC of 32 bits, one entry a byte."""
    made = []
    for byte in range(256):
        value = byte if reflected else byte << 24
        for _ in range(8):
            if reflected:
                value = value >> 1 ^ (polynomial if value & 1 else 0)
            else:
                value = (value << 1 ^ (polynomial if value >> 31 else 0)) & 0xFFFFFFFF
        made.append(value)
    return made


CASTAGNOLI, OGG = table(0x82F63B78, True), table(0x04C11DB7, False)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CASTAGNOLI[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


def masked(data):
    """As TFRecord keeps it."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF).to_bytes(4, "little")


def ogg(data):
    crc = 0
    for byte in data:
        crc = crc << 8 & 0xFFFFFFFF ^ OGG[crc >> 24 ^ byte]
    return crc


def crc32(data):
    return zlib.crc32(data)


def _turn(x, k):
    return (x << k | x >> 32 - k) & 0xFFFFFFFF


def lookup3(data):
    """Of HDF5's metadata: Jenkins' hash of 2006, over little-endian words."""
    mask = 0xFFFFFFFF
    a = b = c = 0xDEADBEEF + len(data) & mask
    rest = len(data) % 12 or (12 if data else 0)
    for at in range(0, len(data) - rest, 12):
        x, y, z = (int.from_bytes(data[at + k:at + k + 4], "little") for k in (0, 4, 8))
        a, b, c = a + x & mask, b + y & mask, c + z & mask
        a = (a - c & mask) ^ _turn(c, 4)
        c = c + b & mask
        b = (b - a & mask) ^ _turn(a, 6)
        a = a + c & mask
        c = (c - b & mask) ^ _turn(b, 8)
        b = b + a & mask
        a = (a - c & mask) ^ _turn(c, 16)
        c = c + b & mask
        b = (b - a & mask) ^ _turn(a, 19)
        a = a + c & mask
        c = (c - b & mask) ^ _turn(b, 4)
        b = b + a & mask
    if not data:
        return c
    tail = bytes(data[len(data) - rest:]).ljust(12, b"\0")
    x, y, z = (int.from_bytes(tail[k:k + 4], "little") for k in (0, 4, 8))
    a, b, c = a + x & mask, b + y & mask, c + z & mask
    c = (c ^ b) - _turn(b, 14) & mask
    a = (a ^ c) - _turn(c, 11) & mask
    b = (b ^ a) - _turn(a, 25) & mask
    c = (c ^ b) - _turn(b, 16) & mask
    a = (a ^ c) - _turn(c, 4) & mask
    b = (b ^ a) - _turn(a, 14) & mask
    return (c ^ b) - _turn(b, 24) & mask
