"""deploy/helm: what Helm makes of the chart, for several sets of values, is what the manifests of deploy/kubernetes
have, of kinds and fields that Kubernetes knows, with settings that a server takes; and a pod's role at its start."""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import jsonschema
import kubernetes.client
import yaml

from process import LIMIT_S, PEERS, PROGRAM as SERVER, ROOT, wait_until

CHART = ROOT / "deploy/helm/leaderboard"
SECRET = "/etc/leaderboard-secret/"
TLS = {"tls": {"enabled": True, "existingSecret": "arena-tls"}}
SENTINEL = {"sentinel": {"enabled": True}}
MONITORED = {"metrics": {"enabled": True, "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}}}
ALL = {**TLS, **SENTINEL, **MONITORED, "fullnameOverride": "arena",
       "service": {"type": "LoadBalancer", "annotations": {"a/b": "c"}},
       "imagePullSecrets": [{"name": "registry"}], "persistence": {"storageClass": "fast"},
       "podAnnotations": {"note": "here"}, "nodeSelector": {"disk": "ssd"},
       "tolerations": [{"key": "boards", "operator": "Exists"}],
       "podDisruptionBudget": {"enabled": False}}
VALUES = {"defaults": {}, "tls": {**TLS, "metrics": {"enabled": True}}, "sentinel": SENTINEL,
          "monitored": MONITORED, "all": ALL}
PODS = "arena-pods.games.svc"


class Renderer:
    """Helm, if it is there; else render.go, which has the engine that Helm has."""

    def __init__(self, directory):
        self.directory = directory
        self.program = directory / "render"
        environment = {**os.environ, "GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOFLAGS": "",
                       "GOCACHE": str(SERVER.parent / "go")}
        subprocess.run(["go", "build", "-o", str(self.program), str(ROOT / "tests/deploy/helm/render.go")],
                       check=True, env=environment, timeout=10 * LIMIT_S)

    def write(self, values):
        path = self.directory / "values.yaml"
        path.write_text(json.dumps(values))
        return str(path)

    def here(self, values):
        return subprocess.run([str(self.program), str(CHART), "arena", "games", self.write(values)],
                              capture_output=True, text=True, check=False, timeout=LIMIT_S)

    @staticmethod
    def documents(text):
        return [found for found in yaml.safe_load_all(text) if found]

    def helm(self, values):
        done = subprocess.run(["helm", "template", "arena", str(CHART), "--namespace", "games", "--values",
                               self.write(values)], capture_output=True, text=True, check=True, timeout=LIMIT_S)
        return self.documents(done.stdout)


def free_ports(count):
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def fields_unknown(value, kind, where):
    """Fields of an object that its class in Kubernetes' API does not have, and what has another type."""
    if kind.startswith(("list[", "dict(")):
        inner = re.fullmatch(r"list\[(.*)\]|dict\(str, (.*)\)", kind)
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [found for key, item in items
                for found in fields_unknown(item, inner[1] or inner[2], f"{where}.{key}")]
    model = getattr(kubernetes.client, kind, None)
    if model is None:
        types = {"str": str, "int": int, "bool": bool, "object": (str, int)}
        return [] if isinstance(value, types[kind]) and isinstance(value, bool) == (kind == "bool") else \
            [f"{where}: {value!r} is not of type {kind}"]
    names = {name: attribute for attribute, name in model.attribute_map.items()}
    return [f"{where}.{key}" for key in value if key not in names] + [
        found for key, item in value.items() if key in names
        for found in fields_unknown(item, model.openapi_types[names[key]], f"{where}.{key}")]


class Chart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="leaderboard-chart-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.directory = Path(cls.scratch.name)
        cls.renderer = Renderer(cls.directory)

    def render(self, values):
        done = self.renderer.here(values)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split("\nNOTES:\n")

    def documents(self, values):
        found = self.renderer.documents(self.render(values)[0])
        for document in found:
            self.assertEqual(document["metadata"]["labels"]["app.kubernetes.io/name"], "leaderboard")
        return {(document["kind"], document["metadata"]["name"]): document for document in found}

    def pod(self, values):
        return self.documents(values)["StatefulSet", "arena"]["spec"]["template"]["spec"]

    def test_the_values_satisfy_their_schema_which_refuses_mistakes(self):
        schema = json.loads((CHART / "values.schema.json").read_text())
        jsonschema.Draft7Validator.check_schema(schema)
        defaults = yaml.safe_load((CHART / "values.yaml").read_text())
        judge = jsonschema.Draft7Validator(schema)
        for values in [defaults, *VALUES.values()]:
            self.assertEqual([error.message for error in judge.iter_errors(values)], [])
        self.assertEqual(set(defaults), set(schema["properties"]) - {"global"})
        for mistake in ({"replicas": 3}, {"tls": {"enabled": True}}, {"tls": {"authClients": True}},
                        {"sentinel": {"replicas": 2}}, {"service": {"port": 65536}},
                        {"resources": {"limits": {"memory": "4 GB"}}}, {"persistence": {"size": 20}},
                        {"fullnameOverride": "Arena"}, {"metrics": {"serviceMonitor": {"interval": "often"}}}):
            self.assertFalse(judge.is_valid(mistake), mistake)

    def test_the_chart_has_the_server_s_version(self):
        about = yaml.safe_load((CHART / "Chart.yaml").read_text())
        version = re.search(r'SERVER_VERSION "(.*)"', (ROOT / "server/system/version.h").read_text())[1]
        self.assertEqual((about["apiVersion"], about["name"], about["version"], about["appVersion"]),
                         ("v2", "leaderboard", version, version))

    def test_the_chart_s_own_yaml_is_clean(self):
        found = subprocess.run(["yamllint", "--strict", str(CHART / "Chart.yaml"), str(CHART / "values.yaml")],
                               capture_output=True, text=True, check=False)
        self.assertEqual((found.returncode, found.stdout), (0, ""))

    def test_what_is_rendered_is_clean_yaml_of_fields_that_kubernetes_has(self):
        for name, values in VALUES.items():
            text = self.render(values)[0]
            path = self.directory / f"{name}.yaml"
            path.write_text(text.strip() + "\n")
            # The script's lines are as long as a script's may be.
            rules = "{extends: default, rules: {line-length: disable, document-start: disable}}"
            found = subprocess.run(["yamllint", "--strict", "-d", rules, str(path)], capture_output=True, text=True,
                                   check=False)
            self.assertEqual((found.returncode, found.stdout), (0, ""), name)
            for document in self.renderer.documents(text):
                if document["kind"] == "ServiceMonitor":
                    continue  # the operator's, not Kubernetes'
                self.assertEqual(fields_unknown(document, "V1" + document["kind"], document["kind"]), [], name)
        self.assertEqual(fields_unknown({"spec": {"replica": 1, "replicas": "1"}}, "V1StatefulSet", "it"),
                         ["it.spec.replica", "it.spec.replicas: '1' is not of type int"])

    @unittest.skipUnless(shutil.which("helm"), "needs helm")
    def test_helm_renders_the_same(self):
        for values in VALUES.values():
            key = lambda document: (document["kind"], document["metadata"]["name"])
            self.assertEqual(sorted(self.renderer.helm(values), key=key),
                             sorted(self.documents(values).values(), key=key))
            subprocess.run(["helm", "lint", "--strict", str(CHART), "--values", self.renderer.write(values)],
                           check=True, timeout=LIMIT_S)

    def test_by_default_it_is_what_the_manifests_are(self):
        rendered = self.documents({})
        text = "".join(path.read_text() for path in sorted((ROOT / "deploy/kubernetes").glob("*.yaml")))
        manifests = {(found["kind"], found["metadata"]["name"].replace("leaderboard", "arena")): found
                     for found in self.renderer.documents(text)}
        self.assertEqual(set(rendered), set(manifests))

        def compare(wanted, found, where):
            """All that the manifest says, the chart says; names and labels are its own."""
            if isinstance(wanted, dict):
                for key in wanted.keys() - {"labels", "matchLabels", "selector"}:
                    self.assertIn(key, found, where)
                    compare(wanted[key], found[key], f"{where}.{key}")
            elif isinstance(wanted, list):
                self.assertEqual(len(wanted), len(found), where)
                for item, other in zip(wanted, found):
                    compare(item, other, where)
            elif wanted in ("leaderboard", "leaderboard-pods") and not where.endswith("containers.name"):
                self.assertEqual(found, wanted.replace("leaderboard", "arena"), where)
            else:
                self.assertEqual(found, wanted, where)
        for key, manifest in manifests.items():
            compare(manifest, rendered[key], key[0])

    def test_names_that_belong_together(self):
        for values in VALUES.values():
            found = self.documents(values)
            stateful = found["StatefulSet", "arena"]["spec"]
            labels = stateful["template"]["metadata"]["labels"]
            self.assertEqual(stateful["selector"]["matchLabels"], labels)
            containers = stateful["template"]["spec"]["containers"]
            ports = {port["name"] for container in containers for port in container["ports"]}
            for name in ("arena", stateful["serviceName"]):
                service = found["Service", name]["spec"]
                self.assertEqual(service["selector"], labels)
                self.assertLessEqual({port["targetPort"] for port in service["ports"]}, ports)
            volumes = {volume["name"] for volume in stateful["template"]["spec"]["volumes"]} | {"data"}
            for container in containers + stateful["template"]["spec"].get("initContainers", []):
                self.assertEqual({mount["name"] for mount in container["volumeMounts"]}, volumes)
                self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
            if ("ServiceMonitor", "arena") in found:
                monitor = found["ServiceMonitor", "arena"]["spec"]
                self.assertEqual(monitor["selector"]["matchLabels"].items() - found[
                    "Service", stateful["serviceName"]]["metadata"]["labels"].items(), set())
                self.assertIn(monitor["endpoints"][0]["port"], ports)
        self.assertIn("ServiceMonitor", str(self.documents(MONITORED).keys()))
        self.assertNotIn(("PodDisruptionBudget", "arena"), self.documents(ALL))
        self.assertEqual(self.documents(SENTINEL)["PodDisruptionBudget", "arena"]["spec"]["maxUnavailable"], 1)

    def test_other_settings_are_other_pods(self):
        def checksum(values):
            metadata = self.documents(values)["StatefulSet", "arena"]["spec"]["template"]["metadata"]
            return metadata["annotations"]["checksum/config"]
        self.assertEqual(checksum({}), checksum({"resources": {"limits": {"memory": "8Gi"}}}))
        self.assertNotEqual(checksum({}), checksum({"config": "maxmemory 6gb\n"}))

    def test_tls_without_a_secret_is_refused(self):
        self.assertIn("tls.existingSecret", self.renderer.here({"tls": {"enabled": True}}).stderr)

    def test_probes_speak_tls_where_the_port_does(self):
        for values, words in ((TLS, "--tls --cacert /etc/leaderboard-tls/ca.crt"),
                              ({"tls": {**TLS["tls"], "authClients": "yes"}},
                               "--tls --cacert /etc/leaderboard-tls/ca.crt --cert /etc/leaderboard-tls/tls.crt "
                               "--key /etc/leaderboard-tls/tls.key")):
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                command = " ".join(self.pod(values)["containers"][0][probe]["exec"]["command"])
                self.assertTrue(command.startswith("leaderboard-server --ping 6379 "), command)
                self.assertTrue(command.endswith(" " + words), command)

    def secrets(self):
        """Files of a Secret made as the chart's README.md says, and of certificates."""
        made = self.directory / "secret"
        if not made.exists():
            made.mkdir()
            block = re.search(r"^```sh\n(.*?)^```", (CHART / "README.md").read_text(), re.M | re.S)[1]
            (self.directory / "kubectl").write_text(
                "#!/bin/sh\nfor word; do case $word in --from-literal=*) word=${word#*=}\n"
                f"printf %s \"${{word#*=}}\" >{made}/\"${{word%%=*}}\" ;; esac; done\n")
            (self.directory / "helm").write_text("#!/bin/sh\necho helm \"$@\"\n")
            for name in ("kubectl", "helm"):
                (self.directory / name).chmod(0o755)
            subprocess.run(["bash", "-e", "-c", block], check=True, stdout=subprocess.DEVNULL,
                           env={**os.environ, "PATH": f"{self.directory}:{os.environ['PATH']}"})
            subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=arena",
                            "-keyout", made / "tls.key", "-out", made / "tls.crt"], check=True,
                           stderr=subprocess.DEVNULL)
            shutil.copy(made / "tls.crt", made / "ca.crt")
        return made

    def config(self, name, values, port=6379, metrics_port=9121):
        """The settings in a file, with the Secrets and the volume in the test's directory."""
        text = self.documents(values)["ConfigMap", "arena"]["data"]["leaderboard.conf"]
        text = self.here(text).replace("port 9121", f"port {metrics_port}").replace("/data", str(self.directory))
        path = self.directory / f"{name}.conf"
        path.write_text(text.replace("port 6379", f"port {port}"))
        return path

    def here(self, text):
        made = self.secrets()
        return text.replace(SECRET, f"{made}/").replace("/etc/leaderboard-tls/", f"{made}/")

    def test_probes_and_metrics_of_a_server_with_tls(self):
        port, metrics_port = free_ports(2)
        values = {"tls": {**TLS["tls"], "authClients": "yes"}, **MONITORED}
        server = subprocess.Popen([str(SERVER), str(self.config("probed", values, port, metrics_port))],
                                  stdout=subprocess.DEVNULL)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)

        def passes(probe):
            command = [str(port) if word == "6379" else self.here(word)
                       for word in self.pod(values)["containers"][0][probe]["exec"]["command"]]
            return subprocess.run([str(SERVER), *command[1:]], stdout=subprocess.DEVNULL, check=False,
                                  timeout=LIMIT_S).returncode == 0
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            wait_until(lambda name=probe: passes(name), probe, step_s=0.1)
        user = ":".join((self.secrets() / name).read_text() for name in ("metrics-username", "metrics-password"))
        said = subprocess.run(["curl", "-s", "--cacert", str(self.secrets() / "ca.crt"), "-u", user, "--resolve",
                               f"arena:{metrics_port}:127.0.0.1", f"https://arena:{metrics_port}/metrics"],
                              capture_output=True, text=True, check=False, timeout=LIMIT_S).stdout
        self.assertIn("leaderboard_build_info", said)

    def test_a_server_takes_the_settings(self):
        for name, values in VALUES.items():
            path = self.config(name, values)
            done = subprocess.run([str(SERVER), "--check-config", str(path)], capture_output=True, text=True,
                                  check=False, timeout=LIMIT_S)
            self.assertEqual((done.returncode, done.stdout), (0, f"{path}: no errors\n"), name)

    def test_the_notes_say_where_clients_connect(self):
        self.assertIn("arena.games.svc:6379.", self.render({})[1])
        self.assertIn("arena.games.svc:6379 with TLS.", self.render(TLS)[1])
        self.assertIn("3 servers with Sentinel", self.render(SENTINEL)[1])

    def test_the_role_at_the_start_of_a_pod(self):
        """What the other pods' Sentinels say, and what this pod's has said: the master that the two files name."""
        made = self.secrets()
        for name, text in self.documents(SENTINEL)["ConfigMap", "arena"]["data"].items():
            (self.directory / name).write_text(text)
        tools = self.directory / "tools"
        tools.mkdir()
        (tools / "redis-cli").write_text('#!/bin/sh\necho "$2" >>"$DATA/asked"\n'
                                         'cat "$DATA/answers-of-$2" 2>/dev/null\n')
        (tools / "redis-cli").chmod(0o755)
        environment = {entry["name"]: entry["value"] for entry in self.pod(SENTINEL)["initContainers"][0]["env"]}
        self.assertEqual(environment["PODS"], PODS)
        names = [f"arena-{i}.{PODS}" for i in range(3)]
        earlier = (f"sentinel monitor leaderboard {names[2]} 6379 2\nsentinel myid abc\n"
                   "sentinel config-epoch leaderboard 7\n"
                   f"sentinel known-replica leaderboard {names[0]} 6379\n"
                   f"sentinel known-replica leaderboard {names[1]} 6379\n")
        for pod, answers, file, master in (
                (0, {}, None, 0), (1, {}, None, 0),
                (1, {0: names[2]}, None, 2), (0, {1: "", 2: names[1]}, None, 1),
                (0, {1: "ERR No such master with that name"}, None, 0),
                (0, {}, earlier, 2), (2, {}, earlier, 2), (0, {1: names[1]}, earlier, 1)):
            data = self.directory / "data"
            shutil.rmtree(data, ignore_errors=True)
            data.mkdir()
            for number, answer in answers.items():
                (data / f"answers-of-{names[number]}").write_text(f"{answer}\n6379\n")
            if file:
                (data / "sentinel.conf").write_text(file)
            subprocess.run(["sh", str(self.directory / "role.sh")], check=True, timeout=LIMIT_S,
                           stdout=subprocess.DEVNULL,
                           env={**os.environ, **environment, "HOSTNAME": f"arena-{pod}", "CONF": str(self.directory),
                                "SECRET": str(made), "DATA": str(data), "PATH": f"{tools}:{os.environ['PATH']}"})
            said = (data / "leaderboard.conf").read_text()
            self.assertEqual(re.findall("^replicaof (.*)$", said, re.M),
                             [] if pod == master else [f"{names[master]} 6379"])
            self.assertIn(f"replica-announce-ip {names[pod]}\n", said)
            said = (data / "sentinel.conf").read_text()
            self.assertEqual(re.findall("^sentinel monitor leaderboard (.*)$", said, re.M), [f"{names[master]} 6379 2"])
            self.assertEqual("sentinel myid abc\n" in said, bool(file))
            self.assertNotIn(f"known-replica leaderboard {names[master]} ", said)
            self.assertEqual(said.count("known-replica"), file.count("known-replica") - (master != 2) if file else 0)
            self.assertNotIn(names[pod], (data / "asked").read_text().split("\n"))
            self.assertEqual((data / "leaderboard.conf").stat().st_mode & 0o777, 0o600)

    def test_three_pods_choose_a_master_and_find_it_again(self):
        """Servers and Sentinels as the pods have them, in one network namespace: each has an address of its own, and
        another one when it comes back."""
        holder = self.namespace()
        pods = [Pod(self, holder, number) for number in range(3)]
        Pod.name_all(pods)
        for pod in pods:
            pod.start_server()
        self.wait_for_replicas(pods[0])
        for pod in pods:
            pod.start_sentinel()
        # Sentinels that have found each other and the replicas can replace the master.
        wait_until(lambda: all(f"status=ok,address={pods[0].name}:6379,slaves=2,sentinels=3" in
                               pod.ask_sentinel("INFO", "sentinel") for pod in pods), "Sentinels that know everybody")
        self.assertEqual(pods[0].ask("ZADD", "board", "1", "member"), "1")
        wait_until(lambda: pods[2].ask("ZCARD", "board") == "1", "the member on a replica")
        pods[0].kill()
        wait_until(lambda: {pods[1].master(), pods[2].master()} in ({pods[1].name}, {pods[2].name}), "a failover")
        new = pods[1] if pods[1].master() == pods[1].name else pods[2]
        pods[0].address = "127.0.0.21"
        Pod.name_all(pods)
        pods[0].start_server()  # it is told at its start, and never takes itself for the master
        self.assertIn(f"replicaof {new.name} 6379", (pods[0].data / "leaderboard.conf").read_text())
        pods[0].start_sentinel()
        self.wait_for_replicas(new)
        for pod in pods:
            pod.kill()
            pod.address = pod.address.replace("0.0.", "0.1.")
        Pod.name_all(pods)
        for pod in pods:
            pod.start_server()
        self.wait_for_replicas(new)
        for pod in pods:
            pod.start_sentinel()
        wait_until(lambda: {pod.master() for pod in pods} == {new.name}, "one master for all Sentinels")
        new.kill()
        rest = [pod for pod in pods if pod is not new]
        wait_until(lambda: {pod.master() for pod in rest} < {pod.name for pod in rest}, "another failover")
        self.assertEqual([pod.ask("ZCARD", "board") for pod in rest], ["1"] * 2)

    def namespace(self):
        hosts = self.directory / "hosts"
        hosts.touch()
        script = f"ip link set lo up && mount --bind {hosts} /etc/hosts && echo ready && exec sleep 600"
        holder = subprocess.Popen(["unshare", "--mount", "--net", "sh", "-c", script], stdout=subprocess.PIPE,
                                  text=True, stderr=subprocess.DEVNULL)
        self.addCleanup(holder.communicate)
        self.addCleanup(holder.kill)
        if holder.stdout.readline() != "ready\n" or not (PEERS / "redis-sentinel").exists():
            self.skipTest("needs namespaces and redis-sentinel")
        return ["nsenter", "--target", str(holder.pid), "--mount", "--net"]

    @staticmethod
    def wait_for_replicas(pod):
        wait_until(lambda: "connected_slaves:2" in pod.ask("INFO", "replication"), "two replicas", step_s=0.1)


