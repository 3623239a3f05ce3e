"""The OpenAPI document: what the framework reads from signatures, completed from the table."""

import re
from collections.abc import Callable
from typing import Any

import msgspec
from litestar import Litestar
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin
from litestar.openapi.spec import Components, SecurityScheme

from noetl import __version__
from noetl.api import types as t
from noetl.api.catalog import CatalogRoutes
from noetl.api.editing import EditingRoutes
from noetl.api.events import EventsRoutes
from noetl.api.routes import ROUTES, Route, handlers
from noetl.api.runtime import RuntimeRoutes
from noetl.api.texts import YAML
from noetl.api.values import ValuesRoutes
from noetl.api.worker import WorkerRoutes
from noetl.ports.link import Call, Question

Part = dict[str, Any]
SCHEMAS = "#/components/schemas/{name}"
SCHEME = "token"
PARAMETER = re.compile(r"\{(\w+):\w+\}")
WHAT = (
    "The API of a NoETL server. Every error is an `ErrorBody`. Lists take `limit` and `cursor`, "
    "the `next` of the previous page."
)

Answering = Callable[..., Any]

BODIES: dict[Answering, Any] = {
    CatalogRoutes.register: t.RegisterRequest,
    CatalogRoutes.validate: t.ValidateRequest,
    EditingRoutes.check: t.ValidateRequest,
    EditingRoutes.complete: t.CursorRequest,
    EditingRoutes.about: t.CursorRequest,
    EditingRoutes.translate: t.ValidateRequest,
    EditingRoutes.test: t.TestsRequest,
    WorkerRoutes.call: Call,
    WorkerRoutes.ask: Question,
    WorkerRoutes.keep: Any,
}
"""Bodies that the routes read for themselves, so that the framework does not know them."""

REQUESTS = [kind for name, kind in vars(t).items() if name.endswith("Request")]
"""Of these the document says which keys are known, as the server does."""

STREAMS: dict[Answering, tuple[str, Any]] = {
    WorkerRoutes.call: ("application/json", dict),
    WorkerRoutes.ask: ("application/json", dict),
    WorkerRoutes.fetch: ("application/json", Any),
    EventsRoutes.stream: ("text/event-stream", dict),
    RuntimeRoutes.metrics: ("text/plain", str),
    ValuesRoutes.download: ("application/json", Any),
}
"""Answers that are sent piece by piece or are no JSON; workers' are `noetl.ports.link`'s."""

ALSO: dict[Answering, tuple[str, str | None, str]] = {
    CatalogRoutes.register: ("200", "201", "The newest version is the same."),
    EventsRoutes.stream: ("204", None, "There is nothing after the given id."),
    RuntimeRoutes.ready: ("503", "200", "It waits."),
}
"""A second answer: its status, the status of the answer whose form it has, and its meaning."""


def openapi() -> Part:
    """The whole document; it needs no server."""
    config = OpenAPIConfig(
        title="NoETL",
        version=__version__,
        description=WHAT,
        render_plugins=[JsonRenderPlugin()],
        components=Components(
            security_schemes={SCHEME: SecurityScheme(type="http", scheme="bearer")}
        ),
    )
    nobody = object()  # signatures are all that is read
    app = Litestar(handlers(lambda _: nobody), openapi_config=config, logging_config=None)
    document: Part = app.openapi_schema.to_schema()
    document["components"]["schemas"].update(schemas())
    for route in ROUTES:
        complete(document["paths"][template_of(route)][route.method.lower()], route)
    # As JSON has it: the framework leaves tuples and enumerations in the document.
    plain: Part = msgspec.json.decode(msgspec.json.encode(document))
    return plain


def template_of(route: Route) -> str:
    """The path as OpenAPI writes it."""
    return PARAMETER.sub(r"{\1}", route.path)


def schemas() -> Part:
    """Of types that no signature names, and of requests: msgspec says which keys are unknown."""
    named = [t.ErrorBody, *REQUESTS, *(kind for kind in BODIES.values() if kind is not Any)]
    _, components = msgspec.json.schema_components(named, ref_template=SCHEMAS)
    return components


def schema_of(kind: Any) -> Part:
    if kind is Any:
        return {}
    (schema,), _ = msgspec.json.schema_components([kind], ref_template=SCHEMAS)
    return schema


def complete(operation: Part, route: Route) -> None:
    operation["security"] = [] if route.access == "open" else [{SCHEME: []}]
    operation["summary"] = summary_of(route)
    operation["tags"] = [route.path.split("/")[2] if route.path.startswith("/api") else "server"]
    for parameter in operation.get("parameters", ()):
        if parameter["in"] == "path":  # paths of playbooks are no URIs
            parameter["schema"].pop("format", None)
    if route.answer in BODIES:
        operation["requestBody"] = body_of(route, BODIES[route.answer])
    responses = operation["responses"]
    responses.pop("400", None)
    if route.answer in STREAMS:
        media, kind = STREAMS[route.answer]
        responses["200"]["content"] = {media: {"schema": schema_of(kind)}}
    if route.answer in ALSO:
        status, like, meaning = ALSO[route.answer]
        responses[status] = {**(responses[like] if like else {}), "description": meaning}
    responses["4XX"] = refusal("The request was refused.")
    responses["5XX"] = refusal("The server cannot answer now.")


def summary_of(route: Route) -> str:
    doc = (route.answer.__doc__ or "").strip()
    return doc.splitlines()[0]


def body_of(route: Route, kind: Any) -> Part:
    content: Part = {"application/json": {"schema": schema_of(kind)}}
    for media in YAML[: 1 if YAML[0] in route.takes else 0]:
        content[media] = {"schema": {"type": "string"}}
    return {"required": route.answer is not WorkerRoutes.keep, "content": content}


def refusal(description: str) -> Part:
    schema = {"$ref": SCHEMAS.format(name="ErrorBody")}
    return {"description": description, "content": {"application/json": {"schema": schema}}}
