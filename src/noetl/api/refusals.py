"""What the API says of our own exceptions: a status, a code, and what to do."""

from collections.abc import Sequence

import msgspec

from noetl import errors
from noetl.api.types import ApiError
from noetl.errors import InputsRejected, NoetlError, PlaybookRejected, ServerRefused
from noetl.playbook.finding import Finding

OURS: dict[type[NoetlError], tuple[int, str, str]] = {
    errors.ExecutionNotFound: (404, "execution_not_found", "GET /api/executions lists them"),
    errors.PlaybookNotFound: (404, "playbook_not_found", "GET /api/catalog lists them"),
    errors.PlaybookRejected: (422, "playbook_rejected", "fix what the findings show"),
    errors.InputsRejected: (
        422,
        "inputs_rejected",
        "fix it, or leave `strict` out",
    ),
    errors.LimitReached: (429, "limit_reached", "try again when others have ended"),
    errors.TriggerNotFound: (404, "trigger_not_found", "GET /api/triggers lists them"),
    errors.TemplateError: (422, "template", "correct the payload of the trigger"),
    errors.KeyReused: (409, "key_reused", "use a new Idempotency-Key for a new request"),
    errors.RestartRefused: (409, "restart_refused", ""),
    errors.VersionConflict: (409, "conflict", "ask again"),
    errors.HomeInUse: (409, "in_use", "try again when it is free"),
    errors.BodyLost: (410, "result_lost", "retention may have removed it"),
    errors.CredentialMissing: (422, "credential", ""),
    errors.CredentialUnreadable: (503, "credential_key", "the server does not have its key"),
    errors.CredentialUnavailable: (503, "credential_unavailable", "try again later"),
    errors.LogDamaged: (500, "log_damaged", "restore the log from a backup"),
    errors.OutcomeUnknown: (503, "outcome_unknown", "try again; start with the same key"),
    errors.LogUnavailable: (503, "log_unavailable", "try again; nothing was changed"),
    errors.ServerAway: (503, "server_away", "ask again"),
}
"""Our exceptions → status, code, what to do. Their text is a sentence for a person."""


MOST = 500
"""Findings of one answer: a text of 2 MB can have tens of thousands."""


def told_of(findings: Sequence[Finding]) -> tuple[list[Finding], int]:
    """Those that are answered, errors first where they are many; and how many more there are."""
    if len(findings) <= MOST:
        return list(findings), 0
    errors_first = sorted(findings, key=lambda one: one.severity != "error")
    return errors_first[:MOST], len(findings) - MOST


def refusal_of(wrong: NoetlError) -> tuple[int, ApiError]:
    if isinstance(wrong, PlaybookRejected | InputsRejected):
        status, code, hint = OURS[type(wrong)]
        findings, more = told_of(wrong.findings)
        told = ApiError(code=code, message=str(wrong), hint=hint, findings=findings, more=more)
        return status, msgspec.structs.replace(told, execution_id=wrong.execution_id)
    if isinstance(wrong, ServerRefused):
        return wrong.status or 409, ApiError(code=wrong.code, message=str(wrong))
    known = (OURS[kind] for kind in type(wrong).__mro__ if kind in OURS)
    status, code, hint = next(known, (400, "refused", ""))
    told = ApiError(code=code, message=str(wrong), hint=hint)
    return status, msgspec.structs.replace(told, execution_id=wrong.execution_id)
