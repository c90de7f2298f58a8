# SPDX-License-Identifier: Apache-2.0
"""Samples of several fields: remarks on slow ones in stats(), and samples with more than one image."""

from __future__ import annotations

import io

import numpy as np
import pytest
import stoker
import torch
from conftest import picture
from PIL import Image
from sources import COUNT, HEIGHT, WIDTH, encoded, make_hdf5, pixels, write_tar
from stoker import datasets
from stoker import transforms as T

h5py = pytest.importorskip("h5py")


# ---- remarks ----


def notes_of(data) -> list[str]:
    loader = stoker.DataLoader(data, batch_size=4)
    next(iter(loader))
    return loader.stats()["notes"]


@pytest.mark.parametrize(
    ("name", "options"), [("szip", {"compression": "szip"}), ("scaleoffset", {"scaleoffset": 0})]
)
def test_filters_that_only_the_library_knows_are_noted(name, options, tmp_path):
    if name == "szip" and not h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
        pytest.skip("this h5py writes no szip")
    rows = np.arange(COUNT * 40, dtype=np.int32).reshape(COUNT, 40)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("slow", data=rows, chunks=(4, 40), **options)
        file.create_dataset("lzf", data=rows, chunks=(4, 40), compression="lzf")
        file.create_dataset("gzip", data=rows, chunks=(4, 40), compression="gzip", shuffle=True)
    data = datasets.HDF5(tmp_path / "x.h5", ("gzip", "slow", "lzf"))
    assert all(np.array_equal(field, rows[i]) for i, sample in enumerate(data) for field in sample)
    (note,) = notes_of(data)
    assert note.startswith("slow: read through the HDF5 library") and f"the filter {name}" in note
    assert notes_of(datasets.Subset(data, [3, 1])) == [note]
    assert notes_of(datasets.HDF5(tmp_path / "x.h5", ("gzip", "lzf"))) == []


