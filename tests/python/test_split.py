# SPDX-License-Identifier: Apache-2.0
"""stoker.datasets with a step that only Python has: order, draws, resuming and the structure of batches are those that the
engine gives the same dataset without the step."""

from __future__ import annotations

import io
import json
import tarfile

import numpy as np
import pytest
import stoker
import torch
import torchvision.transforms as V1
from PIL import Image, ImageOps
from stoker import transforms as T
from torchvision.datasets import ImageFolder


class Posterize:
    def __call__(self, image):
        assert type(image) == Image.Image  # noqa: E721 (a lazy one is equal)
        return ImageOps.posterize(image, 3)


class Keep:
    """A step that changes nothing, which nobody but Python knows."""

    def __call__(self, value):
        return value if id(value) else None


class Views:
    def __init__(self, transform):
        self.transform = transform

    def __call__(self, image):
        return [self.transform(image), self.transform(image)]


def random_steps(module, own):
    return module.Compose([module.RandomResizedCrop(24), module.RandomHorizontalFlip(), own, module.ToTensor()])


def folder(tree, own=None):
    return stoker.datasets.ImageFolder(tree, random_steps(T, own or Posterize()))


def equal(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(equal, a, b))
    return a == b


OPTIONS = [{}, {"seed": 5, "shuffle": True}, {"shuffle": True, "batch_size": None}, {"shuffle": True, "rank": 1, "world_size": 2}]


@pytest.mark.parametrize("options", OPTIONS)
def test_the_number_of_workers_changes_nothing(tree, options):
    def epochs(workers):
        torch.manual_seed(8)
        loader = stoker.DataLoader(folder(tree), **{"batch_size": 4, **options}, num_workers=workers)
        return [list(loader) for _ in range(2)]

    here = epochs(0)
    assert equal(here, epochs(2)) and equal(here, epochs(1))
    assert not equal(here[0], here[1])


def test_other_seeds_give_other_draws(tree):
    def images(**options):
        return torch.cat([images for images, _ in stoker.DataLoader(folder(tree), 5, **options)])

    assert torch.equal(images(seed=1), images(seed=1)) and not torch.equal(images(seed=1), images(seed=2))
    torch.manual_seed(1)
    first = images()
    assert torch.equal(first, images())
    torch.manual_seed(2)
    assert not torch.equal(first, images())


@pytest.mark.parametrize("workers", [0, 2])
def test_the_order_is_the_engines(tree, workers):
    def order(own, **options):
        steps = [T.Resize((8, 8)), *own, T.ToTensor()]
        data = stoker.datasets.ImageFolder(tree, T.Compose(steps))
        loader = stoker.DataLoader(data, 4, shuffle=True, num_workers=workers, **options)
        return [[labels.tolist() for _, labels in loader] for _ in range(3)]

    assert order([Keep()], seed=9) == order([], seed=9)
    torch.manual_seed(4)
    expected = order([])
    assert order([Keep()]) == expected and expected[0] != expected[1]
    generator = torch.Generator().manual_seed(3)
    assert order([Keep()], generator=generator) == order([], generator=generator)


@pytest.mark.parametrize(("before", "after"), [(0, 2), (2, 0), (2, 1)])
def test_a_resumed_run_is_an_uninterrupted_one(tree, before, after):
    def loader(workers):
        return stoker.DataLoader(folder(tree), 4, shuffle=True, seed=11, num_workers=workers)

    whole = loader(0)
    expected = [list(whole), list(whole)]
    first = loader(before)
    batches = iter(first)
    begun = [next(batches), next(batches)]
    state = json.loads(json.dumps(first.state_dict()))
    second = loader(after)
    second.load_state_dict(state)
    assert equal([begun + list(second), list(second)], expected)


def test_ranks_have_different_samples(tree):
    labels = []
    for rank in range(2):
        loader = stoker.DataLoader(folder(tree), 3, shuffle=True, rank=rank, world_size=2, seed=3)
        loader.set_epoch(1)
        labels += [label for _, batch in loader for label in batch.tolist()]
    assert len(labels) == 24  # 23 samples; a DistributedSampler repeats one
    counts = np.bincount(labels)
    assert (counts - np.array([9, 8, 6]) >= 0).all() and counts.sum() == 24


