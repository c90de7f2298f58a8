# SPDX-License-Identifier: Apache-2.0
"""torchvision's transforms called with lazy images: torchvision's results, from the engine where it has the steps."""

from __future__ import annotations

import copy
import io
import pickle
import sys
import warnings

import numpy as np
import pytest
import stoker
import torch
from conftest import picture, run_python
from PIL import Image, ImageOps
from torch import nn

T = pytest.importorskip("torchvision.transforms")
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms import functional as F  # noqa: E402
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms._presets import ImageClassification  # noqa: E402

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


@pytest.fixture(autouse=True)
def one_thread():
    """torch's threads cost more than they bring for such images."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def encoded(image, kind="JPEG", **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


FILES = [
    encoded(picture(1, 300, 220), quality=92),
    encoded(picture(2, 120, 260), quality=60, subsampling=0),
    encoded(picture(3, 41, 37), quality=85, restart_marker_rows=1),
    encoded(picture(4, 90, 90).convert("L")),
    encoded(picture(5, 80, 120), progressive=True),
    encoded(picture(6, 99, 72), kind="PNG"),
    encoded(picture(7, 64, 48).convert("RGBA"), kind="PNG"),
    encoded(picture(8, 50, 70).convert("P"), kind="PNG"),
    encoded(picture(9, 50, 70), kind="WEBP"),
    encoded(picture(10, 200, 150), quality=90)[:-500],
]


def invert(image):
    return ImageOps.invert(image)


class Inverted(nn.Module):
    def forward(self, image):
        return ImageOps.invert(image)


class MyResize(T.Resize):
    def forward(self, image):
        return ImageOps.invert(super().forward(image))


class MyCompose(T.Compose):
    def __call__(self, image):
        return super().__call__(ImageOps.invert(image))


class MyV2(v2.Resize):
    def transform(self, inpt, params):
        return ImageOps.invert(super().transform(inpt, params))


def noise_free(tensor):
    return tensor * 2 + 0.25


FLOAT2 = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]

# Nothing in these is drawn: results are equal to the bit, types and strides included.
FIXED = {
    "eval": T.Compose([T.Resize(64), T.CenterCrop(56), T.ToTensor(), T.Normalize(MEAN, STD)]),
    "tensor": T.Compose([T.ToTensor()]),
    "bytes": T.Compose([T.Resize((50, 40)), T.PILToTensor()]),
    "bytes, float": T.Compose([T.Resize(50), T.PILToTensor(), T.ConvertImageDtype(torch.float32), T.Normalize(MEAN, STD)]),
    "bytes, double": T.Compose([T.PILToTensor(), T.ConvertImageDtype(torch.float64)]),
    "images": T.Compose([T.Resize(50, T.InterpolationMode.BICUBIC), T.CenterCrop((45, 30))]),
    "pad": T.Compose([T.Pad((3, 4, 5, 6), fill=(1, 2, 3)), T.Pad(4, padding_mode="reflect"), T.ToTensor()]),
    "flips": T.Compose([T.RandomHorizontalFlip(1.0), T.RandomVerticalFlip(1.0), T.RandomHorizontalFlip(0.0), T.ToTensor()]),
    "flips behind": T.Compose([T.ToTensor(), T.RandomHorizontalFlip(1.0), T.Normalize(MEAN, STD)]),
    "grey": T.Compose([T.Grayscale(), T.Resize(33), T.ToTensor(), T.Normalize([0.4], [0.3])]),
    "grey image": T.Compose([T.Grayscale(), T.Resize(33)]),
    "grey, colours": T.Compose([T.Grayscale(), T.ColorJitter(brightness=(0.5, 0.5)), T.ToTensor()]),
    "grey of three": T.Compose([T.Grayscale(3), T.Resize(33), T.ToTensor()]),
    "colours": T.Compose([T.ColorJitter(brightness=(0.7, 0.7)), T.ColorJitter(saturation=(1.4, 1.4)), T.ToTensor()]),
    "hue": T.Compose([T.Resize(40), T.ColorJitter(hue=(0.2, 0.2), contrast=(1.0, 1.0))]),
    "blur": T.Compose([T.Resize(40), T.GaussianBlur(5, sigma=(1.1, 1.1)), T.ToTensor()]),
    "apply": T.Compose([T.RandomApply([T.Resize(70), T.RandomHorizontalFlip(1.0)], p=1.0), T.ToTensor()]),
    "apply list": T.Compose([T.RandomApply(nn.ModuleList([T.Grayscale(3)]), p=1.0), T.ToTensor()]),
    "nested": T.Compose([T.Compose([T.Resize(64), T.CenterCrop(56)]), T.Compose([T.ToTensor(), T.Normalize(MEAN, STD)])]),
    "normalized twice": T.Compose([T.ToTensor(), T.Normalize(MEAN, STD), T.Normalize([0.1] * 3, [0.3] * 3)]),
    "function first": T.Compose([invert, T.Resize(40), T.ToTensor()]),
    "function in between": T.Compose([T.Resize(64), invert, T.CenterCrop(50), T.ToTensor(), T.Normalize(MEAN, STD)]),
    "functions": T.Compose([T.Resize(64), invert, T.CenterCrop(50), invert, T.RandomHorizontalFlip(1.0), T.ToTensor()]),
    "lambda convert": T.Compose([T.Lambda(lambda image: image.convert("RGB")), T.Resize(40), T.ToTensor()]),
    "function behind": T.Compose([T.Resize(64), T.ToTensor(), noise_free, T.Normalize(MEAN, STD)]),
    "only functions": T.Compose([invert, np.asarray]),
    "module": T.Compose([Inverted(), T.Resize(30), T.ToTensor()]),
    "resize behind tensor": T.Compose([T.ToTensor(), T.Resize(40), T.CenterCrop(30), T.Normalize(MEAN, STD)]),
    "pad behind normalize": T.Compose([T.ToTensor(), T.Normalize(MEAN, STD), T.Pad(3), T.CenterCrop(20)]),
    "rotation": T.Compose([T.RandomRotation((20, 20)), T.Resize(40), T.ToTensor()]),
    "five": T.Compose([T.Resize(64), T.FiveCrop(30)]),
    "to image and back": T.Compose([T.Resize(64), T.ToTensor(), T.ToPILImage(), T.CenterCrop(40), T.ToTensor()]),
    "subclass": T.Compose([T.Resize(64), MyResize(50), T.ToTensor()]),
    "compose of one's own": MyCompose([T.Resize(64), T.ToTensor()]),
    "v2": v2.Compose([v2.Resize(64), v2.CenterCrop(56), *FLOAT2, v2.Normalize(MEAN, STD)]),
    "v2 image first": v2.Compose([v2.ToImage(), v2.Resize(64), v2.CenterCrop(56), v2.ToDtype(torch.float32, scale=True)]),
    "v2 pure": v2.Compose([v2.Resize(64), *FLOAT2, v2.Normalize(MEAN, STD), v2.ToPureTensor()]),
    "v2 bytes": v2.Compose([v2.RGB(), v2.Resize((30, 40)), v2.PILToTensor()]),
    "v2 convert": v2.Compose([v2.PILToTensor(), v2.ConvertImageDtype(torch.float32), v2.Normalize(MEAN, STD)]),
    "v2 identity": v2.Compose([v2.Identity(), v2.Resize(30), v2.Identity()]),
    "v2 flips": v2.Compose([v2.RandomHorizontalFlip(1.0), v2.ToImage(), v2.RandomVerticalFlip(1.0)]),
    "v2 grey": v2.Compose([v2.Grayscale(3), v2.Resize(30), *FLOAT2]),
    "v2 pad": v2.Compose([v2.Pad([2, 3], fill=7), v2.CenterCrop(400), *FLOAT2]),
    "v2 pad by type": v2.Compose([v2.Pad(2, fill={Image.Image: 3, "others": 0}), *FLOAT2]),
    "v2 no scale": v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32), v2.Normalize(MEAN, STD)]),
    "v2 lambda": v2.Compose([v2.Resize(64), v2.Lambda(invert), v2.CenterCrop(40), *FLOAT2]),
    "v2 subclass": v2.Compose([MyV2(64), *FLOAT2]),
    "v2 and v1": T.Compose([v2.Resize(64), T.CenterCrop(56), v2.ToImage(), T.ConvertImageDtype(torch.float32)]),
    "v1 and v2": v2.Compose([T.Resize(64), v2.CenterCrop(56), T.ToTensor(), v2.Normalize(MEAN, STD)]),
    "sequential": nn.Sequential(T.Resize(64), T.CenterCrop(56), v2.PILToTensor()),
    "sequential in compose": T.Compose([nn.Sequential(T.Resize(64), T.CenterCrop(56)), T.ToTensor()]),
    "sequential of functions": nn.Sequential(T.Resize(64), Inverted(), v2.ToImage()),
    "alone: resize": T.Resize(40),
    "alone: tensor": T.ToTensor(),
    "alone: bytes": T.PILToTensor(),
    "alone: v2 image": v2.ToImage(),
    "alone: v2 crop": v2.CenterCrop(30),
    "alone: normalize": T.Normalize(MEAN, STD),
    "alone: too small": T.RandomCrop(5000),
    "alone: convert": T.ConvertImageDtype(torch.float32),
    "preset": ImageClassification(crop_size=56, resize_size=64),
    "preset bicubic": ImageClassification(crop_size=72, resize_size=64, interpolation=T.InterpolationMode.BICUBIC),
    "empty": T.Compose([]),
}


def outcome(transform, data, mode):
    try:
        image = Image.open(io.BytesIO(data))
        out = transform(image.convert(mode) if mode else image)
        return (out.load(), out)[1] if isinstance(out, Image.Image) else out
    except Exception as error:
        return type(error), str(error)


def same(ours, theirs):
    if isinstance(theirs, torch.Tensor):
        kinds = type(ours) is type(theirs) and ours.dtype is theirs.dtype and ours.stride() == theirs.stride()
        return kinds and torch.equal(ours, theirs)
    if isinstance(theirs, Image.Image):
        return ours.tobytes() == theirs.tobytes() and ours.info == theirs.info and ours == theirs
    if isinstance(theirs, np.ndarray):
        return np.array_equal(ours, theirs)
    if isinstance(theirs, (list, tuple)) and theirs and isinstance(theirs[0], Image.Image):
        return all(same(a, b) for a, b in zip(ours, theirs, strict=True))
    return ours == theirs


@pytest.mark.parametrize("name", FIXED, ids=lambda name: name.replace(" ", "-").replace(":", ""))
def test_what_is_not_drawn_is_torchvisions_to_the_bit(name):
    transform = FIXED[name]
    for data in FILES:
        for mode in ("RGB", None, "L") if data is FILES[0] else ("RGB", None):
            torch.manual_seed(1)
            plain = outcome(transform, data, mode)
            with stoker.lazy_images():
                torch.manual_seed(1)
                first = outcome(transform, data, mode)
                torch.manual_seed(1)
                second = outcome(transform, data, mode)
            assert same(first, plain) and same(second, plain)


@pytest.fixture()
def engine_runs(monkeypatch):
    """How many calls of the engine there were."""
    from stoker import _lazy_compose

    runs = []
    run = _lazy_compose._Segment.run
    monkeypatch.setattr(_lazy_compose._Segment, "run", lambda self, image: runs.append(self.end) or run(self, image))
    return runs


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("eval", [4]),
        ("v2", [5]),
        ("preset", [1]),
        ("sequential", [3]),
        ("function in between", [1, 5]),
        ("function first", [3]),
        ("function behind", [2]),
        ("resize behind tensor", [1]),
        ("v2 image first", [1]),
        ("nested", [4]),
        ("alone: resize", [1]),
        ("subclass", [1, 3]),
        ("grey, colours", [1]),
        ("blur", [1, 3]),
        ("only functions", []),
    ],
)
def test_steps_that_follow_each_other_are_one_call(engine_runs, name, ends):
    with stoker.lazy_images():
        FIXED[name](Image.open(io.BytesIO(FILES[0])).convert("RGB"))
    assert engine_runs == ends


@pytest.mark.parametrize("number", [0, 3, 4, 5, 6, 8])
def test_files_that_pillow_decodes_have_their_transforms_in_the_engine(engine_runs, number):
    with stoker.lazy_images():
        FIXED["eval"](Image.open(io.BytesIO(FILES[number])).convert("RGB"))
        with Image.open(io.BytesIO(FILES[5])) as image:
            FIXED["eval"](image)
    assert engine_runs == [4, 4]


def test_an_image_is_not_made_for_what_the_engine_does():
    with stoker.lazy_images():
        image = Image.open(io.BytesIO(FILES[0])).convert("RGB").crop((10, 20, 200, 180))
        first = FIXED["eval"](image)
        assert type(image) is not Image.Image
        image.load()
        assert torch.equal(FIXED["eval"](image), first)


def test_draws_follow_torchs_generator():
    train = T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ColorJitter(0.4), T.ToTensor(), T.RandomErasing()])
    with stoker.lazy_images():
        image = Image.open(io.BytesIO(FILES[0])).convert("RGB")

        def series(seed):
            torch.manual_seed(seed)
            return torch.stack([train(image) for _ in range(8)])

        first, other = series(1), series(2)
        assert torch.equal(series(1), first)
        assert not torch.equal(first, other)
        assert len({bytes(one.numpy()) for one in first}) == 8
        torch.manual_seed(3)
        before = torch.get_rng_state()
        FIXED["eval"](image)
        assert torch.equal(torch.get_rng_state(), before)


def test_draws_are_distributed_as_torchvisions():
    """Where crops begin, how many are mirrored, and how bright they get."""
    ramp = np.zeros((64, 256, 3), np.uint8)
    ramp[..., 0] = np.arange(256)
    ramp[..., 1] = np.arange(64)[:, None] * 4
    data = encoded(Image.fromarray(ramp), quality=100, subsampling=0)
    train = T.Compose([T.RandomResizedCrop(16, scale=(0.1, 0.5)), T.RandomHorizontalFlip(), T.ToTensor()])

    def moments():
        out = torch.stack([train(Image.open(io.BytesIO(data)).convert("RGB")) for _ in range(1500)])
        turned = (out[:, 0, 8, 0] > out[:, 0, 8, -1]).float().mean()
        return torch.stack([out[:, 0].mean(), out[:, 0].mean((1, 2)).std(), out[:, 1].mean((1, 2)).std(), turned])

    torch.manual_seed(0)
    plain = moments()
    with stoker.lazy_images():
        lazy = moments()
    assert torch.allclose(plain, lazy, atol=0.06)


def test_a_transform_that_is_changed_is_compiled_anew():
    steps = [T.Resize(40), T.CenterCrop(30), T.ToTensor(), T.Normalize(list(MEAN), list(STD))]
    transform = T.Compose(steps)

    def check():
        plain = outcome(transform, FILES[0], "RGB")
        with stoker.lazy_images():
            outcome(transform, FILES[0], "RGB")
            assert same(outcome(transform, FILES[0], "RGB"), plain)
        return plain

    def changes():
        yield lambda: setattr(steps[0], "size", 50)
        yield lambda: steps[3].mean.__setitem__(0, 0.9)
        yield lambda: transform.transforms.insert(1, T.Grayscale(3))
        yield lambda: transform.transforms.pop(0)
        yield lambda: setattr(transform, "transforms", [T.Resize(20), T.ToTensor()])
        yield lambda: transform.transforms[0].register_forward_hook(lambda module, args, out: ImageOps.invert(out))
        yield lambda: transform.transforms[0].__dict__.update(forward=invert)

    with stoker.lazy_images():  # the same plans all along
        seen = [check()]
        for change in changes():
            change()
            seen.append(check())
    assert all(not same(one, other) for one, other in zip(seen, seen[1:], strict=False))


def test_hooks_and_forwards_of_ones_own_are_called():
    calls = []
    transform = v2.Compose([v2.Resize(40), *FLOAT2])
    transform.register_forward_pre_hook(lambda module, args: calls.append("before"))
    transform.register_forward_hook(lambda module, args, out: calls.append("behind"))
    transform.transforms[0].register_forward_hook(lambda module, args, out: calls.append(out.size))
    plain = outcome(transform, FILES[0], "RGB")
    with stoker.lazy_images():
        assert same(outcome(transform, FILES[0], "RGB"), plain)
    assert calls == ["before", (54, 40), "behind"] * 2


def test_samples_of_several_parts_go_through_v2():
    transform = v2.Compose([v2.Resize(40), *FLOAT2])

    def sample():
        image = Image.open(io.BytesIO(FILES[0])).convert("RGB")
        boxes = tv_tensors.BoundingBoxes([[1, 2, 30, 40]], format="XYXY", canvas_size=(220, 300))
        return transform(image, {"boxes": boxes, "label": 3})

    (image, rest), plain = sample(), None
    with stoker.lazy_images():
        plain = sample()
    assert same(plain[0], image) and torch.equal(plain[1]["boxes"], rest["boxes"]) and plain[1]["label"] == 3


def test_functions_of_torchvision_get_pillows_pixels():
    def by_hand():
        image = Image.open(io.BytesIO(FILES[0])).convert("RGB")
        image = F.resized_crop(image, 10, 20, 100, 90, (40, 30))
        return F.normalize(F.to_tensor(F.hflip(image)), MEAN, STD)

    plain = by_hand()
    with stoker.lazy_images():
        assert torch.equal(by_hand(), plain)


def test_other_types_of_float_stay_torchvisions():
    torch.set_default_dtype(torch.float64)
    try:
        plain = outcome(FIXED["eval"], FILES[0], "RGB")
        with stoker.lazy_images():
            assert same(outcome(FIXED["eval"], FILES[0], "RGB"), plain)
        assert plain.dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_patches_are_undone_and_transforms_stay_what_they_are():
    kinds = [T.Compose, T.Resize, T.ToTensor, v2.Compose, v2.Resize, nn.Sequential, ImageClassification]
    before = [(vars(kind).get("forward"), vars(kind).get("__call__")) for kind in kinds]
    state = pickle.dumps(FIXED["eval"])
    with stoker.lazy_images():
        outcome(FIXED["eval"], FILES[0], "RGB")
        inside = [(vars(kind).get("forward"), vars(kind).get("__call__")) for kind in kinds]
        assert all(one != other for one, other in zip(inside, before, strict=True))
        assert pickle.dumps(FIXED["eval"]) == state and pickle.loads(state)
        assert repr(copy.deepcopy(FIXED["v2"])) == repr(FIXED["v2"])
    assert [(vars(kind).get("forward"), vars(kind).get("__call__")) for kind in kinds] == before
    assert pickle.dumps(FIXED["eval"]) == state


def test_torchvision_is_not_imported_for_it_and_found_when_it_is(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(FILES[0])
    got = run_python(
        f"""
        import sys
        import stoker
        with stoker.lazy_images():
            from PIL import Image
            Image.open({str(path)!r}).convert("RGB").load()
            assert "torchvision" not in sys.modules and "torch" not in sys.modules
            import torchvision.transforms as T
            image = Image.open({str(path)!r}).convert("RGB")
            assert type(image).__name__ == "LazyImage", type(image)
            T.Compose([T.Resize(30), T.ToTensor()])(image)
            assert type(image).__name__ == "LazyImage", type(image)
        assert T.Compose.__call__.__globals__["__name__"] == "torchvision.transforms.transforms"
        """
    )
    assert got.returncode == 0, got.stderr


def test_what_the_engine_runs_alone_is_compiled_as_ever(tree):
    """The patches are no change of torchvision's classes to who compiles them."""
    data = pytest.importorskip("torchvision.datasets").ImageFolder(tree, FIXED["eval"])
    with stoker.lazy_images():
        outcome(FIXED["eval"], FILES[0], "RGB")
        ours = list(stoker.DataLoader(data, batch_size=8, compile="require"))
    theirs = list(torch.utils.data.DataLoader(data, batch_size=8))
    assert all(torch.equal(a[0], b[0]) for a, b in zip(ours, theirs, strict=True))


