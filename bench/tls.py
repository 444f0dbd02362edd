"""full.py's part `tls`: leaderboard and redis-server --tls with the same certificate: CPU per request
over connections that are there, and per handshake."""
import subprocess
import tempfile
import time
from pathlib import Path

import compare
import plot
from compare import TOP10, ZADD, ZREVRANK, Row
from servers import SETTLE_S, Server, alternate, cores, free_port, pinned, say

MILLION = 1000000
TOP100 = "ZREVRANGE board 0 99 WITHSCORES"
HANDSHAKES = 3000
HANDSHAKE_CLIENTS = 20
NOTES = [
    "CPU, user and system, of the whole server per request; with TLS 1.3, AES-256-GCM, and a"
    " certificate with a P-256 key, as each side and OpenSSL choose them by themselves",
    "A handshake: redis-benchmark connects anew for each PING, without sessions of before; its"
    " operations a second are bounded by redis-benchmark, which shakes hands on the other core",
]


def make_certificate(directory):
    """Signed by itself. Returns the settings that name it."""
    certificate, key = Path(directory) / "server.crt", Path(directory) / "server.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost", "-days", "2",
                    "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    return ["--tls-cert-file", str(certificate), "--tls-key-file", str(key),
            "--tls-ca-cert-file", str(certificate), "--tls-auth-clients", "no"]


class TlsServer(Server):
    """Filled and asked without TLS, measured with it."""

    def __init__(self, name, path, settings):
        self.tls_port = free_port()
        super().__init__(name, path, ["--tls-port", str(self.tls_port), *settings])


class TlsRow(Row):
    def floor(self):
        row = super().floor()
        return TlsRow(row.name, row.title, row.command, row.requests, row.pipeline, row.clients)

    def measure(self, run, server, members, factor=1.0):
        def run_with_tls(server, command, *others):
            return run(server, f"--port {server.tls_port} --tls 1 {command}", *others)
        return super().measure(run_with_tls, server, members, factor)


def shake_hands(server, count):
    words = ["redis-benchmark", "--tls", "--insecure", "-p", str(server.tls_port), "-k", "0", "-c",
             str(HANDSHAKE_CLIENTS), "-n", str(count), "-q", "PING"]
    before, begun_at = server.cpu_ns(), time.monotonic()
    subprocess.run(words, capture_output=True, check=True, preexec_fn=pinned(cores()[1]))
    seconds = time.monotonic() - begun_at
    cpu_ns = server.cpu_ns() - before
    return {"us": cpu_ns / 1000 / count, "per_second": count / seconds,
            "busy": cpu_ns / 1e9 / seconds}


def rows_of_requests():
    rows = []
    for count, requests in ((1, 30000), (50, 100000), (1000, 100000)):
        words = f"{count:,} client{'s' if count > 1 else ''}"
        rows += [TlsRow(f"{title.lower()}-{count}", f"{title}, {words}", command, requests, 1, count)
                 for title, command in (("ZADD", ZADD), ("ZREVRANK", ZREVRANK))]
    rows += [TlsRow(f"pipeline-{title.lower()}", f"{title}, 50 clients, pipeline 32", command,
                    requests, 32, 50)
             for title, command, requests in (("ZADD", ZADD, 400000), ("ZREVRANK", ZREVRANK, 500000),
                                              ("top 10", TOP10, 200000), ("top 100", TOP100, 50000))]
    return rows


def measure(part):
    members = part.scaled(MILLION)
    with tempfile.TemporaryDirectory() as directory:
        settings = make_certificate(directory)
        for name, program in part.programs.items():
            part.servers[name] = TlsServer(name, program, settings)
            part.versions[name] = part.servers[name].version()
        part.fill(members)
        time.sleep(SETTLE_S)
        rows = part.measure(rows_of_requests(), members)
        count = max(200, int(HANDSHAKES * min(1.0, part.options.scale * 10)))
        cells = alternate(part.servers, part.options.rounds,
                          lambda server: shake_hands(server, count))
        rows.append({"name": "handshake", "title": "a handshake and a PING", "servers": cells})
        say("  handshake: " + ", ".join(f"{name} {cell['us']:.0f} us"
                                        for name, cell in cells.items()))
    subtitle = (f"One board of {members:,} members, with TLS; median of {part.options.rounds}"
                f" rounds")
    results = part.results(subtitle, rows=rows)
    part.write("tls", "TLS", NOTES, compare.cost_table(rows, part.versions),
               lambda results: plot.of_rows(results, results["subtitle"]), results)
