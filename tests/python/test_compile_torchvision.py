# SPDX-License-Identifier: Apache-2.0
"""torchvision's datasets and transforms, run by the engine."""

from __future__ import annotations

import pytest
import stoker
import torch
import torch.utils.data as tud
import torchvision.transforms as V1
from stoker import transforms as T
from torchvision.datasets import DatasetFolder, FakeData, ImageFolder
from torchvision.transforms import v2 as V2

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def batches(loader):
    return [(images.clone(), labels.clone()) for images, labels in loader]


def assert_same(data, **tolerance):
    ours, theirs = batches(stoker.DataLoader(data, 5)), batches(tud.DataLoader(data, 5))
    assert len(ours) == len(theirs)
    for (a, c), (b, d) in zip(ours, theirs, strict=True):
        assert torch.equal(c, d) and a.dtype == b.dtype
        if tolerance:
            torch.testing.assert_close(a, b, **tolerance)
        else:
            assert torch.equal(a, b)


@pytest.mark.parametrize(
    "transform",
    [
        V1.Compose([V1.Resize(40), V1.CenterCrop(32), V1.ToTensor(), V1.Normalize(MEAN, STD)]),
        V1.Compose([V1.Resize((31, 27), V1.InterpolationMode.LANCZOS), V1.PILToTensor()]),
        V1.Compose(
            [V1.Resize(20, max_size=24), V1.CenterCrop((30, 10)), V1.Pad((1, 2, 3, 4), 9), V1.ToTensor()]
        ),
        V1.Compose([V1.CenterCrop(30), V1.Grayscale(), V1.ToTensor(), V1.Normalize([0.5], [0.5])]),
        V1.Compose([V1.CenterCrop(30), V1.PILToTensor(), V1.ConvertImageDtype(torch.float32)]),
        V2.Compose([V2.CenterCrop(30), V2.PILToTensor(), V2.ConvertImageDtype(torch.float32)]),
        V2.Compose([V2.CenterCrop(30), V2.Grayscale(), V2.RGB(), V2.PILToTensor()]),
        V1.Compose(
            [
                V1.CenterCrop(30),
                V1.Compose([V1.RandomHorizontalFlip(1.0), V1.RandomVerticalFlip(1)]),
                V1.ToTensor(),
            ]
        ),
        V2.Compose([V2.Resize(40), V2.CenterCrop(32), V2.PILToTensor()]),
        V2.Compose([V2.CenterCrop(32), V2.RGB(), V2.Identity(), V2.ToImage()]),
        V2.Compose([V2.CenterCrop(32), V2.RandomHorizontalFlip(1), V2.ToImage(), V2.ToPureTensor()]),
    ],
)
def test_bit_for_bit(tree, transform):
    assert_same(ImageFolder(tree, transform))


def test_v2_floats_bit_for_bit(tree):
    """v2's ToDtype multiplies by 1/255 where ToTensor divides by 255, and so does what it compiles to."""
    transform = V2.Compose(
        [
            V2.Resize(40),
            V2.CenterCrop(32),
            V2.ToImage(),
            V2.ToDtype(torch.float32, scale=True),
            V2.Normalize(MEAN, STD),
        ]
    )
    assert_same(ImageFolder(tree, transform))


def test_v2_geometry_on_tensors(tree):
    transform = V2.Compose(
        [V2.ToImage(), V2.CenterCrop(32), V2.Pad(2), V2.ToDtype(torch.float32, scale=True)]
    )
    assert_same(ImageFolder(tree, transform))


def test_to_tensor_follows_torchs_default_type(tree):
    """Also if it is changed after the loader was made."""
    data = ImageFolder(tree, V1.Compose([V1.CenterCrop(30), V1.ToTensor()]))
    loader = stoker.DataLoader(data, 5)
    assert next(iter(loader))[0].dtype is torch.float32 and loader._native is not None
    torch.set_default_dtype(torch.float64)
    try:
        assert next(iter(loader))[0].dtype is torch.float64
        assert_same(data)
    finally:
        torch.set_default_dtype(torch.float32)


NEAREST = V1.InterpolationMode.NEAREST


def on_tensors(module):
    """Steps without random draws that torchvision accepts after the image was made a tensor."""
    return [
        module.Resize((32, 30)),
        module.Resize((32, 30), antialias=False),
        module.Resize((32, 30), NEAREST),
        module.Resize((32, 30), module.InterpolationMode.BICUBIC),
        module.RandomResizedCrop((20, 20), scale=(1, 1), ratio=(4 / 3, 4 / 3)),
        module.Grayscale(),
        module.Grayscale(3),
        module.RandomGrayscale(1.0),
        module.ColorJitter(contrast=(1.4, 1.4)),
        module.ColorJitter(saturation=(1.4, 1.4)),
        module.ColorJitter(hue=(0.2, 0.2)),
        module.GaussianBlur(5, (1.1, 1.1)),
        module.RandomRotation((20, 20)),
        module.RandomAffine((20, 20)),
        module.RandomPerspective(0.0, 1.0),
        module.RandomApply([module.Resize((20, 20))], p=1.0),
        module.CenterCrop(30),
        module.CenterCrop((31, 90)),
        module.Pad((1, 2, 3, 4), 7),
        module.Pad(3, padding_mode="reflect"),
        module.RandomCrop((44, 52), padding=2, fill=3),
    ]


