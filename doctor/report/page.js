// SPDX-License-Identifier: Apache-2.0
// Interaction of report.html: values under the pointer, what-if settings, copying, keys.
"use strict";
(() => {
const all = (what, within = document) => [...within.querySelectorAll(what)];
const tip = document.getElementById("tip");

// ---- numbers as words.c writes them
const seconds = s => s == null ? "n/a" : s === 0 ? "0 s" : Math.abs(s) < 1e-3 ? (1e6 * s).toFixed(0) + " us"
  : Math.abs(s) < 0.01 ? (1e3 * s).toFixed(1) + " ms" : Math.abs(s) < 1 ? (1e3 * s).toFixed(0) + " ms"
  : Math.abs(s) < 120 ? s.toFixed(Math.abs(s) < 10 ? 2 : 1) + " s" : (s / 60).toFixed(1) + " min";
const share = v => v == null ? "n/a" : (100 * v).toFixed(v > 0 && v < 0.0995 ? 1 : 0) + " %";
const plain = v => v == null ? "n/a" : Math.abs(v) >= 100 || Number.isInteger(v)
  ? Math.round(v).toLocaleString("en-US") : v.toFixed(Math.abs(v) >= 10 ? 1 : 2);
const bytes = v => {
  let unit = 0;
  for (; Math.abs(v) >= 1000 && unit < 5; unit++) v /= 1000;
  return v.toFixed(unit ? 1 : 0) + " " + ["B", "KB", "MB", "GB", "TB", "PB"][unit];
};
const number = (v, unit) => v == null ? "n/a" : unit === "s" ? seconds(v) : unit === "share" ? share(v)
  : unit.startsWith("bytes") ? bytes(v) + unit.slice(5) : plain(v) + (unit.startsWith("1/") ? unit.slice(1)
  : unit ? " " + (unit === "cpus" ? "CPUs" : unit) : "");

function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - box.width - 8)) + "px";
  tip.style.top = Math.max(4, y + 18 + box.height > innerHeight ? y - box.height - 10 : y + 18) + "px";
}
const hideTip = () => { tip.hidden = true; };

// ---- charts: the pointer, or the arrow keys
for (const figure of all("figure.chart")) {
  const source = figure.querySelector("script"), plot = figure.querySelector(".plot");
  if (!source || !plot) continue;
  const data = JSON.parse(source.textContent), points = data.lines[0].values.length;
  const cursor = plot.querySelector(".cursor");
  let at = -1;
  const show = (point, x, y) => {
    at = Math.max(0, Math.min(points - 1, point));
    const when = data.begin + (data.end - data.begin) * (at + 0.5) / points;
    cursor.hidden = false;
    cursor.style.left = 100 * (at + 0.5) / points + "%";
    const box = plot.getBoundingClientRect();
    showTip([seconds(when), ...data.lines.map(l => l.name + ": " + number(l.values[at], data.unit))].join("\n"),
      x ?? box.left + box.width * (at + 0.5) / points, y ?? box.top + box.height / 2);
  };
  const hide = () => { cursor.hidden = true; at = -1; hideTip(); };
  plot.addEventListener("pointermove", e => {
    const box = plot.getBoundingClientRect();
    show(Math.floor((e.clientX - box.left) / box.width * points), e.clientX, e.clientY);
  });
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", e => {
    const moves = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: points - 1};
    if (e.key === "Escape") hide();
    if (!(e.key in moves)) return;
    e.preventDefault();
    show(moves[e.key]);
  });
}
for (const part of all("[data-tip]")) {
  part.addEventListener("pointermove", e => showTip(part.dataset.tip, e.clientX, e.clientY));
  part.addEventListener("pointerleave", hideTip);
}

