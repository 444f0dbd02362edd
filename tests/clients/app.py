"""A small game's leaderboard with redis-py: app.py PORT [redis]

Profiles and scores in one transaction, a page with names, a window around a player, a result on two
boards at once, a message when somebody is overtaken, and a player erased also from the files. On
redis-server the LB. commands are spelled out in several of Redis's; the results are the same.
"""
import pathlib
import secrets
import subprocess
import sys
import time

import redis

is_redis = len(sys.argv) > 2 and sys.argv[2] == "redis"
client = redis.Redis(port=int(sys.argv[1]), decode_responses=True)
game = "app-python"
day, week = f"{game}:day", f"{game}:week"
mark = secrets.token_hex(8)  # so that a name found in a file is of this run
zoe, ann, kim, bob = (f"{name}-{mark}" for name in ("zoe", "ann", "kim", "bob"))


def says(sentence, claim, seen=None):
    where = "redis-server" if is_redis else "leaderboard"
    print(f"{'ok' if claim else 'not ok'} Python app on {where}: {sentence}")
    if not claim:
        print(f"seen: {seen}")
        sys.exit(1)


def equal(sentence, seen, wanted):
    says(sentence, seen == wanted, seen)


def profile(player):
    return f"{game}:profile:{player}"


# ---- the application ----

def register(player, name, tier, score):
    with client.pipeline(transaction=True) as pipeline:
        pipeline.hset(profile(player), mapping={"name": name, "tier": tier})
        pipeline.zadd(day, {player: score}).zadd(week, {player: score})
        return pipeline.execute()


def submit(player, points):
    """One result on both boards. Who is overtaken in the week is told so, with the old and the new
    rank and who is directly ahead now."""
    if not is_redis:
        answers = client.execute_command("LB.SUBMIT", 2, day, week, "INCR", "STRINGS", points,
                                         player)
        return tuple(int(record[3]) for record, *_ in answers)
    with client.pipeline(transaction=True) as pipeline:
        pipeline.zrevrank(week, player)
        pipeline.zincrby(day, points, player).zincrby(week, points, player)
        pipeline.zrevrank(week, player)
        before, of_day, of_week, after = pipeline.execute()
    passed = client.zrevrange(week, after, before)
    for i in range(1, len(passed)):
        client.publish(overtaken_channel(passed[i]),
                       f"overtaken {after + i - 1} {after + i} {passed[i - 1]}")
    return int(of_day), int(of_week)


def overtaken_channel(player):
    """The server's own name for the events of this player on this board."""
    return f"__overtaken@0__:{len(week.encode())}:{week}:{player}"


def with_names(first, members):
    """On redis-server: what DATA does."""
    with client.pipeline(transaction=False) as pipeline:
        for member, _ in members:
            pipeline.hmget(profile(member), "name", "tier")
        fields = pipeline.execute()
    return [(first + i, member, int(score), *fields[i])
            for i, (member, score) in enumerate(members)]


def rows(records):
    return [(rank, member, int(score), *fields) for member, rank, _, score, fields in records]


DATA = ("STRINGS", "DATA", f"{game}:profile:*", "FIELDS", 2, "name", "tier")


def top(count):
    if is_redis:
        return with_names(0, client.zrevrange(week, 0, count - 1, withscores=True))
    return rows(client.execute_command("LB.RANGE", week, 0, count - 1, *DATA))


def around(player):
    if is_redis:
        first = max(client.zrevrank(week, player) - 1, 0)
        return with_names(first, client.zrevrange(week, first, first + 2, withscores=True))
    return rows(client.execute_command("LB.AROUND", week, "MEMBER", player, 3, *DATA))


def erase(player):
    with client.pipeline(transaction=True) as pipeline:
        pipeline.delete(profile(player)).zrem(day, player).zrem(week, player)
        return pipeline.execute()


# ---- files ----

def wait_until(condition):
    while not condition():
        time.sleep(0.02)


def files_hold(player):
    directory = client.config_get("dir")["dir"]
    script = pathlib.Path(__file__).with_name("files_hold.py")
    return subprocess.check_output([sys.executable, script, directory, player],
                                   text=True).strip()


def is_idle():
    state = client.info("persistence")
    return not (state["aof_rewrite_in_progress"] or state["aof_rewrite_scheduled"]
                or state["rdb_bgsave_in_progress"])


def next_message(subscriber):
    message = None
    while message is None:
        message = subscriber.get_message(ignore_subscribe_messages=True, timeout=1)
    return message["channel"], message["data"]


# ---- the story ----

client.delete(day, week)
if is_redis:
    client.config_set("rdbcompression", "no")  # so that its files can be searched
client.config_set("appendfsync", "always")
client.config_set("appendonly", "yes")
client.config_set("notify-keyspace-events", "Kz")
if not is_redis:
    client.config_set("notify-board-events", "yes")

equal("a profile and its scores are written together", register(zoe, "Zoe", "gold", 50),
      [2, 1, 1])
for player, name, tier, score in ((ann, "Ann", "silver", 40), (kim, "Kim", "gold", 30),
                                  (bob, "Bob", "bronze", 20)):
    register(player, name, tier, score)
equal("a page has names", top(2),
      [(0, zoe, 50, "Zoe", "gold"), (1, ann, 40, "Ann", "silver")])
equal("a player's neighbours have names", around(kim),
      [(1, ann, 40, "Ann", "silver"), (2, kim, 30, "Kim", "gold"), (3, bob, 20, "Bob", "bronze")])

subscriber = client.pubsub()
subscriber.subscribe(overtaken_channel(zoe), f"__keyspace@0__:{week}")
for _ in range(2):  # both subscriptions are there
    wait_until(lambda: subscriber.get_message(timeout=1) is not None)
equal("a result counts for the day and the week", submit(kim, 25), (55, 55))
equal("a change of the board is received", next_message(subscriber),
      (f"__keyspace@0__:{week}", "zincr"))
equal("who is overtaken hears of it", next_message(subscriber),
      (overtaken_channel(zoe), f"overtaken 0 1 {kim}"))
equal("a result that changes no place", submit(kim, 1), (56, 56))
equal("changes the board", next_message(subscriber), (f"__keyspace@0__:{week}", "zincr"))
subscriber.close()
equal("the page follows", top(2), [(0, kim, 56, "Kim", "gold"), (1, zoe, 50, "Zoe", "gold")])

wait_until(is_idle)  # appendonly begins with a snapshot
wait_until(lambda: files_hold(zoe) == "yes")
equal("a player is erased", erase(zoe), [1, 1, 1])
equal("and is on no page", top(2), [(0, kim, 56, "Kim", "gold"), (1, ann, 40, "Ann", "silver")])
equal("the files still hold the player", files_hold(zoe), "yes")
client.bgrewriteaof()
wait_until(lambda: is_idle() and files_hold(zoe) == "no")
equal("but no more when they are rewritten", files_hold(zoe), "no")
equal("and they hold the others", files_hold(kim), "yes")
client.delete(day, week, *(profile(player) for player in (ann, kim, bob)))
client.config_set("notify-keyspace-events", "")
if not is_redis:
    client.config_set("notify-board-events", "no")
client.config_set("appendonly", "no")
