"""promtool and prometheus-redis-exporter, as Debian has them, beside a real server."""
import json
import re
import subprocess
import unittest
import urllib.request

from process import let_port_go
from server import LIMIT_S, PEERS, ROOT, Server, hold_port, samples, spawn, wait_until

PROMTOOL = PEERS / "promtool"
DEPLOY = ROOT / "deploy" / "prometheus"


def promtool(*words, text=None):
    return subprocess.run([PROMTOOL, *words], input=text, capture_output=True, text=True,
                          timeout=LIMIT_S, cwd=DEPLOY)


class Promtool(unittest.TestCase):
    def passes(self, *words, text=None):
        done = promtool(*words, text=text)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_rules(self):
        self.passes("check", "rules", "rules.yml")
        self.passes("test", "rules", "rules_test.yml")
        self.passes("check", "config", "prometheus.yml")

    def test_the_tests_of_rules_can_fail(self):
        text = (DEPLOY / "rules_test.yml").read_text(encoding="utf-8")
        changed = DEPLOY / "rules_changed_test.yml"
        self.addCleanup(changed.unlink)
        changed.write_text(text.replace("0+6x30'", "0+9x30'"), encoding="utf-8")
        self.assertNotEqual(promtool("test", "rules", changed.name).returncode, 0)

    def test_a_scrape_is_clean(self):
        server = Server("--appendonly", "yes")
        client = server.client()
        for i in range(100):
            client.zadd("arena", {f"m{i}": i})
        client.info()
        self.assertEqual(self.passes("check", "metrics",
                                     text=server.get("/metrics", Accept="text/plain")[1]), "")
        server.stop()

    def test_the_expressions_of_the_dashboard_are_promql(self):
        dashboard = json.loads((ROOT / "deploy" / "grafana" / "leaderboard.json").read_text())
        expressions = [target["expr"].replace("$__rate_interval", "5m").replace("$instance", ".*")
                       for panel in dashboard["panels"] for target in panel.get("targets", [])]
        rules = {"groups": [{"name": "dashboard", "rules": [
            {"record": f"dashboard:{i}", "expr": text} for i, text in enumerate(expressions)]}]}
        path = DEPLOY / "dashboard_rules.yml"
        self.addCleanup(path.unlink)
        path.write_text(json.dumps(rules), encoding="utf-8")  # JSON is YAML
        self.assertIn(f"{len(expressions)} rules found", self.passes("check", "rules", path.name))


class Exporter(unittest.TestCase):
    """prometheus-redis-exporter reads INFO."""

    def test_it_shows_what_is_true(self):
        server = Server("--appendonly", "yes")
        client = server.client()
        client.zadd("arena", {"ann": 1, "bob": 2})
        client.zadd("weekly", {"ann": 1})
        client.expire("weekly", 1000)
        client.config_set("maxmemory", "1gb")
        port = hold_port()
        let_port_go(port)
        log = server.directory / "exporter.log"
        exporter = spawn([PEERS / "prometheus-redis-exporter", f"-redis.addr=redis://127.0.0.1:{server.port}",
                          f"-web.listen-address=127.0.0.1:{port}"], log)
        try:
            shown = self.scrape(port)
            info = client.info("everything")
            for name, value in (
                    ("redis_up", 1), ("redis_exporter_last_scrape_error{err=\"\"}", 0),
                    ('redis_db_keys{db="db0"}', 2), ('redis_db_keys_expiring{db="db0"}', 1),
                    ("redis_memory_max_bytes", 1 << 30), ("redis_blocked_clients", 0),
                    ("redis_aof_enabled", 1), ("redis_loading_dump_file", 0),
                    ("redis_rejected_connections_total", 0), ("redis_evicted_keys_total", 0),
                    ('redis_commands_total{cmd="zadd"}', info["cmdstat_zadd"]["calls"]),
                    ("redis_aof_last_write_status", 1), ("redis_rdb_last_bgsave_status", 1),
                    ("redis_config_maxclients", info["maxclients"])):
                self.assertEqual(shown.get(name), value, name)
            for name in ("redis_memory_used_bytes", "redis_memory_used_rss_bytes",
                         "redis_connected_clients", "redis_uptime_in_seconds",
                         "redis_commands_processed_total", "redis_cpu_user_seconds_total",
                         "redis_net_input_bytes_total", "redis_connections_received_total",
                         'redis_commands_duration_seconds_total{cmd="zadd"}'):
                self.assertIn(name, shown)
                self.assertGreaterEqual(shown[name], 0)
            self.assertGreater(shown["redis_memory_used_bytes"], 100000)
            instance = next(name for name in shown if name.startswith("redis_instance_info"))
            self.assertIn(f'process_id="{info["process_id"]}"', instance)
            self.assertIn('role="master"', instance)
        finally:
            exporter.terminate()
            exporter.wait(LIMIT_S)
        self.assertEqual(re.findall(".*level=(?:error|warn|fatal).*", log.read_text(encoding="utf-8")), [])
        server.stop()

    def scrape(self, port):
        def ask():
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as page:
                return samples(page.read().decode())
        return wait_until(ask, "a scrape")
