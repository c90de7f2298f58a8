# SPDX-License-Identifier: Apache-2.0
"""Accelerate: what prepare() makes of our loader is ours, and gives what it gives with torch's."""

from __future__ import annotations

import importlib.util
import inspect
import itertools
import pickle
import sys
import warnings

import pytest
import stoker
import torch
import torch.utils.data as tud
from ranks import in_fresh_python, on_ranks
from stoker._engine.batch_tensor import BatchTensor
from stoker._loader.frameworks import options_beyond_torch
from test_batch_tensor import GPU, Elsewhere, original
from test_ranks import Numbers, labelled

for needed in ("accelerate", "torchvision"):  # found, not imported: when it is imported matters here
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed", allow_module_level=True)

COUNT = 22


def images(root):
    from torchvision import datasets, transforms

    return datasets.ImageFolder(root, transforms.Compose([transforms.CenterCrop(8), transforms.ToTensor()]))


def accelerator(**options):
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration

    return Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(**options))


def samples(batch):
    return (batch[1] if batch[0].ndim == 4 else batch[0]).tolist()


class Endless(tud.IterableDataset):
    def __iter__(self):
        return iter(range(COUNT))


def inside(loader):
    """The class of the loader inside, whether it has the engine, and its number of workers."""
    base = loader.base_dataloader
    return [type(base).__module__, getattr(base, "_native", None) is not None, isinstance(loader.num_workers, int)]


def _epochs(make, **options):
    """Two epochs, one that is set, what comes after skipped batches, and an epoch that is left."""
    torch.manual_seed(3)
    acc = accelerator(**options)
    loader = acc.prepare(make())
    out = {"length": len(loader), "total batch": getattr(loader, "total_batch_size", None)}
    out["epochs"] = [[samples(batch) for batch in loader] for _ in range(2)]
    loader.set_epoch(7)
    out["set"] = [samples(batch) for batch in loader]
    skipped = acc.skip_first_batches(loader, 1)
    out["skipped"] = [samples(batch) for batch in skipped]
    # How far the sampler has come by then is a matter of how much is kept ready, with torch's workers too.
    out["left"] = [samples(batch) for batch in itertools.islice(loader, 1)]
    out["inside"] = [inside(loader), inside(skipped)]
    return out


def _gathered(make):
    """gather_for_metrics drops what was repeated to make the last batches equal."""
    acc = accelerator()
    loader = acc.prepare(make())
    out = []
    for batch in loader:
        number = batch[1] if batch[0].ndim == 4 else batch[0]
        out += acc.gather_for_metrics(number).tolist()
    return sorted(out)


def _trained(make):
    """Weights after two epochs, on each rank."""
    torch.manual_seed(3)
    acc = accelerator()
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 2))
    model, optimizer, loader = acc.prepare(model, torch.optim.SGD(model.parameters(), 0.1), make())
    for _ in range(2):
        for inputs, labels in loader:
            optimizer.zero_grad()
            acc.backward(torch.nn.functional.cross_entropy(model(inputs), labels % 2))
            optimizer.step()
    return [p.sum().item() for p in model.parameters()]


def _accelerate(root):
    warnings.simplefilter("ignore")
    out = {}
    for name, data in (("engine", images(root)), ("python", Numbers(COUNT))):
        def both(run, data=data, options=None, **arguments):
            kinds = (tud.DataLoader, stoker.DataLoader)
            return [run(lambda k=kind: k(data, **arguments), **(options or {})) for kind in kinds]

        for drop, shuffle in itertools.product((False, True), repeat=2):
            out[f"{name} {drop=} {shuffle=}"] = both(_epochs, batch_size=4, shuffle=shuffle, drop_last=drop)
        for options in (
            {"split_batches": True}, {"even_batches": False}, {"dispatch_batches": True},
            {"dispatch_batches": True, "split_batches": True}, {"use_seedable_sampler": False},
        ):
            out[f"{name} {options}"] = both(_epochs, options=options, batch_size=4, shuffle=True)
        out[f"{name} gathered"] = both(_gathered, batch_size=4)
        if name == "engine":
            out["engine trained"] = both(_trained, batch_size=4, shuffle=True)
        else:
            out["python workers"] = both(_epochs, batch_size=4, shuffle=True, num_workers=1)
    out["iterable"] = [
        [sum((b.tolist() for b in accelerator(dispatch_batches=False).prepare(kind(Endless(), batch_size=4))), [])]
        for kind in (tud.DataLoader, stoker.DataLoader)
    ]
    return out


def _options(root):
    """What only ours has, goes along; a loader that is shared out already is refused; others' are left alone."""
    from stoker import transforms as T

    acc = accelerator()
    data = stoker.datasets.ImageFolder(root, T.CenterCrop(8))
    loader = acc.prepare(
        stoker.DataLoader(data, 4, dtype="float16", memory_format="channels_last", on_error="skip", seed=5)
    )
    pickled = inside(pickle.loads(pickle.dumps(loader)))
    batch = next(iter(loader))[0]
    try:
        acc.prepare(stoker.DataLoader(data, 4, shard=True))
        refused = ""
    except ValueError as error:
        refused = str(error)
    foreign = acc.prepare(tud.DataLoader(Numbers(5)))
    return {
        "batch": [str(batch.dtype), batch.is_contiguous(memory_format=torch.channels_last), len(batch)],
        "asked": [loader.base_dataloader.on_error, loader.base_dataloader.seed],
        "refused": refused,
        "pickled": pickled,
        "foreign": type(foreign.base_dataloader).__module__,
        "restored": __import__("accelerate").data_loader.DataLoader is tud.DataLoader,
    }


