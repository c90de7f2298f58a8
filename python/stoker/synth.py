# SPDX-License-Identifier: Apache-2.0
"""Realistic JPEG datasets without a download.

The pictures have the properties of photographs that matter to a decoder: a 1/f spectrum, sharp edges where one object
occludes another ("dead leaves"), fine texture, and colour that is correlated with brightness. Sizes, bytes and chroma
subsampling follow a sample of ImageNet: about 500x375 pixels and 110 KB, three quarters 4:4:4.

    from stoker.synth import make_folder
    root = make_folder("data", count=500, seed=1)     # an ImageFolder, reused if it exists

Their classes mean nothing. What a model learns within seconds are drawn shapes: ``make_shapes`` makes an ImageFolder of
them, ``make_scenes`` images with masks and boxes.

The same seed gives the same files (with the same NumPy and Pillow).
"""
from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFilter

VERSION = 1  # increase it when the pictures change, so that existing folders are replaced
_STAMP = ".synth.json"  # in a folder that was made here: with which arguments
_BANK_SIDE = 1024
_TEXTURES = 10

# width, height, share
_SIZES = [
    (500, 375, 0.44), (500, 333, 0.15), (375, 500, 0.12), (333, 500, 0.06), (500, 500, 0.03),
    (640, 480, 0.03),
]
# Pillow's name of the chroma subsampling, progressive, share
_KINDS = [("4:4:4", False, 0.76), ("4:2:0", False, 0.19), ("4:2:2", False, 0.02), ("4:2:0", True, 0.01),
          ("grey", False, 0.02)]


def _field(rng: np.random.Generator, slope: float) -> np.ndarray:
    """Return a field of mean 0 and standard deviation 1 with a 1/f**slope spectrum."""
    side = _BANK_SIDE
    spectrum = np.fft.rfft2(rng.standard_normal((side, side), dtype=np.float32))
    fy = np.fft.fftfreq(side)[:, None]
    fx = np.fft.rfftfreq(side)[None, :]
    radius = np.sqrt(fy * fy + fx * fx)
    radius[0, 0] = 1.0
    spectrum /= radius**slope
    spectrum[0, 0] = 0.0
    field = np.fft.irfft2(spectrum, s=(side, side)).astype(np.float32)
    return field / field.std()


