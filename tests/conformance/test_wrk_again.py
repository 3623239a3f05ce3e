"""WRK-1: what is said to a report that comes a second time."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conformance.test_wrk import CHAIN
from tests.support.cluster import Cluster, clustered, turns

from noetl import __version__
from noetl.errors import LogUnavailable
from noetl.messages import events as e
from noetl.messages.codec import encode_events
from noetl.ports.commit import Commit
from noetl.ports.link import SPEAKS, Call, Hold, Sent


@pytest.mark.rule("WRK-1", "EVT-3")
def test_a_report_that_came_again_is_known_once_it_is_in_the_log(tmp_path: Path) -> None:
    """Its commit may still be refused: then it has to be said once more."""

    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        execution_id = await cluster.start(CHAIN)
        call = Call(
            worker="one", pool="default", version=__version__, speaks=SPEAKS, slots=1, free=1
        )
        answer = await server.dispatcher.answer(call)
        command = msgspec.json.decode(answer.grants[0].command)
        hold = Hold(execution_id, command["step_run_id"], 0, command["epoch"])
        started = e.StepStarted(step="first", step_run_id=hold.step_run_id)
        sent = Sent(hold=hold, after=0, events=msgspec.Raw(encode_events([started])))
        one = msgspec.structs.replace(call, free=0, reports=[sent])
        log: Any = server.storage.log
        append, commit = log.append, Commit()
        log.append = lambda *_, **__: commit
        asked = [asyncio.create_task(server.dispatcher.answer(one)) for _ in range(2)]
        await turns(20)
        assert not any(task.done() for task in asked)
        log.append = append
        commit.settle(LogUnavailable("the disk is full"))
        assert [(await task).verdicts[0].state for task in asked] == ["later", "later"]

    clustered(test, tmp_path)
