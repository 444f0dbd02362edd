"""A way to a server on which replies get lost."""
import re
import threading

import losing
import process

ID = re.compile(rb"\$4\r\nONCE\r\n\$\d+\r\n([^\r]+)")
LOSE = re.compile(rb"lose-(\d+)")


class Way(losing.Losing):
    """The replies to the first n requests with the same id (ONCE) do not come back, if lose-n is in the request. Each
    request with an id is added to the list `seen` of the server."""

    def __init__(self, port):
        self.seen, self.lock = {}, threading.Lock()
        self.noted = process.resp.Client(port)
        super().__init__(port)

    def loses(self, asked):
        found, lose = ID.search(asked), LOSE.search(asked)
        if not found:
            return False
        with self.lock:
            tried = self.seen[found[1]] = self.seen.get(found[1], 0) + 1
            self.noted.ask("ZADD", "seen", tried, found[1])
        return bool(lose) and tried <= int(lose[1])

    def stop(self):
        self.close()
        self.noted.close()
