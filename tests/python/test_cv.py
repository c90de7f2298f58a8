# SPDX-License-Identifier: Apache-2.0
"""The engine's functions with OpenCV's arithmetic against OpenCV itself: byte for byte, for many sizes."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import pytest
from stoker import _ext
from stoker._steps import cv

cv2 = pytest.importorskip("cv2")

LEVEL = _ext.cv_level()
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


def made(function, *args, **named):
    """The engine's result, also where calls are left to OpenCV because it is as fast."""
    call = function._call(args, named)
    with contextlib.suppress(_ext.Unsupported):
        if call is not None:
            return call.run()
    return function(*args, **named)


def check(name, *args, **named):
    function, original = cv.functions()[name], getattr(cv2, name)
    before = [a.tobytes() for a in args if isinstance(a, np.ndarray)]
    assert function.exact(*args, **named), (name, [getattr(a, "shape", a) for a in args], named)
    ours, theirs = made(function, *args, **named), original(*args, **named)
    assert np.array_equal(function(*args, **named), theirs)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    assert np.array_equal(ours, theirs), (name, [getattr(a, "shape", a) for a in args], named)
    assert [a.tobytes() for a in args if isinstance(a, np.ndarray)] == before, "the input has changed"


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


BORDERS = [cv2.BORDER_CONSTANT, cv2.BORDER_REPLICATE, cv2.BORDER_REFLECT, cv2.BORDER_WRAP, cv2.BORDER_REFLECT_101]
VALUES = [0, 7.5, (3, 300), (255, 128, -4), (1, 2, 3, 4)]


def draw_map(chance, width, height, rows):
    if chance.integers(5) == 0:
        matrix = np.array([[1, 0, chance.integers(-9, 9)], [0, 1, chance.integers(-9, 9)]], np.float64)
    else:
        angle, scale = chance.uniform(-4, 4), np.exp(chance.normal(0, 0.6))
        c, s = scale * np.cos(angle), scale * np.sin(angle)
        matrix = np.array([[c, -s, chance.uniform(-width, width)], [s, c, chance.uniform(-height, height)]])
    if rows == 3:
        matrix = np.vstack([matrix, [chance.normal() * 1e-3, chance.normal() * 1e-3, 1]])
    return matrix if chance.integers(4) else matrix.astype(np.float32)


@pytest.mark.parametrize(("name", "rows"), [("warpAffine", 2), ("warpPerspective", 3)])
def test_warps_of_many_sizes(chance, name, rows):
    for k in range(300):
        array = image(chance)
        matrix = draw_map(chance, array.shape[1], array.shape[0], rows)
        flags = cv2.INTER_LINEAR | (cv2.WARP_INVERSE_MAP if k % 3 == 0 else 0)
        border, value = BORDERS[k % 5], VALUES[k % 4]
        check(name, array, matrix, (side(chance), side(chance)), flags=flags, borderMode=border, borderValue=value)


@pytest.mark.parametrize("matrix", [np.zeros((2, 3)), np.array([[1, 2, 3], [2, 4, 6.0]]), np.eye(2, 3) * 1e300])
def test_maps_without_an_inverse_and_huge_ones(chance, matrix):
    array = image(chance, 3, 40, 50)
    check("warpAffine", array, matrix, (60, 70), borderValue=9)
    check("warpPerspective", array, np.vstack([matrix, [0, 0, 1]]), (60, 70), borderValue=9)


def test_remaps(chance):
    for k in range(300):
        array, shape = image(chance), (side(chance), side(chance))
        height, width = array.shape[:2]
        xs = chance.uniform(-0.3 * width, 1.3 * width, shape).astype(np.float32)
        ys = chance.uniform(-0.3 * height, 1.3 * height, shape).astype(np.float32)
        maps = (np.dstack([xs, ys]), None) if k % 2 else (xs, ys)
        check("remap", array, *maps, cv2.INTER_LINEAR, borderMode=BORDERS[k % 5], borderValue=VALUES[k % 4])