# ---- data sets ----


class Photos(torch.utils.data.Dataset):
    """What most data sets are."""

    def __init__(self, paths, transform):
        self.paths = paths
        self.transform = transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with open(self.paths[index], "rb") as file:
            image = Image.open(file).convert("RGB")
        kind = type(image).__name__
        return self.transform(image), index, kind


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    root = tmp_path_factory.mktemp("photos")
    for number in range(20):
        path = root / f"{number}.jpg"
        options = {"progressive": True} if number % 5 == 4 else {}
        picture(number, 60 + 7 * number, 90 - 2 * number).save(path, quality=90, **options)
    return sorted(root.iterdir())


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", ["eval", "v2", "function in between", "preset"])
def test_a_data_set_gives_the_same_batches_as_with_torch(paths, workers, name):
    data = Photos(paths, FIXED[name])
    theirs = list(torch.utils.data.DataLoader(data, batch_size=6))
    ours = list(stoker.DataLoader(data, batch_size=6, num_workers=workers))
    assert len(ours) == len(theirs) == 4
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one[0], other[0]) and torch.equal(one[1], other[1])
    assert {kind for batch in ours for kind in batch[2]} == {"LazyImage", "OpenedImage"}
    assert "Lazy" not in type(Image.open(paths[0])).__name__


