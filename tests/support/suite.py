"""Runs the unittests of a folder as tests/run wants it."""
import sys
import unittest

sys.dont_write_bytecode = True


def load(folder, names, pattern="test_*.py"):
    """Those with these names, or all; "-test_views": all but those of that file."""
    loader = unittest.TestLoader()
    if names and all(name.startswith("-") for name in names):
        names = sorted({path.stem for path in folder.glob(pattern)} - {name[1:] for name in names})
    return loader.loadTestsFromNames(names) if names else loader.discover(str(folder), pattern)


def run(suite):
    """How many have passed, and how many have not."""
    result = unittest.TextTestRunner(sys.stdout, verbosity=2).run(suite)
    failed = len(result.failures) + len(result.errors)
    return result.testsRun - failed, failed


def end(passed, failed):
    """The last line and the exit status."""
    print(f"{passed} passed, {failed} failed")
    sys.exit(0 if failed == 0 and passed > 0 else 1)
