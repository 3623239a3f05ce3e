"""
What workers and servers say to each other, whatever carries it (WRK-1).

The worker always begins: it has no inbound endpoint. One call carries everything it has to say
(reports, renewals, free slots), and the answer everything it has to know (verdicts, lost leases,
orders to stop, new parts), so that a chain of steps costs one round trip and one commit a step.
The wake-up for an idle worker says only whom to call (promise 5): losing it loses nothing.

The carriers are memory (`node.direct`, which encodes nothing), NATS and HTTP. `PROTOCOL` below is
the life of a part: in which state it is, what is said or happens, which state follows, and who
decides that. docs/reference/protocol.md is drawn from it.
"""

from typing import Annotated, Any, Literal, Protocol

import msgspec

from noetl.ports.event_log import Number, PrintedLine

SPEAKS = 2
"""
The number of what is said here. Fields may be added under one number, for an older peer leaves them
out and does not read them; whatever an older peer would take for something else gets the next one.
Workers and servers of one number work together, whatever their versions (decision 0051).
"""

PROTOCOL: tuple[tuple[str, str, str, str], ...] = (
    # state, what is said or happens, next state, who decides
    ("ordered", "commit of `token.enqueued`", "waiting", "server"),
    ("waiting", "Answer.grants", "held", "server, while its own lease is sure"),
    ("waiting", "cancel", "ended", "server"),
    ("held", "Call.holds (renewal)", "held", "server"),
    ("held", "Call.reports: `recorded`", "held", "server, after the commit"),
    ("held", "Call.reports: last event of the part", "ended", "server, after the commit"),
    ("held", "Call.reports: an event too large", "ended", "server: the run fails, once"),
    ("held", "Call.returns", "waiting", "worker: it drains, or the task pauses long"),
    ("held", "Answer.stops", "stopping", "server"),
    ("held", "no renewal for `ttl`", "waiting", "server: counted if the worker was heard here"),
    ("held", "third counted loss without progress", "ended", "server: `worker_lost`"),
    ("held", "the owner changes", "held", "new owner: a full term; the worker follows it"),
    ("stopping", "Call.reports: cancelled", "ended", "worker"),
    ("stopping", "no renewal for `ttl`", "ended", "server"),
)
"""The life of a part between the planes."""


Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Patience = Annotated[float, msgspec.Meta(ge=0, le=60)]
Few = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Short = Annotated[str, msgspec.Meta(max_length=255)]
"""What is kept of a worker for people, as long as it calls."""
Many = msgspec.Meta(max_length=100_000)
"""Of a list in one call: it is gone through while everybody else waits."""


class Hold(msgspec.Struct, frozen=True, array_like=True):
    """The name of a lease: this worker runs this part in this epoch."""

    execution_id: str
    step_run_id: str
    part: Number
    epoch: Number


class Sent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A report on its way (`messages.requests.Report`)."""

    hold: Hold
    after: Number
    """How many events of this part and epoch came before (EVT-3)."""
    events: msgspec.Raw
    """As `codec.encode_events` writes them."""


class Call(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that a worker says to one server at a time."""

    worker: Name
    pool: Name
    version: Short
    """For people; `speaks` says whether it is understood."""
    speaks: int = 1
    slots: Few = 0
    """Parts that it runs at once, at the most."""
    free: Few = 0
    """Parts that it would take with the answer."""
    room: Few = 0
    """Parts that it has room for in all: work is spread by it."""
    clock: Number = 0
    """Its clock (ms): times in its reports are moved by what it differs from the server's."""
    reports: Annotated[list[Sent], Many] = []
    holds: Annotated[list[Hold], Many] | None = None
    """Every lease that it has from this server, renewed by this; None: nothing is said of them."""
    returns: Annotated[list[Hold], Many] = []
    """Leases that it gives back, because it stops: what is recorded is recorded."""
    lines: Annotated[list[PrintedLine], Many] = []
    host: Short = ""
    pid: Number = 0


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """
    What became of a report, after the commit.

    `recorded`: it is in the log; `known`: it was there before (it came twice); `gap`: one before
    it did not come: send again from there; `later`: the log cannot be written now: send again;
    `moved`: another server owns the execution; `refused`: the part is not the worker's (any more).
    """

    state: Literal["recorded", "known", "gap", "later", "moved", "refused"]
    taken: int = 0
    """With `gap`: how many events of this part and epoch are recorded."""
    over: bool = False
    """Whether the part has ended, and its lease with it."""
    refused: msgspec.Raw = msgspec.Raw(b"[]")
    """The `task.done` whose write to ctx did not stand (LOOP-5), as they were recorded."""
    reason: str = ""


