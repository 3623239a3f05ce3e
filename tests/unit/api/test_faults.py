"""Every refusal has one form, and none shows what is inside."""

from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import AsyncTestClient
from tests.support.api import SmallPlane

from noetl import errors
from noetl.api.faults import fault_of
from noetl.api.refusals import OURS
from noetl.api.serve import create_app
from noetl.errors import NoetlError, PlaybookRejected, ServerRefused
from noetl.masking import KNOWN
from noetl.playbook.finding import Finding

FINDING = Finding("c", "error", 1, 2, "p", "m", "h")


def client_of(plane: SmallPlane) -> AsyncTestClient[Litestar]:
    return AsyncTestClient(create_app(plane, auth=False), base_url="http://127.0.0.1")


@pytest.mark.parametrize(
    ("wrong", "status", "code"),
    [
        (errors.ExecutionNotFound("no"), 404, "execution_not_found"),
        (errors.PlaybookNotFound("no"), 404, "playbook_not_found"),
        (PlaybookRejected((FINDING,)), 422, "playbook_rejected"),
        (errors.KeyReused("no"), 409, "key_reused"),
        (errors.VersionConflict("no"), 409, "conflict"),
        (errors.HomeInUse("no"), 409, "in_use"),
        (errors.BodyLost("no"), 410, "result_lost"),
        (errors.CredentialMissing("no"), 422, "credential"),
        (errors.CredentialUnreadable("no"), 503, "credential_key"),
        (errors.CredentialUnavailable("no"), 503, "credential_unavailable"),
        (errors.LogUnavailable("no"), 503, "log_unavailable"),
        (errors.ServerAway("no"), 503, "server_away"),
        (ServerRefused("no", code="finished", status=409), 409, "finished"),
        (ServerRefused("no"), 409, "refused"),
        (NoetlError("no"), 400, "refused"),
        (RecursionError("deep"), 400, "malformed"),
        (RuntimeError("inside"), 500, "internal"),
    ],
)
async def test_what_an_exception_becomes(wrong: Exception, status: int, code: str) -> None:
    plane = SmallPlane()
    plane.fault = wrong
    async with client_of(plane) as client:
        answer = await client.get("/api/executions/e1")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/json"
    if status == 500:
        assert "inside" not in answer.text
    elif not isinstance(wrong, RecursionError):
        assert error["message"] == str(wrong)


def test_every_one_of_the_table_is_tested_above() -> None:
    assert set(OURS) <= {kind for kind in vars(errors).values() if isinstance(kind, type)}
    assert all(status in range(400, 600) for status, _, _ in OURS.values())


async def test_a_fault_of_ours_is_told_by_a_number_and_no_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plane = SmallPlane()
    plane.fault = RuntimeError("where the secrets are")
    async with client_of(plane) as client:
        answer = await client.get("/api/executions/e1")
    (record,) = [one for one in caplog.records if one.name == "noetl.api"]
    number = record.getMessage().partition("error=")[2].split()[0]
    assert answer.json()["error"]["hint"] == f"the server's log has it as {number}"
    assert "Traceback" not in answer.text
    assert "secrets" not in answer.text
    assert record.exc_info is not None


def test_findings_stand_in_the_refusal() -> None:
    status, fault = fault_of(PlaybookRejected((FINDING,)))
    assert (status, fault.findings) == (422, [FINDING])


async def test_a_secret_in_a_message_is_masked() -> None:
    KNOWN.add("hunter2hunter2")
    plane = SmallPlane()
    plane.fault = NoetlError("cannot reach postgresql://me:hunter2hunter2@db")
    async with client_of(plane) as client:
        answer = await client.get("/api/executions/e1")
    assert answer.json()["error"]["message"] == "cannot reach postgresql://me:***@db"


