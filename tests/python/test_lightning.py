# SPDX-License-Identifier: Apache-2.0
"""Lightning: it injects samplers, asks for iterators it does not use, and resumes at the end of epochs."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings

import pytest
import stoker
import torch
import torch.utils.data as tud
from ranks import in_fresh_python, on_ranks
from stoker._engine.batch_tensor import BatchTensor
from test_batch_tensor import GPU, Elsewhere, original
from test_ranks import Numbers, labelled

pytest.importorskip("lightning")
pytest.importorskip("torchvision")


def lightning():
    import lightning

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    return lightning


def module(loaders=None):
    """A module that writes down what it gets: stage, epoch, samples, and a sum of what was drawn for them."""

    class Watched(lightning().LightningModule):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(1, 1)
            self.seen = []

        def note(self, stage, batch):
            values, labels = batch
            numbers = labels if values.ndim == 4 else values
            draws = [round(float(v.double().sum()), 6) for v in values]
            self.seen.append([stage, self.current_epoch, numbers.tolist(), draws])
            return self.net(values.reshape(len(values), -1)[:, :1].float()).sum()

        def training_step(self, batch, _):
            return self.note("train", batch)

        def validation_step(self, batch, _):
            self.note("validate", batch)

        def test_step(self, batch, _):
            self.note("test", batch)

        def predict_step(self, batch, _):
            self.note("predict", batch)

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.0)

    made = Watched()
    for name, loader in (loaders or {}).items():
        setattr(made, name, loader)  # a hook, in which Lightning watches loaders being made
    return made


def trainer(folder, epochs, **more):
    return lightning().Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False,
        default_root_dir=folder, num_sanity_val_steps=more.pop("sanity", 0),
        enable_checkpointing=more.pop("checkpoints", False), **more,
    )


def images(root, *, random):
    from torchvision import datasets, transforms

    crop = transforms.RandomCrop(8) if random else transforms.CenterCrop(8)
    return datasets.ImageFolder(root, transforms.Compose([crop, transforms.ToTensor()]))


# ---- two ranks ----


def _all_stages(root):
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, data in (("engine", images(root, random=False)), ("python", Numbers(23))):
            for hooks in (False, True) if name == "engine" else (False,):
                out[f"{name} hooks={hooks}"] = [
                    _stages(folder, data, kind, hooks) for kind in (tud.DataLoader, stoker.DataLoader)
                ]
    return out


def _stages(folder, data, kind, hooks):
    def train():
        return kind(data, batch_size=4, shuffle=True, drop_last=True)

    def evaluate():
        return kind(data, batch_size=4)

    common = {"strategy": "ddp", "devices": 2}
    if hooks:
        model = module({
            "train_dataloader": train, "val_dataloader": evaluate, "test_dataloader": evaluate,
            "predict_dataloader": evaluate,
        })
        given, tested = {}, {}
    else:
        model = module()
        given = {"train_dataloaders": train(), "val_dataloaders": evaluate()}
        tested = {"dataloaders": evaluate()}
    fit = trainer(folder, 2, sanity=1, **common)
    fit.fit(model, **given)
    engine = {type(dl).__module__ for dl in (fit.train_dataloader, fit.val_dataloaders)}
    trainer(folder, 1, **common).test(model, verbose=False, **tested)
    from lightning.pytorch.callbacks import BasePredictionWriter

    class Indices(BasePredictionWriter):
        """Lightning wraps the batch sampler to know which samples a prediction is of."""

        def __init__(self):
            super().__init__("batch")
            self.seen = []

        def write_on_batch_end(self, trainer, module, prediction, batch_indices, *rest):
            self.seen.append(batch_indices)

    indices = Indices()
    trainer(folder, 1, callbacks=[indices], **common).predict(model, **tested)
    return {"seen": model.seen, "indices": indices.seen, "of": sorted(engine)}


# ---- resuming ----


def _resumed(root, devices, where, python=False):
    """An uninterrupted run of three epochs; one that was left after one epoch or inside the second, and
    what came after it was taken up."""
    data = Numbers(23) if python else images(root, random=True)
    options = {"strategy": "ddp", "devices": devices} if devices > 1 else {"devices": 1}

    def run(folder, epochs, checkpoint=None, **more):
        loader = stoker.DataLoader(data, batch_size=4, shuffle=True, seed=None if python else 7)
        model = module()
        trainer(folder, epochs, **options, **more).fit(model, loader, ckpt_path=checkpoint)
        return model.seen

    from lightning.pytorch.callbacks import ModelCheckpoint

    saves = {"every_n_train_steps": 2} if where == "inside" else {"every_n_epochs": 1}
    out = {}
    folder = os.environ["TEST_FOLDER"] + f"/{devices}-{where}-{python}"
    out["whole"] = run(folder, 3)
    keep = ModelCheckpoint(dirpath=folder, filename="{epoch}-{step}", save_top_k=-1, **saves)
    run(folder, 2, checkpoints=True, callbacks=[keep])
    names = sorted(os.listdir(folder), key=lambda name: int(name.split("step=")[1].split(".")[0]))
    chosen = names[0] if where == "end" else names[-1] if devices > 1 else names[3]
    out["steps"] = int(chosen.split("step=")[1].split(".")[0])
    out["resumed"] = run(folder, 3, f"{folder}/{chosen}")
    return out


def _monitored():
    """Training with validation in between."""
    written = []
    monitor = stoker.monitor(lambda values, step: written.append((step, values)), every=0.0)
    module_of = lightning().LightningModule

    class Plain(module_of):
        def __init__(self):
            super().__init__()
            self.net = torch.nn.Linear(1, 1)

        def training_step(self, batch, _):
            return self.net(batch.float()[:, None]).sum()

        def validation_step(self, batch, _):
            pass

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.0)

    common = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
    fit = lightning().Trainer(max_epochs=2, accelerator="cpu", callbacks=[monitor.lightning()], **common).fit
    fit(Plain(), tud.DataLoader(range(10), 2), tud.DataLoader(range(10), 2))
    return [(step, sorted(values)) for step, values in written], monitor.step


def _lightning(root):
    lightning()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TEST_FOLDER"] = folder
        return {
            "monitored": _monitored(),
            "stages": on_ranks(2, _all_stages, root, group=False),
            "resumed 2 end": on_ranks(2, _resumed, root, 2, "end", group=False),
            "resumed 2 end, python": on_ranks(2, _resumed, root, 2, "end", True, group=False),
            "resumed 1 end": [_resumed(root, 1, "end")],
            "resumed 1 inside": [_resumed(root, 1, "inside")],
        }


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return in_fresh_python(_lightning, labelled(tmp_path_factory.mktemp("numbered"), 23))


@pytest.mark.parametrize("case", ["engine hooks=False", "engine hooks=True", "python hooks=False"])
def test_ddp_gives_every_rank_what_it_gets_from_torch(runs, case):
    for rank, cases in enumerate(runs["stages"]):
        torchs, ours = cases[case]
        assert ours["seen"] == torchs["seen"], f"rank {rank}"
        assert ours["indices"] == torchs["indices"] == [s[2] for s in ours["seen"] if s[0] == "predict"], f"rank {rank}"
        assert ours["of"] == ["stoker.dataloader"] and torchs["of"] == ["torch.utils.data.dataloader"]
    stages = [[s for s, *_ in cases[case][1]["seen"]] for cases in runs["stages"]]
    assert {stage: stages[0].count(stage) for stage in set(stages[0])} == {
        "train": 2 * 3, "validate": 1 + 2 * 3, "test": 3, "predict": 3
    }


def test_a_callback_that_monitors(runs):
    written, steps = runs["monitored"]
    names = ["stoker/samples_per_second", "stoker/stall_share"]
    assert steps == 10 and [step for step, _ in written] == list(range(1, 11)) and all(got == names for _, got in written)


@pytest.mark.parametrize("case", ["resumed 2 end", "resumed 2 end, python", "resumed 1 end", "resumed 1 inside"])
def test_a_resumed_run_goes_on_with_the_right_epoch(runs, case):
    for rank in runs[case]:
        assert len({epoch for _, epoch, *_ in rank["whole"]}) == 3
        assert 0 < rank["steps"] < len(rank["whole"])
        assert rank["resumed"] == rank["whole"][rank["steps"] :]


def test_batches_that_are_on_a_gpu_are_moved_there():
    """A stand-in for a GPU has the bytes; nobody reads them on the CPU."""
    lightning()
    from lightning.fabric.utilities import move_data_to_device
    from lightning.pytorch.utilities.data import extract_batch_size

    source = Elsewhere(original())
    batch = [BatchTensor(source)]
    assert extract_batch_size(batch) == 2
    (images,) = move_data_to_device(batch, GPU)
    assert torch.equal(images, original()) and source.usage.devices == [GPU] and source.fetches == 0
