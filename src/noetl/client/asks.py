"""Every question that a client can put to a server: its route, its body, the type of its answer."""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar, overload
from urllib.parse import quote

import msgspec

from noetl.api import types as t
from noetl.messages.envelope import timestamp
from noetl.messages.requests import Order
from noetl.server.verify import Verified
from noetl.server.views.differences import Differences
from noetl.server.views.explanation import Explanation
from noetl.server.views.standing import Listed, Standing

if TYPE_CHECKING:
    from noetl.client.client import Client

P = ParamSpec("P")
T = TypeVar("T")
LONGEST_WAIT = 30.0
"""Seconds that one long poll may take; a longer wait is several of them."""

PROOF = 600.0
"""Seconds that making every decision of a long log again may take."""


class Ask(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One request, not yet sent."""

    method: str
    path: str
    answer: Any
    """The type of the answer: of `type[T]`, which mypy cannot say of unions."""
    query: Mapping[str, str | int | float | bool | None] = {}
    body: bytes | None = None
    media: str = "application/json"
    headers: Mapping[str, str] = {}
    again: bool = True
    """Whether it may be sent twice, where the first answer was lost."""
    patience: float = 0.0
    """Seconds that the server may take on purpose."""


def _get(route: str, answer: Any, /, **query: Any) -> Ask[Any]:
    return Ask(method="GET", path=route, query=query, answer=answer)


def _send(method: str, route: str, body: msgspec.Struct, answer: Any) -> Ask[Any]:
    return Ask(method=method, path=route, body=msgspec.json.encode(body), answer=answer)


def _below(folder: str, path: str) -> str:
    """Paths of playbooks and names of credentials may hold slashes."""
    return f"{folder}/{quote(path.strip('/'), safe='/')}"


def _of(execution_id: str, below: str = "") -> str:
    return f"/api/executions/{quote(execution_id, safe='')}{below}"


# ── catalog ──────────────────────────────────────────────────────────────────────────────────


def register(text: str, *, migrate: bool = False) -> Ask[t.RegisterAnswer]:
    """The next version of a playbook; the same text again is the same version."""
    wanted = t.RegisterRequest(text=text, migrate=migrate)
    return _send("POST", "/api/catalog", wanted, t.RegisterAnswer)


def catalog(*, cursor: str | None = None, limit: int = 100) -> Ask[t.EntryPage]:
    """The newest version of every path."""
    return _get("/api/catalog", t.EntryPage, cursor=cursor, limit=limit)


def versions(path: str, *, cursor: str | None = None, limit: int = 100) -> Ask[t.EntryPage]:
    """All versions of a path, the newest first."""
    route = _below("/api/catalog/versions", path)
    return _get(route, t.EntryPage, cursor=cursor, limit=limit)


def playbook(path: str, *, version: int | str | None = None) -> Ask[t.EntryText]:
    """One version with its text, by its number or its label; else the newest."""
    return _get(_below("/api/catalog/entries", path), t.EntryText, version=version)


def remove_playbook(path: str, *, version: int | str | None = None) -> Ask[None]:
    """Take one version of a playbook out of the catalog, or all."""
    route = _below("/api/catalog/entries", path)
    return Ask(method="DELETE", path=route, query={"version": version}, answer=None)


# ── executions ───────────────────────────────────────────────────────────────────────────────


def execute(
    path: str,
    *,
    version: int | str | None = None,
    payload: Mapping[str, Any] | None = None,
    ctx: Mapping[str, Any] | None = None,
    key: str | None = None,
    strict: bool = False,
) -> Ask[t.StartedExecution]:
    """
    Begin an execution; the answer comes when it is on the disk.

    `strict` refuses a payload that does not fit; without it the answer has `warnings` (VAL-7).
    `key` makes it safe to ask again: the same key starts one execution. Without one the client
    draws its own, so that a lost answer never starts two.
    """
    wanted = t.ExecuteRequest(
        path=path, version=version, payload=dict(payload or {}), ctx=dict(ctx or {})
    )
    ask = _send("POST", "/api/executions", wanted, t.StartedExecution)
    return _keyed(msgspec.structs.replace(ask, query={"strict": strict or None}), key)


def _keyed(ask: Ask[T], key: str | None) -> Ask[T]:
    headers = {"Idempotency-Key": key or secrets.token_hex(16)}
    return msgspec.structs.replace(ask, headers=headers)


def restart(
    execution_id: str,
    *,
    chosen: Sequence[str] = (),
    version: int | str | None = None,
    payload: Mapping[str, Any] | None = None,
    key: str | None = None,
) -> Ask[t.StartedExecution]:
    """
    Begin a new execution that takes over what an ended one recorded.

    `chosen` is run again (`STEP`, `STEP@RUN`, `STEP:I,J`), without it what failed; `payload`
    changes the workload. `key` is as of `execute`.
    """
    wanted = t.RestartRequest(chosen=list(chosen), version=version, payload=dict(payload or {}))
    return _keyed(_send("POST", _of(execution_id, "/restart"), wanted, t.StartedExecution), key)


def start_many(requests: Sequence[t.KeyedRequest]) -> Ask[t.ExecutionBatch]:
    """Begin up to 1,000 executions with one request; those without a key are given one."""
    keyed = [
        one if one.key is not None else msgspec.structs.replace(one, key=secrets.token_hex(16))
        for one in requests
    ]
    batch = t.BatchRequest(executions=keyed)
    return _send("POST", "/api/executions/batch", batch, t.ExecutionBatch)


def prune(request: t.PruneRequest) -> Ask[t.Pruned]:
    """Remove ended executions, or see which would go; ask again until none does."""
    ask = _send("POST", "/api/executions/prune", request, t.Pruned)
    return msgspec.structs.replace(ask, patience=PROOF)


def executions(
    *,
    status: str | None = None,
    path: str | None = None,
    parent: str | None = None,
    since: str | None = None,
    until: str | None = None,
    prefix: str | None = None,
    key: str | None = None,
    text: str | None = None,
    label: str | None = None,
    cursor: str | None = None,
    limit: int = 100,
) -> Ask[t.ExecutionPage]:
    """
    Executions, the newest first. `text` is a part of path, id or error, `label` one of the playbook
    (NAME=VALUE); `prefix`, what their ids begin with, and `key` are asked alone.
    """
    return _get(
        "/api/executions",
        t.ExecutionPage,
        status=status,
        path=path,
        parent=parent,
        since=since,
        until=until,
        prefix=prefix,
        key=key,
        text=text,
        label=label,
        cursor=cursor,
        limit=limit,
    )


def standing(execution_id: str) -> Ask[Standing]:
    """How an execution stands, and what it waits for."""
    return _get(_of(execution_id), Standing)


def state(execution_id: str) -> Ask[t.ExecutionState]:
    """The state that its log comes to."""
    return _get(_of(execution_id, "/state"), t.ExecutionState)


def events(
    execution_id: str, *, after: int = 0, name: str | None = None, limit: int = 200
) -> Ask[t.EventPage]:
    """A page of its events, those after a `seq`."""
    return _get(_of(execution_id, "/events"), t.EventPage, after=after, name=name, limit=limit)


def lines(
    execution_id: str, *, step: str | None = None, cursor: str | None = None, limit: int = 200
) -> Ask[t.LinePage]:
    """A page of what its tasks printed."""
    return _get(_of(execution_id, "/logs"), t.LinePage, step=step, cursor=cursor, limit=limit)


def summary(execution_id: str, *, wait: float = 0.0) -> Ask[t.Summary]:
    """What it came to; with `wait` the answer waits so many seconds for the end."""
    seconds = min(wait, LONGEST_WAIT)
    ask = _get(_of(execution_id, "/result"), t.Summary, wait=seconds or None)
    return msgspec.structs.replace(ask, patience=seconds)


def explanation(execution_id: str) -> Ask[Explanation]:
    """Why it waits or failed."""
    return _get(_of(execution_id, "/explanation"), Explanation)


def differences(execution_id: str, other: str) -> Ask[Differences]:
    """Where two executions parted, task by task."""
    return _get(_of(execution_id, f"/differences/{quote(other, safe='')}"), Differences)


def verified(execution_id: str) -> Ask[Verified]:
    """Whether every decision in its log follows from its recorded input."""
    return msgspec.structs.replace(_get(_of(execution_id, "/verify"), Verified), patience=PROOF)


def order(execution_id: str, kind: Order, *, reason: str = "") -> Ask[Listed]:
    """Cancel, pause or resume."""
    return _send("POST", _of(execution_id, f"/{kind}"), t.OrderRequest(reason=reason), Listed)


def signal(execution_id: str, name: str, data: Any = None, *, id: str | None = None) -> Ask[Listed]:
    """
    Send a signal. With an `id` it is safe to ask again: without one the client draws its own, so
    that a lost answer never sends two.
    """
    wanted = t.SignalRequest(name=name, data=data, id=id or secrets.token_hex(16))
    return _send("POST", _of(execution_id, "/signal"), wanted, Listed)


def answer(
    execution_id: str,
    step: str | None = None,
    *,
    approved: bool,
    reason: str = "",
    fields: Mapping[str, Any] | None = None,
) -> Ask[Listed]:
    """Answer an approval."""
    wanted = t.AnswerRequest(approved=approved, step=step, reason=reason, fields=dict(fields or {}))
    ask = _send("POST", _of(execution_id, "/answer"), wanted, Listed)
    return msgspec.structs.replace(ask, again=False)


def waiting(*, cursor: str | None = None, limit: int = 100) -> Ask[t.WaitingPage]:
    """What waits for people."""
    return _get("/api/waiting", t.WaitingPage, cursor=cursor, limit=limit)


# ── credentials, tokens, runtime ─────────────────────────────────────────────────────────────


def put_credential(name: str, kind: str, fields: Mapping[str, Any]) -> Ask[t.Credential]:
    """Register a credential, or replace it."""
    wanted = t.CredentialRequest(kind=kind, fields=dict(fields))
    return _send("PUT", _below("/api/credentials", name), wanted, t.Credential)


def credentials(*, cursor: str | None = None, limit: int = 100) -> Ask[t.CredentialPage]:
    """What is registered: never a value."""
    return _get("/api/credentials", t.CredentialPage, cursor=cursor, limit=limit)


def remove_credential(name: str) -> Ask[None]:
    return Ask(method="DELETE", path=_below("/api/credentials", name), answer=None)


def make_token(
    name: str, role: t.Role, *, expires_in: float | None = None, pool: str | None = None
) -> Ask[t.TokenMade]:
    """A new token; its text is in this answer and never again."""
    wanted = t.TokenRequest(name=name, role=role, expires_in=expires_in, pool=pool)
    ask = _send("POST", "/api/tokens", wanted, t.TokenMade)
    return msgspec.structs.replace(ask, again=False)


def tokens(*, cursor: str | None = None, limit: int = 100) -> Ask[t.TokenPage]:
    return _get("/api/tokens", t.TokenPage, cursor=cursor, limit=limit)


def revoke_token(token_id: str) -> Ask[None]:
    return Ask(method="DELETE", path=f"/api/tokens/{quote(token_id, safe='')}", answer=None)


def runtime() -> Ask[t.Runtime]:
    """Servers, workers, pools and what there is to do."""
    return _get("/api/runtime", t.Runtime)


def ready() -> Ask[t.Health]:
    """Whether the server takes requests."""
    return _get("/readyz", t.Health)


def cache(
    *,
    path: str | None = None,
    task: str | None = None,
    key: str | None = None,
    limit: int = 100,
) -> Ask[t.CachePage]:
    """Outcomes that are kept, the latest first."""
    return _get("/api/cache", t.CachePage, path=path, task=task, key=key, limit=limit)


def clear_cache(
    *, path: str | None = None, task: str | None = None, key: str | None = None
) -> Ask[t.CacheCleared]:
    """Remove kept outcomes; all of them, where nothing says which."""
    wanted = t.CacheClearRequest(path=path, task=task, key=key)
    return _send("POST", "/api/cache/clear", wanted, t.CacheCleared)


def audit(
    *,
    since: int | None = None,
    until: int | None = None,
    who: str | None = None,
    what: str | None = None,
    limit: int = 100,
) -> Ask[t.AuditPage]:
    """Who ordered what, the latest first; times are ms since 1970."""
    begin, end = (None if at is None else timestamp(at) for at in (since, until))
    return _get("/api/audit", t.AuditPage, since=begin, until=end, who=who, what=what, limit=limit)


def pools() -> Ask[t.PoolLimits]:
    """Pools with a limit, by name."""
    return _get("/api/pools", t.PoolLimits)


def set_pool(name: str, at_once: int) -> Ask[t.PoolLimit]:
    """Set how many parts of a pool run at once."""
    return _send("PUT", _below("/api/pools", name), t.PoolRequest(at_once=at_once), t.PoolLimit)


def remove_pool(name: str) -> Ask[None]:
    """Let a pool run as much as its workers take."""
    return Ask(method="DELETE", path=_below("/api/pools", name), answer=None)


# ── triggers ─────────────────────────────────────────────────────────────────────────────────


def triggers(
    *, kind: str | None = None, cursor: str | None = None, limit: int = 100
) -> Ask[t.TriggerPage]:
    """All triggers, or those of a kind, by path."""
    return _get("/api/triggers", t.TriggerPage, kind=kind, cursor=cursor, limit=limit)


def trigger(path: str, *, count: int = 5) -> Ask[t.TriggerDetail]:
    """One trigger with its next planned times."""
    return _get(_below("/api/triggers/entries", path), t.TriggerDetail, count=count)


def trial(
    path: str,
    *,
    at: str | None = None,
    data: Any = None,
    headers: Mapping[str, str] | None = None,
) -> Ask[t.Trial]:
    """What a trigger would start; nothing is."""
    wanted = t.TrialRequest(at=at, data=data, headers=dict(headers or {}))
    return _send("POST", _below("/api/triggers/trial", path), wanted, t.Trial)


def pause_trigger(path: str) -> Ask[t.TriggerView]:
    """Let it start nothing until it is resumed."""
    return Ask(method="POST", path=_below("/api/triggers/pause", path), answer=t.TriggerView)


def resume_trigger(path: str) -> Ask[t.TriggerView]:
    """Let it start again, from now on."""
    return Ask(method="POST", path=_below("/api/triggers/resume", path), answer=t.TriggerView)


def remove_trigger(path: str) -> Ask[None]:
    return Ask(method="DELETE", path=_below("/api/triggers/entries", path), answer=None)


def backfill(path: str, begin: str, end: str, *, dry_run: bool = True) -> Ask[t.Backfill]:
    """The planned times of a range; each is started once, unless it is a dry run."""
    wanted = t.BackfillRequest(begin=begin, end=end, dry_run=dry_run)
    return _send("POST", _below("/api/triggers/backfill", path), wanted, t.Backfill)


# ── the list of both clients ─────────────────────────────────────────────────────────────────


class Question(Generic[P, T]):
    """A question as a method of a client: `client.standing(id)` sends `standing(id)`."""

    def __init__(self, make: Callable[P, Ask[T]]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, client: None, owner: Any) -> Self: ...
    @overload
    def __get__(self, client: "Client", owner: Any) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: "AwaitedQuestions", owner: Any) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, client: Any, owner: Any) -> Any:
        if client is None:
            return self
        return lambda *args, **kwargs: client.send(self._make(*args, **kwargs))


class ClientQuestions:
    """What every client can ask; `Client` answers with the value."""

    register = Question(register)
    catalog = Question(catalog)
    versions = Question(versions)
    playbook = Question(playbook)
    remove_playbook = Question(remove_playbook)
    execute = Question(execute)
    start_many = Question(start_many)
    restart = Question(restart)
    prune = Question(prune)
    executions = Question(executions)
    standing = Question(standing)
    state = Question(state)
    events = Question(events)
    lines = Question(lines)
    summary = Question(summary)
    order = Question(order)
    signal = Question(signal)
    answer = Question(answer)
    waiting = Question(waiting)
    explanation = Question(explanation)
    differences = Question(differences)
    verified = Question(verified)
    put_credential = Question(put_credential)
    credentials = Question(credentials)
    remove_credential = Question(remove_credential)
    make_token = Question(make_token)
    tokens = Question(tokens)
    revoke_token = Question(revoke_token)
    runtime = Question(runtime)
    ready = Question(ready)
    cache = Question(cache)
    clear_cache = Question(clear_cache)
    audit = Question(audit)
    pools = Question(pools)
    set_pool = Question(set_pool)
    remove_pool = Question(remove_pool)
    triggers = Question(triggers)
    trigger = Question(trigger)
    trial = Question(trial)
    pause_trigger = Question(pause_trigger)
    resume_trigger = Question(resume_trigger)
    remove_trigger = Question(remove_trigger)
    backfill = Question(backfill)


class AwaitedQuestions(ClientQuestions):
    """The same, awaited."""
