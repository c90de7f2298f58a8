# SPDX-License-Identifier: Apache-2.0
"""Each transform against torchvision on PIL images: the same bytes for the same parameters. Ranges of one value pin
what is drawn."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from loading import MEAN, STD
from PIL import Image
from transform_parity import apply, chw, coordinates, pictures

torch = pytest.importorskip("torch")
V = pytest.importorskip("torchvision.transforms")
F = pytest.importorskip("torchvision.transforms.functional")

from stoker import transforms as T  # noqa: E402

FILTERS = ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]


def assert_same(got: np.ndarray, expected: Image.Image, about: object) -> None:
    want = chw(expected)
    assert got.shape == want.shape, about
    assert np.array_equal(got, want), (about, int(np.abs(got.astype(int) - want).max()))


def both_modes(transform, image: np.ndarray):
    """The transform on RGB, and on L, each with the PIL image it starts from."""
    picture = Image.fromarray(image)
    yield apply(transform, image), picture
    yield apply(T.Compose([T.Grayscale(1), transform]), image), picture.convert("L")


# ---- geometry ----

@pytest.mark.parametrize("name", FILTERS)
def test_resize(name):
    mode = V.InterpolationMode(name)
    rng = np.random.default_rng(FILTERS.index(name))
    for image in pictures(60, seed=11):
        short, pair = int(rng.integers(1, 90)), [int(v) for v in rng.integers(1, 110, 2)]
        longest = short + int(rng.integers(1, 60))
        for got, picture in both_modes(T.Resize(short, interpolation=name), image):
            assert_same(got, F.resize(picture, short, mode), (image.shape, short))
        for got, picture in both_modes(T.Resize(pair, interpolation=name), image):
            assert_same(got, F.resize(picture, pair, mode), (image.shape, pair))
        try:
            expected = F.resize(Image.fromarray(image), short, mode, max_size=longest)
        except ValueError:  # nothing is left of the shorter side
            with pytest.raises(Exception, match="cannot resize"):
                apply(T.Resize(short, interpolation=name, max_size=longest), image)
            continue
        got = apply(T.Resize(short, interpolation=name, max_size=longest), image)
        assert_same(got, expected, (image.shape, short, longest))


def test_center_crop():
    rng = np.random.default_rng(2)
    for image in pictures(200, seed=12):
        size = [int(v) for v in rng.integers(1, 140, 2)]
        expected = F.center_crop(Image.fromarray(image), size)
        assert_same(apply(T.CenterCrop(size), image), expected, (image.shape, size))


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
def test_pad(mode):
    rng = np.random.default_rng(3)
    for k, image in enumerate(pictures(80, seed=13, largest=40)):
        count = (1, 2, 4)[k % 3]
        padding = [int(v) for v in rng.integers(0, 60, count)]
        fill = 200 if k % 2 else 0
        for got, picture in both_modes(T.Pad(padding, fill, mode), image):
            assert_same(got, F.pad(picture, padding, fill, mode), (image.shape, padding))
    image = pictures(1, seed=4)[0]
    if mode == "constant":
        expected = F.pad(Image.fromarray(image), 5, (1, 2, 3))
        assert_same(apply(T.Pad(5, (1, 2, 3)), image), expected, "colours")
    cut = np.arange(20 * 30 * 3, dtype=np.uint8).reshape(20, 30, 3)
    sides = (-3, 4, 5, -6)
    assert_same(apply(T.Pad(sides, 7, mode), cut), F.pad(Image.fromarray(cut), sides, 7, mode), "cut")


def test_flips():
    for image in pictures(60, seed=14):
        for got, picture in both_modes(T.RandomHorizontalFlip(p=1), image):
            assert_same(got, F.hflip(picture), image.shape)
        for got, picture in both_modes(T.RandomVerticalFlip(p=1), image):
            assert_same(got, F.vflip(picture), image.shape)
        assert_same(apply(T.RandomHorizontalFlip(p=0), image), Image.fromarray(image), image.shape)


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
@pytest.mark.parametrize("padding", [None, 3, (4, 9)])
def test_random_crop_is_a_crop_of_torchvisions_padding(mode, padding):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        width, height, w, h = (int(v) for v in rng.integers(2, 24, 4))
        image = coordinates(width, height)
        got = apply(T.RandomCrop((h, w), padding, True, 0, mode), image, seed=seed)
        padded = Image.fromarray(image)
        if padding is not None:
            padded = F.pad(padded, padding, 0, mode)
        now_w, now_h = padded.size
        if now_w < w:
            padded = F.pad(padded, [w - now_w, 0], 0, mode)
        if now_h < h:
            padded = F.pad(padded, [0, h - now_h], 0, mode)
        windows = np.lib.stride_tricks.sliding_window_view(chw(padded), got.shape)
        found = (windows.reshape(-1, *got.shape) == got).all(axis=(1, 2, 3))
        assert found.any(), (seed, width, height, w, h)


def test_random_crop_refuses_small_images():
    with pytest.raises(Exception, match="pad_if_needed"):
        apply(T.RandomCrop(50), pictures(1, seed=1, largest=40)[0])


@pytest.mark.parametrize("name", FILTERS)
def test_random_resized_crop_pixels(name):
    """One area and one shape leave only the place open, and the whole image not even that."""
    for image in pictures(60, seed=15):
        height, width = image.shape[:2]
        ratio = (width / height,) * 2
        transform = T.RandomResizedCrop((31, 43), scale=(1, 1), ratio=ratio, interpolation=name)
        expected = F.resize(Image.fromarray(image), [31, 43], V.InterpolationMode(name))
        assert_same(apply(transform, image), expected, image.shape)


def test_random_resized_crop_falls_back_to_the_centre():
    for width, height in [(3, 200), (200, 3), (40, 41), (1, 60)]:
        image = coordinates(width, height)
        got = apply(T.RandomResizedCrop((20, 20), scale=(9, 9)), image)
        i, j, h, w = V.RandomResizedCrop.get_params(Image.fromarray(image), [9, 9], [3 / 4, 4 / 3])
        expected = F.resized_crop(Image.fromarray(image), i, j, h, w, [20, 20])
        assert_same(got, expected, (width, height))


# ---- colour ----

def unfused_blend(degenerate: np.ndarray, image: np.ndarray, factor: float) -> np.ndarray:
    """Pillow's blend as its x86-64 build computes it."""
    f = np.float32(factor)
    base = degenerate.astype(np.float32)
    mixed = base + f * (image.astype(np.float32) - base)
    return np.clip(mixed, 0, 255).astype(np.uint8)


