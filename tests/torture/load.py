"""The load: every player on a connection of its own, pipelined, as fast as one process can."""
import select
import socket
import time

import resp

BATCH_MAX = 32
FAULTS_MAX = 20


class Link:
    """A player's connection: what has been sent and not yet answered."""

    def __init__(self, player, port):
        self.player = player
        self.socket = socket.create_connection(("127.0.0.1", port), 20)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = resp.Replies()
        self.waiting = []
        self.answered = 0  # replies to waiting[0] that have come

    def send_batch(self):
        """Some commands at once. They count as sent from before the first byte goes."""
        count = self.player.random.choice((1, 1, 2, 4, 8, 16, BATCH_MAX))
        commands = [self.player.next_command() for _ in range(count)]
        self.waiting += commands
        self.player.sent(count, time.time())
        self.socket.sendall(b"".join(command.wire for command in commands))

    def take(self, replies, at):
        """Acknowledge what these replies answer; what is wrong with them, as lines."""
        faults = []
        for reply in replies:
            command = self.waiting[0]
            self.answered += 1
            if self.answered < command.reply_count:
                continue
            self.waiting.pop(0)
            self.answered = 0
            self.player.acknowledged(command, at)
            if not command.is_right(reply):
                told = "" if callable(command.expected) else f" instead of {command.expected!r}"
                faults.append(f"{self.player.name} {command}\n    answered {reply!r}{told}")
        return faults


class Load:
    """faults: replies that the twin has told otherwise. cut_at: when the power went (time.time);
    what is answered after that is not held against the server."""

    def __init__(self, players, port):
        self.links = {}
        self.cut_at = float("inf")
        self.poll = select.epoll()
        self.faults = []
        for player in players:
            link = Link(player, port)
            self.links[link.socket.fileno()] = link
            self.poll.register(link.socket.fileno(), select.EPOLLIN)

    def drop(self, fileno):
        self.poll.unregister(fileno)
        self.links.pop(fileno).socket.close()

    def receive(self, fileno):
        """What has come on a connection. False: it is closed."""
        link = self.links[fileno]
        try:
            data = link.socket.recv(1 << 18)
        except ConnectionError:
            data = b""
        if not data:
            return False
        at = time.time()
        faults = link.take(link.replies.feed(data), at)
        if at >= self.cut_at:
            return True
        self.faults += faults[:max(0, FAULTS_MAX - len(self.faults))]
        return True

    def go_on(self, fileno):
        """Send the next batch when all is answered. False: the connection is closed."""
        link = self.links[fileno]
        if link.waiting:
            return True
        try:
            link.send_batch()
        except ConnectionError:
            return False
        return True

    def run(self, stop_at_s=float("inf")):
        """Until the server has closed every connection, or until the time (time.monotonic) has
        come and everything sent is answered."""
        for fileno in list(self.links):
            if not self.go_on(fileno):
                self.drop(fileno)
        while self.links:
            is_over = time.monotonic() >= stop_at_s
            if is_over and not any(link.waiting for link in self.links.values()):
                return
            for fileno, _ in self.poll.poll(0.05):
                if not self.receive(fileno) or not (is_over or self.go_on(fileno)):
                    self.drop(fileno)

    def close(self):
        for fileno in list(self.links):
            self.drop(fileno)
        self.poll.close()
