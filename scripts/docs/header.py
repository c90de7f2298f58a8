# SPDX-License-Identifier: Apache-2.0
"""The reference page of the C interface, from include/stoker/stoker.h, which is its own manual."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reference import escaped

_SECTION = re.compile(r"^/\* ---- (.+?) -+ \*/$")
_NAMES = re.compile(
    r"^STOKER_API [^;(]*?\b(stoker_\w+)\(|^(?:struct|enum) (stoker_\w+)(?: \{|;)|^#define (STOKER_(?!API)\w+)", re.M
)


def page(text: str) -> str:
    head, _, rest = text.partition("#ifndef STOKER_STOKER_H")
    out = ["# stoker.h", ""]
    for comment in head.replace("SPDX-License-Identifier: Apache-2.0", "").split("*/"):
        if comment.strip():
            out += [_comment(comment + "*/"), ""]
    body = rest[rest.index('extern "C" {') :]
    body = body[body.index("#endif") + len("#endif") : body.rindex("#ifdef __cplusplus")]
    for kind, words, code in _items(body):
        if kind == "section":
            out += [f"## {words[0].upper()}{words[1:]}", ""]
            continue
        names = [next(filter(None, found)) for found in _NAMES.findall(code)]
        if len(names) > 1:
            out += ["".join(f'<a id="{name}"></a>' for name in names), ""]
        if names:
            out += [f"### {', '.join(names[:3])}", ""]
        out += [words, ""]
        if code.strip():
            out += ["```c", code.replace("STOKER_API ", "").strip("\n"), "```", ""]
    return "\n".join(out) + "\n"


def _items(text: str) -> Iterator[tuple[str, str, str]]:
    """("section", title, "") and ("item", prose, declarations), in order."""
    words, code, inside = "", [], False
    comment: list[str] = []

    def done() -> Iterator[tuple[str, str, str]]:
        nonlocal words, code
        if words or "".join(code).strip():
            yield "item", words, "\n".join(code)
        words, code = "", []

    depth = 0
    for line in text.splitlines():
        section = _SECTION.match(line)
        if section:
            yield from done()
            yield "section", section[1], ""
        elif inside or line.startswith("/*") and not depth:
            if not inside and "".join(code).strip():
                yield from done()
            comment.append(line)
            inside = "*/" not in line
            if not inside:
                words = f"{words}\n\n{_comment(chr(10).join(comment))}".strip()
                comment = []
        elif not line.strip() and not depth:
            if "".join(code).strip():
                yield from done()
        else:
            depth += line.count("{") - line.count("}")
            code.append(line)
    yield from done()


def _comment(text: str) -> str:
    """A comment as Markdown: paragraphs, lists, and indented text as it stands."""
    text = re.sub(r"^\s*/\* ?|\s*\*/\s*$", "", text.strip())
    lines = [re.sub(r"^ \* ?", "", line).rstrip() for line in text.splitlines()]
    out: list[str] = []
    for chunk in re.split(r"\n\s*\n", "\n".join(lines).strip("\n")):
        rows = chunk.splitlines()
        split = next((k for k, row in enumerate(rows) if re.match(r"\s+- ", row)), None)
        if split is not None:  # a heading of the list may stand in front of it
            out += [f"**{escaped(' '.join(rows[:split]))}**" if split == 1 else "\n".join(map(escaped, rows[:split])), ""]
            for row in rows[split:]:
                found = re.match(r"\s+- (.*)", row)
                out.append(f"-   {escaped(found[1])}" if found else f"    {escaped(row.strip())}")
            out.append("")
        elif rows and all(row.startswith("  ") for row in rows):
            indent = min(len(row) - len(row.lstrip()) for row in rows)
            language = "c" if "stoker_" in chunk and ";" in chunk else "text"
            out += [f"```{language}", *(row[indent:] for row in rows), "```", ""]
        else:
            out += [*(escaped(row) for row in rows), ""]
    return "\n".join(out).strip().replace("```\n\n```c\n", "\n")  # one example, with a blank line in it
