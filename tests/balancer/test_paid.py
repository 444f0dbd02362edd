"""docs/cookbook/payout.md: its worker, killed at every step, and with it the server, pays each reward exactly once."""
import re
import sqlite3
import subprocess
import sys
import unittest

import parts

PAGE = (parts.ROOT / "docs" / "cookbook" / "payout.md").read_text()
COINS = {"ann": 500, "bob": 300, "cid": 100}
# Runs the page's program, and kills itself when so many of its lines have begun; 0: never.
RUN = """
import os, signal, sys
left = int(sys.argv[1])
def trace(frame, event, arg):
    global left
    if frame.f_code.co_filename != "worker":
        return None
    if event in ("line", "return"):
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return trace
code = compile(sys.stdin.read(), "worker", "exec")
sys.settrace(trace if left > 0 else None)
exec(code, {"__name__": "__main__"})
"""


class Paid(unittest.TestCase):
    def setUp(self):
        self.server = parts.Server("--appendonly", "yes", "--appendfsync", "always")
        self.addCleanup(self.server.stop)
        self.directory = parts.new_directory()
        program = re.search(r"```python\n(import sqlite3\n.*?)```", PAGE, re.S).group(1)
        self.program = program.replace("port=6379", f"port={self.server.port}")
        self.archives = []

    def end_period(self):
        """Four players on a board, whose archive is frozen as those of periods are."""
        client, number = self.server.local(), len(self.archives)
        board, archive = f"weekly:{number}", f"weekly:{number}@end"
        client.execute_command("LB.CREATE", board, "SETTLE", "YES")
        client.zadd(board, {"ann": 9, "bob": 8, "cid": 7, "dan": 6})
        client.execute_command("LB.ROLL", board, archive, "EX", 100000)
        client.execute_command("LB.ALTER", archive, "FREEZE")
        self.archives.append(archive)

    def work(self, steps=0):
        """false: it was killed."""
        ended = subprocess.run([sys.executable, "-c", RUN, str(steps)], input=self.program, text=True, cwd=self.directory,
                               capture_output=True, timeout=parts.LIMIT_S)
        self.assertIn(ended.returncode, (0, -9), ended.stderr)
        return ended.returncode == 0

    def payments(self):
        ledger = sqlite3.connect(self.directory / "ledger.db")
        self.addCleanup(ledger.close)
        return ledger.execute("SELECT id, member, coins FROM payments ORDER BY id").fetchall()

    def check(self):
        """Everybody has been paid once, and nothing is left to do."""
        wanted = sorted((archive, place, member, coins) for archive in self.archives
                        for place, (member, coins) in enumerate(COINS.items()))
        paid = sorted((key.rsplit("/", 2)[0], int(key.rsplit("/", 2)[2]), member, coins)
                      for key, member, coins in self.payments())
        self.assertEqual(paid, wanted)
        client = self.server.local()
        self.assertEqual(client.execute_command("LB.LIST", "UNSETTLED"), ["0", []])
        for archive in self.archives:
            self.assertGreater(client.ttl(archive), 0)

    def test_killed_at_every_step(self):
        steps, is_whole = 0, False
        while not is_whole:
            self.end_period()
            steps += 1
            is_whole = self.work(steps)
            self.assertTrue(is_whole or self.work())
            self.check()
        self.assertGreater(steps, 40)

    def test_killed_together_with_the_server(self):
        for steps in range(20, 65, 4):
            self.end_period()
            self.end_period()
            self.work(steps)
            self.server.kill()
            self.server.start()
            self.assertTrue(self.work())
            self.check()

    def test_several_at_once(self):
        for _ in range(20):
            self.end_period()
        workers = [subprocess.Popen([sys.executable, "-c", RUN, "0"], stdin=subprocess.PIPE, text=True, cwd=self.directory)
                   for _ in range(3)]
        for worker in workers:
            worker.stdin.write(self.program)
            worker.stdin.close()
        for worker in workers:
            self.assertEqual(worker.wait(parts.LIMIT_S), 0)
        self.check()


if __name__ == "__main__":
    unittest.main()
