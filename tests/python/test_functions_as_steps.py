# SPDX-License-Identifier: Apache-2.0
"""Users' functions, Lambda, and classes derived from torchvision's as steps: compiled where it is proved what they do, and with
torchvision's results."""

from __future__ import annotations

import io

import numpy as np
import pytest
import stoker
import torch
from conftest import picture
from PIL import Image
from stoker import transforms as T

V1 = pytest.importorskip("torchvision.transforms")
from torchvision.transforms import v2 as V2  # noqa: E402

outside = "RGB"


def to_rgb(image):
    """Return the image in colour."""
    return image.convert("RGB")


def to_rgb_if_needed(image):
    if image.mode != "RGB":
        image = image.convert("RGB")
    return image


def to_rgb_or_same(image):
    if image.mode == "RGB":
        return image
    return image.convert(mode="RGB")


def unused(image):
    size = 3
    if size > 2:
        return image
    return image.convert("L")


SAME = [lambda x: x, unused]
IMAGES = [
    to_rgb,
    to_rgb_if_needed,
    to_rgb_or_same,
    lambda image: image.convert("RGB") if image.mode != "RGB" else image,
    lambda image: image if image.mode in ("RGB", "L") else image.convert("RGB"),
    lambda image: image.convert("L"),
    lambda image: image.convert("L").convert("RGB"),
    lambda image: image.convert(outside),
]
VALUES = [
    lambda x: x * 2 - 1,
    lambda x: (x * 2) - 1.0,
    lambda x: 2 * x,
    lambda x: x / 0.3,
    lambda x: x * 255,
    lambda x: x.mul(255),
    lambda x: x.sub(0.1307).div(0.3081),
    lambda x: 0.1 + x,
    lambda x: x - 0.5 + 1e-3,
    lambda x: x * 0,
    lambda x: -1.7 * x,
]


def closure(factor):
    return lambda x: x * factor


class Adds:
    def __call__(self, x):
        return x + 1


def caught(image):
    try:
        return image.convert("RGB")
    except ValueError:
        return None


UNKNOWN = [
    len,
    closure(2),
    Adds(),
    caught,
    lambda image: image.convert("CMYK"),
    lambda image: image.convert("L") if image.mode == "RGB" else image.convert("RGB"),
    lambda image: image.size,
    lambda image: image if image else None,
    lambda image: image if image == image else image.convert("L"),  # noqa: PLR0124
    lambda image: f"{image}" and image,
    lambda image, other=2: image,
    lambda *images: images[0],
    lambda x: (yield x),
    lambda x: 1 - x,
    lambda x: x * x,
    lambda x: x * True,
    lambda x: x / 1e31,
    lambda x: x + ((1 << 24) + 1),
    lambda x: x.repeat(1, 2, 2),
    lambda x: x.expand(3, -1, 5),
    lambda x: None,
    lambda x: (lambda y: y)(x),
]


def wrapped(function):
    return [V1.Lambda(function), V2.Lambda(function)] + ([function] if type(function).__name__ == "function" else [])


def floats():
    return [V1.Compose([V1.ToTensor()]), V2.Compose([V2.ToImage(), V2.ToDtype(torch.float32, scale=True)])]


def every_byte():
    """An RGB image with every byte in every channel."""
    return Image.fromarray(np.stack([np.random.default_rng(c).permutation(256).reshape(16, 16) for c in range(3)], -1).astype(np.uint8))


def engine(transform, image):
    return torch.from_numpy(T.functional_apply(transform, image))


def same_bits(ours, theirs):
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    assert ours.contiguous().numpy().tobytes() == torch.as_tensor(theirs).contiguous().numpy().tobytes()


@pytest.mark.parametrize("k", range(len(VALUES)))
def test_calculations_give_torchs_bits(k):
    image = every_byte()
    for step in wrapped(VALUES[k]):
        for first in floats():
            for last in ([], [V1.Normalize([0.4, 0.5, 0.6], [0.2, 0.3, 0.1])]):
                whole = V1.Compose([first, step, *last])
                same_bits(engine(whole, image), whole(image))