def _stateful(root):
    """use_stateful_dataloader=True needs no torchdata with ours: the state restores the place of the epoch."""
    from accelerate import data_loader

    def make():
        loader = stoker.DataLoader(images(root), 4, shuffle=True, seed=1)
        return data_loader.prepare_data_loader(
            loader, use_stateful_dataloader=True, put_on_device=False, use_seedable_sampler=True, data_seed=3
        )

    first = make()
    epochs = [[samples(batch) for batch in first]]
    end = first.state_dict()
    batches = iter(first)
    begun = [samples(next(batches)) for _ in range(2)]
    state = first.state_dict()
    rest = [samples(batch) for batch in batches]
    epochs += [begun + rest, [samples(batch) for batch in first]]
    out = {"epochs": epochs, "rest": rest, "flag": first.use_stateful_dataloader}
    for name, saved in {"resumed": state, "resumed at the end": end}.items():
        second = make()
        second.load_state_dict(saved)
        out[name] = [[samples(batch) for batch in second] for _ in range(2)]
    return out


def _later(root):
    """A loader that was made before Accelerate was imported."""
    loader = stoker.DataLoader(images(root), 4)
    before = "accelerate.data_loader" in sys.modules
    made = accelerator().prepare(loader)
    return [before, *inside(made), any(type(f).__module__ == "stoker._loader.frameworks" for f in sys.meta_path)]


def _all(root):
    out = {"later": on_ranks(1, _later, root, group=False)}
    import accelerate  # noqa: F401

    return out | {
        "two": on_ranks(2, _accelerate, root, group=False),
        "one": on_ranks(1, _accelerate, root, group=False),
        "options": on_ranks(2, _options, root, group=False),
        "stateful": on_ranks(1, _stateful, root, group=False),
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return in_fresh_python(_all, labelled(tmp_path_factory.mktemp("numbered"), COUNT))


@pytest.mark.parametrize("world", ["one", "two"])
def test_every_rank_gets_what_it_gets_from_torch(runs, world):
    for rank, cases in enumerate(runs[world]):
        for name, (torchs, ours) in cases.items():
            where = f"rank {rank}, {name}"
            if isinstance(torchs, dict):
                engine = name.startswith("engine")
                assert ours.pop("inside") == [["stoker.dataloader", engine, True]] * 2, where
                assert torchs.pop("inside") == [["torch.utils.data.dataloader", False, True]] * 2, where
            assert ours == torchs, where


def test_two_ranks_see_everything_once(runs):
    for name in ("engine", "python"):
        ranks = [cases[f"{name} drop=False shuffle=True"][1]["epochs"] for cases in runs["two"]]
        for epoch in range(2):
            together = [sample for rank in ranks for batch in rank[epoch] for sample in batch]
            assert set(together) == set(range(COUNT)) and len(together) == 24
        assert runs["two"][0][f"{name} gathered"][1] == list(range(COUNT))


def test_options_that_torch_has_not_go_along(runs):
    for rank in runs["options"]:
        assert rank["batch"] == ["torch.float16", True, 4] and rank["asked"] == ["skip", 5]
        assert "would divide again" in rank["refused"] and rank["pickled"] == ["stoker.dataloader", True, True]
        assert rank["foreign"] == "torch.utils.data.dataloader" and rank["restored"]


def test_states_without_torchdata(runs):
    (got,) = runs["stateful"]
    assert got["flag"] and got["resumed"] == [got["rest"], got["epochs"][2]]
    assert got["resumed at the end"] == got["epochs"][1:] and len({str(epoch) for epoch in got["epochs"]}) == 3


def test_accelerate_may_be_imported_later(runs):
    assert runs["later"] == [[False, "stoker.dataloader", True, True, False]]


def test_no_option_is_forgotten():
    """What torch's loader has not is handed on, apart from shares."""
    ours, torchs = (set(inspect.signature(kind.__init__).parameters) for kind in (stoker.DataLoader, tud.DataLoader))
    handed_on = options_beyond_torch(stoker.DataLoader(Numbers(3)))
    assert ours - torchs - set(handed_on) == {"shard", "rank", "world_size", "engines"}  # a former name


def test_batches_that_are_on_a_gpu_are_sent_there():
    """A stand-in for a GPU has the bytes; nobody reads them on the CPU."""
    from accelerate.utils import concatenate, find_batch_size, send_to_device, slice_tensors

    source = Elsewhere(original())
    batch = {"images": BatchTensor(source), "labels": [torch.arange(2)]}
    assert find_batch_size(batch) == 2
    images = send_to_device(batch["images"], GPU, non_blocking=True)
    assert torch.equal(images, original()) and source.usage.devices == [GPU] and source.fetches == 0
    assert torch.equal(slice_tensors(batch, slice(0, 1))["images"], original()[:1])
    assert torch.equal(concatenate([batch, batch])["images"], torch.cat([original()] * 2))
    assert source.fetches == 1
