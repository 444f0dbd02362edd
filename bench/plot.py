#!/usr/bin/env python3
"""Plots of results as SVG that reads well on light and dark pages: bars, and costs against size.

    bench/plot.py bench/results/2026-11-21-short.json > bench/results/2026-11-21-short.svg
"""
import json
import math
import sys
from xml.sax.saxutils import escape

LABEL_WIDTH = 410
BAR_WIDTH = 400
VALUE_WIDTH = 190
BAR_HEIGHT = 16
BAR_GAP = 3
ROW_GAP = 12
TOP = 96
BOTTOM = 34
GRID_LINES_MAX = 8
COLORS = ("#2f6fde", "#8a63d2", "#d9822b", "#3a9a5c")
BASE_COLOR = "#8b949e"

PANEL_COLUMNS = 3
PANEL_WIDTH = 300
PANEL_HEIGHT = 230
PANEL_MARGIN = {"left": 52, "right": 14, "top": 34, "bottom": 42}

STYLE = """
  .page { fill: #ffffff; stroke: #d5dae1; }
  text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1c2128; }
  .title { font-size: 16px; font-weight: 600; }
  .panel { font-weight: 600; }
  .quiet { fill: #5b6572; }
  .number { font-variant-numeric: tabular-nums; font-weight: 600; }
  .base { stroke: #8b949e; stroke-dasharray: 3 3; }
  .grid { stroke: #e6e9ee; }
  .axis { stroke: #8b949e; }
  .curve { fill: none; stroke-width: 2; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117; stroke: #30363d; }
    text { fill: #e6edf3; }
    .quiet { fill: #9aa5b1; }
    .base { stroke: #6e7681; }
    .grid { stroke: #21262d; }
    .axis { stroke: #6e7681; }
  }
"""


def text(x, y, content, kind="", anchor="start"):
    return (f'  <text x="{x:.0f}" y="{y:.0f}" class="{kind}" text-anchor="{anchor}">'
            f"{escape(content)}</text>")


def line(x1, y1, x2, y2, kind):
    return f'  <line class="{kind}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def box(x, y, width, height, color):
    return (f'  <rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" rx="2"'
            f' fill="{color}"/>')


def page(width, height, title, subtitle, legend, body):
    """legend: [(name, color)], a line below the subtitle."""
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
           f' height="{height}" role="img" aria-label="{escape(title)}">',
           f"  <style>{STYLE}  </style>",
           f'  <rect class="page" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}"'
           ' rx="8"/>',
           text(20, 28, title, "title"), text(20, 48, subtitle, "quiet")]
    x = 20
    for name, color in legend:
        out += [box(x, 61, 12, 12, color), text(x + 18, 72, name, "quiet")]
        x += 7 * len(name) + 36
    return "\n".join(out + body + ["</svg>"]) + "\n"


def grid_values(top, lines_max=GRID_LINES_MAX):
    """Round values from 0 to top: steps of 1, 2 or 5 times a power of ten."""
    step = 10.0 ** math.floor(math.log10(top / lines_max))
    step *= next(factor for factor in (1, 2, 5, 10) if top / (step * factor) <= lines_max)
    return [round(index * step, 9) for index in range(int(top / step + 1e-9) + 1)]


def colors_of(servers, base):
    """The server that all are compared with is grey."""
    others = [server for server in servers if server != base]
    colors = {server: COLORS[place % len(COLORS)] for place, server in enumerate(others)}
    return {**colors, base: BASE_COLOR} if base in servers else colors


# ---- bars ----

def bars(title, subtitle, legend, rows, unit, marked=None):
    """rows: [(label, [(value, words behind it, color)])]. marked: a value with a dashed line."""
    top = max([value for _, row in rows for value, _, _ in row] + [marked or 0]) * 1.05
    scale = BAR_WIDTH / top
    body, y = [], TOP
    for label, row in rows:
        height = len(row) * (BAR_HEIGHT + BAR_GAP)
        body.append(text(LABEL_WIDTH - 12, y + height / 2 + 3, label, "", "end"))
        for value, words, color in row:
            length = max(0, value) * scale
            end = LABEL_WIDTH + length
            number = f"{value:.1f}{unit}"
            body += [box(LABEL_WIDTH, y, length, BAR_HEIGHT, color),
                     text(end + 8, y + 12.5, number, "number"),
                     text(end + 16 + 8 * len(number), y + 12.5, words, "quiet")]
            y += BAR_HEIGHT + BAR_GAP
        y += ROW_GAP
    grid = []
    for value in grid_values(top)[1:]:
        x = LABEL_WIDTH + value * scale
        grid += [line(x, TOP - 8, x, y, "grid"), text(x, y + 18, f"{value:g}{unit}", "quiet",
                                                      "middle")]
    if marked is not None:
        x = LABEL_WIDTH + marked * scale
        body.append(line(x, TOP - 8, x, y, "base"))
    width = LABEL_WIDTH + BAR_WIDTH + VALUE_WIDTH
    return page(width, y + BOTTOM, title, subtitle, legend, grid + body)


