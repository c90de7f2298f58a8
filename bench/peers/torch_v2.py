# SPDX-License-Identifier: Apache-2.0
"""torch's DataLoader with torchvision.transforms.v2 on tensors that torchvision.io decoded."""
from harness import MEAN, SIZE, STD, main
from torch_pil import loader

PACKAGES = []
NOTE = ""


def batches(folder, workers, batch):
    import torch
    from torchvision.datasets import ImageFolder
    from torchvision.io import ImageReadMode, decode_image, read_file
    from torchvision.transforms import v2

    transform = v2.Compose([v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip(),
                            v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])

    def load(path):
        return decode_image(read_file(path), mode=ImageReadMode.RGB)

    each = loader(ImageFolder(folder, transform=transform, loader=load), workers, batch, shuffle=True)
    while True:
        for images, _ in each:
            yield len(images)


if __name__ == "__main__":
    main(batches)
