# SPDX-License-Identifier: Apache-2.0
"""Annotated text as lists of tuples: the training process unpickles tens of thousands of objects for every batch."""

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=80, batch_size=64, num_workers=2, step_ms=15)
TOKENS = 1200


class Annotations(Dataset):
    def __init__(self):
        spans = [[(float(i * j), 5 * j, 5 * j + 4) for j in range(TOKENS)] for i in range(8)]
        self.documents = [torch.tensor(span) for span in spans] if args.fixed else spans

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        return self.documents[index % len(self.documents)]


def separate(documents):
    return [[(score, first, last) for score, first, last in document] for document in documents]


def main():
    collate = torch.stack if args.fixed else separate
    loader = DataLoader(Annotations(), batch_size=args.batch_size, num_workers=args.num_workers,
                        collate_fn=collate)
    trainer = Trainer(args)
    for batch in loader:
        trainer.step(batch)
    trainer.finish()


if __name__ == "__main__":
    main()
