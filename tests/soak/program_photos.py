# SPDX-License-Identifier: Apache-2.0
"""Datasets of image files as people write them, for the programs of programs.py."""

from __future__ import annotations

import collections
import random
import threading
import zipfile
from dataclasses import dataclass

import numpy as np
import torch
import torchvision
import torchvision.transforms as T
import torchvision.transforms.functional as TF
from PIL import Image
from program_files import images_of, masks_of
from program_images import *  # noqa: F403 (the expressions of BuiltPerSample use them)
from program_images import converted
from torch.utils.data import Dataset
from torchvision import tv_tensors
from torchvision.transforms import InterpolationMode


class Photos(Dataset):
    """What most datasets are."""

    def __init__(self, folder, opening=converted, transform=None, target_transform=None):
        self.paths = images_of(folder)
        self.opening = opening
        self.transform = transform
        self.target_transform = target_transform

    def __len__(self):
        return len(self.paths)

    def label(self, index):
        label = index % 3
        return label if self.target_transform is None else self.target_transform(label)

    def __getitem__(self, index):
        image = self.opening(self.paths[index])
        if self.transform is not None:
            image = self.transform(image)
        return image, self.label(index)


class Attributes(Photos):
    """What an image says of itself, besides its pixels."""

    def __getitem__(self, index):
        image = Image.open(self.paths[index])
        facts = [image.mode, image.size, image.format, sorted(map(str, image.info)), image.width, image.height]
        facts += [image.getbands(), image.readonly, image.is_animated if hasattr(image, "is_animated") else None]
        facts += [sorted(image.getexif().items()), image.format_description, isinstance(image, Image.Image)]
        copy = self.opening(self.paths[index])
        facts += [copy.getbbox(), copy.getextrema(), copy.getpixel((0, 0)), copy.histogram()[:9], copy.mode]
        facts += [copy == copy.copy(), copy.tobytes()[:20], len(copy.getdata()), sorted(map(str, copy.info))]
        if self.transform is not None:
            copy = self.transform(copy)
        return str(facts), np.asarray(copy).astype(np.float64).sum()


class Views(Photos):
    """Two views of one image, as in SimCLR and MoCo."""

    def __getitem__(self, index):
        image = self.opening(self.paths[index])
        return self.transform(image), self.transform(image)


class MultiCrop(Photos):
    """DINO's."""

    def __getitem__(self, index):
        image = self.opening(self.paths[index])
        large = [self.transform(image) for _ in range(2)]
        small = T.Compose([T.RandomResizedCrop(12, scale=(0.05, 0.4)), T.RandomHorizontalFlip(), T.ToTensor()])
        return [*large, *(small(image) for _ in range(3))], index


class BuiltPerSample(Photos):
    """Transforms that are built for each sample."""

    def __init__(self, folder, opening, text, target_transform=None):
        super().__init__(folder, opening, None, target_transform)
        self.text = text

    def __getitem__(self, index):
        return eval(self.text)(self.opening(self.paths[index])), self.label(index)


class StepByStep(Photos):
    """Single transforms, one after another, with something in between."""

    def __getitem__(self, index):
        image = self.opening(self.paths[index])
        image = T.Resize((32, 36))(image)
        if torch.rand(()) < 0.5:
            image = T.RandomCrop(24)(image)
        else:
            image = T.CenterCrop(24)(image)
        if random.random() < 0.5:
            image = T.functional.hflip(image)
        tensor = T.ToTensor()(image)
        return T.Normalize([0.5] * len(tensor), [0.25] * len(tensor))(tensor), index


class Functional(Photos):
    def __getitem__(self, index):
        image = TF.resize(self.opening(self.paths[index]), [36, 36])
        top, left, height, width = T.RandomCrop.get_params(image, (24, 24))
        image = TF.crop(image, top, left, height, width)
        if random.random() > 0.5:
            image = TF.hflip(image)
        image = TF.adjust_brightness(image, random.uniform(0.8, 1.2))
        image = TF.rotate(image, float(T.RandomRotation.get_params([-20, 20])))
        return TF.normalize(TF.to_tensor(image.convert("RGB")), [0.5, 0.5, 0.5], [0.5, 0.5, 0.5]), index


