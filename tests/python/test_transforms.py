# SPDX-License-Identifier: Apache-2.0
"""Each transform against torchvision on PIL images: the same bytes for the same parameters, the same
distribution of parameters. Ranges of one value pin what is drawn."""

from __future__ import annotations

import collections
import math
import platform

import numpy as np
import PIL
import pytest
from PIL import Image

torch = pytest.importorskip("torch")
V = pytest.importorskip("torchvision.transforms")
F = pytest.importorskip("torchvision.transforms.functional")

from stoker import transforms as T  # noqa: E402

PILLOW = 13 if int(PIL.__version__.split(".")[0]) >= 13 else 12
FILTERS = ["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"]


def pictures(count: int, seed: int, largest: int = 120) -> list[np.ndarray]:
    """Images of many sizes: noise, slopes, flat ones, one pixel wide ones."""
    rng = np.random.default_rng(seed)
    made = []
    for k in range(count):
        height, width = (int(v) for v in rng.integers(1, largest, 2))
        if k % 17 == 3:
            height = 1
        if k % 17 == 7:
            width = 1
        if k % 3 == 0:
            image = rng.integers(0, 256, (height, width, 3))
        elif k % 3 == 1:
            y, x = np.mgrid[0:height, 0:width]
            slopes = rng.uniform(-4, 4, (2, 3))
            image = 128 + x[..., None] * slopes[0] + y[..., None] * slopes[1] + rng.normal(0, 8, 3)
        else:
            image = np.broadcast_to(rng.integers(0, 256, 3), (height, width, 3))
        made.append(np.clip(image, 0, 255).astype(np.uint8))
    return made


def apply(transform, image: np.ndarray, **options) -> np.ndarray:
    return T.functional_apply(transform, image, pillow=PILLOW, **options)


def chw(image: Image.Image) -> np.ndarray:
    array = np.asarray(image)
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)


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


def coordinates(width: int, height: int) -> np.ndarray:
    """Red says the column and green the row, both counted from 1; zeros are the border of a padding."""
    y, x = np.mgrid[1:height + 1, 1:width + 1]
    return np.stack([x, y, x * 0], -1).astype(np.uint8)


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


MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


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


# ---- chance ----

DRAWS = 800


def same_distribution(ours: list, theirs: list, about: str) -> None:
    """Kolmogorov and Smirnov: a difference this large comes up once in ten thousand."""
    a, b = np.sort(np.asarray(ours, float)), np.sort(np.asarray(theirs, float))
    points = np.concatenate([a, b])
    shares = [np.searchsorted(values, points, "right") / len(values) for values in (a, b)]
    distance = np.abs(shares[0] - shares[1]).max()
    limit = math.sqrt(-math.log(1e-4 / 2) / 2 * (len(a) + len(b)) / (len(a) * len(b)))
    assert distance < limit, (about, distance, limit)


def same_share(ours: list, p: float) -> None:
    assert abs(np.mean(ours) - p) < 4 * math.sqrt(p * (1 - p) / len(ours))


def drawn(transform, image: np.ndarray, count: int = DRAWS) -> list[np.ndarray]:
    return [apply(transform, image, seed=seed) for seed in range(count)]


@pytest.mark.parametrize(("scale", "ratio"), [((0.08, 1.0), (3 / 4, 4 / 3)), ((0.2, 0.3), (0.5, 3.0))])
def test_distribution_of_random_resized_crop(scale, ratio):
    image = coordinates(200, 160)
    ours, theirs = [], []
    for got in drawn(T.RandomResizedCrop(256, scale=scale, ratio=ratio, interpolation="nearest"), image):
        (left, top), (right, bottom) = got[:2, 0, 0].astype(int), got[:2, -1, -1].astype(int)
        ours.append((top, left, bottom - top + 1, right - left + 1))
    torch.manual_seed(0)
    for _ in range(4 * DRAWS):
        i, j, h, w = V.RandomResizedCrop.get_params(Image.fromarray(image), list(scale), list(ratio))
        theirs.append((i + 1, j + 1, h, w))
    for name, value in {
        "top": lambda p: p[0], "left": lambda p: p[1], "height": lambda p: p[2], "width": lambda p: p[3],
        "area": lambda p: p[2] * p[3], "ratio": lambda p: p[3] / p[2],
        "room used": lambda p: (p[0] - 1) / (161 - p[2]),
    }.items():
        same_distribution([value(p) for p in ours], [value(p) for p in theirs], name)


