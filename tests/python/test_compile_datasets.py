# SPDX-License-Identifier: Apache-2.0
"""torchvision's datasets beyond ImageFolder, and torch's Subset and ConcatDataset, run by the engine: the
same batches as from torch, and Python wherever somebody has changed what they do."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import pytest
import stoker
import torch
import torch.utils.data as tud
import torchvision.transforms as V1
from torchvision import datasets
from torchvision.datasets import folder as tv_folder
from torchvision.transforms import v2 as V2
from torchvision_sets import cifar, mnist

PLAIN = V1.ToTensor()


def batches(loader):
    return [[part.clone() if isinstance(part, torch.Tensor) else part for part in batch] for batch in loader]


def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(same, a, b))
    return a == b


def assert_same(data, size=5, **options):
    ours = batches(stoker.DataLoader(data, size, compile="require", **options))
    theirs = batches(tud.DataLoader(data, size, **options))
    assert len(ours) == len(theirs) and all(map(same, ours, theirs))


def is_compiled(data):
    return stoker.DataLoader(data, 4)._native is not None


RGB = [
    PLAIN,
    V1.Compose([V1.Resize(40), V1.CenterCrop(36), V1.ToTensor(), V1.Normalize([0.5] * 3, [0.2, 0.3, 0.4])]),
    V1.Compose([V1.Pad(4, 7), V1.RandomHorizontalFlip(1.0), V1.PILToTensor()]),
    V1.Compose([V1.Grayscale(), V1.ToTensor(), V1.Normalize([0.5], [0.5])]),
    V2.Compose([V2.Resize((17, 23)), V2.ToImage(), V2.ToDtype(torch.float32, scale=True)]),
]
GREY = [
    PLAIN,
    V1.Compose([V1.ToTensor(), V1.Normalize((0.1307,), (0.3081,))]),
    V1.Compose([V1.Resize(32), V1.CenterCrop(30), V1.PILToTensor()]),
    V1.Compose([V1.Pad(2, 9), V1.RandomVerticalFlip(1.0), V1.Grayscale(3), V1.ToTensor()]),
    V1.Compose([V1.Resize((40, 21), V1.InterpolationMode.BICUBIC), V1.RandomGrayscale(1.0), V1.ToTensor()]),
    V2.Compose([V2.RGB(), V2.Resize(20), V2.ToImage(), V2.ToDtype(torch.float32, scale=True)]),
    V2.Compose([V2.ToImage(), V2.ToDtype(torch.float32, scale=True), V2.Normalize([0.5], [0.5])]),
    V1.Compose([V1.ColorJitter((0.6, 0.6)), V1.ColorJitter(contrast=(1.4, 1.4)), V1.ToTensor()]),
    V1.Compose([V1.ColorJitter(saturation=(0.3, 0.3)), V1.ColorJitter(hue=(0.2, 0.2)), V1.ToTensor()]),
]


@pytest.mark.parametrize("base", [datasets.CIFAR10, datasets.CIFAR100])
@pytest.mark.parametrize("transform", RGB)
def test_cifar(tmp_path, base, transform):
    assert_same(cifar(tmp_path, base=base, transform=transform))


@pytest.mark.parametrize("base", [datasets.MNIST, datasets.FashionMNIST, datasets.KMNIST])
@pytest.mark.parametrize("transform", GREY)
def test_mnist(tmp_path, base, transform):
    data = mnist(tmp_path, base=base, transform=transform)
    assert_same(data)
    if transform is PLAIN:
        assert next(iter(stoker.DataLoader(data, 8)))[0].shape == (8, 1, 28, 28)


def test_cifar_is_not_copied(tmp_path):
    data = cifar(tmp_path, transform=PLAIN)
    assert not data.data.flags.c_contiguous  # torchvision leaves planes, one for each channel
    loader = stoker.DataLoader(data, 4)
    data.data[:] = 255 - data.data
    data.targets[3] = 77
    assert same(batches(loader), batches(tud.DataLoader(data, 4)))
    first = next(iter(loader))
    assert first[1][3] == 77


def test_arrays_of_every_layout():
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 256, (7, 9, 11, 3), np.uint8)
    layouts = [
        whole,
        whole[::-1],
        whole[:, ::-1, ::-1, ::-1],
        whole[1::2, :, 3:8],
        np.asfortranarray(whole),
        np.ascontiguousarray(whole.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1),
        whole[..., 0],
        whole[:, ::-2, ::3, 1],
        whole[..., :1],
        np.broadcast_to(whole[:1], (4, 9, 11, 3)),
        whole[:0],
    ]
    for array in layouts:
        labels = np.arange(len(array))
        handle = stoker._ext.Dataset.from_array(array, labels)
        engine = stoker._ext.Loader(handle, stoker._ext.Pipeline(""), batch_size=8, workers=0)
        engine.start(0)
        batch = engine.next()
        if not len(array):
            assert batch is None
            continue
        want = array if array.ndim == 4 else array[..., None]
        want = np.broadcast_to(want, (*want.shape[:3], 3)).transpose(0, 3, 1, 2)
        assert (np.asarray(batch.images) == want).all() and (np.asarray(batch.labels) == labels).all()


@pytest.mark.parametrize(
    ("array", "labels", "error"),
    [
        (np.zeros((2, 3, 3), np.int8), None, TypeError),
        (np.zeros((2, 3), np.uint8), None, TypeError),
        (np.zeros((2, 3, 3, 5), np.uint8), None, ValueError),
        (np.zeros((2, 0, 3, 3), np.uint8), None, ValueError),
        (np.zeros((2, 3, 3, 3), np.uint8), np.zeros(3, np.int64), ValueError),
        (np.zeros((2, 3, 3, 3), np.uint8), np.zeros(2, np.int32), TypeError),
        ("no array", None, TypeError),
    ],
)
def test_arrays_that_are_no_images(array, labels, error):
    with pytest.raises(error):
        stoker._ext.Dataset.from_array(array, labels)


def test_random_transforms_follow_the_same_distribution(tmp_path):
    """A crop of a padded image: how often each column is the first, ours against torchvision's."""
    data = cifar(tmp_path, count=20, transform=V1.Compose([V1.RandomCrop(32, padding=4), V1.PILToTensor()]))
    data.data = np.ascontiguousarray(np.broadcast_to(np.arange(1, 33, dtype=np.uint8)[:, None], (20, 32, 32, 3)))
    counts = []
    for kind in (stoker.DataLoader, tud.DataLoader):
        torch.manual_seed(0)
        loader = kind(data, 20, num_workers=0)
        seen = [images[:, 0, 16, 16].int() - 13 for _ in range(60) for images, _ in loader]
        counts.append(torch.bincount(torch.cat(seen), minlength=10).float())
    ours, theirs = counts
    assert (ours > 0).eq(theirs > 0).all() and (ours - theirs).abs().max() < 75  # 133 each; deviation 15


