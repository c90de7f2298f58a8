# SPDX-License-Identifier: Apache-2.0
"""Rows of a small table, looked up by four workers that have next to nothing to do."""

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=3000, batch_size=4, num_workers=4, step_ms=0)


class Table(Dataset):
    def __init__(self):
        self.rows = [[float(i), float(i % 7), float(i % 11)] for i in range(args.steps * args.batch_size)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        *features, label = self.rows[index]
        return torch.tensor(features), label


def main():
    loader = DataLoader(Table(), batch_size=args.batch_size, shuffle=True, num_workers=args.num_workers)
    trainer = Trainer(args)
    for features, _ in loader:
        trainer.step(features)
    trainer.finish()


if __name__ == "__main__":
    main()
