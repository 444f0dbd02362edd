"""Commands with few arguments, or a wrong number of keys, from a user who may use some keys alone.

The host looks for the keys of a command before the module sees it: to check rights, and for COMMAND GETKEYS and
ACL DRYRUN."""
import itertools
import random
import unittest

import redis

from connection import Connection
from hosts import Host, Server, SHORT

SEED = 2
# Keys that the user has and has not, and what stands where a number of keys is expected.
WORDS = ["daily:1", "secret:1", "0", "1", "2", "-1", "4294967297", "18446744073709551617", "x", ""]
BOARDS = ["board", "daily:*", "default", "board", "secret:*", "default"]
WAITING = ("bzmpop", "bzpopmin", "bzpopmax")
WRONG = "wrong number of arguments"
BATCH = 400


def arities(client, names):
    """By full name; of a container those of its subcommands."""
    found = {}
    for info in client.ask("COMMAND", "INFO", *names):
        for each in info[9] or [info]:
            found[each[0].decode()] = int(each[1])
    return found


def is_short(arity, count):
    """count is that of the arguments, with the name."""
    return count < abs(arity)


class Short(unittest.TestCase):
    def setUp(self):
        self.host = Host(boards=BOARDS)  # one for each test: it may end
        self.addCleanup(self.host.stop)
        self.owner = self.connect(self.host)
        names = sorted(name for name in self.owner.ask("COMMAND", "LIST", "FILTERBY", "MODULE", "leaderboard")
                       if b"|" not in name)
        self.arities = arities(self.owner, names)
        self.owner.ask("ACL", "SETUSER", "limited", "on", "nopass", "~daily:*", "&*", "+@all")

    def connect(self, host):
        client = Connection(host)
        self.addCleanup(client.close)
        return client

    def limited(self):
        client = self.connect(self.host)
        self.assertEqual(client.ask("AUTH", "limited", "x"), b"OK")
        return client

    def ask_all(self, client, requests):
        """The replies. A host that has ended is a failure that names what was sent."""
        replies = []
        for at in range(0, len(requests), BATCH):
            batch = requests[at:at + BATCH]
            for request in batch:
                client.send(*request)
            for request in batch:
                try:
                    replies.append(client.read())
                except OSError:
                    self.fail(f"the host has ended, at {request} or soon after: {self.host.told()[-1500:]}")
        return replies

    def forms(self):
        """(full name, words): every command with up to two arguments of every kind, and some with more."""
        draw = random.Random(SEED)
        for full_name in sorted(self.arities):
            name = full_name.split("|")
            for count in range(3):
                for words in itertools.product(WORDS, repeat=count):
                    yield full_name, [*name, *words]
            for _ in range(30 if SHORT else 500):
                yield full_name, [*name, *draw.choices(WORDS, k=draw.choice([3, 3, 3, 4, 5]))]

    def in_time(self, name, words):
        """It does not wait for ever."""
        if name.removeprefix("lb.") in WAITING and len(words) > 1:
            at = 1 if "zmpop" in name else len(words) - 1
            words = [*words[:at], "0.001" if words[at].isdigit() else words[at], *words[at + 1:]]
        return words

    def fill(self):
        self.owner.ask("FLUSHALL")
        self.owner.ask("ZADD", "daily:1", 1, "seen")
        self.owner.ask("ZADD", "secret:1", 1, "hidden")

    def check(self, forms, replies, wrong):
        for (name, words), reply in zip(forms, replies):
            self.assertNotIn("hidden", str(reply), (name, words))
            if is_short(self.arities[name], len(words)):
                self.assertIsInstance(reply, redis.RedisError, (name, words))
                self.assertRegex(str(reply), wrong, (name, words))
        self.assertEqual(self.owner.ask("LB.ZRANGE", "secret:1", 0, -1), [b"hidden"])

    def run_forms(self, wrong, wrap, forms=None):
        self.fill()
        forms = list(self.forms()) if forms is None else forms
        replies = self.ask_all(self.limited(), [wrap(self.in_time(name, words)) for name, words in forms])
        self.check(forms, replies, wrong)

    def test_the_arity_is_that_of_the_server(self):
        server = Server()
        self.addCleanup(server.stop)
        client = self.connect(server)
        of_server = arities(client, [name for name in client.ask("COMMAND", "LIST") if b"|" not in name])
        own = {"lb.type": 2, "lb.apply": -3, "lb.applystate": 2, "lb.reply": 1}
        for name, arity in self.arities.items():
            if name in own:
                self.assertEqual(arity, own[name], name)
            else:
                self.assertEqual(arity, of_server.get(name, of_server.get(name.removeprefix("lb."))), name)
            if name.startswith(("lb.z", "lb.bz")):  # a wrong number is refused by the command of the host
                of_host = arities(self.owner, [name[3:]])[name[3:]]
                self.assertIn(of_host, (arity, abs(arity)), name)

    def test_short_commands_are_refused(self):
        self.run_forms(WRONG, lambda words: words)

    def test_short_commands_are_refused_by_their_plain_names(self):
        plain = [(name, [words[0].removeprefix("lb."), *words[1:]]) for name, words in self.forms()
                 if name.startswith(("lb.z", "lb.bz"))]
        self.run_forms(WRONG, lambda words: words, plain)
        # The error names what the client has sent.
        for words in ["ZADD", "daily:1", "1"], ["ZUNIONSTORE", "daily:1"], ["BZMPOP", "0"], ["ZREVRANK", "daily:1"]:
            self.assertEqual(str(self.owner.ask(*words)),
                             f"ERR wrong number of arguments for '{words[0].lower()}' command")

    def test_short_commands_are_refused_where_keys_are_asked_for(self):
        for command in "GETKEYS", "GETKEYSANDFLAGS":
            self.run_forms("Invalid number of arguments|no key arguments|" + WRONG,
                           lambda words, command=command: ["COMMAND", command, *words])

    def test_short_commands_are_refused_where_rights_are_asked_for(self):
        self.run_forms(WRONG + "|has no permissions", lambda words: ["ACL", "DRYRUN", "limited", *words])

    def test_short_commands_are_refused_in_scripts(self):
        self.run_forms("[Ww]rong number of args|" + WRONG,
                       lambda words: ["EVAL", "return redis.pcall(unpack(ARGV))", 0, *words])

    def test_short_commands_are_refused_when_they_are_queued(self):
        self.fill()
        client, forms = self.limited(), list(self.forms())
        asked = [request for _, words in forms for request in (["MULTI"], words, ["EXEC"])]
        replies = self.ask_all(client, asked)
        self.check(forms, replies[1::3], WRONG)
        for (name, words), reply in zip(forms, replies[2::3]):
            self.assertNotIn("hidden", str(reply), words)
            if is_short(self.arities[name], len(words)):
                self.assertRegex(str(reply), "EXECABORT", words)


if __name__ == "__main__":
    unittest.main()
