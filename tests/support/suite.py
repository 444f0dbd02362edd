"""Runs the unittests of a folder as tests/run wants it."""
import sys
import unittest

sys.dont_write_bytecode = True


def flat(tests):
    for each in tests:
        yield from flat(each) if isinstance(each, unittest.TestSuite) else [each]


def load(folder, names, pattern="test_*.py"):
    """Those with these names, or all; without "-test_views" or "-test_views.People": those of that file or class."""
    loader = unittest.TestLoader()
    wanted = [name for name in names if not name.startswith("-")]
    found = loader.loadTestsFromNames(wanted) if wanted else loader.discover(str(folder), pattern)
    left_out = tuple(name[1:] + "." for name in names if name.startswith("-"))
    return unittest.TestSuite(test for test in flat(found) if not f"{test.id()}.".startswith(left_out))


def run(suite):
    """How many have passed, and how many have failed: who was skipped has not passed."""
    result = unittest.TextTestRunner(sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    return result.testsRun - failed - len(result.skipped), failed


def end(passed, failed):
    """The last line and the exit status."""
    print(f"{passed} passed, {failed} failed")
    sys.exit(0 if failed == 0 and passed > 0 else 1)
