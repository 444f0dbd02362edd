"""A client of either protocol that tells what it is pushed from what it is replied."""
import socket

import resp


class Push(list):
    """A RESP3 push."""


class Speaker:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.file = self.socket.makefile("rb")
        self.protocol, self.is_subscriber = 2, False
        self.id = self.ask("CLIENT", "ID")
        self.pushed = []

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, *words):
        self.socket.sendall(resp.encode(words))

    def read(self):
        line = self.file.readline()
        assert line, "the server has closed the connection"
        kind, text = line[:1], line[1:-2]
        if kind == b"$":
            size = int(text)
            return self.file.read(size + 2)[:-2].decode() if size >= 0 else None
        if kind in b"*~>":
            items = [self.read() for _ in range(int(text))]
            return Push(items) if kind == b">" else items
        if kind == b"%":
            return {self.read(): self.read() for _ in range(int(text))}
        if kind == b"-":
            return resp.Error(text.decode())
        if kind == b"_":
            return None
        return int(text) if kind == b":" else text.decode()

    def is_pushed(self, item):
        return isinstance(item, Push) or (self.protocol == 2 and isinstance(item, list) and item[:1] == ["message"])

    def ask(self, *words):
        """The reply. What was pushed before it goes to self.pushed."""
        self.send(*words)
        return self.reply()

    def reply(self):
        while self.is_pushed(item := self.read()):
            self.pushed.append(item)
        return item

    def take(self):
        """All that the server had pushed when it was sent the PING that is to come before."""
        pong = self.reply()
        assert pong in ("PONG", ["pong", ""]), pong
        pushed, self.pushed = self.pushed, []
        return pushed

    def hello(self, protocol):
        answer = self.ask("HELLO", protocol)
        assert not isinstance(answer, resp.Error), answer
        self.protocol = protocol

    def subscribe(self):
        self.send("SUBSCRIBE", "__redis__:invalidate")
        while "subscribe" not in (item := self.read()):
            self.pushed.append(item)
        self.is_subscriber = True