@pytest.mark.parametrize("k", range(len(SAME + IMAGES)))
def test_changes_of_mode_give_pillows_images(k):
    function = (SAME + IMAGES)[k]
    for step in wrapped(function):
        for before in ([], [V1.Resize(20)], [V1.Grayscale()], [V1.Grayscale(3)]):
            whole = V1.Compose([*before, step, V1.CenterCrop(16), V1.ToTensor()])
            image = picture(3, 40, 30)
            same_bits(engine(whole, image), whole(image))


def test_identity_may_follow_tensors():
    for function in SAME:
        whole = V1.Compose([V1.ToTensor(), V1.Lambda(function)])
        same_bits(engine(whole, every_byte()), whole(every_byte()))


@pytest.mark.parametrize("function", [lambda x: x.repeat(3, 1, 1), lambda x: x.expand(3, -1, -1), lambda x: x.repeat(3, 1, 1) * 2 - 1])
def test_grey_tensors_are_tripled(function):
    for step in wrapped(function):
        for first in floats():
            for between in ([], [V1.Normalize([0.3], [0.4])]):
                whole = V1.Compose([V1.Grayscale(), V1.Resize(20), first, *between, step, V1.Normalize([0.1, 0.2, 0.3], [0.4, 0.5, 0.6])])
                same_bits(engine(whole, picture(2, 50, 40)), whole(picture(2, 50, 40)))


@pytest.mark.parametrize("k", range(len(UNKNOWN)))
def test_what_is_not_proved_is_not_compiled(k):
    step = UNKNOWN[k]
    for given in [V1.Lambda(step), V2.Lambda(step), step]:
        with pytest.raises((NotImplementedError, TypeError, ValueError, stoker.StokerError)):
            stoker._ext.Pipeline(T.pipeline_text(V1.Compose([V1.CenterCrop(8), given])))
        with pytest.raises((NotImplementedError, TypeError, ValueError, stoker.StokerError)):
            stoker._ext.Pipeline(T.pipeline_text(V1.Compose([V1.ToTensor(), given])))


@pytest.mark.parametrize(
    "transform",
    [
        V1.Compose([V1.ToTensor(), to_rgb]),
        V1.Compose([V1.ToTensor(), V1.Lambda(to_rgb_if_needed)]),
        V1.Compose([V1.Lambda(VALUES[0]), V1.ToTensor()]),
        V1.Compose([V1.PILToTensor(), VALUES[0]]),
        V1.Compose([V1.ToTensor(), V1.ConvertImageDtype(torch.float16), VALUES[0]]),
        V1.Compose([V1.ToTensor(), lambda x: x.repeat(3, 1, 1)]),
        V1.Compose([V1.Grayscale(), V1.ToTensor(), V1.RandomErasing(1, value="random"), lambda x: x.repeat(3, 1, 1)]),
        V1.Compose([V1.Grayscale(), lambda x: x.repeat(3, 1, 1), V1.ToTensor()]),
        V1.Compose([V1.ToTensor(), lambda x: x / 0]),
        V2.Compose([V2.Lambda(to_rgb, Image.Image), V2.ToImage()]),
    ],
)
def test_steps_in_places_where_they_do_something_else_are_not_compiled(transform):
    with pytest.raises((NotImplementedError, ValueError, stoker.StokerError)):
        stoker._ext.Pipeline(T.pipeline_text(transform))


def test_a_dataset_of_torchvision_with_functions_runs_in_the_engine(tmp_path):
    from torchvision import datasets

    (tmp_path / "a").mkdir()
    for k in range(5):
        out = io.BytesIO()
        picture(k, 40, 30).save(out, "PNG")
        (tmp_path / "a" / f"{k}.png").write_bytes(out.getvalue())
    transform = V1.Compose([to_rgb_if_needed, V1.Lambda(lambda x: x), V1.CenterCrop(16), V1.ToTensor(), V1.Lambda(lambda x: x * 2 - 1)])
    data = datasets.ImageFolder(tmp_path, transform)
    loader = stoker.DataLoader(data, batch_size=5, compile=True)
    images, _ = next(iter(loader))
    same_bits(images, torch.stack([data[k][0] for k in range(5)]))