class Pairs(Photos):
    """An image and its mask, which must be cropped and turned alike."""

    def __init__(self, folder, opening, transform, mask_transform, how):
        super().__init__(folder, opening, transform)
        self.masks = masks_of(folder)
        self.mask_transform = mask_transform
        self.how = how

    def __getitem__(self, index):
        return getattr(self, self.how)(self.opening(self.paths[index]), Image.open(self.masks[index]))

    def by_seed(self, image, mask):
        seed = int(np.random.randint(2147483647))
        random.seed(seed)
        torch.manual_seed(seed)
        image = self.transform(image)
        random.seed(seed)
        torch.manual_seed(seed)
        return image, self.mask_transform(mask)

    def by_torchs_seed(self, image, mask):
        seed = torch.randint(0, 2**31, (1,)).item()
        torch.manual_seed(seed)
        image = self.transform(image)
        torch.manual_seed(seed)
        return image, self.transform(mask.convert("RGB"))

    def by_randoms_seed(self, image, mask):
        seed = random.randint(0, 2**32)
        random.seed(seed)
        image = self.transform(image)
        random.seed(seed)
        return image, self.mask_transform(mask)

    def by_state(self, image, mask):
        state, other = torch.get_rng_state(), random.getstate()
        image = self.transform(image)
        torch.set_rng_state(state)
        random.setstate(other)
        return image, self.mask_transform(mask)

    def by_fork(self, image, mask):
        with torch.random.fork_rng(devices=[]):
            image = self.transform(image)
        return image, self.mask_transform(mask)

    def by_params(self, image, mask):
        image, mask = TF.resize(image, [40, 40]), TF.resize(mask, [40, 40], InterpolationMode.NEAREST)
        box = T.RandomResizedCrop.get_params(image, scale=(0.3, 1.0), ratio=(0.75, 1.33))
        image = TF.resized_crop(image, *box, [24, 24])
        mask = TF.resized_crop(mask, *box, [24, 24], InterpolationMode.NEAREST)
        if random.random() < 0.5:
            image, mask = TF.hflip(image), TF.hflip(mask)
        if torch.rand(1) < 0.5:
            image, mask = TF.vflip(image), TF.vflip(mask)
        return TF.to_tensor(image), torch.as_tensor(np.array(mask), dtype=torch.int64)

    def by_v2(self, image, mask):
        image, mask = self.transform(tv_tensors.Image(image), tv_tensors.Mask(mask))
        return image, mask

    def by_v2_with_pil(self, image, mask):
        return self.transform(image, tv_tensors.Mask(mask))

    def by_v2_of_two_images(self, image, mask):
        return self.transform(image, mask)

    def by_v2_dict(self, image, mask):
        height, width = TF.get_image_size(image)[::-1]
        boxes = tv_tensors.BoundingBoxes(
            [[2, 3, width - 4, height - 5], [5, 5, 15, 14]], format="XYXY", canvas_size=(height, width)
        )
        sample = {"image": image, "mask": tv_tensors.Mask(mask), "boxes": boxes, "label": 3}
        return self.transform(sample)

    def by_stacking(self, image, mask):
        both = torch.cat([TF.to_tensor(TF.resize(one.convert("RGB"), [36, 36])) for one in (image, mask)])
        return self.transform(both)


class Fields(Photos):
    """Samples as dicts, named tuples and others."""

    def __init__(self, folder, opening, transform, kind):
        super().__init__(folder, opening, transform)
        self.kind = kind

    def __getitem__(self, index):
        image = self.transform(self.opening(self.paths[index]))
        return self.kind(image, index, self.paths[index].name)


Sample = collections.namedtuple("Sample", ["image", "label", "name"])  # noqa: PYI024 (as people write it)


@dataclass
class Record3:
    image: torch.Tensor
    label: int
    name: str


def as_dict(image, label, name):
    return {"image": image, "label": label, "meta": {"name": name, "weight": label / 7}}


def as_ordered(image, label, name):
    return collections.OrderedDict(image=image, label=[label, label + 1], name=name)


def as_nested(image, label, name):
    return (image, [label, float(label)]), {"name": name, "array": np.full((2, 3), label, np.int16)}


def as_scalars(image, label, name):
    return image.mean().item(), np.float32(label), label > 3, name, np.arange(3), bytes([label])


class Broken(Photos):
    """Files that cannot be read, and what people do then."""

    def __init__(self, folder, opening, transform, how):
        super().__init__(folder, opening, transform)
        self.how = how

    def __getitem__(self, index):
        return getattr(self, self.how)(index)

    def raises(self, index):
        return self.transform(self.opening(self.paths[index])), index

    def tries_the_next(self, index):
        try:
            return self.transform(self.opening(self.paths[index])), index
        except Exception:
            return self[(index + 1) % len(self)]

    def tries_any(self, index):
        while True:
            try:
                return self.transform(self.opening(self.paths[index])), index
            except (OSError, SyntaxError, ValueError):
                index = random.randrange(len(self))

    def gives_none(self, index):
        try:
            return self.transform(self.opening(self.paths[index])), index
        except OSError:
            return None

    def gives_zeros(self, index):
        try:
            image = self.opening(self.paths[index])
        except Exception:
            return torch.zeros(3, 24, 24), -1
        return self.transform(image), index

    def says(self, index):
        said = []
        for do in (lambda: Image.open(self.paths[index]), lambda: self.opening(self.paths[index]),
                   lambda: self.opening(self.paths[index]).load() and None,
                   lambda: self.transform(self.opening(self.paths[index])).shape):  # fmt: skip
            try:
                out = do()
                said.append(getattr(out, "size", None) if isinstance(out, Image.Image) else str(out))
            except Exception as error:
                said.append(type(error).__name__)
        return str(said)


