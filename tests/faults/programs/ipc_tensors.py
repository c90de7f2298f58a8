# SPDX-License-Identifier: Apache-2.0
"""Samples of sixty small tensors, handed over by the workers as they are: thousands of objects for every batch."""

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=80, batch_size=16, num_workers=2, step_ms=15)
FIELDS = [f"field_{i:02}" for i in range(60)]


class Sensors(Dataset):
    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        return torch.full((len(FIELDS), 4), float(index))


def as_they_are(samples):
    return [dict(zip(FIELDS, sample.unbind(), strict=True)) for sample in samples]


def main():
    collate = torch.stack if args.fixed else as_they_are
    loader = DataLoader(Sensors(), batch_size=args.batch_size, num_workers=args.num_workers,
                        collate_fn=collate)
    trainer = Trainer(args)
    for batch in loader:
        trainer.step(batch)
    trainer.finish()


if __name__ == "__main__":
    main()
