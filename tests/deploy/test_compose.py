"""deploy/compose: what docker compose would refuse, and all services as processes (check_compose)."""
import ipaddress
import re
import subprocess
import unittest

import yaml

from process import LIMIT_S, ROOT

COMPOSE = ROOT / "deploy" / "compose"
FILES = ("haproxy.yaml", "sentinel.yaml")
SERVICE = {"image", "command", "depends_on", "environment", "healthcheck", "networks", "ports", "read_only", "restart",
           "stop_grace_period", "user", "volumes"}


class Files(unittest.TestCase):
    def test_yamllint_has_nothing_to_say(self):
        done = subprocess.run(["yamllint", "--strict", *(COMPOSE / name for name in FILES)], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_what_a_service_names_is_there(self):
        """Keys are those of the specification of Compose, as far as they are used."""
        for name in FILES:
            text = (COMPOSE / name).read_text()
            self.assertEqual({*re.findall(r"\$+\{?(\w+)", text)}, {"NETWORK"})
            file = yaml.safe_load(re.sub(r"\$\{NETWORK:-([\d.]+)\}", r"\1", text))
            self.assertEqual({key for key in file if not key.startswith("x-")}, {"name", "services", "networks", "volumes"})
            config, = file["networks"]["boards"]["ipam"]["config"]
            subnet, taken, used = ipaddress.ip_network(config["subnet"]), {config["gateway"]}, set()
            for service, spec in file["services"].items():
                self.assertLessEqual(set(spec), SERVICE, service)
                self.assertIn(spec["image"], ("leaderboard", "redis:7.2", "haproxy:2.8"))
                for other in spec.get("depends_on", {}):
                    self.assertIn(other, file["services"])
                if "networks" in spec:
                    address = spec["networks"]["boards"]["ipv4_address"]
                    self.assertIn(ipaddress.ip_address(address), subnet)
                    self.assertNotIn(address, taken)
                    taken.add(address)
                for volume in spec["volumes"]:
                    source = volume.split(":")[0]
                    if source.startswith("."):
                        self.assertTrue((COMPOSE / source).exists(), volume)
                    else:
                        used.add(source)
                for port in spec.get("ports", ()):
                    self.assertRegex(port, r"^127\.0\.0\.1:(\d+):\1$")
            self.assertEqual(used, set(file["volumes"]))


class Services(unittest.TestCase):
    def test_they_run_and_fail_over(self):
        done = subprocess.run([ROOT / "tests/deploy/check_compose"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=10 * LIMIT_S, check=False)
        if done.returncode == 77:
            self.skipTest(done.stdout.splitlines()[0])
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout.count("1 passed, 0 failed"), 2)