// ---- copying
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {  // a page opened from a file may not be allowed to
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
for (const button of all("button.copy")) {
  const label = button.textContent;
  button.addEventListener("click", async () => {
    const source = button.parentElement.querySelector("[data-copy], code");
    button.textContent = source && await copy(source.textContent) ? "copied" : "select and copy by hand";
    button.focus();
    setTimeout(() => { button.textContent = label; }, 1600);
  });
}

// ---- what if
const grid = document.getElementById("grid") && JSON.parse(document.getElementById("grid").textContent);
if (grid) {
  const controls = all("[data-dim]").sort((a, b) => a.dataset.dim - b.dataset.dim);
  const place = at => at.reduce((sum, index, d) => sum * grid.values[d].length + index, 0);
  const now = grid.outcomes[place(grid.now)];
  const put = (name, text) => { document.querySelector(`[data-out=${name}]`).textContent = text; };
  const path = (kind, points, more = "") => points.length < 2 ? "" :
    `<path class="${kind}" style="${kind === "band" ? "fill" : "stroke"}:var(--c-read)" d="M${points.map(p =>
      p.map(v => v.toFixed(1)).join(" ")).join("L")}${more}"/>`;
  function draw(at) {
    const count = grid.values[0].length;
    const row = grid.values[0].map((_, i) => grid.outcomes[place([i, ...at.slice(1)])]);
    const highs = row.map(o => o[2] ?? o[1]).filter(v => v != null).sort((a, b) => a - b);
    const top = Math.min(1.05 * highs[highs.length - 1], 4 * Math.max(now[1], highs[0]));
    const x = i => 1000 * (i + 0.5) / count, y = v => 100 * (1 - Math.min(1, v / top));
    const known = row.map((o, i) => [o, i]).filter(([o]) => o[1] != null);
    const curve = document.getElementById("curve");
    const band = [...known.map(([o, i]) => [x(i), y(o[2])]), ...known.map(([o, i]) => [x(i), y(o[0])]).reverse()];
    curve.innerHTML = `<path class="grid" d="M0 25H1000 M0 50H1000 M0 75H1000"/>` + path("band", band, "Z") +
      path("line", known.map(([o, i]) => [x(i), y(o[1])])) +
      `<path class="limit" d="M${x(at[0])} 0V100"/>`;
    curve.parentElement.querySelector(".top").textContent = seconds(top);
  }
  function update() {
    const at = controls.map(c => +c.value), outcome = grid.outcomes[place(at)];
    controls.forEach((c, d) => {
      const label = c.parentElement.querySelector("output");
      if (label) label.textContent = plain(grid.values[d][at[d]]);
    });
    const [low, mid, high, wait, ready] = outcome;
    put("step", seconds(mid));
    put("range", high > low ? `${seconds(low)} to ${seconds(high)}` : "");
    put("rate", mid == null || grid.batch_size == null ? "n/a" : plain(Math.round(grid.batch_size / mid)));
    put("gain", mid == null ? "n/a" : (now[1] / mid).toFixed(2) + "x");
    put("wait", share(wait));
    put("ready", share(ready));
    draw(at);
  }
  controls.forEach(c => c.addEventListener("input", update));
  document.getElementById("as-it-was").addEventListener("click", () => {
    controls.forEach((c, d) => { c.value = grid.now[d]; });
    update();
  });
  update();
}

// ---- keys and colours
const parts = all("header.verdict, section.card");
const theme = () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme:dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
};
document.getElementById("theme").addEventListener("click", theme);
addEventListener("keydown", e => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) return;
  if (e.key === "t") theme();
  if (e.key !== "j" && e.key !== "k") return;
  const focused = parts.findIndex(p => p.contains(document.activeElement));
  const shown = parts.findLastIndex(p => p.getBoundingClientRect().top <= parseFloat(getComputedStyle(p).scrollMarginTop) + 8);
  const next = parts[(focused < 0 ? shown : focused) + (e.key === "j" ? 1 : -1)];
  if (next) {
    next.scrollIntoView({behavior: "instant"});
    next.focus({preventScroll: true});
  }
});
const links = all("nav a");
if ("IntersectionObserver" in window) {
  const seen = new IntersectionObserver(entries => entries.forEach(e => {
    if (!e.isIntersecting) return;
    links.forEach(l => l.toggleAttribute("aria-current", l.hash === "#" + e.target.id));
  }), {rootMargin: "-20% 0px -70% 0px"});
  parts.forEach(p => seen.observe(p));
}
})();
