# SPDX-License-Identifier: Apache-2.0
"""What a dataset keeps in memory is part of a loader's max_memory."""

from __future__ import annotations

import gzip
import io
import tarfile

import h5py
import numpy as np
import pytest
import stoker
from stoker import transforms as T

MIB = 1 << 20


@pytest.fixture(scope="module")
def chunked(tmp_path_factory):
    """Images in compressed chunks of 16, about 2 MiB each."""
    path = tmp_path_factory.mktemp("h5") / "images.h5"
    pixels = np.random.default_rng(0).integers(0, 32, (256, 208, 208, 3), dtype=np.uint8)
    with h5py.File(path, "w") as file:
        file.create_dataset(
            "images", data=pixels, chunks=(16, 208, 208, 3), compression="gzip", compression_opts=1
        )
        file["labels"] = np.arange(256)
    return path, pixels


def test_chunks_are_kept_within_an_eighth(chunked):
    path, pixels = chunked
    data = stoker.datasets.HDF5(path, transform=T.Compose([T.CenterCrop(64)]))
    loader = stoker.DataLoader(data, 16, shuffle=True, num_workers=2, max_memory="64MiB", output="numpy")
    assert sum(len(labels) for _, labels in loader) == len(pixels)
    memory = loader.stats()["memory"]
    # And a chunk in use by each thread that reads: the workers, and those that read ahead of them.
    assert 0 < memory["dataset_bytes"] <= 8 * MIB + 8 * 2.2 * MIB
    assert memory["peak_bytes"] <= memory["allowed_bytes"]


def test_unpacked_archives_count(tmp_path):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for k in range(8):
            ppm = b"P6\n500 500\n255\n" + bytes([k]) * 750_000
            info = tarfile.TarInfo(f"{k:03}.ppm")
            info.size = len(ppm)
            tar.addfile(info, io.BytesIO(ppm))
    path = tmp_path / "packed.tar.gz"
    path.write_bytes(gzip.compress(out.getvalue(), 1))
    data = stoker.open(path, transform=T.Compose([T.Resize((32, 32)), T.ToTensor()]))
    loader = stoker.DataLoader(data, 4, num_workers=2, max_memory="32MiB")
    assert len(list(loader)) == 2
    memory = loader.stats()["memory"]
    assert 6_000_000 < memory["dataset_bytes"] < 9_000_000 < memory["allowed_bytes"] == 32 * MIB
    with pytest.raises(stoker.LimitReached, match=r"the dataset holds .* max_memory \(8.4 MB\)"):
        stoker.DataLoader(data, 4, max_memory="8MiB")
