"""docs/operate/upgrade.md: servers that are restarted one after the other, with a hand-over between them, keep the
roles that they were given."""
import unittest

import redis

import parts


class Rolling(unittest.TestCase):
    def start(self, text):
        path = parts.new_directory() / "leaderboard.conf"
        path.write_text(text)
        server = parts.Server(config=path)
        self.addCleanup(server.stop)
        return server

    def restart(self, server):
        server.stop()
        server.start()

    def role(self, server):
        return server.local().info("replication")["role"]

    def test_the_old_master_comes_back_as_a_replica(self):
        for is_rewritten in (True, False):
            first = self.start("appendonly yes\n")
            second = self.start(f"appendonly yes\nreplicaof 127.0.0.1 {first.port}\n")
            first.local().zadd("week", {"ann": 120})
            first.local().wait(1, 60000)
            self.restart(second)
            parts.wait_until(lambda: second.local().info("replication")["master_link_status"] == "up", "the link")
            first.local().execute_command("FAILOVER", "TO", "127.0.0.1", second.port, "TIMEOUT", 60000)
            parts.wait_until(lambda: self.role(second) == "master" and self.role(first) == "slave", "the hand-over")
            for server in (first, second):
                if is_rewritten:
                    server.local().config_rewrite()
            second.local().zadd("week", {"bob": 90})
            self.restart(first)
            self.assertEqual(self.role(first), "slave" if is_rewritten else "master")  # as the page says
            if is_rewritten:
                parts.wait_until(lambda: first.local().zcard("week") == 2, "the member")
                with self.assertRaises(redis.ReadOnlyError):
                    first.local().zadd("week", {"cy": 1})
            self.restart(second)
            self.assertEqual(self.role(second), "master" if is_rewritten else "slave")


if __name__ == "__main__":
    unittest.main()