def test_grey_datasets_are_tripled():
    from torchvision import datasets

    data = datasets.MNIST.__new__(datasets.MNIST)
    data.data = torch.arange(3 * 28 * 28).reshape(3, 28, 28).to(torch.uint8)
    data.targets = torch.arange(3)
    data.target_transform = None
    data.transform = V1.Compose([V1.Resize(16), V1.ToTensor(), V1.Lambda(lambda x: x.repeat(3, 1, 1)), V1.Normalize([0.5] * 3, [0.5] * 3)])
    images, _ = next(iter(stoker.DataLoader(data, batch_size=3, compile=True)))
    same_bits(images, torch.stack([data[k][0] for k in range(3)]))


# ---- derived classes ----


class OwnBlur(V1.RandomApply):
    """Only its construction is its own."""

    def __init__(self, *, p=0.5):
        self.keeps = 1 - p
        super().__init__([V1.CenterCrop((20, 30))], p=p)

    def __repr__(self):
        return "a blur"


class OwnSize(V2.Resize):
    def __init__(self, tall):
        super().__init__((tall, 20))


class Taller(OwnSize):
    pass


class Calls(V1.Resize):
    def __call__(self, image):
        return super().__call__(image).rotate(90)


class Forward(V2.Resize):
    def transform(self, inpt, params):
        return super().transform(inpt, params)


class Attribute(V1.Resize):
    interpolation = 3  # the object's own counts


class Base:
    pass


class Mixed(Base, V1.Resize):
    pass


class Hooked(V1.Resize):
    def __init__(self, size):
        super().__init__(size)
        self.forward = lambda image: image


class Lanczos(V2.RandomAffine):
    def __init__(self):
        super().__init__(3, interpolation="lanczos")


def test_classes_that_only_construct_are_their_bases():
    for step in (OwnBlur(p=1), OwnSize(30), Taller(25), Attribute(30), Mixed(30)):
        before = dict(vars(step))
        whole = V1.Compose([step, V1.CenterCrop(16), V1.ToTensor()])
        same_bits(engine(whole, picture(3, 40, 30)), whole(picture(3, 40, 30)))
        assert vars(step) == before and type(step).__name__ in ("OwnBlur", "OwnSize", "Taller", "Attribute", "Mixed")


@pytest.mark.parametrize("make", [lambda: Calls(9), lambda: Forward(9), lambda: Hooked(9), Lanczos])
def test_classes_that_may_do_something_else_are_not_compiled(make):
    step = make()
    with pytest.raises(NotImplementedError) as error:
        T.pipeline_text(V1.Compose([step, V1.ToTensor()]))
    assert all(blocker.step is step for blocker in getattr(error.value, "blockers", []))


def test_a_derived_step_behind_a_tensor_differs_as_its_base_does():
    with pytest.raises(NotImplementedError, match="treats tensors there differently"):
        T.pipeline_text(V1.Compose([V1.ToTensor(), OwnSize(9)]))


class MaybeToTensor(V1.ToTensor):
    def __call__(self, pic):
        return pic if isinstance(pic, torch.Tensor) else super().__call__(pic)


class MaybeBytes(V1.PILToTensor):
    def __call__(self, pic):
        return super().__call__(pic) + 1


@pytest.mark.parametrize("kind", [MaybeToTensor, MaybeBytes])
def test_derived_classes_that_call_to_tensor_run_it_in_the_engine(kind, monkeypatch):
    from stoker._lazy import pixels

    out = io.BytesIO()
    picture(5, 90, 70).save(out, "JPEG")
    transform = V1.Compose([V1.Resize(40), V1.CenterCrop(30), kind()])
    plain = transform(Image.open(out).convert("RGB"))
    runs = []
    run = pixels.Encoded.run
    monkeypatch.setattr(pixels.Encoded, "run", lambda self, single, edits: runs.append(edits) or run(self, single, edits))
    with stoker.lazy_images():
        ours = transform(Image.open(out).convert("RGB"))
    same_bits(ours, plain)
    assert ours.stride() == plain.stride() and len(runs) == 1
