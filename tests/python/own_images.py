# SPDX-License-Identifier: Apache-2.0
"""Dataset classes as training code has them, for test_own_datasets_equal.py: an image and its mask, several views of an
image, and detection. They are written without any thought of Stoker."""

from __future__ import annotations

import json
import random
import xml.etree.ElementTree as ET
from collections import defaultdict

import numpy as np
import torch
import torchvision.transforms as T
import torchvision.transforms.functional as TF
from own_files import photographs
from PIL import Image, ImageFilter, ImageOps
from torch.utils.data import Dataset
from torchvision import datasets, tv_tensors
from torchvision.transforms import InterpolationMode, v2

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]

# ---- an image and its mask ----


class SegmentationBySeed(Dataset):
    """The same seed before the image's transform and before the mask's."""

    def __init__(self, root):
        self.images = photographs(root)
        self.masks = sorted((root / "masks").glob("*.png"))
        common = [T.RandomResizedCrop(32, interpolation=InterpolationMode.NEAREST), T.RandomHorizontalFlip(),
                  T.RandomVerticalFlip(), T.RandomRotation(15)]  # fmt: skip
        self.transform = T.Compose([*common, T.ToTensor()])
        self.mask_transform = T.Compose([*common, T.PILToTensor()])

    def __len__(self):
        return len(self.images)

    def __getitem__(self, idx):
        image = Image.open(self.images[idx]).convert("RGB")
        mask = Image.open(self.masks[idx])
        seed = np.random.randint(2147483647)
        random.seed(seed)
        torch.manual_seed(seed)
        image = self.transform(image)
        random.seed(seed)
        torch.manual_seed(seed)
        mask = self.mask_transform(mask)
        return image, mask.squeeze(0).long()


class SegmentationByParams(SegmentationBySeed):
    """Parameters that are drawn once, and torchvision's functions."""

    def __getitem__(self, idx):
        image = Image.open(self.images[idx]).convert("RGB")
        mask = Image.open(self.masks[idx])
        image, mask = TF.resize(image, (48, 48)), TF.resize(mask, (48, 48), InterpolationMode.NEAREST)
        i, j, h, w = T.RandomCrop.get_params(image, output_size=(32, 32))
        image, mask = TF.crop(image, i, j, h, w), TF.crop(mask, i, j, h, w)
        if random.random() > 0.5:
            image, mask = TF.hflip(image), TF.hflip(mask)
        if random.random() > 0.5:
            angle = T.RandomRotation.get_params([-30, 30])
            image, mask = TF.rotate(image, angle), TF.rotate(mask, angle)
        image = T.ColorJitter(0.2, 0.2, 0.2)(image)
        return TF.normalize(TF.to_tensor(image), MEAN, STD), torch.from_numpy(np.array(mask, dtype=np.int64))


class SegmentationV2(SegmentationBySeed):
    def __init__(self, root):
        super().__init__(root)
        to_float = v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True)
        self.transforms = v2.Compose([v2.RandomResizedCrop((32, 32), antialias=True), v2.RandomHorizontalFlip(),
                                      v2.RandomPhotometricDistort(), v2.ToImage(), to_float])  # fmt: skip

    def __getitem__(self, idx):
        image = Image.open(self.images[idx]).convert("RGB")
        mask = tv_tensors.Mask(np.array(Image.open(self.masks[idx])))
        return self.transforms(image, mask)


# ---- several views of an image ----


class GaussianBlur:
    def __init__(self, p=0.5, radius_min=0.1, radius_max=2.0):
        self.prob, self.radius_min, self.radius_max = p, radius_min, radius_max

    def __call__(self, img):
        if random.random() > self.prob:
            return img
        return img.filter(ImageFilter.GaussianBlur(radius=random.uniform(self.radius_min, self.radius_max)))


class Solarization:
    def __init__(self, p):
        self.p = p

    def __call__(self, img):
        return ImageOps.solarize(img) if random.random() < self.p else img


class TwoViews:
    def __init__(self, base_transform):
        self.base_transform = base_transform

    def __call__(self, x):
        return [self.base_transform(x), self.base_transform(x)]


class SimCLR(Dataset):
    def __init__(self, root):
        jitter = T.ColorJitter(0.4, 0.4, 0.4, 0.1)
        self.paths = photographs(root)
        self.transform = TwoViews(T.Compose([T.RandomResizedCrop(32, scale=(0.2, 1.0)), T.RandomHorizontalFlip(),
                                             T.RandomApply([jitter], p=0.8), T.RandomGrayscale(p=0.2),
                                             GaussianBlur(), T.ToTensor()]))  # fmt: skip

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        with open(self.paths[index], "rb") as f:
            img = Image.open(f)
            img = img.convert("RGB")
        return self.transform(img), index % 2


