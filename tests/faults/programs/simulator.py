# SPDX-License-Identifier: Apache-2.0
"""Trains on scenes of a simulator that takes 10 ms for each, on hardware of its own."""

import time

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=120, batch_size=8, num_workers=2, step_ms=20)


class Scenes(Dataset):
    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        time.sleep(0.010)
        return torch.full((3, 32, 32), float(index))


def main():
    loader = DataLoader(Scenes(), batch_size=args.batch_size, num_workers=args.num_workers,
                        prefetch_factor=args.prefetch_factor)
    trainer = Trainer(args)
    for scenes in loader:
        trainer.step(scenes)
    trainer.finish()


if __name__ == "__main__":
    main()
