# SPDX-License-Identifier: Apache-2.0
"""The documentation site: its pages come together, their links lead somewhere, their Python compiles and the guides' runs.
`make docs` builds the site itself, runs every block, and checks the links of the built pages."""

from __future__ import annotations

import html
import importlib.util
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import stoker

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts" / "docs"))
for needed in ("torch", "torchvision", "PIL", "matplotlib"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"{needed} is not installed", allow_module_level=True)

import assemble  # noqa: E402
import blocks  # noqa: E402
import gallery  # noqa: E402
import header  # noqa: E402
import links  # noqa: E402
import load  # noqa: E402
import notebook  # noqa: E402
import pages  # noqa: E402
import terminal  # noqa: E402
from ranks import in_fresh_python  # noqa: E402
from test_info import CHROMIUM  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """All pages as Markdown, without what their blocks print."""
    out = tmp_path_factory.mktemp("site") / "pages"
    assemble.assemble(out, {}, {})
    return out


@pytest.fixture(scope="module")
def built(site):
    """The same as a browser gets it."""
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    folder, out = site.parent, site.parent / "html"
    (folder / "mkdocs.yml").write_text(assemble.configuration(folder))
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", folder / "mkdocs.yml", "-d", out]
    got = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    assert got.returncode == 0, got.stdout + got.stderr
    return out


def test_links_lead_somewhere(site):
    assert pages.broken_links(site) == []


def test_a_broken_link_is_noticed(tmp_path):
    (tmp_path / "a.md").write_text("# A\n\n[b](b.md#there) [b](b.md#gone) [c](c.md) [d](#a) `[e](e.md)`\n")
    (tmp_path / "b.md").write_text("# B\n\n```\n# gone\n```\n\n## There\n")
    assert pages.broken_links(tmp_path) == ["a.md: b.md#gone", "a.md: c.md"]


def test_links_of_built_pages_lead_somewhere_and_load_nothing(built):
    count, bad = links.check(built)
    assert bad == [] and count > 1000


SEARCH = """<script>addEventListener("load", () => {
  const box = document.querySelector("input.md-search__input"), wrong = [];
  addEventListener("error", event => wrong.push(event.message));
  document.getElementById("__search").click();
  box.focus();
  box.value = "QUERY";
  box.dispatchEvent(new Event("keyup", {bubbles: true}));
  setTimeout(() => {
    const found = [...document.querySelectorAll(".md-search-result__link")].map(link => link.getAttribute("href"));
    const fetched = performance.getEntriesByType("resource").map(entry => entry.name);
    const said = document.querySelector(".md-search-result__meta").textContent.trim();
    document.title = JSON.stringify({wrong, found, said, foreign: fetched.filter(name => !/^(file|data|blob):/.test(name))});
  }, 5000);
});</script>"""


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")
@pytest.mark.parametrize(("query", "expected"), [
    ("max_memory", {"reference/dataloader.html", "help/troubleshooting.html"}), ("GaussianBlur", {"transforms/gallery.html"}),
    ("qzxwvk", set())])
def test_search_works_from_the_file_system(built, tmp_path, query, expected):
    page = built / f"search-{query}.html"
    page.write_text((built / "index.html").read_text().replace("</head>", SEARCH.replace("QUERY", query) + "</head>", 1))
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
               "--virtual-time-budget=30000", "--dump-dom", page.as_uri()]
    got = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout
    page.unlink()
    said = json.loads(html.unescape(re.search(r"<title>([^<]*)</title>", got)[1]))
    found = {link.removeprefix(built.as_uri() + "/").partition("#")[0].partition("?")[0] for link in said["found"]}
    assert said["wrong"] == [] and said["foreign"] == [], said
    assert found >= expected and bool(found) == bool(expected), said


def test_the_gallery_shows_every_transform(site, monkeypatch, tmp_path):
    text = (site / pages.GALLERY).read_text()
    assert gallery.transforms() >= {"Resize", "RandomErasing", "Compose", "MixUp", "RandomChoice"}
    for name in gallery.transforms():
        section = text.split(f"\n### {name}\n")[1].split("\n### ")[0]
        shown = re.findall(r'<img src="([^"]+)"', section)
        assert len(shown) >= (1 if name == "RandomIoUCrop" else 2) and f"T.{name}(" in section, name
        before, *after = [(site / pages.GALLERY).parent / source for source in shown]
        assert before.stat().st_size > 1000 and all(picture.stat().st_size > 500 for picture in after), name
    monkeypatch.setattr(gallery.T, "__all__", [*gallery.T.__all__, "Sharpen"])
    monkeypatch.setattr(gallery.T, "Sharpen", type("Sharpen", (gallery.Transform,), {}), raising=False)
    with pytest.raises(ValueError, match="differ in Sharpen"):
        gallery.page(tmp_path / "pictures")


def test_every_page_has_a_place_in_the_navigation(site):
    def listed(entry):
        if isinstance(entry, str):
            yield entry
        else:
            for part in entry.values() if isinstance(entry, dict) else entry:
                yield from listed(part)

    nav = list(listed(pages.navigation([path.stem for path in assemble.notebooks()])))
    assert len(nav) == len(set(nav))
    assert set(nav) == {path.relative_to(site).as_posix() for path in site.rglob("*.md")}


