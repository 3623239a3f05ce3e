"""The API of a server process: the table of routes, bound to a control plane."""

from typing import Any

from litestar import Litestar
from litestar.datastructures import State

from noetl.api.access import AccessRoutes
from noetl.api.document import DocumentRoutes
from noetl.api.faults import refusal_to
from noetl.api.gate import Gate
from noetl.api.plane import ServerProcess
from noetl.api.routes import ROUTES, bound
from noetl.api.surround import ApiContext


def create_app(plane: ServerProcess, *, auth: bool) -> Litestar:
    """The app. Whoever serves it calls `surround_of(app).close()` when it is to stop."""
    surround = ApiContext(plane)
    gate = Gate(plane.storage.tokens if auth else None)
    return Litestar(
        [
            bound(desk, route)
            for kind, routes in ROUTES
            for desk in [desk_of(kind, surround, gate)]
            for route in routes
        ],
        guards=[gate],
        exception_handlers={Exception: refusal_to},
        middleware=[surround.metrics.watched],
        openapi_config=None,  # it would bring routes that are not in the table
        logging_config=None,
        state=State({"surround": surround}),
        on_shutdown=[surround.close],
    )


def surround_of(app: Litestar) -> ApiContext:
    surround: ApiContext = app.state.surround
    return surround


def desk_of(kind: type[Any], surround: ApiContext, gate: Gate) -> object:
    if kind is AccessRoutes:
        return AccessRoutes(surround, gate)
    if kind is DocumentRoutes:
        return DocumentRoutes(described)
    made: object = kind(surround)
    return made


def described() -> dict[str, Any]:
    # Imported when it is asked for: it builds an app of its own.
    from noetl.api.description import openapi

    return openapi()
