"""WAIT over HTTP: signals and answers, with a role of their own."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.api import api_of
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered, until
from tests.support.steps import arc, playbook, sets, step
from tests.support.waiting import waits

from noetl.api.tokens import new_token
from noetl.api.types import Role
from noetl.control.waits_held import pending
from noetl.node.server import ServerNode

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
