"""docs/cookbook/count-once.md: the program that sends results again, behind a network that loses answers."""
import re
import threading
import unittest

import parts
from test_retries import Losing

PAGE = (parts.ROOT / "docs" / "cookbook" / "count-once.md").read_text()
PROGRAM = re.search(r"```python\n(.*?)```", PAGE, re.S).group(1)


class Once(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = parts.Server()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_every_result_counts_once(self):
        local = self.server.local()
        for losses in range(4):
            board = f"season{losses}"
            way, names = Losing(self.server, b"LB.ADD", losses), {}
            self.addCleanup(way.close)
            exec(PROGRAM.replace("port=6379", f"port={way.port}").replace('"season"', f'"{board}"'), names)
            self.assertEqual(way.losses, 0)
            self.assertEqual(local.zscore(board, "ann"), 25)
            self.assertEqual(names["count_once"]("match:4711:ann", board, 25, "ann"), 0)
            way.losses = losses
            self.assertEqual(names["count_once"]("match:4712:ann", board, 5, "ann"), int(losses == 0))
            self.assertEqual(local.zscore(board, "ann"), 30)

    def test_tries_that_meet_count_once(self):
        names = {}
        exec(PROGRAM.replace("port=6379", f"port={self.server.port}"), names)
        answers = []
        tries = [threading.Thread(target=lambda n=n: answers.append(
            names["count_once"](f"match:{n % 20}", "met", 1, "ann"))) for n in range(200)]
        for each in tries:
            each.start()
        for each in tries:
            each.join()
        self.assertEqual((self.server.local().zscore("met", "ann"), sum(answers)), (20, 20))


if __name__ == "__main__":
    unittest.main()
