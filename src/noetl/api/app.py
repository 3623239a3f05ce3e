"""The API of a server process: the table of routes, bound to a control plane."""

from typing import Any

from litestar import Litestar
from litestar.datastructures import State

from noetl.api.access import AccessRoutes
from noetl.api.context import ApiContext
from noetl.api.document import DocumentRoutes
from noetl.api.faults import refusal_to
from noetl.api.gate import Gate
from noetl.api.plane import ServerProcess
from noetl.api.routes import ROUTES, bound


def create_app(plane: ServerProcess, *, auth: bool) -> Litestar:
    """The app. Whoever serves it calls `context_of(app).close()` when it is to stop."""
    context = ApiContext(plane)
    gate = Gate(plane.storage.tokens if auth else None)
    return Litestar(
        [
            bound(answers, route)
            for kind, routes in ROUTES
            for answers in [made_for(kind, context, gate)]
            for route in routes
        ],
        guards=[gate],
        exception_handlers={Exception: refusal_to},
        middleware=[context.metrics.watched],
        openapi_config=None,  # it would bring routes that are not in the table
        logging_config=None,
        state=State({"context": context}),
        on_shutdown=[context.close],
    )


def context_of(app: Litestar) -> ApiContext:
    context: ApiContext = app.state.context
    return context


def made_for(kind: type[Any], context: ApiContext, gate: Gate) -> object:
    if kind is AccessRoutes:
        return AccessRoutes(context, gate)
    if kind is DocumentRoutes:
        return DocumentRoutes(described)
    made: object = kind(context)
    return made


def described() -> dict[str, Any]:
    # Imported when it is asked for: it builds an app of its own.
    from noetl.api.description import openapi

    return openapi()
