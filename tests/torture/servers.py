"""A server under test, with its policy."""
from pathlib import Path

import process
import resp
from process import Ended as StartFailed  # noqa: F401


class Server(process.Server):
    """A server on a directory. policy: of appendfsync; "off": without a journal. Its log is beside the
    directory."""

    def __init__(self, program, directory, policy):
        self.policy = policy
        words = ("no",) if policy == "off" else ("yes", "--appendfsync", policy)
        super().__init__("--appendonly", *words, program=program, directory=directory, is_started=False)
        self.log = Path(directory).parent / (Path(directory).name + ".log")

    def client(self):
        return resp.Client(self.port, 20)

    def kill(self):
        if self.process is not None:
            super().kill()
