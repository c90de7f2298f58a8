# SPDX-License-Identifier: Apache-2.0
"""Stoker itself."""
from harness import MEAN, SIZE, STD, main

PACKAGES = []
NOTE = ""


def batches(folder, workers, batch):
    import stoker
    from stoker import transforms as T

    data = stoker.datasets.ImageFolder(folder, transform=T.Compose([
        T.RandomResizedCrop(SIZE), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)]))
    loader = stoker.DataLoader(data, batch_size=batch, shuffle=True, drop_last=True, num_workers=workers)
    epoch = 0
    while True:
        loader.set_epoch(epoch)
        for images, _ in loader:
            yield len(images)
        epoch += 1


if __name__ == "__main__":
    main(batches)
