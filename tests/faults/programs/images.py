# SPDX-License-Identifier: Apache-2.0
"""Trains on small photographs: decoded, and cropped."""

import numpy as np
import torch
from common import Trainer, data_folder, make_jpegs, options
from PIL import Image
from torch.utils.data import DataLoader, Dataset

args = options(steps=120, batch_size=8, step_ms=25)


class Photos(Dataset):
    def __init__(self):
        self.paths = sorted(data_folder("photos", lambda at: make_jpegs(at, 100, 512, 384)).iterdir())

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        image = Image.open(self.paths[index % len(self.paths)]).convert("RGB").crop((40, 40, 264, 264))
        return torch.from_numpy(np.array(image)), index


def main():
    loader = DataLoader(Photos(), batch_size=args.batch_size, shuffle=True, num_workers=args.num_workers,
                        prefetch_factor=args.prefetch_factor)
    trainer = Trainer(args)
    for images, index in loader:
        trainer.step([index, images])
    trainer.finish()


if __name__ == "__main__":
    main()
