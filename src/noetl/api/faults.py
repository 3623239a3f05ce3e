"""What went wrong, in the one form that every refusal has: `{"error": {code, message, hint}}`."""

import logging
import secrets
from typing import Any

from litestar import Response
from litestar.exceptions import HTTPException, ValidationException

from noetl import errors
from noetl.api.answers import answered
from noetl.api.routes import methods_at
from noetl.api.surround import Asking
from noetl.api.types import Fault, Refusal
from noetl.errors import NoetlError, PlaybookRejected, ServerRefused

LOG = logging.getLogger("noetl.api")

OURS: dict[type[NoetlError], tuple[int, str, str]] = {
    errors.ExecutionNotFound: (404, "execution_not_found", "GET /api/executions lists them"),
    errors.PlaybookNotFound: (404, "playbook_not_found", "GET /api/catalog lists them"),
    errors.PlaybookRejected: (422, "playbook_rejected", "mend what the findings show"),
    errors.KeyReused: (409, "key_reused", "take a new Idempotency-Key for a new request"),
    errors.VersionConflict: (409, "conflict", "ask again"),
    errors.HomeInUse: (409, "in_use", "ask again when it is free"),
    errors.BodyLost: (410, "result_lost", "retention may have removed it"),
    errors.CredentialMissing: (422, "credential", ""),
    errors.CredentialUnreadable: (503, "credential_key", "the server lacks the key of it"),
    errors.CredentialUnavailable: (503, "credential_unavailable", "ask again later"),
    errors.LogUnavailable: (503, "log_unavailable", "ask again; nothing of the request happened"),
    errors.ServerAway: (503, "server_away", "ask again"),
}
"""Our exceptions → status, code, what to do. Their text is a sentence for a person."""

FRAMEWORK: dict[int, tuple[str, str]] = {
    400: ("malformed", "/openapi.json describes what is expected"),
    401: ("unauthorized", "send `Authorization: Bearer TOKEN` with a token that is good"),
    403: ("forbidden", "take a token of a role that may"),
    404: ("not_found", "/openapi.json lists every route"),
    405: ("method_not_allowed", "/openapi.json lists every route"),
    413: ("too_large", "send less"),
    415: ("unsupported_media_type", "set Content-Type to what the route takes"),
    422: ("invalid", "/openapi.json describes what is expected"),
}
"""Status of the framework's refusals → code, what to do."""


def refusal_to(request: Asking, wrong: Exception) -> Response[Refusal]:
    """The answer to whatever was raised; never a traceback."""
    status, fault = fault_of(wrong)
    if status >= 500:
        fault = told(request, wrong, status, fault)
    return answered(Refusal(error=fault), status=status, headers=headers_with(request, status))


def headers_with(request: Asking, status: int) -> dict[str, str] | None:
    """What HTTP wants said with these (RFC 9110)."""
    if status == 401:
        return {"www-authenticate": "Bearer"}
    if status == 405:
        return {"allow": ", ".join(methods_at(request.scope["path"]))}
    return None


def fault_of(wrong: Exception) -> tuple[int, Fault]:
    if isinstance(wrong, PlaybookRejected):
        status, code, hint = OURS[PlaybookRejected]
        findings = list(wrong.findings)
        return status, Fault(code=code, message=str(wrong), hint=hint, findings=findings)
    if isinstance(wrong, ServerRefused):
        return wrong.status or 409, Fault(code=wrong.code, message=str(wrong))
    if isinstance(wrong, NoetlError):
        known = (OURS[kind] for kind in type(wrong).__mro__ if kind in OURS)
        status, code, hint = next(known, (400, "refused", ""))
        return status, Fault(code=code, message=str(wrong), hint=hint)
    if isinstance(wrong, HTTPException):
        return framework_fault(wrong)
    if isinstance(wrong, RecursionError):
        return 400, Fault(code="malformed", message="the body is nested too deeply")
    return 500, Fault(code="internal", message="the server met an error of its own")


def framework_fault(wrong: HTTPException) -> tuple[int, Fault]:
    status = 422 if isinstance(wrong, ValidationException) else wrong.status_code
    if status >= 500:
        return 500, Fault(code="internal", message="the server met an error of its own")
    code, hint = FRAMEWORK.get(status, ("refused", ""))
    return status, Fault(code=code, message=words_of(wrong), hint=hint)


def words_of(wrong: HTTPException) -> str:
    """What was wrong and where; the framework keeps it in a list beside its sentence."""
    details: Any = wrong.extra if isinstance(wrong.extra, list) else []
    found = [
        f"{source_of(one)} {one.get('key', '')}: {one.get('message', '')}"
        for one in details
        if isinstance(one, dict)
    ]
    return "; ".join(found) or wrong.detail or "refused"


def source_of(detail: dict[str, Any]) -> str:
    """`body`, `query`, `path` or `header`; the framework has an enumeration for it."""
    source = detail.get("source", "body")
    return str(getattr(source, "value", source))


def told(request: Asking, wrong: Exception, status: int, fault: Fault) -> Fault:
    """The log gets all of it, the client a number to find it by."""
    number = secrets.token_hex(4)
    where = f"{request.method} {request.url.path}"
    if status == 500:
        LOG.error("internal error=%s at=%s", number, where, exc_info=wrong)
    else:
        LOG.warning("unavailable error=%s at=%s why=%s", number, where, wrong)
    hint = f"{fault.hint}; the server's log has it as {number}".removeprefix("; ")
    return Fault(code=fault.code, message=fault.message, hint=hint)