def test_distribution_of_random_crop():
    image = coordinates(30, 25)
    ours = [got[:2, 0, 0] for got in drawn(T.RandomCrop((11, 13)), image)]
    generator = np.random.default_rng(0)
    same_distribution([p[0] for p in ours], generator.integers(1, 30 - 13 + 2, 4 * DRAWS), "left")
    same_distribution([p[1] for p in ours], generator.integers(1, 25 - 11 + 2, 4 * DRAWS), "top")


def test_shares_of_yes_and_no():
    image = np.array([[[10, 20, 30], [40, 50, 60]]], np.uint8)
    same_share([got[0, 0, 0] == 40 for got in drawn(T.RandomHorizontalFlip(0.3), image)], 0.3)
    same_share([got[0, 0, 0] == 40 for got in drawn(T.RandomHorizontalFlip(), image)], 0.5)
    upright = image.transpose(1, 0, 2)
    same_share([got[0, 0, 0] == 40 for got in drawn(T.RandomVerticalFlip(0.7), upright)], 0.7)
    same_share([got[0, 0, 0] == got[1, 0, 0] for got in drawn(T.RandomGrayscale(), image)], 0.1)
    blackened = T.RandomApply([T.ColorJitter((0, 0))], p=0.4)
    same_share([got[0, 0, 0] == 0 for got in drawn(blackened, image)], 0.4)


def test_flips_of_two_ops_are_independent():
    image = coordinates(2, 2)
    flips = T.Compose([T.RandomHorizontalFlip(), T.RandomVerticalFlip()])
    counts = collections.Counter((int(g[0, 0, 0]), int(g[1, 0, 0])) for g in drawn(flips, image))
    chi = sum((n - DRAWS / 4) ** 2 / (DRAWS / 4) for n in counts.values())
    assert len(counts) == 4 and chi < 21.1  # three degrees of freedom: once in ten thousand


@pytest.mark.parametrize("change", [
    {"brightness": 0.4}, {"brightness": (0.2, 0.9)}, {"brightness": 1.5}, {"contrast": 0.8},
    {"saturation": 0.5}, {"hue": 0.3}, {"hue": (-0.1, 0.4)},
])
def test_distribution_of_color_jitter(change):
    image = np.array([[[120, 60, 200], [30, 90, 10]]], np.uint8)
    picture = Image.fromarray(image)
    theirs = V.ColorJitter(**change)
    torch.manual_seed(1)
    expected = [chw(theirs(picture)) for _ in range(4 * DRAWS)]
    got = drawn(T.ColorJitter(**change), image)
    for channel in range(3):
        ours = [g[channel, 0, 0] for g in got]
        same_distribution(ours, [e[channel, 0, 0] for e in expected], str(change))


def test_color_jitter_order_is_a_random_permutation():
    image = np.array([[[120, 60, 200], [30, 90, 10], [250, 130, 77]]], np.uint8)
    # Products with these are exact, so that Pillow's builds for all machines agree.
    factors = {"brightness": (1.75, 1.75), "contrast": (0.5, 0.5), "saturation": (2.25, 2.25),
               "hue": (0.3, 0.3)}
    theirs = V.ColorJitter(**factors)
    torch.manual_seed(2)
    picture = Image.fromarray(image)
    expected = collections.Counter(chw(theirs(picture)).tobytes() for _ in range(4 * DRAWS))
    got = collections.Counter(g.tobytes() for g in drawn(T.ColorJitter(**factors), image))
    assert set(got) == set(expected) and len(got) > 12
    chi = sum((got[k] - expected[k] / 4) ** 2 / (expected[k] / 4) for k in expected)
    assert chi < 70, (chi, len(expected))  # at most 23 degrees; the reference is a sample itself


