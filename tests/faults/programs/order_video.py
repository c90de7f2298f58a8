# SPDX-License-Identifier: Apache-2.0
"""Clips of very different length, one a batch, decoded by a separate device in a time that follows their length."""

import math
import time

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=180, batch_size=1, num_workers=5, step_ms=30)


class Clips(Dataset):
    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        share = (index * 2654435761 % 4294967296 + 0.5) / 4294967296
        time.sleep(min(0.020 * (-math.log(share)) ** 3, 1.0))
        return torch.full((3, 8, 64, 64), float(index))


def main():
    loader = DataLoader(Clips(), batch_size=args.batch_size, num_workers=args.num_workers,
                        prefetch_factor=args.prefetch_factor, in_order=not args.any_order)
    trainer = Trainer(args)
    for clips in loader:
        trainer.step(clips)
    trainer.finish()


if __name__ == "__main__":
    main()
