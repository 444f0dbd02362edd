"""No figure is looked at: times are not a test's."""
import contextlib
import io
import unittest

import long_commands
import process
import servers

MEMBERS = 3000
servers.free_port, servers.START_LIMIT_S = process.hold_port, process.LIMIT_S


class Rows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.lab = long_commands.Lab(process.PROGRAM, MEMBERS, process.new_directory(), quiet_looks=0)
        cls.addClassCleanup(cls.lab.stop)
        cls.lab.load()

    def test_every_command_has_a_row_and_every_row_a_command(self):
        self.assertEqual(long_commands.incomplete(self.lab), [])

    def test_every_row_runs(self):
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            found, failed = long_commands.measure(self.lab, 1, None)
        self.assertEqual(failed, [], told.getvalue())
        self.assertEqual(len(found), len(long_commands.ROWS))
        for figures in found:
            self.assertGreaterEqual(len(long_commands.line_of(figures)), 5)


class Page(unittest.TestCase):
    def test_the_page_has_every_row(self):
        page = long_commands.PAGE.read_text(encoding="utf-8").partition(f"\n{long_commands.HEADING}\n")[2]
        lines = [line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if line.startswith("| ")]
        missing = [row.shown() for row in long_commands.ROWS if row.shown() not in lines]
        self.assertEqual(missing, [], "bench/long_commands.py --write measures them")