@pytest.mark.parametrize("workers", [0, 2])
def test_compile_false_leaves_images_to_pillow(paths, workers):
    data = Photos(paths, FIXED["eval"])
    loader = stoker.DataLoader(data, batch_size=6, num_workers=workers, compile=False)
    assert {kind for batch in loader for kind in batch[2]} == {"Image"}


def test_draws_in_workers_follow_the_seed(paths):
    data = Photos(paths, T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ToTensor()]))

    def epoch(seed, method="fork"):
        torch.manual_seed(seed)
        loader = stoker.DataLoader(data, batch_size=20, num_workers=1, multiprocessing_context=method)
        return torch.cat([batch[0] for batch in loader])

    first = epoch(1)
    assert torch.equal(epoch(1), first) and not torch.equal(epoch(2), first)
    assert torch.equal(epoch(1, "spawn"), first)


def test_draws_can_follow_the_sample(paths):
    """With any number of workers, and none."""
    data = Photos(paths, T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ToTensor()]))

    def epoch(seed, workers):
        loader = stoker.DataLoader(data, batch_size=5, num_workers=workers, seed=seed, seed_by="sample")
        return torch.cat([batch[0] for batch in loader])

    first = epoch(1, 0)
    assert torch.equal(epoch(1, 1), first) and torch.equal(epoch(1, 2), first)
    assert not torch.equal(epoch(2, 0), first)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_bad_file_raises_where_pillow_raises(paths, tmp_path, workers):
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(paths[0].read_bytes()[:-600])

    class Careful(Photos):
        def __getitem__(self, index):
            try:
                image = Image.open(self.paths[index]).convert("RGB")
            except OSError:
                return self[index + 1]
            return self.transform(image), index, ""

    files = [bad, *paths[:5]]
    found = [batch[1].tolist() for batch in stoker.DataLoader(Careful(files, FIXED["eval"]), 6, num_workers=workers)]
    assert found == [[1, 1, 2, 3, 4, 5]]
    with pytest.raises(OSError, match="truncated"):
        list(stoker.DataLoader(Photos(files, FIXED["eval"]), 6, num_workers=workers))


def test_steps_that_do_not_suit_the_image_raise_as_torchvisions(paths):
    data = Photos(paths, T.Compose([T.RandomCrop(500), T.ToTensor()]))
    with pytest.raises(ValueError, match="Required crop size"):
        list(stoker.DataLoader(data, batch_size=5, num_workers=2))


def test_the_deprecated_to_tensor_of_v2():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transform = v2.Compose([v2.Resize(40), v2.ToTensor(), v2.Normalize(MEAN, STD)])
    plain = outcome(transform, FILES[0], "RGB")
    with stoker.lazy_images():
        assert same(outcome(transform, FILES[0], "RGB"), plain)


def test_nothing_of_it_is_left_in_the_modules():
    assert Image.open.__module__ == "PIL.Image" and not hasattr(Image.open, "__wrapped__")
    assert "stoker._lazy_compose" in sys.modules and not sys.modules["stoker._lazy_compose"]._classes
