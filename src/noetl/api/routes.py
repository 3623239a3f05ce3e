"""
Every route of the API, and who may use it.

The app is built from this table and nothing else: a route that is not here does not exist, and one
without a role cannot be written down.
"""

import re
from collections.abc import Callable
from functools import cache
from types import MethodType
from typing import Any, NamedTuple

from litestar.handlers import HTTPRouteHandler

from noetl.api.access import AccessRoutes
from noetl.api.audit import AuditRoutes
from noetl.api.catalog import CacheRoutes, CatalogRoutes
from noetl.api.credentials import CredentialsRoutes
from noetl.api.editing import EditingRoutes
from noetl.api.events import EventsRoutes
from noetl.api.executions import ExecutionsRoutes
from noetl.api.gate import ACCESS, TAKES
from noetl.api.hooks import HooksRoutes
from noetl.api.restarts import RestartsRoutes
from noetl.api.roles import Access
from noetl.api.runtime import DocumentRoutes, PoolsRoutes, RuntimeRoutes
from noetl.api.sessions import SessionsRoutes
from noetl.api.texts import LARGEST, TAKEN
from noetl.api.triggers import TriggersRoutes
from noetl.api.values import ValuesRoutes
from noetl.api.waiting import WaitingRoutes
from noetl.api.worker import WorkerRoutes

KB = 1024
MB = 1024 * KB
JSON = ("application/json",)
ALL = "/api/executions"
ONE = "/api/executions/{execution_id:str}"
LARGEST_BODY = 12 * 1024**3
"""What a tool streams has at most 2 GiB, of which JSON writes no character with more than six."""
KINDS = (
    CatalogRoutes,
    ExecutionsRoutes,
    EventsRoutes,
    CredentialsRoutes,
    AccessRoutes,
    WorkerRoutes,
    RuntimeRoutes,
    DocumentRoutes,
    TriggersRoutes,
    HooksRoutes,
    WaitingRoutes,
    CacheRoutes,
    AuditRoutes,
    PoolsRoutes,
    SessionsRoutes,
    EditingRoutes,
    ValuesRoutes,
    RestartsRoutes,
)


class Route(NamedTuple):
    """One route: what it is, who may use it, what answers, what it takes."""

    method: str
    path: str
    access: Access
    answer: Callable[..., Any]
    """A method of one of KINDS."""
    takes: tuple[str, ...] = ()
    """Types of the body; none for a route without one."""
    most: int = 64 * KB
    """Bytes of the body."""
    status: int = 200
    """What OpenAPI calls the usual answer."""


C, E, L, K, A, W, R, D, T, H, P, M, N, G, S, X, V, Y = KINDS

ROUTES = (
    Route("POST", "/api/catalog", "author", C.register, TAKEN, 2 * LARGEST, status=201),
    Route("GET", "/api/catalog", "viewer", C.page),
    Route("GET", "/api/catalog/entries/{path:path}", "viewer", C.entry),
    Route("DELETE", "/api/catalog/entries/{path:path}", "author", C.remove, status=204),
    Route("GET", "/api/catalog/versions/{path:path}", "viewer", C.versions),
    Route("GET", "/api/catalog/outline/{path:path}", "viewer", C.outline),
    Route("POST", "/api/validate", "viewer", C.validate, TAKEN, 2 * LARGEST),
    Route("GET", "/api/schema", "viewer", C.schema),
    Route("POST", "/api/editing/check", "viewer", X.check, TAKEN, 2 * LARGEST),
    Route("POST", "/api/editing/complete", "viewer", X.complete, JSON, 2 * LARGEST),
    Route("POST", "/api/editing/about", "viewer", X.about, JSON, 2 * LARGEST),
    Route("POST", "/api/editing/translate", "viewer", X.translate, TAKEN, 2 * LARGEST),
    Route("POST", "/api/editing/test", "author", X.test, JSON, 4 * LARGEST),
    Route("POST", ALL, "operator", E.execute, JSON, 8 * MB, status=201),
    Route("POST", f"{ALL}/batch", "operator", E.start_many, JSON, 32 * MB, status=201),
    Route("POST", f"{ALL}/prune", "admin", E.prune, JSON),
    Route("GET", ALL, "viewer", E.page),
    Route("GET", ONE, "viewer", E.standing),
    Route("GET", f"{ONE}/state", "viewer", E.state),
    Route("GET", f"{ONE}/explanation", "viewer", E.explanation),
    Route("GET", f"{ONE}/outline", "viewer", E.outline),
    Route("GET", f"{ONE}/verify", "operator", E.verify),
    Route("GET", f"{ONE}/logs", "viewer", E.lines),
    Route("GET", f"{ONE}/result", "viewer", E.result),
    Route("POST", f"{ONE}/render", "viewer", V.render, JSON),
    Route("GET", f"{ONE}/bodies/{{checksum:str}}", "viewer", V.preview),
    Route("GET", f"{ONE}/bodies/{{checksum:str}}/download", "viewer", V.download),
    Route("POST", f"{ONE}/cancel", "operator", E.cancel, JSON),
    Route("POST", f"{ONE}/pause", "operator", E.pause, JSON),
    Route("POST", f"{ONE}/resume", "operator", E.resume, JSON),
    Route("POST", f"{ONE}/signal", "operator", P.signal, JSON, 8 * MB),
    Route("POST", f"{ONE}/answer", "approver", P.answer, JSON),
    Route("GET", "/api/waiting", "viewer", P.waiting),
    Route("POST", f"{ONE}/restart", "operator", Y.restart, JSON, 8 * MB, status=201),
    Route("POST", f"{ONE}/restart/plan", "operator", Y.restart_plan, JSON),
    Route("GET", f"{ONE}/differences/{{other:str}}", "viewer", Y.differences),
    Route("GET", f"{ONE}/events", "viewer", L.page),
    Route("GET", f"{ONE}/stream", "viewer", L.stream),
    Route("PUT", "/api/credentials/{name:path}", "admin", K.put, JSON, 1 * MB),
    Route("GET", "/api/credentials", "author", K.page),
    Route("DELETE", "/api/credentials/{name:path}", "admin", K.remove, status=204),
    Route("POST", "/api/tokens", "admin", A.make, JSON, status=201),
    Route("GET", "/api/tokens", "admin", A.page),
    Route("DELETE", "/api/tokens/{token_id:str}", "admin", A.revoke, status=204),
    Route("POST", "/api/sign-in", "open", S.sign_in, JSON),
    Route("POST", "/api/sign-out", "viewer", S.sign_out),
    Route("GET", "/api/me", "viewer", S.me),
    Route("GET", "/api/worker/hello", "worker", W.hello),
    Route("POST", "/api/worker/calls", "worker", W.call, JSON, 64 * MB),
    Route("POST", "/api/worker/questions", "worker", W.ask, JSON, 64 * MB),
    Route("GET", "/api/worker/wake", "worker", W.wake),
    Route("POST", "/api/worker/results", "worker", W.keep, JSON, LARGEST_BODY, status=201),
    Route("GET", "/api/worker/results", "worker", W.fetch),
    Route("GET", "/api/runtime", "viewer", R.runtime),
    Route("GET", "/healthz", "open", R.live),
    Route("GET", "/readyz", "open", R.ready),
    Route("GET", "/metrics", "viewer", R.metrics),
    Route("GET", "/openapi.json", "viewer", D.openapi),
    Route("GET", "/api/triggers", "viewer", T.page),
    Route("GET", "/api/triggers/entries/{path:path}", "viewer", T.detail),
    Route("DELETE", "/api/triggers/entries/{path:path}", "author", T.remove, status=204),
    Route("POST", "/api/triggers/trial/{path:path}", "operator", T.trial, JSON, 8 * MB),
    Route("POST", "/api/triggers/pause/{path:path}", "operator", T.pause),
    Route("POST", "/api/triggers/resume/{path:path}", "operator", T.resume),
    Route("POST", "/api/triggers/backfill/{path:path}", "operator", T.backfill, JSON),
    Route("GET", "/api/cache", "viewer", M.page),
    Route("POST", "/api/cache/clear", "operator", M.clear, JSON),
    Route("GET", "/api/audit", "admin", N.page),
    Route("GET", "/api/pools", "viewer", G.page),
    Route("PUT", "/api/pools/{name:str}", "admin", G.put, JSON),
    Route("DELETE", "/api/pools/{name:str}", "admin", G.remove, status=204),
    Route("POST", "/hooks/{path:path}", "open", H.call, most=8 * MB, status=202),
)


