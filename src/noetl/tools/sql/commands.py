"""A command on a database, whichever it is: its time, its rows, and its outcome."""

import re
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from noetl.errors import CredentialMissing
from noetl.masking import KNOWN, MASK
from noetl.messages.outcome import Outcome, failed, ok
from noetl.tools.frame import FramedTool, within
from noetl.tools.refusal import Refusal
from noetl.tools.sql.rows import TURN, Rows
from noetl.tools.tool import ToolCall, Workplace

_EXCERPT = re.compile(r"^(LINE \d+: )(.*)", re.MULTILINE)
Params = list[Any] | dict[str, Any]
_CHUNK = 1000


def no_statement() -> Refusal:
    return Refusal("input", "the command holds no statement; give SQL in 'command' or 'query'")


def without_halves(text: str, command: str) -> str:
    """
    What a database says of a command, without the window on its text where that may begin or end
    within a secret: half of one is not recognized.
    """
    if "LINE " not in text or not KNOWN.holds(command):
        return text
    return _EXCERPT.sub(lambda line: line[0] if line[2] in command else f"{line[1]}{MASK}", text)


class SqlTool(FramedTool):
    """What differs between databases is how a command is run, how it fails, and the block."""

    keeps_time = True
    stopped: ClassVar[str] = "cancelled"
    """What became of a command that took too long."""

    async def _run(self, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        rows = Rows(call, workplace.results)
        try:
            async with within(call.timeout.total):
                told = await self._command(call, workplace, rows)
                counted = told.get("rowcount") is not None
                result = {"rowcount": told["rowcount"]} if counted else await rows.finish()
                return ok(result, block={**(self.empty or {}), "rowcount": rows.count, **told})
        finally:
            await rows.discard()

    @abstractmethod
    async def _command(
        self, call: ToolCall[Any], workplace: Workplace, rows: Rows
    ) -> dict[str, Any]:
        """OUT-3: fills `rows`, or tells the `rowcount`; with it what else the block shall say."""

    def _failure(self, call: ToolCall[Any], fault: Exception) -> Outcome | None:
        if not isinstance(fault, TimeoutError):
            return None
        says = f"the command was not done in time (total timeout of {call.timeout.total:g} s)"
        return failed("timeout", f"{says} and was {self.stopped}", retryable=True)


async def credential_of(
    kind: str, call: ToolCall[Any], workplace: Workplace
) -> tuple[str, dict[str, Any]]:
    """KEY-1: what `auth` names; without it the one of the kind's own name (decision 0046)."""
    name = call.inputs.auth
    if name is not None:
        return name, await workplace.unlock(name)
    try:
        return kind, await workplace.unlock(kind)
    except CredentialMissing as missing:
        says = f"{kind} needs 'auth', the name of a credential, or a credential named '{kind}'"
        raise Refusal("input", f"{says}: {missing}") from None


class ThreadedWork:
    """
    One command of a library that waits inside, step by step, in a thread of its own. When it has
    run, either `rowcount` is set, or `names` and what `more` returns.
    """

    def __init__(self, cursor: Any, text: str, params: Params) -> None:
        self.rowcount: int | None = None
        self.names: list[str] = []
        self._cursor = cursor
        self._text, self._params = text, params
        self._readers: list[Callable[[Any], Any]] = []

    async def answer(
        self, rows: Rows, threaded: Callable[[Callable[[], Any]], Awaitable[Any]]
    ) -> dict[str, Any]:
        if self.rowcount is not None:
            return {"rowcount": self.rowcount}
        rows.begin(self.names)
        while more := await threaded(self.more):
            for row in more:
                rows.add(row)
                if rows.owed > TURN:
                    await rows.turn()
        return {}

    def more(self) -> list[list[Any]]:
        """The next rows; none at the end."""
        return [
            [read(value) for read, value in zip(self._readers, row, strict=True)]
            for row in self._cursor.fetchmany(_CHUNK)
        ]
