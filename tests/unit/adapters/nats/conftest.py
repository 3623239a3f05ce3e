"""Tests of this folder may be `async def`, and have a NATS network of their own."""

from collections.abc import Iterator

import pytest
from tests.support.asynchronous import pytest_pyfunc_call  # noqa: F401
from tests.support.nats import NatsServer, running
from tests.unit.adapters.nats.network import Network


@pytest.fixture
def network(nats_server: NatsServer) -> Network:
    """On the NATS that all tests share, below a root of its own."""
    return Network(nats_server)


@pytest.fixture
def alone() -> Iterator[Network]:
    """On a NATS of its own, which the test may stop and start."""
    with running() as server:
        yield Network(server)


@pytest.fixture
def without_jetstream() -> Iterator[Network]:
    with running("jetstream: false") as server:
        yield Network(server)
