# SPDX-License-Identifier: Apache-2.0
"""stoker.datasets with transforms that the engine does not have: Python calls them, as torchvision's datasets do."""

from __future__ import annotations

import pytest
import stoker
import torch
import torch.utils.data as tud
import torchvision.transforms as V1
from conftest import save_tree
from PIL import Image, ImageOps
from stoker import transforms as T
from stoker._data.in_python import callable_for
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2 as V2


def invert(image):
    assert isinstance(image, Image.Image)
    return ImageOps.invert(image) if image.size else None  # which no engine looks at


def double(tensor):
    return tensor * 2


def ours_and_theirs():
    rotated = V1.Compose([V1.Resize((40, 40)), V1.RandomPosterize(3, p=1.0), V1.ToTensor()])
    on_tensors = V2.Compose([V2.ToImage(), V2.Resize((32, 32))])
    mixed = [
        module.Compose(
            [
                module.Resize((40, 40), interpolation=module.InterpolationMode.BICUBIC),
                invert,
                module.CenterCrop(30),
                module.Pad(2, fill=9),
                module.RandomApply([module.RandomHorizontalFlip(1.0)], p=1.0),
                module.ColorJitter(brightness=(0.5, 0.5)),
                module.PILToTensor(),
                module.ConvertImageDtype(dtype),
                double,
                module.Normalize([0.5] * 3, [0.5] * 3),
                module.RandomErasing(0.0),
            ]
        )
        for module, dtype in ((T, "float32"), (V1, torch.float32))
    ]
    return {"torchvision": (rotated, rotated), "order": (on_tensors, on_tensors), "ours": mixed}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", ["torchvision", "order", "ours"])
def test_samples_and_batches_are_torchvisions(tree, name, workers):
    ours, theirs = ours_and_theirs()[name]
    data, reference = stoker.datasets.ImageFolder(tree, ours), ImageFolder(tree, theirs)
    for i in (0, 3, -1):
        assert torch.equal(data[i][0], reference[i][0]) and data[i][1] == reference[i][1]
    loader = stoker.DataLoader(data, 5, num_workers=workers)
    for (a, c), (b, d) in zip(loader, tud.DataLoader(reference, 5), strict=True):
        assert torch.equal(a, b) and torch.equal(c, d)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Resize", {"size": 40, "interpolation": "bicubic", "max_size": 60, "antialias": True}),
        ("CenterCrop", {"size": (30, 20)}),
        ("Pad", {"padding": (1, 2, 3, 4), "fill": (1, 2, 3), "padding_mode": "constant"}),
        ("RandomCrop", {"size": 30, "padding": 4, "pad_if_needed": True, "fill": 3, "padding_mode": "reflect"}),
        ("RandomResizedCrop", {"size": 30, "scale": (0.2, 0.9), "ratio": (0.5, 2), "interpolation": "nearest"}),
        ("RandomHorizontalFlip", {"p": 0.2}),
        ("RandomVerticalFlip", {"p": 0.2}),
        ("RandomGrayscale", {"p": 0.2}),
        ("Grayscale", {"num_output_channels": 3}),
        ("ColorJitter", {"brightness": 0.4, "contrast": (0.5, 1.5), "hue": 0.1}),
        ("GaussianBlur", {"kernel_size": (3, 5), "sigma": (0.1, 0.5)}),
        ("RandomRotation", {"degrees": (-3, 9), "interpolation": "bicubic", "expand": True, "center": (1, 2), "fill": 7}),
        ("RandomAffine", {"degrees": 9, "translate": (0.1, 0.2), "scale": (0.5, 2), "shear": (1, 2, 3, 4),
                          "interpolation": "bilinear", "fill": (1, 2, 3), "center": (3, 4)}),
        ("RandomPerspective", {"distortion_scale": 0.3, "p": 0.2, "interpolation": "nearest", "fill": 9}),
        ("ElasticTransform", {"alpha": [30.0, 40.0], "sigma": [3.0, 4.0], "interpolation": "bilinear", "fill": [7.0]}),
        ("RandomResize", {"min_size": 20, "max_size": 30, "interpolation": "bicubic", "antialias": True}),
        ("RandomShortestSize", {"min_size": [20, 30], "max_size": 50, "interpolation": "bilinear", "antialias": True}),
        ("ScaleJitter", {"target_size": (20, 30), "scale_range": (0.5, 1), "interpolation": "nearest", "antialias": True}),
        ("RandomZoomOut", {"fill": 7, "side_range": (1, 2), "p": 0.3}),
        ("ToTensor", {}),
        ("PILToTensor", {}),
        ("ConvertImageDtype", {"dtype": torch.float16}),
        ("Normalize", {"mean": [0.1], "std": [0.2]}),
        ("RandomErasing", {"p": 0.3, "scale": (0.1, 0.2), "ratio": (0.4, 2), "value": "random"}),
    ],
)
def test_every_transform_becomes_torchvisions(name, arguments):
    made = callable_for(getattr(T, name)(**arguments))
    if "interpolation" in arguments:
        arguments = {**arguments, "interpolation": V1.InterpolationMode(arguments["interpolation"])}
    theirs = getattr(V1 if hasattr(V1, name) else V2, name)(**arguments)

    def shown(transform):
        return {key: value for key, value in vars(transform).items() if not key.startswith("_")}

    assert type(made) is type(theirs)
    assert {k: tuple(v) if isinstance(v, list) else v for k, v in shown(made).items()} == {
        k: tuple(v) if isinstance(v, list) else v for k, v in shown(theirs).items()
    }


