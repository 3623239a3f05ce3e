"""Every message is delivered ten times, and out of order: the logs are the same (T10)."""

import os
import random
from pathlib import Path
from typing import Any

import pytest
from tests.support.echo import echoing
from tests.support.nats import NatsServer
from tests.support.postgres import Database
from tests.support.trial import sized
from tests.system.fleet_load import loaded, undisturbed

from noetl.messages import events as e

EXECUTIONS = sized(12, 300)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return undisturbed(tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.fault("T10")
def test_ten_deliveries_in_any_order_leave_the_same_logs(
    tmp_path: Path, database: Database, nats_server: NatsServer, expected: dict[str, Any]
) -> None:
    """Calls, questions, answers, wake-ups; and nothing is done twice for it."""
    seed = int(os.environ.get("NOETL_TEST_SEED", random.randrange(1_000_000)))
    print(f"NOETL_TEST_SEED={seed}")
    with (
        loaded(tmp_path, database, nats_server.url, expected) as load,
        echoing(nats_server.url, seed=seed) as echo,
    ):
        load.fleet.server()
        load.fleet.server()
        load.fleet.worker()
        load.fleet.worker()
        load.register()
        load.start(EXECUTIONS)
        load.finish()
        load.prove()
        effects = load.ledger.effects
        print(f"messages: {echo.heard}; effects: {len(effects)}")
        assert echo.heard > EXECUTIONS
        assert len(effects) == len(set(effects))
        assert load.count(e.LeaseExpired) == 0
