"""START-3: jitter spreads starts, and changes nothing of what they are for."""

from pathlib import Path

import pytest
from tests.support.cluster import Cluster, clustered
from tests.support.triggers import NOW, QUICK, Timed, scheduled

from noetl.messages.envelope import timestamp
from noetl.messages.events import ExecutionRequested

HOUR = NOW - NOW % 3_600_000 + 3_600_000
JITTER = 60
MANY = 20
PATHS = [f"tests/n{n}" for n in range(MANY)]


@pytest.mark.rule("START-2", "START-3")
def test_starts_come_spread_each_for_its_planned_time(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        servers = [await timed.server() for _ in range(2)]
        await servers[0].register(QUICK)
        for path in PATHS:
            await servers[0].register(scheduled("0 * * * *", path=path, jitter=JITTER))
            await timed.planned(servers[0], HOUR, path=path)
        timed.clock.now = HOUR
        await servers[0].starts.look()
        assert not await timed.started(), "each has its own moment"
        rows = [await timed.row(path) for path in PATHS]
        late = sorted(row.due_at - HOUR for row in rows if row.due_at is not None)
        assert len(late) == MANY
        assert len(set(late)) > MANY // 2, "they are spread"
        assert 0 <= late[0] <= late[-1] <= JITTER * 1000
        counts = []
        for moment in (HOUR + late[0] - 1, HOUR + late[MANY // 2], HOUR + late[-1]):
            timed.clock.now = moment
            for server in servers:  # whoever looks plans the same moment
                await server.starts.look()
            counts.append(len(await timed.started()))
        assert counts == [0, sum(one <= late[MANY // 2] for one in late), MANY]
        for row in await timed.started():
            first = (await cluster.events(row.execution_id))[0]
            assert isinstance(first, ExecutionRequested)
            assert first.payload["trigger"]["at"] == timestamp(HOUR), "not when it began"

    clustered(test, tmp_path)
