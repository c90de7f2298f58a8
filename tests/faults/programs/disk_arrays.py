# SPDX-License-Identifier: Apache-2.0
"""Trains on float32 images in one large file, read once, one after the other."""

import numpy as np
import torch
from common import Trainer, data_folder, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=110, batch_size=8, num_workers=2, step_ms=20)
SIDE, ROWS = 256, 1000


def make(folder):
    rng = np.random.default_rng(0)
    with open(folder / "float32.bin", "wb") as wide, open(folder / "uint8.bin", "wb") as narrow:
        for _ in range(ROWS):
            image = rng.integers(0, 256, SIDE * SIDE, np.uint8)
            narrow.write(image)
            wide.write(image.astype(np.float32) / 255)


class Images(Dataset):
    def __init__(self):
        name = "uint8.bin" if args.fixed else "float32.bin"
        self.file = data_folder("disk_arrays", make) / name
        self.type = np.uint8 if args.fixed else np.float32

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        count = SIDE * SIDE
        at = index % ROWS * count * np.dtype(self.type).itemsize
        return torch.from_numpy(np.fromfile(self.file, self.type, count, offset=at)), index


def main():
    loader = DataLoader(Images(), batch_size=args.batch_size, num_workers=args.num_workers)
    trainer = Trainer(args)
    for images, index in loader:
        trainer.step([index, images])
    trainer.finish()


if __name__ == "__main__":
    main()
