# SPDX-License-Identifier: Apache-2.0
"""Checks a built site: every link and anchor inside of it leads somewhere, and no page loads anything from a network.

    python scripts/docs/links.py SITE
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src"), ("link", "href")}


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[tuple[str, str, str]] = []  # tag, relation, target
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        for name in ("href", "src"):
            if name in given:
                self.links.append((tag, given.get("rel", ""), given[name]))


def check(site: Path) -> tuple[int, list[str]]:
    """How many links were checked, and those that are bad."""
    parsed = {path: _Page(path.read_text()) for path in site.rglob("*.html")}
    count, bad = 0, []
    for path, page in parsed.items():
        for tag, relation, target in page.links:
            parts = urlsplit(target)
            where = f"{path.relative_to(site)}: {target}"
            if parts.scheme or parts.netloc:
                loads = (tag, "src") in _LOADS or tag == "link" and relation not in ("canonical", "alternate")
                if loads and parts.scheme != "data":
                    bad.append(f"{where}: loaded from a network")
                continue
            count += 1
            found = _file(site, path, unquote(parts.path))
            if not found.is_file():
                bad.append(f"{where}: there is no such file")
            elif parts.fragment and found in parsed and unquote(parts.fragment) not in parsed[found].ids:
                bad.append(f"{where}: there is no such anchor")
    return count, bad


def _file(site: Path, page: Path, path: str) -> Path:
    if not path:
        return page
    base = site if path.startswith("/") else page.parent
    found = (base / path.lstrip("/")).resolve()
    return found / "index.html" if found.is_dir() else found


if __name__ == "__main__":
    number, failures = check(Path(sys.argv[1]).resolve())
    print(f"links: {number} checked, {len(failures)} bad")
    for failure in failures:
        print(f"  {failure}")
    sys.exit(bool(failures))