def test_distribution_of_blur():
    image = np.zeros((9, 9, 3), np.uint8)
    image[4, 4] = 255
    theirs = V.GaussianBlur(7, (0.3, 1.6))
    torch.manual_seed(3)
    expected = [chw(theirs(Image.fromarray(image)))[0, 4, 4] for _ in range(DRAWS)]
    ours = [g[0, 4, 4] for g in drawn(T.GaussianBlur(7, (0.3, 1.6)), image)]
    same_distribution(ours, expected, "sigma")


def erased_box(tensor: np.ndarray, value: float) -> tuple[int, int, int, int] | None:
    rows, columns = np.nonzero(tensor[0] == value)
    if not len(rows):
        return None
    box = rows.min(), columns.min(), rows.max() - rows.min() + 1, columns.max() - columns.min() + 1
    assert len(rows) == box[2] * box[3]
    return box


def test_distribution_of_random_erasing():
    image = np.full((40, 60, 3), 100, np.uint8)
    transform = T.Compose([T.ToTensor(), T.RandomErasing(p=0.6, value=9)])
    theirs = V.RandomErasing(p=0.6, value=9)
    torch.manual_seed(4)
    tensor = F.to_tensor(Image.fromarray(image))
    expected = [erased_box(theirs(tensor).numpy(), 9) for _ in range(4 * DRAWS)]
    got = [erased_box(g, 9) for g in drawn(transform, image)]
    same_share([box is not None for box in got], 0.6)
    got, expected = [b for b in got if b], [b for b in expected if b]
    for k, name in enumerate(["top", "left", "height", "width"]):
        same_distribution([b[k] for b in got], [b[k] for b in expected], name)
    same_distribution([b[2] / b[3] for b in got], [b[2] / b[3] for b in expected], "ratio")


def test_random_erasing_values():
    image = np.full((40, 60, 3), 100, np.uint8)
    scale = (0.2, 0.2)
    plain = apply(T.Compose([T.ToTensor(), T.Normalize(MEAN, STD)]), image)
    erased = T.Compose([T.ToTensor(), T.RandomErasing(1, scale, value=(0.1, 0.2, 0.3)),
                        T.Normalize(MEAN, STD)])
    for seed in range(30):
        got = apply(erased, image, seed=seed)
        value = F.normalize(torch.tensor([0.1, 0.2, 0.3])[:, None, None], MEAN, STD).numpy()
        changed = got != plain
        assert changed.any() and np.array_equal(got[changed], np.broadcast_to(value, got.shape)[changed])
        same = apply(erased, image, seed=seed, memory_format="channels_last")
        assert np.array_equal(same, got)
    noise = [apply(T.Compose([T.ToTensor(), T.RandomErasing(1, scale, value="random")]), image, seed=s)
             for s in range(10)]
    values = np.concatenate([n[n != np.float32(100) / np.float32(255)] for n in noise])
    same_distribution(values, np.random.default_rng(5).normal(size=100_000), "normal")


def test_chance_is_a_function_of_the_seed():
    image = pictures(4, seed=30)[3]
    transform = T.Compose([T.RandomResizedCrop(24), T.ColorJitter(0.4, 0.4, 0.4, 0.1), T.ToTensor(),
                           T.RandomErasing()])
    first = [apply(transform, image, seed=s) for s in range(20)]
    assert all(np.array_equal(a, apply(transform, image, seed=s)) for s, a in enumerate(first))
    assert len({a.tobytes() for a in first}) == 20
