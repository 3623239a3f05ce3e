"""The world that playbooks act upon: a server that writes down every effect."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Effect = tuple[str, int]
"""Idempotency key and attempt."""


class Ledger(ThreadingHTTPServer):
    """Answers each effect with its value, after as many failures as it asks for."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Effect)
        self.effects: list[Effect] = []
        """In the order in which they began: the length of it is the time of the ledger."""
        self.values: list[Any] = []
        """What each was given, in the same order."""
        self.ended: list[Effect] = []
        """Those that were answered."""
        self.open = threading.Event()
        """Whether effects that take `seconds` are answered at once."""
        self.came: Callable[[int], None] = _nothing
        """Called with the number of the effect, before it is answered."""
        self.went: Callable[[int], None] = _nothing
        """Called after it was answered."""
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that is killed is what this is for."""


class _Effect(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Ledger

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key, ledger = self.headers["Idempotency-Key"], self.server
        with ledger.lock:
            ledger.effects.append((key, body["attempt"]))
            ledger.values.append(body["value"])
            number = len(ledger.effects)
        ledger.came(number)
        ledger.open.wait(body.get("seconds", 0))
        busy = body["attempt"] <= body["fail"]
        answer = json.dumps(None if busy else body["value"]).encode()
        self.send_response_only(503 if busy else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
        self.wfile.flush()
        with ledger.lock:
            ledger.ended.append((key, body["attempt"]))
        ledger.went(number)

    def log_message(self, format: str, *words: Any) -> None:
        """Nothing: the ledger is the record."""


def _nothing(_: int) -> None:
    pass


@contextmanager
def keeping() -> Iterator[Ledger]:
    """A ledger on loopback."""
    with Ledger() as ledger:
        thread = threading.Thread(target=ledger.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield ledger
        ledger.shutdown()
        thread.join()
