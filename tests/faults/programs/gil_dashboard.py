# SPDX-License-Identifier: Apache-2.0
"""A thread beside the training loop computes figures for a dashboard, in Python, without a pause."""

import math
import threading

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=120, batch_size=8, num_workers=2, step_ms=12)


class Items(Dataset):
    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        return torch.full((3, 32, 32), float(index))


def dashboard():
    while True:
        figures = [math.sqrt(i) for i in range(5000)]
        sorted(figures, key=lambda figure: -figure)


def main():
    loader = DataLoader(Items(), batch_size=args.batch_size, num_workers=args.num_workers)
    if not args.fixed:
        threading.Thread(target=dashboard, daemon=True).start()
    trainer = Trainer(args, parts=3)
    for items in loader:
        trainer.step(items)
    trainer.finish()


if __name__ == "__main__":
    main()
