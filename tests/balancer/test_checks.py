"""What HAProxy's checks see of a server that retires, and what clients see through HAProxy."""
import re
import socket
import ssl
import unittest

import redis

import parts

PROXIED = ("--proxy-protocol", "127.0.0.1")
LISTENERS = ("leaderboard", "leaderboard-master")


def from_address(port, address):
    """A connection from this address of the machine."""
    connection = socket.create_connection(("127.0.0.1", port), parts.LIMIT_S, (address, 0))
    return connection, "%s:%d" % connection.getsockname()


def ask(connection, text, wanted=b"\r\n"):
    """What is received, up to what is wanted and the end of its line."""
    connection.sendall(text)
    answer = b""
    while wanted not in answer or not answer.endswith(b"\r\n"):
        piece = connection.recv(65536)
        if not piece:
            break
        answer += piece
    return answer.decode()


class Checks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = parts.Server(*PROXIED, "--shutdown-drain-timeout", "3600")
        cls.haproxy = parts.Haproxy(cls.server)

    @classmethod
    def tearDownClass(cls):
        cls.haproxy.stop()
        cls.server.stop()

    def test_a_server_that_retires_is_red_for_both_kinds_of_check_and_green_again(self):
        client = redis.Redis(port=self.haproxy.port, single_connection_client=True)
        client.ping()
        operator = socket.socket(socket.AF_UNIX)
        operator.connect(str(self.server.socket))
        operator.sendall(b"SHUTDOWN\r\n")
        self.haproxy.wait_for("DOWN")
        reasons = {name: reason for name, state, reason in self.haproxy.events() if state == "DOWN"}
        for name in LISTENERS:
            self.assertIn("Layer7", reasons[name])
        self.assertTrue(client.ping())
        self.assertEqual(client.zadd("board", {"ann": 1}), 1)
        self.assertTrue(self.server.local().execute_command("SHUTDOWN ABORT"))
        self.assertIn(b"-ERR Errors trying to SHUTDOWN", operator.recv(100))
        self.haproxy.wait_for("UP")
        client.close()
        operator.close()

    def test_the_clients_address_is_seen_with_both_versions_of_the_header(self):
        for port in (self.haproxy.port, self.haproxy.master_port):
            connection, address = from_address(port, "127.0.0.2")
            seen = ask(connection, b"CLIENT INFO\r\n", b"laddr=")
            self.assertIn(f" addr={address} laddr=127.0.0.1:{port} ", seen)
            connection.close()

    def test_monitor_and_the_log_have_the_clients_address(self):
        local = self.server.local()
        local.config_set("loglevel", "verbose")
        with local.monitor() as monitor:
            connection, address = from_address(self.haproxy.port, "127.0.0.3")
            ask(connection, b"ECHO seen\r\n")
            line = next(command for command in monitor.listen() if "seen" in command["command"])
        self.assertEqual(f"{line['client_address']}:{line['client_port']}", address)
        connection.close()
        local.config_set("loglevel", "notice")
        self.assertRegex(self.server.log.read_text(), f"client connected id=.* addr={address} ")

    def test_who_sends_no_header_is_closed_and_logged(self):
        connection, address = from_address(self.server.port, "127.0.0.1")
        try:
            self.assertEqual(ask(connection, b"PING\r\n"), "")
        except ConnectionResetError:
            pass
        parts.wait_until(lambda: address in self.server.log.read_text(), "the line in the log")
        self.assertIn(f'addr={address} reason="no PROXY header', self.server.log.read_text())

    def test_protected_mode_looks_at_the_client(self):
        for address, answer in (("198.51.100.7", "-DENIED"), ("127.0.0.1", "+PONG")):
            connection, _ = from_address(self.server.port, "127.0.0.1")
            header = f"PROXY TCP4 {address} 127.0.0.1 1234 6379\r\n".encode()
            self.assertTrue(ask(connection, header + b"PING\r\n").startswith(answer))
            connection.close()


class Others(unittest.TestCase):
    def test_balancers_that_are_not_listed_are_refused_and_logged(self):
        server = parts.Server(*PROXIED, "--proxy-protocol-from", "192.0.2.0/24")
        connection, address = from_address(server.port, "127.0.0.1")
        try:
            connection.sendall(b"PROXY TCP4 192.0.2.1 127.0.0.1 1234 6379\r\nPING\r\n")
            self.assertEqual(connection.recv(100), b"")
        except ConnectionError:
            pass
        parts.wait_until(lambda: re.search(f'addr={address} reason="not in proxy-protocol-from"',
                                           server.log.read_text()), "the line in the log")
        self.assertEqual(server.local().info("stats")["rejected_connections"], 1)
        server.stop()

    def test_the_header_comes_before_the_handshake_of_tls(self):
        port = parts.hold_port()
        certificate, key = parts.make_certificate()
        server = parts.Server(*PROXIED, "--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key,
                              "--tls-auth-clients", "no", "--protected-mode", "no")
        context = ssl.create_default_context(cafile=certificate)
        connection = socket.create_connection(("127.0.0.1", port), parts.LIMIT_S)
        connection.sendall(b"PROXY TCP4 192.0.2.1 192.0.2.2 1234 6379\r\n")
        with context.wrap_socket(connection, server_hostname="localhost") as secured:
            said = ask(secured, b"CLIENT INFO\r\n", b"addr=")
        self.assertIn(" addr=192.0.2.1:1234 laddr=192.0.2.2:6379 ", said)
        server.stop()

    def test_a_listener_that_is_not_there_cannot_be_proxied(self):
        with self.assertRaises(AssertionError) as caught:
            parts.Server("--proxy-protocol", "10.0.0.5")
        self.assertIn("there is no listener '10.0.0.5'", str(caught.exception))
