# SPDX-License-Identifier: Apache-2.0
"""Two trainings whose augmentation is heavy, each against its own ceiling: a classifier with RandAugment, RandomErasing
and MixUp, and a segmentation network whose masks follow its images."""
from __future__ import annotations

import random
from pathlib import Path

import feeds
import parts
import stoker
import torch
from models import IGNORED, MASK_CLASSES, trainer
from stoker import transforms as T

CLASSES = 1000
BY_WORKERS = 'Stoker, augment_on="cpu"'


def augmented(setting):
    return stoker.datasets.ImageFolder(setting.folder, index_dir=setting.kept, transform=T.Compose([
        T.RandomResizedCrop(setting.size), T.RandomHorizontalFlip(), T.RandAugment(num_ops=2, magnitude=9), T.ToTensor(),
        T.Normalize(feeds.MEAN, feeds.STD), T.RandomErasing(p=0.25)]))


def segmented(setting):
    """torchvision's reference: a shorter side of 0.5 to 2 times about the crop's."""
    return stoker.datasets.ImageMaskFolder(setting.folder, masks_of(setting.folder), T.Compose([
        T.RandomResize(setting.size // 2, 2 * setting.size), T.RandomHorizontalFlip(),
        T.RandomCrop(setting.size, pad_if_needed=True, mask_fill=IGNORED), T.ColorJitter(0.4, 0.4, 0.4, 0.1),
        T.ToTensor(), T.Normalize(feeds.MEAN, feeds.STD)]))


class WithMasks(feeds.Stoker):
    """Masks come in the CPU's memory."""

    def __init__(self, setting, *args, **more):
        super().__init__(setting, *args, **more)
        self.device = setting.device

    def __next__(self):
        images, masks = super().__next__()
        if self.device == "cpu":
            return images, masks
        return images, masks.pin_memory().to(self.device, non_blocking=True)


def draw_mask(path, to, seed):
    """Discs and boxes of some classes, outlined by what is ignored, as large as the image."""
    from PIL import Image, ImageDraw

    chance = random.Random(seed)
    with Image.open(path) as image:
        mask = Image.new("P", image.size)
    mask.putpalette([chance.randrange(256) for _ in range(3 * 256)])
    draw = ImageDraw.Draw(mask)
    for _ in range(chance.randint(1, 6)):
        x, y = sorted(chance.choices(range(mask.width + 1), k=2)), sorted(chance.choices(range(mask.height + 1), k=2))
        shape = chance.choice([draw.ellipse, draw.rectangle])
        shape([x[0], y[0], x[1], y[1]], fill=chance.randrange(1, MASK_CLASSES), outline=IGNORED, width=3)
    to.parent.mkdir(parents=True, exist_ok=True)
    mask.save(to)


def masks_of(folder):
    """Drawn once for all images of the folder, beside it."""
    folder = Path(folder)
    masks = folder.with_name(f"{folder.name}-masks")
    for seed, path in enumerate(sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))):
        to = masks / path.relative_to(folder).with_suffix(".png")
        if not to.exists():
            draw_mask(path, to, seed)
    return masks


class Recipe:
    def __init__(self, name, data, feed=feeds.Stoker, **more):
        self.name, self.data, self.feed, self.more = name, data, feed, more

    def makers(self, setting):
        """name: how to open it. All have one dataset, which knows the files that decode."""
        data = self.data(setting)

        def make(**more):
            return self.feed(setting, data=data, **self.more, **more)

        found = {feeds.CEILING: lambda: feeds.Resident(setting, source=make(jpeg_hardware="off")),
                 feeds.STOKER: make}
        if setting.device != "cpu":
            found[BY_WORKERS] = lambda: make(augment_on="cpu")
            loader = stoker.DataLoader(data, batch_size=setting.batch, num_workers=setting.workers, device=setting.device)
            parts.say(f"   {self.name}: {feeds.learn(loader)}")
        return found


def about(args):
    return (f"heavy: RandAugment(2, 9), RandomErasing(0.25), MixUp(0.2); images with masks: batches of {args.mask_batch}, a "
            f"shorter side of {args.mask_size // 2} to {2 * args.mask_size}, flip, crops of {args.mask_size}, ColorJitter")


def measure(meter, setting, args):
    """results[model][feed], and what the loaders say, as of parts.train."""
    rehearsal = setting.device == "cpu"
    kinds = [
        (Recipe("rehearsal" if rehearsal else "resnet50", augmented, batch_transforms=T.MixUp(alpha=0.2, num_classes=CLASSES)),
         setting.resized(setting.size, setting.batch)),
        (Recipe("rehearsal_masks" if rehearsal else "deeplabv3_resnet50", segmented, WithMasks),
         setting.resized(32 if rehearsal else args.mask_size, min(setting.batch, args.mask_batch))),
    ]
    results, about, refused = {}, {}, {}
    for recipe, own in kinds:
        makers = recipe.makers(own)
        step = trainer(recipe.name, own.device)
        warm = makers[feeds.CEILING]()
        for _ in range(6):
            step(*next(warm))
        meter.synchronize()
        del warm
        of, said, lost = parts.train(meter, makers, {recipe.name: step}, args)
        results |= {f"{model}, heavy": got for model, got in of.items()}
        about |= {f"{model}, heavy": got for model, got in said.items()}
        refused |= {f"{recipe.name}, heavy: {name}": why for name, why in lost.items()}
        del step
        if not rehearsal:
            torch.cuda.empty_cache()
    return results, about, refused