class Numpy(Photos):
    """Augmentations in NumPy, as before Albumentations."""

    def __getitem__(self, index):
        array = np.asarray(self.opening(self.paths[index]).convert("RGB").resize((30, 28)))
        if np.random.rand() < 0.5:
            array = array[:, ::-1]
        top, left = np.random.randint(0, 5, 2)
        array = array[top : top + 22, left : left + 22].astype(np.float32)
        array = array * np.random.uniform(0.8, 1.2) + np.random.normal(0, 3, array.shape)
        return array.transpose(2, 0, 1).copy(), np.int64(index)


class InMemory(Photos):
    """CIFAR's way: arrays in memory, an image made of each."""

    def __init__(self, folder, opening, transform, target_transform=None):
        super().__init__(folder, opening, transform, target_transform)
        rng = np.random.default_rng(3)
        self.data = rng.integers(0, 256, (len(self.paths), 32, 32, 3), np.uint8)

    def __getitem__(self, index):
        return self.transform(Image.fromarray(self.data[index])), self.label(index)


class Cached(Photos):
    """Images are kept once they were opened."""

    def __init__(self, folder, opening, transform, how="image"):
        super().__init__(folder, opening, transform)
        self.how = how
        self.cache = {}

    def __getitem__(self, index):
        if index not in self.cache:
            image = self.opening(self.paths[index])
            self.cache[index] = image if self.how == "image" else np.asarray(image)
        kept = self.cache[index]
        return self.transform(kept if self.how == "image" else Image.fromarray(kept)), index


class Kept(Photos):
    """All images opened in __init__."""

    def __init__(self, folder, opening, transform):
        super().__init__(folder, opening, transform)
        self.images = [self.opening(path) for path in self.paths]
        for image in self.images:
            image.load()  # workers would share the place in a file that is still open

    def __getitem__(self, index):
        return self.transform(self.images[index].copy()), index


class Triplets(Photos):
    def __getitem__(self, index):
        same = random.choice([n for n in range(len(self)) if n % 3 == index % 3])
        other = int(np.random.choice([n for n in range(len(self)) if n % 3 != index % 3]))
        return tuple(self.transform(self.opening(self.paths[n])) for n in (index, same, other))


class Mixed(Photos):
    """Mixup inside the dataset."""

    def __getitem__(self, index):
        share = np.random.beta(0.4, 0.4)
        other = random.randrange(len(self))
        one, two = (self.transform(self.opening(self.paths[n])) for n in (index, other))
        return share * one + (1 - share) * two, share


class Clips(Photos):
    """Frames of a video, with one crop for all of them."""

    def __getitem__(self, index):
        frames = [self.opening(self.paths[(index + n) % len(self)]).convert("RGB").resize((40, 36)) for n in range(3)]
        top, left, height, width = T.RandomCrop.get_params(frames[0], (24, 24))
        flip = random.random() < 0.5
        out = [TF.to_tensor(TF.crop(frame, top, left, height, width)) for frame in frames]
        return torch.stack([TF.hflip(frame) if flip else frame for frame in out], 1), index


class Fetched(Photos):
    """Whole batches at once."""

    def __getitems__(self, indices):
        shift = torch.randint(0, 9, ()).item()
        return [(self.transform(self.opening(self.paths[index])), index + shift) for index in indices]


class Images(Photos):
    """Images themselves, for an own collate function."""

    def __getitem__(self, index):
        image = self.opening(self.paths[index])
        return (image if self.transform is None else self.transform(image)), index


class Archive(Photos):
    """Images inside a zip file, which each worker opens."""

    def __init__(self, folder, opening, transform):
        super().__init__(folder, opening, transform)
        self.file = folder / "images.zip"
        if not self.file.exists():
            with zipfile.ZipFile(self.file, "w") as archive:
                for path in self.paths:
                    archive.writestr(path.name, path.read_bytes())
        self.archive = None

    def __getitem__(self, index):
        if self.archive is None:
            self.archive = zipfile.ZipFile(self.file)
        with self.archive.open(self.paths[index].name) as file:
            image = Image.open(file)
            return self.transform(image.convert("RGB")), index


class Threads(Photos):
    """A thread for each image of a sample."""

    def __getitem__(self, index):
        out = [None, None]

        def work(place, which):
            out[place] = self.opening(self.paths[which % len(self)])

        threads = [threading.Thread(target=work, args=(n, index + n)) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [self.transform(image) for image in out]


class Decoded(Photos):
    """torchvision's own decoder, and transforms of tensors."""

    def __getitem__(self, index):
        image = torchvision.io.decode_image(str(self.paths[index]), torchvision.io.ImageReadMode.RGB)
        return self.transform(TF.resize(image, [30, 30])), index
