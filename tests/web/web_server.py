"""A leaderboard-server with its page, and the boards that the tests look at."""
from urllib.parse import quote_from_bytes

import redis

import process
from process import PROGRAM, ROOT, end_with_the_test, hold_port, let_port_go  # noqa: F401


class WebServer(process.Server):
    def __init__(self, *words, password=None, **options):
        self.web_port = hold_port()
        let_port_go(self.web_port)  # libmicrohttpd binds alone
        super().__init__("--web-port", self.web_port, *(["--requirepass", password] if password else []), *words,
                         password=password, **options)

    def start(self):
        super().start()
        self.client = redis.Redis(port=self.port, password=self.password)
        self.client.response_callbacks.clear()

    def run(self, *words):
        return self.client.execute_command(*words)

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.web_port}{path}"

    def board_url(self, board, query=""):
        name = board if isinstance(board, bytes) else board.encode()
        return self.url(f"/boards/{quote_from_bytes(name, safe='')}{'?' if query else ''}{query}")


def encoded(name):
    return quote_from_bytes(name if isinstance(name, bytes) else name.encode(), safe="")
