# SPDX-License-Identifier: Apache-2.0
"""Rotations, affine and perspective maps: Pillow's bytes for the same map, torchvision's for the same numbers."""

from __future__ import annotations

import io
import itertools
import math
import random

import numpy as np
import pytest
import stoker
from PIL import Image
from transform_parity import apply, chw, coordinates, pictures

torch = pytest.importorskip("torch")
V = pytest.importorskip("torchvision.transforms")
F = pytest.importorskip("torchvision.transforms.functional")
v2 = pytest.importorskip("torchvision.transforms.v2")

from stoker import transforms as T  # noqa: E402
from stoker._lazy.images import is_lazy  # noqa: E402
from stoker._lazy.maps import map_edit, maps_agree  # noqa: E402
from stoker._lazy.pixels import Decoded, made_pixels  # noqa: E402
from test_transform_draws import same_distribution  # noqa: E402

AFFINE, PERSPECTIVE = Image.Transform.AFFINE, Image.Transform.PERSPECTIVE
MODES = ["nearest", "bilinear", "bicubic"]
ANGLES = [0, 90, 180, 270, 360, 450, -90, -360, 720, 45, 30, -60, 17.3, 1e-9, -1e-9, 1e-20, 359.999, 123456.789, -98765.4]
needs_same_rounding = pytest.mark.skipif(not maps_agree(), reason="this build of Pillow rounds differently")


def resample(mode: str) -> V.InterpolationMode:
    return V.InterpolationMode(mode)


# ---- maps ----


def random_map(draw: random.Random, width: int, height: int, size: tuple[int, int]) -> tuple[Image.Transform, list[float]]:
    kind = draw.choice(["turn", "wild", "straight", "whole", "far", "any", "any"])
    reach = 10 ** draw.uniform(-4, 2) if draw.random() < 0.3 else 1.5
    numbers = [draw.uniform(-reach, reach) for _ in range(6)]
    numbers[2], numbers[5] = draw.uniform(-width, width), draw.uniform(-height, height)
    if kind == "turn":
        angle = math.radians(draw.choice([draw.uniform(0, 360), 90, 180, 270, 45, 1e-9]))
        c, s = round(math.cos(angle), 15), round(math.sin(angle), 15)
        x, y = size[0] / 2, size[1] / 2
        numbers = [c, s, width / 2 - c * x - s * y, -s, c, height / 2 + s * x - c * y]
    elif kind == "wild":
        numbers = [number * draw.choice([0, 1, 1e3, 1e6, 1e-6, 1e9, 1e300]) for number in numbers]
    elif kind == "straight":
        numbers[1] = numbers[3] = 0.0
    elif kind == "whole":
        numbers = [draw.choice([0, 1, -1, 2, 0.5, 0.25, -2.5]) for _ in numbers]
    elif kind == "far":  # beyond Pillow's fixed point
        numbers[2] += draw.choice([4e4, -4e4, 0])
        numbers[0] = draw.choice([400.0, -700.0, 1.0])
    if draw.random() < 0.35:
        slopes = [draw.uniform(-1, 1) * draw.choice([1e-3, 1e-2, 0.1, 1, 0]) for _ in range(2)]
        return PERSPECTIVE, numbers + slopes
    return AFFINE, numbers


@needs_same_rounding
@pytest.mark.parametrize("seed", range(8))
def test_maps_give_pillows_bytes(seed):
    draw, noise = random.Random(seed), np.random.default_rng(seed)
    sizes = [(1, 1), (1, 50), (70, 1), (2, 2), (3, 5), (33, 47), (64, 64), (120, 37)]
    for _ in range(250):
        width, height = draw.choice(sizes)
        size = draw.choice([(width, height), (draw.randint(1, 90), draw.randint(1, 90)), (1, 1), (200, 1), (1, 200)])
        pixels = noise.integers(0, 256, (height, width, 3), np.uint8)
        if draw.random() < 0.3:  # edges of black and white, and flat parts
            pixels = np.where(pixels > 127, 255, 0).astype(np.uint8)
        image = Image.fromarray(pixels)
        method, numbers = random_map(draw, width, height, size)
        mode = draw.choice([Image.Resampling.NEAREST, Image.Resampling.BILINEAR, Image.Resampling.BICUBIC])
        fill = draw.choice([(0, 0, 0), (255, 0, 7)])
        edit = map_edit("RGB", size, method, numbers, mode, fill)
        assert edit is not None
        got = made_pixels(Decoded(image), (edit,), "RGB")
        want = image.transform(size, method, numbers, mode, fillcolor=fill)
        assert got is not None and bytes(got) == want.tobytes(), (width, height, size, method, numbers, mode)


