"""WRK-1: what a server that took over hears of workers that the one before it had."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.support.cluster import Cluster, clustered, until
from tests.support.steps import arc, call, playbook, step

from noetl import __version__
from noetl.messages import events as e
from noetl.messages.codec import encode_events
from noetl.ports.link import SPEAKS, Answer, Call, Hold, Sent

CHAIN = playbook(
    step("first", call("fetch"), call("store"), arcs=[arc("second")]),
    step("second", call("tell")),
)


@pytest.mark.fault("T1")
@pytest.mark.rule("WRK-1", "EVT-3")
def test_a_worker_of_a_dead_server_is_refused_what_another_has_now(tmp_path: Path) -> None:
    """The log knows of neither lease: only the server that granted the second one can tell."""

    old, new = [
        Call(worker=name, pool="default", version=__version__, speaks=SPEAKS, slots=1, free=1)
        for name in ("old", "new")
    ]

    def report(call: Call, hold: Hold) -> Call:
        ids: dict[str, Any] = {"step": "first", "step_run_id": hold.step_run_id}
        failed = e.StepFailed(**ids, error={"kind": "http", "message": f"says {call.worker}"})
        events = msgspec.Raw(encode_events([e.StepStarted(**ids), failed]))
        sent = Sent(hold=hold, after=0, events=events)
        return msgspec.structs.replace(call, reports=[sent], free=0)

    async def test(cluster: Cluster) -> None:
        first = await cluster.server()
        execution_id = await cluster.start(CHAIN)
        before = held_by(await first.dispatcher.answer(old), execution_id)
        await cluster.kill_server(first)
        second = await cluster.server()
        await until(lambda: second.dispatcher.parts.pools())
        now = held_by(await second.dispatcher.answer(new), execution_id)
        (late,) = (await second.dispatcher.answer(report(old, before))).verdicts
        assert (late.state, late.over) == ("refused", False)
        (verdict,) = (await second.dispatcher.answer(report(new, now))).verdicts
        assert (verdict.state, verdict.over) == ("recorded", True)
        ended = await cluster.end_of(execution_id)
        assert ended.error is not None
        assert ended.error["message"] == "says new"

    clustered(test, tmp_path)


def held_by(answer: Answer, execution_id: str) -> Hold:
    command = msgspec.json.decode(answer.grants[0].command)
    return Hold(execution_id, command["step_run_id"], 0, command["epoch"])