@pytest.mark.parametrize("module", [V1, V2], ids=["v1", "v2"])
@pytest.mark.parametrize("number", range(21))
def test_steps_on_tensors_bit_for_bit(even_tree, module, number):
    """On tensors torchvision computes with other arithmetic than on images: exactly that, wherever it runs."""
    step = on_tensors(module)[number]
    makers = [V1.ToTensor(), V1.PILToTensor()] if module is V1 else [V2.ToTensor(), V2.PILToTensor(), V2.ToImage()]
    for maker in makers:
        assert_same(ImageFolder(even_tree, module.Compose([maker, step])))


def test_a_step_on_tensors_runs_in_python_and_the_plan_says_so(even_tree):
    data = ImageFolder(even_tree, V2.Compose([V2.ToImage(), V2.Resize((32, 32))]))
    row = next(row for row in stoker.DataLoader(data).explain().rows if row.stage == "Resize")
    assert "after ToImage" in row.why and row.remedy == "move Resize before ToImage"
    with pytest.raises(NotImplementedError, match="Resize comes after ToImage"):
        stoker.DataLoader(data, compile="require")


@pytest.mark.parametrize("workers", [0, 2])
def test_images_of_several_sizes_raise_torchs_error(tree, workers):
    data = ImageFolder(tree, V1.ToTensor())
    messages = []
    for loader in (tud.DataLoader(data, 4), stoker.DataLoader(data, 4, num_workers=workers)):
        with pytest.raises(RuntimeError) as info:
            next(iter(loader))
        assert type(info.value) is RuntimeError
        messages.append(str(info.value))
    assert messages[0] == messages[1] and "stack expects each tensor to be equal size" in messages[0]
    images, _ = next(iter(stoker.DataLoader(data, 4, ragged="list")))
    assert [tuple(image.shape) for image in images] == [tuple(data[i][0].shape) for i in range(4)]
    padded, _ = next(iter(stoker.DataLoader(data, 4, ragged="pad")))
    assert padded.shape[0] == 4


@pytest.mark.parametrize("module", [V1, V2])
def test_random_transforms_become_ours(module):
    transform = module.Compose(
        [
            module.RandomResizedCrop(
                (24, 20), scale=(0.2, 1.0), interpolation=V1.InterpolationMode.BICUBIC
            ),
            module.RandomCrop(
                (16, 12), padding=(1, 2, 3, 4), pad_if_needed=True, fill=7, padding_mode="constant"
            ),
            module.RandomApply([module.ColorJitter(0.4, 0.3, 0.2, 0.1)], p=0.8),
            module.RandomGrayscale(0.2),
            module.GaussianBlur(3, (0.1, 2.0)),
            module.RandomRotation((-9, 30), module.InterpolationMode.BILINEAR, True, (3, 4), 7),
            module.RandomAffine(9, (0.1, 0.2), (0.5, 2.0), (1, 2, 3, 4), fill=(1, 2, 3)),
            module.RandomPerspective(0.3, 0.7),
            module.RandomVerticalFlip(0.3),
            module.PILToTensor(),
            module.ConvertImageDtype(torch.float32),
            module.Normalize(MEAN, STD),
            module.RandomErasing(0.3, value="random"),
        ]
    )
    ours = T.Compose(
        [
            T.RandomResizedCrop((24, 20), scale=(0.2, 1.0), interpolation="bicubic"),
            T.RandomCrop((16, 12), padding=(1, 2, 3, 4), pad_if_needed=True, fill=7),
            T.RandomApply([T.ColorJitter(0.4, 0.3, 0.2, 0.1)], p=0.8),
            T.RandomGrayscale(0.2),
            T.GaussianBlur(3, (0.1, 2.0)),
            T.RandomRotation((-9, 30), "bilinear", True, (3, 4), 7),
            T.RandomAffine(9, (0.1, 0.2), (0.5, 2.0), (1, 2, 3, 4), fill=(1, 2, 3)),
            T.RandomPerspective(0.3, 0.7),
            T.RandomVerticalFlip(0.3),
            T.PILToTensor(),
            T.ConvertImageDtype("float32"),
            T.Normalize(MEAN, STD),
            T.RandomErasing(0.3, value="random"),
        ]
    )
    text = T.pipeline_text(transform)
    product = ", product=true" if module is V2 else ""  # v2 multiplies by 1/255
    assert text == T.pipeline_text(ours).replace("dtype=float32", "dtype=float32" + product)
    stoker._ext.Pipeline(text)


