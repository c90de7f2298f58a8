# SPDX-License-Identifier: Apache-2.0
"""fidelity="fast" decodes large JPEGs at a reduced scale: how far that lies from exact."""
import pickle

import numpy as np
import pytest

import stoker
from stoker import transforms as T
from stoker._loader.frameworks import options_beyond_torch

synth = pytest.importorskip("stoker.synth")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return synth.make_folder(tmp_path_factory.mktemp("photos"), count=60, seed=5)


def epoch(photos, transform, fidelity, count=60):
    data = stoker.datasets.ImageFolder(photos, transform=transform)
    loader = stoker.DataLoader(data, batch_size=count, num_workers=1, seed=3, fidelity=fidelity, output="numpy")
    return next(iter(loader))[0].astype(np.int16)


# The bounds stand in the docstring of DataLoader and in the README: levels out of 255.
@pytest.mark.parametrize(
    "transform",
    [
        T.Compose([T.Resize(112), T.CenterCrop(112), T.PILToTensor()]),
        T.Compose([T.RandomResizedCrop(112), T.PILToTensor()]),
        T.Compose([T.RandomResizedCrop(64), T.PILToTensor()]),
        T.Compose([T.Resize(32), T.CenterCrop(32), T.PILToTensor()]),
    ],
    ids=["resize 112", "crop 112", "crop 64", "resize 32"],
)
def test_distance_from_exact(photos, transform):
    exact, fast = epoch(photos, transform, "exact"), epoch(photos, transform, "fast")
    apart = np.abs(exact - fast)
    print(f"mean {apart.mean():.2f}, worst image {apart.mean(axis=(1, 2, 3)).max():.2f}, max {apart.max()}")
    assert 0 < apart.mean() < 2
    assert apart.mean(axis=(1, 2, 3)).max() < 6
    assert apart.max() < 80


def test_images_that_are_not_twice_as_large_are_exact(photos):
    transform = T.Compose([T.Resize(1000), T.CenterCrop(1000), T.PILToTensor()])
    assert np.array_equal(epoch(photos, transform, "exact", 8), epoch(photos, transform, "fast", 8))


@pytest.mark.parametrize("hardware", ["known", "all", "off"])
def test_jpeg_hardware_changes_nothing_without_a_device(photos, hardware):
    """The JPEG hardware of a GPU decodes to the same pixels; without a GPU there is none."""
    data = stoker.datasets.ImageFolder(photos, T.Compose([T.RandomResizedCrop(64), T.PILToTensor()]))
    loader = stoker.DataLoader(data, batch_size=10, num_workers=1, seed=3, jpeg_hardware=hardware, output="numpy")
    assert loader.jpeg_hardware == hardware
    copy = pickle.loads(pickle.dumps(loader))  # noqa: S301
    assert copy.jpeg_hardware == hardware
    assert options_beyond_torch(loader)["jpeg_hardware"] == hardware
    plain = stoker.DataLoader(data, batch_size=10, num_workers=1, seed=3, output="numpy")
    assert plain.jpeg_hardware == "known"
    expected = next(iter(plain))[0]
    for one in (loader, copy):
        assert np.array_equal(next(iter(one))[0], expected)
