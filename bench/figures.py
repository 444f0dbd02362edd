#!/usr/bin/env python3
"""Puts tables of results into README.md and README.zh-CN.md, so that each figure there is one of a run.

    bench/figures.py bench/results/2026-11-26-side.json bench/results/2026-11-26-memory.json

A result's part (side, memory, churn) is the place: what is between `<!-- figures: side -->` and
`<!-- end of figures -->` is replaced. Prints how many times less CPU our server takes than the best of
the others, which the READMEs' first paragraphs tell.
"""
import json
import re
import sys
import textwrap
from pathlib import Path

from servers import BASE, OURS, markdown_table

WIDTH = 110
ROOT = Path(__file__).resolve().parent.parent
SHOWN = ("ping", "zadd", "zincrby", "zrevrank", "zscore", "top100", "page300", "deep10", "byscore",
         "ping-1", "plain-zadd", "plain-zincrby", "plain-zrevrank", "plain-zscore", "plain-top10",
         "plain-top100", "plain-deep10", "plain-byscore")
MEMORY_HEAD = "bytes a member, with its name"
ENGLISH = {
    "side": "One board of {members:,} members, {clients} clients, pipeline {pipeline}: {servers},"
            " in turns in one run of {date}. `us` is the server's CPU time per command in"
            " microseconds; only the ratios carry over to other machines. `make bench` repeats the"
            " measurement ([all rows]({link})).",
    "memory": "Resident memory of one board of {members} members unless said, {servers}, {date}"
              " ([how]({link})):",
    "churn": "Nine tenths of {members} members removed at random and put back, {cycles} times:"
             " {servers}, {date} ([how]({link})):",
    "head": ("command", "{title}, us", "times less than the best of the others"),
    "memory_head": MEMORY_HEAD,
    "first": "Not first: ", "all_first": "", "list": "; ", "colon": ": ",
}
CHINESE = {
    "side": "一个有 {members:,} 个成员的榜，{clients} 个客户端，pipeline 为 {pipeline}：{servers}，{date} 在同一轮测试中"
            "轮流测量。`us` 是服务器每条命令的 CPU 时间，单位微秒；换一台机器，只有比值可供参考。`make bench` 可以"
            "重复这项测试（[全部数据]({link})）。",
    "memory": "一个榜的常驻内存（除另有说明外 {members} 个成员），{servers}，{date}（[测试方法]({link})）：",
    "churn": "随机删除 {members} 个成员的十分之九再放回，重复 {cycles} 次：{servers}，{date}（[测试方法]({link})）：",
    "head": ("命令", "{title}, us", "与其中最好者的比值"),
    "memory_head": "每个成员的字节数，包括名字",
    "first": "不是第一的：", "all_first": "", "list": "；", "colon": "：",
}
# In this order: longer ones before those that are parts of them.
TRANSLATED = (("boards of ten UUIDs, names of the boards included", "个十个 UUID 的榜，包括榜名"),
              ("the most of any cycle", "各轮中最多"), (" cycles", " 轮后"), (" cycle", " 轮后"),
              (" random updates", " 次随机更新后"), ("random update", "随机更新"), ("after ", ""),
              ("loaded", "刚加载"), ("no pipeline", "不用 pipeline"), ("in order", "按顺序"),
              ("random order", "随机顺序"), ("20 random bytes", "20 个随机字节"),
              ("10-digit ids", "10 位数字"), ("UUIDs", "UUID"), (" members: ", " 个成员："),
              ("and 12 digits", "加 12 位数字"), (", ", "，"))


def translated(title, words):
    for english, chinese in TRANSLATED if words is CHINESE else ():
        title = title.replace(english, chinese)
    return title


def titles_of(results):
    """The others first, ours last."""
    names = [name for name in results["versions"] if name != OURS] + [OURS]
    return {name: f"{name} {results['versions'][name]}" for name in names}


def quoted(title, words):
    """The command as code."""
    command, comma, rest = title.partition(", ")
    return f"`{command}`" + translated(comma + rest, words)


def first_words(rows, words):
    """Rows in which another server has the lowest figure. rows: (title, {server: figure})."""
    lost = []
    for title, cells in rows:
        best = min(cells, key=cells.get)
        if best != OURS:
            lost.append(f"{title} ({best} {cells[best]:.2f}, {OURS} {cells[OURS]:.2f})")
    return words["first"] + words["list"].join(lost) if lost else words["all_first"]


