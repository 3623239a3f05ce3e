"""The kind that sends one HTTP request."""

from collections.abc import Mapping
from typing import Annotated, Any

from noetl.kinds.fields import Auth, doc
from noetl.kinds.kind import Inputs, Kind


class HttpInputs(Inputs, frozen=True, kw_only=True):
    """One request (TOOL-0)."""

    url: Annotated[str, doc("Where the request goes; http or https.")]
    method: Annotated[str, doc("The request method, such as GET or POST.")] = "GET"
    headers: Annotated[Mapping[str, str | int | float | bool], doc("Request headers by name.")] = {}
    params: Annotated[
        dict[str, Any], doc("Query parameters; a list gives one for each element.")
    ] = {}
    body: Annotated[Any, doc("The body: a mapping or list is sent as JSON, text as it is.")] = None
    form: Annotated[dict[str, Any] | None, doc("Fields of a form, sent instead of a body.")] = None
    files: Annotated[dict[str, Any] | None, doc("Files of a multipart form, by field name.")] = None
    auth: Auth = None
    follow_redirects: Annotated[bool, doc("Whether redirects are followed.")] = True


HTTP = Kind(
    "http",
    HttpInputs,
    "Send an HTTP request.",
    block="http",
    tells=("status", "headers", "encoding"),
    knobs=("pool", "client_retries", "timeout.connect", "timeout.read"),
    credential="--kind bearer",
)