class Grant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part to run, and the lease on it."""

    command: msgspec.Raw
    """`control.dispatch.Command`, as `codec.encode` writes it."""
    digest: str
    """Of the playbook's text; see `PlaybookWanted`."""
    folder: str | None = None
    ttl: float = 0.0
    """Seconds after which the lease ends unless it is renewed."""
    beat: float = 0.0
    """Seconds between two renewals (TASK-10); 0: the worker's own choice."""


class Stop(msgspec.Struct, frozen=True, array_like=True):
    """An order to end the runs of an execution, or one of them (NEXT-8)."""

    execution_id: str
    step_run_id: str | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that a server says to a worker at a time."""

    server: str
    speaks: int = 1
    verdicts: list[Verdict] = []
    """One for each report, in order."""
    lost: list[Hold] = []
    """Of `holds`: those that are not the worker's any more."""
    moved: list[Hold] = []
    """Of `holds`: those of executions that this server does not decide for; ask who does."""
    clock: int = 0
    """The server's clock (ms)."""
    stops: list[Stop] = []
    """Said with every answer until the leases have ended: answers may overtake each other."""
    tidy: list[str] = []
    """Scratch names whose runs are over: tools drop what they kept for them."""
    grants: list[Grant] = []
    more: bool = False
    """Whether there is more for this pool than was granted."""
    refusal: str = ""
    """Why nothing of the call was heard: the worker speaks otherwise, or is not who it says."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    Who asks, and for which part: a question is answered to whoever holds the lease (WRK-1), by the
    server that decides for its execution. `OwnerWanted` alone is asked of any.
    """

    worker: Short = ""
    pool: Short = ""
    hold: Hold | None = None


class PlaybookWanted(Wanted, frozen=True, tag="playbook"):
    """The text of the playbook of the execution: answered by `{"text", "folder"}`."""

    digest: str


class ChildWanted(Wanted, frozen=True, tag="child"):
    """
    Start a child (TOOL-1), unless it was started before: `{"execution_id", "status"}`. Its id
    derives from a task of the part, of kind `playbook`.
    """

    asked: msgspec.Raw
    """`ports.session.ChildAsked`, as `codec.encode` writes it."""


class EndWanted(Wanted, frozen=True, kw_only=True, tag="end"):
    """
    How a child of the part ended: `{execution_id, status, ctx, result, error}`.

    Answered when it has ended, or after `wait` seconds with its status alone.
    """

    execution_id: str
    wait: Patience


class CancelWanted(Wanted, frozen=True, kw_only=True, tag="cancel"):
    """Cancel a child of the part, whose parent was cancelled: `{}`."""

    execution_id: str
    reason: str


class CredentialWanted(Wanted, frozen=True, tag="credential"):
    """A registered credential, sealed as it lies in the store, or null (KEY-2)."""

    name: str


class LogKeysWanted(Wanted, frozen=True, tag="log_keys"):
    """
    The keys of recorded secrets (KEY-3), sealed as they lie in the store; one is made first. To who
    has proved who it is they are also handed so that only it can open them (`keychain.handing`).
    """

    public: str = ""


class KeptWanted(Wanted, frozen=True, kw_only=True, tag="kept"):
    """
    The outcome that is kept for a task of the part's step under a key (CACHE-1):
    `{execution_id, at, outcome}`, or null.
    """

    task: str
    """Its step and its label."""
    key: str


