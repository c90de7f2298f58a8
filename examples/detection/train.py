# SPDX-License-Identifier: Apache-2.0
"""Detection: images with boxes in COCO's format, crops that boxes follow, and a collate function.

    python examples/detection/train.py
    python examples/detection/train.py --images coco/train2017 --boxes coco/annotations/instances_train2017.json \\
        --model fasterrcnn_resnet50_fpn --size 480
"""
import argparse
import json
from collections import defaultdict
from pathlib import Path

import stoker
import torch
import torchvision
from PIL import Image
from stoker.synth import make_scenes
from torchvision import tv_tensors
from torchvision.ops import box_convert, box_iou
from torchvision.transforms import v2


class Boxes(torch.utils.data.Dataset):
    """Images and what torchvision's detection models call targets: boxes (x1, y1, x2, y2) and labels from 1."""

    def __init__(self, images, annotations, transform):
        found = json.loads(Path(annotations).read_text())
        self.files = [Path(images, image["file_name"]) for image in found["images"]]
        self.classes = [category["name"] for category in found["categories"]]
        number = {category["id"]: k for k, category in enumerate(found["categories"], 1)}  # COCO's have gaps
        place = {image["id"]: k for k, image in enumerate(found["images"])}
        self.objects = defaultdict(list)
        for one in found["annotations"]:
            if not one["iscrowd"]:
                self.objects[place[one["image_id"]]].append((one["bbox"], number[one["category_id"]]))
        self.transform = transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        image = Image.open(self.files[index]).convert("RGB")
        here = self.objects.get(index, [])
        boxes = torch.tensor([box for box, _ in here], dtype=torch.float32).reshape(-1, 4)
        boxes = tv_tensors.BoundingBoxes(box_convert(boxes, "xywh", "xyxy"), format="XYXY", canvas_size=image.size[::-1])
        return self.transform(image, {"boxes": boxes, "labels": torch.tensor([label for _, label in here], dtype=torch.int64)})


def collate(samples):
    """Images have one size and are stacked; each has its own number of boxes, so targets stay a list."""
    images, targets = zip(*samples, strict=True)
    return torch.stack(images), list(targets)


