"""The tarball of the server under test, unpacked and run: check_tarball. make arm64 does the same with the one for arm64."""
import subprocess
import unittest

from process import LIMIT_S, PROGRAM, ROOT, new_directory


class Tarball(unittest.TestCase):
    def test_it_runs_in_a_clean_directory(self):
        made = subprocess.run([ROOT / "deploy/make-tarball", PROGRAM, new_directory()], capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
        self.assertEqual(made.returncode, 0, made.stderr)
        checked = subprocess.run([ROOT / "tests/deploy/check_tarball", made.stdout.strip()], stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, timeout=4 * LIMIT_S, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout)
        self.assertTrue(checked.stdout.endswith("4 passed, 0 failed\n"), checked.stdout)
