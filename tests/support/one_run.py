"""Runs a playbook file to its end in this process, and tells what came of it."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from noetl.control.ending import result_of
from noetl.control.waits_held import pending
from noetl.messages.codec import decode_events
from noetl.messages.requests import SendSignal
from noetl.node.local import LocalNode
from noetl.server.replay import rows_of
from noetl.settings import Settings
from noetl.tools.table import Toolbox

PATIENCE = 600
"""Seconds before a run that hangs fails its test; never a time that is expected to pass."""


class OneRun(msgspec.Struct, frozen=True, kw_only=True):
    """What an execution came to, read from its log."""

    path: str
    status: str
    steps: dict[str, int]
    """Step → runs."""
    ctx: dict[str, Any]
    result: Any
    error: dict[str, Any] | None
    events: Counter[str]


async def run_file(
    file: Path, home: Path, signals: Sequence[dict[str, Any]] = ()
) -> tuple[OneRun, list[OneRun]]:
    """
    The execution of a playbook, and its children, those that nobody waited for included. Each of
    the signals is sent as soon as something waits.
    """
    local = LocalNode.in_memory(Settings(home=home), Toolbox(home))
    try:
        own = await run_text(local, file.read_text(), file.parent, signals)
        rows = await local.storage.executions.page()
        children = [row.execution_id for row in rows if row.execution_id != own]
        return await told(local, own), [await told(local, child) for child in children]
    finally:
        await local.close()


async def run_text(
    local: LocalNode, text: str, folder: Path, signals: Sequence[dict[str, Any]] = ()
) -> str:
    """Run a text to its end; the id of its execution."""
    active = await local.run_text(text, folder=str(folder), payload={})
    for signal in signals:
        async with asyncio.timeout(PATIENCE):
            while not any(pending(active.execution)):
                await asyncio.sleep(0)
        given = SendSignal(signal=signal["name"], data=signal.get("data"))
        await local.signal(active.execution_id, given)
    await asyncio.wait_for(active.finished, PATIENCE)
    return active.execution.execution_id


async def told(local: LocalNode, execution_id: str) -> OneRun:
    active = local.server.find(execution_id)
    if active is not None:
        await asyncio.wait_for(active.finished, PATIENCE)
    execution, plan = await local.state(execution_id)
    names: Counter[str] = Counter()
    async for row in rows_of(local.storage.log, execution_id):
        names.update(str(type(event).__struct_config__.tag) for event in decode_events(row.events))
    return OneRun(
        path=plan.path,
        status=execution.status,
        steps={step: tally.runs for step, tally in execution.tallies.items()},
        ctx=execution.ctx,
        result=result_of(execution.leaves),
        error=execution.error,
        events=names,
    )
