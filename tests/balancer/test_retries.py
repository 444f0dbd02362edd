"""docs/reference/retries.md: what its table says of commands and of redis-py, and its program, behind a network that loses
answers."""
import re
import threading
import unittest

import redis
from redis.backoff import ExponentialBackoff, NoBackoff
from redis.retry import Retry

import losing
import parts

PAGE = (parts.ROOT / "docs" / "reference" / "retries.md").read_text()


class Losing(losing.Losing):
    """Of the answers to requests with this word, the first ones are lost."""

    def __init__(self, server, word, losses):
        self.word, self.losses = word, losses
        super().__init__(server.port)

    def loses(self, asked):
        is_lost = self.word in asked and self.losses > 0
        self.losses -= is_lost
        return is_lost


class Retries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = parts.Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def setUp(self):
        self.local = self.server.local()
        self.local.flushall()

    def losing(self, word, losses):
        way = Losing(self.server, word, losses)
        self.addCleanup(way.close)
        return way

    def client(self, way, **how):
        return redis.Redis(port=way.port, decode_responses=True, **how)

    def test_what_a_client_repeats_counts_twice(self):
        way = self.losing(b"ZINCRBY", 3)
        client = self.client(way, retry=Retry(NoBackoff(), 10), retry_on_error=[redis.ConnectionError])
        self.assertEqual(client.zincrby("season", 5, "ann"), 20)
        for alone in ({"retry": Retry(NoBackoff(), 0)}, {}):
            way = self.losing(b"ZINCRBY", 1)
            with self.assertRaises(redis.ConnectionError):
                self.client(way, **alone).zincrby("season", 5, "bob")
        self.assertEqual(self.local.zscore("season", "bob"), 10)

    def test_the_table_of_redis_py_is_right(self):
        """Of the version that is here."""
        self.assertIn("| redis-py 4 and 5 |", PAGE)
        if int(redis.__version__.split(".")[0]) not in (4, 5):
            self.fail("say in the page what this version does")
        for how in ({"retry": Retry(NoBackoff(), 5)},
                    {"retry": Retry(NoBackoff(), 5), "retry_on_error": [ConnectionError]}):  # Python's own
            with self.assertRaises(redis.ConnectionError):
                self.client(self.losing(b"ZADD", 1), **how).zadd("week", {"ann": 1})
        again = Retry(ExponentialBackoff(cap=1, base=0.01), 3, (redis.ConnectionError,))
        with self.assertRaises(redis.TimeoutError):  # not repeated
            again.call_with_retry(self.time_out, lambda error: None)
        with self.assertRaises(redis.TimeoutError):  # repeated
            Retry(NoBackoff(), 3).call_with_retry(self.time_out, lambda error: None)
        self.assertEqual(self.timed_out, 1 + 4)

    timed_out = 0

    def time_out(self):
        self.timed_out += 1
        raise redis.TimeoutError

    def test_the_pages_program_counts_once(self):
        program = re.search(r"```python\n(.*?)```", PAGE, re.S).group(1)
        for word, losses in ((b"EXEC", 1), (b"EXEC", 3), (b"WATCH", 2), (b"EXISTS", 2)):
            self.local.flushall()
            way = self.losing(word, losses)
            names = {}
            exec(program.replace("port=6379", f"port={way.port}"), names)  # the page's own change
            self.assertEqual(way.losses, max(0, losses - 1) if word == b"EXEC" else 0)
            self.assertEqual(self.local.zscore("season", "ann"), 5)
            names["count_once"]("match:4711", "season", 5, "ann")
            self.assertEqual(self.local.zscore("season", "ann"), 5)
            names["count_once"]("match:4712", "season", 5, "ann")
            self.assertEqual(self.local.zscore("season", "ann"), 10)
            self.assertGreater(self.local.ttl("counted:match:4711"), 80000)

    def test_tries_that_meet_count_once(self):
        program = re.search(r"```python\n(.*?)```", PAGE, re.S).group(1)
        program = program[:program.rindex("count_once(")].replace("port=6379", f"port={self.server.port}")
        names = {}
        exec(program, names)
        tries = [threading.Thread(target=names["count_once"], args=(f"match:{n % 20}", "season", 1, "ann"))
                 for n in range(200)]
        for each in tries:
            each.start()
        for each in tries:
            each.join()
        self.assertEqual(self.local.zscore("season", "ann"), 20)


if __name__ == "__main__":
    unittest.main()