class DelayWanted(Wanted, frozen=True, kw_only=True, tag="delay"):
    """
    How far pauses of the execution have moved the end of a delay that the part sleeps out (WAIT-6):
    milliseconds; null where the execution is still paused after `wait` seconds.
    """

    task_run_id: str
    wait: Patience


class OwnerWanted(Wanted, frozen=True, tag="owner"):
    """Which server decides for an execution: `{"server": name or null, "finished": bool}`."""

    execution_id: str


Question = (
    PlaybookWanted
    | ChildWanted
    | EndWanted
    | CancelWanted
    | CredentialWanted
    | LogKeysWanted
    | KeptWanted
    | DelayWanted
    | OwnerWanted
)


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a question: `value` as `codec.encode` writes it, or why there is none."""

    value: msgspec.Raw = msgspec.Raw(b"null")
    error: dict[str, Any] | None = None
    """`{"code", "message"}`; code `not_found`, `invalid`, `moved`, `later`, `internal`."""


class Caller(msgspec.Struct, frozen=True):
    """Who said something, as its carrier has proved it by a token or a key (decision 0050)."""

    tag: str | None = None
    """The end of the names of its workers; None: nobody asks for tokens, all names are its own."""
    pool: str | None = None
    """The one pool that it works for; None: any."""

    def strange(self, worker: str, pool: str) -> str:
        """Why it cannot be this worker of this pool, or nothing."""
        if self.tag is not None and not worker.endswith(f"-{self.tag}"):
            return f"worker '{worker}' came with the token of another"
        if self.pool is not None and pool != self.pool:
            return f"the token is for pool '{self.pool}', not for '{pool}'"
        return ""


ANYBODY = Caller()


class LinkKey(msgspec.Struct, frozen=True):
    """What signs the messages of a party where the carrier is not trusted (decision 0049)."""

    name: str
    """How a server finds it; says nothing about it."""
    secret: bytes
    caller: Caller = ANYBODY
    """Who is known by it."""


class Link(Protocol):
    """
    A worker's line to the servers. Contract, checked for every adapter by
    tests/contracts/test_link.py:
    - calls to one server arrive in the order in which they were made; several may be under way;
    - `call` and `ask` raise `ServerAway` where nobody answered in time or the server is gone: then
      the call may or may not have been heard, and may be made again;
    - `wake` returns when there may be something to do: the name of the server to call (for a
      worker that is `hungry`, work of its pool; for any, news about its own parts); it may return
      without reason, and it returns at least every `POLL` seconds with some server of those there
      are, so that a lost wake-up costs no more than that (T4).
    - lines come back by themselves: only `close` ends a link.
    """

    async def call(self, server: str, call: Call) -> Answer: ...

    async def ask(self, question: Question, server: str | None = None) -> Reply: ...

    async def wake(self, worker: str, pool: str, *, hungry: bool) -> str: ...

    async def close(self) -> None: ...


POLL = 2.0
"""Seconds after which an idle worker asks without having been woken."""


class Notifier(Protocol):
    """
    How a server wakes workers. Both return at once and never raise; what is lost is made good by
    `POLL`. Rings for one pool that come while one is under way may be melted into one.
    """

    def wake_pool(self, pool: str, parts: int) -> None:
        """There are parts to run in this pool."""

    def wake_worker(self, worker: str) -> None:
        """There is news for this worker: let it call."""


class Listener(Protocol):
    """The server, as whatever carries the messages sees it (`server.dispatcher`)."""

    name: str

    async def answer(self, call: Call, by: Caller) -> Answer: ...

    async def reply(self, question: Question, by: Caller) -> Reply: ...


class Switchboard(Protocol):
    """
    The server's half of a carrier that brings calls by itself (HTTP comes through the API): made
    with a `Listener`, it hands every call and question to it, in the order in which they came.
    """

    @property
    def notifier(self) -> Notifier:
        """Wakes the workers on this carrier, from `open` on."""

    @property
    def there(self) -> bool:
        """Whether calls can arrive now. While they cannot, no lease runs out (T11)."""

    async def open(self) -> None:
        """Returns when the carrier is there; it waits for one that is away."""

    async def close(self) -> None:
        """What is being answered is answered first, if it does not take long."""
