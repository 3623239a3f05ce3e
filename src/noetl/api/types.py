"""
What the API takes and answers: one type for each object, the same for server, client and CLI.

Times are RFC 3339 texts. A page is followed by asking again with its `next` as `cursor`.
"""

from typing import Annotated, Any, Literal

import msgspec

from noetl.api.editing_types import BodyPreview as BodyPreview
from noetl.api.editing_types import CursorRequest as CursorRequest
from noetl.api.editing_types import ExplainedRewrite as ExplainedRewrite
from noetl.api.editing_types import FoundFault as FoundFault
from noetl.api.editing_types import TemplateRequest as TemplateRequest
from noetl.api.editing_types import TemplateTried as TemplateTried
from noetl.api.editing_types import TestsRequest as TestsRequest
from noetl.api.editing_types import TestsRun as TestsRun
from noetl.api.editing_types import TextChecked as TextChecked
from noetl.api.editing_types import TextEdit as TextEdit
from noetl.api.editing_types import TextOffer as TextOffer
from noetl.api.editing_types import TextOffers as TextOffers
from noetl.api.editing_types import TextTranslated as TextTranslated
from noetl.api.editing_types import WordAbout as WordAbout
from noetl.api.patterns import ARCHIVE, PRINTED, Reason
from noetl.api.register_types import AuditPage as AuditPage
from noetl.api.register_types import AuditView as AuditView
from noetl.api.register_types import CacheCleared as CacheCleared
from noetl.api.register_types import CacheClearRequest as CacheClearRequest
from noetl.api.register_types import CachePage as CachePage
from noetl.api.register_types import CacheView as CacheView
from noetl.api.register_types import PoolLimit as PoolLimit
from noetl.api.register_types import PoolLimits as PoolLimits
from noetl.api.register_types import PoolRequest as PoolRequest
from noetl.api.trigger_types import Backfill as Backfill
from noetl.api.trigger_types import BackfillRequest as BackfillRequest
from noetl.api.trigger_types import BackfillTime as BackfillTime
from noetl.api.trigger_types import Name as Name
from noetl.api.trigger_types import RestartPlanRequest as RestartPlanRequest
from noetl.api.trigger_types import RestartRequest as RestartRequest
from noetl.api.trigger_types import Trial as Trial
from noetl.api.trigger_types import TrialRequest as TrialRequest
from noetl.api.trigger_types import TriggerDetail as TriggerDetail
from noetl.api.trigger_types import TriggerPage as TriggerPage
from noetl.api.trigger_types import TriggerView as TriggerView
from noetl.playbook.finding import Finding
from noetl.server.policies import Pruned as Pruned
from noetl.server.report import ExecutionReport
from noetl.server.views.standing import Listed, TaskLine
from noetl.server.waiting import WaitReason

Role = Literal["viewer", "approver", "operator", "author", "admin", "worker"]


# ── refusals ─────────────────────────────────────────────────────────────────────────────────


class ApiError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a request was refused."""

    code: str
    """A word for programs."""
    message: str
    """A sentence for people."""
    hint: str = ""
    """What to do about it."""
    findings: list[Finding] | None = None
    """With a refused playbook or payload: what is wrong with it, at most 500; there are `more`."""
    more: int = 0
    execution_id: str | None = None
    """What a refused request to execute is recorded as."""


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of every answer that is no success."""

    error: ApiError


# ── catalog ──────────────────────────────────────────────────────────────────────────────────


class RegisterRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A playbook to register; as `text/yaml` the body is the text itself."""

    text: str
    migrate: bool = False
    """Whether a text of an older dialect is turned into this one first."""


class CatalogVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a registered playbook."""

    playbook_id: str
    path: str
    version: int
    version_label: str | None
    """`metadata.version`: what the author calls it."""
    digest: str
    registered_at: str
    name: str
    description: str | None
    labels: dict[str, str]
    migrated: bool
    """Whether it came in an older dialect; the entry's page has that text too."""


class RegisterAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a registration came to."""

    entry: CatalogVersion
    fresh: bool
    """False: the newest version had this text already, and is what came back."""
    findings: list[Finding]
    """Warnings, at most 500, and how many `more`; a playbook with errors is refused."""
    more: int = 0


class EntryPage(msgspec.Struct, frozen=True, kw_only=True):
    """Entries: of the whole catalog the newest by path, of one path the newest first."""

    entries: list[CatalogVersion]
    next: str | None


class EntryText(CatalogVersion, frozen=True, kw_only=True):
    """An entry with its text."""

    text: str
    original: str | None
    """As it was before it was migrated."""


class ValidateRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text to check; as `text/yaml` the body is the text itself."""

    text: str


class Validated(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a text: at most 500 findings, errors first where there are `more`."""

    valid: bool
    findings: list[Finding]
    more: int = 0


# ── executions ───────────────────────────────────────────────────────────────────────────────


class ExecuteRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which playbook to execute, by its id or by its path, and on what."""

    playbook_id: Name | None = None
    path: Name | None = None
    version: Annotated[int, msgspec.Meta(ge=1, le=999_999_999)] | Name | None = None
    """With `path`: a number of the catalog, or `metadata.version`; without it the newest."""
    payload: dict[str, Any] = {}
    """Goes into `workload`, and nowhere else."""
    ctx: dict[str, Any] = {}
    """The initial `ctx` (SCOPE-4)."""


class KeyedRequest(ExecuteRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of many requests; its key is what the header is to a single one."""

    key: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=PRINTED)] | None = None


class StartedExecution(Listed, frozen=True, kw_only=True):
    """An execution that a request has started."""

    warnings: list[Finding] = msgspec.field(default_factory=list)
    """What of the payload does not fit the playbook (VAL-7)."""


class BatchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Executions to start together: one request, one commit."""

    executions: Annotated[list[KeyedRequest], msgspec.Meta(min_length=1, max_length=1000)]


class PruneRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which ended executions to remove (KEEP-1)."""

    older_than: Annotated[float, msgspec.Meta(ge=0, le=10_000_000_000)]
    """Seconds since their end."""
    status: list[Literal["completed", "failed", "cancelled"]] = []
    path: Name = "*"
    """A glob."""
    labels: dict[str, str] = {}
    """Of the playbooks that they ran."""
    archive: Annotated[str, msgspec.Meta(pattern=ARCHIVE)] | None = None
    """Where they are kept before: `results`, or a bucket; a folder is refused."""
    form: Literal["jsonl", "parquet"] = "jsonl"
    dry_run: bool = True
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    """About how many go with this request; ask again until none does."""


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """What one of them came to: it began, or was refused."""

    execution: StartedExecution | None = None
    error: ApiError | None = None


class ExecutionBatch(msgspec.Struct, frozen=True, kw_only=True):
    """As many as were asked for, in the same order."""

    executions: list[Begun]


class ExecutionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Executions, the newest first."""

    executions: list[Listed]
    next: str | None


class ExecutionState(msgspec.Struct, frozen=True, kw_only=True):
    """The state that the log comes to, as `noetl replay --json` shows it."""

    execution_id: str
    seq: int
    status: str
    ctx: dict[str, Any]
    tokens: list[Any]
    runs: list[Any]
    loops: list[Any]


class Summary(ExecutionReport, frozen=True, kw_only=True):
    """What an execution came to, as `noetl run --json` shows it."""


class HookAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a call of a webhook started."""

    execution: Listed
    result: Summary | None
    """What it came to, where the call waited for it."""


class OrderRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why an execution is cancelled, paused or resumed."""

    reason: Reason = ""


class SignalRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signal to an execution (WAIT-4)."""

    name: Name
    data: Any = None
    id: Name | None = None
    """The same id twice is one signal."""


class AnswerRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a person says to an approval (WAIT-5)."""

    approved: bool
    step: Name | None = None
    """The step, or the task run, that waits for it; may be left out where only one does."""
    reason: Reason = ""
    fields: dict[str, Any] = {}
    """Of its form."""


class PersonAwaited(msgspec.Struct, frozen=True, kw_only=True):
    """Something that waits for a person (WAIT-7)."""

    execution_id: str
    path: str
    wait: WaitReason


class WaitingPage(msgspec.Struct, frozen=True, kw_only=True):
    """What waits for people, the newest executions first."""

    waiting: list[PersonAwaited]
    next: str | None


class EventView(msgspec.Struct, frozen=True, kw_only=True):
    """An event in its envelope (EVT-1), as `noetl events --json` shows it."""

    event_id: str
    seq: int
    execution_id: str
    timestamp: str
    source: str
    name: str
    entity: str
    entity_id: str
    status: str
    step: str | None
    step_run_id: str | None
    task_run_id: str | None
    trace_id: str
    parent_id: str | None
    data: dict[str, Any]


class EventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Events in their order."""

    events: list[EventView]
    after: int
    """The log was read up to here: the `after` of the next page, or of a stream."""
    more: bool
    """Whether there is more now; a page may be short of its limit and not be the last."""


class LinePage(msgspec.Struct, frozen=True, kw_only=True):
    """What the tasks of an execution printed, in order."""

    lines: list[TaskLine]
    next: str | None


# ── credentials and tokens ───────────────────────────────────────────────────────────────────


class CredentialRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A credential to register (KEY-1). Its values go in and never out."""

    kind: Name
    fields: dict[str, Any]


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """What may be shown of a credential."""

    name: str
    kind: str
    key_id: str
    updated_at: str


class CredentialPage(msgspec.Struct, frozen=True, kw_only=True):
    """The registered credentials, by name."""

    credentials: list[Credential]
    next: str | None


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A token to make."""

    name: Name
    role: Role
    expires_in: Annotated[float, msgspec.Meta(gt=0, le=1e10)] | None = None
    """Seconds; without it the token is good until it is revoked."""
    pool: str | None = None
    """With role worker: the one pool that it takes work of; without it `default`."""


class TokenView(msgspec.Struct, frozen=True, kw_only=True):
    """What may be shown of a token."""

    token_id: str
    name: str
    role: str
    pool: str | None
    """Of a worker's: the one pool that it takes work of; null: any."""
    created_at: str
    expires_at: str | None
    revoked_at: str | None


class TokenMade(TokenView, frozen=True, kw_only=True):
    """A new token; its text is shown this once."""

    token: str


class TokenPage(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens, the oldest first."""

    tokens: list[TokenView]
    next: str | None


class SignInRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The token with which a person begins a session."""

    token: Name


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks."""

    auth: bool
    """Whether the server asks for tokens at all."""
    name: str
    role: str


# ── runtime ──────────────────────────────────────────────────────────────────────────────────


class ServerView(msgspec.Struct, frozen=True, kw_only=True):
    """A server as it was last seen."""

    name: str
    address: str
    version: str
    started_at: str
    seen_at: str


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as it was last seen."""

    name: str
    pool: str
    slots: int
    busy: int
    version: str
    host: str
    pid: int
    started_at: str
    seen_at: str
    server: str | None


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """The workers of one pool together."""

    name: str
    workers: int
    slots: int
    busy: int


class HttpTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What the answering server has answered since it began, long polls left out."""

    answers: int
    seconds: float
    """Until they began, in all."""


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """Who is there, and what there is to do."""

    server: str
    """The one that answers."""
    version: str
    servers: list[ServerView]
    workers: list[WorkerView]
    pools: list[Pool]
    waits_for: list[str]
    """What the answering server lacks, if it is not ready."""
    counts: dict[str, Any]
    """Executions by status, parts that wait for a worker by pool, leases, and so on."""
    http: HttpTotals | None = None


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the server lives, or is ready."""

    status: Literal["ok", "waiting"]


# ── workers ──────────────────────────────────────────────────────────────────────────────────


class ServerIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a worker has reached."""

    server: str
    version: str
    speaks: int
    """The number of the protocol (`ports.link`)."""
    store: str
    """What references to results say (RES-1)."""


class Woken(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a worker that waits for something to do."""

    server: str
    """Whom to call."""
    rung: bool
    """False: nothing happened meanwhile."""


class Stored(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The reference to a stored body (RES-1)."""

    store: str
    key: str
    size: int
    checksum: str
    range: str | None = None
    schema_hint: str | None = None
