# SPDX-License-Identifier: Apache-2.0
"""Datasets, openings of images, transforms, samplers and collate functions as people write them, for the programs of
programs.py. They know nothing of Stoker: all of them must give the same bytes with torch's DataLoader and with ours."""

from __future__ import annotations

import collections
import functools
import io
import math
import random
import threading
import zipfile
from dataclasses import dataclass

import numpy as np
import torch
import torchvision
import torchvision.transforms as T
import torchvision.transforms.functional as TF
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from program_files import images_of, masks_of
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    Sampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    get_worker_info,
    random_split,
)
from torchvision import datasets, tv_tensors
from torchvision.transforms import InterpolationMode, v2

# ---- how an image is opened: functions of a path ----


def as_it_is(path):
    return Image.open(path)


def converted(path):
    return Image.open(path).convert("RGB")


def from_a_file(path):
    with open(path, "rb") as file:
        return Image.open(file).convert("RGB")


def with_statement(path):
    with Image.open(path) as image:
        return image.convert("RGB")


def loaded(path):
    image = Image.open(path)
    image.load()
    return image


def from_bytes(path):
    return Image.open(io.BytesIO(path.read_bytes())).convert("RGB")


def torchvisions(path):
    return datasets.folder.default_loader(str(path))


def grey(path):
    return Image.open(path).convert("L")


def through_alpha(path):
    image = Image.open(path)
    return image.convert("RGBA").convert("RGB") if image.mode == "P" else image.convert("RGB")


def upright(path):
    return ImageOps.exif_transpose(Image.open(path)).convert("RGB")


def upright_in_place(path):
    image = Image.open(path)
    ImageOps.exif_transpose(image, in_place=True)
    return image.convert("RGB")


def copied(path):
    return Image.open(path).copy().convert("RGB")


