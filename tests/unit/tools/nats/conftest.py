"""The bench of these tests."""

import pytest
from tests.support.nats import NatsServer
from tests.unit.tools.nats.bench import Bench


@pytest.fixture
def bench(nats_server: NatsServer) -> Bench:
    return Bench(nats_server)