def test_blocks_compile():
    found = [block for path in blocks.all_pages() for block in blocks.blocks_of(path)]
    assert len(found) > 50
    for block in found:
        blocks.compiled(block)
    fences = sum(len(re.findall(r"^```python", path.read_text(), re.M)) for path in blocks.all_pages())
    assert sum(block.shown for block in found) == fences
    for path in assemble.notebooks():
        for cell in notebook.cells_of(path):
            if cell.kind == "code":
                compile(cell.source, path.name, "exec")


def test_reference_has_everything_that_is_public(site):
    for module, page in (("datasets", "datasets"), ("transforms", "transforms"), ("audio", "audio")):
        text = (site / f"reference/{page}.md").read_text()
        for name in getattr(stoker, module).__all__:
            assert f"\n## {name}\n" in text, name
    text = (site / "reference/stoker.md").read_text()
    for name in set(stoker.__all__) - {"__version__"}:
        assert f"\n## {name}\n" in text, name
    text = (site / "reference/dataloader.md").read_text()
    for name in ("state_dict", "load_state_dict", "set_epoch", "explain", "stats", "bad_samples"):
        assert f"\n### DataLoader.{name}\n" in text, name


def test_the_arguments_of_the_loader_are_in_groups_and_the_stub_has_the_same(site):
    text = inspect.getdoc(stoker.DataLoader)
    groups = {}
    for title, body in re.findall(r"^Args \((.+)\):\n((?: {4}.*\n)+)", text, re.M):
        groups[title] = [name for names in re.findall(r"^ {4}([a-z_]+(?:, [a-z_]+)*): ", body, re.M) for name in names.split(", ")]
    named = [name for group in groups.values() for name in group]
    assert sorted(named) == sorted(inspect.signature(stoker.DataLoader).parameters)
    page = (site / "reference/dataloader.md").read_text()
    for title, group in groups.items():
        section = page.split(f"\n## {title.capitalize()}\n")[1].split("\n## ")[0]
        assert re.findall(r'<a id="(\w+)">', section) == group
    title, stub = "", {}
    for line in Path(stoker.__file__).with_name("dataloader.pyi").read_text().partition("class DataLoader")[0].splitlines():
        if found := re.match(r"    # (.+)$", line):
            title = found[1]
        elif found := re.match(r"    (\w+): ", line):
            stub.setdefault(title, []).append(found[1])
    first = {"dataset", "batch_size", "shuffle"}  # arguments of every overload
    assert {t: set(names) for t, names in stub.items()} == {t: set(names) - first for t, names in groups.items()}


def test_c_reference_has_every_declaration(site):
    text = (ROOT / "include/stoker/stoker.h").read_text()
    page = (site / "reference/c.md").read_text()
    functions = re.findall(r"^STOKER_API [^;(]*?\b(stoker_\w+)\(", text, re.M)
    assert len(functions) > 50
    for name in functions:
        assert f"### {name}\n" in page or f'<a id="{name}"></a>' in page, name
    assert page.count("```") % 2 == 0 and "/*" not in re.sub(r"```c\n.*?```", "", page, flags=re.S)
    assert header.page(text) == page


def test_c_manual_has_the_chapters_that_declarations_refer_to(site):
    text = (ROOT / "include/stoker/stoker.h").read_text()
    page = (site / "reference/c.md").read_text()
    chapters = header.chapters(text)
    assert len(chapters) > 15 and all(len(words.split()) > 20 for words in chapters.values())
    for title in chapters:
        anchor = f"manual-{title.lower().replace(' ', '-')}"
        assert page.count(f'<a id="{anchor}"></a>') == 1 and f"[{title}](#{anchor})" in page, title
    for wrong in (text.replace("/* [Memory]\n", "/* [Remembering]\n"), text.replace("[Mixtures]", "[Mixes]", 1)):
        with pytest.raises(ValueError, match="no chapter, or no reference to it: M"):
            header.chapters(wrong)


def test_declarations_come_with_a_few_lines():
    text = (ROOT / "include/stoker/stoker.h").read_text()
    declared = text[text.index("/* ---- errors") : text.index("/* ---- manual")]
    comments = re.findall(r"^/\*.*?\*/", declared, re.M | re.S)
    assert len(comments) > 70
    assert [comment for comment in comments if comment.count("\n") >= 5] == []
    options = re.search(r"struct stoker_loader_options \{\n(.*?)\n\};", text, re.S)[1].splitlines()
    members = [line for line in options if ";" in line]
    assert len(members) == len([line for line in options if not line.startswith("    /* ")])  # one line each
    assert len(members) >= 30 and [line for line in members if not re.search(r"; +/\* \S", line)] == []


def test_examples_mark_what_changed():
    marked = 0
    for source in pages.examples():
        text = (ROOT / source).read_text()
        if "# was: " not in text and "  # added" not in text:
            continue
        marked += 1
        code = assemble.before_stoker(text).split('"""', 2)[2]
        assert "stoker" not in code.replace("from stoker.synth import make_shapes\n", ""), source
        compile(code, source, "exec")
    assert marked == 6


