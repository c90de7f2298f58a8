# SPDX-License-Identifier: Apache-2.0
"""Recordings of which one in forty is very long, fetched from an archive that takes its time by their length."""

import time

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=160, batch_size=4, num_workers=4, step_ms=25)


class Recordings(Dataset):
    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        time.sleep(0.500 if index * 2654435761 % 4294967296 < 4294967296 // 40 else 0.005)
        return torch.full((16000,), float(index))


def main():
    loader = DataLoader(Recordings(), batch_size=args.batch_size, num_workers=args.num_workers,
                        prefetch_factor=args.prefetch_factor, in_order=not args.any_order)
    trainer = Trainer(args)
    for clips in loader:
        trainer.step(clips)
    trainer.finish()


if __name__ == "__main__":
    main()
