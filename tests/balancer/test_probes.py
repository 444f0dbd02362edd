"""deploy/kubernetes and deploy/nomad: clean YAML that fits together, settings that a server takes, and
probes that say the right thing of a server that serves, loads, drains, hangs, or is not there."""
import os
import re
import socket
import subprocess
import threading
import unittest

import yaml

import parts

KUBERNETES = parts.ROOT / "deploy" / "kubernetes"
NOMAD = (parts.ROOT / "deploy" / "nomad" / "leaderboard.nomad").read_text()
PASSWORD = "a+long/random=text"
SECRET = "/etc/leaderboard-secret"  # where the pod has its Secret


def documents():
    return {(document["kind"], document["metadata"]["name"]): document
            for path in sorted(KUBERNETES.glob("*.yaml"))
            for document in yaml.safe_load_all(path.read_text())}


def container():
    return documents()["StatefulSet", "leaderboard"]["spec"]["template"]["spec"]["containers"][0]


def kubernetes_probe(name):
    return container()[name]["exec"]["command"]


def nomad_check(name):
    found = re.search(rf'check {{\s+name += "{name}"(.*?)\n      }}', NOMAD, re.S).group(1)
    command = re.search(r'command += "(.*)"', found).group(1)
    return [command, *re.findall('"(.*?)"', re.search(r"args += \[(.*)\]", found).group(1))]


READY = [lambda: kubernetes_probe("readinessProbe"), lambda: nomad_check("ready")]
ALIVE = [lambda: kubernetes_probe("livenessProbe"), lambda: kubernetes_probe("startupProbe"),
         lambda: nomad_check("alive")]


def secret(name):
    """A file of the Secret, made as the first lines of the Statefulset say, and the volume that it is mounted as."""
    literal = re.search(rf'--from-literal={re.escape(name)}="(.*)"',
                        (KUBERNETES / "statefulset.yaml").read_text()).group(1)
    path = parts.new_directory() / name
    path.write_text(literal.replace("$password", PASSWORD))
    return path


def run(command, port):
    """The probe as it stands, but for the port and the Secret's place: True, it passes."""
    assert command[0] == "leaderboard-server" and "6379" in command, command
    words = [str(parts.PROGRAM)] + [str(port) if word == "6379" else
                                    str(secret("password")) if word == f"{SECRET}/password" else word
                                    for word in command[1:]]
    environment = {**os.environ, "REDISCLI_AUTH": PASSWORD}
    return subprocess.run(words, env=environment, timeout=parts.LIMIT_S, check=False,
                          stdout=subprocess.DEVNULL).returncode == 0


class Fake:
    """Answers every connection's requests with one line each, or never."""

    def __init__(self, answer):
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection):
        while connection.recv(1000):
            connection.sendall(self.answer)


class Probes(unittest.TestCase):
    def expect(self, port, is_ready, is_alive):
        self.assertEqual([run(probe(), port) for probe in READY], [is_ready] * len(READY))
        self.assertEqual([run(probe(), port) for probe in ALIVE], [is_alive] * len(ALIVE))

    def start(self, config):
        text = re.sub(r"^(bind|port|dir) .*\n", "", config, flags=re.M)
        text = re.sub(r"{{.*}}", PASSWORD, text)
        path = parts.new_directory() / "leaderboard.conf"
        path.write_text(text)
        # In front of the words that every server here is started with.
        return parts.Server(config=path, password=PASSWORD)

    def configs(self):
        text = documents()["ConfigMap", "leaderboard"]["data"]["leaderboard.conf"]
        self.assertEqual(container()["command"], ["leaderboard-server", "/etc/leaderboard/leaderboard.conf"])
        self.assertNotIn("env", container())
        text = text.replace(f"{SECRET}/users.acl", str(secret("users.acl")))
        nomad = re.search(r'destination = "secrets/leaderboard.conf".*?<<EOT\n(.*?)EOT', NOMAD, re.S)
        return [text, nomad.group(1)]

    def test_a_server_with_these_settings_serves_drains_and_hangs(self):
        for config in self.configs():
            server = self.start(config)
            self.expect(server.port, True, True)
            with server.local().client() as client:
                client.ping()
                server.terminate()
                log = "draining: "
                parts.wait_until(lambda: log in server.log.read_text(), "the drain")
                self.expect(server.port, False, True)
                server.terminate()
            server.wait()
            self.expect(server.port, False, False)

    def test_a_server_that_loads_is_alive_and_not_ready(self):
        self.expect(Fake(b"-LOADING Redis is loading the dataset in memory\r\n").port, False, True)
        self.expect(Fake(b"-NOAUTH Authentication required.\r\n").port, False, True)
        self.expect(Fake(b"+PONG\r\n").port, True, True)

    def test_a_server_that_hangs_is_not_alive(self):
        silent = Fake(b"")
        self.assertFalse(run(ALIVE[0](), silent.port))

    def test_yaml_is_clean(self):
        found = subprocess.run(["yamllint", "--strict", str(KUBERNETES)], capture_output=True,
                               text=True, check=False)
        self.assertEqual((found.returncode, found.stdout), (0, ""))

    def test_what_belongs_together_has_the_same_names(self):
        found = documents()
        self.assertEqual(sorted(kind for kind, _ in found), sorted(
            ["ConfigMap", "PodDisruptionBudget", "Service", "Service", "StatefulSet"]))
        spec = found["StatefulSet", "leaderboard"]["spec"]
        labels = spec["template"]["metadata"]["labels"]
        self.assertEqual(spec["selector"]["matchLabels"], labels)
        self.assertEqual(found["PodDisruptionBudget", "leaderboard"]["spec"]["selector"]["matchLabels"],
                         labels)
        for name in ("leaderboard", spec["serviceName"]):
            service = found["Service", name]["spec"]
            self.assertEqual(service["selector"], labels)
            self.assertEqual(service["ports"][0]["targetPort"], container()["ports"][0]["name"])
        volumes = [volume["name"] for volume in spec["template"]["spec"]["volumes"]]
        volumes += [claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]]
        self.assertEqual(sorted(mount["name"] for mount in container()["volumeMounts"]),
                         sorted(volumes))
        # There is time for the drain, and more.
        config = found["ConfigMap", "leaderboard"]["data"]["leaderboard.conf"]
        drain_s = int(re.search(r"shutdown-drain-timeout (\d+)", config).group(1))
        self.assertGreater(spec["template"]["spec"]["terminationGracePeriodSeconds"], 2 * drain_s)
        self.assertEqual(NOMAD.count("{"), NOMAD.count("}"))
        kill_s = int(re.search(r'kill_timeout = "(\d+)s"', NOMAD).group(1))
        self.assertGreater(kill_s, 2 * int(re.search(r"drain-timeout (\d+)", NOMAD).group(1)))
