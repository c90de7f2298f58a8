# SPDX-License-Identifier: Apache-2.0
"""Masks follow their image: every pixel of a mask is moved as the image's pixel there, and its number never changes.

Images here have their mask's numbers in each channel. With resizes by the nearest pixels, the mask must then equal the
image whatever is drawn.
"""

from __future__ import annotations

import io
import tarfile
import zlib

import numpy as np
import pytest
import stoker
import torch
from PIL import Image
from stoker import transforms as T
from torchvision.transforms.functional import InterpolationMode

NEAREST = InterpolationMode.NEAREST


def numbers(rng, height, width, most=255):
    return rng.integers(0, most + 1, (height, width), np.uint8)


def as_palette(array, bits=8):
    image = Image.fromarray(array, "P")
    image.putpalette(np.random.default_rng(7).integers(0, 256, 3 << bits, np.uint8).tobytes())
    return image


MODES = {
    "grey": lambda a: (Image.fromarray(a), {}),
    "palette": lambda a: (as_palette(a), {}),
    "palette of 4 bits": lambda a: (as_palette(a % 16, 4), {"bits": 4}),
    "palette of 1 bit": lambda a: (as_palette(a % 2, 1), {"bits": 1}),
    "16 bits": lambda a: (Image.fromarray(a.astype(np.uint16)), {}),
    "one bit": lambda a: (Image.fromarray(a > 127), {}),
    "grey as RGB": lambda a: (Image.fromarray(np.stack([a] * 3, 2)), {}),
}


