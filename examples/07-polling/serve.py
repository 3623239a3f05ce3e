"""What the example calls: a server whose report is not there the first three times."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.support.http_server import serving


@contextmanager
def services() -> Iterator[dict[str, Any]]:
    """The server lives as long as the example runs."""
    with serving() as server:
        server.fail("/api/v1/sales", times=3, status=404)
        yield {"workload": {"api_url": server.url}}
