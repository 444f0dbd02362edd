"""What COMMAND says of each command that Redis has too: arity, flags, where its keys are, categories, tips, key
specifications. The version in PATH is compared, so tests/versions/run compares each."""
import unittest

import servers

ASPECTS = ("arity", "flags", "first key", "last key", "step", "categories", "tips", "key specifications")
# Flags of what is not here: scripts, modules that are busy, loading beside serving; and Valkey's name for skip_slowlog.
MEANINGLESS = {"noscript", "allow_busy", "no_async_loading"}
RENAMED = {"skip_commandlog": "skip_slowlog"}
# The differences that are wanted, of some versions or of all, and why.
SUBSCRIBED = "Redis 8 refuses it above maxmemory, and Sentinels that start then do not find each other"
LATER = "as later versions have it"
VALKEY = "Valkey 9 forbids it in MULTI; here it is queued, as in Redis"
WANTED = {
    ("psync", "arity"): "PSYNC's FAILOVER is an argument of no request here",
    ("psync", "flags"): "a replica that has lost its master still serves replicas of its own",
    ("sync", "flags"): "the same",
    ("subscribe", "flags"): SUBSCRIBED,
    ("psubscribe", "flags"): SUBSCRIBED,
    ("ssubscribe", "flags"): SUBSCRIBED,
    ("wait", "flags"): "@blocking only since Redis 8; users without that category keep their WAIT",
    ("wait", "categories"): "the same",
    ("client|reply", "flags"): VALKEY,
    ("multi", "flags"): VALKEY,
    ("watch", "flags"): VALKEY,
    ("command|getkeys", "arity"): LATER,
    ("zrank", "arity"): LATER,
    ("zrevrank", "arity"): LATER,
} | {(command, "tips"): LATER for command in (
    "acl|deluser", "acl|save", "acl|setuser", "client|setname", "client|setinfo", "config|resetstat", "config|rewrite",
    "latency|reset", "module|list", "randomkey", "scan")}


def text(value):
    return value.decode().lower() if isinstance(value, bytes) else value


def plain(value):
    """Lists of words as sets, so that their order does not matter."""
    if not isinstance(value, list):
        return text(value)
    parts = [plain(part) for part in value]
    return frozenset(parts) if all(isinstance(part, str) for part in parts) else tuple(parts)


def described(client):
    """{full name: its aspects}."""
    found = {}

    def add(entries):
        for entry in entries:
            aspects = [plain(part) for part in entry[1:9]]
            aspects[1] = frozenset(RENAMED.get(flag, flag) for flag in aspects[1] or ()) - MEANINGLESS
            found[text(entry[0])] = aspects
            add(entry[9])

    add(client.execute_command("COMMAND"))
    return found


class Flags(unittest.TestCase):
    def setUp(self):
        self.redis, self.ours = servers.start_redis(), servers.start_leaderboard()
        self.addCleanup(self.redis.stop)
        self.addCleanup(self.ours.stop)

    def compare(self):
        theirs, ours = described(self.redis.raw_client()), described(self.ours.raw_client())
        for name in sorted(ours.keys() & theirs.keys()):
            for aspect, own, other in zip(ASPECTS, ours[name], theirs[name]):
                if (own or None) != (other or None):
                    yield name, aspect, f"{name}, {aspect}: {own} here, {other} there"

    def test_every_shared_command_is_described_as_redis_describes_it(self):
        if not servers.knows(self.redis.client(), "ZMPOP"):
            return  # before Redis 7 COMMAND says half of it, in other words
        unwanted = [line for name, aspect, line in self.compare() if (name, aspect) not in WANTED]
        self.assertEqual(unwanted, [])

    def test_half_of_all_commands_are_shared(self):
        """So the comparison is not one of nothing."""
        ours = described(self.ours.raw_client())
        theirs = self.redis.raw_client().execute_command("COMMAND")
        self.assertGreater(len({text(entry[0]) for entry in theirs} & ours.keys()), len(ours) / 3)