def test_an_engine_that_is_left_keeps_its_order(tree):
    """The transform is replaced between epochs by one with a step of Python."""
    def loader(own):
        data = stoker.datasets.ImageFolder(tree, T.Compose([T.Resize((8, 8)), *own, T.ToTensor()]))
        return stoker.DataLoader(data, 4, shuffle=True, seed=2)

    changed, expected = loader([]), loader([])
    list(changed), list(expected)
    changed.dataset.transform = loader([Keep()]).dataset.transform
    assert equal(list(changed), list(expected))


def test_single_samples_follow_from_torchs_seed(tree):
    data = stoker.datasets.ImageFolder(tree, T.Compose([T.RandomCrop(8), T.ToTensor()]))
    crop = T.RandomCrop(8)
    pixels = np.arange(40 * 40 * 3, dtype=np.uint8).reshape(40, 40, 3)

    def drawn(seed):
        torch.manual_seed(seed)
        return [data[0][0], data[0][0], torch.from_numpy(crop(pixels))]

    assert equal(drawn(1), drawn(1)) and not equal(drawn(1), drawn(2))
    assert not torch.equal(*drawn(1)[:2])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_collate_function_gets_what_the_sample_determines(tree, workers):
    """The engine makes each sample, and Python the batches."""
    data = stoker.datasets.ImageFolder(tree, T.Compose([T.RandomCrop(16), T.ToTensor()]))

    def batches(workers):
        return list(stoker.DataLoader(data, 4, shuffle=True, seed=6, num_workers=workers, collate_fn=list))

    assert equal(batches(workers), batches(1))


@pytest.mark.parametrize("own", [lambda image: image, Posterize(), Keep()])
@pytest.mark.parametrize("wrapped", [
    lambda own: T.Compose([T.RandomApply([own], 1.0), T.ToTensor()]),
    lambda own: T.Compose([T.RandomChoice([own, own]), T.ToTensor()]),
    lambda own: T.Compose([T.RandomOrder([own, T.RandomHorizontalFlip(1.0)]), T.ToTensor()]),
    lambda own: T.Compose([T.Compose([T.Compose([own])]), T.Compose([T.ToTensor()])]),
    lambda own: V1.Compose([V1.RandomChoice([own]), V1.ToTensor()]),
    lambda own: T.Compose([T.ToTensor(), lambda x: x * 2, T.Normalize([0.5] * 3, [0.5] * 3)]),
    lambda own: Views(T.Compose([own, T.ToTensor()])),
    lambda own: Views(V1.Compose([own, V1.ToTensor()])),
    lambda own: lambda image: np.array(own(image)),
])  # fmt: skip
def test_steps_inside_others(tree, own, wrapped):
    transform = wrapped(own)
    data = stoker.datasets.ImageFolder(tree, T.Compose([T.Resize((16, 20)), transform]))
    theirs = ImageFolder(tree, V1.Compose([V1.Resize((16, 20)), transform]))
    loader = stoker.DataLoader(data, 6, seed=1)
    if "RandomOrder" in repr(transform):
        assert [images.shape for images, _ in loader][0] == (6, 3, 16, 20)
        return
    expected = list(torch.utils.data.DataLoader(theirs, 6))
    assert equal(list(loader), expected)


# ---- batches have the structure that the engine gives them ----


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    path = tmp_path_factory.mktemp("archive") / "a.tar"
    rng = np.random.default_rng(1)
    with tarfile.open(path, "w") as file:
        for k in range(7):
            image, numbers = io.BytesIO(), io.BytesIO()
            Image.fromarray(rng.integers(0, 256, (20 + k, 30, 3), np.uint8)).save(image, "jpeg")
            np.save(numbers, rng.random((k % 3, 2), np.float32))
            members = {
                "jpg": image.getvalue(), "cls": b"%d" % k, "txt": b"text %d" % k, "npy": numbers.getvalue(),
                "json": json.dumps({"k": list(range(k))}).encode(), "bin": bytes(k),
            }  # fmt: skip
            for name, data in members.items():
                member = tarfile.TarInfo(f"{k:02}.{name}")
                member.size = len(data)
                file.addfile(member, io.BytesIO(data))
    return path


