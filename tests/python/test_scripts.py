# SPDX-License-Identifier: Apache-2.0
"""Training scripts as people write them, with torch's DataLoader and with ours: only the import is changed, or
nothing, under stoker.install()."""

from __future__ import annotations

import os
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest
import stoker
import torch
import torch.utils.data as tud
from conftest import save_tree
from ranks import in_fresh_python, on_ranks

pytest.importorskip("torchvision")

SCRIPTS = Path(__file__).parent / "scripts"
TORCHS, OURS = "from torch.utils.data import DataLoader", "from stoker import DataLoader"


def run_script(name, way, *arguments):
    """What a script recorded: with torch's loader, with ours, or with ours by install()."""
    source = (SCRIPTS / f"{name}.py").read_text()
    assert source.count(TORCHS) == 1
    if way == "ours":
        others = source.split(TORCHS)[1].partition("\n")[0].removeprefix(",").strip()
        source = source.replace(
            TORCHS + (f", {others}" if others else ""),
            OURS + (f"\nfrom torch.utils.data import {others}" if others else ""),
        )
    if way == "installed":
        stoker.install()
    sys.argv = [name, *map(str, arguments)]
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    try:
        exec(compile(source, f"{name}.py", "exec"), vars(module))
    finally:
        if way == "installed":
            stoker.uninstall()
    return module.record


def every_way(name, *arguments):
    warnings.simplefilter("ignore")
    return {way: run_script(name, way, *arguments) for way in ("torch", "ours", "installed")}


def check_kinds(got):
    assert set(got["torch"].pop("kinds")) == {"torch.utils.data.dataloader"}
    assert set(got["ours"].pop("kinds")) == {"stoker.dataloader"}
    assert set(got["installed"].pop("kinds")) == {"stoker._install"}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    save_tree(root / "train", {"ant": 9, "bee": 8, "cow": 6})
    save_tree(root / "val", {"ant": 4, "bee": 5, "cow": 3})
    return str(root)


def test_imagenet(folders):
    got = in_fresh_python(every_way, "imagenet", folders)
    check_kinds(got)
    torchs = got.pop("torch")
    for way, ours in got.items():
        assert ours["steps"] == torchs["steps"] == [[6, 6]] * 2, way
        assert [sorted(labels) for labels in ours["labels"]] == [sorted(labels) for labels in torchs["labels"]], way
        assert all(np.isfinite(ours["losses"])) and len(ours["losses"]) == 12, way
        assert ours["evaluated"] == torchs["evaluated"], way  # the same pixels: the same loss
    assert got["installed"]["labels"] == torchs["labels"]  # the order of torch's seed


def test_classification(folders):
    got = in_fresh_python(every_way, "classification", "--data-path", folders)
    check_kinds(got)
    for way in ("ours", "installed"):
        assert got[way] == got["torch"], way


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """MNIST's files, with noise for digits."""
    root = tmp_path_factory.mktemp("digits")
    raw = root / "MNIST" / "raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name, count in (("train", 70), ("t10k", 60)):
        images = rng.integers(0, 256, (count, 28, 28), np.uint8)
        labels = rng.integers(0, 10, count).astype(np.uint8)
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            sizes = np.array(array.shape, ">u4").tobytes()
            (raw / f"{name}-{kind}-ubyte").write_bytes(bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes())
    return str(root)


@pytest.mark.parametrize("workers", [0, 1])
def test_mnist(digits, workers):
    got = in_fresh_python(every_way, "mnist", digits, "--workers", str(workers))
    check_kinds(got)
    torchs = got["torch"]
    assert got["installed"] == torchs  # losses, order and all
    ours = got["ours"]
    assert [[n, of, sorted(labels)] for n, of, labels in ours["labels"]] == [
        [n, of, sorted(labels)] for n, of, labels in torchs["labels"]
    ]
    assert ours["tested"][:2] == torchs["tested"][:2] and len(ours["losses"]) == len(torchs["losses"]) == 10


# ---- timm: create_loader makes the loader itself, with a collate_fn and a prefetcher of its own ----