class Pod:
    def __init__(self, test, holder, number):
        self.test, self.holder, self.name = test, holder, f"arena-{number}.{PODS}"
        self.address = f"127.0.0.{11 + number}"
        self.secret = test.secrets()
        self.conf, self.data = (test.directory / f"{kind}-{number}" for kind in ("conf", "volume"))
        self.conf.mkdir()
        self.data.mkdir()
        values = {"sentinel": {"enabled": True, "downAfterMilliseconds": 1000}}
        for name, text in test.documents(values)["ConfigMap", "arena"]["data"].items():
            text = text.replace(SECRET, f"{self.secret}/").replace("dir /data", f"dir {self.data}")
            text = text.replace("bind * -::*", "bind ADDRESS").replace("port 26379", "port 26379\nbind ADDRESS")
            (self.conf / f"{name}.any").write_text(text)
        self.spec = test.pod(values)
        self.environment = {**os.environ, "HOSTNAME": f"arena-{number}", "CONF": str(self.conf),
                            "SECRET": str(self.secret), "DATA": str(self.data)}
        self.environment.update((entry["name"], entry["value"]) for entry in self.spec["initContainers"][0]["env"])
        self.processes = []

    @staticmethod
    def name_all(pods):
        """As DNS does, at their addresses of now."""
        (pods[0].test.directory / "hosts").write_text("127.0.0.1 localhost\n" + "".join(
            f"{pod.address} {pod.name}\n" for pod in pods))

    def run(self, *words):
        return subprocess.run([*self.holder, *words], capture_output=True, text=True, check=False, timeout=LIMIT_S,
                              env={**self.environment, "REDISCLI_AUTH": (self.secret / "password").read_text()}
                              ).stdout.strip()

    def start_server(self):
        for path in self.conf.glob("*.any"):
            path.with_suffix("").write_text(path.read_text().replace("ADDRESS", self.address))
        self.run("sh", str(self.conf / "role.sh"))
        self.start(0, SERVER)

    def start_sentinel(self):
        self.start(1, PEERS / "redis-sentinel")

    def start(self, number, program):
        container = self.spec["containers"][number]
        words = [word.replace("/data/", f"{self.data}/") for word in container["command"][1:]]
        with open(self.data / f"{container['name']}.log", "a") as log:
            process = subprocess.Popen([*self.holder, str(program), *words], stdout=log, stderr=log)
        self.test.addCleanup(process.wait)
        self.test.addCleanup(process.kill)
        self.processes.append(process)

    def kill(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes = []

    def ask(self, *words):
        return self.run("redis-cli", "-h", self.address, *words)

    def ask_sentinel(self, *words):
        return self.run("env", "-u", "REDISCLI_AUTH", "redis-cli", "-h", self.address, "-p", "26379", *words)

    def master(self):
        return self.ask_sentinel("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "leaderboard").split("\n")[0]


if __name__ == "__main__":
    sys.exit("tests/deploy/run runs it")