FIELDS = ("jpg", "cls", "txt", "npy", "json", "bin", "__key__")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("resize", [[], [T.Resize((9, 9))]])
def test_batches_of_fields(archive, resize, workers):
    def batches(own, **options):
        data = stoker.datasets.WebDataset(archive, FIELDS, T.Compose([*resize, *own, T.ToTensor()]))
        return list(stoker.DataLoader(data, 3, num_workers=workers, **options))

    expected = batches([])
    assert equal(batches([Keep()]), expected)
    kinds = [[type(field) for field in batch] for batch in batches([Keep()])]
    assert kinds == [[type(field) for field in batch] for batch in expected]


class Labelled(stoker.datasets.WebDataset):
    def __getitem__(self, index):
        image, about = super().__getitem__(index)
        return image, torch.tensor(len(about["k"]))


def test_samples_of_a_subclass_are_torchs_to_collate(archive):
    data = Labelled(archive, ("jpg", "json"), T.Compose([T.Resize((8, 8)), Keep(), T.ToTensor()]))
    [(images, counts)] = stoker.DataLoader(data, 7)
    assert images.shape == (7, 3, 8, 8) and counts.tolist() == list(range(7))


def test_only_the_first_image_stays_encoded(archive, tmp_path):
    """Further images are decoded as ever; samples of pixels are given to Python as they are."""
    path = tmp_path / "two.tar"
    with tarfile.open(archive) as source, tarfile.open(path, "w") as file:
        for member in source.getmembers():
            if member.name.endswith(".jpg"):
                data = source.extractfile(member).read()
                for name in (member.name, member.name.replace(".jpg", ".b.jpg")):
                    member.name = name
                    file.addfile(member, io.BytesIO(data))
    pixels = [np.array(Image.open(io.BytesIO(data))) for data in [data]]
    data = stoker.datasets.WebDataset(path, ("jpg", "b.jpg"), T.Compose([Keep(), T.PILToTensor()]))
    first, second = data[6]
    assert np.array_equal(first.permute(1, 2, 0), second) and np.array_equal(second, pixels[0])
    np.save(tmp_path / "pixels.npy", np.stack(pixels * 3))
    [(row,)] = [stoker.datasets.Npy(tmp_path / "pixels.npy", transform=T.Compose([Keep(), T.PILToTensor()]))[1]]
    assert np.array_equal(row.permute(1, 2, 0), pixels[0])


def test_a_damaged_image_is_named(tmp_path):
    with tarfile.open(tmp_path / "bad.tar", "w") as file:
        member = tarfile.TarInfo("7.jpg")
        member.size = 5
        file.addfile(member, io.BytesIO(b"damag"))
    data = stoker.datasets.WebDataset(tmp_path / "bad.tar", ("jpg",), T.Compose([Keep(), T.ToTensor()]))
    with pytest.raises(stoker.CorruptSample, match=r"bad.tar.*7.*cannot identify"):
        data[0]
    with pytest.raises(stoker.CorruptSample):
        list(stoker.DataLoader(data, num_workers=1))


def test_a_collate_function_of_ones_own_gets_samples(archive):
    data = stoker.datasets.WebDataset(archive, ("jpg", "json"), T.Compose([Keep(), T.ToTensor()]))
    [batch] = stoker.DataLoader(data, 7, collate_fn=lambda samples: samples)
    assert [sample[1] for sample in batch] == [{"k": list(range(k))} for k in range(7)]


def test_transforms_of_fields_are_torchvisions_for_the_same_seed(archive):
    data = stoker.datasets.WebDataset(archive, ("jpg",), random_steps(T, Posterize()))
    theirs = random_steps(V1, Posterize())
    loader = stoker.DataLoader(data, None, seed_by="worker", num_workers=0)
    plain = stoker.datasets.WebDataset(archive, ("jpg",))
    torch.manual_seed(3)
    next_seed = torch.empty((), dtype=torch.int64).random_()  # an iterator draws it first
    expected = [theirs(Image.fromarray(plain[k][0])) for k in range(7)]
    torch.manual_seed(3)
    assert next_seed is not None and equal([image for (image,) in loader], expected)
