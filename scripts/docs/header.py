# SPDX-License-Identifier: Apache-2.0
"""The reference page of the C interface, from include/stoker/stoker.h, which is its own manual: declarations, and behind
them chapters, each a comment that begins with its title in brackets. "[Title]" elsewhere refers to a chapter."""

from __future__ import annotations

import re
from collections.abc import Iterator

from reference import escaped

_SECTION = re.compile(r"^/\* ---- (.+?) -+ \*/$")
_NAMES = re.compile(
    r"^STOKER_API [^;(]*?\b(stoker_\w+)\(|^(?:struct|enum) (stoker_\w+)(?: \{|;)|^#define (STOKER_(?!API)\w+)", re.M
)
_CHAPTER = re.compile(r"^/\* \[([^]]+)\]\n \*\n(.*?\*/)$", re.M | re.S)
_REFERENCE = re.compile(r"\[([A-Z][A-Za-z ]*[a-z])\]")


def chapters(text: str) -> dict[str, str]:
    """The manual: the text of each chapter. Raises ValueError if something refers to a chapter that is not there, or
    nothing to one that is."""
    found = {title: f"/*\n{words}" for title, words in _CHAPTER.findall(text)}
    named = set(_REFERENCE.findall(_CHAPTER.sub(lambda chapter: chapter[2], text)))
    if named != set(found):
        raise ValueError(f"stoker.h: no chapter, or no reference to it: {', '.join(sorted(named ^ set(found)))}")
    return found


def page(text: str) -> str:
    manual = chapters(text)
    out = [*_introduction(text), *_declarations(text), "## Manual", ""]
    for title, words in manual.items():
        out += [f'<a id="{_anchor(title)}"></a>', "", f"### {title}", "", _comment(words), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)) + "\n"


def _anchor(title: str) -> str:
    return f"manual-{title.lower().replace(' ', '-')}"


def _introduction(text: str) -> list[str]:
    head = text.partition("#ifndef STOKER_STOKER_H")[0]
    out = ["# stoker.h", ""]
    for comment in head.replace("SPDX-License-Identifier: Apache-2.0", "").split("*/"):
        if comment.strip():
            out += [_comment(comment + "*/"), ""]
    return out


def _declarations(text: str) -> list[str]:
    body = text[text.index('extern "C" {') :]
    body = body[body.index("#endif") + len("#endif") : body.rindex("#ifdef __cplusplus")]
    out: list[str] = []
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
        if titles := dict.fromkeys(_REFERENCE.findall(code)):
            out += [f"See {', '.join(map(_link, titles))}.", ""]
    return out


def _link(title: str) -> str:
    return f"[{title}](#{_anchor(title)})"


def _linked(text: str) -> str:
    """Plain text as Markdown, in which the titles of chapters are links."""
    return re.sub(r"\\" + _REFERENCE.pattern, lambda found: _link(found[1]), escaped(text))


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
            out += [f"**{_linked(' '.join(rows[:split]))}**" if split == 1 else "\n".join(map(_linked, rows[:split])), ""]
            for row in rows[split:]:
                found = re.match(r"\s+- (.*)", row)
                out.append(f"-   {_linked(found[1])}" if found else f"    {_linked(row.strip())}")
            out.append("")
        elif rows and all(row.startswith("  ") for row in rows):
            indent = min(len(row) - len(row.lstrip()) for row in rows)
            language = "c" if "stoker_" in chunk and ";" in chunk else "text"
            out += [f"```{language}", *(row[indent:] for row in rows), "```", ""]
        else:
            out += [*(_linked(row) for row in rows), ""]
    return "\n".join(out).strip().replace("```\n\n```c\n", "\n")  # one example, with a blank line in it
