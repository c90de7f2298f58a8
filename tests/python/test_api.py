# SPDX-License-Identifier: Apache-2.0
"""Arguments, errors, datasets, tensors: the face that the package shows."""

from __future__ import annotations

import gc
import io
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import stoker
import torch
import torch.utils.data as tud
import torchvision.transforms as TV
from conftest import picture
from PIL import Image
from stoker import _ext
from stoker._engine import gpu_queues
from stoker import transforms as T
from stoker._engine.stats import engine_stats
from torchvision.datasets import ImageFolder

# ---- import ----


def test_import_leaves_the_environment_alone():
    code = """
import os, subprocess, sys
before = dict(os.environ), subprocess.check_output(["env", "-0"])
import stoker
stoker.DataLoader
assert "torch" in sys.modules
assert before == (dict(os.environ), subprocess.check_output(["env", "-0"]))
"""
    environment = {k: v for k, v in os.environ.items() if k != "CUDA_DEVICE_MAX_CONNECTIONS"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


@pytest.mark.parametrize(
    ("variable", "started", "hardware", "said"),
    [(None, True, 1, True), (None, True, 0, False), (None, False, 1, False), ("8", True, 1, False)],
)
def test_a_note_if_cuda_had_started_before_the_loader(tree, monkeypatch, variable, started, hardware, said):
    monkeypatch.setattr(gpu_queues, "_asked", False)
    monkeypatch.setattr(gpu_queues, "_asked_too_late", False)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: started)
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    if variable:
        monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", variable)
    with gpu_queues.more_queues():
        inside = os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS")
    assert inside == (variable or (None if started else "32"))
    assert os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS") == variable
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with gpu_queues.more_queues():  # the second loader: CUDA has started by now
        pass
    loader = stoker.DataLoader(stoker.datasets.ImageFolder(tree, T.ToTensor()))
    batches = iter(loader)
    next(batches)
    notes = engine_stats({**loader._native.engine().stats(), "jpeg_hardware_open": hardware}, "cuda:0")["notes"]
    assert any("CUDA_DEVICE_MAX_CONNECTIONS=32" in note for note in notes) == said


def test_the_number_of_queues_is_restored_after_an_error(monkeypatch):
    monkeypatch.setattr(gpu_queues, "_asked", False)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    with pytest.raises(KeyError), gpu_queues.more_queues():
        raise KeyError
    assert "CUDA_DEVICE_MAX_CONNECTIONS" not in os.environ
    with gpu_queues.more_queues():
        os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"  # whoever does this knows why
    assert os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] == "1"


# ---- exceptions ----


def test_exceptions_are_those_of_python_where_it_has_them(tmp_path):
    with pytest.raises(FileNotFoundError):
        stoker.open(str(tmp_path / "absent.tar"))
    assert issubclass(stoker.TransientError, (stoker.StokerError, OSError))
    assert issubclass(stoker.InternalError, stoker.StokerError)
    assert not issubclass(stoker.InternalError, (OSError, ValueError))


# ---- transforms: torchvision's names, arguments, defaults, errors ----

TRANSFORMS = [
    ("Resize", (256,), {}),
    ("Resize", ((20, 30),), {}),
    ("Resize", ([24],), {}),
    ("Resize", (64,), {"max_size": 100, "interpolation": TV.InterpolationMode.BICUBIC}),
    ("Resize", (64, 3), {}),
    ("Resize", (30,), {"antialias": None}),
    ("CenterCrop", (224,), {}),
    ("CenterCrop", ((10, 20),), {}),
    ("Pad", (4,), {}),
    ("Pad", ((1, 2),), {"fill": (1, 2, 3)}),
    ("Pad", ([1, 2, 3, 4], 0, "reflect"), {}),
    ("RandomCrop", (32,), {}),
    ("RandomCrop", ((30, 20), 4, True, 5, "edge"), {}),
    ("RandomResizedCrop", (224,), {}),
    ("RandomResizedCrop", ((20, 30), (0.5, 1), (1, 2)), {}),
    ("RandomHorizontalFlip", (), {}),
    ("RandomHorizontalFlip", (0.25,), {}),
    ("RandomVerticalFlip", (), {}),
    ("ColorJitter", (), {}),
    ("ColorJitter", (0.4, 0.3, 0.2, 0.1), {}),
    ("ColorJitter", ((0.5, 1.5), 2, [0, 3], (-0.2, 0.1)), {}),
    ("Grayscale", (), {}),
    ("Grayscale", (3,), {}),
    ("RandomGrayscale", (), {}),
    ("GaussianBlur", (3,), {}),
    ("GaussianBlur", ((5, 9), 1.5), {}),
    ("GaussianBlur", (3, (0.2, 0.3)), {}),
    ("RandomErasing", (), {}),
    ("RandomErasing", (0.2, (0.1, 0.2), (0.5, 2), "random"), {}),
    ("RandomErasing", (1, (0.1, 0.2), (0.5, 2), [1.0, 2.0, 3.0]), {}),
    ("ToTensor", (), {}),
    ("PILToTensor", (), {}),
    ("ConvertImageDtype", (torch.float16,), {}),
    ("Normalize", ([0.5, 0.5, 0.5], [0.1, 0.2, 0.3]), {}),
    ("Normalize", ((0.5,), (0.25,)), {}),
]


