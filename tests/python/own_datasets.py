# SPDX-License-Identifier: Apache-2.0
"""Dataset classes as training code has them, and the files that they read, for test_own_datasets_equal.py. They are
written without any thought of Stoker."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import tarfile
import wave
import xml.etree.ElementTree as ET
import zipfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import torch
import torchvision.transforms as T
import torchvision.transforms.functional as TF
from conftest import picture
from PIL import Image, ImageFilter, ImageOps
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import Dataset, IterableDataset, Sampler, default_collate, get_worker_info
from torchvision import datasets, tv_tensors
from torchvision.transforms import InterpolationMode, v2

COUNT = 24
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def make_files(root: Path) -> Path:
    """Photographs in two classes, and beside them what the datasets below want."""
    rows, boxes = [], {}
    for number in range(COUNT):
        name = f"{number:03}"
        image = picture(number, 60 + 5 * (number % 6), 76 - 3 * (number % 7))
        path = root / "images" / ("cat", "dog")[number % 2] / f"{name}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        options = {"progressive": True} if number % 8 == 7 else {}
        image.save(path, quality=88, **options)
        save_mask(root / "masks" / f"{name}.png", image)
        rows.append([path.relative_to(root), number % 2, number * 1.5])
        boxes[path.name] = [[3 + n, 4, 20 + n, 30 + number % 9, 1 + n] for n in range(1 + number % 3)]
        save_annotation(root / "annotations" / f"{name}.xml", path.name, boxes[path.name])
    with open(root / "labels.csv", "w", newline="") as file:
        csv.writer(file).writerows([["path", "label", "score"], *rows])
    (root / "boxes.json").write_text(json.dumps(boxes))
    words = "a small large old black white cat dog runs sleeps jumps on the grass bed street".split()
    chance = random.Random(3)
    texts = {f"{n:03}": [" ".join(chance.choices(words, k=chance.randint(3, 9))) for _ in range(3)] for n in range(COUNT)}
    (root / "captions.json").write_text(json.dumps(texts))
    np.save(root / "arrays.npy", np.random.default_rng(0).integers(0, 256, (COUNT, 32, 32, 3), np.uint8))
    make_sounds(root)
    make_archives(root)
    return root


def save_mask(path, image):
    path.parent.mkdir(exist_ok=True)
    mask = Image.fromarray((np.asarray(image.convert("L")) > 120).astype(np.uint8))
    mask.putpalette([0, 0, 0, 255, 255, 255])
    mask.save(path)


def save_annotation(path, name, boxes):
    path.parent.mkdir(exist_ok=True)
    root = ET.Element("annotation")
    ET.SubElement(root, "filename").text = name
    for box in boxes:
        thing = ET.SubElement(root, "object")
        ET.SubElement(thing, "name").text = f"kind{box[4]}"
        place = ET.SubElement(thing, "bndbox")
        for key, value in zip(("xmin", "ymin", "xmax", "ymax"), box, strict=False):
            ET.SubElement(place, key).text = str(value)
    ET.ElementTree(root).write(path)


def make_sounds(root):
    (root / "sounds").mkdir()
    for number in range(COUNT):
        samples = np.random.default_rng(number).normal(0, 4000, 900 + 70 * number).astype("<i2")
        with wave.open(str(root / "sounds" / f"{number:03}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(8000)
            file.writeframes(samples.tobytes())


def make_archives(root):
    paths = photographs(root)
    with zipfile.ZipFile(root / "images.zip", "w") as archive:
        for path in paths:
            archive.write(path, f"{path.parent.name}/{path.name}")
    for shard in range(4):
        with tarfile.open(root / f"shard-{shard}.tar", "w") as archive:
            for path in paths[shard::4]:
                archive.add(path, f"{path.stem}.jpg")
                label = str(int(path.parent.name == "dog")).encode()
                member = tarfile.TarInfo(f"{path.stem}.cls")
                member.size = len(label)
                archive.addfile(member, io.BytesIO(label))
        np.savez(root / f"shard-{shard}.npz", x=np.arange(24).reshape(6, 4) + shard, y=np.arange(6) % 2)


def photographs(root):
    return sorted((root / "images").glob("*/*.jpg"), key=lambda path: path.name)


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
        self.transforms = v2.Compose([v2.RandomResizedCrop((32, 32), antialias=True), v2.RandomHorizontalFlip(),
                                      v2.RandomPhotometricDistort(), v2.ToImage(),
                                      v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True)])  # fmt: skip

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


# ---- archives and arrays ----


class LmdbImages(Dataset):
    def __init__(self, root):
        import lmdb

        self.path = str(root / "images.lmdb")
        if not (root / "images.lmdb").exists():
            with lmdb.open(self.path, map_size=1 << 26) as env, env.begin(write=True) as txn:
                for n, path in enumerate(photographs(root)):
                    txn.put(f"{n:08}".encode(), path.read_bytes())
        self.env = None
        self.transform = T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)])

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        if self.env is None:
            import lmdb

            self.env = lmdb.open(self.path, readonly=True, lock=False, readahead=False)
        with self.env.begin(write=False) as txn:
            buf = io.BytesIO(txn.get(f"{index:08}".encode()))
        return self.transform(Image.open(buf).convert("RGB")), index


class Hdf5Images(Dataset):
    def __init__(self, root):
        import h5py

        self.path = root / "images.h5"
        if not self.path.exists():
            with h5py.File(self.path, "w") as file:
                file["images"] = np.load(root / "arrays.npy")
                file["labels"] = np.arange(COUNT) % 5
        with h5py.File(self.path, "r") as file:
            self.length = len(file["labels"])
        self.file = None
        self.transform = v2.Compose([v2.ToImage(), v2.RandomCrop(28), v2.RandomHorizontalFlip(),
                                     v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)])  # fmt: skip

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.file is None:
            import h5py

            self.file = h5py.File(self.path, "r", swmr=True)
        return self.transform(self.file["images"][index]), int(self.file["labels"][index])


class ZipImages(Dataset):
    def __init__(self, root):
        self.path = root / "images.zip"
        with zipfile.ZipFile(self.path) as archive:
            self.names = sorted(archive.namelist())
        self.handles = {}
        self.transform = T.Compose([T.Resize(40), T.CenterCrop(36), T.TrivialAugmentWide(), T.RandomCrop(32), T.ToTensor()])

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        info = get_worker_info()
        worker = -1 if info is None else info.id
        if worker not in self.handles:
            self.handles[worker] = zipfile.ZipFile(self.path)
        with self.handles[worker].open(self.names[index]) as file:
            image = Image.open(file).convert("RGB")
        return self.transform(image), self.names[index].split("/")[0]


class CsvLabels(Dataset):
    def __init__(self, root):
        self.root = root
        with open(root / "labels.csv", newline="") as file:
            self.rows = list(csv.DictReader(file))
        self.transform = T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.AutoAugment(), T.ToTensor()])
        self.target_transform = T.Lambda(lambda y: torch.zeros(2).scatter_(0, torch.tensor(int(y)), value=1))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, idx):
        row = self.rows[idx]
        image = Image.open(self.root / row["path"])
        return self.transform(image), self.target_transform(row["label"]), float(row["score"])


class NpyArrays(Dataset):
    def __init__(self, root):
        self.data = np.load(root / "arrays.npy", mmap_mode="r")

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        x = np.array(self.data[index])
        if np.random.rand() < 0.5:
            x = x[:, ::-1]
        x = np.pad(x, ((4, 4), (4, 4), (0, 0)), mode="reflect")
        top, left = np.random.randint(0, 9, size=2)
        x = x[top : top + 32, left : left + 32].astype(np.float32) / 255
        x = x + np.random.normal(0, 0.01, x.shape).astype(np.float32)
        return torch.from_numpy(np.ascontiguousarray(x.transpose(2, 0, 1))), index


class VideoFrames(Dataset):
    """Clips of frames, with one crop and one flip for a clip."""

    def __init__(self, root, length=4):
        self.frames = photographs(root)
        self.length = length

    def __len__(self):
        return len(self.frames) - self.length + 1

    def __getitem__(self, index):
        start = random.randint(0, len(self) - 1)
        clip = [Image.open(path).convert("RGB").resize((48, 40)) for path in self.frames[start : start + self.length]]
        i, j, h, w = T.RandomResizedCrop.get_params(clip[0], scale=(0.5, 1.0), ratio=(0.75, 1.33))
        flip = torch.rand(1).item() < 0.5
        clip = [TF.resized_crop(frame, i, j, h, w, [32, 32]) for frame in clip]
        clip = [TF.hflip(frame) if flip else frame for frame in clip]
        return torch.stack([TF.to_tensor(frame) for frame in clip], dim=1), start


class Audio(Dataset):
    def __init__(self, root, length=1024):
        self.paths = sorted((root / "sounds").glob("*.wav"))
        self.length = length

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        import soundfile

        wave, rate = soundfile.read(self.paths[index], dtype="float32")
        if len(wave) < self.length:
            wave = np.pad(wave, (0, self.length - len(wave)))
        start = random.randint(0, len(wave) - self.length)
        wave = wave[start : start + self.length] * np.random.uniform(0.8, 1.2)
        spectrum = torch.stft(torch.from_numpy(wave).float(), 64, window=torch.hann_window(64), return_complex=True).abs()
        masked = torch.randint(0, spectrum.shape[0] - 4, ()).item()
        spectrum[masked : masked + 4] = 0
        return spectrum, rate


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
        target["area"] = (target["boxes"][:, 3] - target["boxes"][:, 1]) * (target["boxes"][:, 2] - target["boxes"][:, 0])
        return T.Compose([T.ColorJitter(0.3, 0.3), T.ToTensor()])(img), target


class Voc(Dataset):
    """Annotations in XML, and v2's transforms of a dict."""

    def __init__(self, root):
        self.images = photographs(root)
        self.annotations = sorted((root / "annotations").glob("*.xml"))
        self.transforms = v2.Compose([v2.ToImage(), v2.RandomZoomOut(fill={tv_tensors.Image: (123, 117, 104), "others": 0}),
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


# ---- streams ----


class Shards(IterableDataset):
    """Shards that the workers share, shuffled."""

    def __init__(self, root):
        self.shards = sorted(root.glob("shard-*.npz"))
        self.epoch = 0

    def __iter__(self):
        info = get_worker_info()
        shards = list(self.shards)
        random.Random(1234 + self.epoch).shuffle(shards)
        if info is not None:
            per_worker = math.ceil(len(shards) / info.num_workers)
            shards = shards[info.id * per_worker : (info.id + 1) * per_worker]
        for shard in shards:
            with np.load(shard) as data:
                x, y = data["x"], data["y"]
            for n in np.random.permutation(len(y)):
                yield torch.from_numpy(x[n]) + torch.randn(4), int(y[n])


def tar_samples(shards):
    for shard in shards:
        with tarfile.open(shard) as archive:
            sample = {}
            for member in archive:
                key, _, extension = member.name.rpartition(".")
                if sample and sample["__key__"] != key:
                    yield sample
                    sample = {}
                sample["__key__"] = key
                sample[extension] = archive.extractfile(member).read()
            if sample:
                yield sample


def shuffled(samples, size):
    buffer = []
    for sample in samples:
        if len(buffer) < size:
            buffer.append(sample)
            continue
        n = random.randrange(size)
        yield buffer[n]
        buffer[n] = sample
    random.shuffle(buffer)
    yield from buffer


class WebShards(IterableDataset):
    """Generators behind generators, as WebDataset has them."""

    def __init__(self, root):
        self.shards = sorted(root.glob("shard-*.tar"))
        self.transform = T.Compose([T.RandomResizedCrop(32), T.RandomHorizontalFlip(), T.ToTensor()])

    def decoded(self, samples):
        for sample in samples:
            image = Image.open(io.BytesIO(sample["jpg"])).convert("RGB")
            yield self.transform(image), int(sample["cls"]), sample["__key__"]

    def __iter__(self):
        info = get_worker_info()
        shards = self.shards if info is None else self.shards[info.id :: info.num_workers]
        return self.decoded(shuffled(tar_samples(shards), 4))


# ---- others ----


class InMemory(Dataset):
    """Images that are kept after they were opened first."""

    def __init__(self, root):
        self.paths = photographs(root)
        self.cache = [None] * len(self.paths)
        self.transform = T.Compose([T.RandomCrop(32), T.RandomHorizontalFlip(), T.RandomAffine(10, (0.1, 0.1)), T.ToTensor(),
                                    T.RandomErasing(p=0.5)])  # fmt: skip

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        if self.cache[index] is None:
            self.cache[index] = Image.open(self.paths[index]).convert("RGB")
        return self.transform(self.cache[index]), index


class Captions(Dataset):
    def __init__(self, root):
        self.paths = photographs(root)
        self.captions = json.loads((root / "captions.json").read_text())
        counter = Counter(word for texts in self.captions.values() for text in texts for word in text.split())
        self.vocab = {word: n for n, word in enumerate(["<pad>", "<bos>", "<eos>", "<unk>", *sorted(counter)])}
        self.transform = T.Compose([T.Resize(36), T.RandomCrop(32), T.RandomHorizontalFlip(), T.ToTensor()])

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        path = self.paths[index]
        tokens = [self.vocab.get(word, 3) for word in random.choice(self.captions[path.stem]).split()]
        tokens = [token if np.random.rand() > 0.1 else 3 for token in tokens]
        return self.transform(Image.open(path).convert("RGB")), torch.tensor([1, *tokens, 2])


def caption_collate(data):
    data.sort(key=lambda x: len(x[1]), reverse=True)
    images, captions = zip(*data, strict=True)
    lengths = [len(caption) for caption in captions]
    return torch.stack(images, 0), pad_sequence(captions, batch_first=True, padding_value=0), lengths


class Photos(Dataset):
    def __init__(self, root):
        self.paths = photographs(root)
        self.labels = [int(path.parent.name == "dog") for path in self.paths]
        self.transform = T.Compose([T.Resize([36, 36]), T.RandomCrop(32), T.ColorJitter(0.4, 0.4, 0.4), T.ToTensor(),
                                    T.Normalize(MEAN, STD)])  # fmt: skip

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return self.transform(Image.open(self.paths[index]).convert("RGB")), self.labels[index]


class FewShot(Sampler):
    """Episodes: n classes, and k samples of each."""

    def __init__(self, labels, n_way=2, k_shot=3, episodes=4):
        self.n_way, self.k_shot, self.episodes = n_way, k_shot, episodes
        self.by_label = [torch.nonzero(torch.tensor(labels) == label).flatten() for label in sorted(set(labels))]

    def __len__(self):
        return self.episodes

    def __iter__(self):
        for _ in range(self.episodes):
            classes = torch.randperm(len(self.by_label))[: self.n_way]
            episode = [self.by_label[c][torch.randperm(len(self.by_label[c]))[: self.k_shot]] for c in classes]
            yield torch.stack(episode).t().reshape(-1).tolist()


class MixupCollate:
    def __init__(self, alpha=0.8, classes=2):
        self.alpha, self.classes = alpha, classes

    def __call__(self, batch):
        images, labels = default_collate(batch)
        lam = float(np.random.beta(self.alpha, self.alpha))
        index = torch.randperm(len(images))
        one_hot = torch.nn.functional.one_hot(labels, self.classes).float()
        return lam * images + (1 - lam) * images[index], lam * one_hot + (1 - lam) * one_hot[index]


def seed_worker(worker_id):
    """What torch's notes on reproducibility recommend."""
    worker_seed = torch.initial_seed() % 2**32
    np.random.seed(worker_seed)
    random.seed(worker_seed)
