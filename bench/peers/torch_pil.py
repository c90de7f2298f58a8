# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader with torchvision's transforms on PIL images: what most people run."""
from harness import MEAN, SIZE, STD, main

PACKAGES = []
NOTE = ""


def loader(dataset, workers, batch, **more):
    from torch.utils.data import DataLoader
    return DataLoader(dataset, batch_size=batch, drop_last=True, num_workers=workers,
                      persistent_workers=workers > 0, **more)


def pil_transform():
    from torchvision import transforms as T
    return T.Compose([T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)])


def batches(folder, workers, batch):
    from torchvision.datasets import ImageFolder

    each = loader(ImageFolder(folder, transform=pil_transform()), workers, batch, shuffle=True)
    while True:
        for images, _ in each:
            yield len(images)


if __name__ == "__main__":
    main(batches)