class Painter:
    """Paints the pictures of one seed. ``picture(n)`` depends on (seed, n) only.

    Args:
        seed: The seed.
    """

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        rng = np.random.default_rng([seed, 0])
        self._textures = [self._texture(rng) for _ in range(_TEXTURES)]
        grain = rng.normal(128, 24, (_BANK_SIDE, _BANK_SIDE)).clip(0, 255).astype(np.uint8)
        flat = np.full_like(grain, 128)
        self._grain = Image.merge("YCbCr", [Image.fromarray(p) for p in (grain, flat, flat)])

    @staticmethod
    def _texture(rng: np.random.Generator) -> Image.Image:
        luma = _field(rng, rng.uniform(0.9, 1.5))
        planes = [128 + 50 * luma]
        for _ in range(2):
            follow = rng.uniform(-0.5, 0.5)
            planes.append(128 + 13 * (follow * luma + 0.8 * _field(rng, 1.7)))
        return Image.merge("YCbCr", [Image.fromarray(p.clip(0, 255).astype(np.uint8)) for p in planes])

    def _patch(self, rng: np.random.Generator, width: int, height: int) -> Image.Image:
        """Return a piece of a texture with random zoom, contrast and tint."""
        zoom = float(rng.choice([0.5, 1.0, 1.0, 1.6]))
        w = min(max(int(width * zoom), 1), _BANK_SIDE)
        h = min(max(int(height * zoom), 1), _BANK_SIDE)
        x = int(rng.integers(_BANK_SIDE - w + 1))
        y = int(rng.integers(_BANK_SIDE - h + 1))
        texture = self._textures[int(rng.integers(_TEXTURES))]
        patch = texture.resize((width, height), Image.Resampling.BILINEAR, box=(x, y, x + w, y + h))
        contrast = rng.uniform(0.35, 1.2)
        levels = np.arange(256, dtype=np.float32) - 128
        table = [contrast * levels + rng.uniform(60, 190)]
        table += [levels * rng.uniform(0.3, 1.0) + 128 + rng.normal(0, 9) for _ in range(2)]
        return patch.point(np.concatenate(table).clip(0, 255).astype(np.uint8).tolist())

    def _leaf(self, rng: np.random.Generator, image: Image.Image) -> None:
        """Paint an object in front of the others: its outline is an edge."""
        side = min(image.size)
        size = int(side * 0.1 / rng.uniform(0.08, 1.0) ** 0.8) + 6
        w = max(int(size * rng.uniform(0.5, 1.6)), 4)
        h = max(int(size * rng.uniform(0.5, 1.6)), 4)
        w, h = min(w, image.width), min(h, image.height)
        mask = Image.new("L", (w, h))
        draw = ImageDraw.Draw(mask)
        if rng.random() < 0.4:
            draw.ellipse((1, 1, w - 2, h - 2), fill=255)
        else:
            turn = np.sort(rng.uniform(0, 2 * np.pi, int(rng.integers(3, 9))))
            reach = rng.uniform(0.5, 1.0, turn.size) * 0.5
            points = np.stack([w * (0.5 + reach * np.cos(turn)), h * (0.5 + reach * np.sin(turn))], 1)
            draw.polygon([tuple(p) for p in points.tolist()], fill=255)
        mask = mask.filter(ImageFilter.BoxBlur(float(rng.choice([0.5, 0.7, 2.0]))))
        x = int(rng.integers(-w // 2, image.width - w // 2))
        y = int(rng.integers(-h // 2, image.height - h // 2))
        image.paste(self._patch(rng, w, h), (x, y), mask)

    def _size(self, rng: np.random.Generator) -> tuple[int, int]:
        at = rng.random()
        for width, height, share in _SIZES:
            if at < share:
                return width, height
            at -= share
        if at < 0.03:  # a few large ones
            scale = rng.uniform(1.5, 2.6)
            return int(500 * scale), int(375 * scale)
        return int(rng.integers(120, 600)), int(rng.integers(120, 600))

    def image(self, number: int) -> Image.Image:
        """Return picture ``number`` before it is encoded, in YCbCr."""
        rng = np.random.default_rng([self.seed, 1, number])
        width, height = self._size(rng)
        image = self._patch(rng, width, height)
        for _ in range(int(rng.integers(8, 32))):
            self._leaf(rng, image)
        x = int(rng.integers(_BANK_SIDE - min(width, _BANK_SIDE) + 1))
        y = int(rng.integers(_BANK_SIDE - min(height, _BANK_SIDE) + 1))
        grain = self._grain.crop((x, y, x + width, y + height))
        if width > _BANK_SIDE or height > _BANK_SIDE:
            grain = self._grain.resize((width, height), Image.Resampling.BILINEAR)
        return ImageChops.add(image, ImageChops.blend(self._flat(width, height), grain,
                                                      rng.uniform(0.0, 0.75) ** 2), 1, -128)

    @staticmethod
    def _flat(width: int, height: int) -> Image.Image:
        return Image.new("YCbCr", (width, height), (128, 128, 128))

    def picture(self, number: int) -> bytes:
        """Return picture ``number`` as JPEG bytes."""
        rng = np.random.default_rng([self.seed, 2, number])
        image = self.image(number)
        quality = int(rng.choice([75, 85, 90, 94, 96, 97], p=[0.06, 0.10, 0.18, 0.22, 0.32, 0.12]))
        at = rng.random()
        for sampling, progressive, share in _KINDS:
            if at < share:
                break
            at -= share
        out = io.BytesIO()
        if sampling == "grey":
            image.getchannel(0).save(out, "JPEG", quality=quality)
        else:
            image.save(out, "JPEG", quality=quality, subsampling=sampling, progressive=progressive)
        return out.getvalue()


def make_folder(root: str | os.PathLike[str], count: int = 500, seed: int = 1, classes: int = 10,
                progress: Callable[[int], None] | None = None) -> Path:
    """Create a folder of pictures for ImageFolder, or reuse it if it was made with the same arguments.

    Args:
        root: The folder.
        count: The number of pictures.
        seed: Determines the pictures.
        classes: The number of class folders.
        progress: Called with the number of pictures that are done.

    Returns:
        The folder.

    Raises:
        FileExistsError: The folder exists, is not empty, and was not made by this function.
    """
    root = Path(root)
    wanted = {"version": VERSION, "count": count, "seed": seed, "classes": classes}
    if _is_made(root, wanted):
        return root
    paths = [root / f"class_{n % classes:03d}" / f"{n:06d}.jpg" for n in range(count)]
    _clear(root, paths)
    painter = Painter(seed)
    workers = len(os.sched_getaffinity(0))
    with ThreadPoolExecutor(workers) as pool:
        for done, (path, data) in enumerate(zip(paths, pool.map(painter.picture, range(count))), 1):
            path.write_bytes(data)
            if progress:
                progress(done)
    _mark(root, wanted)
    return root


# ---- folders made here say so in a file ----


def _is_made(root: Path, wanted: dict[str, object]) -> bool:
    try:
        made: object = json.loads((root / _STAMP).read_text())
    except (OSError, ValueError):
        return False
    return made == wanted


def _clear(root: Path, paths: list[Path]) -> None:
    """Remove what an earlier call left, and make the folders of these files."""
    if root.exists() and not (root / _STAMP).exists() and any(root.iterdir()):
        raise FileExistsError(f"{root} exists and was not made by stoker.synth: choose another folder")
    for old in [*root.glob("*/*.jpg"), *root.glob("*/*.png")]:
        old.unlink()
    for parent in {p.parent for p in paths}:
        parent.mkdir(parents=True, exist_ok=True)
    (root / _STAMP).write_text("{}")  # the folder is ours, but not finished


def _mark(root: Path, made: dict[str, object]) -> None:
    (root / _STAMP).write_text(json.dumps(made))


# ---- drawn shapes ----

SHAPES = ("disc", "square", "triangle")
_INKS = ((205, 80, 60), (60, 180, 90), (80, 90, 210))
_Box = tuple[int, int, int, int]


def _background(rng: np.random.Generator, width: int, height: int) -> Image.Image:
    noise = rng.normal(rng.uniform(90, 150), 20, (height, width, 3))
    return Image.fromarray(noise.clip(0, 255).astype(np.uint8))


def _draw(rng: np.random.Generator, image: Image.Image, mask: Image.Image, kind: int, left: int, right: int) -> _Box:
    """Draw a shape between two columns, in the mask with its class plus 1, and return its box."""
    most = min(right - left, image.height) - 2
    side = int(rng.integers(most // 2, most))
    x = int(rng.integers(left, right - side))
    y = int(rng.integers(0, image.height - side))
    ink = tuple(int(c) for c in (_INKS[kind] + rng.normal(0, 25, 3)).clip(0, 255))
    inks: list[tuple[Image.Image, tuple[int, ...] | int]] = [(image, ink), (mask, kind + 1)]
    for target, fill in inks:
        draw = ImageDraw.Draw(target)
        if SHAPES[kind] == "disc":
            draw.ellipse((x, y, x + side, y + side), fill=fill)
        elif SHAPES[kind] == "square":
            draw.rectangle((x, y, x + side, y + side), fill=fill)
        else:
            draw.polygon([(x + side // 2, y), (x, y + side), (x + side, y + side)], fill=fill)
    return x, y, side + 1, side + 1


def make_shapes(root: str | os.PathLike[str], count: int = 96, seed: int = 1) -> Path:
    """Create an ImageFolder of drawn shapes, which a small model learns to tell apart, or reuse it.

    Args:
        root: The folder. It gets one folder for each of ``SHAPES``.
        count: The number of images, 96 x 80 pixels each.
        seed: Determines the images.

    Returns:
        The folder.

    Raises:
        FileExistsError: The folder exists, is not empty, and was not made by this module.
    """
    root = Path(root)
    wanted = {"version": VERSION, "shapes": count, "seed": seed}
    if _is_made(root, wanted):
        return root
    paths = [root / SHAPES[n % len(SHAPES)] / f"{n:06d}.jpg" for n in range(count)]
    _clear(root, paths)
    for n, path in enumerate(paths):
        rng = np.random.default_rng([seed, 3, n])
        image = _background(rng, 96, 80)
        _draw(rng, image, Image.new("L", image.size), n % len(SHAPES), 0, image.width)
        image.save(path, "JPEG", quality=90)
    _mark(root, wanted)
    return root


def make_scenes(root: str | os.PathLike[str], count: int = 96, seed: int = 1) -> Path:
    """Create images of one to three drawn shapes, with masks and boxes, or reuse them.

    ``images/N.jpg`` belongs to ``masks/N.png``, a palette image as in Pascal VOC: 0 is the background, 1 and more are
    the classes in the order of ``SHAPES``. ``instances.json`` has the boxes in COCO's format, with the same numbers.

    Args:
        root: The folder.
        count: The number of images, 128 x 96 pixels each.
        seed: Determines the images.

    Returns:
        The folder.

    Raises:
        FileExistsError: The folder exists, is not empty, and was not made by this module.
    """
    root = Path(root)
    wanted = {"version": VERSION, "scenes": count, "seed": seed}
    if _is_made(root, wanted):
        return root
    images = [root / "images" / f"{n:06d}.jpg" for n in range(count)]
    masks = [root / "masks" / f"{n:06d}.png" for n in range(count)]
    _clear(root, [*images, *masks])
    files: list[dict[str, object]] = []
    objects: list[dict[str, object]] = []
    for n, (image_path, mask_path) in enumerate(zip(images, masks, strict=True)):
        rng = np.random.default_rng([seed, 4, n])
        image, mask = _background(rng, 128, 96), Image.new("P", (128, 96))
        mask.putpalette([0, 0, 0, *(level for ink in _INKS for level in ink)])
        shapes = int(rng.integers(1, 4))
        for k in range(shapes):  # side by side, so that none hides another
            kind = int(rng.integers(len(SHAPES)))
            box = _draw(rng, image, mask, kind, k * image.width // shapes, (k + 1) * image.width // shapes)
            objects.append({"id": len(objects) + 1, "image_id": n, "category_id": kind + 1, "bbox": box,
                            "area": box[2] * box[3], "iscrowd": 0})
        image.save(image_path, "JPEG", quality=90)
        mask.save(mask_path, "PNG")
        files.append({"id": n, "file_name": image_path.name, "width": image.width, "height": image.height})
    names = [{"id": k, "name": name} for k, name in enumerate(SHAPES, 1)]
    (root / "instances.json").write_text(json.dumps({"images": files, "annotations": objects, "categories": names}))
    _mark(root, wanted)
    return root
