"""RESP2 as a client needs it: requests to bytes, bytes to replies.

A reply is an int, bytes (simple and bulk strings), None, a list, or an Error."""
import socket


class Error:
    """An error reply: text without the minus sign."""
    __slots__ = ("text",)

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return f"Error({self.text!r})"

    def __eq__(self, other):
        return isinstance(other, Error) and other.text == self.text


def encode(words):
    """The bytes of one request; words are str, bytes or int."""
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        if not isinstance(word, bytes):
            word = str(word).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(word), word))
    return b"".join(parts)


class Incomplete(Exception):
    """The reply goes on behind the bytes that are there."""


def parse(data, at):
    """The reply at data[at:], and where the next one begins. Raises Incomplete."""
    end = data.find(b"\r\n", at)
    if end < 0:
        raise Incomplete
    kind = data[at]
    line = data[at + 1:end]
    at = end + 2
    if kind == 58:  # :
        return int(line), at
    if kind == 36:  # $
        size = int(line)
        if size < 0:
            return None, at
        end = at + size
        if len(data) < end + 2:
            raise Incomplete
        return bytes(data[at:end]), end + 2
    if kind == 42:  # *
        count = int(line)
        if count < 0:
            return None, at
        items = []
        for _ in range(count):
            item, at = parse(data, at)
            items.append(item)
        return items, at
    if kind == 43:  # +
        return bytes(line), at
    if kind == 45:  # -
        return Error(line.decode("utf-8", "replace")), at
    raise ValueError(f"no reply begins so: {bytes(data[at - 2:at + 50])!r}")


class Replies:
    """Bytes come in as they arrive, whole replies go out."""

    def __init__(self):
        self.data = b""

    def feed(self, data):
        """The replies that are whole now."""
        self.data += data
        replies, at = [], 0
        try:
            while at < len(self.data):
                reply, at = parse(self.data, at)
                replies.append(reply)
        except Incomplete:
            pass
        self.data = self.data[at:]
        return replies


class Client:
    """A blocking connection, for what is asked beside the load."""

    def __init__(self, port, timeout_s=20.0):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = Replies()
        self.waiting = []

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, requests):
        """Send without waiting for the replies."""
        self.socket.sendall(b"".join(map(encode, requests)))

    def receive(self):
        """The next reply. ConnectionError when the server is gone before it has come."""
        while not self.waiting:
            data = self.socket.recv(1 << 18)
            if not data:
                raise ConnectionResetError("the server closed the connection")
            self.waiting = self.replies.feed(data)
        return self.waiting.pop(0)

    def ask(self, *words):
        """One request, one reply."""
        self.send([words])
        return self.receive()

    def ask_all(self, requests, at_once=200):
        """Replies to many requests, pipelined."""
        replies = []
        for first in range(0, len(requests), at_once):
            part = requests[first:first + at_once]
            self.send(part)
            while len(replies) < first + len(part):
                replies.append(self.receive())
        return replies
