# SPDX-License-Identifier: Apache-2.0
"""Trains on records of a shard in an object store, one ranged request for each ($FAULTS_URL; connections are kept)."""

import http.client
import os
from urllib.parse import urlsplit

import torch
from common import Trainer, options
from torch.utils.data import DataLoader, Dataset

args = options(steps=100, batch_size=4, num_workers=4, step_ms=25)
BYTES, RECORDS = 32768, 256


class Records(Dataset):
    def __init__(self):
        self.url = urlsplit(os.environ["FAULTS_URL"])
        self.link = None

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        if self.link is None:
            self.link = http.client.HTTPConnection(self.url.netloc)
        first = index % RECORDS * BYTES
        self.link.request("GET", self.url.path, headers={"Range": f"bytes={first}-{first + BYTES - 1}"})
        data = bytearray(self.link.getresponse().read())
        return torch.frombuffer(data, dtype=torch.uint8), index


def main():
    loader = DataLoader(Records(), batch_size=args.batch_size, num_workers=args.num_workers)
    trainer = Trainer(args)
    for records, index in loader:
        trainer.step([index, records])
    trainer.finish()


if __name__ == "__main__":
    main()
