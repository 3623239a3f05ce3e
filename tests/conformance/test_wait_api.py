"""WAIT over HTTP: signals and answers, with a role of their own."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.api import api_of
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered, until
from tests.support.steps import arc, call, playbook, sets, step
from tests.support.waiting import waits

from noetl.api.questions import PlaneQuestions
from noetl.api.tokens import new_token
from noetl.api.types import Role
from noetl.control.waits_held import pending
from noetl.errors import ServerRefused
from noetl.messages import events as e
from noetl.messages.outcome import Outcome, ok
from noetl.messages.requests import AnswerApproval
from noetl.node.server import ServerNode
from noetl.pipeline.asks import AwaitAnswer, Parked
from noetl.pipeline.frame import TaskWait
from noetl.tools.tool import ToolCall
from noetl.worker import part as part_work
from noetl.worker.parking import parked
from noetl.worker.part import PartWork
from noetl.worker.worker import Worker

TEXT = playbook(
    step("start", waits("hear", signal="go"), arcs=[arc("ask")]),
    step(
        "ask",
        waits("pay", approval={"title": "Pay?", "form": {"n": "integer"}, "roles": ["finance"]}),
        sets("keep", answer="{{ _prev }}"),
    ),
)
TOKENS: list[tuple[Role, str]] = [
    ("viewer", "eve"),
    ("approver", "bob"),
    ("operator", "ann"),
    ("approver", "finance"),
]


def waits_at(server: ServerNode, execution_id: str, task: str) -> bool:
    active = server.server.find(execution_id)
    return active is not None and [one.task for one in pending(active.execution)] == [task]


@pytest.mark.rule("WAIT-4", "WAIT-5", "WAIT-7", "SRV-1")
def test_each_role_may_do_its_own(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        cluster.worker(CannedTools())
        sent: dict[str, dict[str, str]] = {}
        for role, name in TOKENS:
            text, row = new_token(name, role, now_ms=1)
            await server.storage.tokens.add(row)
            sent[name] = {"authorization": f"Bearer {text}"}
        execution_id = await cluster.start(TEXT)
        await until(lambda: waits_at(server, execution_id, "hear"))
        async with api_of(server, auth=True) as api:

            async def post(who: str, below: str, /, **body: Any) -> tuple[int, Any]:
                path = f"/api/executions/{execution_id}/{below}"
                return await api.ask("POST", path, json=body, headers=sent[who])

            for name in ("eve", "bob"):
                assert (await post(name, "signal", name="go"))[0] == 403
            assert (await post("ann", "signal", name="go", data=1, id="one"))[0] == 200
            await until(lambda: waits_at(server, execution_id, "pay"))
            status, page = await api.ask("GET", "/api/waiting", headers=sent["eve"])
            assert status == 200
            (asked,) = page["waiting"]
            assert asked["wait"]["roles"] == ["finance"]
            given = {"approved": True, "fields": {"n": 1}, "reason": "fine"}
            assert (await post("eve", "answer", **given))[0] == 403
            status, told = await post("bob", "answer", **given)
            assert (status, told["error"]["code"]) == (409, "refused")
            assert "may be answered by finance, not by approver or bob" in told["error"]["message"]
            assert (await post("finance", "answer", **given))[0] == 200
            status, told = await post("finance", "answer", **given)
            assert status == 409
        execution = await cluster.end_of(execution_id)
        answer = execution.ctx["answer"]
        assert (answer["by"], answer["n"], answer["reason"]) == ("finance", 1, "fine")

    clustered(test, tmp_path)


@pytest.mark.rule("WAIT-4", "WAIT-5", "SRV-3")
def test_an_order_reaches_whoever_owns_the_execution(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        owner = await cluster.server()
        cluster.worker(CannedTools())
        execution_id = await cluster.start(TEXT)
        await until(lambda: waits_at(owner, execution_id, "hear"))
        other = await cluster.server()
        async with api_of(other) as api:
            path = f"/api/executions/{execution_id}"
            await api.post(f"{path}/signal", {"name": "go", "data": {"n": 7}})
            await until(lambda: waits_at(owner, execution_id, "pay"))
            await api.post(f"{path}/answer", {"approved": False, "step": "ask", "reason": "no"})
        execution = await cluster.end_of(execution_id)
        assert execution.ctx["answer"]["reason"] == "no"
        assert execution.ctx["answer"]["approved"] is False

    clustered(test, tmp_path)


TWO: dict[str, list[dict[str, Any]]] = {
    "two people": [{"approved": True, "sender": "ann"}, {"approved": False, "sender": "bob"}],
    "one, with other fields": [
        {"approved": True, "sender": "ann", "fields": {"n": n}} for n in (1, 2)
    ],
}


@pytest.mark.rule("WAIT-5")
@pytest.mark.parametrize("answers", TWO.values(), ids=TWO)
def test_of_two_that_answer_at_once_one_is_refused(
    answers: list[dict[str, Any]], tmp_path: Path
) -> None:
    """Neither server that they ask decides; each left its answer for the one that does."""

    async def test(cluster: Cluster) -> None:
        owner, *others = [await cluster.server() for _ in range(3)]
        cluster.worker(CannedTools())
        form = {"n": {"type": "integer", "required": False}}
        ask = waits("ask", approval={"title": "Pay?", "form": form})
        await owner.register(playbook(step("start", ask)))
        row = await owner.execute(path="tests/scenario", payload={})
        await until(lambda: bool(waiting_in(owner, row.execution_id)))
        said = await asyncio.gather(
            *(
                one.answer(row.execution_id, None, **given)
                for one, given in zip(others, answers, strict=True)
            ),
            return_exceptions=True,
        )
        await cluster.end_of(row.execution_id)
        (done,) = [
            one for one in await cluster.events(row.execution_id) if isinstance(one, e.WaitDone)
        ]
        refused = [one for one in said if isinstance(one, ServerRefused)]
        assert len(refused) == 1, said
        assert f"by {done.result['by']}" in str(refused[0])

    clustered(test, tmp_path)


@pytest.mark.rule("WAIT-5")
def test_an_answer_is_to_the_question_that_was_asked(tmp_path: Path) -> None:
    """A retry asks anew in the same task run: what was said before is no answer to it."""

    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        cluster.worker(CannedTools())
        execution_id = await cluster.start(playbook(step("start", waits("ask", approval="Pay?"))))
        await until(lambda: bool(waiting_in(server, execution_id)))
        (wait,) = waiting_in(server, execution_id)
        active = server.server.find(execution_id)
        assert active is not None
        old = AnswerApproval(task_run_id=wait.task_run_id, approved=True, asked=wait.seq - 1)
        assert server.server.receive(active, old).events == []
        assert waiting_in(server, execution_id) == [wait]
        await server.answer(execution_id, None, approved=False, sender="ann")
        await cluster.end_of(execution_id)

    clustered(test, tmp_path)


@pytest.mark.rule("WAIT-2", "WAIT-5")
def test_who_may_answer_can_come_from_the_workload(tmp_path: Path) -> None:
    """A server compares what it can; what a worker renders it takes, and no other work stops."""

    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        cluster.worker(CannedTools())
        asked = {"title": "Pay?", "roles": "{{ workload.who }}", "form": {"n": "integer"}}
        text = playbook(step("start", waits("ask", approval=asked)), workload={"who": []})
        execution_id = await cluster.start(text, {"who": ["admin"]})
        await until(lambda: waiting_in(server, execution_id))
        (wait,) = waiting_in(server, execution_id)
        assert wait.awaits[0]["roles"] == ["admin"]
        await server.answer(
            execution_id, None, approved=True, sender="ann", fields={"n": 1}, known_as=("admin",)
        )
        assert (await cluster.end_of(execution_id)).status == "completed"

    clustered(test, tmp_path)


@pytest.mark.rule("WAIT-5")
@pytest.mark.parametrize("who", [None, [], "", "admin"])
def test_roles_that_come_to_nothing_open_no_approval(tmp_path: Path, who: Any) -> None:
    """Whoever sends the payload does not lift what the author has bound."""

    async def test(cluster: Cluster) -> None:
        await cluster.server()
        cluster.worker(CannedTools())
        asked = {"title": "Pay?", "roles": "{{ workload.who }}"}
        text = playbook(step("start", waits("ask", approval=asked)), workload={"who": ["admin"]})
        execution = await cluster.end_of(await cluster.start(text, {"who": who}))
        assert execution.status == "failed"

    clustered(test, tmp_path)


@pytest.mark.rule("WAIT-2", "WAIT-5", "EVT-1")
def test_a_worker_that_lies_about_a_wait_opens_and_answers_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It asks for an answer by whom it likes, then tells one itself; others do the work."""
    liars: list[Worker] = []

    def lying(part: PartWork, ask: AwaitAnswer) -> Parked:
        if liars:
            return parked(part, ask)
        liars.append(part.worker)
        part.worker.cans_waits = True
        arm = {"by": "approval", "title": "Pay?", "roles": ["worker"]}
        return parked(part, replace(ask, awaits=[arm]))

    def answering(_: ToolCall[Any]) -> Outcome:
        liars[0].cans_waits = False
        return ok({"approved": True, "by": "nobody", "at": "", "reason": ""})

    async def test(cluster: Cluster) -> None:
        monkeypatch.setattr(part_work, "parked", lying)
        server, tools = await cluster.server(), CannedTools()
        tools.answers["ask"] = [answering]
        cluster.worker(tools)
        asked = {"title": "Pay?", "roles": ["admin"]}
        execution_id = await cluster.start(playbook(step("start", waits("ask", approval=asked))))
        await until(lambda: waiting_in(server, execution_id))
        assert len(tools.calls) == 1, "both lies were told"
        (wait,) = waiting_in(server, execution_id)
        assert wait.awaits[0]["roles"] == ["admin"]
        await server.answer(execution_id, None, approved=False, sender="ann")
        await cluster.end_of(execution_id)
        done = [one for one in await cluster.events(execution_id) if isinstance(one, e.TaskDone)]
        assert [one.outcome["result"]["by"] for one in done] == ["ann"]

    clustered(test, tmp_path)


def waiting_in(server: ServerNode, execution_id: str) -> list[TaskWait]:
    active = server.server.find(execution_id)
    return [] if active is None else list(pending(active.execution))


@pytest.mark.rule("WAIT-7")
def test_whoever_asks_what_waits_for_people_reads_no_log_of_others(tmp_path: Path) -> None:
    """A hundred thousand executions that wait for no person cost no more than their rows."""

    async def test(cluster: Cluster) -> None:
        server = await cluster.server()
        for _ in range(5):  # nobody takes them up
            await cluster.start(playbook(step("start", call("slow"))))
        read: list[str] = []
        state = server.state

        async def reading(execution_id: str) -> Any:
            read.append(execution_id)
            return await state(execution_id)

        server.state = reading  # type: ignore[method-assign]
        page = await PlaneQuestions(server).waiting(limit=2)
        assert (page.waiting, page.next, read) == ([], None, [])

    clustered(test, tmp_path)
