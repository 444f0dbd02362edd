"""The chooser, the pages as a whole, and those that move no scores."""
import re
import subprocess
import unittest

import page
import process
from moving import Moving

DEFAULT = "FIELD score 33 SIGNED TIME 31 S"


class Pages(unittest.TestCase):
    def setUp(self):
        self.pages = page.read()
        lines = self.pages[page.CHOOSER].lines
        rows = [line.strip("|").split(" | ") for line in lines if line.startswith("| ")]
        self.packings = [[cell.strip() for cell in cells] for cells in rows if len(cells) == 4][1:]

    def target(self, cell):
        return re.search(r"\]\((.*)\.md\)", cell)[1]

    def test_the_chooser_leads_to_every_page_with_a_board_for_a_packing(self):
        targets = [self.target(cells[0]) for cells in self.packings]
        self.assertEqual(len(targets), 15)
        self.assertEqual(len(targets), len(set(targets)))
        with_boards = {name for name, one in self.pages.items() if one.layouts() and not one.has_clock()}
        self.assertEqual(set(targets), with_boards)

    def test_the_chooser_leads_to_every_page(self):
        text = "\n".join(self.pages[page.CHOOSER].lines)
        for name in self.pages.keys() - {page.CHOOSER}:
            self.assertIn(f"]({name}.md)", text)

    def test_the_chooser_has_the_layouts_of_the_pages(self):
        for cells in self.packings:
            layout = re.match("`([^`]*)`", cells[1])
            self.assertEqual(self.pages[self.target(cells[0])].layouts()[0], layout[1] if layout else DEFAULT)

    def test_tables_of_pages_with_a_clock_have_commands_that_are_replayed(self):
        clocked = [one for one in self.pages.values() if one.has_clock()]
        self.assertGreaterEqual(len(clocked), 2)
        for one in clocked:
            typed = {line[2:].split("   ")[0] for line in one.lines if line.startswith("> ")}
            cells = [line.strip("| ").split(" | ")[-1] for line in one.lines if line.startswith("| ")]
            commands = {cell.strip("`") for cell in cells if re.fullmatch("`(LB|Z[A-Z]+).* .*`", cell)}
            self.assertTrue(commands, one.name)
            self.assertLessEqual(commands, typed, one.name)

    def test_what_a_redis_conf_is_told(self):
        """The page's file, its command, and what that prints."""
        conf = Moving.pages["redis-conf"]
        directory = process.new_directory()
        (directory / "redis.conf").write_text(conf.block("conf", 0))
        command = conf.block("sh", 0).split()
        self.assertEqual(command[0], "leaderboard-server")
        done = subprocess.run([process.PROGRAM, *command[1:]], cwd=directory, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        self.assertEqual(done.stdout, conf.block("text", 0))
        self.assertNotEqual(done.returncode, 0)
        self.check_columns(conf, directory / "one.conf")

    def check_columns(self, conf, path):
        """What is said of a setting is that of its column."""
        rows = [line.strip("|").split(" | ") for line in conf.lines if line.startswith("| `")]
        for column, is_right in enumerate((self.is_known, self.is_ignored, self.is_refused)):
            for row in rows:
                for line in re.findall("`([^`]*)`", re.split("[:：]", row[column])[0]):
                    path.write_text(line + (" x" if " " not in line else "") + "\n")
                    done = subprocess.run([process.PROGRAM, "--check-config", path], text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                    self.assertTrue(is_right(line.split(" ")[0], done), f"{line}: {done.stdout}")

    def is_known(self, _, done):
        """x may be a bad value."""
        return "ignored" not in done.stdout and "unknown setting" not in done.stdout

    def is_ignored(self, name, done):
        return re.search(r": ignored \(.*\): " + name + "$", done.stdout, re.M) and done.returncode == 0

    def is_refused(self, name, done):
        return f":1: {name}: " in done.stdout and "ignored" not in done.stdout and done.returncode != 0

    def test_every_setting_of_this_redis_is_used_or_ignored_as_it_is_there(self):
        """Its CONFIG GET as a redis.conf: defaults, but for those that the test started it with."""
        directory = process.new_directory()
        values = Moving.redis_server.client().config_get("*")
        # Several words; of "bind" Redis 6 replies nothing where it listens to all.
        words = ("bind", "save", "client-output-buffer-limit", "oom-score-adj-values", "slaveof", "replicaof")
        lines = [f'{name} {value}' if name in words else f'{name} "{value}"' for name, value in values.items()
                 if (value or name not in words) and not (name == "log-format" and value == "legacy")]
        self.assertGreater(len(lines), 140)
        (directory / "redis.conf").write_text("\n".join(lines) + "\n")
        done = subprocess.run([process.PROGRAM, "--check-config", "redis.conf"], cwd=directory, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertIn("redis.conf: no errors", done.stdout)
        self.assertEqual(done.returncode, 0)