# ---- running it ----


def run_guides(folder):
    import torch

    torch.set_num_threads(1)
    sys.modules["torchaudio"] = None  # one of another age than torch cannot be imported, and transformers would
    paths = [path for path in pages.own_pages() if path.parent.name == "guides"] + [pages.SITE / "start.md"]
    result = blocks.run_pages(paths, Path(folder))
    return {"ran": result.ran, "failed": result.failed}


def test_blocks_of_the_guides_run(tmp_path):
    got = in_fresh_python(run_guides, str(tmp_path))
    assert got["failed"] == [] and got["ran"] > 25


def run_notebook(path):
    import torch

    torch.set_num_threads(1)
    return [[output.kind, output.data] for cell in notebook.run(Path(path)) for output in cell.outputs]


def test_notebook_image_training():
    got = in_fresh_python(run_notebook, str(assemble.NOTEBOOKS / "image-training.ipynb"))
    said = "".join(data for kind, data in got if kind == "text")
    assert "1 and 3 threads, the same epoch: True" in said and "two epochs: False" in said
    assert "the same losses: True" in said and "360 samples" in said and "007.jpg" in said
    right = int(re.search(r"(\d+) of 360 right", said)[1])
    assert right > 180  # it learns: a guess has 120
    assert sum(kind == "png" for kind, _ in got) == 3


def test_notebook_why_is_my_loader_slow():
    got = in_fresh_python(run_notebook, str(assemble.NOTEBOOKS / "why-is-my-loader-slow.ipynb"))
    said = "".join(data for kind, data in got if kind == "text")
    # Usually data-bound, ST202, no workers. Other tests use the machine at the same time, which the verdict may say instead.
    assert re.search(r"(data-bound|compute-bound|cannot tell) ST\d\d\d", said) and "spent waiting for data" in said
    assert sum(kind == "png" for kind, _ in got) == 1


def test_what_was_measured_on_a_busy_machine_is_not_published(tmp_path):
    measuring = {path.stem: [cell for cell in notebook.cells_of(path) if cell.measures] for path in assemble.notebooks()}
    for path in assemble.notebooks():
        for cell in notebook.cells_of(path):
            times = re.search(r'\bstoker\("|\brun\[|\bstats\(\)|perf_counter', cell.source)
            assert cell.kind != "code" or cell.measures == bool(times), cell.source
    assert all(measuring.values())
    path = assemble.NOTEBOOKS / "image-training.ipynb"
    ran = [cell._replace(outputs=[notebook.Output("text", f"output {k}")]) for k, cell in enumerate(notebook.cells_of(path))
           if cell.kind == "code"]
    page = notebook.page(path, notebook.without_measurements(ran, 0.4), tmp_path, path.name)
    for cell in ran:
        assert (f"{cell.outputs[0].data}\n" in page) != cell.measures
    assert page.count("other programs used 40% of the CPUs") == len(measuring[path.stem])


def test_the_load_is_what_others_use():
    at = "cpu  {} 0 {} {} 100 0 0 {} 500 0\ncpu0 1 2 3 4\n"
    ticks = os.sysconf("SC_CLK_TCK")
    before = load.machine_seconds(at.format(1000 * ticks, 0, 0, 0))
    now = load.machine_seconds(at.format(1004 * ticks, 2 * ticks, 10 * ticks, 4 * ticks))
    assert [b - a for a, b in zip(before, now)] == [20, 10]
    assert load.share_of_others((*before, 3.0), (*now, 8.0)) == 0.25  # 10 s busy, of them 5 ours
    assert load.share_of_others((*before, 3.0), (*now, 14.0)) == 0
    assert load.too_busy(0.25) and not load.too_busy(0.01)
    assert 0 <= load.Watch().others() <= 1


def test_a_recorded_terminal_shows_each_row_as_it_was_when_it_was(tmp_path):
    program = r"import time; print('[#.] <1>', end='\r', flush=True); time.sleep(0.3); print('\r\033[Kall \033[1m\033[31m2\033[0m.\n\nend')"
    screen = terminal.record([sys.executable, "-c", program], tmp_path, {"TERM": "xterm"})
    shown = [[shown.spans for shown in history] for history in screen.rows]
    bar, done = [("[#.] <1>", "")], [("all ", ""), ("2", "bold red"), (".", "")]
    assert shown[1:] == [[bar, done], [], [[("end", "")]], []]
    assert screen.rows[1][1].start - screen.rows[1][0].start > 0.2
    drawing = terminal.draw(screen, "Here & now.")
    texts = ["".join(found.itertext()) for found in ElementTree.fromstring(drawing).iter("{http://www.w3.org/2000/svg}text")]
    assert texts[1:] == ["[#.] <1>", "all 2.", "end", "Here & now."]
    assert drawing.count('class="past"') == 1
    with pytest.raises(ValueError, match="control characters"):
        screen.feed(1, "\033[2J")