# ---- datasets of datasets ----


def test_nested_subsets_and_concats(tmp_path, tree):
    small = cifar(tmp_path, transform=PLAIN)
    digits = mnist(tmp_path, transform=PLAIN)
    photos = datasets.ImageFolder(tree, V1.Compose([V1.CenterCrop(32), V1.ToTensor()]))
    for data in (small, digits, photos):
        first, second = tud.random_split(data, [0.3, 0.7], torch.Generator().manual_seed(3))
        assert_same(first)
        assert_same(tud.ConcatDataset([second, first, data]))
        assert_same(tud.Subset(tud.ConcatDataset([data, first]), [0, -1, 5, 5, 2]))
        assert_same(tud.Subset(first, range(0, len(first), 2)))
        assert_same(tud.Subset(first, np.array([3, 1])))
        assert_same(data + first)


def test_sequences_of_samples_that_torch_gets_wrong_are_python(tmp_path):
    data = cifar(tmp_path, transform=PLAIN)
    for indices in ([1000], [True, False], ["a"]):
        assert not is_compiled(tud.Subset(data, indices))
    with pytest.raises(IndexError):
        list(stoker.DataLoader(tud.Subset(data, [1000])))


def test_parts_with_different_transforms_are_python(tmp_path):
    one, other = cifar(tmp_path, transform=PLAIN), cifar(tmp_path, transform=V1.PILToTensor())
    both = tud.ConcatDataset([one, other])
    assert not is_compiled(both)
    assert "different transforms" in stoker.DataLoader(both).explain()


