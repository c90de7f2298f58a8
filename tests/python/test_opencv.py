# SPDX-License-Identifier: Apache-2.0
"""cv2.imread and cv2.imdecode while a loader runs: OpenCV's results for every file and flag, whoever decodes it."""

from __future__ import annotations

import io
import os
import pathlib
import struct
import threading

import numpy as np
import pytest
import stoker
from conftest import picture
from PIL import Image
from stoker import _ext

cv2 = pytest.importorskip("cv2")
from stoker._lazy import opencv  # noqa: E402

FLAGS = [-1, 0, 1, 2, 4, 16, 17, 33, 64, 65, 128, 129, 256, 384]


def encoded(image, kind="JPEG", **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def turned(orientation, image=None):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return encoded(image or picture(1, 61, 40), exif=exif)


def with_segment(data, payload):
    """A JPEG with another APP1 segment after its first two bytes."""
    return data[:2] + b"\xff\xe1" + struct.pack(">H", len(payload) + 2) + payload + data[2:]


def tiff(order, *directories):
    """Directories of (tag, type, count, value)."""
    out = {"<": b"II*\0", ">": b"MM\0*"}[order] + struct.pack(order + "I", 8)
    for at, entries in enumerate(directories):
        out += struct.pack(order + "H", len(entries))
        for tag, kind, count, value in entries:
            out += struct.pack(order + "HHIHH", tag, kind, count, value, 0)
        last = at == len(directories) - 1
        out += struct.pack(order + "I", 0 if last else len(out) + 4)
    return out


PLAIN = encoded(picture(1, 61, 40))
FILES = {
    **{f"quality {q}": encoded(picture(q, 93, 71), quality=q) for q in (30, 75, 92, 100)},
    **{f"sampling {s}": encoded(picture(7, 50 + s, 39), subsampling=s) for s in (0, 1, 2)},
    **{f"{w} x {h}": encoded(picture(3, w, h)) for w, h in ((1, 1), (8, 1), (1, 17), (16, 16), (17, 15))},
    **{f"orientation {n}": turned(n) for n in range(1, 9)},
    "restart markers": encoded(picture(5, 99, 55), restart_marker_blocks=2),
    "grey": encoded(picture(2, 61, 40).convert("L")),
    "cmyk": encoded(picture(2, 61, 40).convert("CMYK")),
    "progressive": encoded(picture(2, 61, 40), progressive=True),
    "kept rgb": encoded(picture(2, 61, 40), keep_rgb=True),
    "png": encoded(picture(2, 61, 40), "PNG"),
    "png with alpha": encoded(picture(2, 61, 40).convert("RGBA"), "PNG"),
    "bmp": encoded(picture(2, 61, 40), "BMP"),
    "webp": encoded(picture(2, 61, 40), "WEBP"),
    "empty": b"",
    "no image": b"\xff\xd8\xffhello",
    "cut": PLAIN[: len(PLAIN) // 2],
    "more behind": PLAIN + b"more",
    "xmp": with_segment(PLAIN, b"http://ns.adobe.com/xap/1.0/\0<x:xmpmeta/>"),
    "two exif": with_segment(turned(6), b"Exif\0\0" + tiff("<", [(0x0112, 3, 1, 1)])),
    "exif by another name": with_segment(PLAIN, b"Whatev" + tiff("<", [(0x0112, 3, 1, 6)])),
    "orientation 6, big": with_segment(PLAIN, b"Exif\0\0" + tiff(">", [(0x0110, 3, 1, 1), (0x0112, 3, 1, 6)])),
    "orientation 1, big": with_segment(PLAIN, b"Exif\0\0" + tiff(">", [(0x0112, 3, 1, 1)])),
    "orientation 9": with_segment(PLAIN, b"Exif\0\0" + tiff("<", [(0x0112, 3, 1, 9)])),
    "orientation as long": with_segment(PLAIN, b"Exif\0\0" + tiff("<", [(0x0112, 4, 1, 6)])),
    "thumbnail's orientation": with_segment(PLAIN, b"Exif\0\0" + tiff("<", [(1, 3, 1, 1)], [(0x0112, 3, 1, 6)])),
    "cut exif": with_segment(PLAIN, b"Exif\0\0" + tiff("<", [(0x0112, 3, 1, 6)])[:15]),
    "circular exif": with_segment(PLAIN, b"Exif\0\0II*\0\x08\0\0\0\0\0\x08\0\0\0"),
}
OURS = ["quality 75", "sampling 0", "sampling 2", "1 x 1", "orientation 1", "restart markers", "xmp", "orientation 1, big"]


@pytest.fixture()
def by_engine(monkeypatch):
    """The flags of the images that the engine decoded."""
    made = []
    before = opencv._decoded
    monkeypatch.setattr(opencv, "_decoded", lambda data, bgr: made.append(bgr) or before(data, bgr))
    return made


def assert_same(wanted, found):
    if wanted is None:
        assert found is None
        return
    assert type(found) is np.ndarray and found.dtype == wanted.dtype and found.shape == wanted.shape
    assert np.array_equal(found, wanted)
    assert str(found.flags) == str(wanted.flags) and found.base is None


@pytest.mark.parametrize("name", FILES)
def test_every_flag_gives_opencvs_array(tmp_path, name):
    path = tmp_path / "image.jpg"
    path.write_bytes(FILES[name])
    buffer = np.frombuffer(FILES[name], np.uint8)
    wanted = [cv2.imread(str(path), flags) for flags in FLAGS]
    with stoker.lazy_images():
        for flags, array in zip(FLAGS, wanted, strict=True):
            assert_same(array, cv2.imread(str(path), flags))
        assert_same(cv2.imread(str(path)), cv2.imread(str(path), flags=1))
    if len(buffer):
        wanted = [cv2.imdecode(buffer, flags) for flags in FLAGS]
        with stoker.lazy_images():
            for flags, array in zip(FLAGS, wanted, strict=True):
                assert_same(array, cv2.imdecode(buffer, flags))


@pytest.mark.parametrize("name", OURS)
def test_the_engine_decodes_ordinary_files(tmp_path, by_engine, name):
    path = tmp_path / "image.jpg"
    path.write_bytes(FILES[name])
    assert all(opencv._agrees(flags) for flags in (cv2.IMREAD_COLOR, cv2.IMREAD_COLOR_RGB, cv2.IMREAD_UNCHANGED))
    by_engine.clear()
    with stoker.lazy_images():
        cv2.imread(str(path), cv2.IMREAD_COLOR_RGB)
        cv2.imread(str(path))
        cv2.imdecode(np.frombuffer(FILES[name], np.uint8), cv2.IMREAD_UNCHANGED)
    assert by_engine == [False, True, True]


def test_damaged_files_give_opencvs_arrays():
    rng = np.random.default_rng(11)
    file = encoded(picture(9, 120, 90), quality=85)
    ours = 0
    for _ in range(400):
        data = np.frombuffer(file, np.uint8).copy()
        where = rng.integers(2, len(data), rng.integers(1, 6))
        data[where] = rng.integers(0, 256, len(where))
        if rng.random() < 0.2:
            data = data[: rng.integers(3, len(data))].copy()
        wanted = cv2.imdecode(data, 1)
        with stoker.lazy_images():
            assert_same(wanted, cv2.imdecode(data, 1))
        ours += opencv._made(data.tobytes(), 1) is not None
    assert ours > 100


@pytest.mark.parametrize("arguments", [(), (1,), (None,), ("a", "b"), ("a", 1, 2, 3), ("a", 1.5), (b"a",), (["a"],)])
def test_wrong_arguments_raise_opencvs_errors(arguments):
    for name in ("imread", "imdecode"):
        with pytest.raises(Exception) as wanted:  # noqa: PT011 (whatever OpenCV raises)
            getattr(cv2, name)(*arguments)
            raise AssertionError("no error")
        with stoker.lazy_images(), pytest.raises(Exception) as found:  # noqa: PT011
            getattr(cv2, name)(*arguments)
            raise AssertionError("no error")
        assert type(found.value) is type(wanted.value)
        assert str(found.value) == str(wanted.value)


def test_what_is_no_file_is_left_to_opencv(tmp_path):
    (tmp_path / "folder.jpg").mkdir()
    with stoker.lazy_images():
        assert cv2.imread(str(tmp_path / "missing.jpg")) is None
        assert cv2.imread(str(tmp_path / "folder.jpg")) is None
        assert opencv._read("a\0b") is None
        assert opencv._read("\udcff.jpg") is None
    os.mkfifo(tmp_path / "fifo.jpg")
    assert opencv._read(str(tmp_path / "fifo.jpg")) is None  # and it was not opened, which would wait


def test_paths_as_opencv_takes_them(tmp_path):
    path = tmp_path / "ä b.jpg"
    path.write_bytes(PLAIN)
    wanted = cv2.imread(str(path))
    with stoker.lazy_images():
        assert_same(wanted, cv2.imread(str(path)))
        assert_same(wanted, cv2.imread(pathlib.Path(path)))


def test_a_limit_of_opencv_leaves_files_to_it(tmp_path, monkeypatch, by_engine):
    monkeypatch.setenv("OPENCV_IO_MAX_IMAGE_WIDTH", "100000")
    opencv._agrees.cache_clear()
    with stoker.lazy_images():
        assert cv2.imdecode(np.frombuffer(PLAIN, np.uint8), 1) is not None
    opencv._agrees.cache_clear()
    assert not by_engine


def test_a_decoder_that_differs_is_left_alone(monkeypatch):
    before = opencv._decoded
    monkeypatch.setattr(opencv, "_decoded", lambda data, bgr: 255 - before(data, bgr))
    opencv._agrees.cache_clear()
    wanted = cv2.imdecode(np.frombuffer(PLAIN, np.uint8), 1)
    with stoker.lazy_images():
        assert_same(wanted, cv2.imdecode(np.frombuffer(PLAIN, np.uint8), 1))
    opencv._agrees.cache_clear()


def test_functions_are_opencvs_again_and_only_this_thread_is_concerned(by_engine):
    before = cv2.imread, cv2.imdecode
    buffer = np.frombuffer(PLAIN, np.uint8)
    with pytest.raises(KeyError), stoker.lazy_images():
        cv2.imdecode(buffer, 1)
        by_engine.clear()
        assert cv2.imread is not before[0] and cv2.imread.__name__ == "imread"
        other = threading.Thread(target=lambda: cv2.imdecode(buffer, 1))
        other.start()
        other.join()
        assert not by_engine
        raise KeyError("a script's own error")
    assert (cv2.imread, cv2.imdecode) == before


# ---- functions that the engine has ----


def outcome(function, *args, **named):
    try:
        return function(*args, **named)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def test_resizes_are_opencvs():
    rng = np.random.default_rng(23)
    for n in range(120):
        shape = (*rng.integers(1, 70, 2), *[(), (3,), (1,), (4,), (2,)][n % 5])
        image = rng.integers(0, 256, shape, np.uint8)
        image = [image, image[::2], image[:, ::-1], image.astype(np.float32), np.asfortranarray(image)][n // 5 % 5]
        size = tuple(int(side) for side in rng.integers(0, 90, 2))
        calls = [((image, size), {"interpolation": int(rng.integers(0, 6))}), ((image, None), {"fx": 0.5, "fy": 1.7})]
        calls += [((image, size, np.zeros_like(image)), {}), ((image,), {}), ((image, size), {"interpolation": "x"})]
        for args, named in calls:
            wanted = outcome(cv2.resize, *args, **named)
            with stoker.lazy_images():
                found = outcome(cv2.resize, *args, **named)
            assert type(found) is type(wanted)
            if isinstance(wanted, str):
                assert found == wanted
            else:
                assert_same(wanted, found)


def test_another_setting_of_opencv_leaves_functions_to_it(monkeypatch):
    image = np.array(picture(3, 60, 50))
    with stoker.lazy_images():
        cv2.resize(image, (20, 30))
        functions = opencv._kernels(opencv._settings())
        cv2.setUseOptimized(False)
        try:
            assert opencv._kernels(opencv._settings()) == {}
            found = cv2.resize(image, (20, 30))
        finally:
            cv2.setUseOptimized(True)
        assert opencv._kernels(opencv._settings()) == functions
    assert found.shape == (30, 20, 3)


# ---- copies ----


@pytest.mark.parametrize("channel", [1, -1])
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (33, 1), (16, 16), (37, 53)])
def test_pixels_are_copied_in_any_order(shape, channel):
    image = np.random.default_rng(1).integers(0, 256, (*shape, 3), np.uint8)
    views = [np.rot90(image, k) for k in range(4)] + [image.transpose(1, 0, 2), image[::-1], image[:, ::-1], image[::2, 1::3]]
    for view in views:
        view = view[..., ::channel]
        guarded = np.full(view.size + 32, 77, np.uint8)
        out = guarded[16:-16].reshape(view.shape)
        if view.size:
            assert _ext.copy_packed(out, view)
            assert np.array_equal(out, view)
            assert (guarded[:16] == 77).all() and (guarded[-16:] == 77).all()


def test_arrays_that_cannot_be_copied_are_refused():
    image = np.zeros((4, 5, 3), np.uint8)
    copy = _ext.copy_packed
    assert not copy(np.zeros((4, 5), np.uint8), image[..., 0])
    assert not copy(np.zeros((5, 4, 3), np.uint8), image)
    assert not copy(np.zeros((4, 5, 3), np.int8), image)
    assert not copy(np.zeros((4, 5, 2), np.uint8), image[..., :2])
    assert not copy(np.zeros((3, 4, 5), np.int32), np.zeros((4, 5, 3), np.int32).transpose(2, 0, 1))
    assert not copy(np.zeros((0, 5, 3), np.uint8), image[:0])
    with pytest.raises((ValueError, BufferError)):
        copy(np.zeros((4, 10, 3), np.uint8)[:, ::2], image)
    with pytest.raises((ValueError, BufferError)):
        copy(np.frombuffer(bytes(60), np.uint8).reshape(4, 5, 3), image)
    unaligned = np.zeros(4 * 60 + 1, np.uint8)[1:].view(np.float32).reshape(4, 5, 3)
    assert not copy(np.zeros((3, 4, 5), np.float32), unaligned.transpose(2, 0, 1))


def test_tables_of_another_size_are_refused():
    out, data = np.zeros(6, np.float32), np.zeros(6, np.uint8)
    for table in (np.zeros(255, np.float32), np.zeros(512, np.float32), np.zeros(256 * 3, np.float64), np.zeros(0, np.float32)):
        with pytest.raises(ValueError, match="table"):
            _ext.through_table(out, data, table)
    with pytest.raises(ValueError, match="table"):
        _ext.through_table(out[:5], data, np.zeros(256, np.float32))
    with pytest.raises(ValueError, match="table"):
        _ext.through_table(np.zeros(7, np.float32), np.zeros(7, np.uint8), np.zeros(768, np.float32))
