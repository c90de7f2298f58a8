# SPDX-License-Identifier: Apache-2.0
"""Draws a program of programs.py from a number: a dict of the files, the dataset, the loader's options and the use that
is made of it, as expressions over the names of program_idioms."""

from __future__ import annotations

import random

from program_images import OPENINGS

PLAIN_OPENINGS = ("converted", "from_a_file", "with_statement", "torchvisions", "from_bytes", "if_not_rgb")
SAFE_IN_THREADS = (*PLAIN_OPENINGS, "upright", "cropped", "resized", "grey")


class Draw:
    """The choices of one program."""

    def __init__(self, number):
        self.chance = random.Random(f"program {number}")

    def one(self, *choices):
        return self.chance.choice(choices)

    def often(self, share):
        return self.chance.random() < share

    # ---- transforms ----

    def size(self):
        return self.one("24", "(24, 20)", "[20, 24]", "24", "28")

    def square(self):
        return self.one("24", "(24, 24)", "[24, 24]")

    def mode(self):
        modes = "InterpolationMode.BILINEAR", "InterpolationMode.NEAREST", "InterpolationMode.BICUBIC"
        return self.one("", "", "", *(f", interpolation={mode}" for mode in modes))

    def step_on_image(self, lib):
        """A step that takes and gives an image of any size."""
        chance = round(self.chance.uniform(0.2, 0.9), 2)
        both = [
            f"{lib}.RandomHorizontalFlip()", f"{lib}.RandomHorizontalFlip(p={chance})",
            f"{lib}.RandomVerticalFlip({chance})", f"{lib}.ColorJitter(0.4, 0.4, 0.4, 0.1)",
            f"{lib}.ColorJitter(brightness=(0.5, 1.5), hue=0.2)", f"{lib}.ColorJitter(saturation=0.7)",
            f"{lib}.RandomGrayscale(p={chance})", f"{lib}.Grayscale(3)", f"{lib}.GaussianBlur(5)",
            f"{lib}.GaussianBlur(3, sigma=(0.1, 2.0))", f"{lib}.RandomRotation({self.one(10, 45, '(-5, 90)')})",
            f"{lib}.RandomRotation(20, expand=True, fill=9)", f"{lib}.RandomAffine(15, translate=(0.1, 0.1), shear=5)",
            f"{lib}.RandomAffine(0, scale=(0.8, 1.2))", f"{lib}.RandomPerspective(0.4, p={chance})",
            f"{lib}.RandomPosterize(3, p={chance})", f"{lib}.RandomSolarize(120, p={chance})",
            f"{lib}.RandomAdjustSharpness(2, p={chance})", f"{lib}.RandomAutocontrast(p={chance})",
            f"{lib}.RandomEqualize(p={chance})", f"{lib}.RandomInvert(p={chance})", f"{lib}.Pad({self.one(2, '(1, 3)')})",
            f"{lib}.Pad((1, 2, 3, 4), fill=(9, 80, 200))", f"{lib}.Pad(4, padding_mode='reflect')",
            f"{lib}.Resize({self.one(26, 30, 33)}{self.mode()})", f"{lib}.Resize((30, 34){self.mode()})",
            f"{lib}.Resize(28, max_size=40)", f"{lib}.RandAugment(2, 7)", f"{lib}.TrivialAugmentWide()",
            f"{lib}.AutoAugment()", f"{lib}.AugMix()", f"{lib}.ElasticTransform(20.0)",
            f"{lib}.RandomApply([{lib}.ColorJitter(0.3, 0.3, 0.3, 0.1)], p={chance})",
            f"{lib}.RandomApply([{lib}.GaussianBlur(3), {lib}.RandomHorizontalFlip()], p={chance})",
            f"{lib}.RandomChoice([{lib}.RandomHorizontalFlip(1.0), {lib}.Pad(2), {lib}.RandomVerticalFlip()])",
            f"{lib}.RandomChoice([{lib}.RandomRotation(9), {lib}.ColorJitter(0.5)], p=[0.3, 0.7])",
            f"{lib}.RandomOrder([{lib}.RandomHorizontalFlip(), {lib}.ColorJitter(0.4), {lib}.Pad(1)])",
            f"{lib}.Lambda(to_grey_three)", f"{lib}.Lambda(FlipByRandom())", f"{lib}.Compose([{lib}.Pad(1), OwnFlip()])",
            "FlipByRandom()", "BlurByRandom()", "RotateByChoice()", "PadToSquare()", "OwnFlip(0.6)", "CropByNumpy(30)",
            f"nn.Sequential({lib}.RandomHorizontalFlip(), {lib}.Pad(1))", f"{lib}.CenterCrop(({self.one(26, 60)}, 30))",
            f"{lib}.RandomCrop(30, padding=4, pad_if_needed=True)", f"{lib}.RandomResizedCrop((32, 30))",
        ]  # fmt: skip
        only = [
            "v2.RandomPhotometricDistort(p=0.7)", "v2.RandomZoomOut(p=0.5, side_range=(1.0, 2.0))", "OwnV2()", "v2.RGB()",
            "v2.RandomResize(26, 40)", "v2.ScaleJitter((30, 30))", "v2.RandomShortestSize([26, 30], max_size=50)",
            "v2.RandomChannelPermutation()", "v2.Identity()",
        ]  # fmt: skip
        return self.chance.choice(both + only if lib == "v2" else both)

    def step_to_size(self, lib):
        """A step after which all images have one size."""
        return self.one(
            f"{lib}.RandomResizedCrop({self.size()}{self.mode()})",
            f"{lib}.RandomResizedCrop({self.size()}, scale=(0.2, 0.8), ratio=(0.5, 2.0))",
            f"{lib}.RandomResizedCrop({self.square()})", f"{lib}.RandomResizedCrop({self.square()})",
            f"{lib}.Resize((24, 24){self.mode()})", f"{lib}.Compose([{lib}.Resize(30), {lib}.CenterCrop(24)])",
            f"{lib}.Compose([{lib}.Resize(30), {lib}.RandomCrop({self.size()})])", f"{lib}.CenterCrop({self.square()})",
            f"{lib}.RandomCrop({self.square()}, pad_if_needed=True)",
            f"{lib}.RandomCrop(24, padding={self.one(2, '(1, 4)')}, pad_if_needed=True, padding_mode='edge')",
            f"{lib}.RandomCrop(28, pad_if_needed=True, fill=7)",
        )  # fmt: skip

    def to_tensor(self, lib):
        choices = [f"{lib}.ToTensor()", "T.ToTensor()", f"{lib}.PILToTensor(), {lib}.ConvertImageDtype(torch.float32)",
                   "as_float_array, from_array", f"{lib}.PILToTensor(), T.Lambda(lambda x: x.float())"]  # fmt: skip
        if lib == "v2":
            choices += ["v2.ToImage(), v2.ToDtype(torch.float32, scale=True)"] * 3
            choices += ["v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.ToPureTensor()"]
        return self.chance.choice(choices)

    def step_on_tensor(self, lib):
        return self.one(
            f"{lib}.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])", f"{lib}.Normalize([0.5], [0.25])",
            f"{lib}.RandomErasing(p=0.6)", f"{lib}.RandomErasing(0.7, value='random')", f"{lib}.RandomHorizontalFlip()",
            f"{lib}.RandomVerticalFlip()", "NoiseByTorch(0.1)", "Cutout()", f"{lib}.RandomGrayscale(0.4)",
            f"{lib}.ColorJitter(0.3, 0.3)", f"{lib}.RandomRotation(30)", f"{lib}.GaussianBlur(3)",
            f"{lib}.Lambda(lambda x: x * 2 - 1)", "lambda x: x.half().float()",
        )  # fmt: skip

    def transform(self, lib=None, fixed=True, on_tensor=True, images=(0, 1, 1, 2, 3)):
        lib = lib or self.one("T", "v2")
        steps = [self.step_on_image(lib) for _ in range(self.one(*images))]
        if fixed:
            steps.insert(self.chance.randint(0, 1) if steps else 0, self.step_to_size(lib))
            if len(steps) > 1:
                # What follows may change the size again.
                steps.append(self.one(f"{lib}.Resize((24, 24))", f"{lib}.RandomCrop(24, pad_if_needed=True)",
                                      f"{lib}.RandomResizedCrop(24)", f"{lib}.CenterCrop(24)"))  # fmt: skip
        if on_tensor:
            steps.append(self.to_tensor(lib))
            steps += [self.step_on_tensor(lib) for _ in range(self.one(0, 0, 1, 1, 2))]
        outer = f"{lib}.Compose([{', '.join(steps)}])"
        if len(steps) == 1 and "," not in steps[0] and self.often(0.3):
            return steps[0]
        return outer

    # ---- datasets ----

    def opening(self, *among):
        if self.often(0.4):
            return self.one(*PLAIN_OPENINGS)
        return self.chance.choice(among or [opening.__name__ for opening in OPENINGS])

    def photos(self):
        fixed = self.often(0.93)
        target = self.one("None", "None", "None", "torch.tensor", "lambda y: y + random.random()", "str",
                          "lambda y: nn.functional.one_hot(torch.tensor(y), 3)")  # fmt: skip
        return f"Photos(folder, {self.opening()}, {self.transform(fixed=fixed)}, {target})"

    def simple(self, name):
        return f"{name}(folder, {self.opening()}, {self.transform()})"

    def pairs(self):
        lib = self.one("T", "v2")
        how = self.one("by_seed", "by_seed", "by_torchs_seed", "by_randoms_seed", "by_state", "by_fork", "by_params")
        steps = [self.one(f"{lib}.Resize((36, 36))", f"{lib}.RandomResizedCrop(30)", f"{lib}.RandomCrop(30, padding=3, "
                          "pad_if_needed=True)"), self.step_on_image(lib), f"{lib}.RandomCrop(24, pad_if_needed=True)"]  # fmt: skip
        flips = f"{lib}.RandomHorizontalFlip(), {lib}.RandomVerticalFlip()"
        text = f"{lib}.Compose([{', '.join(steps)}, {flips}, {{}}])"
        tail = self.one(f"{lib}.ToTensor()", f"{lib}.PILToTensor()")
        mask = text.format(f"{lib}.PILToTensor()")
        if self.often(0.3):
            mask = f"{lib}.Compose([{lib}.RandomResizedCrop(24), {flips}, {lib}.PILToTensor()])"
            return f"Pairs(folder, {self.opening()}, {mask}, {mask}, '{how}')"
        return f"Pairs(folder, {self.opening()}, {text.format(tail)}, {mask}, '{how}')"

    def pairs_v2(self):
        how = self.one("by_v2", "by_v2_with_pil", "by_v2_of_two_images", "by_v2_dict", "by_stacking")
        steps = [self.step_to_size("v2"), self.one("v2.RandomHorizontalFlip()", "v2.RandomPhotometricDistort()",
                 "v2.ColorJitter(0.3)", "v2.RandomRotation(20)", "v2.RandomZoomOut()"), "v2.Resize((24, 24))"]  # fmt: skip
        if how == "by_v2_dict":
            steps.insert(0, self.one("v2.RandomIoUCrop(), v2.SanitizeBoundingBoxes(labels_getter=None)", "v2.Pad(2)"))
        steps.append(self.one("v2.ToImage(), v2.ToDtype(torch.float32, scale=True)", "v2.ToImage()"))
        return f"Pairs(folder, {self.opening()}, v2.Compose([{', '.join(steps)}]), None, '{how}')"

    def folders(self):
        """torchvision's own dataset, which the engine runs if no step draws."""
        lib = self.one("T", "v2")
        steps = [f"{lib}.Resize({self.one(28, '(28, 28)')}{self.mode()})", f"{lib}.CenterCrop(24)"]
        steps.append(self.one(f"{lib}.ToTensor()", f"{lib}.PILToTensor()"))
        if lib == "v2" and self.often(0.2):
            steps.insert(0, "v2.ToImage()")
        elif self.often(0.1):
            del steps[0:2]  # images of different sizes
        elif self.often(0.4):
            steps.append(self.one("T.Lambda(lambda x: x / 2)", "NoiseByTorch(0.1)", "T.ConvertImageDtype(torch.float64)"))
        whole = f"{lib}.Compose([{', '.join(steps)}])"
        target = self.one("", ", target_transform=lambda y: y * 2", ", target_transform=torch.tensor")
        data = f"datasets.ImageFolder(images_in(folder), {whole}{target})"
        return self.one(data, data, f"every_second({data})", f"ConcatDataset([{data}, {data}])", f"seeded_part({data})",
                        f"halves({data})")  # fmt: skip

    def own_folders(self):
        return f"{self.one('FolderWithPaths', 'FolderOfPairs')}(images_in(folder), {self.transform()})"

    def built(self):
        text = self.transform(images=(0, 1))
        return f"BuiltPerSample(folder, {self.opening()}, {text!r})"

    def fields(self):
        kind = self.one("Sample", "as_dict", "as_ordered", "as_nested", "as_scalars", "Record3")
        return f"Fields(folder, {self.opening()}, {self.transform()}, {kind})"

    def broken(self):
        how = self.one("raises", "tries_the_next", "tries_any", "gives_none", "gives_zeros", "says", "says")
        return f"Broken(folder, {self.opening()}, {self.transform()}, '{how}')"

    def streams(self):
        kind = self.one("Stream", "Stream", "StreamWithLength")
        more = self.one("", "", ", buffer=3", ", share=False")
        return f"{kind}(folder, {self.opening()}, {self.transform()}{more})"

    def composed(self):
        inner = self.photos()
        return self.one(
            f"every_second({inner})", f"halves({inner})", f"seeded_part({inner})", f"ConcatDataset([{inner}, {inner}])",
            f"Wrapped(halves(Photos(folder, {self.opening()})), {self.transform()})",
            f"StackDataset({inner}, tensors(len(images_of(folder))))", f"Subset({inner}, torch.randperm(9))",
        )  # fmt: skip

    def without_images(self):
        count = self.one(7, 10, 12)
        kind = self.one("ValueError", "OSError", "KeyError", "OwnError", "StopIteration", "FileNotFoundError")
        return self.one(
            f"Draws({count})", f"Draws({count})", f"tensors({count})", f"Tokens({count})", f"every_second(tensors({count}))",
            f"Failing({count}, [4, 5], {kind})", f"Failing({count}, [0], {kind})", f"list(range({count}))",
            f"ConcatDataset([tensors({count}), tensors(3)])", f"seeded_part(tensors({count}))", "[]",
            f"[{{'a': n, 'b': str(n)}} for n in range({count})]",
        )  # fmt: skip

    def dataset(self):
        """A dataset, and the kinds of files that it is meant for."""
        usual = ("ordinary", "ordinary", "photos", "photos", "mixed", "odd", "damaged")
        whole = ("ordinary", "photos")
        draws = [
            (18, self.photos, usual), (6, self.pairs, ("ordinary", "photos", "mixed")),
            (5, self.pairs_v2, ("ordinary", "photos", "mixed")), (6, self.built, usual), (5, self.fields, usual),
            (8, self.broken, ("damaged", "damaged", "odd", "mixed")), (6, self.streams, usual), (5, self.composed, usual),
            (5, self.folders, (*whole, "mixed", "odd", "damaged")), (3, self.own_folders, ("ordinary", "photos", "mixed")), (6, self.without_images, whole),
        ]  # fmt: skip
        for name in ("Views", "MultiCrop", "Triplets", "Mixed", "Fetched", "InMemory", "Cached", "Kept"):
            draws.append((3, lambda name=name: self.simple(name), usual))
        for name in ("StepByStep", "Functional", "Clips", "Numpy", "Attributes"):
            draws.append((2, lambda name=name: f"{name}(folder, {self.opening()}, {self.transform()})", usual))
        draws += [
            (1, lambda: f"Threads(folder, {self.one(*SAFE_IN_THREADS)}, {self.transform()})", whole),
            (1, lambda: f"Archive(folder, None, {self.transform()})", usual),
            (1, lambda: f"Decoded(folder, None, {self.one('T', 'v2')}.Compose([{self.step_on_tensor('v2')}, "
                        "v2.Resize((20, 20))]))", whole),
            (2, lambda: f"Images(folder, {self.opening()}, {self.transform(fixed=False, on_tensor=False)})", usual),
            (1, lambda: f"Images(folder, {self.opening()})", usual),
            (2, lambda: f"Cached(folder, {self.opening()}, {self.transform()}, 'array')", usual),
        ]  # fmt: skip
        _, make, kinds = self.chance.choices(draws, [draw[0] for draw in draws])[0]
        return make(), self.one(*kinds)

    # ---- the loader ----

    def samplers(self):
        return self.one(
            "SequentialSampler(dataset)", "RandomSampler(dataset)", "RandomSampler(dataset, replacement=True, num_samples=9)",
            "RandomSampler(dataset, num_samples=7)", "WeightedRandomSampler([1 + n % 4 for n in range(len(dataset))], 10)",
            "SubsetRandomSampler(range(0, len(dataset), 2))", "LazySampler(dataset)", "list(range(5))",
            "WeightedRandomSampler(torch.ones(len(dataset)), 6, replacement=False)",
            "DistributedSampler(dataset, num_replicas=2, rank=1)", "torch.randperm(len(dataset))",
            "RandomSampler(dataset, generator=torch.Generator().manual_seed(5))", "range(len(dataset) - 1, -1, -1)",
        )  # fmt: skip

    def batch_samplers(self):
        return self.one(
            "BatchSampler(RandomSampler(dataset), 4, False)", "BatchSampler(LazySampler(dataset), 3, True)",
            "ClassBatches(dataset)", "LengthBatches(dataset)", "[[0, 1], [2], [3, 4, 5]]",
            "BatchSampler(WeightedRandomSampler(torch.ones(len(dataset)), 8), 4, False)",
        )  # fmt: skip

    def collate(self, dataset):
        if dataset.startswith("Images"):
            return self.one("lists", "as_they_are", "lambda samples: samples[0]")
        if dataset.startswith("Tokens"):
            return self.one("padding", "padding", "lists", None)
        if "gives_none" in dataset:
            return self.one("without_none", "without_none", None)
        if dataset.startswith("Pairs") or "Record3" in dataset:
            return self.one("lists", None, "as_they_are")
        if self.often(0.12):
            return self.one("lists", "as_they_are", "mixing", "ToLargest()", "default_collate", "lambda samples: samples",
                            "functools.partial(lists)")  # fmt: skip
        return None

    def options(self, dataset):
        out = {}
        stream = "Stream" in dataset
        if self.often(0.25):
            out["generator"] = self.one("torch.Generator().manual_seed(11)", "torch.Generator().manual_seed(2**40)")
        if not stream and self.often(0.12):
            out["batch_sampler"] = self.batch_samplers()
        else:
            out["batch_size"] = self.one("1", "2", "3", "4", "4", "5", "16", "None" if self.often(0.5) else "4")
            if not stream and self.often(0.25):
                out["sampler"] = self.samplers()
            elif not stream and self.often(0.6):
                out["shuffle"] = self.one("True", "True", "True", "False")
            if self.often(0.2) and out["batch_size"] != "None":
                out["drop_last"] = "True"
        collate = self.collate(dataset)
        if collate is not None:
            out["collate_fn"] = collate
        out["num_workers"] = self.one("0", "0", "0", "0", "1", "2", "2", "3")
        if self.often(0.15) and out["num_workers"] == "0":
            del out["num_workers"]
        if out.get("num_workers", "0") != "0":
            self.options_of_workers(out)
        elif self.often(0.03):
            out[self.one("prefetch_factor", "timeout", "persistent_workers")] = "2"  # an error
        if self.often(0.1):
            out["pin_memory"] = "False"
        return out

    def options_of_workers(self, out):
        if self.often(0.3):
            out["persistent_workers"] = "True"
        if self.often(0.3):
            out["prefetch_factor"] = self.one("1", "2", "3", "5", "8")
        if self.often(0.15):
            out["timeout"] = self.one("120", "300.0")
        if self.often(0.3):
            out["worker_init_fn"] = self.one("seed_numpy", "seed_numpy", "seed_by_number", "shard_list",
                                             "failing_init" if self.often(0.2) else "seed_numpy")  # fmt: skip
        if self.often(0.1):
            out["in_order"] = "False"  # with several workers torch does not repeat itself
            out["num_workers"] = "1"
        if self.often(0.2):
            out["multiprocessing_context"] = "'fork'"

    def program(self, number):
        dataset, files = self.dataset()
        options = self.options(dataset)
        use = self.one("epochs", "epochs", "epochs", "lengths", "leave_early", "leave_early", "side_by_side", "endless",
                       "by_hand", "by_hand", "inner_epoch", "draws_between", "seed_between", "train_and_validate")  # fmt: skip
        if use == "inner_epoch" and "persistent_workers" in options:
            use = "epochs"  # an iterator would be restarted below the loop that uses it
        text = dataset + str(options)
        if options.get("num_workers", "0") != "0" and "lambda" not in text and self.often(0.04):
            options["multiprocessing_context"] = "'spawn'"
        prelude = self.one(*[""] * 16, "truncated", "bomb", "float64", "threads")
        large = self.one(72, 72, 72, 200)
        return {
            "number": number, "seed": self.chance.randrange(2**33), "files": [files, self.one(9, 12), number, 24, large],
            "prelude": prelude, "dataset": dataset, "options": options, "use": use,
            "way": self.one("stoker", "stoker", "install", "module"),
        }  # fmt: skip


def draw(number):
    """Program NUMBER."""
    return Draw(number).program(number)
