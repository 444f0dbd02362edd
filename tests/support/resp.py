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


class Replies:
    """Bytes come in as they arrive, whole replies go out. Nothing is read twice: arrays that have
    begun wait in open_arrays, as (how many items are lacking, the items)."""

    def __init__(self):
        self.data = b""
        self.open_arrays = []

    def feed(self, data):
        """The replies that are whole now."""
        data = self.data + data if self.data else data
        size, at, whole, stack = len(data), 0, [], self.open_arrays
        while True:
            end = data.find(b"\r\n", at)
            if end < 0:
                break
            kind, item, after = data[at], None, end + 2
            if kind == 58:  # :
                item = int(data[at + 1:end])
            elif kind == 36:  # $
                length = int(data[at + 1:end])
                if length >= 0:
                    after = end + 4 + length
                    if size < after:
                        break
                    item = data[end + 2:after - 2]
            elif kind == 42:  # *
                count = int(data[at + 1:end])
                if count > 0:
                    stack.append([count, []])
                    at = after
                    continue
                item = [] if count == 0 else None
            elif kind == 43:  # +
                item = data[at + 1:end]
            elif kind == 45:  # -
                item = Error(data[at + 1:end].decode("utf-8", "replace"))
            else:
                raise ValueError(f"no reply begins so: {data[at:at + 50]!r}")
            at = after
            while stack:
                array = stack[-1]
                array[1].append(item)
                array[0] -= 1
                if array[0] > 0:
                    break
                item = stack.pop()[1]
            else:
                whole.append(item)
        self.data = data[at:]
        return whole


class Client:
    """A blocking connection. port: or the path of a unix socket."""

    def __init__(self, port, timeout_s=60.0, host="127.0.0.1"):
        if isinstance(port, int):
            self.socket = socket.create_connection((host, port), timeout_s)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(timeout_s)
            self.socket.connect(str(port))
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
