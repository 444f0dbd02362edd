"""The metrics-port of a real server."""
import http.client
import os
import socket
import ssl
import subprocess
import threading
import unittest

from process import IS_SHORT as SHORT, make_certificate, new_directory
from server import Server


class Http(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.client = cls.server.client()

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def test_a_master_without_enough_replicas_is_not_ready(self):
        self.client.config_set("min-replicas-to-write", 1)
        try:
            self.assertEqual(self.server.get("/readyz")[:2], (503, "closed: too few replicas\n"))
        finally:
            self.client.config_set("min-replicas-to-write", 0)
        self.assertEqual(self.server.get("/readyz")[:2], (200, "ready\n"))

    def test_it_agrees_with_info(self):
        self.client.flushall()
        self.client.zadd("arena", {"ann": 3, "bob": 2, "cid": 1})
        self.client.hset("ann", "name", "Ann")
        self.client.expire("ann", 1000)
        scrape = self.server.metrics()
        info = self.client.info("everything")
        self.assertEqual(scrape['leaderboard_keys{database="0"}'], info["db0"]["keys"])
        self.assertEqual(scrape['leaderboard_expiring_keys{database="0"}'], info["db0"]["expires"])
        self.assertEqual(scrape['leaderboard_boards{database="0"}'], 1)
        self.assertEqual(scrape['leaderboard_members{database="0"}'], 3)
        self.assertEqual(scrape["leaderboard_clients"], info["connected_clients"])
        self.assertEqual(scrape["leaderboard_clients_limit"], info["maxclients"])
        self.assertEqual(scrape["leaderboard_memory_limit_bytes"], info["maxmemory"])
        self.assertGreater(scrape["process_resident_memory_bytes"], 1 << 20)
        self.assertEqual(scrape["leaderboard_commands_processed_total"] + 1,
                         self.client.info("stats")["total_commands_processed"])
        calls = info["cmdstat_zadd"]["calls"]
        self.assertEqual(
            scrape['leaderboard_command_duration_seconds_count{command="zadd"}'], calls)
        for field in ("tick_longest_cpu_us", "tick_total_us", "tick_long_count", "tick_long_us",
                      "tick_long_cpu_us"):
            self.assertIn(field, info)

    def test_both_formats_by_accept(self):
        for accept, kind in ((None, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
                             ("text/plain", "text/plain; version=0.0.4; charset=utf-8")):
            status, body, headers = self.server.get("/metrics", **({"Accept": accept} if accept else {}))
            self.assertEqual(status, 200)
            self.assertEqual(headers["Content-Type"], kind)
            self.assertEqual(body.endswith("\n# EOF\n"), accept is None)
            self.assertEqual(headers["Cache-Control"], "no-store")

    def test_head_is_get_without_the_body(self):
        status, body, headers = self.server.get("/metrics", method="HEAD")
        self.assertEqual((status, body), (200, ""))
        self.assertGreater(int(headers["Content-Length"]), 5000)

    def test_health(self):
        self.assertEqual(self.server.get("/healthz")[:2], (200, "ok\n"))
        self.assertEqual(self.server.get("/readyz")[:2], (200, "ready\n"))

    def test_a_replica_without_its_master_is_ready_as_it_is_told(self):
        server = Server("--replicaof", "127.0.0.1", "1")
        try:
            client = server.client()
            client.config_set("replica-serve-stale-data", "no")
            self.assertEqual(server.get("/readyz")[0], 503)
            self.assertEqual(server.metrics()["leaderboard_master_link_up"], 0)
            client.replicaof("NO", "ONE")
            self.assertEqual(server.get("/readyz")[:2], (200, "ready\n"))
            self.assertEqual(server.metrics()["leaderboard_replica"], 0)
        finally:
            server.stop()

    def test_what_is_refused(self):
        self.assertEqual(self.server.get("/metrics", method="POST")[0], 405)
        self.assertEqual(self.server.get("/nowhere")[0], 404)
        self.assertEqual(self.server.get("/metrics", Host="evil.example")[0], 421)

    def test_the_password_is_wanted_as_soon_as_there_is_one(self):
        self.client.config_set("requirepass", "se:cret")
        try:
            status, body, headers = self.server.get("/metrics")
            self.assertEqual(status, 401)
            self.assertNotIn("leaderboard_", body)
            self.assertEqual(headers["WWW-Authenticate"], 'Basic realm="leaderboard"')
            for wrong in ("default:x", "default:", "ann:se:cret", "default:se:cret2", ":"):
                self.assertEqual(self.server.get("/metrics", user=wrong)[0], 401, wrong)
            self.assertEqual(self.server.get("/metrics", user="default:se:cret")[0], 200)
            self.assertEqual(self.server.get("/readyz")[0], 200)
        finally:
            self.server.client(password="se:cret").config_set("requirepass", "")
        self.assertEqual(self.server.get("/metrics")[0], 200)

    def test_a_thousand_connections_and_the_server_goes_on(self):
        count = 300 if SHORT else 1000
        held = []
        for i in range(count):
            held.append(socket.socket())
            held[-1].setblocking(False)
            held[-1].connect_ex(("127.0.0.1", self.server.metrics_port))
            if i % 3 == 0:
                try:
                    held[-1].send(b"GET /metrics HTTP/1.1\r\nHost: lo")
                except OSError:
                    pass
        self.assertEqual(self.server.get("/healthz")[0], 200)
        self.assertTrue(self.client.ping())
        for one in held:
            one.close()
        self.assertEqual(self.server.get("/metrics")[0], 200)

    def test_huge_headers_and_nonsense(self):
        for text in (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100000,
                     b"GET /" + b"y" * 100000 + b" HTTP/1.1\r\n\r\n", os.urandom(5000),
                     b"\r\n" * 10000, b"PING\r\n", b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 5000):
            with socket.create_connection(("127.0.0.1", self.server.metrics_port)) as one:
                one.settimeout(60)
                try:
                    one.sendall(text)
                    one.shutdown(socket.SHUT_WR)
                    while one.recv(65536):
                        pass
                except OSError:
                    pass
        self.assertEqual(self.server.get("/metrics")[0], 200)

    def test_scraped_beside_a_benchmark(self):
        count = "30000" if SHORT else "1000000"
        benchmark = subprocess.Popen(
            ["redis-benchmark", "-p", str(self.server.port), "-q", "-n", count, "-P", "16", "-r",
             "10000", "ZADD", "bench", "__rand_int__", "__rand_int__"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        calls, scrapes = -1.0, 0
        while benchmark.poll() is None or scrapes < 3:
            scrape = self.server.metrics()
            now = scrape.get('leaderboard_command_duration_seconds_count{command="zadd"}', 0)
            self.assertGreaterEqual(now, calls)
            calls, scrapes = now, scrapes + 1
        self.assertEqual(benchmark.returncode, 0)
        scrape = self.server.metrics()  # the last one may have come before the last commands
        self.assertGreaterEqual(scrape['leaderboard_command_duration_seconds_count{command="zadd"}'], int(count))
        self.assertEqual(scrape['leaderboard_members{database="0"}'],
                         sum(self.client.zcard(key) for key in self.client.keys()
                             if self.client.type(key) == b"zset"))

    def test_scrapes_at_one_time(self):
        results = []

        def scrape():
            results.append(self.server.get("/metrics")[0])
        threads = [threading.Thread(target=scrape) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(results, [200] * 20)


class Starts(unittest.TestCase):
    def test_loading_is_seen(self):
        directory = new_directory()
        server = Server("--appendonly", "yes", directory=directory)
        client = server.client()
        pipeline = client.pipeline(transaction=False)
        for i in range(50000 if SHORT else 500000):
            pipeline.zadd("arena", {f"member:{i}": i})
            if i % 10000 == 9999:
                pipeline.execute()
        pipeline.execute()
        scrape = server.metrics()
        self.assertEqual(scrape["leaderboard_journal_enabled"], 1)
        self.assertGreater(scrape["leaderboard_journal_size_bytes"], 100000)
        server.stop()
        server = Server("--appendonly", "yes", directory=directory, wait=False)
        seen = set()

        def is_ready():
            status, body, _ = server.get("/readyz")
            seen.add((status, body.split(":")[0]))
            self.assertEqual(server.get("/healthz")[0], 200)
            return status == 200
        server.wait(is_ready)
        self.assertLessEqual(seen, {(200, "ready\n"), (503, "loading")})
        self.assertEqual(server.metrics()['leaderboard_members{database="0"}'],
                         50000 if SHORT else 500000)
        server.stop()

    def test_tls(self):
        certificate, key = make_certificate()
        server = Server("--metrics-tls-cert-file", certificate, "--metrics-tls-key-file", key,
                        tls=certificate)
        try:
            self.assertEqual(server.get("/healthz")[:2], (200, "ok\n"))
            self.assertEqual(server.metrics()["leaderboard_loading"], 0)
            plain = http.client.HTTPConnection("localhost", server.metrics_port, timeout=60)
            with self.assertRaises((http.client.HTTPException, OSError)):
                plain.request("GET", "/healthz")
                plain.getresponse()
            with socket.create_connection(("localhost", server.metrics_port)) as half:
                half.send(b"\x16\x03\x01\x02\x00\x01")  # half a handshake
                self.assertEqual(server.get("/readyz")[0], 200)
            old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
            with self.assertRaises(OSError), socket.create_connection(
                    ("localhost", server.metrics_port)) as one:
                old.wrap_socket(one)
        finally:
            server.stop()

    def refused(self, *arguments):
        with self.assertRaises(AssertionError) as caught:
            Server(*arguments)
        return str(caught.exception)

    def test_what_cannot_be_is_told_at_the_start(self):
        self.assertIn("go together", self.refused("--metrics-tls-cert-file", "/dev/null"))
        self.assertIn("cannot read /no/such", self.refused(
            "--metrics-tls-cert-file", "/no/such", "--metrics-tls-key-file", "/no/such"))
        self.assertIn("cannot listen on address 192.0.2.1",
                      self.refused("--metrics-bind", "192.0.2.1"))

    def test_it_is_off_unless_it_is_wanted(self):
        server = Server("--metrics-port", "0")
        with self.assertRaises(OSError):
            server.get("/healthz")
        server.stop()
