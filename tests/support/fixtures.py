"""
Fixtures that any test may ask for: real servers on loopback, started and stopped here.

Imports stand inside, because every test run loads this module and few need its servers.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from noetl.masking import KNOWN

if TYPE_CHECKING:
    from tests.support.http_server import HttpServer
    from tests.support.nats import NatsServer
    from tests.support.postgres import Database, PostgresServer


@pytest.fixture(autouse=True)
def forget_secrets() -> Iterator[None]:
    """What one test unlocked is no secret in the next."""
    yield
    KNOWN.clear()


@pytest.fixture
def http_server() -> "Iterator[HttpServer]":
    """A fresh scripted HTTP server."""
    from tests.support.http_server import serving

    with serving() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> "Iterator[PostgresServer]":
    """One PostgreSQL per test process, started when the first test asks for it."""
    from tests.support.postgres import running

    with running() as server:
        yield server


@pytest.fixture
def database(postgres_server: "PostgresServer") -> "Iterator[Database]":
    """An empty database of the test's own."""
    with postgres_server.fresh_database() as fresh:
        yield fresh


@pytest.fixture(scope="session")
def nats_server() -> "Iterator[NatsServer]":
    """One NATS with JetStream per test process, open to all."""
    from tests.support.nats import running

    with running() as server:
        yield server