def ratio_bars(title, subtitle, base, versions, rows):
    """rows: [(label, {server: microseconds})]; a bar says base / server."""
    colors = colors_of(versions, base)
    shown = [server for server in versions if server != base]
    drawn = [(label, [(row[base] / row[server], f"{row[server]:.2f} / {row[base]:.2f} \u00b5s",
                       colors[server]) for server in shown if server in row])
             for label, row in rows]
    legend = [(f"{server} {versions[server]}", colors[server]) for server in shown]
    return bars(title, subtitle, legend, drawn, "x", marked=1.0)


def value_bars(title, subtitle, base, versions, rows, unit):
    """rows: [(label, {server: value})]; every server has a bar."""
    colors = colors_of(versions, base)
    drawn = [(label, [(row[server], "", colors[server]) for server in versions if server in row])
             for label, row in rows]
    legend = [(f"{server} {versions[server]}", colors[server]) for server in versions]
    return bars(title, subtitle, legend, drawn, unit)


# ---- curves ----

def short_number(value):
    for unit, name in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def panel(left, top, title, curves, sizes, colors, axis, is_log):
    """One square of panels_of. curves: {server: [(size, value)]}."""
    x0, x1 = left + PANEL_MARGIN["left"], left + PANEL_WIDTH - PANEL_MARGIN["right"]
    y0, y1 = top + PANEL_HEIGHT - PANEL_MARGIN["bottom"], top + PANEL_MARGIN["top"]
    values = [value for points in curves.values() for _, value in points] or [1]
    highest = max(values) * 1.08
    powers = []
    if is_log:
        powers = [10.0 ** power for power in range(math.floor(math.log10(min(values))),
                                                   math.ceil(math.log10(highest)) + 1)]
    low, high = math.log10(sizes[0]), math.log10(sizes[-1])

    def x_of(size):
        return x0 + (x1 - x0) * (math.log10(size) - low) / ((high - low) or 1)

    def y_of(value):
        if is_log:
            return y0 - (y0 - y1) * math.log(value / powers[0]) / math.log(powers[-1] / powers[0])
        return y0 - (y0 - y1) * value / highest

    out = [text(x0, top + 22, title, "panel")]
    for value in powers or grid_values(highest, 5):
        is_axis = value in (0, *powers[:1])
        out += [line(x0, y_of(value), x1, y_of(value), "axis" if is_axis else "grid"),
                text(x0 - 6, y_of(value) + 4, short_number(value) if is_log else f"{value:g}",
                     "quiet", "end")]
    out.append(text(x1, y0 + 36, axis, "quiet", "end"))
    for size in sizes:
        out.append(text(x_of(size), y0 + 18, short_number(size), "quiet", "middle"))
    for server, points in curves.items():
        places = [(x_of(size), y_of(value)) for size, value in points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        out.append(f'  <polyline class="curve" stroke="{colors[server]}" points="{path}"/>')
        out += [f'  <circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colors[server]}"/>'
                for x, y in places]
    return out


def panels_of(title, subtitle, legend, panels, colors, axis, is_log=False):
    """panels: [(title with unit, {server: [(size, value)]})]; size has a logarithmic axis, values
    begin at 0, or have such an axis too."""
    sizes = sorted({size for _, curves in panels for points in curves.values()
                    for size, _ in points})
    body = []
    for place, (name, curves) in enumerate(panels):
        left = 10 + place % PANEL_COLUMNS * PANEL_WIDTH
        body += panel(left, TOP - 14 + place // PANEL_COLUMNS * PANEL_HEIGHT, name, curves,
                      sizes, colors, axis, is_log)
    rows = math.ceil(len(panels) / PANEL_COLUMNS)
    return page(20 + PANEL_COLUMNS * PANEL_WIDTH, TOP + rows * PANEL_HEIGHT, title, subtitle,
                legend, body)


def curves_by_size(title, subtitle, base, versions, panels):
    colors = colors_of(versions, base)
    legend = [(f"{server} {versions[server]}", colors[server]) for server in versions]
    return panels_of(title, subtitle, legend, panels, colors, "members")


# ---- files of results ----

def of_rows(results, subtitle):
    """Bars of rows as compare.py measures them."""
    base = results["base"]
    rows = [(row["title"], {name: cell["us"] for name, cell in row["servers"].items()})
            for row in results["rows"]]
    title = f"CPU per operation: how many times less than {base} {results['versions'][base]}"
    return ratio_bars(title, subtitle, base, results["versions"], rows)


def of_results(results):
    """The plot of what compare.py measured."""
    return of_rows(results, f"{results['members']:,} members, {results['clients']} clients,"
                            f" pipeline {results['pipeline']} unless said; median of"
                            f" {results['rounds']} rounds")


def of_memory(results):
    rows = [(title, cells) for title, cells in results["memory"].items()]
    return value_bars("Resident bytes a member, with its name", results["subtitle"],
                      results["base"], results["versions"], rows, " B")


def of_growth(results):
    panels = [(title, {server: [(point["members"], point["figures"][title])
                                for point in points if title in point["figures"]]
                       for server, points in results["growth"].items()})
              for title in results["titles"]]
    return curves_by_size("Cost against the size of the board", results["subtitle"],
                          results["base"], results["versions"], panels)


def of_stalls(results):
    rows = [(row["title"], {name: cell["longest_us"] / 1000
                            for name, cell in row["servers"].items()}) for row in results["stalls"]]
    return value_bars("Longest wait of other clients", results["subtitle"], results["base"],
                      results["versions"], rows, " ms")


def of_durability(results):
    """CPU per ZADD without and with a journal."""
    rows = [(f"pipeline {row['pipeline']}, "
             + ("no journal" if row["mode"] == "no" else f"appendfsync {row['mode']}"),
             {name: cell["us"] for name, cell in row["servers"].items()})
            for row in results["cost"]["rows"]]
    return value_bars("CPU per ZADD, with and without a journal", results["subtitle"],
                      results["base"], results["versions"], rows, " \u00b5s")


THREAD_COLORS = {"leaderboard": ("#7fb0ff", "#2f6fde", "#17408b"),
                 "redis-server": ("#f0b27a", "#d9822b", "#8a4b0f")}


def of_threads(results):
    """CPU and rate of one request at a time against the number of clients."""
    colors, legend = {}, []
    for name, shades in THREAD_COLORS.items():
        servers = [(server, told["io_threads"]) for server, told in results["threads"].items()
                   if told["name"] == name]
        for place, (server, io_threads) in enumerate(servers):
            colors[server] = shades[place % len(shades)]
            legend.append((str(io_threads) if place else f"{name}, io-threads {io_threads}",
                           colors[server]))
    rows = sorted((row for row in results["tables"] if row["is_curve"]),
                  key=lambda row: row["clients"])
    figures = (("engine thread, \u00b5s", "engine_us"), ("whole server, \u00b5s", "us"),
               ("requests a second", "per_second"))
    panels = [(title, {server: [(row["clients"], row["servers"][server][key]) for row in rows]
                       for server in colors}) for title, key in figures if rows]
    return panels_of("CPU per ZREVRANK", results["subtitle"], legend, panels, colors, "clients",
                     is_log=True)


def of_ratings(results):
    """How far ranks are from those of strength, against the matches of a player."""
    colors = dict(zip(results["ratings"], COLORS))
    titles = next(iter(results["ratings"].values()))
    panels = [(title, {name: [(matches, 1 - correlation) for matches, correlation in kinds[title]]
                       for name, kinds in results["ratings"].items()}) for title in titles]
    return panels_of("1 less the rank correlation of strength and rating", results["subtitle"], list(colors.items()),
                     panels, colors, "matches of each player", is_log=True)


def of_any(results):
    """By what the file holds."""
    if "ratings" in results:
        return of_ratings(results)
    if "threads" in results:
        return of_threads(results)
    if "cost" in results:
        return of_durability(results)
    if "growth" in results:
        return of_growth(results)
    if "stalls" in results:
        return of_stalls(results)
    if "rows" in results:
        return of_rows(results, results["subtitle"]) if "subtitle" in results \
            else of_results(results)
    return of_memory(results)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write(of_any(json.load(file)))
