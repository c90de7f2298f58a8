# SPDX-License-Identifier: Apache-2.0
"""Mistakes in arguments, names and paths: the error or the warning says what was meant."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import warnings
from enum import Enum

import pytest
import stoker
import torch
import torch.utils.data as tud
import torchvision.transforms as V1
from conftest import picture, save_tree
from stoker import transforms as T
from stoker._data.file_options import Where
from torchvision.datasets import ImageFolder


@pytest.fixture()
def data(even_tree):
    return stoker.datasets.ImageFolder(even_tree, T.ToTensor())


def test_a_path_is_not_a_data_set(even_tree, tmp_path, monkeypatch):
    wrong = str(even_tree)[:-2] + "ni"  # trani
    with pytest.raises(FileNotFoundError) as info:
        stoker.DataLoader(wrong)
    assert info.value.filename == wrong and f"did you mean {str(even_tree)!r}?" in str(info.value)
    with pytest.raises(FileNotFoundError, match="No such file or directory: 'nothing/at/all'"):
        stoker.DataLoader("nothing/at/all")
    with pytest.raises(TypeError, match="is a path, not a dataset: pass stoker.open"):
        stoker.DataLoader(str(even_tree))
    monkeypatch.chdir(even_tree.parent)
    with pytest.raises(FileNotFoundError, match="did you mean 'train'"):
        stoker.DataLoader("trian")
    monkeypatch.chdir(tmp_path)
    assert list(stoker.DataLoader("abc")) == list(tud.DataLoader("abc"))


def test_more_threads_than_cpus_are_warned_of(data, even_tree):
    most = len(os.sched_getaffinity(0))
    with pytest.warns(UserWarning, match=f"will create {most + 1} threads, .* only {most} CPUs") as caught:
        loader = stoker.DataLoader(data, 4, num_workers=most + 1)
    assert caught[0].filename == __file__
    assert sum(len(labels) for _, labels in loader) == len(data)
    with pytest.warns(UserWarning, match="worker processes in total"):  # torch's own
        stoker.DataLoader([1, 2], num_workers=most + 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stoker.DataLoader(data, num_workers=most)
        stoker.DataLoader(data, num_workers="auto")


def test_one_cpu_is_not_one_cpus(data, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    with pytest.warns(UserWarning, match="may use only 1 CPU, and more threads"):
        stoker.DataLoader(data, 4, num_workers=2)


def test_shuffle_that_is_no_bool_is_warned_of(data):
    for value in ("yes", "no"):
        with pytest.warns(UserWarning, match=f"shuffle='{value}' is not a bool, and counts as True") as caught:
            loader = stoker.DataLoader(data, shuffle=value)
        assert caught[0].filename == __file__ and loader.shuffle is True
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in (None, True, 0, 1):
            stoker.DataLoader(data, shuffle=value)


def test_prefetch_factor_0(even_tree, data):
    theirs = ImageFolder(even_tree, V1.ToTensor())
    for make in (tud.DataLoader, stoker.DataLoader):
        with pytest.raises(AssertionError):
            iter(make(theirs, num_workers=1, prefetch_factor=0))
        with pytest.raises(ValueError, match="prefetch_factor"):
            make(theirs, num_workers=1, prefetch_factor=-1)
        with pytest.raises(ValueError, match="prefetch_factor"):
            make(theirs, num_workers=0, prefetch_factor=0)
    with pytest.raises(ValueError, match="prefetch_factor=0: at least one batch"):
        stoker.DataLoader(data, prefetch_factor=0)
    rows = tud.TensorDataset(torch.arange(4))  # which no worker gathers
    for kind in (tud.DataLoader, stoker.DataLoader):
        with pytest.raises(AssertionError):
            iter(kind(rows, num_workers=1, prefetch_factor=0))


def test_unknown_keywords(data):
    with pytest.raises(TypeError, match="unexpected keyword argument 'num_worker'") as info:
        stoker.DataLoader(data, num_worker=2)
    assert info.value.__notes__ == ["Did you mean 'num_workers'?"] and "Did" not in str(info.value)
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'xyzzy'$") as info:
        stoker.DataLoader(data, xyzzy=2)
    assert not hasattr(info.value, "__notes__")
    for signature in (inspect.signature(stoker.DataLoader), inspect.signature(stoker.DataLoader.__init__)):
        assert "num_workers" in signature.parameters
        assert inspect.Parameter.VAR_KEYWORD not in {p.kind for p in signature.parameters.values()}


def classes_with_keywords():
    for module in (stoker.datasets, stoker.transforms, stoker.audio):
        for name in module.__all__:
            made = getattr(module, name)
            if inspect.isclass(made) and not issubclass(made, Enum) and made.__init__ is not object.__init__:
                yield pytest.param(made, id=f"{module.__name__}.{name}")


@pytest.mark.parametrize("made", list(classes_with_keywords()))
def test_every_class_suggests_its_keywords(made):
    parameters = inspect.signature(made).parameters
    keywords = [name for name, parameter in parameters.items() if parameter.kind != parameter.VAR_KEYWORD]
    if len(keywords) < len(parameters):
        keywords += Where.__annotations__
    assert keywords
    for name in keywords:
        wrong = name + name[-1] if len(name) > 1 else name.upper()
        with pytest.raises(TypeError) as info:
            made(**{wrong: None})
        assert str(info.value) == f"{made.__name__}.__init__() got an unexpected keyword argument '{wrong}'"
        assert info.value.__notes__ == [f"Did you mean '{name}'?"]
    with pytest.raises(TypeError, match="xyzzy") as info:
        made(**dict.fromkeys([*parameters][:1], []), xyzzy=1)
    assert not hasattr(info.value, "__notes__")


def test_a_class_derived_from_ours_suggests_its_own_keywords(even_tree):
    class Cats(stoker.datasets.ImageFolder):
        def __init__(self, root, kittens=False, **options):
            super().__init__(root, **options)
            self.kittens = kittens

    assert Cats(even_tree, kittens=True, transform=T.ToTensor()).kittens
    with pytest.raises(TypeError, match=r"Cats.__init__\(\) .*'transfrom'") as info:
        Cats(even_tree, transfrom=T.ToTensor())
    assert info.value.__notes__ == ["Did you mean 'transform'?"]


def test_open_suggests_its_keywords(even_tree):
    for wrong, meant in (("transfrom", "transform"), ("index_dirr", "index_dir")):
        with pytest.raises(TypeError, match=rf"open\(\) got an unexpected keyword argument '{wrong}'") as info:
            stoker.open(even_tree, **{wrong: None})
        assert info.value.__notes__ == [f"Did you mean '{meant}'?"]
    with pytest.raises(TypeError, match="xyzzy= is not an option; these are: index_dir, cache_dir"):
        stoker.open(even_tree, xyzzy=1)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: T.Resize("224"), "Size should be int or sequence. Got <class 'str'>"),
        (lambda: T.Resize(2.5), "Got <class 'float'>"),
        (lambda: T.CenterCrop("22"), "Got '22', a str"),
        (lambda: T.RandomCrop(None), "Got None, a NoneType"),
        (lambda: T.RandomResizedCrop("224"), "Got '224', a str"),
        (lambda: T.GaussianBlur("3"), "Got '3', a str"),
    ],
)
def test_wrong_types_are_named(make, text):
    with pytest.raises(TypeError, match=text):
        make()


@pytest.mark.parametrize(
    ("module", "name", "text"),
    [
        (stoker, "Dataloader", "Did you mean 'DataLoader'"),
        (stoker, "dataset", "Did you mean 'datasets'"),
        (stoker, "Corruptsample", "Did you mean 'CorruptSample'"),
        (T, "RandomResizeCrop", "Did you mean 'RandomResizedCrop'"),
        (T, "Totensor", "Did you mean 'ToTensor'"),
        (T, "LinearTransformation", "torchvision.transforms.LinearTransformation can be used in its place, and runs in Python"),
        (stoker.datasets, "Imagefolder", "Did you mean 'ImageFolder'"),
        (stoker.datasets, "Tfrecord", "Did you mean 'TFRecord'"),
    ],
)
def test_names_are_suggested(module, name, text):
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute '{name}'.*{text}"):
        getattr(module, name)


def test_names_unlike_any_have_no_suggestion():
    for module in (stoker, T, stoker.datasets):
        with pytest.raises(AttributeError, match="has no attribute 'xyzzy'$"):
            module.xyzzy
        assert not hasattr(module, "__wrapped__")


def test_a_flat_folder_suggests_what_opens_it(tmp_path):
    picture(1, 20, 20).save(tmp_path / "x.png")
    with pytest.raises(FileNotFoundError, match="images without classes: use stoker.datasets.FlatFolder") as info:
        stoker.datasets.ImageFolder(tmp_path)
    remedy = str(info.value).rpartition("use ")[2]
    assert len(eval(remedy)) == 1
    with pytest.raises(stoker.StokerError, match=f"open flat:{tmp_path}"):
        stoker.open(tmp_path)
    assert len(stoker.open(f"flat:{tmp_path}")) == 1


@pytest.mark.parametrize("where", ["a", "."])
def test_a_folder_of_gifs_says_gif(tmp_path, where):
    (tmp_path / where).mkdir(exist_ok=True)
    for i in range(3):
        picture(i, 20, 20).save(tmp_path / where / f"{i}.GIF")
    (tmp_path / where / "readme.txt").write_text("text")
    text = "it contains .gif files, which Stoker does not read: convert them to JPEG, PNG or WebP"
    for make in (stoker.datasets.ImageFolder, stoker.datasets.FlatFolder):
        with pytest.raises(FileNotFoundError, match=text):
            make(tmp_path)
    with pytest.raises(stoker.StokerError, match=text):
        stoker.open(tmp_path)


def test_an_empty_class_does_not_name_the_images_of_others(tmp_path):
    root = save_tree(tmp_path / "tree", {"a": 2}, (20, 20))
    (root / "b").mkdir()
    with pytest.raises(FileNotFoundError) as info:
        stoker.datasets.ImageFolder(root)
    assert "it contains" not in str(info.value)
    (root / "b" / "notes.txt").write_text("text")
    with pytest.raises(FileNotFoundError, match=r"it contains \.txt files$"):
        stoker.datasets.ImageFolder(root)


def test_imports_suggest_too():
    done = subprocess.run(
        [sys.executable, "-c", "import stoker; stoker.Dataloader"], capture_output=True, text=True, check=False
    )
    assert "Did you mean 'DataLoader'?" in done.stderr


def test_a_class_whose_types_only_a_checker_knows():
    class Own(stoker.datasets.FlatFolder):
        def __init__(self, root, **more: "OnlyForTheChecker"):  # noqa: F821
            self.more = more

    assert Own("nowhere", whatever=3).more == {"whatever": 3}


def test_an_empty_folder_called_torch_is_not_torch(tmp_path):
    (tmp_path / "torch").mkdir()
    code = """
import importlib.machinery, sys
class Only:
    def find_spec(name, path=None, target=None):
        if name == "torch":
            return importlib.machinery.PathFinder.find_spec(name, [sys.argv[1]])
sys.meta_path.insert(0, Only)
import stoker
from stoker._base.tensors import torch_if_installed
assert torch_if_installed() is None and "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code, tmp_path], check=True)
