# SPDX-License-Identifier: Apache-2.0
"""Where the project lives, for the pages that PyPI shows: project URLs, and absolute links in place of the README's
relative ones. The repository does not know its own address; a release is given it as STOKER_URL.

    packaging/addresses.py check URL           ends with a sentence if a release cannot use the address
    packaging/addresses.py sdist URL SDIST     writes it into README.md, pyproject.toml and PKG-INFO of an sdist

finish_wheel.py writes it into a wheel's metadata.
"""

from __future__ import annotations

import gzip
import io
import posixpath
import re
import sys
import tarfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts" / "docs"))

import pages  # noqa: E402

REPOSITORY = re.compile(r"https://github\.com/([A-Za-z0-9-]+/[A-Za-z0-9._-]*[A-Za-z0-9_-])")


class Release(NamedTuple):
    """The files of one version, under its tag."""

    repository: str  # OWNER/NAME
    tag: str

    @property
    def home(self) -> str:
        return f"https://github.com/{self.repository}"

    def page(self, path: str) -> str:
        kind = "tree" if (ROOT / path).is_dir() else "blob"
        return f"{self.home}/{kind}/{self.tag}/{path}"

    def picture(self, path: str) -> str:
        """The bytes themselves, with the type that they have: PyPI's proxy shows SVG only as image/svg+xml."""
        return f"https://raw.githubusercontent.com/{self.repository}/{self.tag}/{path}"

    def project_urls(self) -> dict[str, str]:
        return {
            "Homepage": self.home,
            "Documentation": self.page("docs"),
            "Source": f"{self.home}/tree/{self.tag}",
            "Changelog": self.page("CHANGELOG.md"),
            "Issues": f"{self.home}/issues",
        }


def release(url: str, version: str) -> Release:
    if not url:
        sys.exit(
            "stoker: a release needs the repository's address: make release STOKER_URL=https://github.com/OWNER/NAME"
        )
    found = REPOSITORY.fullmatch(url)
    if found is None or url.endswith(".git"):
        sys.exit(
            f"stoker: STOKER_URL is '{url}': it must have the form https://github.com/OWNER/NAME. "
            "Other hosts address the files of a tag differently: packaging/addresses.py must learn how"
        )
    return Release(found[1], f"v{version}")


def readme(text: str, to: Release) -> str:
    """The README with absolute links, and nothing else changed."""
    lines = (pages.LINK.sub(lambda found: _absolute(found, to), line) if prose else line
             for line, prose in pages.outside_fences(text))  # fmt: skip
    return "\n".join(lines) + "\n"


def _absolute(found: re.Match[str], to: Release) -> str:
    mark, words, target = found.groups()
    words = pages.LINK.sub(lambda inner: _absolute(inner, to), words)  # a picture that is a link
    if not re.match(r"[a-z]+:", target):
        path, hash_, anchor = target.partition("#")
        path = posixpath.normpath(path or "README.md")
        if path.startswith(("..", "/")) or not (ROOT / path).exists():
            sys.exit(f"stoker: README.md links to {target}, which does not exist: PyPI would show a broken link")
        target = (to.picture(path) if mark else to.page(path)) + hash_ + anchor
    return f"{mark}[{words}]({target})"


def metadata(text: str, url: str) -> str:
    """METADATA or PKG-INFO with the project's URLs and a description in which links are absolute."""
    head, _, description = text.partition("\n\n")
    version = re.search(r"^Version: (.*)$", head, re.MULTILINE)
    if version is None:
        sys.exit("stoker: the metadata state no version")
    to = release(url, version[1])
    head += "".join(f"\nProject-URL: {name}, {address}" for name, address in to.project_urls().items())
    return f"{head}\n\n{readme(description, to)}"


def pyproject(text: str, to: Release) -> str:
    if "[project.urls]" in text:
        sys.exit("stoker: pyproject.toml has [project.urls] already; a release writes them from STOKER_URL")
    lines = (f'{name} = "{address}"' for name, address in to.project_urls().items())
    return "\n".join([text.rstrip("\n"), "", "[project.urls]", *lines, ""])


def sdist(url: str, path: Path) -> None:
    """Rewrites three files of an sdist, so that what is built from it has the same metadata."""
    top = path.name.removesuffix(".tar.gz")
    to = release(url, top.partition("-")[2])
    change = {
        f"{top}/README.md": lambda text: readme(text, to),
        f"{top}/pyproject.toml": lambda text: pyproject(text, to),
        f"{top}/PKG-INFO": lambda text: metadata(text, url),
    }
    out = io.BytesIO()
    with tarfile.open(path) as before, tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as after:
        for member in before:
            content = before.extractfile(member)
            data = content.read() if content else b""
            if member.name in change:
                data = change.pop(member.name)(data.decode()).encode()
                member.size = len(data)
            after.addfile(member, io.BytesIO(data) if content else None)
    if change:
        sys.exit(f"stoker: {path} lacks {', '.join(change)}")
    path.write_bytes(gzip.compress(out.getvalue(), mtime=0))


def main() -> None:
    what, url, *rest = sys.argv[1:]
    if what == "check":
        release(url, "0")
    elif what == "sdist":
        sdist(url, Path(rest[0]))
    else:
        sys.exit(f"stoker: addresses.py knows check and sdist, not {what}")


if __name__ == "__main__":
    main()
