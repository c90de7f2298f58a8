# SPDX-License-Identifier: Apache-2.0
"""Users' own datasets give the same bytes as with torch, for the same seed, number of workers and library versions:
whole epochs of dataset classes as training code has them, and afterwards the generators stand where torch leaves them."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest
import stoker
import torch
from torch.utils.data import WeightedRandomSampler

pytest.importorskip("torchvision")
import own_datasets as own  # noqa: E402
import own_images  # noqa: E402
from own_files import make_files  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")
warnings.filterwarnings("ignore", message="This DataLoader will create")

# What each class is loaded with; `needs` is a package that it imports.
CASES = {
    "segmentation by seed": dict(data=own_images.SegmentationBySeed, batch_size=4, shuffle=True),
    "segmentation by get_params": dict(data=own_images.SegmentationByParams, batch_size=4, shuffle=True),
    "segmentation with v2": dict(data=own_images.SegmentationV2, batch_size=5),
    "SimCLR": dict(data=own_images.SimCLR, batch_size=6, shuffle=True, drop_last=True),
    "multi-crop": dict(data=own_images.MultiCrop, batch_size=4, shuffle=True),
    "siamese": dict(data=own_images.Siamese, batch_size=8),
    "triplets": dict(data=own_images.Triplet, batch_size=7, shuffle=True),
    "LMDB": dict(data=own.LmdbImages, batch_size=6, shuffle=True, needs="lmdb"),
    "HDF5": dict(data=own.Hdf5Images, batch_size=6, shuffle=True, needs="h5py"),
    "zip": dict(data=own.ZipImages, batch_size=5, shuffle=True),
    "CSV": dict(data=own.CsvLabels, batch_size=6, shuffle=True),
    "npy": dict(data=own.NpyArrays, batch_size=8, shuffle=True, worker_init_fn=own.seed_worker),
    "video": dict(data=own.VideoFrames, batch_size=3, shuffle=True),
    "audio": dict(data=own.Audio, batch_size=6, shuffle=True, needs="soundfile"),
    "detection": dict(data=own_images.Detection, batch_size=4, shuffle=True, collate_fn=own_images.detection_collate),
    "VOC": dict(data=own_images.Voc, batch_size=4, shuffle=True, collate_fn=own_images.detection_collate),
    "shards": dict(data=own.Shards, batch_size=4),
    "WebDataset-like": dict(data=own.WebShards, batch_size=4),
    "in memory": dict(data=own.InMemory, batch_size=6, shuffle=True, keep=True),
    "captions": dict(data=own.Captions, batch_size=6, shuffle=True, collate_fn=own.caption_collate),
    "few-shot episodes": dict(data=own.Photos, episodes=True),
    "mixup": dict(data=own.Photos, batch_size=6, shuffle=True, collate_fn=own.MixupCollate()),
    "weighted": dict(data=own.Photos, batch_size=6, weighted=True, seeded=True),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("own"))


def plain(value):
    """A value as one that == compares, with the types of all that it holds."""
    if isinstance(value, torch.Tensor):
        return type(value), value.dtype, value.shape, value.contiguous().view(-1).numpy().tobytes()
    if isinstance(value, np.ndarray):
        return np.ndarray, value.dtype, value.shape, value.tobytes()
    if isinstance(value, dict):
        return dict, [(key, plain(one)) for key, one in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [plain(one) for one in value]
    return type(value), value


def generators():
    return torch.get_rng_state().tolist(), random.getstate(), [plain(one) for one in np.random.get_state()]


def two_epochs(kind, root, workers, data, needs="", keep=False, episodes=False, weighted=False, seeded=False, **options):
    """All batches of two epochs, and where the generators stand after each."""
    torch.manual_seed(31)
    random.seed(32)
    np.random.seed(33)
    dataset = data(root)
    if seeded:
        options["generator"] = torch.Generator().manual_seed(0)
    if episodes:
        options["batch_sampler"] = own.FewShot(dataset.labels)
    if weighted:
        options["sampler"] = WeightedRandomSampler([1 + label for label in dataset.labels], len(dataset))
    if keep and workers:
        options["persistent_workers"] = True
    loader = kind(dataset, num_workers=workers, **options)
    out = []
    for _ in range(2):
        out.append(([plain(batch) for batch in loader], generators()))
    return out


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", CASES)
def test_an_epoch_has_the_bytes_that_torch_gives(root, name, workers):
    case = CASES[name]
    if "needs" in case:
        pytest.importorskip(case["needs"])
    theirs = two_epochs(torch.utils.data.DataLoader, root, workers, **case)
    ours = two_epochs(stoker.DataLoader, root, workers, **case)
    assert all(len(batches) > 2 for batches, _ in theirs)
    for epoch, ((expected, state), (got, ended)) in enumerate(zip(theirs, ours, strict=True)):
        different = [n for n, (a, b) in enumerate(zip(expected, got, strict=True)) if a != b]
        assert not different, f"epoch {epoch}: batches {different} of {len(got)} differ"
        assert ended == state, f"the generators stand elsewhere after epoch {epoch}"


@pytest.mark.parametrize("workers", [0, 2])
def test_other_seeds_give_other_batches(root, workers):
    """The comparison above would notice other draws."""
    case = CASES["segmentation by seed"]
    one = two_epochs(torch.utils.data.DataLoader, root, workers, **case)
    other = two_epochs(torch.utils.data.DataLoader, root, 1, **case)
    assert one[0][0] != one[1][0] and one[0][0] != other[0][0]
