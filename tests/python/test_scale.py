# SPDX-License-Identifier: Apache-2.0
"""Many workers, many archives, few files allowed."""

from __future__ import annotations

import io
import os
import tarfile
import time

from conftest import WITHOUT_TORCH, run_python

MANY_WORKERS = """
import os, resource, sys
import stoker, torch
from stoker import transforms as T

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
data = stoker.datasets.ImageFolder({tree!r}, T.Compose([T.RandomResizedCrop(24), T.ToTensor()]))

def epochs(workers):
    loader = stoker.DataLoader(data, batch_size=4, num_workers=workers, shuffle=True, seed=3)
    return [(x.clone(), y.clone()) for _ in range(2) for x, y in loader], loader.stats()["workers"]

one, _ = epochs(1)
for workers in (128, 129):
    many, started = epochs(workers)
    assert started == workers, started
    assert len(one) == len(many) and all(torch.equal(a, c) and torch.equal(b, d) for (a, b), (c, d) in zip(one, many))
print("same")
"""


def test_128_workers_with_1024_files(tree):
    run = run_python(MANY_WORKERS.format(tree=str(tree)))
    assert run.stdout == "same\n", run.stderr


MANY_ARCHIVES = """
import resource
import stoker

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
for _ in range(2):
    data = stoker.datasets.WebDataset({pattern!r}, fields=("cls",))
    loader = stoker.DataLoader(data, batch_size=50, num_workers=4, shuffle=True, seed=1)
    labels = sorted(int(x) for batch in loader for x in batch[0])
    assert labels == list(range(1000)), labels[:20]
print("all")
"""


def test_more_archives_than_files_allowed(tmp_path):
    for shard in range(500):
        with tarfile.open(tmp_path / f"{shard:04d}.tar", "w") as archive:
            for k in range(2):
                text = str(2 * shard + k).encode()
                member = tarfile.TarInfo(f"{k}.cls")
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text))
        os.utime(tmp_path / f"{shard:04d}.tar", (1e9, 1e9))
    time.sleep(2.2)  # what changed a moment ago is not kept
    run = run_python(WITHOUT_TORCH + MANY_ARCHIVES.format(pattern=str(tmp_path / "*.tar")))
    assert run.stdout == "all\n", run.stderr
    assert (tmp_path / "0000.tar.all.stoker-index").exists()
