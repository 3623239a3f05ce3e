"""What the example talks to: a server that takes mails, and one that takes the other messages."""

import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.http_server import serving

ANSWERS = {b"EHLO": b"250 mail", b"HELO": b"250 mail", b"DATA": b"354 go on", b"QUIT": b"221 bye"}


class Mail(socketserver.StreamRequestHandler):
    """As much of SMTP as a client needs to send a mail."""

    def handle(self) -> None:
        self.wfile.write(b"220 mail\r\n")
        while line := self.rfile.readline():
            word = line[:4].upper()
            self.wfile.write(ANSWERS.get(word, b"250 ok") + b"\r\n")
            if word == b"DATA":
                while self.rfile.readline() not in (b".\r\n", b""):
                    pass
                self.wfile.write(b"250 kept\r\n")
            if word == b"QUIT":
                return


@contextmanager
def services() -> Iterator[dict[str, Any]]:
    """Both live as long as the example runs."""
    with serving() as server, socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mail) as mail:
        thread = threading.Thread(target=mail.serve_forever)
        thread.start()
        try:
            yield {
                "workload": {
                    "mail": {"port": mail.server_address[1]},
                    "chat_url": f"{server.url}/echo",
                    "incidents_url": f"{server.url}/echo",
                }
            }
        finally:
            mail.shutdown()
            thread.join()
