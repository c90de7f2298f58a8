# SPDX-License-Identifier: Apache-2.0
"""What arrives on the GPU is bit for bit what the CPU makes, for every op, type and layout."""

from __future__ import annotations

import pytest
import stoker
import torch
import torch.utils.data as tud
import torchvision.transforms as TV
from conftest import MEAN, STD, assert_same, load, on_cpu, reference
from stoker import transforms as T
from torchvision.datasets import ImageFolder

FLOATS = [T.ToTensor(), T.Normalize(MEAN, STD)]
PIPELINES = {
    "training": [T.RandomResizedCrop(224), T.RandomHorizontalFlip(), *FLOATS],
    "evaluation": [T.Resize(256), T.CenterCrop(224), *FLOATS],
    "bytes": [T.RandomResizedCrop(96), T.RandomHorizontalFlip(), T.RandomVerticalFlip(), T.PILToTensor()],
    "jitter": [T.RandomResizedCrop(96), T.ColorJitter(0.4, 0.4, 0.4, 0.2), *FLOATS],
    "simclr": [
        T.RandomResizedCrop(96, scale=(0.2, 1.0)),
        T.RandomHorizontalFlip(),
        T.RandomApply([T.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8),
        T.RandomGrayscale(0.3),
        T.RandomApply([T.GaussianBlur(9)], p=0.5),
        *FLOATS,
    ],
    "blur": [T.Resize((90, 110)), T.GaussianBlur((5, 23), sigma=3.0), T.PILToTensor()],
    "blur, then resize": [T.RandomResizedCrop(64), T.GaussianBlur(5), T.Resize((80, 48)), *FLOATS],
    "grey, three": [T.RandomResizedCrop(64), T.Grayscale(3), *FLOATS],
    "grey, one": [T.RandomResizedCrop(64), T.Grayscale(1), T.ToTensor()],
    "erasing": [T.RandomResizedCrop(64), *FLOATS, T.RandomErasing(p=0.9)],
    "erasing by noise": [T.RandomResizedCrop(64), *FLOATS, T.RandomErasing(p=0.9, value="random")],
    "erasing by values": [T.RandomResizedCrop(64), T.ToTensor(), T.RandomErasing(p=1, value=(0.1, -2.0, 7.0))],
    "erasing twice": [T.RandomResizedCrop(64), T.ToTensor(), T.RandomErasing(p=1), T.RandomErasing(p=1, value=3)],
    "crop alone": [T.RandomCrop(70, pad_if_needed=True), *FLOATS],
    "pad and crop": [T.Resize((64, 64)), T.RandomCrop(64, padding=8, padding_mode="reflect"), *FLOATS],
    "larger": [T.Resize((640, 333)), T.RandomHorizontalFlip(), T.PILToTensor()],
    "centre, too small": [T.CenterCrop((500, 480)), *FLOATS],
    "tiny": [T.RandomResizedCrop(1), *FLOATS],
    "values": [
        T.RandomResizedCrop(96),
        T.RandomInvert(),
        T.RandomPosterize(3),
        T.RandomSolarize(99.5),
        T.RandomAutocontrast(),
        T.RandomEqualize(),
        T.RandomAdjustSharpness(2),
        *FLOATS,
    ],
    "distorted": [
        T.RandomResizedCrop(96),
        T.RandomPhotometricDistort(),
        T.RandomOrder([T.RandomEqualize(), T.RandomInvert()]),
        *FLOATS,
    ],
    "randaugment": [
        T.RandomResizedCrop(96),
        T.RandomHorizontalFlip(),
        T.RandAugment(num_ops=3, magnitude=15),
        *FLOATS,
        T.RandomErasing(p=0.5),
    ],
    "augmented": [T.RandomResizedCrop((70, 96)), T.TrivialAugmentWide(fill=90), T.AutoAugment(), T.PILToTensor()],
    "warps": [
        T.RandomResizedCrop((90, 77)),
        T.RandomHorizontalFlip(),
        T.RandomRotation(90),
        T.RandomVerticalFlip(),
        T.ColorJitter(0.4, 0.4, 0.4, 0.2),
        T.RandomAffine(20, (0.1, 0.2), (0.5, 1.4), 10, interpolation="bilinear", fill=(7, 80, 200)),
        T.RandomHorizontalFlip(),
        T.RandomPerspective(p=0.8, interpolation="bicubic"),
        T.GaussianBlur(5),
        *FLOATS,
    ],
    "warps, grey": [
        T.RandomResizedCrop(64),
        T.Grayscale(1),
        T.RandomPerspective(p=1, interpolation="bilinear", fill=9),
        T.RandomEqualize(),
        T.RandomRotation(20),
        T.ToTensor(),
    ],
    "values, grey": [T.RandomResizedCrop(64), T.Grayscale(1), T.RandomEqualize(), T.RandomAdjustSharpness(0.3), T.ToTensor()],
    "flip and jitter": [T.RandomVerticalFlip(1), T.RandomResizedCrop(50), T.ColorJitter(hue=0.5), *FLOATS],
}


def pipeline(name):
    return T.Compose(PIPELINES[name])


@pytest.mark.parametrize("where", ["auto", "cpu", "cuda"])
@pytest.mark.parametrize("name", PIPELINES)
def test_every_pipeline(folder, name, where):
    loader = load(folder, pipeline(name), augment_on=where)
    assert_same(on_cpu(loader), reference(folder, pipeline(name)))
    assert loader.stats()["device"]["augment_on"] in ("cpu", "cuda")


@pytest.mark.parametrize("where", ["cpu", "cuda"])
@pytest.mark.parametrize("layout", [None, "channels_last"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["training", "simclr", "erasing by noise", "grey, one"])
def test_every_type_and_layout(folder, name, dtype, layout, where):
    options = {"dtype": dtype, "memory_format": layout}
    loader = load(folder, pipeline(name), augment_on=where, **options)
    for images, labels in loader:
        assert images.device == labels.device == torch.device("cuda", 0)
        assert images.dtype == getattr(torch, dtype) and labels.dtype == torch.int64
        if layout:
            assert images.is_contiguous(memory_format=torch.channels_last)
        else:
            assert images.is_contiguous()
    assert_same(on_cpu(load(folder, pipeline(name), augment_on=where, **options)),
                reference(folder, pipeline(name), **options))


@pytest.mark.parametrize("layout", [None, "channels_last"])
def test_bytes_in_both_layouts(folder, layout):
    got = on_cpu(load(folder, pipeline("bytes"), memory_format=layout, augment_on="cuda"))
    assert got[0][0].dtype == torch.uint8
    assert_same(got, reference(folder, pipeline("bytes"), memory_format=layout))


@pytest.mark.parametrize("filter_name", ["nearest", "bilinear", "bicubic", "box", "hamming", "lanczos"])
@pytest.mark.parametrize("size", [(60, 45), (200, 310)])
def test_every_filter(folder, filter_name, size):
    transform = T.Compose([T.Resize(size, filter_name), T.RandomHorizontalFlip(), T.PILToTensor()])
    assert_same(on_cpu(load(folder, transform, augment_on="cuda")), reference(folder, transform))


@pytest.mark.parametrize("pillow", [12, 13])
def test_both_ways_of_resizing(folder, pillow):
    transform = T.Compose([T.Resize((150, 120), "bicubic"), T.PILToTensor()])
    got = on_cpu(load(folder, transform, pillow=pillow, augment_on="cuda"))
    assert_same(got, reference(folder, transform, pillow=pillow))


def test_equal_to_torchvision(folder):
    """Pillow, torchvision and torch on the CPU against the GPU, without Stoker's CPU path between."""
    import PIL

    theirs = TV.Compose([TV.Resize(72), TV.CenterCrop(64), TV.ToTensor(), TV.Normalize(MEAN, STD)])
    ours = load(folder, theirs, shuffle=False, pillow=int(PIL.__version__.split(".")[0]), augment_on="cuda")
    assert_same(on_cpu(ours), on_cpu(tud.DataLoader(ImageFolder(folder, theirs), 16)))


@pytest.mark.parametrize("workers", [0, 1, 16])
@pytest.mark.parametrize("batch_size", [1, 7, 87])
def test_any_number_of_threads_and_any_batch(folder, workers, batch_size):
    got = on_cpu(load(folder, num_workers=workers, batch_size=batch_size))
    assert_same(got, reference(folder, batch_size=batch_size))


def test_batch_sampler(folder):
    sampler = [[1, 2, 3], [4], list(range(20, 60)), [5, 6]]
    options = {"batch_sampler": sampler, "batch_size": 1, "shuffle": None}
    assert_same(on_cpu(load(folder, **options)), reference(folder, **options))


def test_fast_fidelity_is_exact_there(folder):
    transform = T.Compose([T.RandomResizedCrop(32), T.PILToTensor()])
    assert_same(on_cpu(load(folder, transform, fidelity="fast")), reference(folder, transform))
    options = {"fidelity": "fast", "augment_on": "cpu"}
    assert_same(on_cpu(load(folder, transform, **options)), reference(folder, transform, fidelity="fast"))


def test_single_samples(folder):
    options = {"batch_size": None, "shuffle": None}
    got = [(image.cpu(), label) for image, label in load(folder, **options)]
    want = list(load(folder, device=None, **options))
    assert all(torch.equal(a, b) and c == d for (a, c), (b, d) in zip(got, want, strict=True))


def test_images_of_different_sizes_are_refused(folder):
    with pytest.raises((ValueError, stoker.StokerError), match="size"):
        load(folder, T.ToTensor())


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there is one GPU")
def test_the_second_gpu(folder):
    loader = load(folder, device="cuda:1")
    for images, labels in loader:
        assert images.device == labels.device == torch.device("cuda", 1)
    assert_same(on_cpu(load(folder, device=torch.device("cuda", 1))), reference(folder))