def test_same_chance_for_both_spellings(tree):
    theirs = V1.Compose([V1.RandomResizedCrop(24), V1.RandomHorizontalFlip(), V1.ToTensor()])
    ours = T.Compose([T.RandomResizedCrop(24), T.RandomHorizontalFlip(), T.ToTensor()])
    for order in ("stoker", "torch"):
        options = {"batch_size": 6, "shuffle": True, "seed": 2, "order": order}
        a = batches(stoker.DataLoader(ImageFolder(tree, theirs), **options))
        b = batches(stoker.DataLoader(stoker.datasets.ImageFolder(tree, ours), **options))
        assert all(torch.equal(x[0], y[0]) for x, y in zip(a, b, strict=True))


def test_the_order_of_a_changed_import_is_torchs(tree):
    data = ImageFolder(tree, V1.Compose([V1.Resize((16, 16)), V1.ToTensor()]))
    for loader in (torch.utils.data.DataLoader, stoker.DataLoader):
        torch.manual_seed(8)
        made = [[labels.tolist() for _, labels in loader(data, 4, shuffle=True)] for _ in range(2)]
        if loader is torch.utils.data.DataLoader:
            expected = made
    assert made == expected
    assert stoker.DataLoader(data).order == "torch"
    assert stoker.DataLoader(stoker.datasets.ImageFolder(tree, T.ToTensor())).order == "stoker"


def test_subsets(tree):
    transform = V1.Compose([V1.CenterCrop(32), V1.ToTensor()])
    data = ImageFolder(tree, transform)
    assert_same(tud.Subset(data, [20, 3, 3, 11, 0, 7]))
    assert_same(tud.Subset(tud.Subset(data, range(5, 15)), torch.tensor([1, 9, 0])))
    first, second = tud.random_split(data, [10, 13], torch.Generator().manual_seed(0))
    assert_same(first)
    assert_same(second)
    ours = stoker.datasets.ImageFolder(tree, T.Compose([T.CenterCrop(32), T.ToTensor()]))
    a = batches(stoker.DataLoader(tud.Subset(ours, [4, 2]), 2))
    b = batches(tud.DataLoader(tud.Subset(data, [4, 2]), 2))
    assert torch.equal(a[0][0], b[0][0])


def test_edited_samples_are_honoured(tree):
    data = ImageFolder(tree, V1.Compose([V1.CenterCrop(32), V1.ToTensor()]))
    data.samples = [(path, label + 10) for path, label in data.samples[::-2]]
    assert_same(data)


class Named:
    def __call__(self, image):
        return image if image.size else None


class OtherItems(ImageFolder):
    def __getitem__(self, index):
        return super().__getitem__(index)


class OtherClasses(ImageFolder):
    """Overrides what is used while listing only."""

    def find_classes(self, directory):
        return ["bee"], {"bee": 0}


@pytest.mark.parametrize(
    ("transform", "name"),
    [
        (V1.Lambda(len), "Lambda"),
        (V2.AugMix(interpolation="nearest"), "AugMix"),
        (V2.RandomRotation(3, interpolation="lanczos"), "lanczos"),
        (V2.RandomAffine(3, fill={torch.Tensor: 1}), "fill"),
        (Named(), "Named"),
        (V1.Compose([V1.ToTensor(), V1.RandomAffine(3)]), "RandomAffine"),
        (V2.RandomIoUCrop(max_scale=2), "RandomIoUCrop"),
        (V2.RandomZoomOut(fill={torch.Tensor: 1}), "fill"),
        (V1.RandomApply([V1.AugMix(all_ops=False, interpolation=V1.InterpolationMode.NEAREST)]), "AugMix"),
        (V2.ToDtype(torch.float32), "ToDtype"),
        (V2.Resize(None, max_size=30), "Resize"),
        (V2.Pad(1, fill={torch.Tensor: 1}), "fill"),
    ],
)
def test_transforms_that_cannot_be_compiled(tree, transform, name):
    with pytest.raises(NotImplementedError, match=name):
        stoker.DataLoader(ImageFolder(tree, transform), compile="require")


def test_data_sets_that_cannot_be_compiled(tree):
    with pytest.raises(NotImplementedError, match="FakeData"):
        stoker.DataLoader(FakeData(4, transform=V1.ToTensor()), compile="require")
    with pytest.raises(NotImplementedError, match="list"):
        stoker.DataLoader([1, 2, 3], compile="require")
    with pytest.raises(NotImplementedError, match="OtherItems overrides __getitem__"):
        stoker.DataLoader(OtherItems(tree, V1.ToTensor()), compile="require")
    with pytest.raises(NotImplementedError, match="loader"):
        stoker.DataLoader(ImageFolder(tree, V1.ToTensor(), loader=str), compile="require")
    with pytest.raises(NotImplementedError, match="the loader .* of DatasetFolder"):
        stoker.DataLoader(DatasetFolder(tree, str, (".png",)), compile="require")


def test_harmless_subclasses_are_compiled(tree):
    data = OtherClasses(tree, V1.Compose([V1.CenterCrop(32), V1.ToTensor()]))
    assert len(data) == 8
    assert_same(data)


def test_is_valid_file_of_torchvision_is_honoured(tree):
    assert_same(
        ImageFolder(
            tree,
            V1.Compose([V1.CenterCrop(32), V1.ToTensor()]),
            is_valid_file=lambda path: path.endswith(".png"),
        )
    )
