"""One double is one score, as in Redis, in all forms in which programs print it: Python, PHP, Node and Java."""
import os
import random
import shutil
import struct
import subprocess
import tempfile
import unittest
from pathlib import Path

import servers

COUNT = 100000 if not os.environ.get("LEADERBOARD_TEST_SHORT") else 20000
STEP = 5000  # commands sent at once

# Each reads doubles, eight bytes each, and prints them as programs of its language do: what it writes as text, or
# sends for a number. A form is a column.
NODE = """
const bytes = require("fs").readFileSync(0);
const lines = [];
for (let at = 0; at < bytes.length; at += 8) {
    const number = bytes.readDoubleLE(at);
    lines.push([String(number), number.toPrecision(17), number.toExponential(), JSON.stringify(number)].join(" "));
}
process.stdout.write(lines.join("\\n") + "\\n");
"""
PHP = """
$bytes = stream_get_contents(STDIN);
foreach (unpack("e*", $bytes) as $number) {
    ini_set("precision", 17);
    $of_precision = (string)$number;
    ini_set("precision", -1);
    printf("%s %s %s %s\\n", $of_precision, (string)$number, sprintf("%.17g", $number), json_encode($number));
}
"""
JAVA = """
import java.io.*;
import java.nio.*;
public class Forms {
    public static void main(String[] args) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(System.in.readAllBytes()).order(ByteOrder.LITTLE_ENDIAN);
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 16), false);
        while (bytes.hasRemaining()) {
            double number = bytes.getDouble();
            out.print(Double.toString(number) + " " + new java.math.BigDecimal(number).toPlainString() + " "
                      + String.format(java.util.Locale.ROOT, "%.16e", number) + "\\n");
        }
        out.flush();
    }
}
"""


def random_double(least, most):
    """As time() and sums of it: with some decimals, or all that a double has."""
    number = random.uniform(least, most)
    digits = random.randrange(12)
    return round(number, digits) if digits < 8 else number


def by_python(numbers):
    return [[repr(number), f"{number:.17g}", f"{number:.16e}", f"{number:.20f}"] for number in numbers]


def by_program(command, numbers):
    """None: the program is not here."""
    if shutil.which(command[0]) is None:
        return None
    out = subprocess.run(command, input=struct.pack(f"<{len(numbers)}d", *numbers), stdout=subprocess.PIPE, check=True)
    rows = [line.split() for line in out.stdout.decode().splitlines()]
    assert len(rows) == len(numbers), command[0]
    return rows


def by_java(numbers):
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "Forms.java")
        path.write_text(JAVA)
        return by_program(["java", "-XX:TieredStopAtLevel=1", str(path)], numbers)


def forms_of(numbers):
    """{language: a row of texts for each number}"""
    forms = {"python": by_python(numbers), "node": by_program(["node", "-e", NODE], numbers),
             "php": by_program(["php", "-r", PHP], numbers), "java": by_java(numbers)}
    present = {language: rows for language, rows in forms.items() if rows is not None}
    for language, rows in present.items():
        for number, row in zip(numbers, rows):
            for text in row:
                assert float(text) == number, (language, text, number)
    return present


def ask(client, commands):
    answers = []
    for begin in range(0, len(commands), STEP):
        pipe = client.pipeline(transaction=False)
        for command in commands[begin:begin + STEP]:
            pipe.execute_command(*command)
        answers += pipe.execute(raise_on_error=False)
    return answers


class Doubles(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.redis = servers.start_redis()
        cls.addClassCleanup(cls.redis.stop)
        cls.ours = servers.Server()
        cls.addClassCleanup(cls.ours.stop)

    def check(self, layout, least, most, count):
        """What one form has written, every other one finds, ranges over and removes: in Redis, and here."""
        numbers = list({random_double(least, most) for _ in range(count)})
        forms = forms_of(numbers)
        texts = [[text for rows in forms.values() for text in rows[i]] for i in range(len(numbers))]
        # Of number i, form a is written, and forms b, c, d ... come after it.
        written = [texts[i][i % len(texts[i])] for i in range(len(numbers))]
        counts = [("ZCOUNT", "b", texts[i][form % len(texts[i])], texts[i][(form + 1) % len(texts[i])])
                  for i in range(len(numbers)) for form in range(i, i + 4)]
        beyond = [("ZCOUNT", "b", "(" + texts[i][(i + 2) % len(texts[i])], texts[i][(i + 3) % len(texts[i])])
                  for i in range(len(numbers))]
        same = [("ZADD", "b", "CH", texts[i][(i + 5) % len(texts[i])], f"m{i}") for i in range(len(numbers))]
        removed = [("ZREMRANGEBYSCORE", "b", texts[i][(i + 1) % len(texts[i])], texts[i][(i + 4) % len(texts[i])])
                   for i in range(len(numbers))]
        answers = {}
        for name, server in (("redis", self.redis), ("ours", self.ours)):
            client = server.raw_client()
            client.execute_command("DEL", "b")
            if name == "ours":
                client.execute_command("LB.CREATE", "b", "LAYOUT", layout)
            added = ask(client, [("ZADD", "b", text, f"m{i}") for i, text in enumerate(written)])
            self.assertEqual(set(added), {1}, name)
            scores = ask(client, [("ZSCORE", "b", f"m{i}") for i in range(len(numbers))])
            self.assertEqual([float(score) for score in scores], numbers, name)
            if name == "ours":
                self.assertTrue(all(len(score) <= 19 for score in scores))
            answers[name] = [ask(client, commands) for commands in (counts, beyond, same)]
            order = client.execute_command("ZRANGE", "b", 0, -1)
            self.assertEqual(order, [f"m{i}".encode() for i in sorted(range(len(numbers)), key=numbers.__getitem__)])
            answers[name].append(ask(client, removed))
            self.assertEqual(client.execute_command("ZCARD", "b"), 0, name)
        for got, wanted in zip(answers["ours"], answers["redis"]):
            misses = sum(a != b for a, b in zip(got, wanted))
            self.assertEqual(misses, 0, f"{layout}: {misses} of {len(got)}, forms of {', '.join(forms)}")
        self.assertEqual(set(answers["redis"][0]), {1})
        self.assertEqual(set(answers["redis"][1]), {0})
        self.assertEqual(set(answers["redis"][2]), {0})

    def test_seconds(self):
        self.check("seconds", 1e9, 2.2e9, COUNT)

    def test_decimals(self):
        self.check("decimals", 1e9, 2.2e9, COUNT // 10)
        self.check("decimals", -9e11, -1e9, COUNT // 10)

    def test_milliseconds(self):
        self.check("milliseconds", 1.2e12, 2.1e12, COUNT // 10)

    def test_more_digits_than_a_double_has(self):
        client = self.ours.client()
        client.execute_command("LB.CREATE", "more", "LAYOUT", "seconds")
        self.assertEqual(client.execute_command("ZADD", "more", "1318516439.85713124", "a"), 1)
        self.assertEqual(client.zscore("more", "a"), 1318516439.85713124)
        self.assertEqual(client.zrangebyscore("more", "1318516439.8571312", "1318516439.857131242752075"), [b"a"])

    def test_a_sum_is_a_double_too(self):
        client = self.ours.client()
        client.execute_command("LB.CREATE", "sums", "LAYOUT", "seconds")
        client.zadd("sums", {"a": 1318516439.8571312})
        for step in range(500):
            client.zincrby("sums", (step % 7) / 10, "a")
        score = client.zscore("sums", "a")
        for text in (repr(score), f"{score:.17g}", f"{score:.25f}"):
            self.assertEqual(client.zcount("sums", text, text), 1, text)
