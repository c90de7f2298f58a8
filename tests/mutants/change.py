# SPDX-License-Identifier: Apache-2.0
"""Changes to a file: numbers that its format counts by, bytes, and the order and number of its parts.

A field is (offset, size, kind): kind "<" or ">" for a binary number of that byte order, "o" and "d" for octal and
decimal digits. Cuts are offsets at which parts of the file begin.
"""

from __future__ import annotations

NUMBERS = [0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 127, 128, 255, 256, 511, 512, 513, 1023, 4095, 4096, 32767, 32768,
           65535, 65536, (1 << 24) - 1, 1 << 24, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 40, (1 << 62) - 1,
           1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 512, (1 << 64) - 1]
TEXT = [b'"', b",", b"\n", b"\r\n", b"{", b"}", b"[", b"]", b":", b"\\", b"\\u", b"\\ud800", b"\0", b"\xff",
        b"\xef\xbb\xbf", b"-", b"e999", b"nan", b"null", b"1e400", b".", b"../", b"/", b"(", b")", b"'",
        b"True", b" ", b"\t", b"%s", b"#"]


def number(chance, now, size, length):
    """One that a reader may not expect in the place of `now`."""
    kind = chance.randrange(6)
    if kind == 0:
        return chance.choice(NUMBERS)
    if kind == 1:
        return now + chance.choice([-512, -8, -4, -2, -1, 1, 2, 4, 8, 512])
    if kind == 2:
        return chance.choice([now * 2, now // 2, now << 8, now >> 8, ~now, now ^ 1 << chance.randrange(8 * size)])
    if kind == 3:
        return length + chance.randint(-16, 16)
    if kind == 4:
        return chance.randrange(max(1, length)) & -chance.choice([1, 8, 512, 4096])
    return chance.randrange(1 << chance.randint(1, 8 * size))


def change_field(chance, data, fields):
    if not fields:
        return change_byte(chance, data)
    at, size, kind = chance.choice(fields)
    old = bytes(data[at:at + size])
    if len(old) < size:
        return data
    if kind in "<>":
        order = "little" if kind == "<" else "big"
        new = number(chance, int.from_bytes(old, order), size, len(data)) % (1 << 8 * size)
        data[at:at + size] = new.to_bytes(size, order)
        return data
    base = 8 if kind == "o" else 10
    digits = old.strip(b" \0")
    now = int(digits, base) if digits.isdigit() and (base == 10 or not set(digits) & set(b"89")) else 0
    new = abs(number(chance, now, 8, len(data))) % (1 << 70)
    if kind == "o" and chance.random() < 0.2:  # as GNU tar writes what is larger
        data[at:at + size] = b"\x80" + (new % (1 << 8 * (size - 1))).to_bytes(size - 1, "big")
    elif kind == "o":
        data[at:at + size] = (b"%0*o" % (size - 1, new))[-(size - 1):] + chance.choice([b"\0", b" ", b"7"])
    else:
        data[at:at + size] = chance.choice([b"%d", b"-%d", b"%d.5", b"%de9"]) % new
    return data


def change_byte(chance, data):
    if data:
        at = chance.randrange(len(data))
        data[at] = chance.choice([data[at] ^ 1 << chance.randrange(8), chance.randrange(256), 0, 255])
    return data


def change_run(chance, data):
    if data:
        at, size = chance.randrange(len(data)), chance.choice([2, 4, 8, 16, 64])
        data[at:at + size] = chance.choice([bytes(size), b"\xff" * size, chance.randbytes(size)])[:len(data) - at]
    return data


def pick(chance, data, cuts):
    """An offset: of a part, mostly."""
    return chance.choice(cuts) if cuts and chance.random() < 0.7 else chance.randint(0, len(data))


def change_parts(chance, data, cuts, others):
    """Parts lost, doubled, moved, taken from another file, or cut off."""
    a, b = sorted((pick(chance, data, cuts), pick(chance, data, cuts)))
    part = bytes(data[a:b])[:65536]
    kind = chance.randrange(5)
    if kind == 0:
        del data[a:b]
    elif kind == 1:
        data[b:b] = part
    elif kind == 2:
        at = pick(chance, data, cuts)
        data[at:at + len(part)] = part
    elif kind == 3:
        other = chance.choice(others)
        c = chance.randint(0, len(other))
        data[a:b if chance.random() < 0.5 else a] = other[c:c + chance.choice([8, 64, 512, 4096])]
    else:
        del data[pick(chance, data, cuts):]
    return data


def change_text(chance, data):
    at = chance.randint(0, len(data))
    data[at:at + chance.randrange(3)] = chance.choice(TEXT) * chance.choice([1, 1, 1, 2, 1000])
    return data


def changed(chance, seed, others, fields, cuts, text):
    """A copy of `seed` with some changes; `fields` and `cuts` are functions of the bytes."""
    data = bytearray(seed)
    for _ in range(min(8, 1 + int(chance.expovariate(0.9)))):
        kind = chance.random()
        if text and kind < 0.4:
            data = change_text(chance, data)
        elif kind < 0.6:
            data = change_field(chance, data, fields(data))
        elif kind < 0.75:
            data = change_byte(chance, data)
        elif kind < 0.8:
            data = change_run(chance, data)
        else:
            data = change_parts(chance, data, cuts(data), others)
    return bytes(data[:1 << 20])
