# SPDX-License-Identifier: Apache-2.0
"""Several views of each image: users' own steps that return a list, as in SimCLR, MoCo, BYOL and DINO."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import stoker
from PIL import Image, ImageFilter

torch = pytest.importorskip("torch")
V1 = pytest.importorskip("torchvision.transforms")

from stoker import transforms as T  # noqa: E402
from test_transform_draws import same_distribution  # noqa: E402
from torchvision.datasets import CIFAR10, ImageFolder  # noqa: E402

END = [V1.ToTensor(), V1.Normalize([0.5] * 3, [0.25] * 3)]


class TwoCropsTransform:
    """MoCo's."""

    def __init__(self, base_transform):
        self.base_transform = base_transform

    def __call__(self, x):
        q = self.base_transform(x)
        k = self.base_transform(x)
        return [q, k]


class Pair:
    """BYOL's: two transforms, a tuple."""

    def __init__(self, one, other):
        self.one, self.other = one, other

    def __call__(self, image):
        return self.one(image), self.other(image)


class MultiCrop:
    """DINO's."""

    def __init__(self, large, other, small, count):
        self.large, self.other, self.small, self.count = large, other, small, count

    def __call__(self, image):
        crops = []
        crops.append(self.large(image))
        crops.append(self.other(image))
        for _ in range(self.count):
            crops.append(self.small(image))
        return crops


class Several:
    """SimCLR's."""

    def __init__(self, base_transform, n_views):
        self.base_transform, self.n_views = base_transform, n_views

    def __call__(self, x):
        return [self.base_transform(x) for i in range(self.n_views)]


class Kept:
    """Its list comprehension calls a function that it makes."""

    def __init__(self, base):
        self.base = base

    def __call__(self, x):
        again = lambda: self.base(x)  # noqa: E731
        return [again() for _ in range(2)]


class Blur:
    def __init__(self, p):
        self.p = p

    def __call__(self, image):
        if random.random() < self.p:
            return image.filter(ImageFilter.GaussianBlur(random.uniform(0.1, 2.0)))
        return image


class Shared:
    """Both views are made of one crop."""

    def __init__(self, base, other):
        self.base, self.other = base, other

    def __call__(self, image):
        image = self.base(image)
        return [self.other(image), self.other(image)]


