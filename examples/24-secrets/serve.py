"""What the example needs: a server that repeats what it is sent, and a secret to send."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.http_server import serving


@contextmanager
def services() -> Iterator[dict[str, Any]]:
    """The server lives as long as the example runs."""
    with serving() as server:
        yield {
            "workload": {"api_url": server.url},
            "environment": {"EXAMPLE_TOKEN": "an-open-secret"},
        }
