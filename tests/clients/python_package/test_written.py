"""What docs/write makes of leaderboard-server --describe."""
import ast
import json
import subprocess
import sys
import unittest
from dataclasses import fields

import process
from leaderboard_client.events import MEMBERS, Event
from leaderboard_client.parse import as_dict
from leaderboard_client.words import decode

WRITE = process.ROOT / "docs/write"
CLIENT = process.ROOT / "clients/python/leaderboard_client"


def described():
    return json.loads(subprocess.run([process.PROGRAM, "--describe"], stdout=subprocess.PIPE, check=True).stdout)


def names(arguments):
    return [(decode(each["name"]), names(map(as_dict, each.get("arguments", [])))) for each in arguments]


class Written(unittest.TestCase):
    def test_pages_and_clients_are_as_the_tables_say(self):
        for part in ("pages", "clients"):
            done = subprocess.run([sys.executable, WRITE, "--check", process.PROGRAM, part], stderr=subprocess.PIPE,
                                  text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_is_described_is_what_command_docs_says(self):
        server = process.Server()
        self.addCleanup(server.stop)
        with server.connect() as client:
            docs = as_dict(client.ask("COMMAND", "DOCS"))
        commands = {each["name"].lower(): each for each in described()["commands"] if "container" not in each}
        for name, each in docs.items():
            each, command = as_dict(each), commands.pop(name)
            self.assertEqual(decode(each["summary"]), command["summary"])
            self.assertEqual(decode(each["group"]), command["group"])
            self.assertEqual(names(map(as_dict, each.get("arguments", []))), names(command["arguments"]), name)
        self.assertEqual(commands, {})

    def test_every_option_of_a_board_is_a_word_of_its_commands(self):
        tables = described()

        def tokens(arguments):
            return {each["token"] for each in arguments if "token" in each}.union(
                *(tokens(each.get("arguments", [])) for each in arguments))

        taken = {f"{each.get('container', '')} {each['name']}".strip(): tokens(each["arguments"])
                 for each in tables["commands"]}
        self.assertGreater(len(tables["options"]), 20)
        for option in tables["options"]:
            commands = ["LB.LEAGUE CREATE"] if option["is_of_league"] else \
                ["LB.ALTER"] if option["word"] == "THAW" else ["LB.CREATE", "LB.ALTER"]
            for command in commands:
                self.assertLessEqual({option["word"], *option["words"]}, taken[command], command)
            if "minimum" in option:
                self.assertLess(option["minimum"], option["maximum"])
        words = {option["word"]: option for option in tables["options"]}
        for word in ("KEEP", "SETTLE", "PERIOD", "EVERY", "ON", "AT", "FROM", "TZ", "ARCHIVE", "ARCHIVED"):
            self.assertLessEqual({word, *words[word]["words"]}, taken["LB.LEAGUE CREATE"])

    def test_every_setting_and_every_line_of_info_is_described(self):
        tables = described()
        server = process.Server()
        self.addCleanup(server.stop)
        with server.connect() as client:
            settings = {decode(name) for name in client.ask("CONFIG", "GET", "*")[::2]}
            info = decode(client.ask("INFO", "everything"))
        described_names = {name for each in tables["settings"] for name in (each["name"], *each["aliases"])}
        self.assertEqual(settings - described_names, set())
        figures = {each.get("info") for each in tables["figures"]}
        sections = info.split("# ")
        lines = [line.partition(":")[0] for each in sections if each.startswith(("Clients", "Stats", "Memory"))
                 for line in each.splitlines()[1:] if line]
        constants = {"cluster_connections", "maxmemory_policy", "mem_not_counted_for_evict",
                     "active_defrag_running", "expired_time_cap_reached_count", "evicted_keys", "latest_fork_usec",
                     "total_forks", "unexpected_error_replies"}
        self.assertEqual({name.replace("_human", "") for name in lines} - figures, constants)

    def test_what_every_event_says_has_a_place(self):
        said = {each.partition(":")[0] for row in described()["channels"] for message in row["messages"].split("|")
                if message[0] != "[" for each in message.split()[1:]}
        self.assertEqual({MEMBERS.get(each, each) for each in said} - {each.name for each in fields(Event)}, set())
        self.assertGreater(len(said), 5)

    def test_the_half_without_asyncio_has_nothing_of_it(self):
        for name in ("commands", "board", "player", "senders"):
            text = (CLIENT / f"{name}.py").read_text(encoding="utf-8")
            kinds = {type(node) for node in ast.walk(ast.parse(text))}
            self.assertFalse(kinds & {ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith}, name)
            self.assertNotIn("asyncio", text)
            self.assertNotIn("Async", text)
            halves = [dict.fromkeys(node.name for node in ast.walk(ast.parse(source))
                                    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))
                      for source in (text, (CLIENT / f"async_{name}.py").read_text(encoding="utf-8"))]
            only_one = set(halves[0]) ^ set(halves[1])
            self.assertLessEqual({each for each in only_one if not each.startswith("__")}, set(), name)