@pytest.mark.parametrize(("name", "args", "kwargs"), TRANSFORMS)
def test_transform_looks_like_torchvisions_and_is_understood(name, args, kwargs):
    ours, theirs = getattr(T, name)(*args, **kwargs), getattr(TV, name)(*args, **kwargs)
    assert repr(ours) == repr(theirs)
    before = [T.PILToTensor()] if ours._wants_tensor else []
    before += [T.ConvertImageDtype("float32")] if name == "Normalize" else []
    _ext.Pipeline(T.pipeline_text(T.Compose([*before, ours])))
    assert T.pipeline_text(theirs).split("(")[0] in ("", T.pipeline_text(ours).split("(")[0])


def test_containers_look_like_torchvisions():
    def make(module):
        return module.Compose(
            [module.RandomApply([module.GaussianBlur(3), module.Resize(5)], p=0.3), module.ToTensor()]
        )

    assert repr(make(T)) == repr(make(TV))
    assert (
        T.pipeline_text(make(T))
        == T.pipeline_text(make(TV))
        == (
            "random_apply(p=0.3){gaussian_blur(kernel_size=[3,3], sigma=[0.1,2.0]); "
            "resize(size=5, interpolation=bilinear)}; to_tensor"
        )
    )


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("Resize", (5.0,)),
        ("Resize", ((1, 2, 3),)),
        ("CenterCrop", ((1, 2, 3),)),
        ("Pad", ("x",)),
        ("Pad", (1, "x")),
        ("Pad", (1, 0, "wrap")),
        ("Pad", ((1, 2, 3),)),
        ("RandomCrop", ((1, 2, 3),)),
        ("RandomResizedCrop", (3, 1)),
        ("RandomResizedCrop", (3, (0.1, 1), 1)),
        ("ColorJitter", (-1,)),
        ("ColorJitter", ("x",)),
        ("ColorJitter", (0, 0, 0, 0.7)),
        ("ColorJitter", ((2, 1),)),
        ("GaussianBlur", (2,)),
        ("GaussianBlur", (3, 0)),
        ("GaussianBlur", (3, (2, 1))),
        ("GaussianBlur", (3, "x")),
        ("RandomErasing", (0.5, 1)),
        ("RandomErasing", (2,)),
        ("RandomErasing", (0.5, (0, 2))),
        ("RandomErasing", (0.5, (0, 1), (0, 1), "zero")),
        ("RandomErasing", (0.5, (0, 1), (0, 1), None)),
    ],
)
def test_transform_refuses_what_torchvision_refuses(name, args):
    with pytest.raises((TypeError, ValueError)) as theirs:
        getattr(TV, name)(*args)
    with pytest.raises(theirs.type) as ours:
        getattr(T, name)(*args)
    assert str(ours.value) == str(theirs.value)


def test_transform_called_with_an_image():
    image = picture(1, 60, 44)
    resized = T.Resize(30)(image)
    assert resized.shape == (30, 41, 3) or resized.shape == (30, 40, 3)
    assert (resized == np.asarray(TV.Resize(30)(image))).all()
    assert (T.CenterCrop(20)(resized) == np.asarray(TV.CenterCrop(20)(Image.fromarray(resized)))).all()
    assert torch.equal(T.ToTensor()(image), TV.ToTensor()(image))
    crops = {T.RandomCrop(8)(image).tobytes() for _ in range(20)}
    assert len(crops) > 10
    with pytest.raises(TypeError, match="after ToTensor"):
        T.Normalize([0.5], [0.5])(torch.zeros(3, 4, 4))


