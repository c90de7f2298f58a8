# SPDX-License-Identifier: Apache-2.0
"""AugMix of torchvision (v1 and v2) and timm in datasets that the engine runs: each change has the library's bytes, chains are
added up with its arithmetic, and weights, depths and choices have its distributions."""

from __future__ import annotations

import numpy as np
import pytest
import stoker
import torch
from PIL import Image, ImageOps
from stoker import _ext
from stoker import transforms as T
from stoker._plan import mixes
from stoker._steps.engine_op import EngineOp
from stoker._steps.single import as_pnm
from test_transform_draws import same_distribution
from torchvision import transforms as V1
from torchvision.transforms import autoaugment, v2
from torchvision.transforms.v2._utils import _setup_fill_arg

MANY = 100_000
SIZES = [(1, 1), (1, 7), (2, 2), (3, 3), (9, 4), (61, 40), (120, 133)]


def noise(seed: int, height: int, width: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def smooth(height: int, width: int) -> np.ndarray:
    small = Image.fromarray(noise(height * 7 + width, max(1, height // 5), max(1, width // 5)))
    return np.asarray(small.resize((width, height), Image.Resampling.BILINEAR))


def draws(transform, image: np.ndarray, count: int) -> np.ndarray:
    """What the engine makes of as many copies of an image."""
    data = _ext.Dataset.from_memory([as_pnm(Image.fromarray(image))] * count)
    pipeline = _ext.Pipeline(T.pipeline_text(transform))
    loader = _ext.Loader(data, pipeline, batch_size=min(count, 1000), workers=0, seed=5, pillow=13)
    loader.start(0)
    made = []
    while (batch := loader.next()) is not None:
        made.append(stoker.to_numpy(batch.images).copy())
    return np.concatenate(made)


# ---- the changes ----


def change(name: str, magnitude: float, image: np.ndarray, fill, *, of_v2: bool, want: np.ndarray) -> np.ndarray:
    """What the engine makes of an image by one change: with so small an alpha, each mix is either the image or its change."""
    op = EngineOp("tensor_augment", change=name, magnitudes=[abs(magnitude)], either_way=magnitude < 0, fused=of_v2, fill=fill)
    outcomes = draws(EngineOp("augment_and_mix", [op], width=1, depth=1, alpha=0.001), image, 24)
    return min(outcomes, key=lambda one: np.count_nonzero(one != want))


def torchvisions(name: str, magnitude: float, image: np.ndarray, fill, *, of_v2: bool) -> np.ndarray:
    tensor = torch.tensor(image).permute(2, 0, 1)
    if of_v2:
        args = {"interpolation": V1.InterpolationMode.BILINEAR, "fill": _setup_fill_arg(fill)}
        return v2.AugMix()._apply_image_or_video_transform(tensor, name, magnitude, **args).numpy()
    return autoaugment._apply_op(tensor, name, magnitude, V1.InterpolationMode.BILINEAR, fill).numpy()


@pytest.mark.parametrize("of_v2", [False, True])
@pytest.mark.parametrize("fill", [None, [10.0, 200.0, 31.0]])
def test_changes(of_v2, fill):
    transform = (v2 if of_v2 else V1).AugMix(severity=10)
    values = different = 0
    for name, magnitudes in mixes._space(transform, v2=of_v2).items():
        ours = mixes._magnitudes(name, magnitudes, 10, v2=of_v2) or [0.0]
        for at, (height, width) in enumerate(SIZES):
            image = smooth(height, width)
            k = (2, 5, 9)[at % 3] if len(ours) > 1 else 0
            theirs = float(magnitudes[k]) if len(ours) > 1 else 0.0
            if name in mixes._BY_SIZE:
                theirs = float(torch.linspace(0, (width if name == "TranslateX" else height) / 3, 10)[k])
            sign = -1 if name in mixes._SIGNED and at % 2 else 1
            want = torchvisions(name, sign * theirs, image, fill, of_v2=of_v2)
            got = change(name, sign * ours[k], image, fill, of_v2=of_v2, want=want)
            apart = np.abs(got.astype(int) - want)
            assert apart.max() <= 1, (name, image.shape)
            values += apart.size
            different += np.count_nonzero(apart)
    assert different <= values // 2000, different


# ---- the sum ----


def share_of(made: np.ndarray, image: np.ndarray, changed: np.ndarray) -> np.float32:
    """The weight of the changed image that all values of a mix agree with."""
    step = changed.astype(float) - image
    low, high = (made.astype(float) - image) / step, (made.astype(float) + 1 - image) / step
    return np.float32((np.minimum(low, high).max() + np.maximum(low, high).min()) / 2)


@pytest.mark.parametrize("blended", [False, True])
def test_timms_mix_of_one_chain(blended):
    auto_augment = pytest.importorskip("timm.data.auto_augment")
    image = noise(4, 12, 17)
    image[image == 127] = 126
    op = auto_augment.AugmentOp("Invert", prob=1.0, magnitude=3, hparams={})
    inverted = ImageOps.invert(Image.fromarray(image))
    for made in draws(auto_augment.AugMixAugment([op], 1.0, 1, 1, blended=blended), image, 100):
        share = share_of(made.transpose(1, 2, 0), image, np.asarray(inverted))
        assert np.array_equal(Image.blend(Image.fromarray(image), inverted, share), made.transpose(1, 2, 0))


def test_torchvisions_mix_of_one_chain():
    image = noise(4, 12, 17)
    inverted = 255 - image
    op = EngineOp("tensor_augment", change="Solarize", magnitudes=[0.0])
    for made in draws(EngineOp("augment_and_mix", [op], width=1, depth=1), image, 300):
        share = share_of(made.transpose(1, 2, 0), image, inverted)
        nearly = torch.tensor(1 - share) * torch.tensor(image) + torch.tensor(share) * torch.tensor(inverted)
        assert np.abs(nearly.to(torch.uint8).numpy().astype(int) - made.transpose(1, 2, 0)).max() <= 1
        assert np.abs(nearly.numpy() - made.transpose(1, 2, 0) - 0.5).max() < 0.51


# ---- draws ----


def simulated(width: int, alpha: float, depth: int, chosen) -> np.ndarray:
    """Mixes of 200, whose chains are what `chosen` makes of depths and a generator."""
    rng = np.random.default_rng(1)
    weights, both = rng.dirichlet([alpha] * width, MANY), rng.dirichlet([alpha] * 2, MANY)
    depths = np.full((MANY, width), depth) if depth > 0 else rng.integers(1, 4, (MANY, width))
    total = np.float32(both[:, 0]) * np.float32(200)
    for k, levels in enumerate(np.float32(chosen(depths, rng)).T):
        total += np.float32(weights[:, k]) * np.float32(both[:, 1]) * levels
    return np.floor(total)


@pytest.mark.parametrize(("width", "depth", "alpha"), [(3, -1, 1.0), (2, 3, 0.4), (1, 1, 5.0)])
def test_distribution(width, depth, alpha):
    """Chains are black if one of their changes was that which makes them black; half are not."""
    ops = [EngineOp("tensor_augment", change="Posterize", magnitudes=[bits]) for bits in (0.0, 8.0)]
    mix = EngineOp("augment_and_mix", ops, width=width, depth=max(depth, 0), alpha=alpha)
    made = draws(mix, np.full((1, 1, 3), 200, np.uint8), MANY)[:, 0, 0, 0]
    theirs = simulated(width, alpha, depth, lambda depths, rng: 200 * (rng.random(depths.shape) < 0.5**depths))
    same_distribution(made, theirs, "mix")


def test_every_change_of_a_chain_draws_anew():
    """Two changes of one op, each either way, may cancel: with the same draw they would never."""
    ops = [EngineOp("tensor_augment", change="TranslateX", magnitudes=[0.25], either_way=True)]
    image = np.arange(1, 9, dtype=np.uint8)[None, :, None].repeat(3, 2) * 25
    made = draws(EngineOp("augment_and_mix", ops, width=1, depth=2, alpha=0.001), image, 400)
    moved = [one for one in made if np.count_nonzero(one[0, 0] == 0) == 4]
    assert 50 < len(moved) < 150  # a quarter of those that are not the image itself
    left = sum(one[0, 0, -1] == 0 for one in moved)
    assert 0.25 < left / len(moved) < 0.75


# ---- datasets ----


@pytest.mark.parametrize("kind", ["v1", "v2", "timm"])
def test_compiles(tree, kind):
    if kind == "timm":
        mix = pytest.importorskip("timm.data.auto_augment").augment_and_mix_transform("augmix-m5-w4-d2", {})
    else:
        mix = (v2 if kind == "v2" else V1).AugMix(fill=7)
    data = stoker.datasets.ImageFolder(tree, T.Compose([T.RandomResizedCrop(24), mix, T.ToTensor()]))
    batches = []
    for workers in (0, 2):
        loader = stoker.DataLoader(data, 5, seed=1, num_workers=workers, compile="require")
        batches.append(torch.cat([images for images, _ in loader]))
    assert torch.equal(*batches) and batches[0].std() > 0.1


def test_tensors_of_bytes_only(tree):
    stoker.DataLoader(stoker.datasets.ImageFolder(tree, v2.Compose([v2.ToImage(), v2.AugMix()])), compile="require")
    for steps in ([v2.AugMix(interpolation="nearest")], [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.AugMix()]):
        data = stoker.datasets.ImageFolder(tree, v2.Compose(steps))
        with pytest.raises(NotImplementedError, match="AugMix"):
            stoker.DataLoader(data, compile="require")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("augment_and_mix{}", "no op to choose"),
        ("augment_and_mix{resize(size=3)}", "cannot contain resize, which changes the size"),
        ("augment_and_mix{augment_and_mix{random_invert}}", "cannot be inside another"),
        ("augment_and_mix{to_tensor}", "cannot contain to_tensor"),
        ("augment_and_mix{random_erasing}", "requires a tensor"),
        ("augment_and_mix(width=17){random_invert}", "width=17 is out of range"),
        ("augment_and_mix{audio_mono}", "sounds"),
        ("tensor_augment(change=Color)", "inside of augment_and_mix"),
        ("to_tensor; augment_and_mix{random_invert}", "augment_and_mix"),
    ],
)
def test_pipelines_that_are_refused(text, why):
    with pytest.raises(stoker.StokerError, match=why):
        _ext.Pipeline(text)


def test_masks_cannot_follow(tmp_path):
    for folder in ("images", "masks"):
        (tmp_path / folder).mkdir()
        Image.fromarray(noise(1, 9, 9)).convert("L" if folder == "masks" else "RGB").save(tmp_path / folder / "a.png")
    transform = T.Compose([V1.AugMix(), T.ToTensor()])
    data = stoker.datasets.ImageMaskFolder(tmp_path / "images", tmp_path / "masks", transform=transform)
    with pytest.raises(ValueError, match="augment_and_mix: masks, boxes and key points cannot follow"):
        next(iter(stoker.DataLoader(data, 1)))
