"""Fixtures that any test may ask for: real servers on loopback, started and stopped here."""

from collections.abc import Iterator

import pytest
from tests.support.http_server import HttpServer, serving


@pytest.fixture
def http_server() -> Iterator[HttpServer]:
    """A fresh scripted HTTP server."""
    with serving() as server:
        yield server
