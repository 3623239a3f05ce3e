"""What the schema allows, and what it forbids, is sent to a real server: none of it breaks it."""

import base64
import http.client
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pytest
import requests
from hypothesis import HealthCheck, given, settings
from tests.support.api import served_beside
from tests.support.postgres import PostgresServer
from tests.support.searching import ANEW
from tests.support.steps import noop, playbook, step

from noetl.api.description import openapi, template_of
from noetl.api.paging import cursor_of
from noetl.api.routes import Route, all_routes
from noetl.api.tokens import new_token
from noetl.api.types import Role
from noetl.node.server import ServerNode
from noetl.settings import Settings

if TYPE_CHECKING:  # imported when it is used: every process of the suite collects this file
    from schemathesis import Case

CHECKS = (
    "content_type_conformance",
    "not_a_server_error",
    "response_headers_conformance",
    "response_schema_conformance",
    "status_code_conformance",
)
Mode = Literal["positive", "negative"]
USED: tuple[Role, ...] = ("admin", "worker")
ROUTES = list(all_routes())
few = settings(
    max_examples=20 if ANEW else 3,
    derandomize=True,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


class Place(NamedTuple):
    """A server with auth on, its tokens, and an execution that has ended."""

    url: str
    tokens: dict[Role, str]
    execution_id: str
    session: requests.Session


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    home: Path = tmp_path_factory.mktemp("home")
    if request.param == "sqlite":
        yield from opened_at(Settings(home=home))
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    with server.fresh_database() as database:
        yield from opened_at(Settings(home=home, db=database.url))


def opened_at(where: Settings) -> Iterator[Place]:
    tokens: dict[Role, str] = {}
    started: list[str] = []

    @asynccontextmanager
    async def opened() -> AsyncIterator[Any]:
        plane = await ServerNode.open(where, says=lambda _: None)
        for role in USED:
            tokens[role], row = new_token(role, role, now_ms=1)
            await plane.storage.tokens.add(row)
        entry, _ = await plane.register(playbook(step("start", noop("first"))))
        begun = await plane.execute(playbook_id=entry.playbook_id, payload={})
        await plane.ended(begun.execution_id, 30)
        started.append(begun.execution_id)
        yield plane
        await plane.close()

    with served_beside(opened(), auth=True) as url, requests.Session() as session:
        yield Place(url, tokens, started[0], session)


def named(route: Route) -> str:
    return f"{route.method} {template_of(route)}"


@cache
def schema() -> Any:
    import schemathesis

    return schemathesis.openapi.from_dict(openapi())


def cases_of(route: Route, mode: Mode, **fixed: Any) -> Any:
    from schemathesis import GenerationMode

    operation = schema()[template_of(route)][route.method]
    if route.path.endswith("/wake"):
        fixed["query"] = {"worker": "w", "wait": 0}
    return operation.as_strategy(generation_mode=GenerationMode(mode), **fixed)


def sent(place: Place, case: "Case[Any]", route: Route) -> Any:
    role: Role = "worker" if route.access == "worker" else "admin"
    headers = {"Authorization": f"Bearer {place.tokens[role]}"}
    return case.call(base_url=place.url, session=place.session, headers=headers, timeout=600)


def checked(case: "Case[Any]", response: Any) -> None:
    from schemathesis import checks

    case.validate_response(response, checks=[getattr(checks, name) for name in CHECKS])


@pytest.mark.fault("T14")
@pytest.mark.parametrize("route", ROUTES, ids=named)
@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_no_request_breaks_the_server(place: Place, route: Route, mode: Mode) -> None:
    if mode == "negative" and not (route.takes or "{" in route.path):
        mode = "positive"  # there is nothing that could be wrong

    @few
    @given(case=cases_of(route, mode))
    def try_out(case: "Case[Any]") -> None:
        checked(case, sent(place, case, route))

    try_out()


@pytest.mark.parametrize(
    "route", [route for route in ROUTES if "{execution_id" in route.path], ids=named
)
def test_an_execution_is_shown_as_the_schema_says(place: Place, route: Route) -> None:
    named_in = re.findall(r"\{(execution_id|other|checksum):", route.path)
    known = dict.fromkeys(named_in, place.execution_id)

    @few
    @given(case=cases_of(route, "positive", path_parameters=known))
    def try_out(case: "Case[Any]") -> None:
        response = sent(place, case, route)
        if response.status_code == 404:  # a version may be unknown where its execution is not
            assert isinstance(case.body, dict)
            assert case.body["version"] is not None
        checked(case, response)

    try_out()


@pytest.mark.parametrize("route", ROUTES, ids=named)
def test_without_a_token_nothing_is_told(place: Place, route: Route) -> None:
    @few
    @given(case=cases_of(route, "positive"))
    def try_out(case: "Case[Any]") -> None:
        case.headers.pop("Authorization", None)
        response = case.call(base_url=place.url, session=place.session, timeout=600)
        checked(case, response)
        if route.access != "open":
            assert response.status_code in (400, 401)

    try_out()


BODIES = {
    "/signal": b'{"name": "n"}',
    "/answer": b'{"approved": true}',
    "/render": b'{"template": ""}',
}
"""The end of a route → a body that it takes, where an empty object is none."""


def raw(place: Place, route: Route, address: str) -> int:
    """The status of a request that no client has tidied up before it went out."""
    role: Role = "worker" if route.access == "worker" else "admin"
    connection = http.client.HTTPConnection(place.url.removeprefix("http://"), timeout=600)
    headers = {"Authorization": f"Bearer {place.tokens[role]}", "Content-Type": "application/json"}
    body = BODIES.get(route.path[route.path.rindex("/") :], b"{}") if route.takes else None
    connection.request(route.method, address, body=body, headers=headers)
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize("dots", ["..", "%2e%2e", "..%2f..", ".", "-", "%ff", "x" * 5000])
@pytest.mark.parametrize("route", [one for one in ROUTES if "{" in one.path], ids=named)
def test_what_can_be_no_name_breaks_nothing(place: Place, route: Route, dots: str) -> None:
    status = raw(place, route, re.sub(r"\{\w+:\w+\}", dots, route.path))
    assert 400 <= status < 500
    if "{execution_id" in route.path and "%2f" not in dots:
        assert status == 400


LARGE = base64.urlsafe_b64encode(str(2**70).encode()).decode().rstrip("=")
CURSORS = [LARGE, cursor_of(2**63), cursor_of("x" * 1000), "x" * 5000, "%ff", ""]


@pytest.mark.parametrize("cursor", CURSORS, ids=range(len(CURSORS)))
@pytest.mark.parametrize("path", ["/api/catalog/versions/t", "/api/executions/{}/logs"])
def test_a_number_that_no_store_holds_is_no_cursor(place: Place, path: str, cursor: str) -> None:
    [route] = [one for one in ROUTES if (one.method, one.path) == ("GET", "/api/catalog")]
    status = raw(place, route, f"{path.format(place.execution_id)}?cursor={cursor}")
    assert status in (400, 422)


def test_afterwards_the_server_is_well(place: Place) -> None:
    assert place.session.get(f"{place.url}/readyz", timeout=600).json() == {"status": "ok"}