@pytest.mark.parametrize("workers", [0, 2])
def test_parts_with_different_transforms_are_right_and_say_why(tree, workers):
    steps = [V1.CenterCrop(32), V1.ToTensor()]
    one = datasets.ImageFolder(tree, V1.Compose(steps))
    other = datasets.ImageFolder(tree, V1.Compose([*steps, V1.Normalize([0.5] * 3, [0.2] * 3)]))
    both = tud.ConcatDataset([one, tud.Subset(other, [3, 1]), tud.Subset(one, [2])])
    torch.manual_seed(3)
    loader = stoker.DataLoader(both, 5, shuffle=True, num_workers=workers)
    found = batches(loader)
    torch.manual_seed(3)
    assert same(found, batches(tud.DataLoader(both, 5, shuffle=True, num_workers=workers)))
    [note] = loader.stats()["notes"]
    assert note == (
        "the parts of a ConcatDataset have different transforms: give all the same transform, or load each part with its "
        "own DataLoader"
    )
    assert "note" in str(loader.stats()) and "different transforms" in str(loader.stats())
    named = datasets.ImageFolder(tree, other.transform, target_transform=str)
    targets = stoker.DataLoader(tud.ConcatDataset([one, named]), 4)
    assert len(targets.stats()["notes"]) == 2 and "different target_transforms" in targets.stats()["notes"][1]
    assert "note" not in str(stoker.DataLoader(both, compile=False).stats())


# ---- others than ImageFolder ----


def test_dataset_folder_and_imagenet(tree, tmp_path):
    transform = V1.Compose([V1.CenterCrop(32), V1.ToTensor()])
    assert_same(datasets.DatasetFolder(tree, tv_folder.default_loader, (".png", ".jpg"), transform))
    assert_same(datasets.DatasetFolder(tree, tv_folder.pil_loader, (".bmp",), transform))
    root = tmp_path / "imagenet"
    root.mkdir()
    (root / "train").symlink_to(tree)
    torch.save(({name: (name,) for name in ("ant", "bee", "cow")}, ["x"]), root / "meta.bin")
    assert_same(datasets.ImageNet(root, "train", transform=transform))


@pytest.mark.parametrize(
    "weights",
    [
        "ResNet50_Weights.IMAGENET1K_V2",
        "EfficientNet_B1_Weights.IMAGENET1K_V2",
        "segmentation.FCN_ResNet50_Weights.DEFAULT",
        "detection.FasterRCNN_ResNet50_FPN_Weights.DEFAULT",
    ],
)
def test_presets(even_tree, weights):
    from torchvision import models

    transform = functools.reduce(getattr, weights.split("."), models).transforms()
    assert_same(datasets.ImageFolder(even_tree, transform))


# ---- target_transform ----


@pytest.mark.parametrize(
    "target",
    [
        {i: 9 - i for i in range(10)}.__getitem__,
        str,
        float,
        lambda y: (y, float(y)),
        lambda y: {"label": y, "odd": y % 2 == 1},
        lambda y: torch.nn.functional.one_hot(torch.tensor(y), 10),
        lambda y: np.float32(y),
        lambda y: torch.zeros(()) + y,
    ],
)
def test_target_transform(tmp_path, tree, target):
    assert_same(cifar(tmp_path, transform=PLAIN, target_transform=target))
    assert_same(mnist(tmp_path, transform=PLAIN, target_transform=target), num_workers=0)
    photos = datasets.ImageFolder(tree, V1.Compose([V1.CenterCrop(32), V1.ToTensor()]), target_transform=target)
    assert_same(tud.Subset(photos, [1, 20, 3]))


def test_target_transform_and_blank_samples(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "0.png").write_bytes(b"no image")
    data = datasets.ImageFolder(tmp_path, V1.Compose([V1.Resize((8, 8)), V1.ToTensor()]), target_transform={0: 5}.get)
    [[images, labels]] = stoker.DataLoader(data, 1, on_error="replace")
    assert labels.tolist() == [-100] and not images.any()


class Pair(NamedTuple):
    first: int
    rest: list[int]


