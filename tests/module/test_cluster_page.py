"""What docs/reference/module.md shows is what the module answers."""
import re
import unittest

import redis

from hosts import ROOT, Host


def text(reply):
    if isinstance(reply, list):
        return "[" + " ".join(map(text, reply)) + "]"
    return "nil" if reply is None else str(reply)


class ClusterPage(unittest.TestCase):
    def test_examples(self):
        page = (ROOT / "docs" / "reference" / "module.md").read_text()
        words = re.search(r"^loadmodule \S+ (.*)$", page, re.M).group(1).split()
        host = Host(boards=words)
        self.addCleanup(host.stop)
        connection = redis.Connection(port=host.port, decode_responses=True)
        examples = re.findall(r"^> (.*)\n(.*)$", "".join(
            body for kind, body in re.findall(r"^```(\w*)\n(.*?)^```$", page, re.M | re.S)
            if kind == "redis"), re.M)
        self.assertGreater(len(examples), 6)
        for line, expected in examples:
            connection.send_command(*line.split())
            self.assertEqual(text(connection.read_response()), expected, line)

    def test_commands_are_those_of_the_page(self):
        page = (ROOT / "docs" / "reference" / "module.md").read_text()
        host = Host()
        self.addCleanup(host.stop)
        connection = redis.Connection(port=host.port, decode_responses=True)
        connection.send_command("COMMAND", "LIST", "FILTERBY", "MODULE", "leaderboard")
        names = {name.upper() for name in connection.read_response()}
        for name in re.findall(r"LB\.[A-Z]+", page.split("## Commands")[1].split("## One player")[0]):
            self.assertIn(name, names)
        missing = page.split("## Differences")[1].split(" | yes | no")[0]
        for name in re.findall(r"LB\.[A-Z]+", missing):
            self.assertNotIn(name, names)


if __name__ == "__main__":
    unittest.main()
