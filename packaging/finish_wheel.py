# SPDX-License-Identifier: Apache-2.0
"""Adds the licences of the bundled libraries and a bill of materials to a wheel, and the addresses of STOKER_URL.

    packaging/finish_wheel.py WHEEL versions.json SOURCES OUT

SOURCES holds the unpacked source of each library. The licences go to .dist-info/licenses, where the metadata lists
them (PEP 639); the bill of materials, CycloneDX 1.6, to .dist-info/sboms (PEP 770) and beside the wheel. The files
have the date of SOURCE_DATE_EPOCH, so that the same input gives the same bytes.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import re
import sys
import time
import urllib.parse
import uuid
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import addresses  # noqa: E402

LIBRARIES = json.loads(Path(__file__).with_name("libraries.json").read_text())
LICENCE_FILE = re.compile(r"^(COPYING|LICEN[CS]E|COPYRIGHT)([._-].*)?$", re.IGNORECASE)


def licence_files(sources: Path) -> dict[str, bytes]:
    """What each project and Debian say about the library's licence, by the path below licenses/."""
    found = {}
    for name in LIBRARIES:
        root = sources / name
        # LMDB keeps its files further down.
        places = [root, *root.glob("libraries/liblmdb")]
        files = [path for place in places for path in place.iterdir() if path.is_file() and LICENCE_FILE.match(path.name)]
        for path in [*files, root / "debian" / "copyright"]:
            found[f"bundled/{name}/{'debian-copyright' if path.parent.name == 'debian' else path.name}"] = path.read_bytes()
    return found


def licence_expression(own: str) -> str:
    """The package's licence and those of everything in it, as one SPDX expression."""
    parts = {part.strip() for about in LIBRARIES.values() for part in about["licence"].split(" AND ")}
    parts.discard(own)
    return " AND ".join([own, *(f"({part})" if " OR " in part else part for part in sorted(parts))])


def bill_of_materials(version: str, wheel: str, versions: dict[str, dict[str, str]]) -> bytes:
    components, names, root = [], {}, f"pkg:pypi/stoker@{version}"
    for name, about in LIBRARIES.items():
        got = versions[name]
        distribution = urllib.parse.urlencode({"arch": "source", "distro": got["suite"]})
        purl = f"pkg:deb/debian/{about['source']}@{urllib.parse.quote(got['version'], safe='')}?{distribution}"
        names[name] = purl
        components.append({
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": got["upstream"],
            "description": about["for"],
            "purl": purl,
            "licenses": [{"expression": about["licence"]}],
            "hashes": [{"alg": "SHA-256", "content": got["sha256"]}],
            "properties": [{"name": "stoker:debian:version", "value": got["version"]}],
        })  # fmt: skip
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    content = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": moment,
            "component": {
                "type": "library",
                "bom-ref": root,
                "name": "stoker",
                "version": version,
                "purl": root,
                "licenses": [{"expression": "Apache-2.0"}],
                "properties": [{"name": "stoker:wheel", "value": wheel}],
            },
        },
        "components": components,
        "dependencies": [
            {"ref": root, "dependsOn": list(names.values())},
            *({"ref": names[name], "dependsOn": [names[other] for other in about.get("needs", ())]}
              for name, about in LIBRARIES.items()),
        ],
    }
    content["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(content, sort_keys=True))}"
    return (json.dumps(content, indent=1) + "\n").encode()


def record(files: dict[str, bytes], name: str) -> bytes:
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    for path, content in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.writerow([path, f"sha256={digest}", len(content)])
    rows.writerow([name, "", ""])
    return out.getvalue().encode()


def main() -> None:
    wheel, versions, sources, out = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text()), *map(Path, sys.argv[3:])
    version = wheel.name.split("-")[1]
    info = f"stoker-{version}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        modes = {entry.filename: entry.external_attr for entry in archive.infolist() if not entry.is_dir()}
        files = {name: archive.read(name) for name in modes if name != f"{info}/RECORD"}
    licences = licence_files(sources)
    for name, content in licences.items():
        files[f"{info}/licenses/{name}"] = content
    head, _, text = files[f"{info}/METADATA"].decode().partition("\n\n")
    own = re.search(r"^License-Expression: (.*)$", head, re.MULTILINE)
    if own is None:
        sys.exit(f"stoker: {wheel} does not state its licence")
    head = head.replace(own[0], f"License-Expression: {licence_expression(own[1])}")
    head += "".join(f"\nLicense-File: {name}" for name in sorted(licences))
    metadata = f"{head}\n\n{text}"
    if url := os.environ.get("STOKER_URL"):
        metadata = addresses.metadata(metadata, url)
    files[f"{info}/METADATA"] = metadata.encode()
    materials = bill_of_materials(version, wheel.name, versions)
    files[f"{info}/sboms/stoker.cdx.json"] = materials
    files[f"{info}/RECORD"] = record(files, f"{info}/RECORD")
    date = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]
    # RECORD comes last, as the format recommends.
    names = sorted(files, key=lambda name: (name.startswith(info), name.endswith("/RECORD"), name))
    with zipfile.ZipFile(out / wheel.name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in names:
            entry = zipfile.ZipInfo(name, date)
            entry.external_attr = modes.get(name, 0o100644 << 16)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name], compresslevel=9)
    (out / f"{wheel.name}.cdx.json").write_bytes(materials)


if __name__ == "__main__":
    main()
