"""KEY-2: a planted secret that runs used at a server is in no answer of its API, and no file."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
import requests
from tests.conformance.test_key_planted import CHILD, EVERYWHERE
from tests.support.http_server import Seen, serving
from tests.support.leaks import HEAD, SECRET, finds, forms, register
from tests.support.postgres import PASSWORD, PostgresServer
from tests.system.servers import Node

from noetl.api.routes import ONE, all_routes
from noetl.ports.tokens import TAG, digest_of

pytestmark = pytest.mark.rule("KEY-2", "SRV-1")

KEPT = "planted-in-the-store"
"""The secret of a credential that is registered at the server."""

KINDS = """
keychain: [{name: api, kind: bearer, provider: environment, key: PLANTED}]
executor: {spec: {policy: {limits: {max_payload_bytes: 1000}}}}
workflow:
  - step: start
    tool:
      - get: {kind: secrets, provider: environment, name: PLANTED,
              spec: {policy: {rules: [{else: {then: {do: continue,
                set_ctx: {s: "{{ outcome.result }}"}}}}]}}}
      - script: {kind: script, interpreter: sh, code: 'echo "$S"; cat; echo "$S" >&2',
                 stdin: "{{ ctx.s }}", env: {S: "{{ ctx.s }}"}}
      - shape: {kind: transform, jq: "{(.a): [.a, (.a | @base64), (.a | @uri), (.a | @json)]}",
                input: {a: "{{ ctx.s }}"}}
      - told: {kind: transform, jq: ".a | error", input: {a: "{{ ctx.s }}"},
               spec: {policy: {rules: [{else: {then: {do: continue}}}]}}}
      - large: {kind: python, args: {s: "{{ ctx.s }}"}, code: "result = [s, 'x' * 5000, s]"}
      - kept: {kind: http, url: "URL/echo", auth: kept}
"""

HOOK = """
apiVersion: noetl.io/v2
kind: Trigger
metadata: {name: hook, path: hook}
spec:
  playbook: child
  payload: {s: "{{ trigger.headers }}"}
  on: {webhook: {scheme: bearer, credential: kept, wait: 30}}