def test_an_epoch_under_way_keeps_its_target_transform(tmp_path):
    loader = stoker.DataLoader(cifar(tmp_path, transform=PLAIN, target_transform=str), 4)
    epoch = iter(loader)
    assert next(epoch)[1] == ("0", "1", "2", "3")
    loader.dataset.target_transform = None
    assert next(iter(loader))[1].tolist() == [0, 1, 2, 3]
    assert next(epoch)[1] == ("4", "5", "6", "7")


def test_target_transform_as_numpy(tmp_path):
    data = cifar(tmp_path, transform=PLAIN, target_transform=lambda y: {"y": y})
    labels = next(iter(stoker.DataLoader(data, 3, output="numpy")))[1]
    assert isinstance(labels["y"], np.ndarray) and labels["y"].tolist() == [0, 1, 2]
    data.target_transform = lambda y: Pair(y, [y + 1])
    labels = next(iter(stoker.DataLoader(data, 3, output="numpy")))[1]
    assert type(labels) is Pair and isinstance(labels.first, np.ndarray) and isinstance(labels.rest[0], np.ndarray)


# ---- what changes after the loader was made ----


def test_attributes_set_later_are_seen(tmp_path, tree):
    loader = stoker.DataLoader(cifar(tmp_path, transform=PLAIN), 4)
    data, crop = loader.dataset, V1.Compose([V1.CenterCrop(20), V1.ToTensor()])

    def check():
        assert len(loader) == len(tud.DataLoader(data, 4))
        assert same(batches(loader), batches(tud.DataLoader(data, 4))) and loader._native is not None

    check()
    data.transform = crop
    check()
    crop.transforms[0] = V1.CenterCrop(12)
    check()
    data.data, data.targets = data.data[5:], data.targets[5:]
    check()
    data.target_transform = str
    check()
    data.target_transform = None
    data.targets = np.arange(len(data))
    check()
    data.targets += 3
    check()

    subset = tud.Subset(datasets.ImageFolder(tree, crop), [1, 2, 3])
    loader, data = stoker.DataLoader(subset, 4), subset
    check()
    subset.indices.append(20)
    check()
    subset.indices = torch.tensor([4, 6])
    check()
    subset.indices[0] = 9
    check()
    subset.dataset.samples[9] = subset.dataset.samples[0]
    check()
    subset.dataset.samples = subset.dataset.samples[::-1]
    check()


def test_an_epoch_under_way_keeps_what_it_began_with(tmp_path):
    loader = stoker.DataLoader(cifar(tmp_path, transform=PLAIN), 4)
    epoch = iter(loader)
    next(epoch)
    loader.dataset.transform = V1.Compose([V1.CenterCrop(20), V1.ToTensor()])
    assert {batch[0].shape[-1] for batch in loader} == {20}
    assert {batch[0].shape[-1] for batch in epoch} == {32}
    assert {batch[0].shape[-1] for batch in loader} == {20}


def test_what_cannot_be_compiled_any_more_goes_on_in_python(tmp_path):
    data = cifar(tmp_path, transform=PLAIN)
    loader = stoker.DataLoader(data, 4)
    assert loader._native is not None
    data.transform = V1.Compose([V1.ToTensor(), V1.Lambda(lambda x: x.flip(0))])
    assert same(batches(loader), batches(tud.DataLoader(data, 4)))
    assert "Lambda" in loader.explain()
    data.transform = PLAIN
    strict = stoker.DataLoader(data, 4, compile="require")
    data.transform = V1.Lambda(len)
    with pytest.raises(NotImplementedError, match="Lambda"):
        iter(strict)


# ---- never guessed ----


class Counted(datasets.CIFAR10):
    calls = 0

    def __getitem__(self, index):
        Counted.calls += 1
        return super().__getitem__(index)


class Computed(datasets.ImageFolder):
    @property
    def samples(self):
        return self._kept[:3]

    @samples.setter
    def samples(self, value):
        self._kept = value


class AllAtOnce(datasets.MNIST):
    def __getitems__(self, indices):
        return [self[i] for i in reversed(indices)]


class Listed(tud.Subset):
    def __getitem__(self, index):
        return super().__getitem__(0)

    def __getitems__(self, indices):
        return super().__getitems__([0] * len(indices))