@pytest.mark.parametrize("numbers", [[math.nan, 0, 0, 0, 1, 0], [1, 0, math.inf, 0, 1, 0]])
def test_numbers_that_are_not_finite_are_refused(numbers):
    image = Image.new("RGB", (4, 4))
    assert map_edit("RGB", (4, 4), AFFINE, numbers, Image.Resampling.NEAREST, None) is None
    edit = (stoker._ext.EDIT_AFFINE, 4, 4, 0, 0, 0, 0, *numbers)
    with pytest.raises(ValueError, match="not finite"):
        Decoded(image).run(stoker._ext.Single(stoker._ext.Pipeline("")), (edit,))


# ---- the same numbers ----


@needs_same_rounding
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("expand", [False, True])
def test_rotation_by_given_angles(mode, expand):
    images = pictures(18, seed=3, largest=60)
    for angle, (k, pixels) in itertools.product(ANGLES, enumerate(images)):
        center = [None, (3, 2), (0, 0), (7.5, -4.25)][k % 4]
        fill = [0, 9, (255, 3, 77)][k % 3]
        got = apply(T.RandomRotation((angle, angle), mode, expand, center, fill), pixels)
        want = F.rotate(Image.fromarray(pixels), angle, resample(mode), expand, center, fill)
        assert np.array_equal(got, chw(want)), (angle, pixels.shape, center)


@needs_same_rounding
@pytest.mark.parametrize("mode", MODES)
def test_affine_by_given_numbers(mode):
    """Sine and cosine are the engine's own: a last bit may move the middle of an image, which otherwise comes from exactly
    one pixel, a little to either side, and the sum is cut to the level below."""
    draw, images = random.Random(5), 0
    for k, pixels in enumerate(pictures(240, seed=5, largest=70)):
        angle, scale, x, y = draw.uniform(-200, 200), draw.uniform(0.3, 3), draw.uniform(-60, 60), draw.uniform(-60, 60)
        center = [None, (3, 2), (7.5, -4.25)][k % 3]
        fill = [0, 9, (255, 3, 77)][k % 3]
        ours = T.RandomAffine((angle, angle), None, (scale, scale), (x, x, y, y), mode, fill, center)
        want = v2.functional.affine(
            Image.fromarray(pixels), angle, [0, 0], scale, [x, y], resample(mode), fill, list(center) if center else None
        )
        off = np.abs(apply(ours, pixels).astype(int) - chw(want))
        assert off.max() <= (mode != "nearest") and (off > 0).any(0).sum() <= 1, (pixels.shape, angle, scale, x, y)
        images += bool(off.max())
    assert images <= 6