class SmallDetector(torch.nn.Module):
    """For each cell of 8 x 8 pixels: is it near the centre of a box, of which class, and where are the box's edges? It is
    called as torchvision's detection models are: images and targets give losses; images alone give boxes."""

    def __init__(self, classes):
        super().__init__()
        layers = []
        for before, after, size, stride in ((3, 16, 3, 2), (16, 32, 3, 2), (32, 64, 3, 2), (64, 64, 5, 1), (64, 64, 5, 1)):
            layers += [torch.nn.Conv2d(before, after, size, stride, size // 2), torch.nn.BatchNorm2d(after), torch.nn.ReLU()]
        self.net = torch.nn.Sequential(*layers, torch.nn.Conv2d(64, 1 + classes + 4, 1))

    def forward(self, images, targets=None):
        out = self.net(images)
        near, named, edges = out[:, 0], out[:, 1:-4], out[:, -4:]
        if targets is None:
            return [self.boxes_of(*parts) for parts in zip(near, named, edges, strict=True)]
        sample, y, x, boxes, labels = self.cells_of(targets, *near.shape[1:])
        is_near = torch.zeros_like(near)
        is_near[sample, y, x] = 1
        wanted = boxes / 8 - torch.stack([x, y, x, y], 1)
        count = max(len(boxes), 1)
        return {
            "near": torch.nn.functional.binary_cross_entropy_with_logits(near, is_near, reduction="sum") / count,
            "class": torch.nn.functional.cross_entropy(named[sample, :, y, x], labels, reduction="sum") / count,
            "box": torch.nn.functional.smooth_l1_loss(edges[sample, :, y, x], wanted, reduction="sum") / count,
        }

    def cells_of(self, targets, height, width):
        """The cell of each box's centre and those around it, with the number of the sample, the box, and the class."""
        boxes = torch.cat([target["boxes"] for target in targets])
        labels = torch.cat([target["labels"] for target in targets]) - 1
        counts = torch.tensor([len(target["boxes"]) for target in targets], device=boxes.device)
        sample = torch.arange(len(targets), device=boxes.device).repeat_interleave(counts)
        x, y = (box_convert(boxes, "xyxy", "cxcywh")[:, :2] / 8).long().T
        around = torch.cartesian_prod(*[torch.arange(-1, 2, device=boxes.device)] * 2).T
        x, y = (x[:, None] + around[0]).clamp(0, width - 1), (y[:, None] + around[1]).clamp(0, height - 1)
        return (sample.repeat_interleave(9), y.flatten(), x.flatten(), boxes.repeat_interleave(9, 0),
                labels.repeat_interleave(9))

    def boxes_of(self, near, named, edges):
        y, x = torch.where(near > 0)
        boxes = 8 * (edges[:, y, x].T + torch.stack([x, y, x, y], 1))
        scores, labels = near[y, x].sigmoid(), named[:, y, x].argmax(0) + 1
        kept = torchvision.ops.batched_nms(boxes, scores, labels, 0.5)
        return {"boxes": boxes[kept], "labels": labels[kept], "scores": scores[kept]}


def make_model(name, classes):
    if name == "small":
        return SmallDetector(classes)
    return torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=classes + 1)


def on_device(batch, device):
    images, targets = batch
    return images.to(device), [{name: value.to(device) for name, value in target.items()} for target in targets]


@torch.inference_mode()
def recall(model, loader, device):
    """The share of boxes that are found: with the right class, and an IoU of a half or more."""
    model.eval()
    found = total = 0
    for batch in loader:
        images, targets = on_device(batch, device)
        for said, target in zip(model(images), targets, strict=True):
            right = box_iou(target["boxes"], said["boxes"]) >= 0.5
            right &= target["labels"][:, None] == said["labels"]
            found += right.any(1).sum().item()
            total += len(right)
    return found / max(total, 1), total


def main(args):
    torch.manual_seed(args.seed)
    floats = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.SanitizeBoundingBoxes(), v2.ToPureTensor()]
    crop = v2.RandomResizedCrop(args.size, scale=(0.5, 1.0), ratio=(1.0, 1.5), antialias=True)
    training = Boxes(args.images, args.boxes, v2.Compose([crop, v2.RandomHorizontalFlip(), *floats]))
    whole = Boxes(args.images, args.boxes, v2.Compose([v2.Resize((args.size, args.size), antialias=True), *floats]))
    common = {"batch_size": args.batch_size, "num_workers": args.workers, "collate_fn": collate}
    loader = stoker.DataLoader(training, shuffle=True, **common)
    model = make_model(args.model, len(training.classes)).to(args.device)
    optimizer = torch.optim.Adam(model.parameters(), args.lr)
    for epoch in range(1, args.epochs + 1):
        model.train()
        total = 0.0
        for batch in loader:
            images, targets = on_device(batch, args.device)
            loss = sum(model(images, targets).values())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(images)
        print(f"epoch {epoch}: {len(training)} images, loss {total / len(training):.3f}")
    share, boxes = recall(model, stoker.DataLoader(whole, **common), args.device)
    print(f"found {100 * share:.0f} % of {boxes} boxes")


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", help="a folder of images (default: drawn scenes, made in ./scenes)")
    parser.add_argument("--boxes", help="a JSON file with their boxes, in COCO's format")
    parser.add_argument("--model", default="small", help="'small', or the name of one of torchvision's detection models")
    parser.add_argument("--size", type=int, default=96, help="width and height of what the model sees: a multiple of 8")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--workers", type=int, default=2, help="processes that run the dataset")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    args = parser.parse_args()
    if args.images is None and args.boxes is None:
        scenes = make_scenes("scenes")
        args.images, args.boxes = scenes / "images", scenes / "instances.json"
    elif None in (args.images, args.boxes):
        parser.error("--images and --boxes belong together")
    return args


if __name__ == "__main__":
    main(parse())
