"""docs/operate/monitor.md, run as it stands, and docs/operate/alerts.md; the dashboard, the rules and the
pages name metrics that exist."""
import json
import re
import subprocess
import unittest

from server import ROOT, Server, names

PAGE = (ROOT / "docs" / "operate" / "monitor.md").read_text(encoding="utf-8")
ALERTS = (ROOT / "docs" / "operate" / "alerts.md").read_text(encoding="utf-8")
RULES = (ROOT / "deploy" / "prometheus" / "rules.yml").read_text(encoding="utf-8")
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "leaderboard.json").read_text())
METRIC = re.compile(r"\b(?:leaderboard|process)_[a-z_]+")
# Not metrics: a key of deploy/, a Prometheus label.
LABELS = {"leaderboard_password"}


def blocks():
    return re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.M | re.S)


def expressions():
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", [])]


def matches(expected, seen):
    pattern = ".*".join(re.escape(part) for part in expected.split("..."))
    return re.fullmatch(pattern, seen) is not None


class Pages(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        text = next(text for language, text in blocks() if language == "conf")
        cls.server = Server()
        cls.server.client().config_set("latency-monitor-threshold", 0)
        cls.conf = text

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def known(self):
        """All families that a server may show, with the endings of histograms."""
        table = (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
        found = set()
        for name, kind in re.findall(r"^\| `(\w+)` \| (\w+) \|", table, re.M):
            found |= ({name + ending for ending in ("_bucket", "_count", "_sum")}
                      if kind == "histogram" else {name})
        return found

    def test_the_page_of_metrics_is_what_a_scrape_shows(self):
        client = self.server.client()
        client.zadd("arena", {"ann": 1})
        client.execute_command("LB.ADD", "arena", "ONCE", "id", "2", "ann")
        client.execute_command("SAVE")
        client.execute_command("LB.CREATE", "limited", "FIELD", "score", "32", "LIMITS", "ALL", "MAX", "5")
        for refused in ("NOSUCH", "ZADD limited 6 ann"):
            try:
                client.execute_command(*refused.split())
            except Exception:  # the error is to be counted
                pass
        client.delete("arena", "limited")
        replica = Server("--replicaof", "127.0.0.1", self.server.port)
        try:
            replica.wait(lambda: replica.metrics()["leaderboard_master_link_up"] == 1)
            shown = names(self.server.metrics()) | names(replica.metrics())
        finally:
            replica.stop()
        self.assertEqual(shown, self.known())

    def test_the_transcripts_are_what_the_server_says(self):
        count = 0
        for language, text in blocks():
            if language != "console":
                continue
            for step in re.split(r"^\$ ", text, flags=re.M)[1:]:
                command, _, expected = step.partition("\n")
                command = command.replace("6379", str(self.server.port))
                command = command.replace("9121", str(self.server.metrics_port))
                done = subprocess.run(["bash", "-c", command], capture_output=True, text=True,
                                      timeout=120)
                self.assertTrue(matches(expected.strip(), done.stdout.strip()),
                                f"{command}: {done.stdout}{done.stderr}")
                count += 1
        self.assertEqual(count, 13)

    def test_the_settings_are_ours(self):
        rows = dict(line.split() for line in self.conf.splitlines())
        self.assertEqual(list(rows), ["metrics-port", "metrics-bind"])
        server = Server("--metrics-bind", rows["metrics-bind"])
        self.assertEqual(server.get("/healthz")[0], 200)
        server.stop()

    def test_the_configuration_is_that_of_deploy(self):
        config = (ROOT / "deploy" / "prometheus" / "prometheus.yml").read_text(encoding="utf-8")
        shown = [text for language, text in blocks() if language == "yaml"]
        self.assertEqual(len(shown), 1)
        self.assertIn(shown[0], config)
        self.assertEqual({language for language, _ in blocks()}, {"console", "conf", "yaml"})

    def test_each_alert_has_its_advice(self):
        alerts = re.findall(r"- alert: (\w+)", RULES)
        advice = re.findall(r"^\| `(Leaderboard\w+)` \|", ALERTS, re.M)
        self.assertEqual(alerts, advice)
        tests = (ROOT / "deploy" / "prometheus" / "rules_test.yml").read_text(encoding="utf-8")
        for alert in alerts:
            self.assertRegex(tests, rf"alertname: {alert}\n\s+exp_alerts:")

    def test_whatever_names_a_metric_names_one_that_exists(self):
        known = self.known()
        for place, text in (("dashboard", "\n".join(expressions())), ("rules", RULES),
                            ("monitor.md", PAGE), ("alerts.md", ALERTS)):
            wrong = set(METRIC.findall(text)) - known - LABELS
            self.assertEqual(wrong, set(), place)
        self.assertGreater(len(expressions()), 40)

    def test_the_dashboard_is_whole(self):
        ids = [panel["id"] for panel in DASHBOARD["panels"]]
        self.assertEqual(len(ids), len(set(ids)))
        for panel in DASHBOARD["panels"]:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24)
            self.assertTrue(panel["type"] == "row" or panel["targets"], panel["title"])
