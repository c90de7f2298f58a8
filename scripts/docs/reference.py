# SPDX-License-Identifier: Apache-2.0
"""Reference pages from the docstrings of the installed package."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

_ENTRY = re.compile(r"^(\*{0,2}[A-Za-z_]\w*(?:, [A-Za-z_]\w*)*): (.*)")
_SECTIONS = {
    "Args": "Arguments", "Attributes": "Attributes", "Raises": "Raises", "Returns": "Returns", "Yields": "Yields",
}
_SECTION = re.compile(rf"^({'|'.join(_SECTIONS)})(?: \((.+)\))?:$")
_WIDTH = 100


def page(module_name: str) -> str:
    """All that a module's __all__ names: functions first, then classes."""
    module = importlib.import_module(module_name)
    out = [f"# {module_name}", "", prose(inspect.getdoc(module) or ""), ""]
    public = [name for name in module.__all__ if name[0] != "_"]
    things = {name: getattr(module, name) for name in public}
    for name in sorted(things, key=lambda name: (inspect.isclass(things[name]), name.lower())):
        thing = things[name]
        if module_name == "stoker" and name == "DataLoader":
            out += ["## DataLoader", "", "[stoker.DataLoader](dataloader.md) has a page of its own.", ""]
        elif inspect.ismodule(thing):
            out += [f"## {name}", "", f"[stoker.{name}]({name}.md) has a page of its own.", ""]
        else:
            out += _entry(f"{module_name}.{name}", name, thing, things.values())
    return "\n".join(out) + "\n"


def class_page(module_name: str, name: str) -> str:
    """A class alone on its page."""
    thing = getattr(importlib.import_module(module_name), name)
    whole = f"{module_name}.{name}"
    words = prose(inspect.getdoc(thing) or "")
    words = words.replace("**Raises**", "## Exceptions", 1).replace("```pycon", "## Examples\n\n```pycon", 1)
    out = [f"# {whole}", "", words, "", "## Signature", "", *_fenced(_signature(whole, thing))]
    out += ["## Methods and properties", ""]
    for member in _members(thing, ()):
        out += _member(name, *member)
    return "\n".join(out) + "\n"


def _entry(whole: str, name: str, thing: Any, documented: Any) -> list[str]:
    out = [f"## {name}", "", *_fenced(_signature(whole, thing)), prose(_own_doc(thing)), ""]
    if inspect.isclass(thing) and not issubclass(thing, BaseException):
        for member in _members(thing, documented):
            out += _member(name, *member)
    return out


def _own_doc(thing: Any) -> str:
    if inspect.isclass(thing) and "__doc__" in vars(thing):
        return inspect.cleandoc(thing.__doc__ or "")
    return inspect.getdoc(thing) or ""


def _member(owner: str, name: str, thing: Any) -> list[str]:
    if isinstance(thing, property):
        return [f"### {owner}.{name}", "", prose(inspect.getdoc(thing) or ""), ""]
    return [
        f"### {owner}.{name}", "", *_fenced(_signature(f"{owner}.{name}", thing, drop_self=True)),
        prose(inspect.getdoc(thing) or ""), "",
    ]


def _members(kind: type, documented: Any) -> Iterator[tuple[str, Any]]:
    """Public methods and properties with a docstring: the class's own, and those of bases that have no entry."""
    foreign = [base for base in kind.__mro__ if not base.__module__.startswith("stoker") and base is not object]
    seen = {name for base in foreign for name in vars(base)}  # what torch's class has, means the same
    for base in kind.__mro__:
        if not base.__module__.startswith("stoker") or base is not kind and base in documented:
            continue
        for name, value in vars(base).items():
            listed = name[0] != "_" or name == "__getitem__" and "Dataset" in base.__name__
            function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
            if name in seen or not listed or not (callable(function) or isinstance(function, property)):
                continue
            if inspect.getdoc(function):
                seen.add(name)
                yield name, function


# ---- signatures ----


