"""Who ordered what is noted, done or refused, and never what was given with it."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from litestar import Litestar
from litestar.testing import AsyncTestClient
from litestar.types import Message, Receive, Scope, Send
from tests.support.api import SmallPlane
from tests.support.cluster import Cluster
from tests.support.steps import noop, playbook, step, task

from noetl.adapters.memory.storage import MemoryStorage
from noetl.api import types as t
from noetl.api.audit import MOST_REFUSED, WINDOW, AuditedOrders
from noetl.api.gate import CALLER
from noetl.api.questions import PlaneQuestions
from noetl.api.routes import ORDERED, all_routes
from noetl.api.serve import create_app
from noetl.api.tokens import new_token
from noetl.messages import events as e
from noetl.ports.audit import AuditRow, Result

FREE = {
    *("validate", "trial", "call", "ask", "keep", "sign_in", "sign_out"),
    *("check", "complete", "about", "translate", "test", "render", "restart_plan"),
}
"""Answers to a body that order nothing, or come from workers and hooks."""
WAITS = playbook(step("start", task("wait", "wait", signal="go")))


def test_every_route_that_changes_something_is_noted() -> None:
    changing = {route.answer for route in all_routes() if route.method != "GET"}
    assert {one.__name__ for one in changing - ORDERED.keys()} == FREE
    assert ORDERED.keys() <= changing


class Api:
    """A server with auth, and a token for each name."""

    def __init__(self, client: AsyncTestClient[Litestar], cluster: Cluster) -> None:
        self.client, self.cluster = client, cluster
        self.tokens: dict[str, str] = {}

    async def add(self, name: str, role: Any) -> None:
        self.tokens[name], row = new_token(name, role, now_ms=1)
        await self.cluster.root.tokens.add(row)

    async def ask(self, who: str, method: str, path: str, **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.tokens[who]}"}
        return await self.client.request(method, path, headers=headers, **more)

    async def told(self, **query: Any) -> list[tuple[str, str, str, str]]:
        page = (await self.ask("ada", "GET", "/api/audit", params=query)).json()
        return [(one["who"], one["what"], one["about"], one["result"]) for one in page["orders"]]


@asynccontextmanager
async def served(home: Path) -> AsyncIterator[Api]:
    cluster = Cluster(home)
    plane = await cluster.server()
    try:
        async with AsyncTestClient(create_app(plane, auth=True)) as client:
            api = Api(client, cluster)
            for name, role in (("ada", "admin"), ("bob", "viewer")):
                await api.add(name, role)
            yield api
    finally:
        await cluster.close()


async def test_orders_are_noted_with_who_gave_them(tmp_path: Path) -> None:
    async with served(tmp_path) as api:
        registered = await api.ask("ada", "POST", "/api/catalog", json={"text": WAITS})
        assert registered.status_code == 201
        begun = await api.ask("ada", "POST", "/api/executions", json={"path": "tests/scenario"})
        name = begun.json()["execution_id"]
        one = f"/api/executions/{name}"
        assert (await api.ask("bob", "POST", f"{one}/cancel")).status_code == 403
        assert (await api.ask("ada", "POST", f"{one}/pause")).status_code == 200
        assert (await api.ask("ada", "POST", f"{one}/resume")).status_code == 200
        secret = {"kind": "bearer", "fields": {"token": "s3cret-value"}}
        put = await api.ask("ada", "PUT", "/api/credentials/shop/api", json=secret)
        assert put.status_code == 200
        signal = {"name": "stop", "data": "s3cret-value"}
        assert (await api.ask("ada", "POST", f"{one}/signal", json=signal)).status_code == 200
        assert (await api.ask("ada", "POST", f"{one}/cancel")).status_code == 200
        assert await api.told() == [
            ("ada", "cancel", name, "done"),
            ("ada", "signal", f"{name} stop", "done"),
            ("ada", "credential.put", "shop/api bearer", "done"),
            ("ada", "resume", name, "done"),
            ("ada", "pause", name, "done"),
            ("bob", "cancel", name, "refused"),
            ("ada", "start", f"{name} tests/scenario", "done"),
            ("ada", "register", "tests/scenario:1", "done"),
        ]
        assert await api.told(who="bob") == [("bob", "cancel", name, "refused")]
        assert [row[1] for row in await api.told(what="start")] == ["start"]
        assert [row[1] for row in await api.told(limit=1)] == ["cancel"]
        assert (await api.ask("bob", "GET", "/api/audit")).status_code == 403
        rows = api.cluster.root.tables.orders
        assert "s3cret-value" not in str(rows)
        events = await api.cluster.events(name)
        senders = [getattr(event, "sender", None) for event in events]
        assert senders.count("ada") == 5, "start, pause, resume, signal, cancel"
        assert isinstance(events[0], e.ExecutionRequested)
        assert events[0].sender == "ada"


async def test_an_address_with_a_nul_is_noted_without_it(tmp_path: Path) -> None:
    """PostgreSQL keeps no text with one."""
    async with served(tmp_path) as api:
        gone = await api.ask("ada", "DELETE", "/api/catalog/entries/a%00b")
        assert gone.is_error
        bucket = {"older_than": 0, "archive": "s3://a\0b"}
        assert (await api.ask("ada", "POST", "/api/executions/prune", json=bucket)).is_error
        rows = api.cluster.root.tables.orders
        assert [row.what for row in rows] == ["catalog.remove", "prune"]
        assert "\0" not in "".join(row.about for row in rows)


async def test_starts_cost_no_row(tmp_path: Path) -> None:
    async with served(tmp_path) as api:
        text = playbook(step("start", noop("end")))
        await api.ask("ada", "POST", "/api/catalog", json={"text": text})
        before = len(api.cluster.root.tables.orders)
        starts = [{"path": "tests/scenario"}, {"path": "tests/scenario"}]
        many = await api.ask("ada", "POST", "/api/executions/batch", json={"executions": starts})
        assert many.status_code == 201
        assert (await api.ask("bob", "POST", "/api/executions", json=starts[0])).status_code == 403
        rows = api.cluster.root.tables.orders[before:]
        assert [(row.who, row.what, row.result) for row in rows] == [("bob", "start", "refused")]
        told = await api.told(what="start")
        assert sorted(row[0] for row in told) == ["ada", "ada", "bob"]


async def test_what_is_refused_of_a_batch_is_noted(tmp_path: Path) -> None:
    async with served(tmp_path) as api:
        await api.ask("ada", "POST", "/api/catalog", json={"text": WAITS})
        starts = [{"path": path} for path in ("tests/scenario", "no/such", "no/other", "no/such")]
        many = await api.ask("ada", "POST", "/api/executions/batch", json={"executions": starts})
        assert many.status_code == 201
        begun, *refused = await api.told(what="start")
        if begun[3] == "refused":
            begun, refused = refused[0], [begun]
        assert begun[3] == "done"
        assert refused == [("ada", "start", "3 of 4 refused: no/such no/other", "refused")]
        two = {"executions": starts[:1] * 2}
        assert (await api.ask("ada", "POST", "/api/executions/batch", json=two)).status_code == 201
        assert [row[3] for row in await api.told(what="start")].count("refused") == 1


async def test_strangers_write_nothing(tmp_path: Path) -> None:
    """Whatever is wrong with a request: who it is from is asked first."""
    async with served(tmp_path) as api:
        api.tokens["eve"] = "noetl_unknown"
        odd: list[dict[str, Any]] = [{}, {"params": {"x": "\x00"}}, {"content": b"x" * 9_000_000}]
        for route in all_routes():
            if route.answer in ORDERED:
                path = re.sub(r"\{\w+:\w+\}", "who%0Ais it", route.path)
                for more in odd:
                    answer = await api.ask("eve", route.method, path, **more)
                    assert answer.status_code == 401, (route, more)
        assert await api.told() == []


async def test_what_was_removed_is_noted(tmp_path: Path) -> None:
    """Starts go with their executions: who removed them, and how many, is all that is left."""
    async with served(tmp_path) as api:
        asked = {"older_than": 0, "path": "shop/*", "status": ["failed"], "dry_run": False}
        done = await api.ask("ada", "POST", "/api/executions/prune", json=asked)
        assert done.status_code == 200
        assert await api.told() == [("ada", "prune", "shop/* failed 0 removed", "done")]


async def test_an_answer_that_the_log_is_away_does_not_wait_for_it_again() -> None:
    """Whoever asked has waited a minute already."""
    back, storage = asyncio.Event(), MemoryStorage()

    class Away:
        async def note(self, row: AuditRow) -> None:
            await back.wait()
            await storage.audit.note(row)

    async def fails(_: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 503, "headers": []})

    away: Any = Away()
    orders = AuditedOrders(away, {("POST", "/x"): "x"}, lambda _: None)
    sent: list[Any] = []

    async def send(message: Message) -> None:
        sent.append(message["status"] if message["type"] == "http.response.start" else None)

    scope: Any = {"method": "POST", "path_template": "/x", CALLER: None}
    await orders.watched(fails)(scope, None, send)  # type: ignore[arg-type]
    assert (sent, storage.tables.orders) == ([503], [])
    back.set()
    await asyncio.gather(*orders._late)
    assert [row.result for row in storage.tables.orders] == ["unknown"]


async def test_refusals_are_bounded() -> None:
    now = [1000.0]
    storage = MemoryStorage()
    orders = AuditedOrders(storage.audit, {("POST", "/x"): "x"}, lambda _: None, now=lambda: now[0])
    scope: Any = {"method": "POST", "path_template": "/x", CALLER: None}
    for _ in range(MOST_REFUSED + 30):
        await orders._note(scope, 403, [])
    assert len(storage.tables.orders) == MOST_REFUSED
    await orders._note(scope, 200, ["a"])
    assert storage.tables.orders[-1].result == "done", "what is done is always noted"
    now[0] += WINDOW
    await orders._note(scope, 403, [])
    assert storage.tables.orders[-1].detail == "status 403; 30 more refusals were not noted"
    del scope[CALLER]
    for status in (200, 400, 401, 403):
        await orders._note(scope, status, [])
    assert len(storage.tables.orders) == MOST_REFUSED + 2, "strangers write nothing into it"


@pytest.mark.parametrize("result", get_args(Result))
async def test_every_result_can_be_read_by_clients(result: Any) -> None:
    """One order of which the server did not know what became hid all others."""
    plane = SmallPlane()
    await plane.storage.audit.note(AuditRow(at=1, who="ada", what="cancel", result=result))
    told = await PlaneQuestions(plane).audit(what="cancel")
    read = msgspec.json.decode(msgspec.json.encode(told), type=t.AuditPage)
    assert [one.result for one in read.orders] == [result]