ORDERED: dict[Callable[..., Any], str] = {
    C.register: "register",
    C.remove: "catalog.remove",
    E.prune: "prune",
    E.execute: "start",
    E.start_many: "start",
    E.cancel: "cancel",
    E.pause: "pause",
    E.resume: "resume",
    Y.restart: "restart",
    P.signal: "signal",
    P.answer: "answer",
    K.put: "credential.put",
    K.remove: "credential.remove",
    A.make: "token.add",
    A.revoke: "token.revoke",
    T.remove: "trigger.remove",
    T.pause: "trigger.pause",
    T.resume: "trigger.resume",
    T.backfill: "trigger.backfill",
    M.clear: "cache.clear",
    G.put: "pool.set",
    G.remove: "pool.remove",
}
"""What is noted of who ordered it, by the word that `noetl audit` shows."""


def all_routes() -> tuple[Route, ...]:
    """Every route, in the order of the table."""
    return ROUTES


def noted_orders() -> dict[tuple[str, str], str]:
    """Method and path, as a request has them, of every route that orders something → its word."""
    ordering = [route for route in ROUTES if route.answer in ORDERED]
    return {
        (route.method, re.sub(r":\w+\}", "}", route.path)): ORDERED[route.answer]
        for route in ordering
    }


def handlers(answers: Callable[[type[Any]], object]) -> list[HTTPRouteHandler]:
    """Every route as the framework takes it, answered by one object of each kind."""
    made = {kind.__name__: answers(kind) for kind in KINDS}
    return [bound(made[route.answer.__qualname__.partition(".")[0]], route) for route in ROUTES]


def bound(answers: object, route: Route) -> HTTPRouteHandler:
    made: HTTPRouteHandler = HTTPRouteHandler(
        route.path,
        http_method=route.method,  # type: ignore[arg-type]
        opt={ACCESS: route.access, TAKES: route.takes},
        request_max_body_size=route.most,
        status_code=route.status,
        operation_id=operation_of(route),
        description=route.answer.__doc__,
    )(MethodType(route.answer, answers))
    return made


def operation_of(route: Route) -> str:
    kind, _, name = route.answer.__qualname__.partition(".")
    return f"{kind.removesuffix('Routes').lower()}_{name}"


def methods_at(path: str) -> list[str]:
    """What a path may be asked with, in the order of the table."""
    return [route.method for route in ROUTES if pattern_of(route.path).fullmatch(path)]


@cache
def pattern_of(template: str) -> re.Pattern[str]:
    """What a path of this template looks like; `path` parameters take slashes."""
    parts = re.split(r"\{\w+:(\w+)\}", template)
    kinds = {"str": "[^/]+", "path": ".+"}
    made = [kinds[part] if number % 2 else re.escape(part) for number, part in enumerate(parts)]
    return re.compile("".join(made) + "/?")