def test_functional_apply_follows_the_seed():
    image = np.asarray(picture(2, 50, 50))
    transform = T.Compose([T.RandomResizedCrop(16), T.ToTensor()])
    runs = [T.functional_apply(transform, image, seed=seed) for seed in (1, 1, 2)]
    assert (runs[0] == runs[1]).all() and not (runs[0] == runs[2]).all()
    assert T.functional_apply(transform, image, dtype="float16").dtype == np.float16
    assert T.functional_apply(transform, image, memory_format="channels_last").strides[0] == 4


def test_pipeline_errors_say_where():
    with pytest.raises(ValueError, match="unknown op nonsense"):
        _ext.Pipeline("to_tensor; nonsense")
    with pytest.raises(ValueError, match="bilinear"):
        T.Resize(3, interpolation="cubic")
    with pytest.raises(ValueError, match="normalize"):
        stoker.DataLoader(stoker.datasets.ImageBytes([b""], transform=T.Normalize([0.5], [0.5])))


# ---- the loader's arguments ----

SAMPLER = [0, 1]


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_workers": -1},
        {"timeout": -1, "num_workers": 1},
        {"num_workers": 0, "prefetch_factor": 2},
        {"num_workers": 1, "prefetch_factor": -1},
        {"num_workers": 0, "persistent_workers": True},
        {"sampler": SAMPLER, "shuffle": True},
        {"batch_sampler": [SAMPLER], "batch_size": 2},
        {"batch_sampler": [SAMPLER], "shuffle": True},
        {"batch_sampler": [SAMPLER], "drop_last": True},
        {"batch_size": None, "drop_last": True},
        {"batch_size": 0},
        {"batch_size": 1.5},
        {"drop_last": 3},
        {"num_workers": 0, "multiprocessing_context": "fork"},
    ],
)
def test_loader_refuses_what_torch_refuses(tree, arguments):
    data = ImageFolder(tree, TV.ToTensor())
    with pytest.raises(ValueError) as theirs:  # noqa: PT011
        tud.DataLoader(data, **arguments)
    with pytest.raises(ValueError) as ours:  # noqa: PT011
        stoker.DataLoader(data, **arguments)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        ({"collate_fn": len, "compile": "require"}, NotImplementedError, "collate_fn"),
        ({"worker_init_fn": len, "dtype": "uint8"}, NotImplementedError, "dtype='uint8'.*worker_init_fn"),
        ({"compile": "always"}, ValueError, "'require'"),
        ({"order": "random"}, ValueError, "order"),
        ({"on_error": "ignore"}, ValueError, "'raise', 'skip', 'replace'"),
        ({"fidelity": "best"}, ValueError, "'exact', 'fast'"),
        ({"jpeg_hardware": "some"}, ValueError, "jpeg_hardware.*'known', 'all', 'off'"),
        ({"jpeg_hardware": True}, ValueError, "jpeg_hardware=True.*'known', 'all', 'off'"),
        ({"worker_init_fn": len, "jpeg_hardware": "off"}, NotImplementedError, "jpeg_hardware='off'.*worker_init_fn"),
        ({"dtype": "int8"}, ValueError, "dtype"),
        ({"dtype": "uint8"}, ValueError, "uint8|U8|bytes"),
        ({"memory_format": "nhcw"}, ValueError, "memory_format"),
        ({"rank": 1}, ValueError, "world_size"),
        ({"rank": 2, "world_size": 2}, ValueError, "Invalid rank 2"),
        ({"rank": 0, "world_size": 2, "sampler": SAMPLER}, ValueError, "mutually exclusive"),
        ({"pillow": 9}, ValueError, "pillow"),
        ({"ragged": "x"}, ValueError, "'list', 'pad'"),
        ({"output": "jax"}, ValueError, "output"),
        ({"num_workers": "many"}, TypeError, "num_workers"),
        ({"seed": -1}, ValueError, "seed"),
        ({"unknown": 1}, TypeError, "unknown"),
    ],
)
def test_loader_refuses_clearly(tree, arguments, kind, text):
    with pytest.raises(kind, match=text):
        stoker.DataLoader(stoker.datasets.ImageFolder(tree, T.ToTensor()), **arguments)


def test_loader_takes_torchs_default_collate(tree):
    stoker.DataLoader(stoker.datasets.ImageFolder(tree, T.ToTensor()), collate_fn=tud.default_collate)


