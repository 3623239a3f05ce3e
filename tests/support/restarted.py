"""An execution of a scenario, and what a restart of it came to."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from tests.support.scenario import Ran, Scenario

from noetl.node.local import LocalNode
from noetl.node.restarts import Followed
from noetl.playbook.plan import Plan
from noetl.server.active import ActiveExecution
from noetl.server.verify import verify

Story = Callable[[LocalNode, ActiveExecution], Awaitable[None]]


def restarted(
    made: Scenario,
    *chosen: str,
    first: Story | None = None,
    start: dict[str, Any] | None = None,
    between: Callable[[], None] | None = None,
    plan: Plan | None = None,
    payload: dict[str, Any] | None = None,
    origin: str = "x1",
) -> tuple[Ran, Ran]:
    """
    Run it (`first` interferes), then restart it: both, each with a log that proves itself. The
    calls of the second are its own. `between` is called in between.
    """

    async def whole() -> tuple[Ran, Ran]:
        if origin == "x1":
            async with made.running(**start or {}) as (local, active):
                if first is not None:
                    await first(local, active)
                await active.finished
                before = await made.ran(active)
        else:
            before = Ran((await made.local().state(origin))[0], made.home, made.tools)
        before.calls = made.tools.calls
        made.tools.calls = []
        if between is not None:
            between()
        local = made.local("2")
        try:
            followed = None if plan is None else Followed(plan, None, None)
            if followed is None:
                await local.library.plan_of(made.text, None)
            active = await local.restarts.begin(
                origin, chosen=chosen, payload=payload, followed=followed
            )
            await active.finished
            found = await verify(
                made.home.log, made.home.playbooks, made.results, active.execution_id
            )
            assert found.ok, found.message
            return before, Ran(active.execution, made.home, made.tools)
        finally:
            await local.close()

    return asyncio.run(whole())
