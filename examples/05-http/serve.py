"""What the example calls: a server that pages, echoes and answers with any status."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.http_server import serving


@contextmanager
def services() -> Iterator[dict[str, Any]]:
    """The server lives as long as the example runs."""
    with serving() as server:
        yield {"workload": {"api_url": server.url}}
