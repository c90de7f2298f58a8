# SPDX-License-Identifier: Apache-2.0
"""explain(), compile="require" and the line in the log: what runs where, why, and what would change it."""

from __future__ import annotations

import time

import PIL.Image
import PIL.ImageOps
import pytest
import stoker
import torch
import torch.utils.data as tud
import torchvision.transforms as V1
import torchvision.transforms.v2 as V2
from conftest import run_python
from torchvision import datasets
from torchvision_sets import mnist

CROP = V1.Compose([V1.CenterCrop(32), V1.RandomApply([V1.ColorJitter(0.1), V1.Grayscale(3)]), V1.ToTensor()])
MIXED = V1.Compose([V1.CenterCrop(32), V2.AugMix(chain_depth=16), V1.ToTensor(), V1.Lambda(lambda x: x.flip(0))])


def test_the_plan_of_the_engine(tree):
    plan = stoker.DataLoader(datasets.ImageFolder(tree, CROP), 4, num_workers=2).explain()
    assert [row.stage for row in plan.rows] == [
        "read",
        "decode",
        "CenterCrop",
        "RandomApply",
        "ToTensor",
        "collate",
        "settings",
        "copy to device",
    ]
    assert all(row.where == "engine, 2 threads" for row in plan.rows[:-2])
    assert plan.rows[-2].where == "2 of 2 threads active, up to 2 batches prefetched, 64 samples read ahead"
    assert plan.rows[-2][2:4] == ("not changed so far", "remove num_workers")
    assert plan.rows[-1].remedy == "device='cuda'"
    assert plan == repr(plan) == str(plan) and plan.splitlines()[:3] == [
        "what would change it:", "- settings: remove num_workers", "- copy to device: device='cuda'"
    ]  # fmt: skip
    assert plan.splitlines()[4].split() == ["stage", "runs", "in", "why"]
    page = plan._repr_html_()
    assert page.count("<tr>") == 1 + len(plan.rows) and "<td" in page and "device=&#x27;cuda&#x27;" in page


def test_what_each_step_costs(tree, tmp_path):
    """The steps of the engine that are made at once have one cost."""
    slow = V1.Compose([V1.RandomCrop(16), V1.RandomHorizontalFlip(), Slow(), V1.ToTensor(), V1.Normalize([0.5], [0.5])])
    data = stoker.datasets.ImageFolder(tree, slow)
    for each in (data, datasets.ImageFolder(tree, slow), tud.Subset(data, [1, 2]), stoker.datasets.Subset(data, [4, 5, 6])):
        loader = stoker.DataLoader(each, 4)
        before, called = torch.get_rng_state(), Slow.called
        plan = loader.explain(measure=5)
        assert Slow.called == called + 6 and torch.equal(before, torch.get_rng_state())
        costs = {row.stage: row.cost for row in plan.rows}
        assert 3 < costs["Slow"] and costs["read"] > 0 and costs["decode"] > 0 and costs["Normalize"] > 0
        assert costs["RandomCrop"] is not None or costs["RandomHorizontalFlip"] is not None
        assert costs["collate"] is None and "ms/sample" in plan and max(map(len, plan.splitlines())) <= 80
        assert "ms per sample" in plan._repr_html_()
        assert len(next(iter(loader))[0]) in (2, 3, 4)
    assert "ms/sample" not in loader.explain()
    assert all(row.cost is None for row in stoker.DataLoader(datasets.ImageFolder(tree, CROP)).explain(measure=2).rows)


class Slow:
    called = 0

    def __call__(self, image):
        Slow.called += 1
        time.sleep(0.003)
        return image


def test_where_steps_behind_ones_own_run(tree):
    steps = [V1.CenterCrop(20), V1.GaussianBlur(3), invert, V1.RandomApply([invert]), V1.ToTensor(), invert, V1.Normalize([0.5], [0.5])]
    rows = stoker.DataLoader(stoker.datasets.ImageFolder(tree, V1.Compose(steps))).explain().rows
    engine = [row.stage for row in rows if row.where == "engine, in this process"]
    assert engine == ["decode", "CenterCrop", "ToTensor"] and {row.where for row in rows} - {"this process"} == {
        "engine, in this process", "the script"
    }  # fmt: skip
    assert [row.stage for row in rows].count("invert") == 2 and rows[0].remedy.startswith("num_workers=")


def invert(image):
    return PIL.ImageOps.invert(image)


def test_labels_in_python(tmp_path):
    plan = stoker.DataLoader(mnist(tmp_path, transform=V1.ToTensor(), target_transform=str), 4).explain()
    [row] = [row for row in plan.rows if row.where == "this process"]
    assert row.stage == "target_transform" and "str" in row.why


def test_the_plan_of_python(tree):
    plan = stoker.DataLoader(datasets.ImageFolder(tree, MIXED), 4, num_workers=1).explain()
    by_stage = {row.stage: row for row in plan.rows}
    assert list(by_stage) == [
        "read", "decode", "CenterCrop", "AugMix", "ToTensor", "Lambda", "collate", "copy to device"
    ]  # fmt: skip
    assert "recorded" in by_stage["ToTensor"].why and "only Python knows" in by_stage["Lambda"].why
    here, engine = "1 worker process", "engine, in 1 worker process"
    assert [row.where for row in plan.rows[:-1]] == [here, engine, engine, here, engine, here, here]
    assert all(row.cost is None for row in plan.rows) and "ms/sample" not in plan
    assert "compile=False" in stoker.DataLoader(datasets.ImageFolder(tree, CROP), compile=False).explain()


