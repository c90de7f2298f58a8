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


# ---- tensors that are made in the rows of their batch ----

LARGE = T.Compose([T.RandomResizedCrop((64, 60)), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize([0.5] * 3, [0.2] * 3)])


class Used(torch.utils.data.Dataset):
    """Samples whose tensor was used in some way, and what it was before."""

    def __init__(self, paths, use, transform=LARGE):
        self.paths, self.use, self.transform = paths, use, transform
        self.kept = {}

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        made = self.transform(Image.open(self.paths[index]).convert("RGB"))
        name = type(made).__name__
        return self.use(self, index, made), name


def kept(data, index, made):
    return data.kept.setdefault(index % 3, made)  # that of an earlier sample, again and again


def cleared(data, index, made):
    kept(data, index, made.add_(1))
    return made.zero_() if index == 1 else made


USES = {
    "none": lambda data, index, made: (made, index),
    "in a dict, twice": lambda data, index, made: {"a": made, "b": [made, {"c": made}], "n": index},
    "kept": kept,
    "changed in place": cleared,
    "read": lambda data, index, made: (made, float(made.mean()), made.shape[1], made[0, 0, 0]),
    "part": lambda data, index, made: (made[:, ::2], made.view(-1)),
    "numpy": lambda data, index, made: (made.numpy(), index),
    "sometimes": lambda data, index, made: made.clone() if index % 2 else made,
    "cast": lambda data, index, made: made.to(torch.float64),
    "with views": lambda data, index, made: (made, made.detach()),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_untouched_tensors_of_files_are_made_in_their_rows(paths, use):
    data = Used(paths, USES[use])
    batches = []
    for kind in (torch.utils.data.DataLoader, stoker.DataLoader):
        torch.manual_seed(4)
        loader = kind(data, batch_size=6, num_workers=1, persistent_workers=True)
        batches.append([batch for _ in range(2) for batch in loader])
        del loader
    theirs, ours = batches
    kinds = {name for _, names in ours for name in names}
    assert kinds == {"BatchTensor", "Tensor"}  # progressive files are Pillow's
    torch.testing.assert_close([batch for batch, _ in ours], [batch for batch, _ in theirs], rtol=0, atol=0)


def types(samples):
    return [type(made).__name__ for (made, _), _ in samples], torch.stack([made for (made, _), _ in samples])


@pytest.mark.parametrize("options", [
    {"collate_fn": types}, {"batch_size": None}, {"on_error": "skip"}, {"num_workers": 0}, {"compile": False},
])  # fmt: skip
def test_elsewhere_they_are_made_at_once(paths, options):
    data = Used(paths, USES["none"])
    for batch in stoker.DataLoader(data, **{"batch_size": 6, "num_workers": 1, **options}):
        names = batch[0] if options.get("collate_fn") else batch[1] if type(batch[1]) is not str else [batch[1]]
        assert set(names) == {"Tensor"}


def test_tensors_of_any_size(paths):
    """Of another one in each batch, and too small for rows of their own."""
    for transform in (T.Compose([T.ToTensor()]), T.Compose([T.Resize((8, 8)), T.ToTensor()])):
        data = Used(paths, USES["none"], transform)
        theirs = [transform(Image.open(path).convert("RGB"))[None] for path in paths]
        ours = [batch[0][0] for batch in stoker.DataLoader(data, batch_size=1, num_workers=1)]
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        list(stoker.DataLoader(Used(paths, USES["none"], T.Compose([T.ToTensor()])), batch_size=2, num_workers=1))


def test_what_the_engine_refuses_torchvision_makes(paths, monkeypatch):
    from stoker import _ext
    from stoker._engine.batch_tensor import BatchTensor
    from stoker._lazy import late, pixels

    def refuse(self, *args):
        raise _ext.StokerError("no")

    def made():
        torch.manual_seed(2)
        with stoker.lazy_images(), late.filling_rows():
            return LARGE(Image.open(paths[0]).convert("RGB"))

    torch.manual_seed(2)
    want = LARGE(Image.open(paths[0]).convert("RGB"))
    row = bytearray(want.nbytes)
    assert late.late_of(made()).make_into(memoryview(row)) and bytes(row) == want.numpy().tobytes()
    assert not late.late_of(made()).make_into(memoryview(row)[4:])
    tensor = made()
    assert type(tensor) is BatchTensor and tensor.shape == want.shape and tensor.stride() == want.stride()
    assert late.late_of(tensor).make_into(memoryview(row)) and not late.late_of(tensor).make_into(memoryview(row))
    assert torch.equal(tensor, want) and late.late_of(tensor) is None
    with monkeypatch.context() as patch:
        patch.setattr(pixels.Encoded, "run", refuse)
        patch.setattr(pixels.Encoded, "run_into", refuse)
        tensor = made()
        assert not late.late_of(tensor).make_into(memoryview(row)) and torch.equal(tensor + 0, want)
