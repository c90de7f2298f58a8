# SPDX-License-Identifier: Apache-2.0
"""What users write, for type checkers in strict mode (test_types.py)."""

from __future__ import annotations

from pathlib import Path

import stoker
import torch
from stoker import audio, datasets
from stoker import transforms as T
from torch import Tensor, nn
from torch.utils.data import Dataset


class Squares(Dataset[tuple[int, int]]):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> tuple[int, int]:
        return index, index * index


def pictures(root: Path) -> stoker.DataLoader[list[Tensor]]:
    steps = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor()])
    data = datasets.ImageFolder(root, transform=steps)
    return stoker.DataLoader(
        data,
        batch_size=64,
        shuffle=True,
        num_workers="auto",
        drop_last=True,
        device="cuda",
        dtype=torch.float16,
        memory_format=torch.channels_last,
        on_error="skip",
        jpeg_hardware="known",
        max_memory="256MiB",
    )


def train(model: nn.Module, root: Path, epochs: int) -> float:
    loader = pictures(root)
    loss = torch.zeros(())
    for epoch in range(epochs):
        loader.set_epoch(epoch)
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images), labels)
    state = loader.state_dict()
    loader.load_state_dict(state)
    stats: stoker.Stats = loader.stats()
    plan: stoker.Plan = loader.explain()
    print(len(loader), stats["samples"], plan.rows[0].where, loader.bad_samples(), loader.rank)
    return loss.item()


def others(root: Path) -> None:
    sounds = stoker.DataLoader(datasets.AudioFolder(root, transform=audio.MelSpectrogram(16_000)), 8)
    waves, labels = next(iter(sounds))
    print(waves.shape, labels.sum().item())
    columns = next(iter(stoker.DataLoader(datasets.WebDataset("shards.tar"), 8, output="numpy")))
    print(len(columns))
    for number, square in stoker.DataLoader(Squares(), 4, num_workers=2, seed_by="sample"):
        print(number, square)
    print(stoker.decode(root / "a.jpg").shape, stoker.cpus(), stoker.info()["version"])
    with stoker.lazy_images():
        print(stoker.order_indices(8, kind="torch").tolist())
    try:
        stoker.open(root)
    except stoker.StokerError as error:
        print(error)
