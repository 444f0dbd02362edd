"""The page behind HAProxy with TLS, as docs/web.md has it."""
import ssl
import time
import unittest

import test_api
from test_attacks import own_address
from process import PEERS, make_certificate, new_directory, spawn, wait_until
from web_server import WebServer, hold_port, let_port_go

HAPROXY = PEERS / "haproxy"
LIMIT_S = 60
CONFIGURATION = """
defaults
    mode http
    option forwardfor
    option abortonclose
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen page
    bind *:{port} ssl crt {certificate}
    server leaderboard 127.0.0.1:{web_port}
"""


class Behind:
    """What test_api.Api asks of a server, at the proxy's port and some address of this machine."""

    def __init__(self, port, address, certificate):
        self.web_port, self.address, self.certificate = port, address, certificate


class Api(test_api.Api):
    def connection(self, timeout=LIMIT_S):
        context = ssl.create_default_context(cafile=self.server.certificate)
        context.check_hostname = False
        return test_api.http.client.HTTPSConnection(self.server.address, self.server.web_port, timeout=timeout,
                                                    context=context)


class Proxied(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        certificate, key = make_certificate("boards.example.com", "DNS:boards.example.com")
        cls.directory = new_directory()
        both = cls.directory / "both.pem"
        both.write_text(certificate.read_text() + key.read_text())
        cls.server = WebServer("--web-hosts", "boards.example.com", "--web-proxies", "127.0.0.1", "--web-public", "open",
                               "--web-max-connections-per-address", "4")
        cls.server.run("ACL", "SETUSER", "ann", "on", ">right", "~*", "+@read")
        for board in ("open", "hidden"):
            cls.server.run("ZADD", board, "1", "bob")
        port = hold_port()
        let_port_go(port)
        configuration = cls.directory / "haproxy.cfg"
        configuration.write_text(CONFIGURATION.format(port=port, certificate=both, web_port=cls.server.web_port))
        cls.proxy = spawn([HAPROXY, "-db", "-f", configuration], cls.directory / "log")
        cls.near = Api(Behind(port, "127.0.0.1", certificate))
        cls.far = Api(Behind(port, own_address(), certificate))
        wait_until(lambda: cls.near.status("/me", Host="boards.example.com"), "the start of HAProxy")

    @classmethod
    def tearDownClass(cls):
        cls.proxy.terminate()
        cls.proxy.wait()
        cls.server.stop()

    HOST = {"Host": "boards.example.com"}

    def test_who_comes_from_elsewhere_sees_what_is_public(self):
        self.assertEqual(self.far.status("/boards/open", **self.HOST), 200)
        self.assertEqual(self.far.status("/boards/hidden", **self.HOST), 401)
        self.assertEqual(self.near.status("/boards/hidden", **self.HOST), 200)
        self.assertEqual(self.far.status("/boards/open", Host="evil.example"), 421)

    def test_a_login_is_for_tls_and_shows_the_rest(self):
        origin = {"Origin": "https://boards.example.com"}
        status, reply, cookie = self.far.log_in("ann", "right", **self.HOST, **origin)
        self.assertEqual((status, reply["user"]), (200, "ann"))
        self.assertTrue(cookie.startswith("__Host-") and cookie.endswith("; Secure"), cookie)
        stream = self.far.stream("/boards/hidden/events", Cookie=cookie.split(";")[0], **self.HOST)
        self.assertEqual(stream.next()[1]["rows"][0]["score"], "1")
        self.server.run("ZADD", "hidden", "7", "bob")
        self.assertEqual(stream.next()[1]["rows"][0]["score"], "7")
        stream.close()
        self.assertEqual(self.far.log_in("ann", "right", Origin="https://evil.example", **self.HOST)[0], 403)

    def test_one_client_does_not_use_up_what_all_have(self):
        streams, give_up_at = [], time.monotonic() + LIMIT_S
        while len(streams) < 4:  # those of an earlier test, which have left, are seen soon
            stream = self.far.stream("/boards/open/events", **self.HOST)
            if stream.status == 200:
                streams.append(stream)
            self.assertLess(time.monotonic(), give_up_at)
        self.assertEqual(self.far.status("/boards/open", **self.HOST), 429)
        self.assertEqual(self.near.status("/boards/open", **self.HOST), 200)
        for stream in streams:
            stream.close()
        while self.far.status("/boards/open", **self.HOST) == 429:
            self.assertLess(time.monotonic(), give_up_at)
            time.sleep(0.1)


if __name__ == "__main__":
    unittest.main()
