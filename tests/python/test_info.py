# SPDX-License-Identifier: Apache-2.0
"""`stoker info DATA`: what it says, and the page that it writes, as a browser shows it."""

from __future__ import annotations

import html.parser
import re
import shutil
import subprocess

import pytest
import sources
from conftest import picture
from packing import pack, stoker

CHROMIUM = next(filter(None, map(shutil.which, (
    "chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"))), None)


class Page(html.parser.HTMLParser):
    """Its tags, and whether they are closed as they were opened."""

    EMPTY = ("meta", "img")

    def __init__(self, text: str):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.words.append(data)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """A folder with long and hostile names, a bad image and pictures of all sizes, and its page."""
    root = tmp_path_factory.mktemp("info")
    tree = root / "a<b>&'quoted\" name-without-any-place-to-break-" / "train"
    for c in ("ant", "<script>alert(1)<!--", "x" * 120):
        (tree / c).mkdir(parents=True)
        for i, size in enumerate([(40, 30), (300, 700), (2500, 60), (640, 480), (9, 400)]):
            picture(i, *size).save(tree / c / f"{'long' * 20}{i}.jpg")
    (tree / "ant" / "bad.jpg").write_bytes(b"no image")
    got = stoker("info", tree, "--html", root / "page.html")
    assert got.returncode == 0, got.stderr
    return got.stdout, root / "page.html"


def test_says_what_there_is(tree, tmp_path):
    got = stoker("info", tree)
    assert got.returncode == 0, got.stderr
    for word in ("23", "folder", "classes", "image", "label", "up to 64", "jpg", "decoding"):
        assert word in got.stdout, word
    pack(tree, tmp_path / "out")
    assert "tar" in stoker("info", tmp_path / "out").stdout
    assert stoker("info", tmp_path / "absent").returncode == 1


def test_names_what_is_bad(shown):
    said, page = shown
    assert re.search(r"bad +1 of the samples .*ant/bad\.jpg", said)
    assert "ant/bad.jpg" in "".join(Page(page.read_text()).words)


def test_looks_at_samples_all_over(tmp_path):
    """Of 1,999 the last hundreds are large: a quarter of what is looked at must be so."""
    members = [(f"{i:04}.png", sources.encoded(i % 5)) for i in range(1500)]
    wide = tmp_path / "wide.png"
    picture(1, 300, 20).save(wide)
    members += [(f"{i:04}.png", wide.read_bytes()) for i in range(1500, 1999)]
    sources.write_tar(tmp_path / "x.tar", members)
    got = stoker("info", tmp_path / "x.tar").stdout
    share = float(re.search(r"up to 512 +([\d.]+) %", got)[1])
    assert abs(share - 100 * 499 / 1999) < 1, got


@pytest.mark.parametrize("count", [1, 5, 12, 13, 40, 1500])
def test_thumbnails_all_over(tmp_path, count):
    sources.write_tar(tmp_path / "x.tar", [(f"{i:05}.png", sources.encoded(i % 7)) for i in range(count)])
    assert stoker("info", tmp_path / "x.tar", "--html", tmp_path / "p.html").returncode == 0
    names = [int(n) for n in re.findall(r"<figcaption>(?:[^<]*: )?(\d+)", (tmp_path / "p.html").read_text())]
    assert len(names) == min(count, 12) and names == sorted(names) and names[0] == 0
    assert count < 12 or names[-1] >= count * 10 // 12


def test_page_is_one_file_without_scripts(shown):
    text = shown[1].read_text()
    page = Page(text)
    assert not {"script", "link", "iframe", "object", "base", "form"} & {tag for tag, _ in page.tags}
    for tag, attributes in page.tags:
        assert not any(name.startswith("on") or name in ("href", "srcset") for name in attributes), attributes
        assert tag != "img" or attributes["src"].startswith("data:image/jpeg;base64,")
    assert not re.search(r"url\(|@import|//", re.search(r"<style>(.*)</style>", text, re.DOTALL)[1])
    assert sum(tag == "img" for tag, _ in page.tags) == 12
    words = "".join(page.words)
    assert "<script>alert(1)<!--" in words and "up to 4096" in words and "classes" in words


def test_page_of_data_without_images(tmp_path):
    sources.write_tar(tmp_path / "x.tar", [(f"{i}.txt", b"words") for i in range(9)])
    assert stoker("info", tmp_path / "x.tar", "--html", tmp_path / "p.html").returncode == 0
    page = Page((tmp_path / "p.html").read_text())
    assert "Longer side" not in "".join(page.words) and "nan" not in "".join(page.words)
    assert stoker("info", tmp_path / "x.tar", "--html", tmp_path / "no" / "p.html").returncode == 1


# ---- in a browser -------------------------------------------------------------------------------

# Says in the title what the browser made of the page.
MEASURE = """<script>addEventListener("load", () => {
  const images = [...document.images], width = document.documentElement.scrollWidth;
  const wide = [...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1);
  const cut = [...document.querySelectorAll("h1,dd,dt,td,th,figcaption,p")].filter(e => e.scrollWidth > e.clientWidth + 1);
  document.title = [innerWidth, width, images.length, images.filter(i => i.naturalWidth > 0).length, wide.length,
    cut.length, getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color,
    performance.getEntriesByType("resource").filter(r => !r.name.startsWith("data:")).length].join("|");
});</script>"""


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 640, 400])
def test_in_chromium(shown, tmp_path, width, dark):
    page = tmp_path / "page.html"
    page.write_text(shown[1].read_text().replace("</head>", MEASURE + "</head>"))
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900",
               f"--user-data-dir={tmp_path / 'profile'}", f"--blink-settings=preferredColorScheme={int(not dark)}"]
    got = subprocess.run([*command, "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=600, check=True)
    found = re.search(r"<title>([^<]*)</title>", got.stdout)[1].split("|")
    inner, scroll, images, loaded, wide, cut = map(int, found[:6])
    assert inner == width and scroll <= inner and wide == 0 and cut == 0, found
    assert images == loaded == 12
    page_light, text_light = (sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in found[6:8])
    assert (page_light < 150 and text_light > 600) if dark else (page_light > 600 and text_light < 150), found
    assert found[8] == "0"  # nothing was fetched
    subprocess.run([*command, f"--screenshot={tmp_path / 'page.png'}", page.as_uri()], capture_output=True, timeout=600,
                   check=True)
    assert (tmp_path / "page.png").stat().st_size > 20_000
