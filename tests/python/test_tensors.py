# SPDX-License-Identifier: Apache-2.0
"""A batch's tensors: DLPack, buffers, and whose memory they share."""

from __future__ import annotations

import gc
import warnings
import zlib

import numpy as np
import pytest
import stoker
import torch
from stoker import _ext
from stoker import transforms as T


def one_batch(tree, **options):
    loader = _ext.Loader(
        _ext.Dataset.open(tree),
        _ext.Pipeline("center_crop(size=8); to_tensor"),
        batch_size=4,
        workers=0,
        **options,
    )
    loader.start()
    return loader.next()


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 1), (2, 0)])
def test_dlpack_versions(tree, version):
    images = one_batch(tree).images
    capsule = images.__dlpack__(max_version=version)
    assert ("versioned" in repr(capsule)) == (version is not None and version[0] >= 1)
    tensor = torch.utils.dlpack.from_dlpack(capsule)
    assert tensor.shape == (4, 3, 8, 8) and tensor.data_ptr() == np.asarray(images).ctypes.data
    del capsule
    images.__dlpack__(max_version=version)  # a capsule that nobody takes
    assert images.__dlpack_device__() == (1, 0)


def test_dlpack_refuses_what_it_cannot_do(tree):
    images = one_batch(tree).images
    for arguments in ({"stream": 1}, {"copy": True}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError):
            images.__dlpack__(**arguments)


def test_tensors_share_and_keep_memory(tree):
    batch = one_batch(tree)
    images, again = torch.from_dlpack(batch.images), np.asarray(batch.images)
    images[0, 0, 0, 0] = 77
    assert again[0, 0, 0, 0] == 77
    samples = np.asarray(batch.samples)
    expected = images.clone()
    del batch
    gc.collect()
    for _ in range(3):
        one_batch(tree)
    assert torch.equal(images, expected) and (again == expected.numpy()).all()
    assert samples.tolist() == [0, 1, 2, 3]


def test_buffers(tree):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in ("float32", "float16"):
            assert np.asarray(one_batch(tree, dtype=dtype).images).dtype == dtype
    last = one_batch(tree, layout="nhwc").images
    assert last.shape == (4, 3, 8, 8) and last.stride == (192, 1, 24, 3)
    assert (np.asarray(last) == np.asarray(one_batch(tree).images)).all()
    with pytest.raises(BufferError):
        zlib.crc32(last)
    assert len(bytes(one_batch(tree).images)) == 4 * 3 * 8 * 8 * 4
    half = one_batch(tree, dtype="bfloat16").images
    with pytest.raises(BufferError, match="bfloat16"):
        memoryview(half)
    assert (np.asarray(half.bits()) == torch.from_dlpack(half).view(torch.uint16).numpy()).all()


def test_bfloat16_in_numpy(tree):
    data = stoker.datasets.ImageFolder(tree, T.Compose([T.CenterCrop(8), T.ToTensor()]))
    iterator = iter(stoker.DataLoader(data, 4, dtype="bfloat16", output="numpy"))
    try:
        import ml_dtypes
    except ImportError:
        with pytest.raises(TypeError, match="ml_dtypes"):
            next(iterator)
        return
    images, _ = next(iterator)
    assert images.dtype == ml_dtypes.bfloat16
    assert (
        images.astype(np.float32)
        == torch.from_dlpack(one_batch(tree, dtype="bfloat16").images).float().numpy()
    ).all()