class MultiCrop(datasets.ImageFolder):
    """DINO: two large crops and some small ones, with other augmentations."""

    def __init__(self, root):
        super().__init__(str(root / "images"))
        flip_and_colour = T.Compose([T.RandomHorizontalFlip(p=0.5),
                                     T.RandomApply([T.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8),
                                     T.RandomGrayscale(p=0.2)])  # fmt: skip
        normalize = T.Compose([T.ToTensor(), T.Normalize(MEAN, STD)])
        bicubic = InterpolationMode.BICUBIC
        self.global_1 = T.Compose([T.RandomResizedCrop(32, scale=(0.4, 1.0), interpolation=bicubic), flip_and_colour,
                                   GaussianBlur(1.0), normalize])  # fmt: skip
        self.global_2 = T.Compose([T.RandomResizedCrop(32, scale=(0.4, 1.0), interpolation=bicubic), flip_and_colour,
                                   GaussianBlur(0.1), Solarization(0.2), normalize])  # fmt: skip
        self.local = T.Compose([T.RandomResizedCrop(16, scale=(0.05, 0.4), interpolation=bicubic), flip_and_colour,
                                GaussianBlur(0.5), normalize])  # fmt: skip

    def __getitem__(self, index):
        path, target = self.samples[index]
        image = self.loader(path)
        crops = [self.global_1(image), self.global_2(image)]
        crops += [self.local(image) for _ in range(3)]
        return crops, target


class Siamese(Dataset):
    def __init__(self, root):
        self.folder = datasets.ImageFolder(str(root / "images"))
        self.transform = T.Compose([T.Resize((36, 36)), T.RandomCrop(32), T.Grayscale(), T.ToTensor()])

    def __len__(self):
        return len(self.folder)

    def __getitem__(self, index):
        img0_tuple = random.choice(self.folder.imgs)
        should_get_same_class = random.randint(0, 1)
        while True:
            img1_tuple = random.choice(self.folder.imgs)
            if (img0_tuple[1] == img1_tuple[1]) == bool(should_get_same_class):
                break
        img0, img1 = Image.open(img0_tuple[0]), Image.open(img1_tuple[0])
        img0, img1 = self.transform(img0.convert("L")), self.transform(img1.convert("L"))
        return img0, img1, torch.from_numpy(np.array([int(img1_tuple[1] != img0_tuple[1])], dtype=np.float32))


class Triplet(Dataset):
    def __init__(self, root):
        self.paths = photographs(root)
        self.by_label = defaultdict(list)
        for n, path in enumerate(self.paths):
            self.by_label[path.parent.name].append(n)
        self.transform = T.Compose([T.Resize(40), T.RandomCrop(32, padding=2), T.RandomHorizontalFlip(), T.ToTensor()])

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        label = self.paths[index].parent.name
        positive = index
        while positive == index:
            positive = np.random.choice(self.by_label[label])
        negative_label = np.random.choice(sorted(set(self.by_label) - {label}))
        negative = np.random.choice(self.by_label[negative_label])
        return tuple(self.transform(Image.open(self.paths[n]).convert("RGB")) for n in (index, positive, negative))


# ---- detection ----


def detection_collate(batch):
    return tuple(zip(*batch, strict=True))


class Detection(Dataset):
    """Targets as dicts, and transforms that know of both."""

    def __init__(self, root):
        self.paths = photographs(root)
        self.boxes = json.loads((root / "boxes.json").read_text())

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, idx):
        img = Image.open(self.paths[idx]).convert("RGB")
        boxes = torch.tensor([box[:4] for box in self.boxes[self.paths[idx].name]], dtype=torch.float32)
        target = {"boxes": boxes, "labels": torch.ones(len(boxes), dtype=torch.int64), "image_id": idx}
        if random.random() < 0.5:
            width = img.width
            img = TF.hflip(img)
            target["boxes"][:, [0, 2]] = width - target["boxes"][:, [2, 0]]
        scale = random.choice([0.5, 0.75, 1.0])
        img = TF.resize(img, [int(img.height * scale), int(img.width * scale)])
        target["boxes"] *= scale
        boxes = target["boxes"]
        target["area"] = (boxes[:, 3] - boxes[:, 1]) * (boxes[:, 2] - boxes[:, 0])
        return T.Compose([T.ColorJitter(0.3, 0.3), T.ToTensor()])(img), target


class Voc(Dataset):
    """Annotations in XML, and v2's transforms of a dict."""

    def __init__(self, root):
        self.images = photographs(root)
        self.annotations = sorted((root / "annotations").glob("*.xml"))
        self.transforms = v2.Compose([v2.ToImage(),
                                      v2.RandomZoomOut(fill={tv_tensors.Image: (123, 117, 104), "others": 0}),
                                      v2.RandomIoUCrop(), v2.RandomHorizontalFlip(p=0.5),
                                      v2.SanitizeBoundingBoxes(), v2.Resize((32, 32), antialias=True),
                                      v2.ToDtype(torch.float32, scale=True), v2.ToPureTensor()])  # fmt: skip

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        img = Image.open(self.images[index]).convert("RGB")
        boxes, labels = [], []
        for thing in ET.parse(self.annotations[index]).getroot().iter("object"):
            place = thing.find("bndbox")
            boxes.append([int(place.find(key).text) for key in ("xmin", "ymin", "xmax", "ymax")])
            labels.append(int(thing.find("name").text[4:]))
        target = {"boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(img.height, img.width)),
                  "labels": torch.tensor(labels)}  # fmt: skip
        return self.transforms(img, target)
