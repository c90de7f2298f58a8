# SPDX-License-Identifier: Apache-2.0
"""The doctor's reports: run.json, trace.json, report.html as a browser shows it, `stoker report` and `stoker check`."""

from __future__ import annotations

import html
import json
import math
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from packing import stoker
from test_info import CHROMIUM, Page

ROOT = Path(__file__).resolve().parents[2]
SHOTS = ROOT / "build" / "doctor-report"
KINDS = ("rich", "fast", "cpu", "unknown", "hostile")


def sample_program():
    named = os.environ.get("STOKER_REPORT_SAMPLE")
    built = ROOT / "build/test-c/tests/doctor/report_sample"
    return Path(named) if named else built if built.exists() else None


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The files of runs that were never run, by tests/doctor/report_sample.c."""
    program = sample_program()
    if not program:
        pytest.skip("tests/doctor/report_sample is not built: scripts/test.sh c")
    root = tmp_path_factory.mktemp("runs")
    for kind in KINDS:
        (root / kind).mkdir()
        subprocess.run([program, kind, root / kind], check=True, timeout=600)
    return root


def strict(path):
    def refuse(word):
        raise ValueError(word)

    return json.loads(path.read_text(), parse_constant=refuse)


# ---- run.json -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_json_is_strict(runs, kind):
    run = strict(runs / kind / "run.json")
    assert run["verdict"]["kind"] in ("data-bound", "compute-bound", "cannot tell")
    assert {"findings", "cleared", "unjudged", "facts", "loader", "limits", "ranks", "signals", "steps", "missing",
            "overhead", "versions", "run"} <= run.keys()


def test_json_has_every_fact(runs):
    """A field that is added to struct dr_facts, dr_limits or dr_settings must be written, too."""
    run = strict(runs / "rich" / "run.json")
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "doctor/model/facts.h").read_text() + (ROOT / "doctor/run/run.h").read_text(),
                  flags=re.DOTALL)
    for struct_name, part in (("dr_facts", "facts"), ("dr_limits", "limits"), ("dr_settings", "loader")):
        body = re.search(rf"struct {struct_name} {{(.*?)\n}};", text, re.DOTALL)[1]
        names = [name.split("[")[0].strip() for line in re.findall(r"^\s*double\s+([^;*]*?);", body, re.M | re.DOTALL)
                 for name in line.split(",")]
        assert len(names) > 5
        assert not [name for name in names if name not in run[part]], part


def test_json_says_what_is_unknown(runs):
    run = strict(runs / "unknown" / "run.json")
    assert run["verdict"]["code"] == "ST901" and run["facts"]["step"] is None
    assert run["facts"]["stage"]["decode"] is None and run["findings"] == []
    rich = strict(runs / "rich" / "run.json")
    assert rich["verdict"]["code"] == "ST206" and rich["findings"][1]["plan"]["workers"] == 11
    assert rich["findings"][0]["plan"] is None and rich["signals"]["machine"]["psi.memory"] is None
    assert len(rich["signals"]["time"]) <= 600 and len(rich["signals"]["machine"]["cpu.ours"]["values"]) <= 600
    assert math.isclose(sum(rich["steps"]["seconds"]) / len(rich["steps"]["seconds"]), rich["facts"]["step"], rel_tol=1e-6)
    assert "</script><b>" in strict(runs / "hostile" / "run.json")["loader"]["dataset"]


# ---- trace.json ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_trace_nests_and_flows_have_both_ends(runs, kind):
    events = strict(runs / kind / "trace.json")["traceEvents"]
    tracks = {}
    for event in events:
        assert event["ph"] in "XMCsf" and (event["ph"] == "M" or event["ts"] >= 0)
        if event["ph"] == "X":
            ns = round(event["ts"] * 1000)
            tracks.setdefault((event["pid"], event["tid"]), []).append((ns, ns + round(event["dur"] * 1000)))
    for slices in tracks.values():
        open_ends = []
        for start, end in sorted(slices, key=lambda s: (s[0], -s[1])):
            while open_ends and open_ends[-1] <= start:
                open_ends.pop()
            assert not open_ends or end <= open_ends[-1]
            open_ends.append(end)
    flows = {}
    for event in events:
        if event["ph"] in "sf":
            flows.setdefault(event["id"], {})[event["ph"]] = event
    for ends in flows.values():
        assert set(ends) == {"s", "f"} and ends["s"]["ts"] <= ends["f"]["ts"]
        for end in ends.values():  # each end lies on a slice
            at = round(end["ts"] * 1000)
            assert any(a <= at < b for a, b in tracks[end["pid"], end["tid"]])
    if kind == "rich":
        names = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
        assert {"training loop", "makes batches", "GPU idle, waiting for data"} <= names
        assert len(flows) > 450 and {"ready batches", "GPU SM active", "disk read", "waiting for a CPU"} <= {
            e["name"] for e in events if e["ph"] == "C"}


# ---- the page -----------------------------------------------------------------------------------


class Report(Page):
    EMPTY = ("meta", "img", "input")

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))


@pytest.mark.parametrize("kind", KINDS)
def test_page_is_one_file(runs, kind):
    text = (runs / kind / "report.html").read_text()
    page = Report(text)
    assert not {"link", "iframe", "object", "base", "form", "img"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        assert not any(name.startswith("on") or name in ("src", "srcset") for name in attributes), attributes
        assert attributes.get("href", "#").startswith("#")
    assert not re.search(r"url\(|@import|https?:", text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for part in ("verdict", "do", "steps", "pipeline", "queue", "workers", "machine", "gpu", "what-if", "settings", "ranks",
                 "evidence"):
        assert part in ids  # also without data: then it says why
    assert not re.search(r"\b(nan|inf)\b", "".join(page.words).replace("</script>", ""))


@pytest.mark.parametrize("kind", KINDS)
def test_page_of_tune(runs, kind):
    text = (runs / kind / "tune.html").read_text()
    page = Report(text)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert ids.count("tune") == 1 and ids.index("tune") < ids.index("verdict") and len(ids) == len(set(ids))
    assert "All numbers are in tune.json" in text and not re.search(r"\b(nan|inf)\b", "".join(page.words))
    section = text[text.index("id=tune"):text.index("id=verdict")]
    if kind == "unknown":
        assert "class=dot" not in section
    else:
        assert section.count("class=dot") == 3 and "what training can use" in section
        assert "3.40x" in section and "<td>3.30x</td>" in section  # measured and predicted
    assert "id=tune" not in (runs / kind / "report.html").read_text()


def test_page_of_ranks(runs):
    """One row per training process: how much of each part of the run it waited."""
    text = (runs / "rich" / "report.html").read_text()
    section = text[text.index("id=ranks"):text.index("id=evidence")]
    rows = re.findall(r"<span>(?:rank|pid) \d+</span><svg(.*?)</svg>", section, re.DOTALL)
    assert rows and all(row.count("<rect") == 60 for row in rows)
    shares = [float(share) for share in re.findall(r"fill-opacity:([\d.]+)", section)]
    assert 0 < max(shares) <= 1 and min(shares) >= 0
    assert (runs / "fast" / "report.html").read_text().count("<tr><td>2</td>") >= 1  # the table of four ranks


# Says in the title what the browser made of the page, and what it did when it was touched.
EXERCISE = """<script>
const said = [];
addEventListener("error", e => said.push(e.message));
addEventListener("unhandledrejection", e => said.push(String(e.reason)));
addEventListener("securitypolicyviolation", e => said.push("refused: " + e.blockedURI));
console.error = console.warn = (...words) => said.push(words.join(" "));
addEventListener("load", () => {
  const all = what => [...document.querySelectorAll(what)], out = {};
  const press = (key, on = document.body) => on.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  const text = what => document.querySelector(what)?.textContent;
  out.inner = innerWidth;
  out.scroll = document.documentElement.scrollWidth;
  out.wide = all("main *").filter(e => !e.closest("nav, .scroll, svg") && e.getBoundingClientRect().right > innerWidth + 1)
    .map(e => e.tagName + "." + e.className).slice(0, 5);
  out.colors = [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color];
  out.fetched = performance.getEntriesByType("resource").length;
  press("j"); out.first = document.activeElement.id;
  press("j"); out.second = document.activeElement.id;
  press("k"); out.back = document.activeElement.id;
  press("t"); out.other = getComputedStyle(document.body).backgroundColor; press("t");
  const plot = all("figure.chart").find(f => f.querySelector("script"))?.querySelector(".plot");
  if (plot) {
    plot.focus();
    press("ArrowRight", plot); press("ArrowRight", plot);
    out.tip = text("#tip"); out.cursor = !plot.querySelector(".cursor").hidden;
    press("End", plot); out.end = text("#tip");
    plot.blur();
    out.hidden = document.getElementById("tip").hidden;
  }
  const workers = document.querySelector("input[data-dim='0']");
  if (workers) {
    out.before = text("[data-out=step]"); out.gain = text("[data-out=gain]");
    workers.value = 1;
    workers.dispatchEvent(new Event("input"));
    out.after = text("[data-out=step]"); out.less = text("[data-out=gain]"); out.workers = workers.nextSibling.textContent;
    out.curve = document.querySelectorAll("#curve path").length;
    document.getElementById("as-it-was").click();
    out.again = text("[data-out=step]");
  }
  out.copies = all("button.copy").length;
  scrollTo(0, 0);
  setTimeout(() => {
    out.said = said;
    document.title = JSON.stringify(out);
  }, 50);
});
</script>"""


def browse(page, tmp_path, width, dark, *more, height=1000):
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
               f"--window-size={width},{height}", f"--user-data-dir={tmp_path / 'profile'}",
               f"--blink-settings=preferredColorScheme={int(not dark)}", "--virtual-time-budget=3000", *more, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=True).stdout


def exercised(source, tmp_path, width, dark):
    page = tmp_path / "page.html"
    page.write_text(source.read_text().replace("</title>", "</title>" + EXERCISE, 1))
    dom = browse(page, tmp_path, width, dark, "--dump-dom")
    return json.loads(html.unescape(re.search(r"<title>([^<]*)</title>", dom)[1]))


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")
@pytest.mark.parametrize(("kind", "width", "dark"), [
    ("rich", 360, False), ("rich", 1280, True), ("rich", 3840, False), ("hostile", 360, True), ("hostile", 1280, False),
    ("unknown", 360, False), ("cpu", 1280, False), ("fast", 768, True)])
def test_in_chromium(runs, tmp_path, kind, width, dark):
    found = exercised(runs / kind / "report.html", tmp_path, width, dark)
    assert found["said"] == [] and found["fetched"] == 0
    assert found["inner"] == width and found["scroll"] <= width and found["wide"] == [], found
    light = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in [*found["colors"], found["other"]]]
    assert (light[0] < 150 and light[1] > 600) if dark else (light[0] > 600 and light[1] < 150), found["colors"]
    assert (light[2] > 600) if dark else (light[2] < 150)  # the key changes it
    assert found["first"] and found["second"] != found["first"] and found["back"] == found["first"]
    if kind != "unknown":
        assert found["cursor"] and found["hidden"] and found["tip"] != found["end"]
        assert "everything else: " in found["tip"] and "n/a" not in found["tip"]
    SHOTS.mkdir(parents=True, exist_ok=True)
    shot = SHOTS / f"{kind}-{width}-{'dark' if dark else 'light'}.png"
    browse(runs / kind / "report.html", tmp_path, width, dark, f"--screenshot={shot}", height=min(6000, 2 * width + 2000))
    assert shot.stat().st_size > 20_000


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")
@pytest.mark.parametrize(("kind", "width", "dark"), [("cpu", 360, False), ("hostile", 1280, True)])
def test_page_of_tune_in_chromium(runs, tmp_path, kind, width, dark):
    found = exercised(runs / kind / "tune.html", tmp_path, width, dark)
    assert found["said"] == [] and found["fetched"] == 0 and found["first"] == "tune"
    assert found["inner"] == width and found["scroll"] <= width and found["wide"] == [], found
    SHOTS.mkdir(parents=True, exist_ok=True)
    shot = SHOTS / f"tune-{kind}-{width}.png"
    browse(runs / kind / "tune.html", tmp_path, width, dark, f"--screenshot={shot}", height=1400)
    assert shot.stat().st_size > 20_000


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed")
def test_what_if_in_chromium(runs, tmp_path):
    found = exercised(runs / "rich" / "report.html", tmp_path, 1280, dark=False)
    if "before" not in found:
        pytest.skip("this build has no simulator")
    assert found["gain"] == "1.00x" and found["after"] != found["before"] == found["again"]
    assert float(found["less"][:-1]) < 1 and found["curve"] >= 3 and found["workers"] == "1"


# ---- the program --------------------------------------------------------------------------------


def write_run(folder, wait, step=0.05, steps=200):
    """What the injected file writes for one training process whose loader makes it wait."""
    for name in ("process", "events"):
        (folder / name).mkdir(parents=True)
    (folder / "command").write_text("python\ntrain.py\n" + str(folder) + "\n")
    (folder / "process" / "4000").write_text(
        "pid 4000\nparent 1\nrole trainer\nloader.0.class torch.utils.data.DataLoader\nloader.0.workers 0\n"
        "loader.0.prefetch 2\nloader.0.batch_size 8\nloader.0.in_order 1\n")
    events, now = [], 10_000_000_000
    for i in range(steps):
        events.append(struct.pack("=QQIHHII", now, int(wait * 1e9), i, 1, 0, 0, 8 | (4 if i == 0 else 0)))
        events.append(struct.pack("=QQIHHII", now, int(wait * 1e9), i, 16, 0, 8, int(wait * 1e6)))
        events.append(struct.pack("=QQIHHII", now + int((wait + step) * 1e9) - 1000, 900, i, 3, 0, 0, 0))
        now += int((wait + step) * 1e9)
    header = struct.pack("=8sIIQQQ", b"stkrev1\0", 32, 4000, len(events), len(events), 1000)
    (folder / "events" / "4000").write_bytes(header.ljust(4096, b"\0") + b"".join(events))


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Two runs in .stoker: the first waits for half of its time, the second hardly at all."""
    root = tmp_path_factory.mktemp("judged")
    write_run(root / ".stoker" / "0007", wait=0.05)
    write_run(root / ".stoker" / "0012", wait=0.0005)
    got = stoker("report", cwd=root)
    if "not written yet" in got.stderr:
        pytest.skip("this build cannot read runs")
    assert got.returncode == 0, got.stderr
    return root