class Plain(tud.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.zeros(3)


class Photos(Plain):
    def __getitem__(self, index):
        return opened("x.jpg")


class Lazily(Plain):
    def __getitem__(self, index):
        from PIL import Image

        return [Image.open(path) for path in ("a", "b")]


def opened(path):
    return PIL.Image.open(path).convert("RGB")


@pytest.mark.parametrize(("data", "opens"), [
    ([1, 2, 3], False), (Plain(), False), (tud.Subset(Plain(), [1]), False), (tud.ConcatDataset([Plain(), Plain()]), False),
    (Photos(), True), (Lazily(), True), (tud.Subset(Photos(), [1]), True), (tud.ConcatDataset([Plain(), Photos()]), True),
])
def test_images_are_listed_where_the_dataset_opens_some(data, opens):
    stages = dict.fromkeys(row.stage for row in stoker.DataLoader(data, num_workers=2).explain().rows)
    assert list(stages) == ["read", "collate", *["images opened by Pillow"] * opens, "copy to device"]


def test_steps_are_those_of_the_script(tree):
    def steps(data):
        return [row.stage for row in stoker.DataLoader(data).explain().rows if row.stage[0].isupper()]

    assert steps(datasets.ImageFolder(tree)) == []
    assert steps(datasets.ImageFolder(tree, V1.PILToTensor())) == ["PILToTensor"]
    both = V2.Compose([V2.CenterCrop(32), V2.ToImage(), V2.ToDtype(torch.float32, scale=True)])
    assert steps(datasets.ImageFolder(tree, both)) == ["CenterCrop", "ToImage", "ToDtype"]
    part = tud.Subset(datasets.ImageFolder(tree, CROP), [1, 2])
    assert steps(tud.ConcatDataset([part, part])) == ["CenterCrop", "RandomApply", "ToTensor"]
    own = stoker.transforms.Compose([stoker.transforms.CenterCrop(32), stoker.transforms.ToTensor()])
    assert steps(stoker.datasets.ImageFolder(tree, own)) == ["CenterCrop", "ToTensor"]


def test_plans_have_80_columns_and_begin_with_the_remedy(tree, tmp_path):
    folder = datasets.ImageFolder(tree, MIXED)
    loaders = [
        stoker.DataLoader(datasets.ImageFolder(tree, CROP), 4, num_workers=1, prefetch_factor=4, read_ahead=9),
        stoker.DataLoader(mnist(tmp_path, transform=V1.ToTensor(), target_transform=opened), 4),
        stoker.DataLoader(folder, num_workers=2, collate_fn=opened, worker_init_fn=print),
        stoker.DataLoader(tud.ConcatDataset([folder, datasets.ImageFolder(tree, CROP)])),
        stoker.DataLoader([1, 2, 3]), stoker.DataLoader(tud.TensorDataset(torch.zeros(3))), stoker.DataLoader(Photos()),
    ]  # fmt: skip
    for loader in loaders:
        plan = loader.explain()
        lines = plan.splitlines()
        assert max(map(len, lines)) <= 80, plan
        assert lines[0] == "what would change it:" and all(line.strip() for line in lines if line != ""), plan
        said = " ".join(" ".join(lines[1:lines.index("")]).split())
        for row in plan.rows:
            assert row.remedy in said, row
        assert said.count("remove ") == len({row.remedy for row in plan.rows if row.remedy.startswith("remove ")}), plan
    assert "1 thread " in loaders[0].explain().replace(",", " ") and "1 threads" not in loaders[0].explain()


def test_custom_data_sets():
    plan = stoker.DataLoader([1, 2, 3]).explain()
    assert plan.rows[0].stage == "read" and "list" in plan.rows[0].why and plan.rows[0].remedy


def test_require_lists_everything(tree):
    data = datasets.ImageFolder(tree, MIXED, loader=len)
    with pytest.raises(NotImplementedError) as error:
        stoker.DataLoader(data, compile="require", collate_fn=list, worker_init_fn=print)
    for word in ("AugMix", "Lambda", "loader", "collate_fn", "worker_init_fn"):
        assert f"\n- {word}" in str(error.value) or word in str(error.value)
    assert str(error.value).count("\n- ") == 5
    with pytest.raises(NotImplementedError, match="AugMix"):
        stoker.DataLoader(tud.Subset(datasets.ImageFolder(tree, MIXED), [1]), compile="require")
    assert stoker.DataLoader(tud.TensorDataset(torch.zeros(3)), compile="require").explain()


def test_one_line_in_the_log(tree):
    out = run_python(
        f"""
        import stoker, torchvision.transforms as V1, torchvision.transforms.v2 as V2
        from torchvision.datasets import ImageFolder
        good = ImageFolder({str(tree)!r}, V1.ToTensor())
        bad = ImageFolder({str(tree)!r}, V1.Compose([V2.AugMix(chain_depth=16), V1.ToTensor()]))
        stoker.DataLoader(good)
        stoker.DataLoader([1, 2])
        stoker.DataLoader(bad, compile=False)
        print("quiet so far")
        stoker.DataLoader(bad)
        stoker.DataLoader(bad)
        """
    )
    assert out.stdout == "quiet so far\n"
    assert out.stderr.count("are made in Python") == 1 and "AugMix" in out.stderr