@pytest.mark.parametrize("far", [np.nan, np.inf, -np.inf, 3e9, -3e9, 1e30, 2e7])
def test_points_that_are_no_numbers_or_far_outside(chance, far):
    array = image(chance, 3, 40, 50)
    ys, xs = np.mgrid[:40, :50].astype(np.float32)
    xs[3:5, 7:40] = far
    ys[::9] += np.float32(0.25)
    ys[20, 3] = far
    check("remap", array, xs, ys, cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT, borderValue=9)
    out = np.empty_like(array)
    for border in BORDERS[1:]:  # OpenCV may not return from some of these
        with pytest.raises(_ext.Unsupported, match="row 3 has points that are too far outside"):
            _ext.cv_run("remap", (float(border), 0, 0, 0, 0), (xs, ys), array, out)


def test_warps_that_are_opencvs(chance):
    array, matrix = image(chance, 3, 40, 50), np.eye(2, 3)
    warp = cv.functions()["warpAffine"]
    for args, named in [
        ((array, matrix, (50, 40)), {"flags": cv2.INTER_CUBIC}),
        ((array, matrix.astype(int).astype(np.float16), (50, 40)), {}),
        ((array, matrix * np.nan, (50, 40)), {}),
        ((array, matrix, (50, 40)), {"borderMode": cv2.BORDER_TRANSPARENT}),
        ((array[:, :, :2].copy(), matrix, (50, 40)), {}),
        ((array, matrix, (50, 40)), {"borderValue": (1, 2, 3, 4, 5)}),
        ((array, matrix, (50, 40)), {"dst": array.copy()}),
    ]:
        assert not warp.exact(*args, **named)
    warped = warp(array[:, :, :2].copy(), matrix, (30, 20))
    assert np.array_equal(warped, cv2.warpAffine(array[:, :, :2].copy(), matrix, (30, 20)))


def test_views_are_read_where_they_lie(chance):
    whole = image(chance, 3, 90, 120)
    for view in (whole[10:80, 5:90], whole[::-1], whole[::2], whole[:, :, 0:1]):
        resized = cv.functions()["resize"](view, (50, 40))
        assert np.array_equal(resized, cv2.resize(np.ascontiguousarray(view), (50, 40)))
        matrix = np.array([[0.8, 0.3, -4.0], [-0.2, 1.1, 6.5]])
        warped = made(cv.functions()["warpAffine"], view, matrix, (80, 90))
        assert np.array_equal(warped, cv2.warpAffine(np.ascontiguousarray(view), matrix, (80, 90)))


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
    function = cv.Function("resize", cv._RESIZES.values(), cv._resize, cv._resize_samples)

    def other(src, dsize, *rest):
        out = cv2.resize(src, dsize, *rest)
        return out ^ 1 if rest[-1] == cv2.INTER_AREA else out

    assert function.compare(other)
    array = image(chance, 3, 40, 50)
    assert function.exact(array, (20, 20)) and not function.exact(array, (20, 20), interpolation=cv2.INTER_AREA)
    assert np.array_equal(function(array, (20, 20), None, 0, 0, 3), cv2.resize(array, (20, 20), interpolation=3) ^ 1)


def test_calls_for_which_opencv_is_as_fast_are_left_to_it(chance):
    array, grey = image(chance, 3, 40, 50), image(chance, 1, 40, 50)
    calls = []
    function = cv.Function("warpAffine", ["warp_affine"], cv._warp_affine, list)
    function.compare(lambda *args, **named: calls.append(named))
    function(array, np.eye(2, 3), (50, 40), flags=cv2.INTER_LINEAR)
    assert not calls
    function(grey, np.eye(2, 3), (50, 40), flags=cv2.INTER_LINEAR)
    function(array, np.eye(2, 3), (50, 40), flags=cv2.INTER_NEAREST)
    assert calls == [{"flags": cv2.INTER_LINEAR}, {"flags": cv2.INTER_NEAREST}]


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
        ("warp_affine", (1.0,) * 11, (), array, out),
        ("warp_affine", (1.0,) * 7 + (-1.0,) + (0.0,) * 4, (), array, out),
        ("warp_affine", (1.0,) * 7 + (5.0,) + (0.0,) * 4, (), array, out),
        ("warp_affine", (float("nan"),) + (1.0,) * 11, (), array, out),
        ("remap", (1.0,) * 5, (), array, out),
        ("remap", (1.0,) * 5, (np.zeros((4, 5), np.float32),) * 2, array, out),
        ("remap", (1.0,) * 5, (np.zeros((5, 5), np.float32),), array, out),
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
