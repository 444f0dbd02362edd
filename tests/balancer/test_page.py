"""docs/operate/behind-a-balancer.md: its transcripts are run, its settings are started with, and what it shows of
HAProxy's configuration stands in deploy/haproxy.cfg."""
import os
import re
import subprocess
import unittest

import parts

PAGE = (parts.ROOT / "docs" / "operate" / "behind-a-balancer.md").read_text()
LANGUAGES = {"console": 4, "conf": 2, "haproxy": 2}


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.S | re.M)


class Page(unittest.TestCase):
    def test_every_block_is_of_a_kind_that_is_tested(self):
        self.assertEqual(len(re.findall("^```", PAGE, re.M)), 2 * sum(LANGUAGES.values()))
        for language, count in LANGUAGES.items():
            self.assertEqual(len(blocks(language)), count, language)

    def test_what_it_shows_of_haproxy_is_the_configuration(self):
        text = (parts.ROOT / "deploy" / "haproxy.cfg").read_text()
        for block in blocks("haproxy"):
            self.assertIn(block, text)

    def start(self, block):
        path = parts.new_directory() / "leaderboard.conf"
        path.write_text(block)
        return parts.Server(config=path, bind=None)

    def test_a_server_starts_with_its_settings(self):
        for block in blocks("conf"):
            self.start(block).stop()

    def test_its_transcripts_are_replayed(self):
        server = self.start(blocks("conf")[0])
        haproxy = parts.Haproxy(server)
        tools = parts.new_directory()
        (tools / "leaderboard-server").symlink_to(parts.PROGRAM)
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        for block in blocks("console"):
            for step in re.split(r"^\$ ", block, flags=re.M)[1:]:
                command, wanted = step.split("\n", 1)
                command = command.replace("redis-cli", "redis-cli -p 6379")
                # In one step with its shell, each at HAProxy's port.
                command = re.sub(r"\b6379\b", str(haproxy.port), command)
                found = subprocess.run(["bash", "-c", command], env=environment, text=True,
                                       capture_output=True, timeout=parts.LIMIT_S, check=False)
                output = re.sub(rf"\b{haproxy.port}\b", "6379", found.stdout + found.stderr)
                self.assertEqual(output.strip("\n"), wanted.strip("\n"), command)
        haproxy.stop()
        server.stop()
