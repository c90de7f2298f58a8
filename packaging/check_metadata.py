# SPDX-License-Identifier: Apache-2.0
"""Checks what PyPI would show of an sdist and its wheels, rendered by PyPI's own renderer.

    packaging/check_metadata.py CHECK URL SDIST WHEEL...

CHECK is the name of a function below; URL is what STOKER_URL was when the files were made.
"""

from __future__ import annotations

import email
import email.message
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import addresses
import readme_renderer.markdown
import trove_classifiers
from pyproject_metadata import StandardMetadata


ROOT = addresses.ROOT
FIELDS = ("Name", "Version", "Summary", "Author", "Keywords", "Requires-Python", "Description-Content-Type")
LISTS = ("Classifier", "Project-URL", "Requires-Dist", "Provides-Extra")


def metadata_of(path: Path) -> email.message.Message:
    if path.name.endswith(".tar.gz"):
        with tarfile.open(path) as archive:
            found = archive.extractfile(f"{path.name.removesuffix('.tar.gz')}/PKG-INFO")
            assert found is not None
            return email.message_from_bytes(found.read())
    with zipfile.ZipFile(path) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.message_from_bytes(archive.read(name))


def described(metadata: email.message.Message) -> dict[str, object]:
    """What must be the same in all files of a release."""
    fields = {name: metadata[name] for name in FIELDS} | {name: metadata.get_all(name) for name in LISTS}
    return fields | {"": metadata.get_payload(decode=True)}


class Links(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.pages: list[str] = []
        self.pictures: list[str] = []
        self.ids: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if name == "href":
                self.pages.append(value or "")
            elif name == "src":
                self.pictures.append(value or "")
            elif name == "id":
                self.ids.add(value or "")


def shown(metadata: email.message.Message) -> Links:
    rendered = readme_renderer.markdown.render(described(metadata)[""].decode())
    assert rendered, "PyPI cannot render the description"
    return Links(rendered)


def equal(url: str, sdist: Path, *wheels: Path) -> None:
    """Every file says the same of the project, and what is built from the sdist will, too."""
    first = described(metadata_of(sdist))
    for wheel in wheels:
        other = described(metadata_of(wheel))
        assert other == first, [(name, first[name], other[name]) for name in first if first[name] != other[name]]
    with tempfile.TemporaryDirectory() as folder, tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
        tree = Path(folder, sdist.name.removesuffix(".tar.gz"))
        content = tomllib.loads((tree / "pyproject.toml").read_text())
        content["project"]["dynamic"].remove("version")
        content["project"]["version"] = first["Version"]
        built = StandardMetadata.from_pyproject(content, project_dir=tree).as_rfc822()
    assert described(email.message_from_bytes(bytes(built))) == first


def links(url: str, sdist: Path, *wheels: Path) -> None:
    """Every link of the description is absolute, and each to the repository leads to a file of the release; pictures are
    addressed as bytes."""
    metadata = metadata_of(sdist)
    to = addresses.release(url, metadata["Version"])
    found = shown(metadata)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = set(listed.split("\0"))
    folders = {str(parent) for name in tracked for parent in Path(name).parents}
    project = [entry.partition(", ")[2] for entry in metadata.get_all("Project-URL")]
    assert len(found.pages) > 10 and len(found.pictures) > 1 and len(project) == 5, (found, project)
    for link in [*found.pages, *found.pictures, *project]:
        inside = link.startswith("#") and link[1:] in found.ids  # PyPI gives each heading one
        assert inside or re.match(r"https://[a-z]", link), f"PyPI cannot follow {link}"
    for picture in found.pictures:
        assert picture.startswith(to.picture("")) and picture.removeprefix(to.picture("")) in tracked, picture
    for link in [*found.pages, *project]:
        path = re.match(rf"{re.escape(to.home)}/(?:blob|tree)/{re.escape(to.tag)}/([^#]*)", link)
        if path:
            assert unquote(path[1]) in tracked | folders, link
        elif link.startswith(to.home):
            assert link in to.project_urls().values(), link


def accepted(url: str, sdist: Path, *wheels: Path) -> None:
    """PyPI refuses a classifier that it does not know."""
    metadata = metadata_of(sdist)
    unknown = set(metadata.get_all("Classifier")) - trove_classifiers.classifiers
    assert not unknown, unknown
    assert len(metadata["Summary"]) <= 512 and metadata["Author"] and metadata["Keywords"]


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2], *map(Path, sys.argv[3:]))
