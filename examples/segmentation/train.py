# SPDX-License-Identifier: Apache-2.0
"""Segmentation: random crops and flips that an image and its mask share, in a dataset of one's own.

    python examples/segmentation/train.py
    python examples/segmentation/train.py --images VOC2012/JPEGImages --masks VOC2012/SegmentationClass \\
        --classes 21 --size 256
"""
import argparse
from pathlib import Path

import stoker
import torch
from PIL import Image
from stoker.synth import SHAPES, make_scenes
from torchvision import tv_tensors
from torchvision.transforms import v2

IGNORED = 255  # the outlines in Pascal VOC's masks


class Masked(torch.utils.data.Dataset):
    """Images and their masks, which have the same names. Each mask is a palette or greyscale image of class numbers."""

    def __init__(self, images, masks, transform):
        self.pairs = [(Path(images, f"{mask.stem}.jpg"), mask) for mask in sorted(Path(masks).glob("*.png"))]
        self.transform = transform
        if not self.pairs:
            raise FileNotFoundError(f"there are no masks (*.png) in {masks}")

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, index):
        image, mask = (Image.open(path) for path in self.pairs[index])
        return self.transform(image.convert("RGB"), tv_tensors.Mask(mask))  # both get the same crop


def make_model(classes):
    def block(before, after, stride):
        return [torch.nn.Conv2d(before, after, 3, stride, 1), torch.nn.BatchNorm2d(after), torch.nn.ReLU()]

    return torch.nn.Sequential(
        *block(3, 16, 2), *block(16, 32, 2), *block(32, 32, 1), torch.nn.Conv2d(32, classes, 1),
        torch.nn.Upsample(scale_factor=4, mode="bilinear"))


def overlap(scores, masks, classes):
    """Intersection and union of what was predicted and what is there, for each class."""
    said, there = (torch.nn.functional.one_hot(numbers[masks != IGNORED], classes).bool()
                   for numbers in (scores.argmax(1), masks))
    return torch.stack([(said & there).sum(0), (said | there).sum(0)])


def main(args):
    torch.manual_seed(args.seed)
    transform = v2.Compose([
        v2.RandomResizedCrop(args.size, scale=(0.4, 1.0), antialias=True), v2.RandomHorizontalFlip(), v2.ToImage(),
        v2.ToDtype({tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64}, scale=True),
        v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]), v2.ToPureTensor()])
    data = Masked(args.images, args.masks, transform)
    loader = stoker.DataLoader(data, batch_size=args.batch_size, shuffle=True, num_workers=args.workers)
    model = make_model(args.classes).to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for epoch in range(1, args.epochs + 1):
        total, counts = 0.0, torch.zeros(2, args.classes)
        for images, masks in loader:
            images, masks = images.to(args.device), masks.squeeze(1).to(args.device)
            scores = model(images)
            loss = torch.nn.functional.cross_entropy(scores, masks, ignore_index=IGNORED)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(images)
            counts += overlap(scores, masks, args.classes).cpu()
        found = counts[0, counts[1] > 0] / counts[1, counts[1] > 0]
        print(f"epoch {epoch}: {len(data)} images, loss {total / len(data):.3f}, mean IoU {found.mean():.2f}")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", help="a folder of JPEG files (default: drawn scenes, made in ./scenes)")
    parser.add_argument("--masks", help="a folder of PNG files with the same names")
    parser.add_argument("--classes", type=int, help="the number of classes, with the background")
    parser.add_argument("--size", type=int, default=64, help="width and height of what the model sees: a multiple of 4")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2, help="processes that run the dataset")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    own = [args.images, args.masks, args.classes]
    if own == [None] * 3:
        scenes = make_scenes("scenes")
        args.images, args.masks, args.classes = scenes / "images", scenes / "masks", len(SHAPES) + 1
    elif None in own:
        parser.error("--images, --masks and --classes belong together")
    return args


if __name__ == "__main__":
    main(parse())