def test_notes_stay_when_the_epoch_is_over(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("x", data=np.arange(30), chunks=(5,), scaleoffset=0)
    loader = stoker.DataLoader(
        datasets.HDF5(tmp_path / "x.h5", "x"), batch_size=4, persistent_workers=False
    )
    assert sum(len(x) for (x,) in loader) == 30
    assert len(loader.stats()["notes"]) == 1
    (tmp_path / "other").mkdir()
    plain = datasets.HDF5(make_hdf5(tmp_path / "other"))
    assert stoker.DataLoader(plain, batch_size=4).stats()["notes"] == []


# ---- several images ----


def mask(i: int, height: int = HEIGHT, width: int = WIDTH) -> Image.Image:
    """Class numbers, as a grey image has them."""
    return Image.fromarray(np.random.default_rng(i).integers(0, 5, (height, width), np.uint8))


def saved(image: Image.Image, kind: str = "PNG", **options) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def rgb(image: Image.Image) -> np.ndarray:
    return np.array(image.convert("RGB"))


def pairs(root, count=7, height=lambda i: HEIGHT):
    """Samples of an image, its mask (of heights that may differ) and its number."""
    members = []
    for i in range(count):
        members += [
            (f"{i}.jpg", saved(picture(i, WIDTH, HEIGHT), "JPEG")),
            (f"{i}.seg.png", saved(mask(i, height(i)))),
            (f"{i}.cls", b"%d" % i),
        ]
    return write_tar(root / "x.tar", members)


def test_a_second_image_is_decoded_and_stacked(tmp_path):
    crop = T.Compose([T.CenterCrop(8), T.ToTensor()])
    data = datasets.WebDataset(pairs(tmp_path), ("cls", "jpg", "seg.png"), crop)
    number, image, second = data[3]
    assert number == 3 and image.shape == (3, 8, 8)
    assert second.dtype == np.uint8 and np.array_equal(second, rgb(mask(3)))
    for workers in (0, 2):
        loader = stoker.DataLoader(data, batch_size=4, shuffle=True, seed=1, num_workers=workers)
        for numbers, images, masks in loader:
            assert images.shape[1:] == (3, 8, 8) and images.dtype == torch.float32
            assert masks.dtype == torch.uint8 and masks.shape[1:] == (HEIGHT, WIDTH, 3)
            assert all(
                np.array_equal(m, rgb(mask(n))) for n, m in zip(numbers.tolist(), masks, strict=True)
            )
    theirs = torch.utils.data.DataLoader(data, batch_size=3)
    assert [masks.shape for _, _, masks in theirs][-1] == (1, HEIGHT, WIDTH, 3)


def test_the_first_of_two_images_is_the_one_transformed(tmp_path):
    data = datasets.WebDataset(pairs(tmp_path), ("seg.png", "jpg"), T.ToTensor())
    first, second = data[2]
    assert torch.equal(first, torch.from_numpy(rgb(mask(2))).permute(2, 0, 1) / 255)
    jpeg = Image.open(io.BytesIO(saved(picture(2, WIDTH, HEIGHT), "JPEG")))
    assert np.array_equal(second, rgb(jpeg))


def test_second_images_of_several_sizes_are_a_list(tmp_path):
    data = datasets.WebDataset(pairs(tmp_path, height=lambda i: 10 + i), ("jpg", "seg.png"), T.ToTensor())
    _, masks = next(iter(stoker.DataLoader(data, batch_size=4)))
    assert isinstance(masks, list)
    for i, each in enumerate(masks):
        assert np.array_equal(each, rgb(mask(i, 10 + i))) and np.array_equal(data[i][1], each)


def test_a_second_image_may_stay_as_it_is(tmp_path):
    data = datasets.WebDataset(pairs(tmp_path), {"jpg": "image", "seg.png": "bytes"}, T.ToTensor())
    assert data[1][1] == saved(mask(1))
    _, masks = next(iter(stoker.DataLoader(data, batch_size=2)))
    assert masks == [saved(mask(i)) for i in range(2)]


def test_all_images_are_turned_alike(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    turned = saved(picture(1, WIDTH, HEIGHT), "JPEG", exif=exif)
    path = write_tar(tmp_path / "x.tar", [("a.jpg", turned), ("a.b.jpg", turned)])
    for rotate, shape in (False, (HEIGHT, WIDTH, 3)), (True, (WIDTH, HEIGHT, 3)):
        loader = stoker.DataLoader(
            datasets.WebDataset(path, ("jpg", "b.jpg")), batch_size=1, exif_rotate=rotate
        )
        first, second = next(iter(loader))
        assert second.shape[1:] == shape
        assert torch.equal(first, second.permute(0, 3, 1, 2))


def test_a_second_image_that_is_damaged_names_its_field(tmp_path):
    path = write_tar(
        tmp_path / "x.tar",
        [("a.jpg", encoded(0)), ("a.seg.png", encoded(0)[:60]), ("b.jpg", encoded(1)), ("b.seg.png", encoded(1))],
    )
    data = datasets.WebDataset(path, ("jpg", "seg.png"))
    with pytest.raises(stoker.CorruptSample, match="a: field seg.png: "):
        data[0]
    loader = stoker.DataLoader(data, batch_size=2, on_error="replace")
    _, masks = next(iter(loader))
    assert torch.equal(masks[1], torch.from_numpy(pixels(1).copy())) and not masks[0].any()
    assert "field seg.png" in loader.bad_samples()[0]["reason"]


def test_second_images_of_arrays_are_as_they_lie(tmp_path):
    images = np.stack([pixels(i) for i in range(COUNT)])
    masks = np.stack([np.asarray(mask(i)) for i in range(COUNT)])
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["images"], file["masks"], file["more"] = images, masks, images[..., ::-1]
    data = datasets.HDF5(tmp_path / "x.h5", ("images", "masks", "more"), T.ToTensor())
    assert list(data.field_types.values()) == ["image"] * 3
    image, second, third = data[4]
    assert torch.equal(image, torch.from_numpy(images[4].copy()).permute(2, 0, 1) / 255)
    assert np.array_equal(second, masks[4]) and np.array_equal(third, images[4][..., ::-1])
    seen = [batch[1] for batch in stoker.DataLoader(data, batch_size=6)]
    assert np.array_equal(torch.cat(seen), masks)


def test_images_beside_sounds_are_decoded_too(tmp_path):
    sound = stoker.audio._as_wav(np.linspace(-1, 1, 100, dtype=np.float32), 8000)
    path = write_tar(tmp_path / "x.tar", [("a.wav", sound), ("a.png", encoded(3))])
    data = datasets.WebDataset(path, ("png", "wav"), stoker.audio.Mono())
    image, heard = data[0]
    assert np.array_equal(image, pixels(3)) and heard.shape == (1, 100)
