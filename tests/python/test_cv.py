# SPDX-License-Identifier: Apache-2.0
"""The engine's functions with OpenCV's arithmetic against OpenCV itself: byte for byte, for many sizes."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from stoker import _ext
from stoker._steps import cv

cv2 = pytest.importorskip("cv2")

LEVEL = next(detail for kind, detail, *_ in _ext.features() if kind == "kernels")
pytestmark = pytest.mark.skipif(LEVEL not in ("avx2", "avx512"), reason=f"OpenCV makes all of them on {LEVEL}")


@pytest.fixture
def chance():
    return np.random.default_rng(34)


def side(chance):
    return int(chance.integers(1, chance.choice([4, 40, 300])))


def image(chance, channels=None, height=None, width=None):
    """Noise, black and white noise (which finds sums that overflow), or a smooth image."""
    height, width = height or side(chance), width or side(chance)
    channels = channels or int(chance.choice([1, 3, 3, 3, 4]))
    out = chance.integers(0, 256, (height, width, channels), dtype=np.uint8)
    kind = chance.integers(3)
    if kind == 0:
        out = np.where(out > 127, 255, 0).astype(np.uint8)
    elif kind == 1:
        out = np.cumsum(out % 5, axis=1).astype(np.uint8)
    return out if channels > 1 else out[:, :, 0].copy()


def check(name, *args, **named):
    function, original = cv.functions()[name], getattr(cv2, name)
    before = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    assert function.exact(*args, **named), (name, [getattr(a, "shape", a) for a in args], named)
    ours, theirs = function(*args, **named), original(*args, **named)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    assert np.array_equal(ours, theirs), (name, [getattr(a, "shape", a) for a in args], named)
    assert all(np.array_equal(a, b) for a, b in zip(args, before, strict=True)), "the input has changed"


@pytest.mark.parametrize("interpolation", [cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_AREA])
def test_resizes_of_many_sizes(chance, interpolation):
    for _ in range(300):
        check("resize", image(chance), (side(chance), side(chance)), interpolation=interpolation)


@pytest.mark.parametrize("interpolation", [cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_AREA])
@pytest.mark.parametrize("step", [1, 2, 3, 5])
def test_resizes_by_whole_numbers(chance, interpolation, step):
    for _ in range(20):
        width, height = side(chance), side(chance)
        check("resize", image(chance, None, height * step, width * step), (width, height), interpolation=interpolation)


def test_a_large_photograph_sized_array(chance):
    big = image(chance, 3, 1500, 2100)
    for size in ((224, 224), (2100, 300), (1050, 750), (3000, 1600)):
        for interpolation in (cv2.INTER_NEAREST, cv2.INTER_LINEAR, cv2.INTER_AREA):
            check("resize", big, size, interpolation=interpolation)


def test_views_are_read_where_they_lie(chance):
    whole = image(chance, 3, 90, 120)
    for view in (whole[10:80, 5:90], whole[::-1], whole[::2], whole[:, :, 0:1]):
        resized = cv.functions()["resize"](view, (50, 40))
        assert np.array_equal(resized, cv2.resize(np.ascontiguousarray(view), (50, 40)))


def test_what_the_engine_does_not_have_is_opencvs(chance):
    resize = cv.functions()["resize"]
    array = image(chance, 3, 40, 50)
    for args, named in [
        ((array.astype(np.float32), (20, 20)), {}),
        ((array, (20, 20)), {"interpolation": cv2.INTER_CUBIC}),
        ((array, None), {"fx": 0.5, "fy": 0.5}),
        ((array[:, ::2], (20, 20)), {}),
        ((np.dstack([array, array]), (20, 20)), {}),
    ]:
        assert not resize.exact(*args, **named)
        assert np.array_equal(resize(*args, **named), cv2.resize(*args, **named))
    for args in [(), (array,), (array, (0, 5)), (None, (5, 5))]:
        assert not resize.exact(*args)
        with pytest.raises((cv2.error, TypeError)):
            resize(*args)
    with pytest.raises((cv2.error, TypeError)):
        resize(array, (5, 5), colour=1)


def test_an_operation_that_differs_from_the_installed_opencv_is_left_to_it(chance):
    function = cv.Function("resize", cv._resize, cv._resize_samples)

    def other(src, dsize, *rest):
        out = cv2.resize(src, dsize, *rest)
        return out ^ 1 if rest[-1] == cv2.INTER_AREA else out

    assert function.compare(other)
    array = image(chance, 3, 40, 50)
    assert function.exact(array, (20, 20)) and not function.exact(array, (20, 20), interpolation=cv2.INTER_AREA)
    assert np.array_equal(function(array, (20, 20), None, 0, 0, 3), cv2.resize(array, (20, 20), interpolation=3) ^ 1)


def test_threads_beside_each_other(chance):
    images = [image(chance, 3, 200, 300) for _ in range(4)]
    wanted = [cv2.resize(i, (111, 77)) for i in images]
    wrong = []

    def work(k):
        for _ in range(50):
            if not np.array_equal(cv.functions()["resize"](images[k], (111, 77)), wanted[k]):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_engine_refuses_what_it_cannot_do(chance):
    array, out = image(chance, 3, 10, 10), np.empty((5, 5, 3), np.uint8)
    for args in [
        ("resize_cubic", (), (), array, out),
        ("resize_linear", (1.0,), (), array, out),
        ("resize_linear", (), (array,), array, out),
        ("resize_linear", (), (), array, array),
        ("resize_linear", (), (), array[:, ::2], out),
        ("resize_linear", (), (), array[:, :, :2], out),
        ("resize_linear", (), (), np.empty((0, 5, 3), np.uint8), out),
        ("resize_linear", (), (), np.empty((1, 40000, 3), np.uint8), out),
    ]:
        with pytest.raises(_ext.InvalidArgument):
            _ext.cv_run(*args)
    for args in [
        ("resize_linear", (), (), array.astype(np.int16), out),
        ("resize_linear", ("x",), (), array, out),
        ("resize_linear", (), (), b"abc", out),
        ("resize_linear", (), (object(),), array, out),
    ]:
        with pytest.raises(TypeError):
            _ext.cv_run(*args)
    with pytest.raises((TypeError, ValueError, BufferError)):
        frozen = out.copy()
        frozen.flags.writeable = False
        _ext.cv_run("resize_linear", (), (), array, frozen)
