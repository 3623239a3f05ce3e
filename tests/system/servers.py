"""A server with workers on a home of its own, as `noetl server start` makes it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.system.program import Answer, noetl

from noetl.api.home_token import FILE as TOKEN

NEUTRAL = {"NOETL_SERVER": "", "NOETL_TOKEN": "", "NOETL_CONTEXT": "", "NOETL_DB": ""}

BLOCKED = b"""apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: blocked, path: tests/blocked}
workflow:
  - step: start
    tool:
      - hold:
          kind: shell
          command: "sleep 600"
"""
FAILING = b"""apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: failing, path: tests/failing}
workflow:
  - step: start
    tool:
      - break:
          kind: shell
          command: "echo on my way; exit 3"
"""


class Node:
    """A home, and what runs on it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.url = ""

    def here(self, *words: str | Path, stdin: bytes = b"", **environment: str) -> Answer:
        """A command on the home itself."""
        given = {**NEUTRAL, "NOETL_HOME": str(self.home), **environment}
        return noetl(*words, stdin=stdin, **given)

    def there(self, *words: str | Path, stdin: bytes = b"", **environment: str) -> Answer:
        """The same command, asked of the server; its own home is another, its token the owner's."""
        elsewhere = {"NOETL_HOME": str(self.home / "elsewhere"), "NOETL_SERVER": self.url}
        if (self.home / TOKEN).exists():
            elsewhere["NOETL_TOKEN"] = (self.home / TOKEN).read_text().strip()
        return noetl(*words, stdin=stdin, **{**NEUTRAL, **elsewhere, **environment})

    def start(self, *words: str, **environment: Any) -> dict[str, Any]:
        answer = self.here("server", "start", "--port", "0", "--json", *words, **environment)
        assert answer.code == 0, answer
        [told] = answer.objects()
        self.url = told["url"]
        return told

    def status(self) -> dict[str, Any]:
        [told] = self.here("server", "status", "--json").objects()
        return told


@contextmanager
def node(home: Path, *words: str, workers: int = 1, **environment: Any) -> Iterator[Node]:
    """A server with workers; whatever is left of it at the end is stopped."""
    made = Node(home)
    try:
        made.start("--worker", str(workers), *words, **environment)
        yield made
    finally:
        made.here("worker", "stop")
        made.here("server", "stop")