def timm_loops(root):
    warnings.simplefilter("ignore")
    from timm.data import ImageDataset, create_loader

    def loop():
        torch.manual_seed(4)
        common = {"input_size": (3, 32, 32), "batch_size": 4, "device": torch.device("cpu"), "num_workers": 1}
        train = create_loader(ImageDataset(f"{root}/train"), is_training=True, re_prob=0.0, **common)
        out = {"kind": type(train.loader).__module__, "train": [], "length": len(train)}
        for epoch in range(2):
            if hasattr(train.sampler, "set_epoch"):
                train.sampler.set_epoch(epoch)
            out["train"].append([[target.tolist(), round(images.double().sum().item(), 4)] for images, target in train])
        evaluate = create_loader(ImageDataset(f"{root}/val"), use_multi_epochs_loader=True, **common)
        for _ in range(2):
            out.setdefault("eval", []).append(
                [[target.tolist(), images.double().sum().item(), str(images.dtype)] for images, target in evaluate]
            )
        return out

    torchs = loop()
    stoker.install()
    return [torchs, loop()]


def test_timm(folders):
    pytest.importorskip("timm")
    torchs, ours = in_fresh_python(timm_loops, folders)
    assert torchs.pop("kind") == "torch.utils.data.dataloader" and ours.pop("kind") == "stoker._install"
    # What is drawn for a lazy image has torchvision's distribution, not its values: the labels are the same.
    for result in (ours, torchs):
        result["train"] = [[labels for labels, _ in epoch] for epoch in result["train"]]
    assert ours == torchs and len(ours["train"][0]) == ours["length"] == 4 and len(ours["eval"][1]) == 3


# ---- Hugging Face's Trainer makes its loaders itself, and lets Accelerate prepare them ----


class Rows(tud.Dataset):
    def __init__(self, count):
        self.values = torch.randn(count, 4, generator=torch.Generator().manual_seed(count))

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return {"x": self.values[index], "labels": torch.tensor(index)}


def collate(rows):
    return {key: torch.stack([row[key] for row in rows]) for key in rows[0]}


def hugging_face(workers):
    """Two epochs of training with evaluation, and a prediction: what the model was given, and its weights."""
    warnings.simplefilter("ignore")
    import tempfile

    from transformers import Trainer, TrainingArguments
    from transformers.trainer_utils import set_seed

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)
            self.seen = []

        def forward(self, x, labels=None):
            self.seen.append([self.training, labels.tolist()])
            out = self.layer(x)
            return {"loss": (out.sum(1) - labels).pow(2).mean(), "logits": out}

    def run():
        set_seed(6)
        model = Model()
        with tempfile.TemporaryDirectory() as folder:
            options = TrainingArguments(
                output_dir=folder, num_train_epochs=2, per_device_train_batch_size=4, per_device_eval_batch_size=4,
                eval_strategy="epoch", save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
                dataloader_num_workers=workers, seed=6, learning_rate=0.01, logging_strategy="no",
                ddp_backend="gloo" if os.environ.get("RANK") else None,
            )
            trainer = Trainer(
                model, options, data_collator=collate, train_dataset=Rows(22), eval_dataset=Rows(13),
            )
            loaders = [trainer.get_train_dataloader(), trainer.get_eval_dataloader()]
            kinds = sorted({type(loader.base_dataloader).__module__ for loader in loaders})
            trainer.train()
            predicted = trainer.predict(Rows(13))
        return {
            "kinds": kinds, "steps": trainer.state.global_step, "seen": model.seen,
            "weights": [p.tolist() for p in model.parameters()], "labels": predicted.label_ids.tolist(),
        }

    torchs = run()
    stoker.install()
    return [torchs, run()]


def trainers():
    # torchaudio of another age than torch cannot be imported, and transformers would.
    sys.modules["torchaudio"] = None
    import transformers.trainer  # noqa: F401 (once, for all that are forked)

    return {"one": on_ranks(1, hugging_face, 1, group=False), "two": on_ranks(2, hugging_face, 0, group=False)}


def test_hugging_face_trainer():
    pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    for world, ranks in in_fresh_python(trainers).items():
        for torchs, ours in ranks:
            assert torchs.pop("kinds") == ["torch.utils.data.dataloader"], world
            assert ours.pop("kinds") == ["stoker.dataloader"], world
            assert ours == torchs, world
        together = [n for _, ours in ranks for training, labels in ours["seen"] if training for n in labels]
        assert set(together) == set(range(22)) and ranks[0][1]["labels"] == list(range(13)), world
