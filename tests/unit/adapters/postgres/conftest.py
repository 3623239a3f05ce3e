"""Tests of this folder may be `async def`, and have a log in a database of their own."""

from collections.abc import Iterator

import pytest
from tests.contracts.homes import PostgresHomes
from tests.support.asynchronous import pytest_pyfunc_call  # noqa: F401
from tests.support.postgres import Database, PostgresServer, running


@pytest.fixture
def homes(log_database: Database) -> PostgresHomes:
    return PostgresHomes(log_database)


@pytest.fixture(scope="module")
def own_server(made_clusters: None) -> Iterator[PostgresServer]:
    """A server that a test may stop; it is left running."""
    assert made_clusters is None
    with running() as server:
        yield server
