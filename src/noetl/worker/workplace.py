"""What the worker lends to a tool for one call."""

import time
from typing import TYPE_CHECKING, Any, Protocol

from noetl.control.dispatch import Command
from noetl.errors import (
    CredentialMissing,
    CredentialUnavailable,
    CredentialUnreadable,
    ServerRefused,
    SettingRefused,
)
from noetl.kinds.table import KINDS
from noetl.late import late
from noetl.masking import KNOWN
from noetl.messages.reference import Reference
from noetl.playbook.plan import Plan
from noetl.ports.event_log import PrintedLine
from noetl.ports.result_store import ResultStore
from noetl.ports.session import ChildAsked
from noetl.tools.refusal import Refusal
from noetl.tools.tool import ToolCall
from noetl.worker.masked_results import masked_results
from noetl.worker.secrecy import Sealing, Secrecy

if TYPE_CHECKING:
    from noetl.worker.worker import Worker


UNUSABLE = (CredentialUnreadable, CredentialUnavailable, SettingRefused, ServerRefused)
"""A credential that is there and cannot be used; a server may lack the key as well."""


class Unlocking(Protocol):
    """The keychain as a worker sees it; both raise CredentialMissing and its neighbours."""

    async def unlock(self, plan: Plan, name: str) -> dict[str, Any]: ...

    async def secret(self, plan: Plan, provider: str, name: str, auth: str | None) -> Any: ...

    @property
    def seals(self) -> Sealing: ...


class PartWorkplace:
    """See `tools.tool.Workplace`."""

    def __init__(self, worker: "Worker", plan: Plan, command: Command, kind: str) -> None:
        self._worker = worker
        self._plan = plan
        self._command = command
        self._kind = kind
        self._masked: ResultStore | None = None
        """The store once a secret is known."""

    @property
    def results(self) -> ResultStore:
        if not KNOWN:
            return self._worker.results
        if self._masked is None:
            self._masked = masked_results(self._worker.results)
        return self._masked

    def log(self, call: ToolCall[Any], stream: str, text: str) -> None:
        self._worker.printed.keep(
            PrintedLine(
                execution_id=call.execution_id,
                step=call.step,
                task_run_id=call.task_run_id,
                attempt=call.attempt,
                at=int(time.time() * 1000),
                stream=stream,
                text=KNOWN.masked(text),
            )
        )

    async def unlock(self, name: str) -> dict[str, Any]:
        try:
            return await self._worker.keychain.unlock(self._plan, name)
        except UNUSABLE as wrong:
            raise refusal(wrong) from None
        except CredentialMissing as missing:
            raise CredentialMissing(with_options(str(missing), self._kind)) from None

    async def secret(self, provider: str, name: str, auth: str | None) -> Reference:
        keychain = self._worker.keychain
        try:
            return keychain.seals.seal(await keychain.secret(self._plan, provider, name, auth))
        except UNUSABLE as wrong:
            raise refusal(wrong) from None

    async def child(
        self,
        call: ToolCall[Any],
        *,
        path: str,
        version: str | None,
        payload: dict[str, Any],
        wait: bool,
    ) -> dict[str, Any]:
        if KNOWN:  # the child's log has it, too (KEY-3)
            payload = Secrecy(self._worker.keychain.seals, {}).fit(payload)
        asked = ChildAsked(
            parent_execution_id=call.execution_id,
            parent_id=call.task_run_id,
            execution_id=f"{call.execution_id}-{call.task_run_id}-{call.attempt}",
            path=path,
            version=version,
            payload=payload,
        )
        return await self._worker.session.child(self._command, asked, wait=wait)


def with_options(said: str, kind: str) -> str:
    """The command that registers a credential, with the options that a task of the kind needs."""
    options = KINDS[kind].credential if kind in KINDS else ""
    return REGISTERS.sub(rf"\g<0> {options}", said) if options else said


REGISTERS = late(r"noetl credential add [^\s`]+(?= *`|$)")


def refusal(wrong: Exception) -> Refusal:
    """How a call ends whose credential is there and cannot be used now, or not with this key."""
    if isinstance(wrong, CredentialUnavailable):
        return Refusal("connection", str(wrong), retryable=True)
    return Refusal("auth", str(wrong))
