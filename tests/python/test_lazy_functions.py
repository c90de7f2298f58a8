# SPDX-License-Identifier: Apache-2.0
"""torchvision's functions and Pillow's ImageOps on lazy images, as users' datasets call them: the same bytes, sizes, modes and
errors, and most of them record what is to be done."""

from __future__ import annotations

import pytest
import stoker
from conftest import picture
from loading import MEAN, STD
from PIL import Image, ImageOps

T = pytest.importorskip("torchvision.transforms")
import torch  # noqa: E402
from lazy_files import IMAGES, encoded, opened, values  # noqa: E402
from stoker._lazy.images import is_lazy  # noqa: E402
from torchvision.transforms import functional as F1  # noqa: E402
from torchvision.transforms.v2 import functional as F2  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")
BOTH = pytest.mark.parametrize("F", [F1, F2], ids=["v1", "v2"])
NEAREST, BILINEAR, BICUBIC = T.InterpolationMode.NEAREST, T.InterpolationMode.BILINEAR, T.InterpolationMode.BICUBIC
CORNERS = [[0, 0], [149, 0], [149, 109], [0, 109]]
MOVED = [[5, 3], [140, 9], [149, 100], [2, 109]]

# Calls that leave a lazy image lazy.
RECORDED = {
    "hflip": lambda F, image: F.hflip(image),
    "vflip": lambda F, image: F.vflip(image),
    "crop": lambda F, image: F.crop(image, 10, 20, 50, 60),
    "center_crop": lambda F, image: F.center_crop(image, [40, 50]),
    "resized_crop": lambda F, image: F.resized_crop(image, 10, 20, 50, 60, [32, 48]),
    "resize": lambda F, image: F.resize(image, [40, 60]),
    "resize to the smaller side": lambda F, image: F.resize(image, [40], BICUBIC, max_size=70),
    "rotate": lambda F, image: F.rotate(image, 12.5),
    "rotate with room": lambda F, image: F.rotate(image, -40, BILINEAR, expand=True, fill=[1, 2, 3] if image.mode == "RGB" else [9]),
    "rotate around": lambda F, image: F.rotate(image, 40, BICUBIC, center=[3, 9]),
    "turn around": lambda F, image: F.rotate(image, 180),
    "affine": lambda F, image: F.affine(image, 10, [3, -4], 1.1, [5.0, 2.0]),
    "smooth affine": lambda F, image: F.affine(image, -30, [0, 0], 0.7, [0.0, 0.0], BILINEAR, center=[10, 20]),
    "perspective": lambda F, image: F.perspective(image, CORNERS, MOVED, BILINEAR),
    "brightness": lambda F, image: F.adjust_brightness(image, 1.3),
    "contrast": lambda F, image: F.adjust_contrast(image, 0.6),
    "saturation": lambda F, image: F.adjust_saturation(image, 1.7),
    "sharpness": lambda F, image: F.adjust_sharpness(image, 2.5),
    "hue": lambda F, image: F.adjust_hue(image, 0.25),
    "posterize": lambda F, image: F.posterize(image, 3),
    "solarize": lambda F, image: F.solarize(image, 100),
    "equalize": lambda F, image: F.equalize(image),
    "autocontrast": lambda F, image: F.autocontrast(image),
    "invert": lambda F, image: F.invert(image),
    "grey": lambda F, image: F.rgb_to_grayscale(image, 3),
    "crop beyond the border": lambda F, image: F.crop(image, -5, 100, 130, 90),
    "large center_crop": lambda F, image: F.center_crop(image, [300, 200]),
    "pad": lambda F, image: F.pad(image, [3, 4, 5, 6], fill=7),
}
# Calls that need pixels at once.
MADE = {
    "quarter turn": lambda F, image: F.rotate(image, 90, expand=True),
    "odd hue": lambda F, image: F.adjust_hue(image, 0.1),
    "pad by reflection": lambda F, image: F.pad(image, [3, 4], padding_mode="reflect"),
    "pad with edges": lambda F, image: F.pad(image, 9, padding_mode="edge"),
    "gaussian_blur": lambda F, image: F.gaussian_blur(image, [5, 3], [1.1, 0.7]),
    "to_tensor": lambda F, image: F.to_tensor(image) if F is F1 else F.to_dtype(F.to_image(image), torch.float32, scale=True),
    "pil_to_tensor": lambda F, image: F.pil_to_tensor(image),
    "five_crop": lambda F, image: F.five_crop(image, [40, 50]),
    "ten_crop": lambda F, image: F.ten_crop(image, 40, vertical_flip=True),
    "size": lambda F, image: torch.tensor(F.get_dimensions(image)),
}


def results(F, call):
    """What a call makes of each file, as it was opened and after other steps."""
    out = []
    for data in IMAGES.values():
        for mode in ("RGB", "L"):
            if call in (RECORDED["hue"], MADE["odd hue"]) and mode == "L" and F is F1:
                mode = "RGB"  # torchvision returns grey images as they are
            image = opened(data, mode)
            out.append(call(F, image))
            out.append(call(F, F.hflip(F.resize(F.crop(image, 0, 10, 100, 130), [110, 150]))))
    return out


@BOTH
@pytest.mark.parametrize("name", [*RECORDED, *MADE], ids=lambda name: name.replace(" ", "-"))
def test_functions_give_torchvisions_bytes(F, name):
    call = (RECORDED | MADE)[name]
    plain = [values(one) for one in results(F, call)]
    with stoker.lazy_images():
        ours = results(F, call)
        lazy = [is_lazy(one) for one in ours]
        assert [values(one) for one in ours] == plain
    if name in RECORDED and not (name in ("hue", "saturation", "grey")):
        assert lazy[0] and lazy[1]