def test_what_subclasses_change_is_honoured(tmp_path, tree):
    small, digits = cifar(tmp_path, transform=PLAIN), mnist(tmp_path, transform=PLAIN)
    small.__class__, digits.__class__ = Counted, AllAtOnce
    computed = Computed(tree, V1.Compose([V1.CenterCrop(32), V1.ToTensor()]))
    for data, name in [
        (small, "Counted overrides __getitem__"),
        (digits, "AllAtOnce overrides __getitems__"),
        (computed, "Computed computes samples"),
        (Listed(cifar(tmp_path, transform=PLAIN), [3, 4]), "Listed overrides __getitem__"),
        (tud.ConcatDataset([computed, computed]), "Computed computes samples"),
        (datasets.QMNIST.__new__(datasets.QMNIST), "QMNIST overrides __getitem__"),
    ]:
        with pytest.raises(NotImplementedError, match=name):
            stoker.DataLoader(data, compile="require")
        if not isinstance(data, datasets.QMNIST):
            assert same(batches(stoker.DataLoader(data, 4)), batches(tud.DataLoader(data, 4)))
    assert Counted.calls == 2 * len(small)


def test_what_is_set_on_an_object_is_honoured(tmp_path):
    data = mnist(tmp_path, transform=PLAIN)
    data.__getitems__ = lambda indices: [data[0] for _ in indices]
    assert not is_compiled(data)
    step = V1.CenterCrop(20)
    step.forward = lambda image: image
    data = mnist(tmp_path, transform=V1.Compose([step, V1.ToTensor()]))
    assert not is_compiled(data) and next(iter(stoker.DataLoader(data)))[0].shape[-1] == 28
    hooked = V1.CenterCrop(20)
    hooked.register_forward_hook(lambda *_: None)
    assert not is_compiled(mnist(tmp_path, transform=V1.Compose([hooked, V1.ToTensor()])))


def test_what_is_patched_in_a_class_is_honoured(tmp_path, monkeypatch):
    data = mnist(tmp_path, transform=PLAIN)
    loader = stoker.DataLoader(data, 4)
    real = datasets.MNIST.__getitem__

    @functools.wraps(real)
    def patched(self, index):
        image, label = real(self, index)
        return image, label + 100

    monkeypatch.setattr(datasets.MNIST, "__getitem__", patched)
    assert not is_compiled(data)
    assert min(label for _, labels in loader for label in labels.tolist()) >= 100
    monkeypatch.undo()
    assert is_compiled(data)

    @functools.wraps(V1.CenterCrop.forward)
    def forward(self, image):
        return image

    monkeypatch.setattr(V1.CenterCrop, "forward", forward)
    assert not is_compiled(mnist(tmp_path, transform=V1.Compose([V1.CenterCrop(20), V1.ToTensor()])))


def test_labels_and_data_of_other_types_are_python(tmp_path, tree):
    photos = datasets.ImageFolder(tree, V1.Compose([V1.CenterCrop(32), V1.ToTensor()]))
    photos.samples = [(path, bool(label)) for path, label in photos.samples]
    small = cifar(tmp_path, transform=PLAIN)
    small.targets = [float(i) for i in range(len(small))]
    for data in (photos, small):
        assert not is_compiled(data)
        assert same(batches(stoker.DataLoader(data, 4)), batches(tud.DataLoader(data, 4)))
    grey = cifar(tmp_path, transform=PLAIN)
    grey.data = grey.data[..., 0]
    assert not is_compiled(grey)
    digits = mnist(tmp_path, transform=PLAIN)
    digits.data = digits.data.float()
    assert not is_compiled(digits)
    digits = mnist(tmp_path, transform=PLAIN)
    digits.targets = digits.targets.to(torch.int32)
    assert_same(digits)


def test_pipelines_that_the_engine_refuses_are_python(tmp_path):
    data = cifar(tmp_path, transform=V1.Compose([V1.ToTensor(), V1.RandomErasing(1.0), V1.CenterCrop(20)]))
    assert not is_compiled(data)
    assert next(iter(stoker.DataLoader(data, 4)))[0].shape == (4, 3, 20, 20)
