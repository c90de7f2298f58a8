# SPDX-License-Identifier: Apache-2.0
"""Datasets of lazy images and torchvision's transforms give the same batches as with torch."""

from __future__ import annotations

import pytest
import stoker
import torch
from conftest import picture
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

T = pytest.importorskip("torchvision.transforms")
from torchvision_transforms import FIXED  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


class Photos(torch.utils.data.Dataset):
    """What most datasets are."""

    def __init__(self, paths, transform):
        self.paths = paths
        self.transform = transform

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with open(self.paths[index], "rb") as file:
            image = Image.open(file).convert("RGB")
        kind = "Pillow's" if type(image) is Image.Image else "lazy" if "_stoker" in vars(image) else "opened"
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
    assert {kind for batch in ours for kind in batch[2]} == {"lazy", "opened"}
    assert type(Image.open(paths[0])) is JpegImageFile


@pytest.mark.parametrize("workers", [0, 2])
def test_compile_false_leaves_images_to_pillow(paths, workers):
    data = Photos(paths, FIXED["eval"])
    loader = stoker.DataLoader(data, batch_size=6, num_workers=workers, compile=False)
    assert {kind for batch in loader for kind in batch[2]} == {"Pillow's"}


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