@needs_same_rounding
@pytest.mark.parametrize("mode", MODES)
def test_perspective_of_all_corners_within_a_pixel(mode):
    """Each corner has two places along each axis: every draw must give one of torchvision's 256 results. Where a number of
    the map is 0, torchvision's is 1e-15 or so, and where that decides (a source exactly on a pixel) its result may be the
    level below."""
    pixels = pictures(1, seed=8)[0][:40, :50]
    height, width = pixels.shape[:2]
    distortion = 1.5 / (min(width, height) // 2)
    assert int(distortion * (width // 2)) == 1 == int(distortion * (height // 2))
    start = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
    results = []
    for moved in itertools.product((0, 1), repeat=8):
        end = [[x + (moved[2 * k] if x == 0 else -moved[2 * k]), y + (moved[2 * k + 1] if y == 0 else -moved[2 * k + 1])]
               for k, (x, y) in enumerate(start)]  # fmt: skip
        results.append(chw(F.perspective(Image.fromarray(pixels), start, end, resample(mode), (1, 2, 3))).astype(int))
    transform = T.RandomPerspective(distortion, 1.0, mode, (1, 2, 3))
    draws = {made.tobytes(): made for made in (apply(transform, pixels, seed=seed) for seed in range(600))}
    assert len(draws) > 200
    others = set(draws) - {result.astype(np.uint8).tobytes() for result in results}
    assert len(others) < len(draws) / 15
    for other in others:
        off = min((np.abs(result - draws[other]) for result in results), key=np.count_nonzero)
        assert np.count_nonzero((off > (mode != "nearest")).any(0)) <= 1  # a corner, inside or not


def test_grey_images_have_one_value_of_fill():
    pixels = np.full((20, 30), 200, np.uint8)
    perspective = T.RandomPerspective(0.9, 1, fill=7)
    for transform in (T.RandomRotation((45, 45), fill=7), T.RandomAffine((45, 45), fill=[7]), perspective):
        out = apply(T.Compose([T.Grayscale(), transform]), pixels)
        assert out.shape == (1, 20, 30) and set(np.unique(out)) == {7, 200}
    with pytest.raises(ValueError, match="fill has 3 values, but the image has 1 channel"):
        apply(T.Compose([T.Grayscale(), T.RandomRotation(3, fill=(1, 2, 3))]), pixels)


def test_images_of_a_pixel_are_warped_or_left_alone():
    pixels = np.full((1, 1, 3), 77, np.uint8)
    for seed in range(20):
        for transform in (T.RandomRotation(180), T.RandomAffine(180, (1, 1), (0.1, 9), 40), T.RandomPerspective(1, 1)):
            assert apply(transform, pixels, seed=seed).shape == (3, 1, 1)


def test_a_turned_line_stays_within_the_limit():
    pixels = np.zeros((1, 60000, 3), np.uint8)
    with pytest.raises(stoker.LimitReached, match="random_rotation: 42428 x 42429 exceeds pixel_limit"):
        apply(T.RandomRotation((45, 45), expand=True), pixels)


# ---- arguments ----


@pytest.mark.parametrize("module", [V, v2])
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("RandomRotation", (-1,)), ("RandomRotation", ([1],)), ("RandomRotation", ([1, 2, 3],)), ("RandomRotation", ("x",)),
        ("RandomRotation", (3, "nearest", False, [1])), ("RandomRotation", (3, "nearest", False, 4)),
        ("RandomAffine", (-1,)), ("RandomAffine", (1, 3)), ("RandomAffine", (1, (0, 2))), ("RandomAffine", (1, (0, 1, 1))),
        ("RandomAffine", (1, None, (0, 1))), ("RandomAffine", (1, None, 2)), ("RandomAffine", (1, None, None, (1, 2, 3))),
        ("RandomAffine", (1, None, None, -4)), ("RandomAffine", (1, None, None, None, "nearest", 0, (1, 2, 3))),
    ],
)  # fmt: skip
def test_arguments_are_refused_with_torchvisions_words(module, name, args):
    if module is V and "nearest" in args:
        args = tuple(V.InterpolationMode.NEAREST if arg == "nearest" else arg for arg in args)
    with pytest.raises((TypeError, ValueError)) as theirs:
        getattr(module, name)(*args)
    with pytest.raises(theirs.type) as ours:
        getattr(T, name)(*args)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("make", [
    lambda: T.RandomRotation(math.nan), lambda: T.RandomRotation((1, math.inf)), lambda: T.RandomRotation((3, 1)),
    lambda: T.RandomRotation(3, "lanczos"), lambda: T.RandomAffine(math.nan), lambda: T.RandomAffine(1, (math.nan, 0)),
    lambda: T.RandomAffine(1, None, (math.nan, 1)), lambda: T.RandomAffine(1, None, (1, math.inf)),
    lambda: T.RandomAffine(1, None, (2, 1)), lambda: T.RandomAffine(1, shear=math.inf),
    lambda: T.RandomAffine(1, fill=math.nan),
    lambda: T.RandomAffine(1, fill=(1, 2)), lambda: T.RandomPerspective(math.nan), lambda: T.RandomPerspective(1.5),
    lambda: T.RandomPerspective(0.5, math.nan), lambda: T.RandomRotation(3, center=(math.nan, 1)),
])  # fmt: skip
def test_numbers_without_sense_are_refused(make):
    with pytest.raises(ValueError):
        apply(make(), np.zeros((9, 9, 3), np.uint8))


def test_representations_are_torchvisions():
    pairs = [
        (T.RandomRotation(5), V.RandomRotation(5)),
        (T.RandomRotation(5, center=(1, 2), fill=(1, 2, 3)), V.RandomRotation(5, center=(1, 2), fill=(1, 2, 3))),
        (T.RandomAffine(5), V.RandomAffine(5)),
        (T.RandomAffine(5, (0.1, 0.2), (0.5, 2), 3, "bilinear", 4, (5, 6)),
         V.RandomAffine(5, (0.1, 0.2), (0.5, 2), 3, V.InterpolationMode.BILINEAR, 4, (5, 6))),
        (T.RandomPerspective(), V.RandomPerspective()),
    ]  # fmt: skip
    for ours, theirs in pairs:
        assert repr(ours) == repr(theirs)


# ---- draws ----

DRAWS = 700


def numbers_of(transform, seed: int) -> tuple[float, float, float, float]:
    """The affine map that a draw was, measured where it leaves columns and rows of the image: turn, stretch, moves."""
    side = 201
    middle, by = side // 2, 40
    out = apply(transform, coordinates(side, side), seed=seed).astype(int)
    (x0, y0), (x1, y1) = out[:2, middle, middle], out[:2, middle, middle + by]
    return math.degrees(math.atan2(y1 - y0, x1 - x0)), math.hypot(y1 - y0, x1 - x0) / by, x0 - middle - 1, y0 - middle - 1


def test_angles_of_rotations_are_distributed_as_torchvisions():
    torch.manual_seed(1)
    ours = [-numbers_of(T.RandomRotation((-20, 70)), seed)[0] for seed in range(DRAWS)]
    theirs = [V.RandomRotation.get_params([-20, 70]) + random.Random(k).uniform(-0.7, 0.7) for k in range(DRAWS)]
    same_distribution([-angle for angle in ours], theirs, "angle")


def test_numbers_of_affine_maps_are_distributed_as_torchvisions():
    torch.manual_seed(1)
    limits = [-50.0, 20.0], (0.1, 0.05), (0.8, 1.6)
    ours = [numbers_of(T.RandomAffine(limits[0], None, limits[2]), seed)[:2] for seed in range(DRAWS)]
    moves = [numbers_of(T.RandomAffine(0, limits[1]), seed)[2:] for seed in range(DRAWS)]
    theirs = [V.RandomAffine.get_params(limits[0], limits[1], limits[2], None, [201, 201]) for _ in range(DRAWS)]
    jitter = random.Random(2)
    same_distribution([-angle for angle, _ in ours], [angle + jitter.uniform(-0.7, 0.7) for angle, *_ in theirs], "angle")
    scales = [one[2] + jitter.uniform(-0.01, 0.01) for one in theirs]
    same_distribution([1 / stretch for _, stretch in ours], scales, "scale")
    for axis in (0, 1):
        same_distribution([-move[axis] for move in moves], [one[1][axis] for one in theirs], "move")


def test_shears_are_drawn_for_both_axes():
    flat = apply(T.RandomAffine(0, shear=(10, 40)), coordinates(120, 120), seed=3).astype(int)
    assert len(set(flat[1, 60, 30:90])) == 1  # rows stay rows
    both = apply(T.RandomAffine(0, shear=(10, 40, 10, 40)), coordinates(120, 120), seed=3).astype(int)
    assert len(set(both[1, 60, 30:90])) > 5


def test_perspective_is_applied_as_often_as_p_says():
    pixels = coordinates(60, 60)
    moved = [not np.array_equal(apply(T.RandomPerspective(0.5, 0.3), pixels, seed=seed), chw(Image.fromarray(pixels)))
             for seed in range(600)]  # fmt: skip
    assert abs(np.mean(moved) - 0.3) < 4 * math.sqrt(0.3 * 0.7 / 600)


# ---- lazy images ----


def encoded(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pictures(1, seed=4, largest=400)[0]).resize((width, height)).save(file, "JPEG")
    return file.getvalue()


@needs_same_rounding
def test_lazy_images_stay_lazy_and_equal_pillows():
    data = encoded(90, 70)
    draw = random.Random(1)
    with stoker.lazy_images():
        for mode, angle in itertools.product(("RGB", "L"), [0, 90, 180, 30, -7.5]):
            lazy = Image.open(io.BytesIO(data)).convert(mode)
            plain = Image.open(io.BytesIO(data)).convert(mode)
            plain.load()
            resampling = draw.choice([Image.Resampling.NEAREST, Image.Resampling.BILINEAR, Image.Resampling.BICUBIC])
            fill = 5 if mode == "L" else (5, 6, 7)
            lazy = lazy.rotate(angle, resampling, expand=angle == 30, fillcolor=fill)
            assert is_lazy(lazy) or angle == 90
            lazy = lazy.transform((50, 60), PERSPECTIVE, (1, 0.1, 2, 0.2, 0.9, 3, 1e-3, 2e-3), resampling, fillcolor=fill)
            plain = plain.rotate(angle, resampling, expand=angle == 30, fillcolor=fill)
            plain = plain.transform((50, 60), PERSPECTIVE, (1, 0.1, 2, 0.2, 0.9, 3, 1e-3, 2e-3), resampling, fillcolor=fill)
            assert lazy.size == plain.size and lazy.tobytes() == plain.tobytes()


def test_what_the_engine_lacks_is_left_to_pillow():
    data = encoded(40, 30)
    with stoker.lazy_images():
        for size, method, numbers, options in [
            ((20, 20), Image.Transform.EXTENT, (1, 2, 20, 20), {}),
            ((20, 20), Image.Transform.QUAD, (0, 0, 0, 20, 20, 20, 20, 0), {}),
            ((20, 20), AFFINE, (1, 0, 0, 0, 1, 0), {"fillcolor": "red"}),
            ((20, 20), AFFINE, (1, 0, 0, 0, 1, 0), {"fillcolor": 7}),
            ((20, 20), AFFINE, (1, 0, 0, 0, 1, 0, 5, 5), {}),
            ((20, 20), AFFINE, (True, 0, 0, 0, 1, 0), {}),
        ]:
            lazy = Image.open(io.BytesIO(data)).convert("RGB").transform(size, method, numbers, **options)
            plain = Image.open(io.BytesIO(data)).convert("RGB")
            plain.load()
            assert lazy.tobytes() == plain.transform(size, method, numbers, **options).tobytes()
        for numbers, options in [((1, 0, 0), {}), (None, {}), ((1, 0, 0, 0, 1, 0), {"resample": 1})]:
            with pytest.raises(ValueError):
                Image.open(io.BytesIO(data)).convert("RGB").transform((20, 20), AFFINE, numbers, **options)


@needs_same_rounding
@pytest.mark.parametrize("mode", MODES)
def test_grey_images_give_pillows_bytes(mode):
    for k, pixels in enumerate(pictures(30, seed=12, largest=60)):
        angle = 13.7 * k
        got = apply(T.Compose([T.Grayscale(), T.RandomRotation((angle, angle), mode, fill=9)]), pixels)
        assert np.array_equal(got, chw(F.rotate(Image.fromarray(pixels).convert("L"), angle, resample(mode), fill=9)))
