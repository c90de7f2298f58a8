# SPDX-License-Identifier: Apache-2.0
"""Trains on documents that are fetched one by one, with a new connection for each ($FAULTS_URL)."""

import os
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=80, batch_size=4, num_workers=2, step_ms=30)
BYTES, DOCUMENTS = 4096, 512


def fetch(index):
    first = index % DOCUMENTS * BYTES
    request = urllib.request.Request(
        os.environ["FAULTS_URL"], headers={"Range": f"bytes={first}-{first + BYTES - 1}"}
    )
    with urllib.request.urlopen(request) as answer:
        return torch.frombuffer(bytearray(answer.read()), dtype=torch.uint8), index


class Documents(Dataset):
    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        return fetch(index)

    def __getitems__(self, indices):
        if not args.fixed:
            return [self[index] for index in indices]
        with ThreadPoolExecutor(len(indices)) as pool:  # the requests of a batch at the same time
            return list(pool.map(fetch, indices))


def main():
    loader = DataLoader(Documents(), batch_size=args.batch_size, shuffle=True,
                        num_workers=args.num_workers)
    trainer = Trainer(args)
    for text, index in loader:
        trainer.step([index, text])
    trainer.finish()


if __name__ == "__main__":
    main()