def assert_blended(got: np.ndarray, expected: Image.Image, degenerate: Image.Image, picture: Image.Image,
                   factor: float) -> None:
    """Pillow's bytes; its aarch64 build rounds a blend once instead of twice, and we follow x86-64."""
    assert np.array_equal(got, unfused_blend(chw(degenerate), chw(picture), factor)), factor
    want = chw(expected)
    if platform.machine() in ("aarch64", "arm64"):
        off = np.abs(got.astype(int) - want)
        assert off.max() <= 1 and (off != 0).mean() < 0.05, factor
    else:
        assert np.array_equal(got, want), factor


def grey_mean(picture: Image.Image) -> Image.Image:
    grey = np.asarray(picture.convert("L"), dtype=np.float64)
    return Image.new("L", picture.size, int(grey.mean() + 0.5)).convert(picture.mode)


@pytest.mark.parametrize("change", ["brightness", "contrast", "saturation"])
def test_blends(change):
    degenerate = {
        "brightness": lambda p: Image.new(p.mode, p.size, 0),
        "contrast": grey_mean,
        "saturation": lambda p: p.convert("L").convert(p.mode),
    }[change]
    adjust = getattr(F, "adjust_" + change)
    rng = np.random.default_rng(5)
    for k, image in enumerate(pictures(120, seed=16)):
        factors = [rng.uniform(0, 1), rng.uniform(1, 3), 0.0, 0.5, 1.75, 0.1, 7 / 5]
        factor = float(np.float32(factors[k % 7]))
        for got, picture in both_modes(T.ColorJitter(**{change: (factor, factor)}), image):
            assert_blended(got, adjust(picture, factor), degenerate(picture), picture, factor)