RUN = "/api/executions"
BODY = f"/api/worker/results?store=memory&key=e1/{'0' * 64}"
NO_FIELDS = {"json": {"kind": "bearer", "fields": {}}}


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "code", "words"),
    [
        ("GET", "/nowhere", {}, 404, "not_found", ""),
        ("GET", "/api", {}, 404, "not_found", ""),
        ("PUT", "/api/catalog", {}, 405, "method_not_allowed", ""),
        ("GET", "/api/executions/%00", {}, 400, "malformed", "NUL"),
        ("GET", "/api/catalog?cursor=%00", {}, 400, "malformed", "NUL"),
        ("GET", "/api/catalog?limit=0", {}, 422, "invalid", "query limit: "),
        ("GET", "/api/catalog?limit=201", {}, 422, "invalid", "limit"),
        ("GET", "/api/catalog?limit=x", {}, 422, "invalid", "it is text, expected a whole number"),
        ("GET", "/api/catalog?cursor=x", {}, 400, "cursor", "not one of this list"),
        ("GET", "/api/executions?status=odd", {}, 422, "invalid", "status"),
        ("GET", "/api/executions?since=yesterday", {}, 422, "invalid", "since"),
        ("GET", "/api/executions/e1/events?after=-1", {}, 422, "invalid", "after"),
        ("GET", "/api/executions/e1/result?wait=61", {}, 422, "invalid", "wait"),
        ("GET", "/api/worker/wake", {}, 422, "invalid", "worker"),
        ("GET", f"{BODY}&start={2**64}", {}, 422, "invalid", "start"),
        ("POST", RUN, {"content": b"{"}, 400, "malformed", "truncated"),
        ("POST", RUN, {"content": b"\xff"}, 400, "malformed", ""),
        ("POST", RUN, {"content": b"[" * 100_000}, 400, "malformed", ""),
        ("POST", RUN, {"json": []}, 422, "invalid", ""),
        ("POST", RUN, {"json": {}}, 422, "invalid", "expected `playbook_id`"),
        ("POST", RUN, {"json": {"path": "a", "playbook_id": "b"}}, 422, "invalid", ""),
        ("POST", RUN, {"json": {"playbook_id": "a:1", "version": 1}}, 422, "invalid", ""),
        ("POST", RUN, {"json": {"path": "a", "version": 0}}, 422, "invalid", "version"),
        ("POST", RUN, {"json": {"path": "a", "payload": 1}}, 422, "invalid", "payload"),
        ("POST", RUN, {"json": {"path": "a\0"}}, 422, "invalid", "path"),
        ("POST", RUN, {"json": {"path": "a", "paylod": {}}}, 422, "invalid", "paylod"),
        ("POST", "/api/tokens", {"json": {"name": "a", "role": "root"}}, 422, "invalid", "role"),
        ("POST", "/api/tokens", {"json": {"name": "", "role": "admin"}}, 422, "invalid", "name"),
        ("POST", "/api/worker/calls", {"json": {"worker": 1}}, 422, "invalid", "`$.worker`"),
        ("POST", "/api/worker/questions", {"json": {"type": "odd"}}, 422, "invalid", "odd"),
        ("POST", "/api/worker/calls?server=other", {"json": {}}, 421, "moved", "this is server"),
        ("PUT", "/api/credentials/%20", NO_FIELDS, 422, "credential", ""),
        ("PUT", "/api/credentials/a", NO_FIELDS, 422, "credential", "lacks"),
        ("DELETE", "/api/credentials/a", {}, 404, "credential_not_found", ""),
        ("DELETE", "/api/tokens/a", {}, 404, "token_not_found", ""),
        ("GET", "/api/catalog/entries/a/b", {}, 404, "playbook_not_found", "no playbook 'a/b'"),
        ("GET", "/api/catalog/versions/a", {}, 404, "playbook_not_found", ""),
        ("GET", "/api/executions/no%20id", {}, 400, "malformed", "is not an execution id"),
        ("GET", "/api/executions/%2e%2e/events", {}, 400, "malformed", "is not an execution id"),
    ],
)  # fmt: skip
async def test_bad_requests_are_refused_in_words(
    method: str, path: str, sent: dict[str, Any], status: int, code: str, words: str
) -> None:
    headers = {"content-type": "application/json"} if sent else {}
    async with client_of(SmallPlane()) as client:
        answer = await client.request(method, path, headers=headers, **sent)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code), answer.text
    assert words in error["message"]
    assert error["message"]


@pytest.mark.parametrize(
    ("path", "size", "status"),
    [
        ("/api/catalog", 2 * 1024 * 1024 + 1, 413),
        ("/api/catalog", 5 * 1024 * 1024, 413),
        ("/api/validate", 2 * 1024 * 1024 + 1, 413),
        ("/api/executions", 8 * 1024 * 1024 + 1, 413),
        ("/api/executions/e1/cancel", 70_000, 413),
        ("/api/tokens", 70_000, 413),
    ],
)
async def test_a_body_that_is_too_large_is_refused(path: str, size: int, status: int) -> None:
    media = "text/yaml" if path in ("/api/catalog", "/api/validate") else "application/json"
    body = b" " * size if media == "text/yaml" else b'"' + b"x" * size + b'"'
    async with client_of(SmallPlane()) as client:
        answer = await client.post(path, content=body, headers={"content-type": media})
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, "too_large")


def test_a_body_that_is_no_text_is_malformed() -> None:
    wrong = UnicodeDecodeError("utf-8", b"\xf2", 0, 1, "invalid")
    status, fault = fault_of(wrong)
    assert (status, fault.code) == (400, "malformed")
    assert fault.message == "the body is not UTF-8: invalid"
