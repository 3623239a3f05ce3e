"""What every tool kind is: one call with typed inputs, one outcome."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import msgspec

from noetl.kinds.kind import Inputs
from noetl.messages.outcome import Outcome
from noetl.messages.reference import Reference
from noetl.playbook.model import Timeout
from noetl.ports.result_store import ResultStore
from noetl.tools.paths import inside

In = TypeVar("In", bound=Inputs)
LogLine = Callable[[str, str], None]
"""`(stream, text)`: keeps what a tool printed, beside the log of events."""


class ToolCall(msgspec.Struct, Generic[In], frozen=True, kw_only=True):
    """One invocation: the rendered inputs, the knobs of `task.spec`, and who asks."""

    inputs: In
    execution_id: str
    step: str
    label: str
    task_run_id: str
    attempt: int = 1
    trace_id: str = ""
    """Of the execution (EVT-1): what the task calls can be told which trace it belongs to."""
    timeout: Timeout = Timeout()
    pool: int | None = None
    client_retries: int = 0
    resources: dict[str, Any] = {}
    shared: bool = False
    """TOOL-5 `isolation: shared`: tasks of the execution may see what earlier ones loaded."""
    scratch: str
    """Names the step run: what lives as long as it does (a DuckDB in memory, a warm child)."""
    folder: str | None = None
    """Where relative paths begin: the folder of the playbook's file, else `files`."""
    files: str | None = None
    """The worker's folder for files, which bounds every path; None: the playbook's own does."""
    private: tuple[str, ...] = ()
    """What no path may lead to."""
    max_inline: int = 1_048_576
    """A body longer than this belongs into the result store at once (EVT-4)."""

    def path(self, text: str) -> Path:
        """The file that a path of the task means; raises Refusal."""
        return inside(self.folder, text, self.files, self.private)

    @property
    def idempotency_key(self) -> str:
        """The same on every attempt and redelivery (TASK-9)."""
        return f"{self.execution_id}-{self.task_run_id}"


class Workplace(Protocol):
    """What a tool may ask of the worker around it."""

    @property
    def results(self) -> ResultStore: ...

    def log(self, call: ToolCall[Any], stream: str, text: str) -> None:
        """Keep a line that the task printed; `stream` is stdout, stderr or system."""

    async def unlock(self, name: str) -> dict[str, Any]:
        """The fields of a credential (KEY-1); raises CredentialMissing."""

    async def secret(self, provider: str, name: str, auth: str | None) -> Reference:
        """The value of a secret, sealed for the log (KEY-3); raises CredentialMissing."""

    async def child(
        self,
        call: ToolCall[Any],
        *,
        path: str,
        version: str | None,
        payload: dict[str, Any],
        wait: bool,
    ) -> dict[str, Any]:
        """Run a playbook as a child of this task: `{execution_id, status, ctx, result, error}`."""


class Tool(Protocol):
    """
    Contract, checked for every kind by tests/contracts/test_tool.py:
    - `call` returns exactly one Outcome and raises nothing but asyncio.CancelledError: what the
      world does wrong is an outcome with kind and retryable;
    - cancelling `call` stops the work itself (child killed, request closed, query cancelled);
    - `call` may run many times at once;
    - a tool with a true `keeps_time` ends a call by itself when `timeout.total` has passed, and
      tells what it knows of it; others are cancelled then;
    - `forget` drops what lived for one step run or execution; `close` drops everything.
    """

    async def call(self, call: ToolCall[Any], workplace: Workplace) -> Outcome: ...

    async def forget(self, scratch: str) -> None: ...

    async def close(self) -> None: ...


@runtime_checkable
class Warmable(Protocol):
    """A tool that can have ready what its first call needs."""

    def warm(self) -> None: ...
