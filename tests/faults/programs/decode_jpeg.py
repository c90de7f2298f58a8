# SPDX-License-Identifier: Apache-2.0
"""Photographs of four megapixels, decoded whole and then made small."""

import numpy as np
import torch
from common import Trainer, data_folder, make_jpegs, options
from PIL import Image
from torch.utils.data import DataLoader, Dataset

args = options(steps=130, batch_size=3, num_workers=2, step_ms=12)


class Photos(Dataset):
    def __init__(self):
        large = data_folder("jpeg_large", lambda at: make_jpegs(at, 24, 2400, 1600))
        small = data_folder("jpeg_small", lambda at: make_jpegs(at, 24, 300, 200))
        self.paths = sorted((small if args.fixed else large).iterdir())

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        image = Image.open(self.paths[index % len(self.paths)]).convert("RGB")
        return torch.from_numpy(np.array(image.resize((224, 224), Image.Resampling.NEAREST))), index


def main():
    loader = DataLoader(Photos(), batch_size=args.batch_size, shuffle=True, num_workers=args.num_workers)
    trainer = Trainer(args)
    for images, index in loader:
        trainer.step([index, images])
    trainer.finish()


if __name__ == "__main__":
    main()
