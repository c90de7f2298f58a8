# SPDX-License-Identifier: Apache-2.0
"""Several epochs over a dataset that would fit into memory, were the job allowed as much."""

import numpy as np
import torch
from common import Trainer, data_folder, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=60, epochs=3, batch_size=8, num_workers=2, step_ms=15, persistent=True)
ROWS, VALUES = 480, 1 << 20


def make(folder):
    rng = np.random.default_rng(0)
    for i in range(ROWS):
        rng.integers(0, 256, VALUES, np.uint8).tofile(folder / f"{i:04}.bin")


class Volumes(Dataset):
    def __init__(self):
        self.paths = sorted(data_folder("cache_arrays", make).iterdir())

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        volume = np.fromfile(self.paths[index % ROWS], np.uint8)
        return torch.from_numpy(volume[::16].copy()), index


def main():
    loader = DataLoader(Volumes(), batch_size=args.batch_size, num_workers=args.num_workers,
                        persistent_workers=args.persistent)
    trainer = Trainer(args, warm_epochs=1)
    for _ in range(args.epochs):
        for volumes, index in loader:
            trainer.step([index, volumes])
    trainer.finish()


if __name__ == "__main__":
    main()
