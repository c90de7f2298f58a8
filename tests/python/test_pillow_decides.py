# SPDX-License-Identifier: Apache-2.0
"""Files that the engine refuses: Pillow decodes them under its settings, and its exceptions are ours too."""

from __future__ import annotations

import pickle
import warnings

import pytest
import stoker
import torch
import torch.utils.data as tud
import torchvision.transforms as V1
from conftest import picture, run_python, save_tree
from PIL import Image, ImageFile, UnidentifiedImageError
from stoker import transforms as T
from torchvision.datasets import ImageFolder

STEPS = [V1.Resize(40), V1.CenterCrop(32), V1.ToTensor()]
FORMATS = {
    "jpg": {"quality": 90},
    "png": {},
    "bmp": {},
    "webp": {"lossless": True},
    "tif": {"compression": "tiff_lzw"},
    "ppm": {},
}


@pytest.fixture()
def truncated(monkeypatch):
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)


@pytest.fixture()
def cut_tree(tmp_path):
    """Whole images, and images of every format cut at several places."""
    root = save_tree(tmp_path / "cut", {"a": 4}, (61, 47))
    (root / "b").mkdir()
    for extension, options in FORMATS.items():
        path = root / "b" / f"whole.{extension}"
        picture(7, 61, 47).save(path, **options)
        whole = path.read_bytes()
        path.unlink()
        for percent in (60, 90, 99):
            (root / "b" / f"{percent}.{extension}").write_bytes(whole[: len(whole) * percent // 100])
    return root


def outcome(loader):
    """Every batch, or the class and text of its error."""
    out, batches = [], iter(loader)
    while True:
        try:
            out.append(next(batches)[0].clone())
        except StopIteration:
            return out
        except Exception as error:
            out.append(error)


def assert_as_torch(data, **options):
    theirs = outcome(tud.DataLoader(data))
    ours = outcome(stoker.DataLoader(data, **options))
    assert len(theirs) == len(ours)
    for want, got in zip(theirs, ours, strict=True):
        if isinstance(want, Exception):
            assert isinstance(got, type(want)) and isinstance(got, stoker.StokerError), (want, got)
        else:
            assert torch.equal(want, got)
    return theirs, ours


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_truncated_images_raise_what_pillow_raises(cut_tree, workers):
    theirs, ours = assert_as_torch(ImageFolder(cut_tree, V1.Compose(STEPS)), num_workers=workers)
    failed = [(a, b) for a, b in zip(theirs, ours, strict=True) if isinstance(a, Exception)]
    assert len(failed) >= 10
    assert all(str(a) in str(b) for a, b in failed if "BytesIO" not in str(a))


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_load_truncated_images_is_honoured(cut_tree, truncated, workers):
    theirs, _ = assert_as_torch(ImageFolder(cut_tree, V1.Compose(STEPS)), num_workers=workers)
    assert sum(isinstance(one, torch.Tensor) for one in theirs) >= 10


def test_the_setting_counts_when_the_epoch_runs(bad_tree, monkeypatch):
    """It is set after the loader was made, and again after an epoch."""
    (bad_tree / "b" / "002.jpg").unlink()
    data = ImageFolder(bad_tree, V1.Compose(STEPS))
    loader = stoker.DataLoader(data, 2, num_workers=1)
    for value in (True, False, True):
        monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", value)
        bad = [one for one in outcome(loader) if isinstance(one, OSError)]
        assert len(bad) == (0 if value else 1)


def test_datasets_of_stoker_honour_it_too(cut_tree, truncated):
    ours = stoker.datasets.ImageFolder(cut_tree, T.Compose([T.Resize(40), T.CenterCrop(32), T.ToTensor()]))
    plain, theirs = stoker.datasets.ImageFolder(cut_tree), ImageFolder(cut_tree, V1.Compose(STEPS))
    loaded = outcome(stoker.DataLoader(ours))
    for i in range(len(theirs)):
        try:
            want = theirs[i][0]
        except Exception as error:
            for make in (lambda i=i: ours[i], lambda i=i: plain[i]):
                with pytest.raises(type(error)) as info:
                    make()
                assert isinstance(info.value, stoker.StokerError)
            assert isinstance(loaded[i], type(error))
            continue
        assert torch.equal(ours[i][0], want) and torch.equal(loaded[i][0], want)
        assert (plain[i][0] == Image.open(theirs.samples[i][0]).convert("RGB")).all()


def test_bad_samples_are_skipped_only_if_pillow_cannot_decode_them(cut_tree, truncated):
    data = stoker.datasets.ImageFolder(cut_tree, T.Compose([T.Resize((32, 32)), T.ToTensor()]))
    loader = stoker.DataLoader(data, 4, on_error="skip", num_workers=2, seed=3)
    assert sum(len(labels) for _, labels in loader) == len(data)
    bad = {entry["sample"] for entry in loader.bad_samples()}
    theirs = ImageFolder(cut_tree, V1.ToTensor())
    for i in range(len(theirs)):
        try:
            theirs[i]
            assert i not in bad
        except Exception:
            assert i in bad


@pytest.mark.parametrize("workers", [0, 2])
def test_a_format_that_only_pillow_has(even_tree, tmp_path, workers):
    """Files have the wrong extension more often than one would think."""
    root = save_tree(tmp_path / "mixed", {"a": 6}, (48, 40))
    picture(9, 48, 40).save(tmp_path / "x.gif")
    (root / "a" / "000.jpg").write_bytes((tmp_path / "x.gif").read_bytes())
    theirs, _ = assert_as_torch(ImageFolder(root, V1.Compose(STEPS)), num_workers=workers)
    assert not any(isinstance(one, Exception) for one in theirs)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("limit", [3000, 1500, 1000, None])
def test_max_image_pixels_is_honoured(tmp_path, monkeypatch, limit, workers):
    root = save_tree(tmp_path / "tree", {"a": 5}, (61, 47))  # 2867 pixels
    data = ImageFolder(root, V1.Compose(STEPS))
    loader = stoker.DataLoader(data, num_workers=workers)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    seen = []
    for each in (tud.DataLoader(data), loader):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            seen.append((outcome(each), [(w.category, str(w.message)) for w in caught]))
    (theirs, warned), (ours, warned_too) = seen
    assert warned == warned_too and len(warned) == (5 if limit == 1500 else 0)
    for want, got in zip(theirs, ours, strict=True):
        if limit == 1000:
            assert type(want) is Image.DecompressionBombError
            assert isinstance(got, Image.DecompressionBombError) and isinstance(got, stoker.LimitReached)
        else:
            assert torch.equal(want, got)


def test_a_bomb_warning_that_is_an_error(tmp_path, monkeypatch):
    data = ImageFolder(save_tree(tmp_path / "tree", {"a": 2}, (61, 47)), V1.Compose(STEPS))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1500)
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        with pytest.raises(Image.DecompressionBombWarning):
            next(iter(stoker.DataLoader(data)))


def test_an_explicit_pixel_limit_stays(even_tree, monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    data = stoker.datasets.ImageFolder(even_tree, T.Compose([T.CenterCrop(8), T.ToTensor()]))
    with pytest.raises(stoker.LimitReached):
        next(iter(stoker.DataLoader(data, pixel_limit=1000)))


def test_a_missing_file_has_errno_and_filename(even_tree, tmp_path):
    root = save_tree(tmp_path / "tree", {"a": 3}, (48, 40))
    data = ImageFolder(root, V1.ToTensor())
    (root / "a" / "000.jpg").unlink()
    with pytest.raises(FileNotFoundError) as theirs:
        next(iter(tud.DataLoader(data)))
    with pytest.raises(FileNotFoundError) as ours:
        next(iter(stoker.DataLoader(data)))
    for error in (ours.value, pickle.loads(pickle.dumps(ours.value))):
        assert (error.errno, error.filename, str(error)) == (
            theirs.value.errno,
            theirs.value.filename,
            str(theirs.value),
        )
    assert isinstance(ours.value, stoker.NotFound) and isinstance(ours.value, stoker.StokerError)


def test_a_folder_in_place_of_a_file_has_errno_and_filename(even_tree, tmp_path):
    root = save_tree(tmp_path / "tree", {"a": 3}, (48, 40))
    data = ImageFolder(root, V1.ToTensor())
    (root / "a" / "000.jpg").unlink()
    (root / "a" / "000.jpg").mkdir()
    with pytest.raises(IsADirectoryError) as theirs:
        next(iter(tud.DataLoader(data)))
    with pytest.raises(IsADirectoryError) as ours:
        next(iter(stoker.DataLoader(data)))
    for error in (ours.value, pickle.loads(pickle.dumps(ours.value))):
        assert (error.errno, error.filename, str(error)) == (
            theirs.value.errno,
            theirs.value.filename,
            str(theirs.value),
        )
    assert isinstance(ours.value, stoker.ReadError) and isinstance(ours.value, stoker.StokerError)


def test_what_is_no_image(bad_tree):
    with pytest.raises(UnidentifiedImageError) as theirs:
        ImageFolder(bad_tree)[9]
    errors = [one for one in outcome(stoker.DataLoader(ImageFolder(bad_tree, V1.ToTensor()))) if isinstance(one, OSError)]
    assert isinstance(errors[1], UnidentifiedImageError) and isinstance(errors[1], stoker.CorruptSample)
    assert str(theirs.value) in str(errors[1]) and str(bad_tree) in str(errors[1])
    again = pickle.loads(pickle.dumps(errors[1]))
    assert str(again) == str(errors[1]) and isinstance(again, UnidentifiedImageError)


def test_errors_of_the_engine_are_stoker_errors(tmp_path):
    makers = [
        (lambda: stoker.open(tmp_path / "nothing"), FileNotFoundError),
        (lambda: stoker.open(f"nokind:{tmp_path}"), NotImplementedError),
        (lambda: stoker.decode(b"no image"), stoker.CorruptSample),
        (lambda: stoker._ext.Pipeline("resize(size=-1)"), ValueError),
    ]
    for make, kind in makers:
        with pytest.raises(stoker.StokerError) as info:
            make()
        assert isinstance(info.value, kind)
    with pytest.raises(stoker.NotFound) as info:
        stoker.open(tmp_path / "nothing")
    assert info.value.errno == 2


def test_an_interrupt_in_pillow_ends_next(bad_tree, monkeypatch):
    """What is not an Exception goes through the engine, and the loader works afterwards."""
    loader = stoker.DataLoader(ImageFolder(bad_tree, V1.ToTensor()), 6, num_workers=2)

    def stop(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(Image, "open", stop)
    with pytest.raises(KeyboardInterrupt):
        list(loader)
    monkeypatch.undo()
    assert sum(isinstance(one, torch.Tensor) for one in outcome(loader)) == 0  # both batches have a bad image


def test_a_loader_closes_while_workers_wait_for_pillow(tmp_path):
    """Workers that nobody answers do not keep the process alive."""
    code = """
        import sys
        import stoker
        from stoker import transforms as T
        data = stoker.datasets.ImageFolder(sys.argv[1], T.Compose([T.Resize((8, 8)), T.ToTensor()]))
        batches = iter(stoker.DataLoader(data, 1, num_workers=3, prefetch_factor=4))
        next(batches)      # the others are bad: the workers wait for the next call
        del batches
        print("done")
    """
    root = save_tree(tmp_path / "tree", {"a": 12}, (48, 40))
    for path in sorted((root / "a").iterdir())[1:]:
        path.write_bytes(b"no image")
    done = run_python(code, root, timeout=120)
    assert done.stdout.strip() == "done", done.stderr
