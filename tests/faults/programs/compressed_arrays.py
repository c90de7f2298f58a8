# SPDX-License-Identifier: Apache-2.0
"""Medical volumes in compressed npz files."""

import numpy as np
import torch
from common import Trainer, data_folder, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=130, batch_size=8, num_workers=2, step_ms=12)


def make(folder):
    rng = np.random.default_rng(0)
    for i in range(24):
        volume = rng.integers(0, 60, (64, 128, 128)).astype(np.uint8)
        np.savez_compressed(folder / f"{i:02}.npz", volume=volume)
        np.save(folder / f"{i:02}.npy", volume)


class Volumes(Dataset):
    def __init__(self):
        folder = data_folder("compressed_arrays", make)
        self.paths = sorted(folder.glob("*.npy" if args.fixed else "*.npz"))

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        found = np.load(self.paths[index % len(self.paths)])
        volume = found if args.fixed else found["volume"]
        return torch.from_numpy(volume[::4].copy()), index


def main():
    loader = DataLoader(Volumes(), batch_size=args.batch_size, shuffle=True,
                        num_workers=args.num_workers)
    trainer = Trainer(args)
    for volumes, index in loader:
        trainer.step([index, volumes])
    trainer.finish()


if __name__ == "__main__":
    main()