class Alike(TwoCropsTransform):
    def __call__(self, x):
        q = self.base_transform(x)
        return [q, q]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Red says which image it is, and blue which column."""
    root, rng = tmp_path_factory.mktemp("views"), np.random.default_rng(0)
    for k in range(23):
        (root / f"{k % 3}").mkdir(exist_ok=True)
        pixels = rng.integers(0, 256, (40, 50, 3), np.uint8)
        pixels[..., 0], pixels[..., 2] = 10 * k, 5 * np.arange(50)
        Image.fromarray(pixels).save(root / f"{k % 3}" / f"{k:02}.png")
    return root


def crop(size=16):
    return V1.Compose([V1.RandomResizedCrop(size), V1.RandomHorizontalFlip(), V1.ToTensor()])


def numbers(view):
    return (view[:, 0, 0, 0] * 25.5).round().long().tolist()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("drop_last", [False, True])
def test_a_batch_has_each_view_of_its_samples(tree, workers, drop_last):
    transform = TwoCropsTransform(crop())
    data = ImageFolder(tree, transform)
    loader = stoker.DataLoader(data, 5, shuffle=True, num_workers=workers, drop_last=drop_last, compile="require")
    batches = list(loader)
    assert len(batches) == len(loader) == (4 if drop_last else 5)
    seen = []
    for views, labels in batches:
        assert type(views) is list and len(views) == 2
        assert all(view.is_contiguous() and view.shape == (len(labels), 3, 16, 16) for view in views)
        assert numbers(views[0]) == numbers(views[1])
        assert not any(torch.equal(a, b) for a, b in zip(*views, strict=True))
        assert [int(data.samples[n][1]) for n in range(23)] and labels.dtype == torch.int64
        by_number = {int(path[-6:-4]): label for path, label in data.samples}
        assert [by_number[n] for n in numbers(views[0])] == labels.tolist()
        seen += numbers(views[0])
    assert len(set(seen)) == len(seen) == (20 if drop_last else 23)


def test_what_is_not_drawn_equals_torchs_batches(tree):
    """Views of different steps and sizes, of which some have steps in common."""
    first = V1.Compose([V1.Resize((20, 24)), V1.RandomHorizontalFlip(1.0), *END])
    second = V1.Compose([V1.Resize((20, 24)), V1.RandomSolarize(100, 1.0), V1.RandomGrayscale(1.0), *END])
    small = V1.Compose([V1.CenterCrop(12), *END])
    plain = V1.Compose([V1.Resize((20, 24)), *END])
    for transform in (Several(plain, 3), Pair(first, second), Pair(first, plain), MultiCrop(first, second, small, 3)):
        data = ImageFolder(tree, transform)
        for size in (4, 40, None):
            ours = stoker.DataLoader(data, size, num_workers=2, compile="require" if size else True)
            for (views, labels), (wanted, targets) in zip(ours, torch.utils.data.DataLoader(data, size), strict=True):
                assert len(views) == len(wanted) and type(views) is type(wanted)
                assert all(torch.equal(a, b) for a, b in zip(views, wanted, strict=True))
                assert labels == targets if size is None else torch.equal(labels, targets)
        own = stoker.datasets.ImageFolder(tree, transform)
        (views, label), (wanted, target) = own[7], data[7]
        assert label == target and all(torch.equal(a, b) for a, b in zip(views, wanted, strict=True))


def test_each_view_has_the_distribution_of_its_steps_and_draws_of_its_own(tree):
    first = V1.Compose([V1.RandomCrop(20), V1.RandomVerticalFlip(), V1.ToTensor()])
    second = V1.Compose([V1.RandomCrop(20), Blur(0.1), V1.RandomVerticalFlip(), V1.RandomGrayscale(0.2), V1.ToTensor()])
    text = T.pipeline_text(Pair(first, second))
    assert text.startswith("views(n=2); random_crop") and "; by_view{" in text and text.endswith("}; to_tensor")
    loader = stoker.DataLoader(ImageFolder(tree, Pair(first, second)), 23, num_workers=0, compile="require", seed=3)
    columns, grey = [[], []], []
    for _ in range(30):
        for (one, other), _ in loader:
            grey += (other[:, 0] == other[:, 2]).all(2).all(1).tolist()
            assert not (one[:, 0] == one[:, 2]).all(2).all(1).any()
            is_grey = torch.tensor(grey[-23:])
            for k, view in enumerate((one, other)):
                columns[k] += torch.where(is_grey, -1, (view[:, 2, 10, 0] * 51).round().long()).tolist()
    assert abs(np.mean(grey) - 0.2) < 4 * math.sqrt(0.16 / 690)
    a, b = (np.array([c for c in each if c >= 0]) for each in columns)
    uniform = np.random.default_rng(0).integers(0, 31, 4000)
    same_distribution(a, uniform, "first")
    same_distribution(b, uniform, "second")
    assert abs(np.corrcoef(a, b)[0, 1]) < 4 / math.sqrt(len(a))


def test_it_resumes_inside_an_epoch_with_the_same_views(tree):
    def loader(workers=2):
        return stoker.DataLoader(ImageFolder(tree, TwoCropsTransform(crop())), 4, shuffle=True, seed=7, order="stoker", num_workers=workers)

    whole = [views for views, _ in loader()]
    first = loader()
    batches = iter(first)
    made = [next(batches)[0] for _ in range(3)]
    state = first.state_dict()
    again = loader(0)
    again.load_state_dict(state)
    made += [views for views, _ in again]
    assert len(made) == len(whole) == 6
    assert all(torch.equal(a, b) for one, other in zip(made, whole, strict=True) for a, b in zip(one, other, strict=True))


def test_ranks_share_samples_not_views(tree):
    seen = []
    for rank in range(2):
        data = ImageFolder(tree, TwoCropsTransform(crop()))
        for views, _ in stoker.DataLoader(data, 4, shuffle=True, seed=1, rank=rank, world_size=2, compile="require"):
            assert numbers(views[0]) == numbers(views[1])
            seen.append(numbers(views[0]))
    assert {n for batch in seen for n in batch} == set(range(23)) and sum(map(len, seen)) == 24


def test_samplers_and_grey_images(tree, tmp_path):
    data = ImageFolder(tree, TwoCropsTransform(crop()))
    loader = stoker.DataLoader(data, 4, sampler=[3, 3, 9, 1, 0], num_workers=0, compile="require")
    by_position = [int(path[-6:-4]) for path, _ in data.samples]
    found = [numbers(views[0]) for views, _ in loader]
    assert found == [[by_position[n] for n in batch] for batch in ([3, 3, 9, 1], [0])]
    views = next(iter(loader))[0]
    assert len({view[k].sum().item() for view in views for k in (0, 1)}) == 4


@pytest.mark.parametrize(("transform", "options", "why"), [
    (Shared(V1.RandomCrop(20), crop()), {}, "Shared"),
    (Alike(crop()), {}, "Alike"),
    (Kept(crop()), {}, "Kept"),
    (V1.Compose([V1.RandomCrop(20), TwoCropsTransform(crop())]), {}, "several views has others beside it"),
    (TwoCropsTransform(V1.RandomCrop(20)), {"collate_fn": lambda batch: tuple(zip(*batch))}, "collate_fn"),
    (TwoCropsTransform(crop()), {"batch_sampler": [[0, 1], [2]], "batch_size": 1}, "batch_size"),
])  # fmt: skip
def test_what_cannot_be_proved_runs_in_python(tree, transform, options, why):
    loader = stoker.DataLoader(ImageFolder(tree, transform), **{"batch_size": 2, "num_workers": 0, **options})
    assert loader._native is None and why in str(loader._why_python)
    batch = next(iter(loader))
    assert len(batch) == 2 and len(batch[0]) == 2


def test_shared_steps_without_draws_are_views(tree):
    transform = Shared(V1.Resize((30, 30)), crop())
    assert T.pipeline_text(transform).startswith("views(n=2); resize")
    views, _ = next(iter(stoker.DataLoader(ImageFolder(tree, transform), 5, compile="require")))
    assert not torch.equal(*views)


def test_single_calls_and_errors(tree):
    transform = TwoCropsTransform(crop())
    with pytest.raises(NotImplementedError, match="several views"):
        T.functional_apply(transform, np.zeros((40, 40, 3), np.uint8))
    with pytest.raises(ValueError, match="on_error"):
        stoker.DataLoader(ImageFolder(tree, transform), 4, on_error="skip")
    with pytest.raises(ValueError, match="batch_transforms"):
        stoker.DataLoader(ImageFolder(tree, transform), 4, batch_transforms=T.MixUp())
    for text in ("by_view{random_invert}", "views(n=2); by_view{random_invert}", "views(n=2); views(n=2)", "views(n=65)",
                 "random_apply{views(n=2)}"):  # fmt: skip
        with pytest.raises(ValueError, match="view|n=65|n is"):
            stoker._ext.Pipeline(text)


def test_cifar(tmp_path):
    data = object.__new__(CIFAR10)
    data.data = np.random.default_rng(0).integers(0, 256, (9, 32, 32, 3), np.uint8)
    data.targets, data.transform, data.target_transform, data.transforms = list(range(9)), TwoCropsTransform(crop()), None, None
    batches = list(stoker.DataLoader(data, 4, compile="require"))
    assert [len(labels) for _, labels in batches] == [4, 4, 1] and batches[2][1].tolist() == [8]
    assert all(view.shape[0] == len(labels) for views, labels in batches for view in views)
