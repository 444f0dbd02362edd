"""A server with a metrics-port, and HTTP to it."""
import base64
import http.client
import re
import ssl
import time

import redis

import process
from process import LIMIT_S, PEERS, ROOT, hold_port, spawn, wait_until  # noqa: F401


class Server(process.Server):
    def __init__(self, *arguments, tls=None, wait=True, **options):
        self.metrics_port, self.tls = hold_port(), tls
        super().__init__("--metrics-port", self.metrics_port, *arguments, is_started=wait, **options)
        if not wait:
            self.spawn()

    def wait(self, is_so):
        def claim():
            self.assert_runs()
            return is_so()
        wait_until(claim, self.told, passing=(redis.RedisError, OSError, http.client.HTTPException))

    def client(self, **options):
        return redis.Redis(port=self.port, **options)

    def connection(self):
        if self.tls:
            return http.client.HTTPSConnection(
                "localhost", self.metrics_port, timeout=LIMIT_S,
                context=ssl.create_default_context(cafile=self.tls))
        return http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=LIMIT_S)

    def get(self, path, method="GET", user=None, **headers):
        """(status, body, headers); a server that was too busy is asked again."""
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if user:
            headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        give_up_at = time.monotonic() + LIMIT_S
        while True:
            connection = self.connection()
            connection.request(method, path, headers=headers)
            reply = connection.getresponse()
            body = reply.read().decode()
            connection.close()
            if reply.status != 503 or not body.startswith("busy") or time.monotonic() > give_up_at:
                return reply.status, body, reply.headers

    def metrics(self, **headers):
        status, body, _ = self.get("/metrics", **headers)
        assert status == 200, (status, body)
        return samples(body)


def samples(text):
    """{'name{labels}': value} of a scrape."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            assert name not in found, f"twice: {name}"
            found[name] = float(value)
    return found


def names(scrape):
    return {re.sub(r"\{.*", "", name) for name in scrape}