def test_check_exits_by_its_limits(judged):
    for arguments, code, word in (
            (["7", "--max-stall", "10%"], 3, "exceeded"), (["7", "--max-stall=0.6"], 0, "ok"),
            (["--max-stall", "10%"], 0, "ok"), (["12", "--max-stall", "10%", "--max-step", "0.01"], 3, "exceeded"),
            ([judged / ".stoker" / "0007", "--max-step", "1"], 0, "ok"), (["7", "--min-readiness", "90%"], None, "readiness")):
        got = stoker("check", *arguments, cwd=judged)
        assert word in got.stdout and (code is None or got.returncode == code), (arguments, got)


def test_report_writes_what_is_asked_for(judged, tmp_path):
    got = stoker("report", "7", "--json", cwd=judged)
    assert math.isclose(json.loads(got.stdout)["facts"]["stall_share"], 0.5, abs_tol=0.02)
    got = stoker("report", "0007", "--html", tmp_path / "r.html", "--trace", tmp_path / "t.json", cwd=judged)
    assert got.returncode == 0 and got.stdout == ""
    Report((tmp_path / "r.html").read_text())
    strict(tmp_path / "t.json")
    assert stoker("report", "7", "--html", tmp_path / "no" / "r.html", cwd=judged).returncode == 1


