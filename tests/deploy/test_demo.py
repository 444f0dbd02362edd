"""make demo, as a newcomer sees it: three lines, and the contest in the browser where there is one."""
import os
import signal
import subprocess
import unittest
import urllib.request

from process import LIMIT_S, PROGRAM, ROOT, end_with_the_test, hold_port, let_port_go, new_directory, wait_until


class Demo(unittest.TestCase):
    def demo(self, **display):
        """(what it printed, what it had opened) while the contest went on."""
        directory = new_directory()
        opener = directory / "xdg-open"
        opener.write_text(f'#!/bin/sh\necho "$*" >>{directory}/opened\necho noise\n')
        opener.chmod(0o755)
        port = hold_port()
        let_port_go(port)
        environment = {name: value for name, value in os.environ.items() if not name.endswith("DISPLAY")}
        process = subprocess.Popen([ROOT / "deploy/demo", PROGRAM, str(port)], text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, preexec_fn=end_with_the_test,
                                   env={**environment, **display, "PATH": f"{directory}:{environment['PATH']}"})
        self.addCleanup(process.kill)
        lines = [process.stdout.readline(), process.stdout.readline()]
        page = lines[0].split()[-1]
        self.assertRegex(page, r"^http://127\.0\.0\.1:\d+/boards/contest$")
        with urllib.request.urlopen(page, timeout=LIMIT_S) as answer:
            self.assertIn(b"<html", answer.read())
        if display:
            wait_until(lambda: (directory / "opened").exists(), "the browser")
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=LIMIT_S)
        self.assertEqual(process.returncode, 0)
        opened = directory / "opened"
        return lines + rest.splitlines(), page, opened.read_text() if opened.exists() else ""

    def test_it_says_two_lines_and_opens_the_page_on_a_desktop(self):
        for display in ({"DISPLAY": ":9"}, {"WAYLAND_DISPLAY": "wayland-9"}):
            lines, page, opened = self.demo(**display)
            self.assertEqual(len(lines), 2, lines)
            self.assertEqual(opened, page + "\n")
            self.assertRegex(lines[1], r"redis-cli -p \d+ LB\.ADD contest INCR 100 0 p007 ")

    def test_without_a_desktop_nothing_is_opened(self):
        lines, _, opened = self.demo()
        self.assertEqual((len(lines), opened), (2, ""))

    def test_the_compiler_is_not_heard(self):
        """One line says that it is at work, where there is no server yet; errors are heard."""
        words = ["make", "--dry-run", "demo", f"B={new_directory()}", "COMMIT=none"]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=True,
                              env={name: value for name, value in os.environ.items()
                                   if not name.startswith(("MAKE", "MFLAGS"))})
        own = [line for line in done.stdout.splitlines() if not line.startswith("make[")]
        self.assertIn("Building the server", own[1])
        self.assertRegex(own[2], r"leaderboard-server >/dev/null$")


if __name__ == "__main__":
    unittest.main()
