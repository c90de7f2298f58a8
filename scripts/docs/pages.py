# SPDX-License-Identifier: Apache-2.0
"""Which pages the site has, where each comes from, and how links and lists of the repository's own Markdown are adapted."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "docs" / "site"

# Files of the repository that are pages as they stand. docs/*.md join them below.
_FIXED = {
    "DESIGN.md": "design.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}


def own_pages() -> list[Path]:
    return sorted(SITE.rglob("*.md"))


def included() -> dict[str, str]:
    """Path in the repository -> page, for every Markdown file outside docs/site that the site shows."""
    out = dict(_FIXED)
    for path in sorted((ROOT / "docs").glob("*.md")):
        out[f"docs/{path.name}"] = "numbers/overview.md" if path.stem == "numbers" else f"manual/{path.name}"
    for path in sorted((ROOT / "bench").glob("RESULTS*.md")):
        name = path.stem.removeprefix("RESULTS").strip("-").lower() or "two-cores"
        out[f"bench/{path.name}"] = f"numbers/{name}.md"
    out["examples/README.md"] = "examples/index.md"
    for program, page in examples().items():
        out[posixpath.join(posixpath.dirname(program), "README.md")] = page
    return out


def examples() -> dict[str, str]:
    """Path in the repository -> page, for the example programs. The README beside a program is the page, and shows it."""
    found = [*sorted((ROOT / "examples").glob("*/*.py")), *sorted((ROOT / "examples").glob("*/*.c"))]
    return {path.relative_to(ROOT).as_posix(): f"examples/{path.parent.name}.md" for path in found}


GENERATED = {  # page -> title
    "reference/dataloader.md": "stoker.DataLoader",
    "reference/datasets.md": "stoker.datasets",
    "reference/transforms.md": "stoker.transforms",
    "reference/audio.md": "stoker.audio",
    "reference/stoker.md": "stoker",
    "reference/command-line.md": "Command line",
    "reference/c.md": "C: stoker.h",
}
GALLERY = "transforms/gallery.md"

_COMING_FROM = {
    "torch": "torch", "torchvision": "torchvision", "timm": "timm", "Lightning": "lightning", "Accelerate": "accelerate",
    "HF Trainer": "hf-trainer", "Keras": "keras", "WebDataset": "webdataset", "FFCV": "ffcv", "DALI": "dali",
    "tf.data": "tf-data",
}
_GUIDES = (
    "small-data", "imagenet", "detection", "audio", "object-stores", "several-gpus", "reproducibility", "few-cores",
    "slow-disks",
)


def navigation(notebooks: list[str]) -> list[dict[str, object]]:
    """mkdocs' nav, in the order in which one reads: {title: page} or {section: [page, ...]}; a page alone is titled by its
    first heading."""
    numbers = [page for page in included().values() if page.startswith("numbers/")]
    watched = [name for name in notebooks if name.startswith("why-")]
    return [
        {"Home": "index.md"},
        {"Start": ["start.md", {"Installing": "manual/install.md"}]},
        {"Is it faster for me?": "faster.md"},
        {"Coming from": [{title: f"coming-from/{name}.md"} for title, name in _COMING_FROM.items()]},
        {"Guides": [
            "manual/loader.md", "manual/data.md", *(f"guides/{name}.md" for name in _GUIDES), "manual/gpu.md",
            "manual/frameworks.md", "manual/reproducibility.md", "manual/c.md",
            *(f"notebooks/{name}.md" for name in notebooks if name not in watched),
        ]},
        {"Transforms": [GALLERY, "manual/transforms.md", "manual/fidelity.md"]},
        {"Reference": [
            *({title: page} for page, title in GENERATED.items()), "manual/json.md",
            {"Examples": ["examples/index.md", *examples().values()]},
        ]},
        {"Doctor": [
            "guides/gpu-idle.md", "manual/doctor.md", "manual/doctor-codes.md", *(f"notebooks/{name}.md" for name in watched),
        ]},
        {"Numbers": numbers},
        {"Platforms": "platforms.md"},
        {"Help": ["help/troubleshooting.md", "help/faq.md"]},
        {"Project": ["design.md", "contributing.md", "manual/versioning.md", "changelog.md"]},
    ]


# ---- Markdown ----

FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")
_REMARK = re.compile(r"^<!--.*?-->\n", re.M | re.S)


def outside_fences(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it is prose (True) or belongs to a fenced block."""
    fence = ""
    for line in text.splitlines():
        found = FENCE.match(line)
        if fence:
            if found and found[2].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            yield line, False
        elif found:
            fence = found[2]
            yield line, False
        else:
            yield line, True


