# SPDX-License-Identifier: Apache-2.0
"""Healthy: no workers, and none needed, since a batch is a slice of a tensor."""

import torch
from common import Trainer, options
from torch.utils.data import BatchSampler, DataLoader, Dataset, SequentialSampler

args = options(steps=200, batch_size=64, num_workers=0, step_ms=25)


class Rows(Dataset):
    def __init__(self):
        self.rows = torch.arange(args.steps * args.batch_size, dtype=torch.float32)[:, None].repeat(1, 32)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, indices):
        return self.rows[indices[0] : indices[-1] + 1]


def main():
    dataset = Rows()
    batches = BatchSampler(SequentialSampler(dataset), args.batch_size, drop_last=False)
    loader = DataLoader(dataset, sampler=batches, batch_size=None, num_workers=args.num_workers)
    trainer = Trainer(args)
    for rows in loader:
        trainer.step(rows)
    trainer.finish()


if __name__ == "__main__":
    main()
