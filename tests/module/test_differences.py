"""What docs/reference/module.md says differs between the server and the module is what differs, and nothing else."""
import re
import unittest

import redis

from connection import Connection
from hosts import ROOT, Host, Server

OWN = {"lb.apply", "lb.applystate", "lb.type", "lb.reply"}  # the module's, for itself
LATER = {"client|no-touch", "client|setinfo"}  # Redis 7.0 does not have them


def page():
    return (ROOT / "docs" / "reference" / "module.md").read_text()


def row(begin):
    """The cells of the line of the table that begins so."""
    found = re.search(rf"^\| ({re.escape(begin)}.*) \|$", page(), re.M)
    assert found, f"docs/reference/module.md has no line '{begin}'"
    return found.group(1).split(" | ")


def names(cell):
    """The commands in it, as COMMAND names them."""
    return {name.lower().replace(" ", "|") for name in re.findall(r"`([A-Z][A-Z._ -]+)`", cell)}


def infos(client):
    """COMMAND INFO of all commands and subcommands, by full name."""
    found = {}
    for info in client.ask("COMMAND", "INFO", *[name for name in client.ask("COMMAND", "LIST") if b"|" not in name]):
        for each in [info, *info[9]]:
            found[each[0].decode()] = each
    return found


def docs(client, command):
    """COMMAND DOCS of one command, without what numbers its keys."""
    def cleaned(value):
        if not isinstance(value, list):
            return value
        pairs = list(zip(value[::2], value[1::2]))
        if value and len(value) % 2 == 0 and all(isinstance(word, bytes) for word, _ in pairs):
            return {word: cleaned(each) for word, each in pairs if word not in (b"key_spec_index", b"group", b"module",
                                                                                b"subcommands", b"display_text")}
        return [cleaned(each) for each in value]
    return cleaned(client.ask("COMMAND", "DOCS", command)[1])


