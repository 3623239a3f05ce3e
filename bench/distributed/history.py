"""A long history, written straight into the database: one long execution, and many small ones."""

import asyncpg

ROW = (
    '[{"name":"step.started","step":"a","step_run_id":"5.0"}'
    + ',{"name":"step.started","step":"a","step_run_id":"5.0"}' * 9
    + "]"
)


async def write(url: str, events: int) -> str:
    """So many events in one execution, and a tenth as many other executions beside it."""
    connection = await asyncpg.connect(url)
    name = "00bench0000000000"
    first = (
        '[{"name":"playbook.execution.requested","path":"bench/long","digest":"0","folder":null,'
        '"version":null,"payload":{},"store":"files"}]'
    )
    await connection.execute(
        "insert into noetl.playbook (digest, path, text) values ('0', 'bench/long', '')"
    )
    await connection.execute(
        "insert into noetl.execution (execution_id, path, digest, status, started_at, updated_at,"
        " finished_at, seq) values ($1, 'bench/long', '0', 'completed', 1, 1, 1, $2)",
        name,
        events,
    )
    await connection.execute(
        "insert into noetl.decision (execution_id, first_seq, last_seq, at, events)"
        " values ($1, 1, 1, 1, $2)",
        name,
        first,
    )
    await connection.execute(
        "insert into noetl.decision (execution_id, first_seq, last_seq, at, events)"
        " select $1, 2 + n * 10, 11 + n * 10, 1, $2 from generate_series(0, $3::int / 10 - 1) as n",
        name,
        ROW,
        events,
    )
    await connection.execute(
        "insert into noetl.execution (execution_id, path, digest, status, started_at, updated_at,"
        " finished_at, seq) select 'x' || n, 'bench/small', '0', 'completed', 1, 1, 1, 10"
        " from generate_series(1, $1::int / 10) as n",
        events,
    )
    await connection.execute("vacuum analyze noetl.decision")
    await connection.execute("vacuum analyze noetl.execution")
    await connection.close()
    return name
