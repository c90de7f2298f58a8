# SPDX-License-Identifier: Apache-2.0
"""Several epochs over the rows of a mapped file, with less memory for its pages than it has."""

import numpy as np
import torch
from common import Trainer, data_folder, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=60, epochs=3, batch_size=16, num_workers=2, step_ms=15, persistent=True)
ROWS, VALUES = 960, 1 << 19


def make(folder):
    rng = np.random.default_rng(0)
    with open(folder / "rows.bin", "wb") as out:
        for _ in range(ROWS):
            out.write(rng.integers(0, 256, VALUES, np.uint8))


class Rows(Dataset):
    def __init__(self):
        path = data_folder("cache_memmap", make) / "rows.bin"
        self.rows = np.memmap(path, np.uint8, "r", shape=(ROWS, VALUES))

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        return torch.from_numpy(self.rows[index % ROWS, ::16].copy()), index


def main():
    loader = DataLoader(Rows(), batch_size=args.batch_size, num_workers=args.num_workers,
                        persistent_workers=args.persistent)
    trainer = Trainer(args, warm_epochs=1)
    for _ in range(args.epochs):
        for rows, index in loader:
            trainer.step([index, rows])
    trainer.finish()


if __name__ == "__main__":
    main()
