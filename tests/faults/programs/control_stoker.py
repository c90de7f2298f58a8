# SPDX-License-Identifier: Apache-2.0
"""Healthy: photographs in a folder, brought by Stoker's loader."""

import stoker
from common import Trainer, data_folder, make_jpegs, options
from stoker import transforms as T

args = options(steps=40, epochs=5, batch_size=8, num_workers=2, step_ms=30)


def make(folder):
    for name in ("ash", "coal"):
        (folder / name).mkdir()
        make_jpegs(folder / name, 160, 256, 192)


def main():
    photos = stoker.datasets.ImageFolder(
        data_folder("photo_folder", make), transform=T.Compose([T.RandomResizedCrop(128), T.ToTensor()])
    )
    loader = stoker.DataLoader(photos, batch_size=args.batch_size, shuffle=True, seed=1,
                               num_workers=args.num_workers)
    trainer = Trainer(args)
    for epoch in range(args.epochs):
        loader.set_epoch(epoch)
        for images, labels in loader:
            trainer.step([labels, images])
    trainer.finish()


if __name__ == "__main__":
    main()
