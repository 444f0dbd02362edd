"""A client that speaks RESP3, as newer versions of redis-py do, with their execute_command."""
import socket

import redis

import resp


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.file = self.socket.makefile("rb")
        self.execute_command("HELLO", 3)

    def close(self):
        self.file.close()
        self.socket.close()

    def execute_command(self, *words):
        self.socket.sendall(resp.encode(words))
        return self.read()

    def read(self):
        line = self.file.readline()
        kind, text = line[:1], line[1:-2]
        if kind in b":(":
            return int(text)
        if kind == b",":
            return float(text)
        if kind == b"#":
            return text == b"t"
        if kind == b"$":
            return self.file.read(int(text) + 2)[:-2]
        if kind == b"%":
            return {self.read(): self.read() for _ in range(int(text))}
        if kind in b"*~>":
            return [self.read() for _ in range(int(text))]
        if kind == b"-":
            raise redis.ResponseError(text.decode())
        return None if kind == b"_" else text
