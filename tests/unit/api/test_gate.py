"""Every route asks who comes: without a token, with one that is not good, with each role."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import product
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from litestar import Litestar
from litestar.exceptions import MethodNotAllowedException
from litestar.handlers import HTTPRouteHandler
from litestar.testing import AsyncTestClient
from tests.support.api import SmallPlane

from noetl.adapters.memory.object_store import MemoryObjectStore
from noetl.adapters.memory.storage import MemoryStorage
from noetl.api.gate import ACCESS, FRESH, Gate
from noetl.api.roles import allows
from noetl.api.routes import Route, all_routes
from noetl.api.serve import create_app
from noetl.api.tokens import new_token
from noetl.api.types import Role
from noetl.errors import ServerRefused
from noetl.node.server import ServerNode
from noetl.ports.link import SPEAKS
from noetl.ports.result_store import ResultStore
from noetl.ports.tokens import TokenRow, digest_of
from noetl.settings import Settings

ROUTES = list(all_routes())
ROLES: tuple[Role, ...] = get_args(Role)
GOOD_PATH = {
    "{execution_id:str}": "e1",
    "{other:str}": "e2",
    "{path:path}": "a/b",
    "{name:path}": "c",
}
OPEN = {"/healthz": 200, "/readyz": 200, "/hooks/{path:path}": 401, "/api/sign-in": 422}
"""
What asks for no token → what anybody is told; a hook asks for its own proof (START-4), and whoever
signs in sends a token in the body.
"""
QUERY = {
    "/api/worker/wake": {"worker": "w", "wait": "0"},
    "/api/worker/results": {
        "execution_id": "e1",
        "store": "memory",
        "key": "e1/0",
        "size": "1",
        "checksum": "0",
    },
}
FAR = 4_000_000_000_000
"""Milliseconds, beyond any test."""


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


def path_of(route: Route) -> str:
    path = route.path.replace("{token_id:str}", "t1")
    for part, value in GOOD_PATH.items():
        path = path.replace(part, value)
    return path


@asynccontextmanager
async def guarded(*rows: TokenRow) -> AsyncIterator[AsyncTestClient[Litestar]]:
    plane = SmallPlane()
    plane.fault = ServerRefused("let in", code="let_in", status=418)
    for row in rows:
        await plane.storage.tokens.add(row)
    async with AsyncTestClient(create_app(plane, auth=True)) as client:
        yield client


async def ask(client: AsyncTestClient[Litestar], route: Route, token: str | None) -> int:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    query = QUERY.get(route.path)
    if query is not None and "worker" in query:
        query = {**query, "worker": f"w-{digest_of(token or '')[:8]}"}
    answer = await client.request(route.method, path_of(route), params=query, headers=headers)
    if answer.status_code >= 400 and answer.status_code != 418:
        assert set(answer.json()["error"]) >= {"code", "message"}
    return answer.status_code


def bad_tokens() -> dict[str, tuple[str | None, TokenRow | None]]:
    now = int(time.time() * 1000)
    expired = new_token("old", "admin", now_ms=1, expires_at=now - 1)
    revoked = new_token("gone", "admin", now_ms=1)
    unknown = new_token("root", "viewer", now_ms=1)
    return {
        "none": (None, None),
        "empty": ("", None),
        "wrong": ("noetl_wrong", None),
        "very long": ("noetl_" + "x" * 10_000, None),
        "expired": expired,
        "revoked": (revoked[0], msgspec.structs.replace(revoked[1], revoked_at=now)),
        "of a role that nobody knows": (
            unknown[0],
            msgspec.structs.replace(unknown[1], role="root"),
        ),
    }


def test_the_table_has_every_route_once() -> None:
    names = [named(route) for route in ROUTES]
    assert len(names) == len(set(names)) > 30


def test_the_app_has_the_routes_of_the_table_and_no_other() -> None:
    app = create_app(SmallPlane(), auth=True)
    found = {
        f"{method} {route.path}"
        for route in app.routes
        for method in route.methods
        if method != "OPTIONS"
    }
    assert found == {named(route) for route in ROUTES}


def test_what_is_open_is_said_here_too() -> None:
    assert {route.path for route in ROUTES if route.access == "open"} == set(OPEN)


@pytest.mark.rule("SRV-1")
async def test_no_route_lets_in_who_has_no_good_token() -> None:
    tokens = bad_tokens()
    async with guarded(*(row for _, row in tokens.values() if row is not None)) as client:
        for route in ROUTES:
            found = {why: await ask(client, route, text) for why, (text, _) in tokens.items()}
            if route.access == "open":
                assert set(found.values()) == {OPEN[route.path]}, named(route)
            else:
                assert found.pop("of a role that nobody knows") == 403, named(route)
                assert set(found.values()) == {401}, named(route)


@pytest.mark.rule("SRV-1")
async def test_a_route_lets_in_the_roles_that_include_its_own() -> None:
    made = {role: new_token(role, role, now_ms=1, expires_at=FAR) for role in ROLES}
    async with guarded(*(row for _, row in made.values())) as client:
        for route in ROUTES:
            found = {role: await ask(client, route, text) for role, (text, _) in made.items()}
            let_in = {role for role, status in found.items() if status not in (401, 403)}
            if route.access == "open":  # no token of ours is asked for
                assert set(found.values()) == {OPEN[route.path]}, named(route)
            else:
                allowed = {role for role in ROLES if allows(role, route.access)}
                assert let_in == allowed, named(route)
                assert {found[role] for role in set(ROLES) - let_in} == {403}, named(route)


WORKER_TOKENS = {
    "of default": new_token("a", "worker", now_ms=1),
    "of secure": new_token("b", "worker", now_ms=1, pool="secure"),
    "of any": new_token("c", "worker", now_ms=1),
}
"""The last as an earlier release made it, without a pool."""
POOLS = {"of default": "default", "of secure": "secure", "of any": None}


def worker_of(token: str) -> str:
    """The name of a worker with this token."""
    return f"w-{WORKER_TOKENS[token][1].digest[:8]}"


async def welcome(client: AsyncTestClient[Litestar], token: str, worker: str, pool: str) -> bool:
    """Whether every route of workers takes this one for a worker of this name and pool."""
    headers = {"Authorization": f"Bearer {WORKER_TOKENS[token][0]}"}
    me = {"worker": worker, "pool": pool}
    call = {**me, "version": "1", "speaks": SPEAKS}
    owner = {**me, "type": "owner", "execution_id": "e1"}
    told = await client.post("/api/worker/calls", json=call, headers=headers)
    asked = await client.post("/api/worker/questions", json=owner, headers=headers)
    woken = await client.get("/api/worker/wake", params={**me, "wait": "0"}, headers=headers)
    heard = [
        not told.json().get("refusal"),
        asked.json().get("error") is None,
        woken.status_code == 200,
    ]
    assert len(set(heard)) == 1, heard
    return heard[0]


@pytest.mark.rule("SRV-1", "WRK-1", "WRK-2")
@pytest.mark.parametrize("token", WORKER_TOKENS)
async def test_a_worker_comes_in_as_itself_and_for_its_pool(token: str, tmp_path: Path) -> None:
    results = ResultStore(MemoryObjectStore())
    plane = ServerNode(Settings(home=tmp_path), MemoryStorage(), results=results)
    for name, (_, row) in WORKER_TOKENS.items():
        kept = msgspec.structs.replace(row, role="worker") if POOLS[name] is None else row
        await plane.storage.tokens.add(kept)
    async with AsyncTestClient(create_app(plane, auth=True)) as client:
        for other, pool in product(WORKER_TOKENS, ("default", "secure", "a third")):
            mine = other == token and POOLS[token] in (None, pool)
            assert await welcome(client, token, worker_of(other), pool) == mine, (other, pool)
        assert not await welcome(client, token, WORKER_TOKENS[token][1].digest[:8], "default")


async def test_other_methods_are_refused_on_every_route() -> None:
    async with guarded() as client:
        for route, method in product(ROUTES, ("OPTIONS", "TRACE", "PATCH")):
            answer = await client.request(method, path_of(route))
            assert answer.status_code == 405, (method, named(route))
            assert route.method in answer.headers["allow"].split(", "), (method, named(route))


async def test_a_route_without_a_role_is_refused_even_with_auth_off() -> None:
    async def forgotten() -> str:
        return "secret"

    route = HTTPRouteHandler("/forgotten", http_method="GET")(forgotten)
    app = Litestar([route], guards=[Gate(None)], openapi_config=None, logging_config=None)
    async with AsyncTestClient(app) as client:
        answer = await client.get("/forgotten")
    assert answer.status_code == 405
    assert "secret" not in answer.text
    with pytest.raises(MethodNotAllowedException):
        await Gate(None)(None, route)  # type: ignore[arg-type]
    assert ACCESS not in route.opt


@pytest.mark.parametrize(
    "header",
    ["Basic {}", "{}", "bearer", "Token {}", "Bearer  ", "Bearer {} x"],
)
async def test_a_good_token_counts_as_a_bearer_token_only(header: str) -> None:
    text, row = new_token("me", "admin", now_ms=1)
    async with guarded(row) as client:
        answer = await client.get("/api/catalog", headers={"Authorization": header.format(text)})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        in_url = await client.get("/api/catalog", params={"token": text, "access_token": text})
        assert in_url.status_code == 401
        other_case = await client.get("/api/catalog", headers={"Authorization": f"bEARER {text}"})
        assert other_case.status_code == 200


async def test_a_revoked_token_is_refused_at_once_where_it_was_revoked() -> None:
    text, row = new_token("me", "viewer", now_ms=1)
    root, admin = new_token("root", "admin", now_ms=1)
    async with guarded(row, admin) as client:
        mine = {"Authorization": f"Bearer {text}"}
        assert (await client.get("/api/catalog", headers=mine)).status_code == 200
        revoked = await client.delete(
            f"/api/tokens/{row.token_id}", headers={"Authorization": f"Bearer {root}"}
        )
        assert revoked.status_code == 204
        assert (await client.get("/api/catalog", headers=mine)).status_code == 401


class Counting:
    """Tokens that count how often they are looked up."""

    def __init__(self, row: TokenRow) -> None:
        self.row = row
        self.asked = 0

    async def find(self, digest: str) -> TokenRow | None:
        self.asked += 1
        return self.row if digest == self.row.digest else None


async def test_a_token_is_looked_up_again_after_a_while() -> None:
    text, row = new_token("me", "viewer", now_ms=1)
    tokens, now = Counting(row), [0.0]
    gate = Gate(tokens, clock=lambda: now[0])  # type: ignore[arg-type]
    route = HTTPRouteHandler("/x", http_method="GET", opt={ACCESS: "viewer"})(nothing)
    app = Litestar([route], guards=[gate], openapi_config=None, logging_config=None)
    headers = {"Authorization": f"Bearer {text}"}
    async with AsyncTestClient(app) as client:
        for _ in range(3):
            assert (await client.get("/x", headers=headers)).status_code == 200
        assert tokens.asked == 1
        now[0] = FRESH
        tokens.row = msgspec.structs.replace(row, revoked_at=5)
        assert (await client.get("/x", headers=headers)).status_code == 401
        assert tokens.asked == 2


async def nothing() -> None:
    return None


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "localhost:8765"}, 200),
        ({"host": "127.0.0.1"}, 200),
        ({"host": "127.9.9.9:1"}, 200),
        ({"host": "[::1]:8765"}, 200),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"host": "evil.example"}, 403),
        ({"host": "192.168.0.9"}, 403),
        ({"host": ""}, 403),
        ({"host": "[::1"}, 403),
        ({"host": "localhost:8765", "origin": "http://localhost:8765"}, 200),
        ({"host": "localhost:8765", "sec-fetch-site": "same-origin"}, 200),
        ({"host": "localhost:8765", "sec-fetch-site": "none"}, 200),
        ({"host": "localhost:8765", "origin": "http://localhost:3000"}, 403),
        ({"host": "localhost:8765", "origin": "http://127.0.0.1:8765"}, 403),
        ({"host": "localhost:8765", "origin": "https://localhost:8765"}, 403),
        ({"host": "localhost:8765", "sec-fetch-site": "same-site"}, 403),
        ({"host": "localhost:8765", "sec-fetch-site": "cross-site"}, 403),
        ({"host": "localhost", "origin": "https://evil.example"}, 403),
        ({"host": "localhost", "origin": "null"}, 403),
    ],
)
async def test_without_auth_only_this_machine_is_answered(
    headers: dict[str, str], status: int
) -> None:
    """A page in a browser, or a name made to point here, must not reach an open server."""
    async with AsyncTestClient(create_app(SmallPlane(), auth=False)) as client:
        answer = await client.get("/api/catalog", headers=headers)
    assert answer.status_code == status


FOREIGN: tuple[dict[str, str], ...] = (
    {"origin": "http://localhost:3000"},
    {"origin": "null"},
    {"sec-fetch-site": "same-site"},
    {"origin": "http://localhost:3000", "content-type": "text/plain"},
)


@pytest.mark.rule("SRV-1")
async def test_a_page_of_another_port_reaches_no_route() -> None:
    """A page may send DELETE, or POST without a body or as text, and need not read the answer."""
    plane = SmallPlane()
    plane.fault = ServerRefused("let in", code="let_in", status=418)
    async with AsyncTestClient(
        create_app(plane, auth=False), base_url="http://127.0.0.1"
    ) as client:
        for route, headers in product(ROUTES, FOREIGN):
            answer = await client.request(
                route.method, path_of(route), params=QUERY.get(route.path), headers=headers
            )
            assert answer.status_code == OPEN.get(route.path, 403), (headers, named(route))


@pytest.mark.parametrize(
    ("path", "content_type", "status"),
    [
        ("/api/executions", "application/json", 418),
        ("/api/executions", "application/json; charset=utf-8", 418),
        ("/api/executions", "text/plain", 415),
        ("/api/executions", "application/x-www-form-urlencoded", 415),
        ("/api/executions", "multipart/form-data; boundary=x", 415),
        ("/api/executions", "", 415),
        ("/api/executions/e1/cancel", "text/plain", 415),
        ("/api/catalog", "text/plain", 415),
        ("/api/catalog", "text/yaml", 422),
        ("/api/validate", "application/yaml", 200),
        ("/api/worker/calls", "text/plain", 415),
    ],
)
async def test_a_body_of_another_type_is_refused(path: str, content_type: str, status: int) -> None:
    plane = SmallPlane()
    plane.fault = ServerRefused("let in", code="let_in", status=418)
    body: Any = b'{"path": "a"}'
    async with AsyncTestClient(
        create_app(plane, auth=False), base_url="http://127.0.0.1"
    ) as client:
        answer = await client.post(path, content=body, headers={"content-type": content_type})
    assert answer.status_code == status, answer.text
