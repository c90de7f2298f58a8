# SPDX-License-Identifier: Apache-2.0
"""Segmentation: random crops and flips that an image and its mask share, in the engine.

    python examples/segmentation/train.py
    python examples/segmentation/train.py --images DIR --masks DIR --classes N
    python examples/segmentation/train.py --voc DIR --size 256
"""
import argparse

import stoker
import torch
from stoker import transforms as T
from stoker.synth import SHAPES, make_scenes

IGNORED = 255  # the outlines in Pascal VOC's masks


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
    transform = T.Compose([
        T.RandomResizedCrop(args.size, scale=(0.4, 1.0)), T.RandomHorizontalFlip(), T.ColorJitter(0.2, 0.2, 0.2),
        T.ToTensor(), T.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    if args.voc is not None:
        data = stoker.datasets.VOCSegmentation(args.voc, image_set="train", transform=transform)
    else:
        data = stoker.datasets.ImageMaskFolder(args.images, args.masks, transform)
    loader = stoker.DataLoader(data, batch_size=args.batch_size, shuffle=True, num_workers=args.workers, seed=args.seed)
    model = make_model(args.classes).to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for epoch in range(1, args.epochs + 1):
        total, counts = 0.0, torch.zeros(2, args.classes)
        for images, masks in loader:
            images, masks = images.to(args.device), masks.to(args.device).long()
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
    parser.add_argument("--images", help="a folder of images (default: drawn scenes, made in ./scenes)")
    parser.add_argument("--masks", help="a folder of PNG files with the same names")
    parser.add_argument("--voc", help="a folder with VOCdevkit/VOC2012 in it")
    parser.add_argument("--classes", type=int, help="the number of classes, with the background")
    parser.add_argument("--size", type=int, default=64, help="width and height of what the model sees: a multiple of 4")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2, help="threads")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    own = [args.images, args.masks, args.classes]
    if args.voc is not None:
        args.classes = args.classes or 21
    elif own == [None] * 3:
        scenes = make_scenes("scenes")
        args.images, args.masks, args.classes = scenes / "images", scenes / "masks", len(SHAPES) + 1
    elif None in own:
        parser.error("--images, --masks and --classes belong together")
    return args


if __name__ == "__main__":
    main(parse())