def test_hue():
    rng = np.random.default_rng(6)
    for k, image in enumerate(pictures(120, seed=17)):
        factor = float(np.float32([rng.uniform(-0.5, 0.5), 0.5, -0.5, 0.001][k % 4]))
        for got, picture in both_modes(T.ColorJitter(hue=(factor, factor)), image):
            assert_same(got, F.adjust_hue(picture, factor), factor)


@pytest.mark.parametrize("factor", [-0.31, 0.2])
def test_hue_of_all_colours(factor):
    """Every one of the 2^24 colours."""
    factor = float(np.float32(factor))
    low = np.arange(1 << 22, dtype=np.uint32).reshape(2048, 2048)
    for high in range(4):
        colour = low | np.uint32(high << 22)
        image = np.stack([colour >> 16, colour >> 8 & 255, colour & 255], -1).astype(np.uint8)
        got = apply(T.ColorJitter(hue=(factor, factor)), image)
        assert_same(got, F.adjust_hue(Image.fromarray(image), factor), high)


def test_grayscale():
    for image in pictures(100, seed=18):
        picture = Image.fromarray(image)
        for channels in (1, 3):
            expected = F.to_grayscale(picture, channels)
            assert_same(apply(T.Grayscale(channels), image), expected, image.shape)
        assert_same(apply(T.RandomGrayscale(p=1), image), F.to_grayscale(picture, 3), image.shape)
        got = apply(T.Compose([T.Grayscale(1), T.Grayscale(3)]), image)
        assert_same(got, F.to_grayscale(picture, 3), image.shape)


def test_gaussian_blur_is_within_one_level():
    rng = np.random.default_rng(7)
    off = total = 0
    for image in pictures(120, seed=19):
        kernel = [min(2 * int(rng.integers(0, 12)) + 1, 2 * side - 1) for side in image.shape[1::-1]]
        sigma = float(rng.uniform(0.1, 4))
        for got, picture in both_modes(T.GaussianBlur(kernel, (sigma, sigma)), image):
            difference = np.abs(got.astype(int) - chw(F.gaussian_blur(picture, kernel, [sigma, sigma])))
            assert difference.max() <= 1, (image.shape, kernel, sigma)
            off += np.count_nonzero(difference)
            total += difference.size
    assert off / total < 1e-3


# ---- several together, and what they end as ----

def test_lazy_pipelines_are_torchvisions_step_by_step():
    steps = {
        "resize": (T.Resize((61, 47)), lambda p: F.resize(p, [61, 47])),
        "short": (T.Resize(40, interpolation="bicubic"),
                  lambda p: F.resize(p, 40, V.InterpolationMode.BICUBIC)),
        "crop": (T.CenterCrop((33, 52)), lambda p: F.center_crop(p, [33, 52])),
        "small": (T.CenterCrop(9), lambda p: F.center_crop(p, [9, 9])),
        "mirror": (T.RandomHorizontalFlip(1), F.hflip),
        "flip": (T.RandomVerticalFlip(1), F.vflip),
        "pad": (T.Pad((2, 3), padding_mode="reflect"), lambda p: F.pad(p, (2, 3), 0, "reflect")),
        "hue": (T.ColorJitter(hue=(0.25, 0.25)), lambda p: F.adjust_hue(p, 0.25)),
        "grey": (T.Grayscale(1), lambda p: F.to_grayscale(p, 1)),
        "grey3": (T.Grayscale(3), lambda p: F.to_grayscale(p, 3)),
    }
    for k, image in enumerate(pictures(250, seed=20)):
        rng = np.random.default_rng(k)
        names = [str(n) for n in rng.choice(list(steps), rng.integers(2, 7))]
        expected = Image.fromarray(image)
        for name in names:
            expected = steps[name][1](expected)
        got = apply(T.Compose([steps[n][0] for n in names]), image)
        assert_same(got, expected, (image.shape, names))


