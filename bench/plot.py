#!/usr/bin/env python3
"""Bars of "how many times less CPU", as an SVG that reads well on light and dark pages.

    bench/plot.py bench/results/2026-11-21-short.json > bench/results/2026-11-21-short.svg
"""
import json
import sys
from xml.sax.saxutils import escape

LABEL_WIDTH = 320
BAR_WIDTH = 400
VALUE_WIDTH = 190
BAR_HEIGHT = 16
BAR_GAP = 3
ROW_GAP = 12
TOP = 74
BOTTOM = 34
COLORS = ("#2f6fde", "#8a63d2", "#d9822b", "#3a9a5c")

STYLE = """
  .page { fill: #ffffff; stroke: #d5dae1; }
  text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1c2128; }
  .title { font-size: 16px; font-weight: 600; }
  .quiet { fill: #5b6572; }
  .number { font-variant-numeric: tabular-nums; font-weight: 600; }
  .base { stroke: #8b949e; stroke-dasharray: 3 3; }
  .grid { stroke: #e6e9ee; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #30363d; }
    text { fill: #e6edf3; }
    .quiet { fill: #9aa5b1; }
    .base { stroke: #6e7681; }
    .grid { stroke: #21262d; }
  }
"""


def text(x, y, content, kind="", anchor="start"):
    return (f'  <text x="{x:.0f}" y="{y:.0f}" class="{kind}" text-anchor="{anchor}">'
            f"{escape(content)}</text>")


def grid_step(top):
    """A round distance between grid lines: 1, 2, 5, 10 ... at most eight lines."""
    step = 1
    while top / step > 8:
        step = {1: 2, 2: 5, 5: 10}.get(step, step * 2)
    return step


def ratio_bars(title, subtitle, base, servers, rows):
    """rows: [(label, {server: microseconds})]; a bar says base / server. servers: {name: version}.
    Returns the SVG's text."""
    shown = [server for server in servers if server != base]
    ratios = [row[base] / row[server] for _, row in rows for server in shown if server in row]
    top = max(ratios + [1.0]) * 1.05
    row_height = len(shown) * (BAR_HEIGHT + BAR_GAP) + ROW_GAP
    width = LABEL_WIDTH + BAR_WIDTH + VALUE_WIDTH
    bottom = TOP + len(rows) * row_height
    height = bottom + BOTTOM
    scale = BAR_WIDTH / top
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
           f' height="{height}" role="img" aria-label="{escape(title)}">',
           f"  <style>{STYLE}  </style>",
           f'  <rect class="page" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}"'
           ' rx="8"/>',
           text(20, 28, title, "title"), text(20, 48, subtitle, "quiet")]
    step = grid_step(top)
    for i in range(1 if step > 1 else 2, int(top / step) + 1):
        x = LABEL_WIDTH + i * step * scale
        out.append(f'  <line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{bottom}"/>')
        out.append(text(x, bottom + 18, f"{i * step}x", "quiet", "middle"))
    for index, (label, row) in enumerate(rows):
        y = TOP + index * row_height
        middle = y + len(shown) * (BAR_HEIGHT + BAR_GAP) / 2
        out.append(text(LABEL_WIDTH - 12, middle + 3, label, "", "end"))
        for place, server in enumerate(shown):
            if server not in row:
                continue
            ratio = row[base] / row[server]
            bar_y = y + place * (BAR_HEIGHT + BAR_GAP)
            out.append(f'  <rect x="{LABEL_WIDTH}" y="{bar_y}" width="{ratio * scale:.1f}"'
                       f' height="{BAR_HEIGHT}" rx="2" fill="{COLORS[place % len(COLORS)]}"/>')
            out.append(text(LABEL_WIDTH + ratio * scale + 8, bar_y + 12.5,
                            f"{ratio:.1f}x", "number"))
            out.append(text(LABEL_WIDTH + ratio * scale + 50, bar_y + 12.5,
                            f"{row[server]:.2f} / {row[base]:.2f} \u00b5s", "quiet"))
    x = LABEL_WIDTH + scale
    out.append(text(x, bottom + 18, "1x", "quiet", "middle"))
    out.append(f'  <line class="base" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 8}" y2="{bottom}"/>')
    x = width - 20
    for place, server in reversed(list(enumerate(shown))):
        name = f"{server} {servers[server]}"
        out.append(text(x, 28, name, "quiet", "end"))
        x -= 7 * len(name) + 18
        out.append(f'  <rect x="{x:.0f}" y="17" width="12" height="12" rx="2"'
                   f' fill="{COLORS[place % len(COLORS)]}"/>')
        x -= 14
    out.append("</svg>")
    return "\n".join(out) + "\n"


def of_results(results):
    """The plot of what compare.py measured."""
    rows = [(row["title"], {name: cell["us"] for name, cell in row["servers"].items()})
            for row in results["rows"]]
    subtitle = (f"{results['members']:,} members, {results['clients']} clients, pipeline"
                f" {results['pipeline']} unless said; median of {results['rounds']} rounds")
    base = results["base"]
    title = f"CPU per operation: how many times less than {base} {results['versions'][base]}"
    return ratio_bars(title, subtitle, base, results["versions"], rows)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write(of_results(json.load(file)))