def test_attributes_stay_as_they_are(tree):
    images = stoker.datasets.ImageFolder(tree, T.Compose([T.CenterCrop(8), T.ToTensor()]))
    loader = stoker.DataLoader(images, 3)
    for name in ("batch_size", "sampler", "drop_last", "dataset"):
        with pytest.raises(ValueError, match=f"{name} attribute should not be set"):
            setattr(loader, name, 1)
    again = pickle.loads(pickle.dumps(loader))
    assert all(torch.equal(a, b) for x, y in zip(loader, again, strict=True) for a, b in zip(x, y, strict=True))


# ---- datasets ----


def test_image_folder_is_torchvisions(tree):
    ours, theirs = stoker.datasets.ImageFolder(tree), ImageFolder(tree)
    for name in ("classes", "class_to_idx", "samples", "imgs", "targets"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert len(ours) == len(theirs) == 23
    assert "ImageFolder" in repr(ours) and "Number of datapoints: 23" in repr(ours)
    image, label = ours[-1]
    assert (image == np.asarray(theirs[22][0])).all() and label == 2
    with pytest.raises(IndexError):
        ours[23]
    transformed = stoker.datasets.ImageFolder(tree, T.Compose([T.Resize(30), T.ToTensor()]))
    reference = ImageFolder(tree, TV.Compose([TV.Resize(30), TV.ToTensor()]))
    assert torch.equal(transformed[4][0], reference[4][0])


def test_image_folder_errors(tree, tmp_path):
    with pytest.raises(FileNotFoundError):
        stoker.datasets.ImageFolder(tmp_path / "nowhere")
    with pytest.raises(NotADirectoryError):
        stoker.datasets.ImageFolder(stoker.datasets.ImageFolder(tree).samples[0][0])
    with pytest.raises(FileNotFoundError, match="class folder"):
        stoker.datasets.ImageFolder(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="classes empty"):
        stoker.datasets.ImageFolder(tmp_path)
    for name in ("target_transform", "loader", "is_valid_file"):
        with pytest.raises(NotImplementedError, match=name):
            stoker.datasets.ImageFolder(tree, **{name: len})


def test_allow_empty_and_index_dir(tree, tmp_path):
    (tmp_path / "root" / "full").mkdir(parents=True)
    (tmp_path / "root" / "empty").mkdir()
    picture(0, 20, 20).save(tmp_path / "root" / "full" / "a.png")
    data = stoker.datasets.ImageFolder(tmp_path / "root", allow_empty=True)
    assert data.classes == ["empty", "full"] and data.targets == [1]
    kept = tmp_path / "index"
    time.sleep(
        max(0, 3 - (time.time() - tree.stat().st_ctime))
    )  # a tree that changed just now is not trusted
    for _ in range(2):
        assert stoker.datasets.ImageFolder(tree, index_dir=kept).samples == ImageFolder(tree).samples
    assert list(kept.iterdir())


def test_flat_folder(tree):
    data = stoker.datasets.FlatFolder(tree, T.ToTensor())
    assert [path for path, _ in data.samples] == [path for path, _ in ImageFolder(tree).samples]
    assert set(data.targets) == {0}


def test_image_bytes_keeps_the_images(tree):
    paths = [path for path, _ in ImageFolder(tree).samples]
    data = stoker.datasets.ImageBytes(
        [bytearray(Path(path).read_bytes()) for path in paths],
        range(23),
        T.Compose([T.CenterCrop(20), T.ToTensor()]),
    )
    loader = stoker.DataLoader(data, 6, num_workers=2)
    del data
    gc.collect()
    labels = torch.cat([labels for _, labels in loader])
    assert labels.tolist() == list(range(23))
    with pytest.raises(ValueError, match="2 labels for 1 sample"):
        stoker.datasets.ImageBytes([b"x"], [1, 2])
    with pytest.raises(TypeError):
        stoker.datasets.ImageBytes(["text"])


def test_data_sets_can_be_pickled(tree):
    data = pickle.loads(
        pickle.dumps(stoker.datasets.ImageFolder(tree, T.Compose([T.Resize(9), T.ToTensor()])))
    )
    assert len(data) == 23 and data[0][0].shape[1] >= 9


def test_torchs_loader_takes_our_data_sets(tree):
    data = stoker.datasets.ImageFolder(tree, T.Compose([T.CenterCrop(30), T.ToTensor()]))
    ours = stoker.DataLoader(data, 6)
    for (a, b), (c, d) in zip(tud.DataLoader(data, 6, num_workers=1), ours, strict=True):
        assert torch.equal(a, c) and torch.equal(b, d)


# ---- one image, one order, one build ----


def test_decode(tmp_path):
    image = picture(7, 70, 50)
    path = tmp_path / "a.jpg"
    image.save(path, quality=80)
    whole = np.asarray(Image.open(path).convert("RGB"))
    assert (stoker.decode(path) == whole).all() and (stoker.decode(path.read_bytes()) == whole).all()
    assert (stoker.decode(str(path), region=(3, 5, 40, 30)) == whole[5:35, 3:43]).all()
    assert stoker.decode(memoryview(path.read_bytes())).flags.writeable
    assert stoker.decode(path, region=[3, 5, 40, 30]).shape == (30, 40, 3)
    with pytest.raises(TypeError, match="four numbers"):
        stoker.decode(path, region=(1, 2, 3))
    for region in ((60, 0, 20, 20), (0, 0, 0, 5), (-1, 0, 5, 5), (0, 0, 2**40, 1)):
        with pytest.raises(ValueError):  # noqa: PT011
            stoker.decode(path, region=region)
    with pytest.raises(stoker.StokerError):
        stoker.decode(path.read_bytes()[:200])
    with pytest.raises(stoker.StokerError, match="a.txt"):
        (tmp_path / "a.txt").write_bytes(b"no image at all")
        stoker.decode(tmp_path / "a.txt")
    with pytest.raises(FileNotFoundError):
        stoker.decode(tmp_path / "none.jpg")
    with pytest.raises(stoker.LimitReached, match="pixel"):
        stoker.decode(path, pixel_limit=3499)
    stoker.decode(path, pixel_limit=3500)


def test_decode_exif(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    image = io.BytesIO()
    picture(7, 70, 50).save(image, "JPEG", exif=exif)
    assert stoker.decode(image.getvalue()).shape == (50, 70, 3)
    assert stoker.decode(image.getvalue(), exif_rotate=True).shape == (70, 50, 3)


def test_order_indices():
    assert stoker.order_indices(5, kind="sequential").tolist() == [0, 1, 2, 3, 4]
    torchs = torch.randperm(100, generator=torch.Generator().manual_seed(12)).tolist()
    assert stoker.order_indices(100, seed=12).tolist() == torchs
    assert stoker.order_indices(100, seed=10, epoch=2).tolist() == torchs
    assert stoker.order_indices(100, seed=12, epoch=2, epoch_fixed=True).tolist() == torchs
    assert sorted(stoker.order_indices(1000, kind="shuffle", seed=1).tolist()) == list(range(1000))
    assert stoker.order_indices(9, kind="given", indices=[4, 2]).tolist() == [4, 2]
    assert set(stoker.order_indices(4, kind="weighted", weights=[0, 1, 0, 3], draws=50).tolist()) == {
        1,
        3,
    }
    with pytest.raises(ValueError, match="a value for each sample: 4, not 3"):
        stoker.order_indices(4, kind="weighted", weights=[1, 1, 1])
    with pytest.raises(TypeError, match="colour"):
        stoker.order_indices(4, colour=1)
    with pytest.raises(ValueError, match="out of range"):
        stoker.order_indices(4, rank=2**40)


def test_info():
    info = stoker.info()
    assert info["version"] == stoker.__version__ and info["cpus"] >= 1
    assert info["codec"]["JPEG"]["present"]
    assert set(info["library"]) == {"HDF5", "LMDB", "libcurl", "zstd", "libdeflate", "libsndfile"}
    assert all(library["detail"] for library in info["library"].values())
    assert str(info).startswith(f"stoker {stoker.__version__}")
    names = {name for name, help in _ext.ops() if help}
    assert {"resize", "random_resized_crop", "random_apply", "to_tensor", "normalize"} <= names


# ---- the extension module's own classes ----


def test_a_closed_loader_says_so(tree):
    loader = _ext.Loader(_ext.Dataset.open(tree), _ext.Pipeline("to_tensor"), workers=1)
    loader.start()
    loader.close()
    loader.close()
    for call in (loader.next, loader.start, loader.save, loader.stats, loader.ledger):
        with pytest.raises(ValueError, match="closed"):
            call()
    with pytest.raises(TypeError, match="no option 'colour'"):
        _ext.Loader(_ext.Dataset.open(tree), _ext.Pipeline("to_tensor"), colour=1)
    with pytest.raises(TypeError):
        _ext.Tensor()
