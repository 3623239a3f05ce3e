"""What the example calls: a server that fails twice before it answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.http_server import serving


@contextmanager
def services() -> Iterator[dict[str, Any]]:
    """The server lives as long as the example runs."""
    with serving() as server:
        server.fail("/api/v1/flaky", times=2, status=503)
        yield {"workload": {"api_url": server.url}}
