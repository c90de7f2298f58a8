# SPDX-License-Identifier: Apache-2.0
"""Trains on thumbnails: a file of a few kilobytes for each, in random order."""

import io

import numpy as np
import torch
from common import Trainer, data_folder, options, picture
from PIL import Image
from torch.utils.data import DataLoader, Dataset

args = options(steps=110, batch_size=16, num_workers=4, step_ms=15)
FILES = 1800


def make(folder):
    with open(folder / "pack.bin", "wb") as pack:
        ends = []
        for i in range(FILES):
            data = io.BytesIO()
            Image.fromarray(picture(i, 72, 72)).save(data, "JPEG", quality=85)
            (folder / f"{i:05}.jpg").write_bytes(data.getvalue())
            pack.write(data.getvalue())
            ends.append(pack.tell())
    np.save(folder / "ends.npy", np.array([0, *ends]))


class Thumbnails(Dataset):
    def __init__(self):
        self.folder = data_folder("small_images", make)
        self.ends = np.load(self.folder / "ends.npy").tolist()

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        number = index % FILES
        if args.fixed:  # one shard, read from front to back
            with open(self.folder / "pack.bin", "rb") as pack:
                pack.seek(self.ends[number])
                data = pack.read(self.ends[number + 1] - self.ends[number])
        else:
            data = (self.folder / f"{number:05}.jpg").read_bytes()
        return torch.from_numpy(np.array(Image.open(io.BytesIO(data)))), index


def main():
    loader = DataLoader(Thumbnails(), batch_size=args.batch_size, shuffle=not args.fixed,
                        num_workers=args.num_workers)
    trainer = Trainer(args)
    for images, index in loader:
        trainer.step([index, images])
    trainer.finish()


if __name__ == "__main__":
    main()
