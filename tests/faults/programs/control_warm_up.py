# SPDX-License-Identifier: Apache-2.0
"""Healthy: the first batches come late, while the workers' caches fill, and all others in time."""

import time

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=260, batch_size=8, num_workers=2, step_ms=25)


class Records(Dataset):
    def __init__(self):
        self.cold = 48

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        if self.cold:
            self.cold -= 1
            time.sleep(0.015)
        return torch.full((3, 32, 32), float(index))


def main():
    loader = DataLoader(Records(), batch_size=args.batch_size, num_workers=args.num_workers)
    trainer = Trainer(args)
    for records in loader:
        trainer.step(records)
    trainer.finish()


if __name__ == "__main__":
    main()