def drafted(path):
    image = Image.open(path)
    image.draft("RGB", (image.width // 2, image.height // 2))
    return image.convert("RGB")


def thumbnail(path):
    image = Image.open(path).convert("RGB")
    image.thumbnail((40, 40))
    return image


def resized(path):
    return Image.open(path).convert("RGB").resize((48, 40), Image.BILINEAR)


def reduced(path):
    return Image.open(path).convert("RGB").reduce(2)


def cropped(path):
    image = Image.open(path).convert("RGB")
    return image.crop((2, 3, image.width - 4, image.height - 1))


def cropped_beyond(path):
    image = Image.open(path).convert("RGB")
    return image.crop((-5, 3, image.width + 4, image.height - 1))


def cropped_at_random(path):
    image = Image.open(path).convert("RGB")
    left = random.randint(0, image.width // 3)
    top = np.random.randint(0, image.height // 3)
    return image.crop((left, top, image.width, image.height))


def through_an_array(path):
    return Image.fromarray(np.asarray(Image.open(path).convert("RGB"))[:, ::-1].copy())


def through_np_array(path):
    return Image.fromarray(np.array(Image.open(path).convert("RGB")))


def mirrored(path):
    return ImageOps.mirror(Image.open(path).convert("RGB"))


def fitted(path):
    return ImageOps.fit(Image.open(path).convert("RGB"), (40, 36), Image.BICUBIC)


def contrasted(path):
    return ImageOps.autocontrast(Image.open(path).convert("RGB"))


def turned(path):
    return Image.open(path).convert("RGB").transpose(Image.Transpose.ROTATE_90)


def rotated(path):
    return Image.open(path).convert("RGB").rotate(random.uniform(-20, 20), expand=True)


def sharpened(path):
    return ImageEnhance.Sharpness(Image.open(path).convert("RGB")).enhance(1.5)


def filtered(path):
    return Image.open(path).convert("RGB").filter(ImageFilter.GaussianBlur(1))


def channels_swapped(path):
    red, green, blue = Image.open(path).convert("RGB").split()
    return Image.merge("RGB", (blue, green, red))


def pasted(path):
    image = Image.open(path).convert("RGB")
    side = max(image.size)
    square = Image.new("RGB", (side, side), (127, 127, 127))
    square.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    return square


def painted(path):
    image = Image.open(path).convert("RGB")
    image.putpixel((0, 0), (255, 0, 0))
    image.paste((0, 255, 0), (1, 1, 4, 4))
    return image


def checked_first(path):
    Image.open(path).verify()
    return Image.open(path).convert("RGB")


def if_not_rgb(path):
    image = Image.open(path)
    if image.mode != "RGB":
        image = image.convert("RGB")
    return image


def no_alpha(path):
    image = Image.open(path)
    if image.mode in ("RGBA", "LA") or "transparency" in image.info:
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        white.alpha_composite(image.convert("RGBA"))
        return white.convert("RGB")
    return image.convert("RGB")


OPENINGS = [
    as_it_is, converted, from_a_file, with_statement, loaded, from_bytes, torchvisions, grey, through_alpha, upright,
    upright_in_place, copied, drafted, thumbnail, resized, reduced, cropped, cropped_beyond, cropped_at_random,
    through_an_array, through_np_array, mirrored, fitted, contrasted, turned, rotated, sharpened, filtered,
    channels_swapped, pasted, painted, checked_first, if_not_rgb, no_alpha,
]  # fmt: skip


# ---- own transforms ----


class NoiseByTorch:
    def __init__(self, std=0.1):
        self.std = std

    def __call__(self, tensor):
        return tensor + torch.randn(tensor.size()) * self.std


class FlipByRandom:
    def __call__(self, image):
        return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if random.random() < 0.5 else image


class CropByNumpy:
    def __init__(self, size):
        self.size = size

    def __call__(self, image):
        left = np.random.randint(0, max(1, image.width - self.size))
        top = np.random.randint(0, max(1, image.height - self.size))
        return image.crop((left, top, left + self.size, top + self.size))


class BlurByRandom:
    """SimCLR's."""

    def __call__(self, image):
        return image.filter(ImageFilter.GaussianBlur(radius=random.uniform(0.1, 2.0)))


class RotateByChoice(nn.Module):
    def forward(self, image):
        return TF.rotate(image, random.choice([-30, -15, 0, 15, 30]))


class PadToSquare:
    def __call__(self, image):
        width, height = image.size
        side = max(width, height)
        return TF.pad(image, [(side - width) // 2, (side - height) // 2, side - width - (side - width) // 2,
                              side - height - (side - height) // 2])  # fmt: skip


class OwnFlip(T.RandomHorizontalFlip):
    def forward(self, image):
        return TF.vflip(image) if torch.rand(1) < self.p else image


class OwnV2(v2.Transform):
    def make_params(self, flat_inputs):
        return {"turn": int(torch.randint(0, 4, ()))}

    def transform(self, inpt, params):
        return inpt.rotate(90 * params["turn"], expand=True) if isinstance(inpt, Image.Image) else inpt


class Cutout:
    def __call__(self, tensor):
        y = np.random.randint(tensor.shape[-2])
        x = np.random.randint(tensor.shape[-1])
        tensor = tensor.clone()
        tensor[..., max(0, y - 4) : y + 4, max(0, x - 4) : x + 4] = 0
        return tensor


def to_grey_three(image):
    return image.convert("L").convert("RGB")


def as_float_array(image):
    return np.asarray(image.convert("RGB"), dtype=np.float32) / 255


def from_array(array):
    return torch.from_numpy(np.ascontiguousarray(array.transpose(2, 0, 1)))


def stack_crops(crops):
    return torch.stack([TF.to_tensor(crop) for crop in crops])


# ---- datasets ----


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


class Draws(Dataset):
    """All generators, and what a worker knows of itself."""

    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        info = get_worker_info()
        known = None if info is None else (info.id, info.num_workers, info.seed)
        own = np.random.default_rng(index).integers(9)
        return str((index, known, torch.initial_seed(), random.random(), random.getrandbits(40), np.random.rand(),
                    np.random.randint(1 << 30), torch.rand(()).item(), torch.randn(3).tolist(), int(own),
                    torch.empty((), dtype=torch.int64).random_().item()))  # fmt: skip


class Tokens(Dataset):
    """Texts of different lengths."""

    def __init__(self, count):
        chance = random.Random(count)
        self.texts = [[chance.randrange(1, 99) for _ in range(chance.randint(1, 9))] for _ in range(count)]

    def __len__(self):
        return len(self.texts)

    def __getitem__(self, index):
        kept = [token if random.random() > 0.15 else 0 for token in self.texts[index]]
        return torch.tensor(kept), len(kept)


class Failing(Dataset):
    """Fails at some samples, or at once."""

    def __init__(self, count, at, kind=ValueError):
        self.count = count
        self.at = at
        self.kind = kind

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index in self.at:
            raise self.kind(f"sample {index} is not there")
        return index, torch.rand(2)


class OwnError(Exception):
    def __init__(self, *args):
        super().__init__(*args)


class Stream(IterableDataset):
    """Shards over the workers, with a shuffling buffer and images opened on the way."""

    def __init__(self, folder, opening, transform, buffer=0, share=True):
        super().__init__()
        self.paths = images_of(folder)
        self.opening = opening
        self.transform = transform
        self.buffer = buffer
        self.share = share

    def places(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None or not self.share else (info.id, info.num_workers)
        yield from range(first, len(self.paths), step)

    def __iter__(self):
        kept = []
        for place in self.places():
            kept.append(place)
            if len(kept) > self.buffer:
                yield self.sample(kept.pop(random.randrange(len(kept))))
        random.shuffle(kept)
        for place in kept:
            yield self.sample(place)

    def sample(self, place):
        return self.transform(self.opening(self.paths[place])), place


class StreamWithLength(Stream):
    def __len__(self):
        return len(self.paths)


class FolderWithPaths(datasets.ImageFolder):
    def __getitem__(self, index):
        image, label = super().__getitem__(index)
        return image, label, self.samples[index][0].rsplit("/", 1)[-1]


class FolderOfPairs(datasets.ImageFolder):
    def __getitem__(self, index):
        path, label = self.samples[index]
        image = self.loader(path)
        return [self.transform(image), self.transform(image)], label


class Wrapped(Dataset):
    """A transform for a subset, as after random_split."""

    def __init__(self, inner, transform):
        self.inner = inner
        self.transform = transform

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        image, label = self.inner[index]
        return self.transform(image), label


def images_in(folder):
    """A folder as ImageFolder wants it."""
    return str(folder / "images")


def halves(dataset):
    return random_split(dataset, [0.5, 0.5])[0]


def seeded_part(dataset):
    return random_split(dataset, [len(dataset) - 3, 3], generator=torch.Generator().manual_seed(42))[0]


def every_second(dataset):
    return Subset(dataset, list(range(0, len(dataset), 2)))


def tensors(count):
    generator = torch.Generator().manual_seed(count)
    return TensorDataset(torch.randn(count, 3, generator=generator), torch.arange(count))


# ---- samplers ----


class LazySampler(Sampler):
    """Draws each index when it is asked for."""

    def __init__(self, dataset):
        self.count = len(dataset)

    def __len__(self):
        return self.count

    def __iter__(self):
        for _ in range(self.count):
            yield random.randrange(self.count) if random.random() < 0.5 else int(torch.randint(self.count, ()))


class ClassBatches(Sampler):
    """Few-shot batches: some classes, and some samples of each."""

    def __init__(self, dataset, batches=4):
        self.count = len(dataset)
        self.batches = batches

    def __len__(self):
        return self.batches

    def __iter__(self):
        for _ in range(self.batches):
            classes = torch.randperm(3)[:2]
            yield [int(c) + 3 * int(n) for c in classes for n in np.random.permutation(self.count // 3)[:2]]


class LengthBatches:
    """Batches of a list, shuffled in each epoch."""

    def __init__(self, dataset):
        self.lists = [list(range(n, min(n + 3, len(dataset)))) for n in range(0, len(dataset), 3)]

    def __len__(self):
        return len(self.lists)

    def __iter__(self):
        random.shuffle(self.lists)
        return iter(self.lists)


# ---- collate functions and worker_init_fn ----


def lists(samples):
    return tuple(zip(*samples, strict=False))


def as_they_are(samples):
    return samples


def without_none(samples):
    return default_collate([sample for sample in samples if sample is not None])


def mixing(samples):
    """Mixup of a batch."""
    images, *rest = default_collate(samples)
    share = np.random.beta(1.0, 1.0)
    order = torch.randperm(len(images))
    return share * images + (1 - share) * images[order], rest, share


def padding(samples):
    return pad_sequence([sample[0] for sample in samples], batch_first=True), [sample[1] for sample in samples]


class ToLargest:
    """Detection's: pads images to the largest of the batch."""

    def __call__(self, samples):
        height = max(sample[0].shape[-2] for sample in samples)
        width = max(sample[0].shape[-1] for sample in samples)
        out = torch.zeros(len(samples), 3, height, width)
        for place, sample in zip(out, samples, strict=True):
            place[:, : sample[0].shape[-2], : sample[0].shape[-1]] = sample[0]
        return out, [sample[1:] for sample in samples]


def seed_numpy(worker):
    np.random.seed(torch.initial_seed() % 2**32)
    random.seed(torch.initial_seed() % 2**32)


def seed_by_number(worker):
    torch.manual_seed(worker)
    random.seed(worker)
    np.random.seed(worker)


def shard_list(worker):
    info = get_worker_info()
    if hasattr(info.dataset, "paths") and isinstance(info.dataset, IterableDataset):
        share = math.ceil(len(info.dataset.paths) / info.num_workers)
        info.dataset.paths = info.dataset.paths[worker * share : (worker + 1) * share]
        info.dataset.share = False


def failing_init(worker):
    raise LookupError(f"no worker {worker}")


NAMES = (functools, BatchSampler, ConcatDataset, DistributedSampler, RandomSampler, SequentialSampler, StackDataset,
         SubsetRandomSampler, WeightedRandomSampler)  # fmt: skip # what expressions of programs use
