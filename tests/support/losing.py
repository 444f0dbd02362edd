"""A way between clients and a server on which answers get lost."""
import socket
import threading


class Losing:
    """What clients ask reaches the server, and is done. Of some answers nothing comes back, and the connection ends."""

    def __init__(self, port):
        self.there = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def loses(self, asked):
        """The answer to this?"""
        raise NotImplementedError

    def serve(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        """One connection, whose requests come one after another."""
        with client, socket.create_connection(("127.0.0.1", self.there)) as there:
            while asked := client.recv(65536):
                there.sendall(asked)
                answer = there.recv(65536)
                if self.loses(asked):
                    return
                client.sendall(answer)

    def close(self):
        self.listener.close()
