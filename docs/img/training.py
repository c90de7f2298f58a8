#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/img/training.svg, the plot of the README, from the table below.

    python docs/img/training.py
"""
from pathlib import Path

# Source: bench/RESULTS-GPU.md, section "Training" (bench/train_gpu.py --rounds 2 --images 2000 --seconds 3, 2026-11-15).
# Images per second: model, data already on the GPU, torch with 8 workers, torch with 16 workers, Stoker (exact).
MODELS = [
    ("ResNet-50", 4743, 1536, 1916, 4740),
    ("ViT-S/16", 5824, 1492, 3739, 5823),
    ("ResNet-18", 13379, 1946, 2272, 13303),
]
LOADERS = ["torch DataLoader, 8 workers", "torch DataLoader, 16 workers", "Stoker"]
TITLE = "Training speed on one H200, as a share of the speed with the data already on the GPU"
FOOT = "Generated ImageNet-like JPEGs, 16 CPU cores, batches of 256, bfloat16, 2026-11-15. Numbers: images per second."

WIDTH, LEFT, RIGHT, TOP, FOOT_HEIGHT = 900, 316, 124, 62, 50
BAR, GAP, GROUP_GAP = 20, 5, 20

STYLE = """
    text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f }
    .title { font-size: 15px; font-weight: 600 }
    .model { font-weight: 600 }
    .small { font-size: 12px; fill: #57606a }
    .end { text-anchor: end }
    .middle { text-anchor: middle }
    .paper { fill: #ffffff; stroke: #d0d7de }
    .grid { stroke: #d8dee4 }
    .limit { stroke: #57606a; stroke-dasharray: 4 3 }
    .torch { fill: #8c959f }
    .stoker { fill: #d9480f }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .small { fill: #9da7b3 }
      .paper { fill: #0d1117; stroke: #30363d }
      .grid { stroke: #262c34 }
      .limit { stroke: #9da7b3 }
      .torch { fill: #6e7681 }
      .stoker { fill: #ff8a4c }
    }
"""


def text(x, y, words, kind):
    return f'  <text x="{x:g}" y="{y:g}" class="{kind}">{words}</text>'


def line(x, y1, y2, kind):
    return f'  <line x1="{x:g}" x2="{x:g}" y1="{y1:g}" y2="{y2:g}" class="{kind}"/>'


def bars(y, model, limit, rates, span):
    """One model: its name, a bar for each loader, and the rates at their ends."""
    lines = []
    for row, (name, rate) in enumerate(zip(LOADERS, rates, strict=True)):
        kind, share, base = ("stoker" if name == "Stoker" else "torch"), rate / limit, y + row * (BAR + GAP)
        if row == 0:
            lines.append(text(16, base + 15, model, "model"))
        lines.append(text(LEFT - 10, base + 15, name, "end"))
        lines.append(f'  <rect x="{LEFT}" y="{base}" width="{share * span:.1f}" height="{BAR}" class="{kind}"/>')
        lines.append(text(LEFT + share * span + 6, base + 15, f"{rate:,} ({100 * share:.1f} %)", "small"))
    return lines


def draw():
    span, group = WIDTH - LEFT - RIGHT, len(LOADERS) * (BAR + GAP) - GAP
    bottom = TOP + len(MODELS) * (group + GROUP_GAP) - GROUP_GAP + 8
    height = bottom + FOOT_HEIGHT
    described = "; ".join(f"{model}: torch {torch16:,}, Stoker {own:,}, at most {limit:,} images per second"
                          for model, limit, _, torch16, own in MODELS)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" '
        'aria-labelledby="title description">',
        f'  <title id="title">{TITLE}</title>',
        f'  <desc id="description">{described}.</desc>',
        f"  <style>{STYLE}  </style>",
        f'  <rect x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6" class="paper"/>',
        text(16, 30, TITLE, "title"),
    ]
    for percent in (0, 25, 50, 75, 100):
        x = LEFT + span * percent / 100
        lines.append(line(x, TOP - 6, bottom, "limit" if percent == 100 else "grid"))
        lines.append(text(x, bottom + 16, f"{percent} %", "small middle"))
    for place, (model, limit, *rates) in enumerate(MODELS):
        lines += bars(TOP + place * (group + GROUP_GAP), model, limit, rates, span)
    lines += [text(16, height - 12, FOOT, "small"), "</svg>"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(__file__).with_suffix(".svg").write_text(draw())
