# SPDX-License-Identifier: Apache-2.0
"""Trains on text that is split into word pieces in Python, again in every epoch."""

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=120, batch_size=16, step_ms=25, words=400)
WORDS = ["furnace", "stoker", "feeding", "coal", "steam", "engines", "unbelievably", "hot", "water"]


class Documents(Dataset):
    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        if args.fixed:  # done once, beforehand, and stored
            return torch.full((args.words,), index % 997)
        text = " ".join(WORDS[(index * 7 + i * i) % len(WORDS)] for i in range(args.words))
        pieces = [index % 997]
        for word in text.split():
            while word:
                head, word = word[:4], word[4:]
                pieces.append(sum(ord(letter) * 31**i for i, letter in enumerate(head)) % 30000)
        return torch.tensor(pieces[: args.words])


def main():
    loader = DataLoader(Documents(), batch_size=args.batch_size, shuffle=True,
                        num_workers=args.num_workers)
    trainer = Trainer(args)
    for tokens in loader:
        trainer.step(tokens)
    trainer.finish()


if __name__ == "__main__":
    main()
