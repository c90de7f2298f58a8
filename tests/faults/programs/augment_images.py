# SPDX-License-Identifier: Apache-2.0
"""Heavy augmentation of images in memory; what is cropped away is blurred and coloured first."""

from common import Trainer, options, picture
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms as T

args = options(steps=110, batch_size=4, num_workers=2, step_ms=15)
HEAVY = [T.ColorJitter(0.4, 0.4, 0.4, 0.2), T.GaussianBlur(9), T.RandomRotation(20)]
CROP = T.RandomCrop(96)


class Photos(Dataset):
    def __init__(self):
        self.images = [Image.fromarray(picture(i, 320, 320)) for i in range(16)]
        self.transform = T.Compose([CROP, *HEAVY, T.ToTensor()] if args.fixed else [*HEAVY, CROP, T.ToTensor()])

    def __len__(self):
        return args.steps * args.batch_size

    def __getitem__(self, index):
        return self.transform(self.images[index % len(self.images)]), index


def main():
    loader = DataLoader(Photos(), batch_size=args.batch_size, num_workers=args.num_workers)
    trainer = Trainer(args)
    for images, index in loader:
        trainer.step([index, images])
    trainer.finish()


if __name__ == "__main__":
    main()
