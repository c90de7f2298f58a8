# SPDX-License-Identifier: Apache-2.0
"""A table of what is compiled: every transform of torchvision (v1 and v2), timm's pipelines, the presets of torchvision's models
and of its reference scripts, and Albumentations' steps, with their defaults and with others drawn from a seed. What leaves the
engine is seen here; so is what enters it without being written down."""

from __future__ import annotations

import os
import random
import warnings

os.environ.setdefault("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask PyPI for newer versions

import numpy as np
import pytest
import stoker
import torch
import torchvision
from PIL import Image
from torchvision import transforms as V1
from torchvision.transforms import InterpolationMode as Mode
from torchvision.transforms import v2 as V2

pytestmark = [pytest.mark.filterwarnings("ignore")]
ENGINE, PYTHON = "engine", "Python"
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The same images as a folder of classes, and beside masks."""
    root, rng = tmp_path_factory.mktemp("every"), np.random.default_rng(2)
    for name in ("classes/a", "images", "masks"):
        (root / name).mkdir(parents=True)
    for k, (height, width) in enumerate([(90, 70), (64, 101)]):
        image = Image.fromarray(np.cumsum(rng.integers(0, 9, (height, width, 3)), 1).astype(np.uint8))
        image.save(root / "classes" / "a" / f"{k}.png")
        image.save(root / "images" / f"{k}.png")
        Image.fromarray(rng.integers(0, 20, (height, width), np.uint8)).save(root / "masks" / f"{k}.png")
    return root


def floats(m):
    return [V1.ToTensor()] if m is V1 else [V2.ToImage(), V2.ToDtype(torch.float32, scale=True)]


def on_images(m, seed):
    """Steps of one version on images. With a seed they have other options than their defaults."""
    rng = random.Random(seed)
    one, size = rng.uniform, lambda: rng.randint(8, 60)
    fill = [rng.randint(0, 255) for _ in range(3)]
    mode = rng.choice([Mode.NEAREST, Mode.BILINEAR])
    if seed == 0:
        steps = [
            m.RandomRotation(30), m.RandomAffine(20), m.RandomPerspective(), m.ElasticTransform(), m.RandomInvert(), m.RandomPosterize(3),
            m.RandomSolarize(128), m.RandomAdjustSharpness(2), m.RandomAutocontrast(), m.RandomEqualize(), m.AutoAugment(),
            m.RandAugment(), m.TrivialAugmentWide(), m.AugMix(), m.GaussianBlur(5), m.Resize(32), m.CenterCrop(24), m.RandomCrop(24),
            m.RandomResizedCrop(24), m.RandomHorizontalFlip(), m.RandomVerticalFlip(), m.Pad(3), m.ColorJitter(0.2), m.Grayscale(),
            m.RandomGrayscale(), m.RandomApply([m.RandomHorizontalFlip()]), m.RandomOrder([m.RandomVerticalFlip(), m.Pad(2)]),
            m.RandomChoice([m.RandomRotation(10), m.RandomHorizontalFlip()]), m.Lambda(lambda image: image.convert("RGB")),
        ]  # fmt: skip
        if m is V2:
            steps += [
                m.JPEG((10, 90)), m.RandomChannelPermutation(), m.RandomPhotometricDistort(), m.RandomZoomOut(), m.RandomIoUCrop(),
                m.RandomResize(10, 20), m.RandomShortestSize(20), m.ScaleJitter((20, 30)), m.ClampBoundingBoxes(), m.RGB(),
                m.ConvertBoundingBoxFormat("XYWH"), m.SanitizeBoundingBoxes(), m.Identity(),
            ]  # fmt: skip
        return steps
    steps = [
        m.RandomRotation((-one(1, 90), one(1, 90)), mode, expand=rng.random() < 0.5, fill=fill),
        m.RandomAffine(one(1, 80), (one(0, 0.3), 0.1), (0.5, one(0.6, 2)), (1, 2, 3, one(4, 9)), mode, fill=fill),
        m.RandomPerspective(one(0.1, 0.9), 0.7, mode, fill), m.ElasticTransform(one(10, 60), one(3, 6), mode, fill=fill[0]),
        m.RandomInvert(one(0, 1)), m.RandomPosterize(rng.randint(1, 8), 0.7), m.RandomSolarize(one(0, 255), 0.3),
        m.RandomAdjustSharpness(one(0, 3), 0.2), m.RandomAutocontrast(0.3), m.RandomEqualize(0.9),
        m.AutoAugment(rng.choice(list(V1.AutoAugmentPolicy)), mode, fill), m.RandAugment(rng.randint(1, 4), rng.randint(0, 20), 21, mode, fill),
        m.TrivialAugmentWide(rng.randint(5, 40), mode, fill), m.AugMix(rng.randint(1, 9), 2, 2, 0.5, rng.random() < 0.5),
        m.GaussianBlur((3, 7), (0.3, one(0.4, 3))), m.Resize((size(), size()), rng.choice([Mode.BICUBIC, Mode.LANCZOS, Mode.BOX, Mode.HAMMING])),
        m.Resize(size(), mode, max_size=200), m.CenterCrop((size(), 200)),
        m.RandomCrop((size(), size()), (1, 2, 3, 4), True, rng.randint(0, 255), rng.choice(["reflect", "edge", "constant"])),
        m.RandomResizedCrop((size(), size()), (one(0.1, 0.3), 0.7), (0.5, one(1, 2)), Mode.BICUBIC), m.RandomHorizontalFlip(0.1),
        m.RandomVerticalFlip(0.8), m.Pad((1, 2, 3, rng.randint(0, 9)), padding_mode=rng.choice(["edge", "reflect", "symmetric"])),
        m.ColorJitter((0.1, one(0.2, 2)), one(0, 1), (0.5, 0.6), (-0.3, one(0, 0.5))), m.Grayscale(3), m.RandomGrayscale(one(0, 1)),
        m.RandomApply(torch.nn.ModuleList([m.ColorJitter(0.1), m.RandomRotation(3)]), one(0, 1)),
        m.RandomChoice([m.RandomRotation(10), m.GaussianBlur(3)], [0.3, 0.7]),
    ]  # fmt: skip
    if m is V2:
        steps += [
            m.JPEG(rng.randint(1, 100)), m.RandomPhotometricDistort((0.5, 0.6), (0.1, one(0.2, 2)), (0.3, 0.4), (-0.1, 0.2), 0.8),
            m.RandomZoomOut(fill, (1.0, one(1, 3)), 0.9), m.RandomIoUCrop(0.2, 0.9, 0.6, 1.5, [0.1, one(0.2, 1)], 20),
            m.RandomResize(size(), 70, Mode.BICUBIC), m.RandomShortestSize([20, size()], 90), m.ScaleJitter((size(), 30), (0.5, one(0.6, 2))),
        ]  # fmt: skip
    return steps


def on_tensors(m):
    """Whole pipelines that end with steps on tensors."""
    f = floats(m)
    yield "normalize", m.Compose([m.Resize((9, 9)), *f, m.Normalize(MEAN, STD)]), ENGINE
    for value in (0, "random", (1, 2, 3)):
        yield f"erasing {value}", m.Compose([*f, m.Normalize(MEAN, STD), m.RandomErasing(0.7, value=value)]), ENGINE
    yield "bytes", m.Compose([m.PILToTensor()]), ENGINE
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        yield f"to {dtype}", m.Compose([m.PILToTensor(), m.ConvertImageDtype(dtype)]), ENGINE
    moved = [m.RandomHorizontalFlip(), m.RandomCrop(30), m.CenterCrop(20), m.Pad(2), m.RandomVerticalFlip()]
    yield "moved", m.Compose([*f, *moved, m.Normalize(MEAN, STD)]), ENGINE
    yield "values", m.Compose([m.PILToTensor(), m.RandomInvert(), m.RandomSolarize(100), m.RandomPosterize(3)]), ENGINE
    yield "lambda", m.Compose([*f, m.Lambda(lambda x: x * 2 - 1)]), ENGINE
    # torchvision's arithmetic of tensors is another one.
    yield "resize of a tensor", m.Compose([*f, m.Resize((9, 9))]), PYTHON
    yield "inverted floats", m.Compose([*f, m.RandomInvert(1.0)]), PYTHON
    yield "whitening", m.Compose([m.Resize((4, 4)), *f, m.LinearTransformation(torch.eye(48), torch.zeros(48))]), PYTHON
    yield "crops", m.Compose([m.FiveCrop(8), m.Lambda(lambda crops: torch.stack([m.PILToTensor()(c) for c in crops]))]), PYTHON
    yield "nearest AugMix", m.Compose([m.AugMix(interpolation=Mode.NEAREST), *f]), PYTHON
    if m is V2:
        yield "noise", m.Compose([m.ToImage(), m.GaussianNoise(0.1, 0.2), *f[1:]]), ENGINE
        yield "pure", m.Compose([*f, m.Normalize(MEAN, STD), m.ToPureTensor()]), ENGINE
        yield "noise of floats", m.Compose([*f, m.GaussianNoise()]), PYTHON
        yield "types", m.Compose([m.ToImage(), m.ToDtype(torch.float32)]), PYTHON


MODELS = ("resnet50", "vit_b_16", "swin_t", "efficientnet_b0", "mobilenet_v3_large", "convnext_tiny", "inception_v3", "maxvit_t",
          "deeplabv3_resnet50", "lraspp_mobilenet_v3_large", "fasterrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn",
          "keypointrcnn_resnet50_fpn", "ssd300_vgg16", "retinanet_resnet50_fpn_v2", "fcos_resnet50_fpn")  # fmt: skip


def presets():
    """What torchvision's models and reference scripts have."""
    for name in MODELS:
        for weights in torchvision.models.get_model_weights(name):
            yield f"{weights}", weights.transforms(), ENGINE
    for policy in (None, V1.RandAugment(), V1.TrivialAugmentWide(), V1.AutoAugment(), V1.AugMix()):
        for m in (V1, V2):
            crop = [m.RandomResizedCrop(176, antialias=True), m.RandomHorizontalFlip(0.5), *([policy] if policy else [])]
            end = [m.PILToTensor(), m.ConvertImageDtype(torch.float32), m.Normalize(MEAN, STD), m.RandomErasing(0.1)]
            yield f"classification {m.__name__} {policy}", m.Compose([*crop, *end]), ENGINE
    detection = {
        "hflip": [V2.RandomHorizontalFlip(0.5)],
        "lsj": [V2.ScaleJitter((64, 64)), V2.RandomCrop((64, 64), pad_if_needed=True), V2.RandomHorizontalFlip()],
        "multiscale": [V2.RandomShortestSize((48, 64, 80), 100), V2.RandomHorizontalFlip()],
        "ssd": [V2.RandomPhotometricDistort(), V2.RandomZoomOut(fill=[123, 117, 104]), V2.RandomIoUCrop(), V2.RandomHorizontalFlip()],
    }
    for name, steps in detection.items():
        yield f"detection {name}", V2.Compose([*steps, *floats(V2), V2.SanitizeBoundingBoxes(), V2.ToPureTensor()]), ENGINE
    segmentation = [V2.RandomResize(30, 90), V2.RandomHorizontalFlip(0.5), V2.RandomCrop(48, pad_if_needed=True)]
    yield "segmentation", V2.Compose([*segmentation, *floats(V2), V2.Normalize(MEAN, STD)]), ENGINE


TIMM = {
    "evaluation": {},
    "bicubic": {"interpolation": "bicubic", "crop_pct": 0.9},
    "squash": {"crop_mode": "squash"},
    "border": {"crop_mode": "border"},
    "training": {"is_training": True},
    "without augmentation": {"is_training": True, "no_aug": True},
    "rand-m9": {"is_training": True, "auto_augment": "rand-m9-mstd0.5-inc1", "re_prob": 0.25, "re_mode": "pixel"},
    "3a": {"is_training": True, "auto_augment": "3a"},
    "augmix": {"is_training": True, "auto_augment": "augmix-m5-w4-d2"},
    "original": {"is_training": True, "auto_augment": "original-mstd0.5"},
    "v0": {"is_training": True, "auto_augment": "v0r"},
    "grey and blur": {"is_training": True, "grayscale_prob": 0.2, "gaussian_blur_prob": 0.3, "color_jitter_prob": 0.8},
    "scale": {"is_training": True, "vflip": 0.5, "scale": (0.3, 1.0), "ratio": (0.9, 1.1), "hflip": 0.0},
    "random crop": {"is_training": True, "train_crop_mode": "rkrc"},
    "random ratio": {"is_training": True, "train_crop_mode": "rkrr"},
    "bytes": {"normalize": False},
    "prefetcher": {"use_prefetcher": True},
}


def of_timm():
    data = pytest.importorskip("timm.data")
    for name, options in TIMM.items():
        yield name, data.create_transform((3, 48, 40), **options), ENGINE


SIZED = {"height": 30, "width": 20}
ALBUMENTATIONS = {
    **dict.fromkeys("PadIfNeeded HorizontalFlip VerticalFlip Transpose RandomRotate90 D4 SquareSymmetry Rotate ShiftScaleRotate Affine "
                    "Perspective ElasticTransform GridDistortion OpticalDistortion ColorJitter RandomBrightnessContrast RandomGamma "
                    "HueSaturationValue RGBShift ToGray CLAHE Equalize Posterize Solarize InvertImg ChannelShuffle ChannelDropout Sharpen "
                    "Emboss Blur GaussianBlur MotionBlur MedianBlur GaussNoise ISONoise MultiplicativeNoise SaltAndPepper PixelDropout "
                    "ImageCompression Downscale CoarseDropout GridDropout XYMasking RandomScale RandomToneCurve RandomGridShuffle "
                    "RandomCropFromBorders Pad ToRGB Normalize ToFloat NoOp".split(), {}),
    **dict.fromkeys(["Resize", "RandomCrop", "CenterCrop"], SIZED),
    **dict.fromkeys(["SmallestMaxSize", "LongestMaxSize"], {"max_size": 40}),
    "Crop": {"x_max": 20, "y_max": 30},
    "RandomSizedCrop": {"min_max_height": (10, 20), "size": (20, 20)},
    "RandomResizedCrop": {"size": (20, 20)},
}  # fmt: skip
IN_PYTHON = "FancyPCA ToSepia UnsharpMask SafeRotate CropAndPad RandomFog RandomShadow Superpixels ZoomBlur Defocus GlassBlur".split()


def of_albumentations():
    A = pytest.importorskip("albumentations")
    end = pytest.importorskip("albumentations.pytorch").ToTensorV2
    for name, options in ALBUMENTATIONS.items():
        yield name, A.Compose([getattr(A, name)(**options, p=1), end()]), ENGINE
    for name in IN_PYTHON:
        options = {"px": 3} if name == "CropAndPad" else {}
        yield name, A.Compose([getattr(A, name)(**options, p=1), end()]), PYTHON
    for holder in (A.OneOf, A.Sequential, A.RandomOrder):
        yield holder.__name__, A.Compose([holder([A.HorizontalFlip(), A.Transpose()]), end()]), ENGINE
    for cubic in (A.Resize(20, 20, interpolation=2), A.RandomResizedCrop((20, 20), interpolation=2), A.Affine(interpolation=2)):
        yield f"cubic {type(cubic).__name__}", A.Compose([cubic, end()]), PYTHON
    points = A.KeypointParams("xy", label_fields=["names"])
    yield "key points", A.Compose([A.HorizontalFlip(), end()], keypoint_params=points), ENGINE
    yield "targets", A.Compose([A.HorizontalFlip(), end()], additional_targets={"mask2": "mask"}), ENGINE


def table():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for m in (V1, V2):
            for seed in (0, 1, 2):
                for step in on_images(m, seed):
                    yield f"{m.__name__}.{type(step).__name__} {seed}", m.Compose([step, *floats(m)]), ENGINE
            yield from ((f"{m.__name__} {name}", *rest) for name, *rest in on_tensors(m))
        yield from presets()


def where(loader):
    return PYTHON if "Python" in str(loader.explain()) else ENGINE


def check(folders, rows):
    """Compare the plan of each row, and let the engine make a sample of each that is compiled."""
    wrong = []
    for name, transform, wanted in rows:
        if "RandomIoUCrop" in repr(transform):  # it needs boxes
            assert "random_iou_crop" in stoker.transforms.pipeline_text(transform)
            continue
        data = stoker.datasets.ImageFolder(folders / "classes", transform)
        found = where(stoker.DataLoader(data, 1))
        if found != wanted:
            wrong.append(f"{name}: {found}")
        elif wanted == ENGINE and data[0][0] is None:
            wrong.append(f"{name}: no image")
    assert not wrong, "\n".join(wrong)


def test_of_torchvision(folders):
    check(folders, table())


def test_of_timm(folders):
    check(folders, of_timm())


def test_of_albumentations(folders):
    check(folders, of_albumentations())


def test_masks_follow_every_step_of_torchvision(folders):
    wrong = []
    for m in (V1, V2):
        for step in on_images(m, 1):
            if type(step).__name__ in ("AugMix", "RandomIoUCrop"):
                continue  # several changes at once; boxes are needed
            data = stoker.datasets.ImageMaskFolder(folders / "images", folders / "masks", m.Compose([step, m.PILToTensor()]))
            image, mask = data[1]
            if where(stoker.DataLoader(data, 1)) != ENGINE or tuple(image.shape[1:]) != mask.shape:
                wrong.append(repr(step))
    assert not wrong, "\n".join(wrong)


FIXED = {"Resize", "CenterCrop", "Pad", "Grayscale", "Identity", "RGB"}


def test_what_draws_nothing_has_torchvisions_bytes(folders):
    images = [Image.open(path).convert("RGB") for path in sorted((folders / "classes" / "a").iterdir())]
    compared = 0
    for m in (V1, V2):
        fixed = [(repr(step), m.Compose([step, *floats(m)])) for seed in (0, 1, 2) for step in on_images(m, seed)
                 if type(step).__name__ in FIXED]  # fmt: skip
        fixed += [(name, transform) for name, transform, place in on_tensors(m) if name in ("normalize", "bytes") or " to " in name]
        for name, transform in fixed:
            data = stoker.datasets.ImageFolder(folders / "classes", transform)
            for k, image in enumerate(images):
                wanted = transform(image).as_subclass(torch.Tensor)
                assert torch.equal(data[k][0], wanted), name
                compared += 1
    assert compared > 60
