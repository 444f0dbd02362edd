"""A connection without a client library."""
import select
import socket

import redis

from resp import encode


class Connection:
    """Raw: what is sent is bytes, errors are values, and every reply is read to its last byte."""

    def __init__(self, host, protocol=2):
        self.socket = socket.create_connection(("127.0.0.1", host.port), timeout=60)
        self.input = self.socket.makefile("rb")
        if protocol == 3:
            assert isinstance(self.ask("HELLO", "3"), list)

    def send(self, *words):
        self.socket.sendall(encode(words))

    def read(self):
        line = self.input.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError(f"the connection ended: {line}")
        kind, rest = line[:1], line[1:-2]
        if kind in b"$=" and rest != b"-1":
            text = self.input.read(int(rest) + 2)
            assert text.endswith(b"\r\n") and len(text) == int(rest) + 2, (line, text)
            return text[:-2]
        if kind in b"*~>" and rest != b"-1":
            return [self.read() for _ in range(int(rest))]
        if kind == b"%":
            return [self.read() for _ in range(2 * int(rest))]
        if kind == b"-":
            return redis.ResponseError(rest.decode(errors="replace"))
        assert kind in b"+:,#_($*", line
        return int(rest) if kind == b":" else rest

    def ask(self, *words):
        self.send(*words)
        return self.read()

    def has_reply(self):
        return bool(select.select([self.socket], [], [], 0)[0])

    def close(self):
        self.input.close()
        self.socket.close()
