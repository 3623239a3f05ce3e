"""
A real ClickHouse on loopback: its engine out of a package, behind the HTTP interface of its server.

The engine runs in a process of its own (`python -m tests.support.clickhouse FOLDER`), because it
takes over threads and signals of the one that it is in.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import msgspec

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"Code: (\d+)")
STATUSES = {60: 404, 62: 400, 81: 404}
"""What the server answers for an exception of this code; 500 for all others."""


class ClickHouse:
    """What a test asks of it, beside what is sent to it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def rows(self, query: str) -> list[dict[str, Any]]:
        with urlopen(Request(self.url, data=f"{query} format JSONEachRow".encode())) as answer:
            return [msgspec.json.decode(line) for line in answer.read().splitlines()]

    def run(self, statement: str) -> None:
        with urlopen(Request(self.url, data=statement.encode())):
            pass


@contextmanager
def serving(folder: Path) -> Iterator[ClickHouse]:
    command = [sys.executable, "-m", "tests.support.clickhouse", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield ClickHouse(f"http://127.0.0.1:{int(process.stdout.readline())}/")
        finally:
            process.kill()


def serve(folder: str) -> None:
    """Answer requests until the process is ended."""
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from urllib.parse import parse_qsl, urlsplit

    session: Any = import_module("chdb.session").Session(folder)

    class Interface(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = dict(parse_qsl(urlsplit(self.path).query))
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            query = asked.pop("query", "")
            try:
                for name, value in asked.items():
                    session.query(f"set {name} = '{value}'")
                said = session.query(f"{query}\n{body}", "JSONEachRow").bytes()
            except Exception as wrong:
                self.refuse(str(wrong))
            else:
                self.answer(200, said)

        def refuse(self, message: str) -> None:
            found = CODE.search(message)
            code = int(found[1]) if found else 0
            self.answer(STATUSES.get(code, 500), message.encode(), code)

        def answer(self, status: int, body: bytes, code: int = 0) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            if code:
                self.send_header("X-ClickHouse-Exception-Code", str(code))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Not into the output of the tests."""

    server = HTTPServer(("127.0.0.1", 0), Interface)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1])
