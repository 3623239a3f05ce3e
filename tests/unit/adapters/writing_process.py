"""
A process that writes into a home as fast as it can, for tests that share or kill it.

`python writing_process.py HOME NAME COUNT`: COUNT decisions each for executions NAME.0 to NAME.3,
as groups and alone by turns. Each acknowledged decision is printed, after its commit.
"""

import asyncio
import sys
from pathlib import Path

from noetl.adapters.sqlite.storage import open_storage
from noetl.ports.event_log import Decision, ExecutionRow


def decision(execution_id: str, number: int) -> Decision:
    row = ExecutionRow(
        execution_id=execution_id,
        path="demo",
        digest="d",
        status="running",
        started_at=1,
        updated_at=1,
    )
    return Decision(
        execution_id=execution_id,
        expected=number,
        last=number + 1,
        at=number,
        events=b'[{"name":"step.started"}]',
        row=row if number == 0 else None,
    )


async def write(folder: Path, name: str, count: int) -> None:
    home = await open_storage(folder)
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(count):
        if number % 2:
            await asyncio.gather(
                *(home.log.append(decision(f"{name}.{n}", number)) for n in range(4))
            )
        else:
            for n in range(4):
                await home.log.append(decision(f"{name}.{n}", number), alone=True)
        print(number + 1, flush=True)
    await home.close()


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
