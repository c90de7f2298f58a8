# SPDX-License-Identifier: Apache-2.0
"""Batches of 8 MB, of which four are under way: more than a small /dev/shm holds."""

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=120, batch_size=8, num_workers=2, step_ms=20)


class Volumes(Dataset):
    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        return torch.full((1 << 18,), float(index))


def main():
    loader = DataLoader(Volumes(), batch_size=args.batch_size, num_workers=args.num_workers,
                        prefetch_factor=args.prefetch_factor)
    trainer = Trainer(args)
    for volumes in loader:
        trainer.step(volumes)
    trainer.finish()


if __name__ == "__main__":
    main()