def adapted(source: str, text: str) -> str:
    """A Markdown file of the repository as a page: links to other pages point there, links to files that are no pages
    become plain text, and lists begin after a blank line, as Python-Markdown needs it."""
    pages = included()
    out: list[str] = []
    for line, prose in outside_fences(_REMARK.sub("", text)):
        if prose:
            line = LINK.sub(lambda found: _relinked(found, source, pages), line)
            starts_list = re.match(r"([-*]|\d+\.) ", line)
            if starts_list and out and out[-1].strip() and not re.match(r"\s*([-*]|\d+\.) |\s+|#", out[-1]):
                out.append("")
        out.append(line)
    return "\n".join(out) + "\n"


def _relinked(found: re.Match[str], source: str, pages: dict[str, str]) -> str:
    mark, words, target = found.groups()
    if re.match(r"[a-z]+:", target) or target.startswith("#"):
        return found[0]
    path, _, anchor = target.partition("#")
    whole = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if not (ROOT / whole).exists():
        raise ValueError(f"{source}: there is no {target}")
    here = posixpath.dirname(pages[source])
    if mark:
        return f"![{words}]({os.path.relpath('files/' + posixpath.basename(whole), here or '.')})"
    page = "reference/c.md" if whole == "include/stoker/stoker.h" else (pages | examples()).get(whole, "")
    if not page:
        return words if "`" in words or " " in words else f"`{words}`"
    return f"[{words}]({os.path.relpath(page, here or '.')}{'#' + anchor if anchor else ''})"


def pictures() -> list[Path]:
    """What pages show: copied to files/."""
    return [*sorted((ROOT / "bench").glob("*.svg")), *sorted((ROOT / "docs" / "img").glob("*.svg"))]


def slug(heading: str) -> str:
    """The anchor that a heading gets, here as on GitHub."""
    heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(text: str) -> set[str]:
    """All anchors of a page in Markdown."""
    out: set[str] = set()
    for line, prose in outside_fences(text):
        found = re.match(r"#+ +(.*?)\s*$", line) if prose else None
        if found:
            name, number = slug(found[1]), 1
            while name in out:
                name, number = f"{slug(found[1])}_{number}", number + 1
            out.add(name)
        if prose:
            out |= set(re.findall(r'id="([^"]+)"', line))
    return out


def links(text: str) -> Iterator[str]:
    """The targets of all links of a page in Markdown, those with a scheme left out."""
    for line, prose in outside_fences(text):
        if prose:
            for found in LINK.finditer(re.sub(r"`[^`]*`", "", line)):
                if not re.match(r"[a-z]+:", found[3]):
                    yield found[3]


def broken_links(folder: Path) -> list[str]:
    """Links of assembled pages that lead nowhere, as 'page: target'."""
    known = {path.relative_to(folder).as_posix(): anchors(path.read_text()) for path in folder.rglob("*.md")}
    bad = []
    for page in known:
        for target in links((folder / page).read_text()):
            path, _, anchor = target.partition("#")
            whole = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
            there = (folder / whole).exists()
            if not there or anchor and anchor not in known.get(whole, set()):
                bad.append(f"{page}: {target}")
    return bad