def _signature(whole: str, thing: Any, drop_self: bool = False) -> str:
    word = "class " if inspect.isclass(thing) else ""
    try:
        parameters = list(inspect.signature(thing).parameters.values())
    except (ValueError, TypeError):
        return word + whole
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        bases = ", ".join(base.__name__ for base in thing.__bases__)
        return f"{word}{whole}({bases})"
    if drop_self:
        parameters = parameters[1:]
    words, star = [], False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            words.append("*")
            star = True
        star = star or parameter.kind is parameter.VAR_POSITIONAL
        words.append(_parameter(parameter))
    line = f"{word}{whole}({', '.join(words)})"
    if len(line) <= _WIDTH:
        return line
    return f"{word}{whole}(\n" + "".join(f"    {each},\n" for each in words) + ")"


def _parameter(parameter: inspect.Parameter) -> str:
    mark = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    kind = parameter.annotation if isinstance(parameter.annotation, str) else ""
    kind = "" if mark or kind in ("Any", "None") else kind
    out = f"{mark}{parameter.name}" + (f": {kind}" if kind else "")
    if parameter.default is not parameter.empty:
        value = parameter.default
        text = f"InterpolationMode.{value.name}" if hasattr(value, "name") and hasattr(value, "value") else repr(value)
        text = repr(dict(value)) if type(value).__name__ == "mappingproxy" else text
        out += (" = " if kind else "=") + text
    return out


def _fenced(text: str, language: str = "python") -> list[str]:
    return [f"```{language}", text, "```", ""]


# ---- docstrings to Markdown ----


def escaped(text: str) -> str:
    """Plain text whose signs mean nothing to Markdown; what stands between backticks stays as it is."""
    parts = re.split(r"(`[^`]*`)", text)
    for place in range(0, len(parts), 2):
        parts[place] = re.sub(r"(\*|\[|\b_|_\b|__)", r"\\\1", parts[place]).replace("<", "&lt;")
    return "".join(parts)


def prose(doc: str) -> str:
    """A docstring: paragraphs, arguments as a list, examples and indented code as blocks."""
    out: list[str] = []
    for chunk in re.split(r"\n\s*\n", doc.strip("\n")):
        lines = chunk.splitlines()
        while lines:
            lines = _take(lines, out)
    return "\n".join(out).strip()


def _take(lines: list[str], out: list[str]) -> list[str]:
    """Writes one piece of a paragraph to `out`, and gives back what follows it."""
    if lines[0].lstrip().startswith(">>>"):
        out += ["```pycon", *inspect.cleandoc("\n".join(lines)).splitlines(), "```", ""]
        return []
    if _SECTION.match(lines[0]) and len(lines) > 1 and lines[1].startswith("    "):
        _take_section(lines, out)
        return []
    if lines[0].startswith("    "):
        out += ["```text", *inspect.cleandoc("\n".join(lines)).splitlines(), "```", ""]
        return []
    if _ENTRY.match(lines[0]) and all(line[0] == " " or _ENTRY.match(line) for line in lines[1:]):
        _take_entries(lines, out)
        return []
    end = next((k for k, line in enumerate(lines) if line.lstrip().startswith(">>>")), len(lines))
    out += [*(escaped(line) for line in lines[:end]), ""]
    return lines[end:]


def _take_section(lines: list[str], out: list[str]) -> None:
    """Args, Returns, Raises and the like, with what is indented below them. A group of arguments, "Args (errors):", gets a
    heading, and each of its arguments an anchor."""
    found = _SECTION.match(lines[0])
    assert found is not None
    group = found[2]
    out += [f"## {group[0].upper()}{group[1:]}" if group else f"**{_SECTIONS[found[1]]}**", ""]
    body = inspect.cleandoc("\n".join(lines[1:])).splitlines()
    if _ENTRY.match(body[0]) and all(line[:1] == " " or _ENTRY.match(line) for line in body[1:]):
        _take_entries(body, out, anchors=bool(group))
    else:
        out += [*(escaped(line) for line in body), ""]


def _take_entries(lines: list[str], out: list[str], anchors: bool = False) -> None:
    for line in lines:
        found = _ENTRY.match(line)
        if found:
            names = found[1].split(", ")
            marks = "".join(f'<a id="{name}"></a>' for name in names) if anchors else ""
            out += [f"-   {marks}{', '.join(f'`{name}`' for name in names)}: {escaped(found[2])}"]
        else:
            out += ["    " + escaped(line.strip())]
    out.append("")
