# SPDX-License-Identifier: Apache-2.0
"""Fetches Debian's source packages of the libraries that the wheel contains.

    packaging/sources.py FOLDER MIRROR SUITE...
    packaging/sources.py --only PACKAGE FOLDER MIRROR SUITE...     another package; prints where its project's archive is

Each package is taken from the first suite, and there in the newest version, whose files can all be fetched; a library
that names a suite in libraries.json comes from that one. A mirror that is being updated lists versions whose files it
lacks: a version that cannot be fetched and is newer than the one taken is named on stderr and in FOLDER/versions.json,
which lists the result; what apt-get said is in FOLDER/fetch.log. apt-get runs with its own state in FOLDER, so that this
machine's packages and lists stay as they are, and verifies signatures and checksums.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

LIBRARIES = Path(__file__).with_name("libraries.json")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def apt_state(folder: Path, mirror: str, suite: str) -> dict[str, str]:
    """The environment in which apt sees the source packages of one suite only."""
    state = folder / "apt" / suite
    (state / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (state / "cache" / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    security = mirror.removesuffix("/") + "-security"
    lines = [(mirror, suite), (mirror, f"{suite}-updates"), (security, f"{suite}-security")]
    (state / "sources.list").write_text("".join(f"deb-src [signed-by={KEYRING}] {uri} {name} main\n" for uri, name in lines))
    (state / "apt.conf").write_text(
        f'Dir::State "{state}";\nDir::State::status "{state}/status";\nDir::Cache "{state}/cache";\n'
        f'Dir::Etc::sourcelist "{state}/sources.list";\nDir::Etc::sourceparts "/dev/null";\n'
        'APT::Sandbox::User "root";\nAcquire::Languages "none";\n'
    )
    return {**os.environ, "APT_CONFIG": str(state / "apt.conf"), "LC_ALL": "C"}


def is_newer(version: str, other: str) -> bool:
    return subprocess.call(["dpkg", "--compare-versions", version, "gt", other]) == 0


def versions(package: str, environment: dict[str, str]) -> list[str]:
    """The versions of a source package, newest first."""
    shown = subprocess.run(
        ["apt-cache", "showsrc", "--only-source", package], env=environment, capture_output=True, text=True, check=False
    ).stdout
    found = list(dict.fromkeys(re.findall(r"^Version: (.*)$", shown, re.MULTILINE)))
    return sorted(found, key=functools.cmp_to_key(lambda a, b: is_newer(b, a) - is_newer(a, b)))


def upstream(version: str) -> str:
    """The version that the project itself gave: without Debian's epoch, revision and repackaging."""
    version = re.sub(r"^\d+:", "", version).rsplit("-", 1)[0]
    version = re.sub(r"^.*\+really", "", version)
    return re.sub(r"[.+](dfsg|ds|repack)\d*.*$", "", version)


def download(package: str, version: str, folder: Path, environment: dict[str, str]) -> str:
    """Fetches the files of one version, unless they are there already; returns why they cannot be fetched, or ""."""
    if (folder / ".complete").exists():
        return ""
    folder.mkdir(parents=True, exist_ok=True)
    got = subprocess.run(
        ["apt-get", "source", "-qq", "--download-only", "--only-source", f"{package}={version}"],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if got.returncode:
        return next((line for line in got.stderr.splitlines() if line.startswith("E:")), got.stderr)
    (folder / ".complete").touch()
    return ""


def fetch(package: str, folder: Path, suites: dict[str, dict[str, str]]) -> dict[str, str]:
    """Fetches one package; returns what versions.json says of it."""
    absent: list[str] = []
    for suite, environment in suites.items():
        for version in versions(package, environment):
            into = folder / "fetched" / package / version.replace(":", "%3a")
            if reason := download(package, version, into, environment):
                with (folder / "fetch.log").open("a") as log:
                    print(f"{package} {version} of {suite}: {reason}", file=log)
                absent.append(version)
                continue
            dsc = next(into.glob("*.dsc"))
            newer = [other for other in absent if is_newer(other, version)]
            return {
                "version": version,
                "upstream": upstream(version),
                "suite": suite,
                "dsc": str(dsc.relative_to(folder)),
                "sha256": hashlib.sha256(dsc.read_bytes()).hexdigest(),
                **({"newer": newer[0]} if newer else {}),
            }
    sys.exit(
        f"stoker: no version of the source package {package} can be fetched from {', '.join(suites)}: "
        f"see {folder / 'fetch.log'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", metavar="PACKAGE")
    parser.add_argument("folder", type=Path)
    parser.add_argument("mirror")
    parser.add_argument("suites", nargs="+")
    given = parser.parse_args()
    folder = given.folder.resolve()
    suites = {suite: apt_state(folder, given.mirror, suite) for suite in given.suites}
    (folder / "fetch.log").write_text("")
    for environment in suites.values():
        # Without that option, a list of security updates that cannot be fetched would be a mere warning.
        subprocess.run(["apt-get", "update", "-qq", "-o", "APT::Update::Error-Mode=any"], env=environment, check=True)
    if given.only:
        dsc = folder / fetch(given.only, folder, suites)["dsc"]
        print(next(path for path in dsc.parent.glob("*.orig.tar.*") if path.suffix != ".asc"))
        return
    found = {}
    for name, about in json.loads(LIBRARIES.read_text()).items():
        allowed = [about["suite"]] if "suite" in about else list(suites)
        got = found[name] = fetch(about["source"], folder, {suite: suites[suite] for suite in allowed})
        if "newer" in got:
            lacking = f"the mirror lists {name} {got['newer']} but lacks its files"
            print(f"stoker: {lacking}: taking {got['version']}", file=sys.stderr)
    (folder / "versions.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