@BOTH
@pytest.mark.parametrize("name", RECORDED, ids=lambda name: name.replace(" ", "-"))
def test_what_is_recorded_stays_lazy_in_colour(F, name):
    with stoker.lazy_images():
        assert is_lazy(RECORDED[name](F, opened(IMAGES["jpeg"])))


OPS = {
    "mirror": lambda image: ImageOps.mirror(image),
    "flip": lambda image: ImageOps.flip(image),
    "fit": lambda image: ImageOps.fit(image, (40, 50)),
    "fit with a bleed": lambda image: ImageOps.fit(image, (90, 30), Image.BILINEAR, bleed=0.1, centering=(0.2, 0.9)),
    "pad": lambda image: ImageOps.pad(image, (90, 200), color=7),
    "contain": lambda image: ImageOps.contain(image, (90, 40)),
    "cover": lambda image: ImageOps.cover(image, (90, 40)),
    "expand": lambda image: ImageOps.expand(image, 5, 9),
    "expand sides": lambda image: ImageOps.expand(image, (1, 2, 3, 4)),
    "crop": lambda image: ImageOps.crop(image, 11),
    "scale": lambda image: ImageOps.scale(image, 0.4),
    "exif": lambda image: ImageOps.exif_transpose(image),
    "grayscale": lambda image: ImageOps.grayscale(image),
}
LAZY_OPS = ("mirror", "flip", "contain", "cover", "expand sides", "crop", "scale", "grayscale")


@pytest.mark.parametrize("name", OPS, ids=lambda name: name.replace(" ", "-"))
def test_image_ops_give_pillows_bytes(name):
    def work():
        return [OPS[name](opened(data, mode)) for data in IMAGES.values() for mode in ("RGB", "L")]

    plain = [values(one) for one in work()]
    with stoker.lazy_images():
        ours = work()
        assert name not in LAZY_OPS or is_lazy(ours[0])
        assert [values(one) for one in ours] == plain


TINY = encoded(picture(8, 1, 1))
NAN = float("nan")
WRONG = {
    "crop of nothing": lambda F, image: F.crop(image, 0, 0, 0, 5),
    "far crop": lambda F, image: F.crop(image, 500, -400, 5, 5),
    "five large crops": lambda F, image: F.five_crop(image, 500),
    "no size": lambda F, image: F.resize(image, [0, 3]),
    "negative size": lambda F, image: F.resize(image, [-1, 3]),
    "brightness": lambda F, image: F.adjust_brightness(image, NAN),
    "negative brightness": lambda F, image: F.adjust_brightness(image, -0.5),
    "contrast": lambda F, image: F.adjust_contrast(image, NAN),
    "hue": lambda F, image: F.adjust_hue(image, 0.7),
    "hue of NaN": lambda F, image: F.adjust_hue(image, NAN),
    "bits": lambda F, image: F.posterize(image, 0),
    "angle": lambda F, image: F.rotate(image, NAN),
    "infinite angle": lambda F, image: F.rotate(image, float("inf")),
    "threshold": lambda F, image: F.solarize(image, NAN),
    "affine": lambda F, image: F.affine(image, NAN, [0, 0], 1.0, [0.0, 0.0]),
    "scale": lambda F, image: F.affine(image, 0, [0, 0], 0.0, [0.0, 0.0]),
    "fill": lambda F, image: F.rotate(image, 3, fill=[1, 2]),
    "kernel": lambda F, image: F.gaussian_blur(image, 4),
    "padding": lambda F, image: F.pad(image, [-500, 3], fill=1),
    "reflection": lambda F, image: F.pad(image, 500, padding_mode="reflect"),
    "perspective": lambda F, image: F.perspective(image, CORNERS, [[NAN, 3], *MOVED[1:]]),
    "one point": lambda F, image: F.perspective(image, [[0, 0]] * 4, [[0, 0]] * 4),
    "normal": lambda F, image: F.normalize(image, MEAN, STD),
}


def outcome(F, call, data):
    """The result or the error, without what a message says of addresses."""
    try:
        return values(call(F, opened(data)))
    except Exception as error:
        return type(error), str(error).partition(" at 0x")[0]


@BOTH
@pytest.mark.parametrize("name", WRONG, ids=lambda name: name.replace(" ", "-"))
def test_bad_arguments_are_torchvisions_errors(F, name):
    for data in (IMAGES["jpeg"], IMAGES["png"], TINY):
        plain = outcome(F, WRONG[name], data)
        with stoker.lazy_images():
            assert outcome(F, WRONG[name], data) == plain


@BOTH
def test_an_image_of_one_pixel(F):
    for name, call in (RECORDED | MADE).items():
        plain = outcome(F, call, TINY)
        with stoker.lazy_images():
            assert outcome(F, call, TINY) == plain, name


@pytest.mark.parametrize("name", ["FiveCrop", "TenCrop"])
def test_several_crops_decode_their_image_once(name, monkeypatch):
    from stoker._lazy import pixels
    from torchvision.transforms import v2

    runs = []
    run = pixels.Encoded.run
    monkeypatch.setattr(pixels.Encoded, "run", lambda self, single, edits: runs.append(1) or run(self, single, edits))

    def stack(crops):
        return torch.stack([F1.normalize(F1.to_tensor(crop), MEAN, STD) for crop in crops])

    for module in (T, v2):
        transform = module.Compose([module.Resize(60), getattr(module, name)(48), stack])
        plain = transform(opened(IMAGES["jpeg"]))
        with stoker.lazy_images():
            runs.clear()
            ours = transform(opened(IMAGES["jpeg"]))
        assert values(ours) == values(plain) and len(runs) == 1
        assert ours.shape == (5 if name == "FiveCrop" else 10, 3, 48, 48)
