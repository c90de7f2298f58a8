# SPDX-License-Identifier: Apache-2.0
"""What Pillow makes of a file, and whether stoker.decode makes the same."""

import io
import random
import warnings

import numpy
import stoker
from PIL import Image


def pillow(data):
    """The pixels of Image.open(...).convert("RGB"), or the exception that it raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(io.BytesIO(data)) as image:
                return numpy.asarray(image.convert("RGB"))
        except Exception as error:  # Pillow lets all kinds through
            return error


def ours(data, region=None):
    try:
        return stoker.decode(data, region=region)
    except Exception as error:
        return error


def agree(a, b):
    if isinstance(a, Exception) or isinstance(b, Exception):
        return isinstance(a, Exception) and isinstance(b, Exception)
    return a.shape == b.shape and bool((a == b).all())


def regions(rng, width, height):
    """A few rectangles: corners, the middle, a single pixel."""
    yield 0, 0, width, height
    yield width - 1, height - 1, 1, 1
    for _ in range(3):
        x, y = rng.randrange(width), rng.randrange(height)
        yield x, y, rng.randint(1, width - x), rng.randint(1, height - y)


def check(data, what, seed=0):
    """The whole image and parts of it equal Pillow's, byte for byte."""
    expected = pillow(data)
    assert not isinstance(expected, Exception), f"{what}: Pillow says {expected!r}"
    got = ours(data)
    assert not isinstance(got, Exception), f"{what}: {got}"
    assert got.dtype == numpy.uint8 and got.shape == expected.shape, what
    assert (got == expected).all(), what
    height, width = expected.shape[:2]
    for x, y, w, h in regions(random.Random(seed), width, height):
        part = ours(data, (x, y, w, h))
        assert not isinstance(part, Exception), f"{what} at {(x, y, w, h)}: {part}"
        assert (part == expected[y : y + h, x : x + w]).all(), f"{what} at {(x, y, w, h)}"


def check_refused(data, what, says=""):
    """An error that says so, and Pillow refuses as well."""
    assert isinstance(pillow(data), Exception), f"{what}: Pillow takes it"
    got = ours(data)
    assert isinstance(got, Exception), f"{what}: taken"
    assert says in str(got), f"{what}: {got}"


def mutations(rng, data, count):
    """Bytes changed, cut out, doubled, cut off."""
    for _ in range(count):
        changed = bytearray(data)
        kind = rng.randrange(6)
        at = rng.randrange(len(changed))
        if kind < 3:
            for _ in range(rng.randint(1, 3)):
                changed[rng.randrange(len(changed))] = rng.choice([0, 1, 255, rng.randrange(256)])
        elif kind == 3:
            del changed[at : at + rng.randint(1, 8)]
        elif kind == 4:
            changed[at:at] = changed[at : at + rng.randint(1, 8)]
        else:
            del changed[at:]
        yield bytes(changed)


def agreement(files, least):
    """Of these files at least so large a part gives the same pixels, or an error, on both sides."""
    outcomes = [agree(pillow(data), ours(data)) for data in files]
    print(f"{sum(outcomes)} of {len(outcomes)} agree")
    assert sum(outcomes) >= least * len(outcomes)
