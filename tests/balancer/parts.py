"""What is put together: a server that can be restarted on its port and directory, and HAProxy."""
import atexit
import re

import redis
import resp

from process import (LIMIT_S, PEERS, PROGRAM, ROOT, Server as AnyServer, end_with_the_test, hold_port,  # noqa: F401
                     let_port_go, make_certificate, new_directory, spawn, wait_until)

HAPROXY = PEERS / "haproxy"


class Server(AnyServer):
    """A leaderboard-server. Its unix socket takes no PROXY header."""

    def __init__(self, *words, **options):
        self.directory = new_directory()
        self.socket = self.directory / "socket"
        super().__init__("--unixsocket", self.socket, *words, directory=self.directory, **options)

    def connect(self):
        return resp.Client(self.socket)

    def local(self):
        return redis.Redis(unix_socket_path=str(self.socket), password=self.password,
                           decode_responses=True)

    def wait(self):
        return super().stop()


class Haproxy:
    """deploy/haproxy.cfg with other ports: of the server, and of the two listeners."""
    file, listeners, server_name = "haproxy.cfg", ("leaderboard", "leaderboard-master"), "main"

    def __init__(self, *servers):
        self.port, self.master_port = hold_port(), hold_port()
        for port in (self.port, self.master_port):
            let_port_go(port)  # HAProxy binds without SO_REUSEADDR's kindness to others
        path = new_directory()
        self.log = path / "log"
        text = (ROOT / "deploy" / self.file).read_text()
        for old, new in self.changes(servers):
            text, count = re.subn(old, new, text)
            assert count > 0, old
        (path / "haproxy.cfg").write_text(text)
        self.process = spawn([HAPROXY, "-db", "-f", "haproxy.cfg"], self.log, path)
        atexit.register(self.process.kill)
        wait_until(self.answers, lambda: f"the start of HAProxy: {self.log.read_text()}")

    def changes(self, servers):
        for old, new in (("6380", servers[0].port), ("6379", self.port), ("6378", self.master_port)):
            yield rf"127\.0\.0\.1:{old}\b", f"127.0.0.1:{new}"

    def answers(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            return all(redis.Redis(port=port).ping() for port in (self.port, self.master_port))
        except redis.ConnectionError:
            return False

    def events(self):
        """[(listener, "UP" or "DOWN", reason)] of the server, as the log has them."""
        return re.findall(rf"Server (\S+)/{self.server_name} is (UP|DOWN), reason: ([^.]*?)\.",
                          self.log.read_text())

    def state(self, listener):
        states = [state for name, state, _ in self.events() if name == listener]
        return states[-1] if states else "UP"

    def wait_for(self, state, *listeners):
        for listener in listeners or self.listeners:
            wait_until(lambda name=listener: self.state(name) == state,
                       lambda: f"{state}\n{self.log.read_text()}")

    def stop(self):
        self.process.terminate()
        self.process.wait(LIMIT_S)


class HaproxyOfThree(Haproxy):
    """deploy/haproxy-sentinel.cfg: port leads to the master, master_port to the replicas."""
    file, server_name = "haproxy-sentinel.cfg", "node1"

    def changes(self, servers):
        for number, server in enumerate(servers, 1):
            yield rf"10\.0\.0\.{number}:6379\b", f"127.0.0.1:{server.port}"
        yield r"bind :6379\b", f"bind 127.0.0.1:{self.port}"
        yield r"bind :6380\b", f"bind 127.0.0.1:{self.master_port}"

    def answers(self):
        assert self.process.poll() is None, self.log.read_text()
        try:
            return redis.Redis(port=self.port, socket_timeout=1).ping()
        except (redis.ConnectionError, redis.TimeoutError):
            return False