class Differences(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.host, cls.server = Host("--enable-module-command", "yes"), Server()
        cls.addClassCleanup(cls.host.stop)
        cls.addClassCleanup(cls.server.stop)

    def setUp(self):
        self.ask = {"server": Connection(self.server).ask, "module": Connection(self.host).ask}
        for ask in self.ask.values():
            self.addCleanup(ask.__self__.close)
            ask("FLUSHALL")
        self.of_server, self.of_host = infos(self.ask["server"].__self__), infos(self.ask["module"].__self__)

    def shared(self):
        """(the server's name, the module's), of the commands that run the same handlers."""
        for name in self.of_server:
            ours = name if name.startswith("lb.") else "lb." + name
            if ours in self.of_host and (ours == name or ours not in self.of_server) and name != "type":
                yield name, ours

    def test_commands_of_the_server_alone(self):
        missing = {name for name in self.of_server if name not in self.of_host and "lb." + name not in self.of_host}
        self.assertEqual(missing - LATER, names(row("Commands the other does not have")[1]))

    def test_commands_of_the_module_alone(self):
        new = {name for name, info in self.of_host.items() if b"module" in info[2] and name.startswith("lb.")
               and name not in self.of_server and name[3:] not in self.of_server}
        self.assertEqual(new | {"lb.type"}, OWN)
        self.assertEqual(names(row("Commands the other does not have")[2]), OWN)

    def test_commands_of_the_host_that_boards_do_not_have(self):
        shown = names(row("`GEOADD`")[0])
        of_sets = {name for name, info in self.of_host.items()
                   if {b"@sortedset", b"@geo"} & set(info[6]) and not name.startswith("lb.")}
        self.assertEqual({name for name in of_sets if "lb." + name not in self.of_host} | {"sort", "sort_ro"}, shown)
        self.assertEqual(shown & set(self.of_server), set())
        self.ask["module"]("ZADD", "daily:1", 7, "ann")
        for words in ["GEOADD", "daily:1", 13, 38, "x"], ["GEOPOS", "daily:1", "ann"], ["SORT", "daily:1"]:
            self.assertIn("WRONGTYPE", str(self.ask["module"](*words)))
        self.assertEqual(self.ask["module"]("GEOADD", "daily:geo", 13, 38, "x"), 1)
        self.assertIn("WRONGTYPE", str(self.ask["module"]("ZADD", "daily:geo", 1, "x")))

    def test_flags_and_keys_of_commands(self):
        found = {}
        for name, ours in self.shared():
            server, module = self.of_server[name], self.of_host[ours]
            for flag in set(server[2]) - set(module[2]):
                found.setdefault(flag.decode(), set()).add(ours)
            for flag in set(module[2]) - set(server[2]) - {b"module"}:
                found.setdefault(flag.decode(), set()).add(ours)
            self.assertIn(b"module", module[2])
            for index in 1, 3, 4, 5, 7, 8:  # arity, where keys are, tips, key specifications
                self.assertEqual(server[index], module[index], (name, index))
        shown = {}  # by flags of one part of the cell
        for part in row("`COMMAND INFO`: flags")[2].split("; ")[1:]:
            shown.update({flag: names(part) for flag in re.findall(r"`([a-z_]+)`", part)})
        self.assertEqual(found, shown)

    def test_arguments_and_options_of_commands(self):
        count = 0
        for name, ours in self.shared():
            if "|" not in name:
                count += 1
                self.assertEqual(docs(self.ask["module"].__self__, ours), docs(self.ask["server"].__self__, name), name)
        self.assertGreater(count, 60)

    def test_settings_of_the_module(self):
        words = re.findall(r"`([a-z-]+)`", re.search(r"; (`layout`.*?) each\s+begin a line", page(), re.S).group(1))
        self.assertEqual(words, ["layout", "board", "default-layout", "once-window", "once-max"])
        other = Host("--enable-module-command", "yes", boards=None)
        self.addCleanup(other.stop)
        ask = Connection(other).ask
        self.addCleanup(ask.__self__.close)
        settings = self.ask["server"]("CONFIG", "GET", "*")[::2]
        self.assertGreater(len(settings), 50)
        for setting in settings:
            if setting.decode() not in words:
                self.assertIsInstance(ask("MODULE", "LOAD", other.module, setting, "1"), redis.RedisError, setting)
        self.assertEqual(other.log.read_text().count("arguments begin with " + ", ".join(words[:-1])),
                         len([setting for setting in settings if setting.decode() not in words]))
        self.assertEqual(ask("MODULE", "LOAD", other.module, "once-window", "100", "once-max", "1000",
                             "default-layout", "default"), b"OK")

    def test_rights_are_the_same(self):
        """Of users with a right to read beside one to write, too."""
        commands = [
            ["ZSCORE", "daily:1", "ann"], ["ZADD", "daily:1", 8, "ann"], ["ZINCRBY", "daily:1", 1, "ann"],
            ["ZPOPMIN", "daily:9"], ["LB.ADD", "daily:1", 1, "x"], ["ZUNIONSTORE", "daily:2", 1, "daily:1"],
            ["LB.SUBMIT", 2, "daily:1", "m:1", 5, "ann"], ["LB.GET", "daily:1", 1, "ann"],
            ["LB.GET", "daily:1", 1, "ann", "DATA", "h:*", "FIELDS", 1, "a"], ["LB.ALTER", "daily:1", "CAP", 50],
            ["LB.ADD", "daily:1", 3, "bob", "HSET", "h:*", 1, "a", "b"], ["LB.CREATE", "daily:3", "FIELD", "p", 20],
            ["LB.WHERE", "ann"], ["LB.WHERE", "ann", "MATCH", "daily:*"], ["LB.BAN", "eve"], ["LB.UNBAN", "eve"],
            ["LB.FORGET", "eve", "MATCH", "daily:*"], ["LB.FORGET", "eve", "DATA", "h:*"], ["LB.LIST", 0],
            ["LB.MOVE", "eve", "kim", "BEST"], ["TYPE", "daily:1"], ["EXISTS", "m:1"], ["LB.ROLL", "daily:2", "m:9"]]
        users = [["~*"], ["~daily:*"], ["%R~daily:*", "%W~daily:*"], ["%R~*", "%W~daily:*"], ["%R~daily:*", "%W~*"],
                 ["%R~*", "%W~*"], ["%R~daily:1", "%W~daily:*", "~h:*"], ["~daily:*", "%R~h:*"],
                 ["~daily:*", "%W~h:*"], ["%R~daily:*", "(%W~daily:* +@all)"], ["%W~daily:*"], []]
        for rights in users:
            replies = {}
            for where, ask in self.ask.items():
                ask("FLUSHALL")
                ask("ZADD", "daily:1", 7, "ann", 5, "kim")
                self.assertEqual(ask("ACL", "SETUSER", "player", "reset", "on", "nopass", "+@all", *rights), b"OK")
                client = Connection(self.server if where == "server" else self.host)
                client.ask("AUTH", "player", "x")
                asked = [(command, client.ask(*command)) for command in commands]
                replies[where] = [(command, "NOPERM" in str(reply)) for command, reply in asked]
                client.close()
            self.assertEqual(replies["server"], replies["module"], rights)
            self.assertEqual(any(denied for _, denied in replies["server"]), rights not in (["~*"], ["%R~*", "%W~*"]))


if __name__ == "__main__":
    unittest.main()
