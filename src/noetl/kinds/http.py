"""The kind that sends one HTTP request."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, field

from noetl.kinds.fields import Auth
from noetl.kinds.kind import Inputs, Kind


class HttpInputs(Inputs, frozen=True, kw_only=True):
    """One request (TOOL-0)."""

    url: Annotated[str, Meta(description="Where the request goes; http or https.")]
    method: Annotated[str, Meta(description="The request method, such as GET or POST.")] = "GET"
    headers: Annotated[
        Mapping[str, str | int | float | bool], Meta(description="Request headers by name.")
    ] = field(default_factory=dict)
    params: Annotated[
        dict[str, Any], Meta(description="Query parameters; a list gives one for each element.")
    ] = field(default_factory=dict)
    body: Annotated[
        Any, Meta(description="The body: a mapping or list is sent as JSON, text as it is.")
    ] = None
    form: Annotated[
        dict[str, Any] | None, Meta(description="Fields of a form, sent instead of a body.")
    ] = None
    files: Annotated[
        dict[str, Any] | None, Meta(description="Files of a multipart form, by field name.")
    ] = None
    auth: Auth = None
    follow_redirects: Annotated[bool, Meta(description="Whether redirects are followed.")] = True


HTTP = Kind(name="http", inputs=HttpInputs, summary="Send an HTTP request.", block="http")
