"""What went wrong, in the one form that every refusal has: `{"error": {code, message, hint}}`."""

import logging
import secrets
from typing import Any

from litestar import Response
from litestar.exceptions import HTTPException, InternalServerException, ValidationException

from noetl.api.answers import answered
from noetl.api.context import Asking
from noetl.api.patterns import pattern_words
from noetl.api.refusals import refusal_of
from noetl.api.routes import methods_at
from noetl.api.types import ApiError, ErrorBody
from noetl.errors import NoetlError, ServerRefused
from noetl.kinds.misfit import misfit_words

LOG = logging.getLogger("noetl.api")

FRAMEWORK: dict[int, tuple[str, str]] = {
    400: ("malformed", "/openapi.json describes what is expected"),
    401: ("unauthorized", "send `Authorization: Bearer TOKEN` with a valid token"),
    403: ("forbidden", "use a token whose role allows it"),
    404: ("not_found", "/openapi.json lists every route"),
    405: ("method_not_allowed", "/openapi.json lists every route"),
    413: ("too_large", "send a smaller body"),
    415: ("unsupported_media_type", "set Content-Type to what the route takes"),
    422: ("invalid", "/openapi.json describes what is expected"),
}
"""Status of the framework's refusals → code, what to do."""
GONE = "client disconnected prematurely"
"""What the framework says of a body that does not come to its end, as a fault of its own."""


def refusal_to(request: Asking, wrong: Exception) -> Response[ErrorBody]:
    """The answer to whatever was raised; never a traceback."""
    status, fault = fault_of(wrong)
    if status >= 500 and not isinstance(wrong, ServerRefused):
        fault = told(request, wrong, status, fault)
    return answered(ErrorBody(error=fault), status=status, headers=headers_with(request, status))


def headers_with(request: Asking, status: int) -> dict[str, str] | None:
    """What HTTP wants said with these (RFC 9110)."""
    if status == 401:
        return {"www-authenticate": "Bearer"}
    if status == 405:
        return {"allow": ", ".join(methods_at(request.scope["path"]))}
    return None


def fault_of(wrong: Exception) -> tuple[int, ApiError]:
    if isinstance(wrong, NoetlError):
        return refusal_of(wrong)
    if isinstance(wrong, HTTPException):
        return framework_fault(wrong)
    if isinstance(wrong, RecursionError):
        return 400, ApiError(code="malformed", message="the body is nested too deeply")
    if isinstance(wrong, UnicodeDecodeError):  # the framework passes it on as it comes
        return 400, ApiError(code="malformed", message=f"the body is not UTF-8: {wrong.reason}")
    return 500, ApiError(code="internal", message="internal server error")


def framework_fault(wrong: HTTPException) -> tuple[int, ApiError]:
    status = 422 if isinstance(wrong, ValidationException) else wrong.status_code
    if type(wrong) is InternalServerException and wrong.detail == GONE:
        status = 400  # strangers can do so as often as they like, and the log is not theirs to fill
    if status >= 500:
        return 500, ApiError(code="internal", message="internal server error")
    code, hint = FRAMEWORK.get(status, ("refused", ""))
    return status, ApiError(code=code, message=words_of(wrong), hint=hint)


def words_of(wrong: HTTPException) -> str:
    """What was wrong and where; the framework keeps it in a list beside its sentence."""
    details: Any = wrong.extra if isinstance(wrong.extra, list) else []
    found = [
        f"{source_of(one)} {one.get('key', '')}: {said_of(one)}"
        for one in details
        if isinstance(one, dict)
    ]
    return "; ".join(found) or wrong.detail or "refused"


def said_of(detail: dict[str, Any]) -> str:
    return pattern_words(misfit_words(str(detail.get("message", ""))))


def source_of(detail: dict[str, Any]) -> str:
    """`body`, `query`, `path` or `header`; the framework has an enumeration for it."""
    source = detail.get("source", "body")
    return str(getattr(source, "value", source))


def told(request: Asking, wrong: Exception, status: int, fault: ApiError) -> ApiError:
    """The log gets all of it, the client a number to find it by."""
    number = secrets.token_hex(4)
    where = f"{request.method} {request.url.path}"
    if status == 500:
        LOG.error("internal error=%s at=%s", number, where, exc_info=wrong)
    else:
        LOG.warning("unavailable error=%s at=%s why=%s", number, where, wrong)
    hint = f"{fault.hint}; the server's log has it as {number}".removeprefix("; ")
    return ApiError(code=fault.code, message=fault.message, hint=hint)
