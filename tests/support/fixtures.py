"""Fixtures that any test may ask for: real servers on loopback, started and stopped here."""

from collections.abc import Iterator

import pytest
from tests.support.http_server import HttpServer, serving
from tests.support.postgres import Database, PostgresServer, running


@pytest.fixture
def http_server() -> Iterator[HttpServer]:
    """A fresh scripted HTTP server."""
    with serving() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL per test process, started when the first test asks for it."""
    with running() as server:
        yield server


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[Database]:
    """An empty database of the test's own."""
    with postgres_server.fresh_database() as fresh:
        yield fresh
