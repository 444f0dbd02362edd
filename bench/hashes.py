"""A million hashes beside a board: name (12 bytes), avatar (40), tier (4). The part "hashes" of
full.py."""
import time

import compare
import plot
from compare import CPU_NOTE, FLOOR_NOTE, Row
from servers import OURS, SETTLE_S, alternate, markdown_table, say

MILLION = 1000000
PAGE = 100
FIELDS = "name __rand_int__ avatar https://example.com/avatar/__rand_int__ tier gold"
HSET = f"HSET profile:__rand_int__ {FIELDS}"


class PageRow(Row):
    """A page of the board with the names of its members. With DATA where there is that, and it is
    asked for; else the page and a pipelined HMGET for each member. One operation is the page."""

    def __init__(self, name, title, command, is_native, is_hot):
        super().__init__(name, title, command, 8000)
        self.is_native, self.is_hot = is_native, is_hot

    def measure(self, run, server, members, factor=1.0):
        requests = max(1000, int(self.requests * factor))
        is_ours = server.name == OURS
        page = self.command if is_ours else f"ZREVRANGE board 0 {PAGE - 1} WITHSCORES"
        if is_ours and self.is_native:
            return run(server, f"{page} DATA profile:* FIELDS 1 name", requests, members)
        page = run(server, page, requests, members)
        names = run(server, "HMGET profile:__rand_int__ name", requests * PAGE // 2,
                    PAGE if self.is_hot else members)
        return {"us": page["us"] + PAGE * names["us"], "commands": 1 + PAGE,
                "per_second": 1 / (1 / page["per_second"] + PAGE / names["per_second"]),
                "busy": min(page["busy"], names["busy"])}


TOP, AROUND = f"LB.RANGE board 0 {PAGE - 1}", f"LB.AROUND board MEMBER __rand_int__ {PAGE}"
ROWS = [Row("hset", "HSET, 3 fields", HSET, 400000),
        Row("hset-one", "HSET, 1 field", "HSET profile:__rand_int__ tier gold", 400000),
        Row("hgetall", "HGETALL", "HGETALL profile:__rand_int__", 400000),
        Row("hmget", "HMGET, 2 fields", "HMGET profile:__rand_int__ name tier", 400000),
        Row("hget", "HGET", "HGET profile:__rand_int__ name", 400000),
        PageRow("top-hmget", "top 100, and 100 HMGETs", TOP, False, True),
        PageRow("top-data", "top 100 DATA", TOP, True, True)]
# Of ours alone: redis-server has no command for it.
AROUND_ROWS = [PageRow("around-hmget", "100 around a member, and 100 HMGETs", AROUND, False, False),
               PageRow("around-data", "100 around a member, DATA", AROUND, True, False)]


def load(part, server, count):
    """Returns the cost of the load, and bytes a hash."""
    resident = server.resident_bytes()
    cost = part.generator.run(server, HSET.replace("profile:__rand_int__", "profile:__mixed_int__"),
                              count, count)
    time.sleep(SETTLE_S)
    size = (server.resident_bytes() - resident) / count
    part.generator.run(server, "ZADD board __rand_int__ __mixed_int__", count, count)
    return cost, size


def around_table(part, count):
    ours = {OURS: part.servers[OURS]}
    cells = [(row.title, alternate(ours, part.options.rounds, lambda server, row=row: row.measure(
        part.generator.run, server, count, min(1.0, part.options.scale * 10)))[OURS]["us"])
             for row in AROUND_ROWS]
    for title, cost in cells:
        say(f"  {title:42} {cost:15.2f} us")
    return markdown_table(["pages in no order", f"{OURS}, us"],
                          [[title, f"{cost:.2f}"] for title, cost in cells])


def measure(part):
    count = part.scaled(MILLION)
    loads, sizes = {}, {}
    for name, server in part.start().items():
        loads[name], sizes[name] = load(part, server, count)
        say(f"  {name}: {sizes[name]:.1f} B a hash")
    rows = [compare.load_row("load by HSET", loads)]
    rows += part.measure(ROWS, count)
    around = around_table(part, count)
    subtitle = (f"{count:,} hashes of name, avatar and tier, 12, 40 and 4 bytes; 50 clients,"
                f" pipeline {part.options.pipeline}; median of {part.options.rounds} rounds,"
                " one load")
    names = list(part.versions)
    table = markdown_table(["resident memory, names of the keys included", *names],
                           [["bytes a hash"] + [f"{sizes[name]:.1f}" for name in names]])
    part.write("hashes", "Many hashes", [CPU_NOTE, FLOOR_NOTE],
               "\n\n".join([compare.cost_table(rows, part.versions), around, table]),
               lambda results: plot.of_rows(results, results["subtitle"]),
               part.results(subtitle, rows=rows, memory={"bytes a hash": sizes}))