def save(folder, name, mask, mode="grey", image=None):
    """Save a mask and an image of its numbers; return the numbers as Pillow reads them."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    (folder / "masks").mkdir(parents=True, exist_ok=True)
    made, options = MODES[mode](mask)
    made.save(folder / "masks" / f"{name}.png", **options)
    read = np.asarray(Image.open(folder / "masks" / f"{name}.png"))
    read = (read[..., 0] if read.ndim == 3 else read).astype(np.uint8)
    Image.fromarray(np.stack([read if image is None else image] * 3, 2)).save(folder / "images" / f"{name}.png")
    return read


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("masks")
    rng = np.random.default_rng(3)
    for k in range(28):
        height, width = rng.integers(1, 90, 2)
        save(folder, f"{k:02}", numbers(rng, height, width), list(MODES)[k % len(MODES)])
    return folder


PIPELINES = {
    "crops": [T.RandomResizedCrop(40, interpolation=NEAREST), T.RandomHorizontalFlip(), T.RandomVerticalFlip()],
    "borders": [T.Pad((3, 5, 1, 0), 9, mask_fill=9), T.RandomCrop((50, 41), pad_if_needed=True, fill=5, mask_fill=5)],
    "edges": [T.RandomCrop(70, 12, True, padding_mode="reflect"), T.RandomVerticalFlip(0.9)],
    "centre": [T.Resize((33, 57), NEAREST), T.CenterCrop((60, 40)), T.RandomHorizontalFlip()],
    "twice": [T.Resize(60, NEAREST, 90), T.RandomHorizontalFlip(), T.Resize((24, 31), NEAREST)],
    "turned": [T.RandomRotation(180, NEAREST, fill=7, mask_fill=7), T.RandomRotation((90, 90), expand=True), T.CenterCrop(40)],
    "affine": [T.RandomAffine(30, (0.3, 0.2), (0.5, 2), 20, fill=3, mask_fill=3), T.Resize((30, 30), NEAREST)],
    "perspective": [T.RandomPerspective(0.6, 1, NEAREST, fill=1, mask_fill=1), T.CenterCrop(40)],
    "elastic": [T.CenterCrop(90), T.ElasticTransform(60.0, 3.0, NEAREST, fill=2, mask_fill=2)],
    "sizes": [T.Resize((30, 50), NEAREST), T.RandomZoomOut(4, (1.0, 2.0), mask_fill=4), T.ScaleJitter((40, 50), interpolation=NEAREST), T.CenterCrop(50)],
    "chosen": [T.RandomApply([T.RandomResizedCrop(20, (0.2, 0.5), interpolation=NEAREST)], 0.5), T.CenterCrop(20)],
}


@pytest.mark.parametrize("steps", PIPELINES.values(), ids=PIPELINES)
def test_masks_are_moved_like_their_images(folder, steps):
    data = stoker.datasets.ImageMaskFolder(folder / "images", folder / "masks", T.Compose([*steps, T.PILToTensor()]))
    for workers in (0, 3):
        seen = 0
        for _ in range(3):
            for images, masks in stoker.DataLoader(data, 5, shuffle=True, num_workers=workers, seed=4):
                assert masks.dtype == torch.uint8 and masks.shape == images.shape[:1] + images.shape[2:]
                assert all(torch.equal(masks, images[:, channel]) for channel in range(3))
                seen += len(masks)
        assert seen == 3 * 28


def test_without_transform_a_mask_is_what_pillow_reads(folder):
    data = stoker.datasets.ImageMaskFolder(folder / "images", folder / "masks")
    for k in range(len(data)):
        image, mask = data[k]
        assert np.array_equal(image[..., 0], mask)


def test_resizes_take_the_nearest_pixels_as_pillow_does(tmp_path):
    rng = np.random.default_rng(5)
    for k in range(12):
        mask = save(tmp_path, str(k), numbers(rng, *rng.integers(1, 60, 2)))
        width, height = map(int, rng.integers(1, 80, 2))
        data = stoker.datasets.ImageMaskFolder(
            tmp_path / "images", tmp_path / "masks", T.Compose([T.Resize((height, width)), T.ToTensor()])
        )
        want = np.asarray(Image.fromarray(mask).resize((width, height), Image.Resampling.NEAREST))
        assert np.array_equal(data[len(data) - 1][1], want)
        for file in tmp_path.rglob("*.png"):
            file.unlink()


@pytest.mark.parametrize(
    "step",
    [T.ColorJitter(0.9, 0.9, 0.9, 0.5), T.RandomGrayscale(1), T.Grayscale(1), T.GaussianBlur(5, 3.0)],
    ids=lambda step: type(step).__name__,
)
def test_what_changes_colours_leaves_masks(folder, step):
    crop = [T.RandomResizedCrop(24, interpolation=NEAREST), T.RandomHorizontalFlip()]

    def masks(steps):
        data = stoker.datasets.ImageMaskFolder(folder / "images", folder / "masks", T.Compose([*crop, *steps, T.ToTensor()]))
        return torch.cat([masks for _, masks in stoker.DataLoader(data, 7, seed=2, num_workers=2)])

    assert torch.equal(masks([step]), masks([]))
    assert torch.equal(masks([step, T.CenterCrop(20)]), masks([T.CenterCrop(20)]))


@pytest.mark.parametrize(
    "step", [T.RandAugment(), T.TrivialAugmentWide(), T.AutoAugment(), T.RandomChoice([T.RandomInvert(1), T.RandomVerticalFlip(1)])],
    ids=lambda step: type(step).__name__,
)  # fmt: skip
def test_policies_move_masks_like_their_images(tmp_path, step):
    """Images of two colours keep their boundary whatever happens to the colours, unless these are mixed or become one."""
    rng = np.random.default_rng(8)
    for k in range(60):
        mask = (rng.random((11, 13)) < 0.5).astype(np.uint8).repeat(4, 0).repeat(4, 1)
        save(tmp_path, f"{k:02}", mask, image=255 * mask)
    steps = T.Compose([step, T.RandomHorizontalFlip(), T.PILToTensor()])
    data = stoker.datasets.ImageMaskFolder(tmp_path / "images", tmp_path / "masks", steps)
    compared = 0
    for images, masks in stoker.DataLoader(data, 10, seed=6, num_workers=2):
        for image, mask in zip(images[:, 0], masks, strict=True):
            colours = image.unique()
            if len(colours) == 2:
                compared += 1
                assert torch.equal(image == colours[1], mask == 1) or torch.equal(image == colours[0], mask == 1)
    assert compared > 20


def test_erasing_and_normalizing_leave_masks(folder):
    steps = [T.Resize((30, 30)), T.ToTensor(), T.Normalize([0.5] * 3, [0.2] * 3), T.RandomErasing(1.0, value="random")]
    data = stoker.datasets.ImageMaskFolder(folder / "images", folder / "masks", T.Compose(steps))
    plain = stoker.datasets.ImageMaskFolder(folder / "images", folder / "masks", T.Compose(steps[:2]))
    for (_, masks), (_, want) in zip(stoker.DataLoader(data, 7), stoker.DataLoader(plain, 7), strict=True):
        assert torch.equal(masks, want)


def test_an_interrupted_epoch_goes_on(folder):
    data = stoker.datasets.ImageMaskFolder(
        folder / "images", folder / "masks", T.Compose([*PIPELINES["crops"], T.PILToTensor()])
    )
    whole = [masks for _, masks in stoker.DataLoader(data, 4, shuffle=True, seed=1)]
    loader = stoker.DataLoader(data, 4, shuffle=True, seed=1, num_workers=1)
    batches = iter(loader)
    first = [next(batches)[1] for _ in range(3)]
    other = stoker.DataLoader(data, 4, shuffle=True, seed=1, num_workers=3)
    other.load_state_dict(loader.state_dict())
    assert torch.equal(torch.cat(first + [masks for _, masks in other]), torch.cat(whole))


def test_sizes_that_differ_are_a_list(folder):
    data = stoker.datasets.ImageMaskFolder(folder / "images", folder / "masks", T.Compose([T.PILToTensor()]))
    for images, masks in stoker.DataLoader(data, 4):
        assert [mask.shape for mask in masks] == [image.shape[1:] for image in images]


def test_subsets_and_mixtures_keep_masks(folder):
    data = stoker.datasets.ImageMaskFolder(
        folder / "images", folder / "masks", T.Compose([*PIPELINES["crops"], T.PILToTensor()])
    )
    both = stoker.datasets.Concat([stoker.datasets.Subset(data, [5, 1, 8]), data])
    assert len(both) == 31
    for images, masks in stoker.DataLoader(both, 4, num_workers=2):
        assert torch.equal(images[:, 0], masks)
    for images, masks in stoker.DataLoader(torch.utils.data.Subset(data, [4, 2]), 2):
        assert torch.equal(images[:, 0], masks)


# ---- in archives ----


def test_masks_in_tar_files_and_hdf5(tmp_path, folder):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for k in range(28):
            for suffix, path in (("png", "images"), ("seg.png", "masks")):
                archive.add(folder / path / f"{k:02}.png", f"{k:02}.{suffix}")
    steps = T.Compose([*PIPELINES["crops"], T.PILToTensor()])
    data = stoker.datasets.WebDataset(tmp_path / "a.tar", ("png", "seg.png"), steps, masks="seg.png")
    for images, masks in stoker.DataLoader(data, 4, shuffle=True, num_workers=2):
        assert torch.equal(images[:, 0], masks)

    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(1)
    masks = rng.integers(0, 256, (9, 30, 20), np.uint8)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["images"], file["masks"] = np.stack([masks] * 3, 3), masks
    data = stoker.datasets.HDF5(tmp_path / "a.h5", ("images", "masks"), steps, masks=["masks"])
    for images, found in stoker.DataLoader(data, 4, shuffle=True):
        assert torch.equal(images[:, 0], found)


@pytest.mark.parametrize(
    "masks, message",
    [
        ("nothing", 'no field is named "nothing"'),
        ("png", "is the first image"),
        ("cls", "the field cls is of type int"),
        ("seg.png,cls", "the field cls is of type int"),
    ],
)
def test_names_that_are_no_masks(tmp_path, masks, message):
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for suffix in ("png", "seg.png", "cls"):
            file = io.BytesIO()
            Image.new("L", (4, 4)).save(file, "png")
            data = b"3" if suffix == "cls" else file.getvalue()
            member = tarfile.TarInfo(f"0.{suffix}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    data = stoker.datasets.WebDataset(tmp_path / "a.tar", ("png", "seg.png", "cls"), T.ToTensor(), masks=masks)
    with pytest.raises(stoker.StokerError, match=message):
        stoker.DataLoader(data)


# ---- bad files ----


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda path: Image.new("L", (8, 9)).save(path), "8 x 9 pixels, but its image 10 x 12"),
        (lambda path: Image.new("RGB", (10, 12), (1, 2, 3)).save(path), "row 0 of the mask has colours"),
        (lambda path: Image.fromarray(np.full((12, 10), 256, np.uint16)).save(path), "numbers above 255"),
        (lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n and no more"), "PNG"),
        (lambda path: path.write_bytes(b""), "empty"),
    ],
)
@pytest.mark.parametrize("on_error", ["raise", "skip", "replace"])
def test_bad_masks(tmp_path, make, message, on_error):
    for k in range(4):
        save(tmp_path, str(k), np.full((12, 10), k + 1, np.uint8))
    make(tmp_path / "masks" / "2.png")
    data = stoker.datasets.ImageMaskFolder(tmp_path / "images", tmp_path / "masks", T.ToTensor())
    loader = stoker.DataLoader(data, 4, on_error=on_error, num_workers=1)
    if on_error == "raise":
        with pytest.raises(stoker.StokerError, match=message) as caught:
            next(iter(loader))
        assert "2.png" in str(caught.value)
        return
    _, masks = next(iter(loader))
    assert message in loader.bad_samples()[0]["reason"] or "2.png" in loader.bad_samples()[0]["reason"]
    found = sorted(int(mask.max()) for mask in masks)
    assert found == ([0, 1, 2, 4] if on_error == "replace" else found) and 3 not in found


def test_a_palette_with_fewer_colours_than_numbers(tmp_path):
    """Numbers are what the file has, as with Pillow, whatever the palette lists."""
    array = np.random.default_rng(8).integers(0, 256, (12, 10), np.uint8)
    save(tmp_path, "0", array)
    path = tmp_path / "masks" / "0.png"
    whole = io.BytesIO()
    as_palette(array).save(whole, "PNG")
    data = whole.getvalue()
    at = data.index(b"PLTE") - 4
    size = int.from_bytes(data[at : at + 4], "big")
    short = b"PLTE" + data[at + 8 : at + 14]
    path.write_bytes(data[:at] + (6).to_bytes(4, "big") + short + zlib.crc32(short).to_bytes(4, "big") + data[at + 12 + size :])
    assert np.array_equal(np.asarray(Image.open(path)), array)
    flipped = T.Compose([T.RandomHorizontalFlip(1.0), T.ToTensor()])
    data = stoker.datasets.ImageMaskFolder(tmp_path / "images", tmp_path / "masks", flipped)
    assert np.array_equal(data[0][1], array[:, ::-1])


def test_images_of_one_pixel(tmp_path):
    save(tmp_path, "0", np.full((1, 1), 77, np.uint8))
    steps = [T.RandomResizedCrop(3), T.RandomRotation(9, "nearest"), T.RandomPerspective(0.5, 1.0), T.RandomHorizontalFlip(), T.ToTensor()]
    data = stoker.datasets.ImageMaskFolder(tmp_path / "images", tmp_path / "masks", T.Compose(steps))
    image, mask = data[0]
    assert tuple(image.shape) == (3, 3, 3) and mask.shape == (3, 3) and set(mask.ravel().tolist()) <= {0, 77}
    with pytest.raises(stoker.StokerError, match=r"random_crop.*0\.png|0\.png.*random_crop"):
        stoker.datasets.ImageMaskFolder(tmp_path / "images", tmp_path / "masks", T.Compose([T.RandomCrop(2), T.ToTensor()]))[0]


def upside_down(image):
    return Image.fromarray(np.asarray(image)[::-1])


def test_a_step_that_only_python_has_is_refused(folder):
    with pytest.raises(NotImplementedError, match="without its mask: pass transforms="):
        stoker.datasets.ImageMaskFolder(folder / "images", folder / "masks", upside_down)


def test_a_transform_that_is_replaced_is_refused_too(folder):
    """Otherwise Python would move the image, and leave the mask where it is."""
    data = stoker.datasets.ImageMaskFolder(folder / "images", folder / "masks", T.ToTensor())
    data.transform = upside_down
    with pytest.raises(NotImplementedError, match="without its mask: pass transforms="):
        data[0]
    with pytest.raises(NotImplementedError, match="without its mask: pass transforms="):
        next(iter(stoker.DataLoader(data, 2)))
    data.transform = T.PILToTensor()
    image, mask = data[0]
    assert np.array_equal(image[0], mask)


def test_folders_have_no_fields_that_could_be_masks(folder):
    for name in ("masks", "boxes"):
        with pytest.raises(ValueError, match=f"{name}= needs fields"):
            stoker.open(f"flat:{folder / 'images'}", **{name: "mask"})


def test_missing_masks_are_named(tmp_path):
    for k in range(5):
        save(tmp_path, str(k), np.zeros((3, 3), np.uint8))
    (tmp_path / "masks" / "1.png").unlink()
    (tmp_path / "masks" / "4.png").unlink()
    with pytest.raises(stoker.StokerError, match=r"2 images have no file here.*1\.png.*4\.png"):
        stoker.datasets.ImageMaskFolder(tmp_path / "images", tmp_path / "masks")
    with pytest.raises(OSError):
        stoker.datasets.ImageMaskFolder(tmp_path / "images", tmp_path / "nowhere")


# ---- torchvision's layouts ----


def compare(ours, theirs):
    assert len(ours) == len(theirs)
    for k, (image, mask, *_) in enumerate(theirs):
        assert np.array_equal(ours[k][0], np.asarray(image.convert("RGB")))
        assert np.array_equal(ours[k][1], np.asarray(mask))


def layout(root, folders, names, rng):
    for folder, ending, mode in folders:
        (root / folder).mkdir(parents=True)
        for name in names:
            target = root / folder / (name + ending)
            target.parent.mkdir(parents=True, exist_ok=True)
            array = np.random.default_rng(len(name)).integers(0, 19, (9, 7), np.uint8)
            made = as_palette(array) if mode == "P" else Image.fromarray(array).convert(mode)
            made.save(target)


def test_voc(tmp_path):
    from torchvision.datasets import VOCSegmentation

    base = tmp_path / "VOCdevkit" / "VOC2012"
    names = ["2007_000032", "2007_000129", "2008_000003"]
    layout(base, [("JPEGImages", ".jpg", "RGB"), ("SegmentationClass", ".png", "P")], names, None)
    (base / "ImageSets" / "Segmentation").mkdir(parents=True)
    (base / "ImageSets" / "Segmentation" / "val.txt").write_text("\n".join(reversed(names)) + "\n")
    compare(stoker.datasets.VOCSegmentation(tmp_path, image_set="val"), VOCSegmentation(tmp_path, image_set="val"))
    with pytest.raises(OSError):
        stoker.datasets.VOCSegmentation(tmp_path)


def test_pets(tmp_path):
    from torchvision.datasets import OxfordIIITPet

    base = tmp_path / "oxford-iiit-pet"
    names = ["Abyssinian_1", "great_pyrenees_12"]
    layout(base, [("images", ".jpg", "RGB"), ("annotations/trimaps", ".png", "L")], names, None)
    (base / "annotations" / "trainval.txt").write_text("Abyssinian_1 1 1 1\ngreat_pyrenees_12 2 2 1\n")
    ours = stoker.datasets.OxfordIIITPet(tmp_path)
    theirs = OxfordIIITPet(tmp_path, target_types=("segmentation", "category"))
    compare(ours, [(image, mask) for image, (mask, _) in theirs])
    assert ours.classes == theirs.classes and ours.targets == [label for _, (_, label) in theirs]
    images, masks, labels = next(iter(stoker.DataLoader(ours, 2)))
    assert tuple(masks.shape) == (2, 9, 7) and labels.tolist() == ours.targets


def test_cityscapes(tmp_path):
    from torchvision.datasets import Cityscapes

    names = ["bochum/bochum_000000_000313", "aachen/aachen_000000_000019", "aachen/aachen_000001_000019"]
    layout(
        tmp_path,
        [("leftImg8bit/train", "_leftImg8bit.png", "RGB"), ("gtFine/train", "_gtFine_labelIds.png", "L")],
        names,
        None,
    )
    ours, theirs = stoker.datasets.Cityscapes(tmp_path), Cityscapes(tmp_path, target_type="semantic")
    order = np.argsort(theirs.images)
    compare(ours, [theirs[k] for k in order])
    with pytest.raises(NotImplementedError, match="polygon"):
        stoker.datasets.Cityscapes(tmp_path, target_type="polygon")
    numbers = np.random.default_rng(1).integers(0, 34000, (9, 7), np.uint16)
    for path in (tmp_path / "gtFine" / "train").rglob("*_labelIds.png"):
        Image.fromarray(numbers).save(path.with_name(path.name.replace("labelIds", "instanceIds")))
    for sample in stoker.datasets.Cityscapes(tmp_path, target_type="instance"):
        assert sample[1].dtype == np.int32 and np.array_equal(sample[1], numbers)


# ---- 16 bits ----


@pytest.mark.parametrize("step", [
    T.Resize((31, 44)), T.RandomResizedCrop(20), T.RandomRotation(40, expand=True), T.Pad(4), T.RandomPerspective(p=1.0),
    T.ElasticTransform(20.0, 3.0), T.RandomHorizontalFlip(1.0),
], ids=lambda step: type(step).__name__)  # fmt: skip
def test_masks_of_16_bits_move_like_their_two_bytes(tmp_path, step):
    rng = np.random.default_rng(5)
    sets = {name: tmp_path / name for name in ("images", "wide", "low", "high")}
    for folder in sets.values():
        folder.mkdir()
    for k in range(4):
        numbers = rng.integers(0, 65536, (40 + k, 52), np.uint16)
        for name, array in (("wide", numbers), ("low", numbers % 256), ("high", numbers >> 8)):
            Image.fromarray(array if name == "wide" else array.astype(np.uint8)).save(sets[name] / f"{k}.png")
        Image.new("RGB", (52, 40 + k)).save(sets["images"] / f"{k}.png")

    def masks(name, **options):
        data = stoker.datasets.ImageMaskFolder(
            sets["images"], sets[name], T.Compose([step, T.CenterCrop(18), T.ToTensor()]), **options
        )
        return next(iter(stoker.DataLoader(data, 4, num_workers=1, seed=3)))[1]

    wide, low, high = masks("wide", dtype="int32"), masks("low"), masks("high", dtype=torch.uint8)
    assert wide.dtype == torch.int32 and low.dtype == torch.uint8
    assert torch.equal(wide, 256 * high.int() + low.int()) and wide.max() > 255
    assert torch.equal(masks("low", dtype=np.int32), low.int())
    with pytest.raises(stoker.StokerError, match="numbers above 255"):
        masks("wide")
    with pytest.raises(ValueError, match="allowed are 'uint8'"):
        masks("wide", dtype="float32")


def test_masks_of_16_bits_in_archives_and_with_steps_of_python(tmp_path):
    numbers = np.random.default_rng(2).integers(0, 65536, (20, 30), np.uint16)
    Image.fromarray(numbers).save(tmp_path / "ids.png")
    Image.new("RGB", (30, 20)).save(tmp_path / "image.png")
    with tarfile.open(tmp_path / "a.tar", "w") as file:
        for name, path in (("0.png", "image.png"), ("0.ids.png", "ids.png")):
            file.add(tmp_path / path, name)

    def flip(image, mask):
        assert mask.mode == "I"
        return image, mask

    steps = T.Compose([T.RandomHorizontalFlip(1.0), flip, T.RandomVerticalFlip(1.0), T.ToTensor()])
    data = stoker.datasets.WebDataset(tmp_path / "a.tar", ("png", "ids.png"), masks={"ids.png": "int32"}, transforms=steps)
    assert np.array_equal(data[0][1], numbers[::-1, ::-1]) and data[0][1].dtype == np.int32
