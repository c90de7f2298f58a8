# SPDX-License-Identifier: Apache-2.0
"""The ops that torchvision has in both of its modules, by the same names."""


def ops_of(T):
    """Return what makes each of them. `T` is transforms or transforms.v2."""
    linear = T.InterpolationMode.BILINEAR
    return {
        "horizontal flip": lambda: T.RandomHorizontalFlip(1.0),
        "vertical flip": lambda: T.RandomVerticalFlip(1.0),
        "crop 224": lambda: T.RandomCrop(224),
        "pad 16, reflected": lambda: T.Pad(16, padding_mode="reflect"),
        "resize to 224": lambda: T.Resize((224, 224)),
        "resized crop 224": lambda: T.RandomResizedCrop(224),
        "rotation": lambda: T.RandomRotation(30, linear),
        "affine": lambda: T.RandomAffine(15, (0.1, 0.1), (0.8, 1.2), 10, linear),
        "perspective": lambda: T.RandomPerspective(0.5, 1.0, linear),
        "elastic": lambda: T.ElasticTransform(50.0, 5.0, linear),
        "jitter": lambda: T.ColorJitter(0.4, 0.4, 0.4, 0.1),
        "brightness": lambda: T.ColorJitter(brightness=0.4),
        "contrast": lambda: T.ColorJitter(contrast=0.4),
        "saturation": lambda: T.ColorJitter(saturation=0.4),
        "hue": lambda: T.ColorJitter(hue=0.1),
        "greyscale": lambda: T.Grayscale(3),
        "Gaussian blur 5": lambda: T.GaussianBlur(5, (0.1, 2.0)),
        "Gaussian blur 23": lambda: T.GaussianBlur(23, (0.1, 2.0)),
        "invert": lambda: T.RandomInvert(1.0),
        "posterize": lambda: T.RandomPosterize(4, 1.0),
        "solarize": lambda: T.RandomSolarize(128, 1.0),
        "sharpness": lambda: T.RandomAdjustSharpness(2.0, 1.0),
        "autocontrast": lambda: T.RandomAutocontrast(1.0),
        "equalize": lambda: T.RandomEqualize(1.0),
        "AutoAugment": lambda: T.AutoAugment(interpolation=linear),
        "RandAugment": lambda: T.RandAugment(interpolation=linear),
        "TrivialAugment": lambda: T.TrivialAugmentWide(interpolation=linear),
    }
