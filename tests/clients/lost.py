"""A way to a server on which replies get lost."""
import re
import socket
import threading

import process

ID = re.compile(rb"\$4\r\nONCE\r\n\$\d+\r\n([^\r]+)")
LOSE = re.compile(rb"lose-(\d+)")


class Way:
    """The replies to the first n requests with the same id (ONCE) do not come back, if lose-n is in the request. Each
    request with an id is added to the list `seen` of the server."""

    def __init__(self, port):
        self.there, self.seen, self.lock = port, {}, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.noted = process.resp.Client(port)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def is_lost(self, request):
        """Is the reply to it?"""
        found, lose = ID.search(request), LOSE.search(request)
        if not found:
            return False
        with self.lock:
            tried = self.seen[found[1]] = self.seen.get(found[1], 0) + 1
            self.noted.ask("ZADD", "seen", tried, found[1])
        return bool(lose) and tried <= int(lose[1])

    def carry(self, client):
        """One connection, whose requests come one after another."""
        with client, socket.create_connection(("127.0.0.1", self.there)) as there:
            while request := client.recv(65536):
                there.sendall(request)
                reply = there.recv(65536)
                if self.is_lost(request):
                    return
                client.sendall(reply)

    def stop(self):
        self.listener.close()
        self.noted.close()