@pytest.mark.parametrize("memory_format", [None, "channels_last"])
def test_to_tensor_and_normalize_bit_for_bit(memory_format):
    for image in pictures(80, seed=21):
        tensor = F.to_tensor(Image.fromarray(image))
        got = apply(T.ToTensor(), image, memory_format=memory_format)
        assert got.dtype == np.float32 and np.array_equal(got, tensor.numpy())
        got = apply(T.Compose([T.ToTensor(), T.Normalize(MEAN, STD)]), image,
                    memory_format=memory_format)
        assert np.array_equal(got, F.normalize(tensor, MEAN, STD).numpy())
        got = apply(T.Compose([T.ToTensor(), T.Normalize(MEAN, STD), T.Normalize([0.1], [3])]), image,
                    memory_format=memory_format)
        assert np.array_equal(got, F.normalize(F.normalize(tensor, MEAN, STD), [0.1], [3]).numpy())


def test_convert_image_dtype_and_half_precision():
    image = np.arange(256, dtype=np.uint8).reshape(16, 16).repeat(3).reshape(16, 16, 3)
    data = F.pil_to_tensor(Image.fromarray(image))
    assert np.array_equal(apply(T.PILToTensor(), image), data.numpy())
    cases = [
        (T.Compose([T.PILToTensor(), T.ConvertImageDtype(torch.float32)]), F.convert_image_dtype(data)),
        (T.Compose([T.PILToTensor(), T.ConvertImageDtype(torch.float16)]),
         F.convert_image_dtype(data, torch.float16)),
        (T.Compose([T.ToTensor(), T.ConvertImageDtype(torch.float16)]),
         F.convert_image_dtype(F.convert_image_dtype(data), torch.float16)),
        (T.Compose([T.ToTensor(), T.ConvertImageDtype(torch.uint8)]), data),
        (T.Compose([T.PILToTensor(), T.ConvertImageDtype(torch.float16), T.Normalize(MEAN, STD)]),
         F.normalize(F.convert_image_dtype(data, torch.float16), MEAN, STD)),
    ]
    for transform, expected in cases:
        got, want = apply(transform, image), expected.numpy()
        assert got.dtype == want.dtype and np.array_equal(got, want), str(transform)
    whole = T.Compose([T.ToTensor(), T.Normalize(MEAN, STD)])
    expected = F.normalize(F.convert_image_dtype(data), MEAN, STD)
    assert np.array_equal(apply(whole, image, dtype="float16"), expected.half().numpy())


# ---- refusals: the loader's sentence must help ----

@pytest.mark.parametrize(("transforms", "sentence"), [
    ([T.ToTensor(), T.Resize(9)], "before to_tensor"),
    ([T.ToTensor(), T.ColorJitter(0.5)], "before to_tensor"),
    ([T.Normalize([0.5], [0.5])], "after to_tensor"),
    ([T.RandomErasing()], "after to_tensor"),
    ([T.Grayscale(1), T.ToTensor(), T.Normalize(MEAN, STD)], "3 values, but the image has 1 channel"),
    ([T.ToTensor(), T.RandomErasing(), T.RandomHorizontalFlip()], "random_erasing"),
    ([T.ToTensor(), T.Normalize(MEAN, [0.2, 0.0, 0.2])], "zero"),
])
def test_impossible_combinations(transforms, sentence):
    with pytest.raises(Exception, match=sentence):
        apply(T.Compose(transforms), pictures(1, seed=1)[0])

