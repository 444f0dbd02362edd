"""The README's examples on a server as it is after installation: they run, and mypy --strict has nothing to say."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import process

HOME = Path(__file__).resolve().parents[3] / "clients" / "python"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", (HOME / "README.md").read_text(), re.M | re.S)


# What is said is about the examples: libraries are installed.
CONFIG = """[mypy]
follow_imports = silent
[mypy-redis.*]
ignore_missing_imports = True
"""


class Readme(unittest.TestCase):
    def setUp(self):
        self.server = process.Server()
        self.addCleanup(self.server.stop)

    def run_example(self, example):
        path = os.pathsep.join(filter(None, (str(HOME), os.environ.get("PYTHONPATH"))))
        text = example.replace("port=6379", f"port={self.server.port}")
        self.assertNotEqual(text, example)
        done = subprocess.run([sys.executable, "-c", text], env={**os.environ, "PYTHONPATH": path}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def test_every_example_runs_on_a_default_server(self):
        self.assertEqual(len(EXAMPLES), 4)
        said = [self.run_example(example) for example in EXAMPLES]
        self.assertIn("0 bob 700 {'country': 'FR'}", said[0])
        self.assertTrue(said[0].endswith(" 1 650\n1\n"), said[0])
        self.assertIn("[0.5, 0.5]\nann 25 26.964294622 0\n", said[1])
        self.assertIn("Event(kind='top'", said[2])
        self.assertIn("member='kim', rank=0", said[2])
        self.assertEqual(said[3], "[{'member': 'ann', 'score': 50.5, 'rank': 1}]\n")

    def test_the_first_one_runs_twice(self):
        self.assertEqual(self.run_example(EXAMPLES[0]), self.run_example(EXAMPLES[0]))

    def test_mypy_strict_passes_on_every_example(self):
        """With the types of the redis-py that is tested; Debian's has none."""
        if shutil.which("mypy") is None:
            self.fail("mypy is missing: .ci/install-packages check")
        path = os.pathsep.join(filter(None, (str(HOME), os.environ.get("PYTHONPATH"))))
        with tempfile.TemporaryDirectory() as directory:
            names = []
            for number, example in enumerate(EXAMPLES):
                names.append(f"example_{number}.py")
                Path(directory, names[-1]).write_text(example)
            Path(directory, "mypy.ini").write_text(CONFIG)
            done = subprocess.run(["mypy", "--strict", "--cache-dir", os.path.join(directory, "cache"), *names],
                                  cwd=directory, env={**os.environ, "MYPYPATH": path, "PYTHONPATH": ""}, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            self.assertEqual(done.returncode, 0, done.stdout)