def best_other(cells):
    return min(figure for name, figure in cells.items() if name != OURS)


def cells_of(row):
    return {name: cell["us"] for name, cell in row["servers"].items()}


def side_table(results, words):
    titles = titles_of(results)
    rows = {row["name"]: row for row in results["rows"]}
    rows = [rows[name] for name in SHOWN if name in rows]
    command, figure, ratio = words["head"]
    lines = []
    for row in rows:
        cells = cells_of(row)
        lines.append([quoted(row["title"], words)] + [f"{cells[name]:.2f}" for name in titles]
                     + [f"**{best_other(cells) / cells[OURS]:.2f}**"])
    table = markdown_table([command, *(figure.format(title=title) for title in titles.values()),
                            ratio], lines)
    return table, first_words([(quoted(row["title"], words), cells_of(row)) for row in rows], words)


def bytes_table(results, words):
    titles = titles_of(results)
    rows = [(translated(title, words), cells) for title, cells in results["memory"].items()]
    table = markdown_table([words["memory_head"], *titles.values()],
                           [[title] + [f"{cells[name]:.1f}" for name in titles]
                            for title, cells in rows])
    return table, first_words(rows, words)


def facts(results, path):
    others = [title for name, title in titles_of(results).items() if name != OURS]
    members = re.search(r"([\d,]+) members", results.get("subtitle", ""))
    members = results.get("members", members.group(1) if members else "")
    counts = {len(points) - 1 for points in results.get("churn", {BASE: []}).values()}
    cycles = str(max(counts)) if len(counts) == 1 else f"{min(counts)}–{max(counts)}"
    return {"members": members, "clients": results.get("clients"), "cycles": cycles,
            "pipeline": results.get("pipeline"), "servers": ", ".join([*others, titles_of(results)[OURS]]),
            "date": path.stem[:10], "link": f"bench/results/{path.stem}.md"}


def block(part, results, path, words):
    table, first = (side_table if part == "side" else bytes_table)(results, words)
    texts = [words[part].format(**facts(results, path)), table, first]
    texts = [text if text.startswith("|") or words is CHINESE else textwrap.fill(text, WIDTH)
             for text in texts]
    return "\n\n".join(text for text in texts if text)


def replace(readme, part, text, stem):
    place = re.compile(rf"(<!-- figures: {part} -->\n).*?(<!-- end of figures -->)", re.DOTALL)
    old = readme.read_text(encoding="utf-8")
    if not place.search(old):
        sys.exit(f"{readme.name} has no place for {part}")
    new = place.sub(lambda found: f"{found.group(1)}{text}\n{found.group(2)}", old)
    if part == "side":  # its rows and its plot
        new = re.sub(r"bench/results/[\d-]{10}-side(?=\.)", f"bench/results/{stem}", new)
    readme.write_text(new, encoding="utf-8")


def say_ratios(results):
    for is_plain in (False, True):
        ratios = {row["name"]: best_other(cells_of(row)) / cells_of(row)[OURS]
                  for row in results["rows"] if row["name"] in SHOWN
                  and not row["name"].startswith("ping")
                  and row["name"].startswith("plain-") == is_plain}
        if ratios:
            least, most = min(ratios, key=ratios.get), max(ratios, key=ratios.get)
            print(f"{'no pipeline' if is_plain else 'pipelined'}: {ratios[least]:.2f} ({least}) to"
                  f" {ratios[most]:.2f} ({most}) times less CPU than the best of the others")


def main():
    paths = [Path(argument) for argument in sys.argv[1:]]
    if not paths:
        sys.exit(__doc__)
    for path in paths:
        part = path.stem[11:]
        results = json.loads(path.read_text(encoding="utf-8"))
        if part not in ("side", "memory", "churn"):
            sys.exit(f"{path}: not a result of side, memory or churn")
        for readme, words in (("README.md", ENGLISH), ("README.zh-CN.md", CHINESE)):
            replace(ROOT / readme, part, block(part, results, path, words), path.stem)
        if part == "side":
            say_ratios(results)


if __name__ == "__main__":
    main()
