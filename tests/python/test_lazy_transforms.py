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
from loading import MEAN, STD
from PIL import Image, ImageOps
from torch import nn

T = pytest.importorskip("torchvision.transforms")
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms import _functional_pil, v2  # noqa: E402
from torchvision.transforms import functional as F  # noqa: E402
from torchvision.transforms._presets import ImageClassification  # noqa: E402
from torchvision_transforms import FIXED, FLOAT2, invert  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


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


@pytest.mark.parametrize(
    ("name", "edits"),
    [
        ("eval", [2]),
        ("v2", [2]),
        ("preset", [0]),
        ("sequential", [2]),
        ("function in between", [3]),
        ("function first", [2]),
        ("function behind", [1]),
        ("resize behind tensor", [0]),
        ("v2 image first", [0]),
        ("nested", [2]),
        ("flips", [2]),
        ("apply", [2]),
        ("colours", [2]),
        ("grey", [2]),
        ("grey of three", [2]),
        ("subclass", [3]),
        ("blur", [1, 0]),
    ],
)
def test_steps_that_follow_each_other_are_one_call(engine_runs, name, edits):
    with stoker.lazy_images():
        FIXED[name](Image.open(io.BytesIO(FILES[0])).convert("RGB"))  # and what is once compared with the library
        engine_runs.clear()
        FIXED[name](Image.open(io.BytesIO(FILES[0])).convert("RGB"))
    assert engine_runs == edits


@pytest.mark.parametrize("number", [0, 3, 4, 5, 6, 8])
def test_files_that_pillow_decodes_have_their_transforms_in_the_engine(engine_runs, number):
    with stoker.lazy_images():
        FIXED["eval"](Image.open(io.BytesIO(FILES[number])).convert("RGB"))
        with Image.open(io.BytesIO(FILES[5])) as image:
            FIXED["eval"](image)
    assert engine_runs == [2, 2]


def test_an_image_is_not_made_for_what_the_engine_does():
    with stoker.lazy_images():
        image = Image.open(io.BytesIO(FILES[0])).convert("RGB").crop((10, 20, 200, 180))
        first = FIXED["eval"](image)
        assert type(image) is not Image.Image
        image.load()
        assert torch.equal(FIXED["eval"](image), first)


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
    kinds = [T.Compose, T.ToTensor, v2.Compose, v2.ToImage, ImageClassification]
    others = [T.Resize, T.Normalize, T.RandomResizedCrop, v2.Resize, nn.Sequential, nn.Module]
    before = [(vars(kind).get("forward"), vars(kind).get("__call__")) for kind in kinds]
    untouched = [dict(vars(kind)) for kind in others]
    functions = dict(vars(_functional_pil))
    state = pickle.dumps(FIXED["eval"])
    with stoker.lazy_images():
        outcome(FIXED["eval"], FILES[0], "RGB")
        inside = [(vars(kind).get("forward"), vars(kind).get("__call__")) for kind in kinds]
        assert all(one != other for one, other in zip(inside, before, strict=True))
        assert [dict(vars(kind)) for kind in others] == untouched
        assert pickle.dumps(FIXED["eval"]) == state and pickle.loads(state)
        assert repr(copy.deepcopy(FIXED["v2"])) == repr(FIXED["v2"])
    assert dict(vars(_functional_pil)) == functions
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
            assert "_stoker" in vars(image), type(image)
            T.Compose([T.Resize(30), T.ToTensor()])(image)
            assert "_stoker" in vars(image), type(image)
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


def test_the_deprecated_to_tensor_of_v2():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        transform = v2.Compose([v2.Resize(40), v2.ToTensor(), v2.Normalize(MEAN, STD)])
    plain = outcome(transform, FILES[0], "RGB")
    with stoker.lazy_images():
        assert same(outcome(transform, FILES[0], "RGB"), plain)


def test_nothing_of_it_is_left_in_the_modules():
    assert Image.open.__module__ == "PIL.Image" and not hasattr(Image.open, "__wrapped__")
    assert "stoker._lazy.compose" in sys.modules and not sys.modules["stoker._lazy.compose"]._classes