"""


class Place(msgspec.Struct, frozen=True):
    """A server on which everything ran, and what there is to ask it for."""

    home: Path
    url: str
    admin: str
    worker: str
    ran: dict[str, str]
    """Playbook → its execution."""
    seen: list[Seen]

    def get(self, address: str) -> str:
        token = self.worker if address.startswith("/api/worker/") else self.admin
        headers = {"Authorization": f"Bearer {token}"}
        answer = requests.get(self.url + address, headers=headers, timeout=600)
        assert answer.status_code == 200, f"{address}: {answer.text}"
        return answer.text

    def executions(self) -> list[str]:
        """Children, too."""
        rows = msgspec.json.decode(self.get("/api/executions"))["executions"]
        return [row["execution_id"] for row in rows]

    def each(self, template: str) -> list[str]:
        return [f"/api/executions/{name}{template}" for name in self.executions()]

    def kept(self) -> list[dict[str, Any]]:
        """What results that are too large for the log are referred to by (RES-1)."""
        told = [
            msgspec.json.decode(line[5:])
            for address in self.each("/stream")
            for line in self.get(address).splitlines()
            if line.startswith("data:")
        ]
        return list(references(told))

    def bodies(self) -> list[str]:
        """Where a worker reads them."""
        asked = ("store", "key", "size", "checksum")
        return [
            f"/api/worker/results?{urlencode({name: kept[name] for name in asked})}"
            for kept in self.kept()
        ]

    def shown(self, how: str = "") -> list[str]:
        """Where a person looks at them."""
        pairs = {(kept["key"].split("/")[0], kept["key"].split("/")[1]) for kept in self.kept()}
        return [f"/api/executions/{name}/bodies/{body}{how}" for name, body in sorted(pairs)]


ADDRESSES: dict[str, Callable[[Place], list[str]]] = {
    "/api/catalog": lambda _: ["/api/catalog"],
    "/api/catalog/entries/{path:path}": lambda p: [f"/api/catalog/entries/{x}" for x in p.ran],
    "/api/catalog/versions/{path:path}": lambda p: [f"/api/catalog/versions/{x}" for x in p.ran],
    "/api/catalog/outline/{path:path}": lambda p: [f"/api/catalog/outline/{x}" for x in p.ran],
    "/api/schema": lambda _: ["/api/schema"],
    "/api/executions": lambda _: ["/api/executions"],
    ONE: lambda p: p.each(""),
    f"{ONE}/state": lambda p: [*p.each("/state"), *p.each("/state?at=9")],
    f"{ONE}/explanation": lambda p: p.each("/explanation"),
    f"{ONE}/outline": lambda p: p.each("/outline"),
    f"{ONE}/verify": lambda p: p.each("/verify"),
    f"{ONE}/logs": lambda p: p.each("/logs?limit=200"),
    f"{ONE}/result": lambda p: p.each("/result"),
    f"{ONE}/differences/{{other:str}}": lambda p: [
        address for other in p.ran.values() for address in p.each(f"/differences/{other}")
    ],
    f"{ONE}/events": lambda p: p.each("/events?limit=200"),
    f"{ONE}/stream": lambda p: p.each("/stream"),
    f"{ONE}/bodies/{{checksum:str}}": Place.shown,
    f"{ONE}/bodies/{{checksum:str}}/download": lambda p: p.shown("/download"),
    "/api/waiting": lambda _: ["/api/waiting"],
    "/api/triggers": lambda _: ["/api/triggers"],
    "/api/triggers/entries/{path:path}": lambda _: ["/api/triggers/entries/hook"],
    "/api/credentials": lambda _: ["/api/credentials"],
    "/api/tokens": lambda _: ["/api/tokens"],
    "/api/audit": lambda _: ["/api/audit"],
    "/api/cache": lambda _: ["/api/cache"],
    "/api/pools": lambda _: ["/api/pools"],
    "/api/worker/hello": lambda _: ["/api/worker/hello"],
    "/api/worker/wake": lambda place: [
        f"/api/worker/wake?worker=w-{digest_of(place.worker)[:TAG]}&wait=0"
    ],
    "/api/worker/results": Place.bodies,
    "/api/runtime": lambda _: ["/api/runtime"],
    "/api/me": lambda _: ["/api/me"],
    "/healthz": lambda _: ["/healthz"],
    "/readyz": lambda _: ["/readyz"],
    "/metrics": lambda _: ["/metrics"],
    "/openapi.json": lambda _: ["/openapi.json"],
}
"""Every route that is read, and what is asked of it."""


def references(tree: Any) -> Iterator[dict[str, Any]]:
    """What a tree refers to, wherever in it."""
    if isinstance(tree, dict) and isinstance(tree.get("$ref"), dict):
        yield tree["$ref"]
    elif isinstance(tree, dict | list):
        for inner in tree.values() if isinstance(tree, dict) else tree:
            yield from references(inner)


def run_at(node: Node, token: str, path: str, text: str) -> str:
    """Register and execute as a user does; the answer is the id of the execution."""
    head = HEAD.replace("path: t", f"path: {path}")
    told = node.there("register", "-", stdin=(head + text).encode(), NOETL_TOKEN=token)
    assert told.code == 0, told
    ran = node.there("execute", path, "--wait", "--json", NOETL_TOKEN=token)
    return str(ran.objects()[-1]["execution_id"])


def call_hook(node: Node, token: str) -> None:
    """The secret of its credential is the proof of who calls."""
    told = node.there("register", "-", stdin=HOOK.encode(), NOETL_TOKEN=token)
    assert told.code == 0, told
    headers = {"Authorization": f"Bearer {KEPT}"}
    answer = requests.post(f"{node.url}/hooks/hook", headers=headers, timeout=600)
    assert answer.json()["result"]["status"] == "completed", answer.text


def token_of(node: Node, name: str, role: str) -> str:
    [made] = node.here("server", "token", "add", name, "--role", role, "--json").objects()
    return str(made["token"])


@pytest.fixture(scope="module")
def place(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    home = tmp_path_factory.mktemp("planted") / "home"
    login = json.dumps({"user": "u", "password": SECRET})
    node = Node(home)
    with serving() as world, postgres_server.fresh_database() as database:
        register(home, "pg", "postgres", msgspec.to_builtins(database))
        register(home, "kept", "bearer", {"token": KEPT})
        admin, worker = token_of(node, "ada", "admin"), token_of(node, "w", "worker")
        words = ("server", "start", "--port", "0", "--auth", "--worker", "1", "--json")
        started = node.here(*words, PLANTED=SECRET, LOGIN=login)
        try:
            assert started.code == 0, started
            node.url = started.objects()[0]["url"]
            texts = {
                "child": CHILD,
                "everywhere": EVERYWHERE.format(url=world.url),
                "kinds": KINDS.replace("URL", world.url),
            }
            ran = {path: run_at(node, admin, path, text) for path, text in texts.items()}
            call_hook(node, admin)
            yield Place(home, node.url, admin, worker, ran, world.seen)
        finally:
            node.here("server", "stop")


def test_it_was_used(place: Place) -> None:
    tokens = {seen.headers.get("authorization") for seen in place.seen}
    assert {f"Bearer {SECRET}", f"Bearer {KEPT}"} <= tokens
    ended = {
        path: msgspec.json.decode(place.get(f"/api/executions/{name}/result"))["status"]
        for path, name in place.ran.items()
    }
    assert ended == {"child": "completed", "everywhere": "failed", "kinds": "completed"}


def test_no_route_that_is_read_is_left_out() -> None:
    assert set(ADDRESSES) == {route.path for route in all_routes() if route.method == "GET"}


@pytest.mark.parametrize("route", ADDRESSES)
def test_it_is_in_no_answer(place: Place, route: str) -> None:
    addresses = ADDRESSES[route](place)
    assert addresses
    for address in addresses:
        told = place.get(address).encode()
        for secret in (SECRET, KEPT, PASSWORD):
            assert [name for name, form in forms(secret).items() if form in told] == [], address


def test_it_is_in_no_file(place: Place) -> None:
    """The log of the server and of its worker among them."""
    assert {file.name for file in (place.home / "run").glob("*.log")} >= {"server.log"}
    for secret in (SECRET, KEPT, PASSWORD):
        assert finds(secret, place.home) == []