def test_report_compares_two_runs(judged):
    got = json.loads(stoker("report", "--diff", "7", "12", "--json", cwd=judged).stdout)
    assert math.isclose(got["ratio"], 0.1 / 0.0505, rel_tol=0.05) and got["a"]["stall_share"] > got["b"]["stall_share"]
    table = stoker("report", "--diff", "7", "12", cwd=judged).stdout
    assert re.search(r"^0007 .*50 %", table, re.M) and re.search(r"^speed-up: 1\.9\dx", table, re.M), table


def test_report_does_not_compare_different_programs(judged, tmp_path):
    for name, command in (("a", "python\n-u\nsome/train.py\n--lr\n1"), ("b", "torchrun\n-m\nstoker\ntrain.py"),
                          ("c", "python\neval.py"), ("d", "python\n-m\ntrain.py"), ("e", "./train.sh"), ("f", "./train.sh\nx")):
        folder = tmp_path / name
        shutil.copytree(judged / ".stoker" / "0007", folder)
        (folder / "command").write_text(f"{command}\n{folder}\n")
    for one, other, same in (("a", "b", True), ("a", "c", False), ("a", "d", False), ("a", "e", False), ("e", "e", True), ("e", "f", False)):
        got = json.loads(stoker("report", "--diff", tmp_path / one, tmp_path / other, "--json").stdout)
        assert (got["same_program"], got["ratio"] is not None) == (same, same), (one, other)
        table = stoker("report", "--diff", tmp_path / one, tmp_path / other).stdout
        assert ("different programs" in table, "speed-up" in table) == (not same, same), table


@pytest.mark.parametrize(("arguments", "code"), [
    (["check"], 2), (["check", "--max-stall"], 2), (["check", "--max-stall", "x%"], 2), (["check", "--max-stall", "101%"], 2),
    (["check", "--max-stall", "10%"], 1), (["check", "3", "--max-stall", "10%"], 1), (["report"], 1), (["report", "3"], 1),
    (["report", "no/such"], 1), (["report", "--html"], 2), (["report", "--diff", "1"], 2), (["report", "--what"], 2),
    (["report", "--diff", "1", "2", "--html", "x"], 2), (["report", "--diff", "1", "2"], 1)])
def test_exit_codes_without_a_run(tmp_path, arguments, code):
    got = stoker(*arguments, cwd=tmp_path)
    assert got.returncode == code and got.stderr.startswith("stoker: ")