@pytest.mark.parametrize("module", [V1, V2])
def test_steps_of_ours_inside_torchvisions(tree, module):
    own = [T.Resize((30, 30)), module.RandomChoice([T.RandomHorizontalFlip(1.0)]), invert, T.ToTensor(), double]
    ours = module.Compose([own[0], module.Compose(own[1:3]), *own[3:]])
    theirs = V1.Compose([V1.Resize((30, 30)), V1.RandomHorizontalFlip(1.0), invert, V1.ToTensor(), double])
    data, reference = stoker.datasets.ImageFolder(tree, ours), ImageFolder(tree, theirs)
    for _ in range(2):
        assert all(torch.equal(data[i][0], reference[i][0]) for i in range(3))
        assert all(
            torch.equal(a, b)
            for (a, _), (b, _) in zip(stoker.DataLoader(data, 5), tud.DataLoader(reference, 5), strict=True)
        )
        ours.transforms[0], theirs.transforms[0] = T.Resize((20, 24)), V1.Resize((20, 24))  # a change counts
    assert isinstance(ours.transforms[0], T.Resize)  # the user's object stays as it is


def test_random_steps_follow_from_torchs_seed(tree):
    ours = T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), invert, T.ToTensor()])
    theirs = V1.Compose([V1.RandomResizedCrop(24), V1.RandomHorizontalFlip(), invert, V1.ToTensor()])
    made = []
    for data in (stoker.datasets.ImageFolder(tree, ours), ImageFolder(tree, theirs)):
        torch.manual_seed(5)
        made.append(torch.stack([data[i][0] for i in range(len(data))]))
    assert torch.equal(*made)


def test_the_plan_says_so(tree):
    data = stoker.datasets.ImageFolder(tree, T.Compose([T.Resize((8, 8)), invert, T.ToTensor()]))
    rows = {row.stage: row for row in stoker.DataLoader(data).explain().rows}
    assert rows["invert"].where == "this process" and "invert" in rows["invert"].why
    assert {"Resize", "ToTensor"} <= set(rows)
    with pytest.raises(NotImplementedError, match="invert"):
        stoker.DataLoader(data, compile="require")


def test_a_changed_transform_counts(tree):
    data = stoker.datasets.ImageFolder(tree, T.Compose([T.Resize((8, 8)), invert, T.ToTensor()]))
    before = data[0][0]
    data.transform.transforms[0] = T.Resize((9, 9))
    assert data[0][0].shape == (3, 9, 9)
    del data.transform.transforms[1]
    assert torch.equal(data[0][0], ImageFolder(tree, V1.Compose([V1.Resize((9, 9)), V1.ToTensor()]))[0][0])
    assert "engine" in stoker.DataLoader(data).explain().rows[0].where
    data.transform = V1.Compose([V1.Resize((8, 8)), invert, V1.ToTensor()])
    assert torch.equal(data[0][0], before)


def test_other_datasets(tree):
    path = min((tree / "ant").iterdir())
    expected = invert(Image.open(path).convert("RGB")).tobytes()
    folder = stoker.datasets.ImageFolder(tree, invert)
    for image, _ in (
        stoker.datasets.ImageBytes([path.read_bytes()], transform=invert)[0],
        stoker.datasets.FlatFolder(tree, invert)[0],
        stoker.datasets.Subset(folder, [0])[0],
        stoker.datasets.Concat([folder, folder])[len(folder)],
    ):
        assert image.tobytes() == expected


def test_wrong_transforms_are_refused_at_once(tree):
    with pytest.raises(TypeError, match="transform=3 is neither a transform nor a function"):
        stoker.datasets.ImageFolder(tree, 3)
    with pytest.raises(TypeError, match="batch_transforms"):
        stoker.datasets.ImageFolder(tree, T.MixUp())
    with pytest.raises(TypeError, match="AudioFolder requires"):
        stoker.datasets.AudioFolder(tree, invert)


def test_options_of_the_engine_name_the_step(tree):
    data = stoker.datasets.ImageFolder(tree, V2.Compose([V2.AugMix(chain_depth=16), V2.ToImage()]))
    with pytest.raises(NotImplementedError, match="ragged='pad' needs the engine.*AugMix"):
        stoker.DataLoader(data, ragged="pad")


def test_workers_of_another_start_method(tmp_path):
    data = stoker.datasets.ImageFolder(
        save_tree(tmp_path / "tree", {"a": 4}, (20, 20)), T.Compose([invert, T.ToTensor()])
    )
    loader = stoker.DataLoader(data, 2, num_workers=1, multiprocessing_context="spawn")
    assert sum(len(labels) for _, labels in loader) == 4
