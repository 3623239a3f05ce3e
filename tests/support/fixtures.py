"""
Fixtures that any test may ask for: real servers on loopback, started and stopped here.

Imports stand inside, because every test run loads this module and few need its servers.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from noetl.masking import KNOWN

if TYPE_CHECKING:
    from tests.support.clickhouse import ClickHouse
    from tests.support.collector import Collector
    from tests.support.gcs import GcsPlace
    from tests.support.http_server import HttpServer
    from tests.support.nats import NatsServer
    from tests.support.podman import Podman
    from tests.support.postgres import Database, PostgresServer
    from tests.support.s3 import S3Place
    from tests.support.snowflake import SnowPlace


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
def made_clusters() -> Iterator[None]:
    """Whoever starts a PostgreSQL from now on, or a child of this process, copies its cluster."""
    from tests.support.postgres import made_once

    with made_once():
        yield


@pytest.fixture(scope="session")
def postgres_server(made_clusters: None) -> "Iterator[PostgresServer]":
    """One PostgreSQL per test process, started when the first test asks for it."""
    from tests.support.postgres import running

    assert made_clusters is None
    with running() as server:
        yield server


@pytest.fixture
def s3_server() -> "Iterator[S3Place]":
    """An S3 with one empty bucket."""
    from tests.support.s3 import serving

    with serving() as server:
        yield server


@pytest.fixture
def gcs_server() -> "Iterator[GcsPlace]":
    """A Google Cloud Storage with one empty bucket."""
    from tests.support.gcs import serving

    with serving() as server:
        yield server


@pytest.fixture(scope="session")
def snow_server() -> "Iterator[SnowPlace]":
    """One Snowflake per test process; each credential has a database of its own."""
    from tests.support.snowflake import serving

    with serving() as server:
        yield server


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    import socket

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield int(listening.getsockname()[1])


@pytest.fixture
def database(postgres_server: "PostgresServer") -> "Iterator[Database]":
    """An empty database of the test's own."""
    with postgres_server.fresh_database() as fresh:
        yield fresh


@pytest.fixture(scope="session")
def podman() -> "Iterator[Podman]":
    """A podman with one image, one storage per test process; it fails where there is none."""
    from tests.support.podman import running

    with running() as podman:
        yield podman


@pytest.fixture(scope="session")
def nats_server() -> "Iterator[NatsServer]":
    """One NATS with JetStream per test process, open to all."""
    from tests.support.nats import running

    with running() as server:
        yield server


@pytest.fixture(scope="session")
def log_template(postgres_server: "PostgresServer") -> "Iterator[Database]":
    """A database with the tables of the log, to be copied."""
    import asyncio

    from noetl.adapters.postgres.storage import open_storage

    async def prepare(url: str) -> None:
        await (await open_storage(url)).close()

    with postgres_server.fresh_database() as template:
        asyncio.run(prepare(template.url))
        yield template


@pytest.fixture
def log_database(
    postgres_server: "PostgresServer", log_template: "Database"
) -> "Iterator[Database]":
    """A database of the test's own with the empty tables of the log."""
    with postgres_server.fresh_database(like=log_template) as fresh:
        yield fresh


@pytest.fixture(scope="session")
def clickhouse(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[ClickHouse]":
    """One ClickHouse per test process; each test names a table of its own."""
    from tests.support.clickhouse import serving

    with serving(tmp_path_factory.mktemp("clickhouse")) as server:
        yield server


@pytest.fixture
def collector() -> "Iterator[Collector]":
    """A receiver of OpenTelemetry traces."""
    from tests.support.collector import collecting

    with collecting() as receiver:
        yield receiver
