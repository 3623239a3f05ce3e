"""The frame of a call: what `_run` raises becomes an outcome, and every outcome has its block."""

import asyncio
from abc import abstractmethod
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, ClassVar

import msgspec

from noetl.errors import CredentialMissing
from noetl.messages.outcome import Outcome, failed
from noetl.tools.refusal import Refusal
from noetl.tools.tool import Tool, ToolCall, Workplace

UNBOUNDED = nullcontext()


def within(seconds: float | None) -> AbstractAsyncContextManager[Any]:
    """`asyncio.timeout`, which takes its time also where nothing is to be bounded."""
    return UNBOUNDED if seconds is None else asyncio.timeout(seconds)


class FramedTool(Tool):
    """A kind says what it does (`_run`), and how else its world may fail."""

    keeps_time = False
    empty: ClassVar[dict[str, Any] | None] = None
    """OUT-2: the block of an outcome that came without one, with every field."""

    async def call(self, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        try:
            outcome = await self._run(call, workplace)
        except Refusal as refusal:
            outcome = refusal.outcome
        except CredentialMissing as missing:
            outcome = failed("auth", str(missing))
        except Exception as fault:
            outcome = self._failure(call, fault) or unforeseen(fault)
        if outcome.block:
            return outcome
        return msgspec.structs.replace(outcome, block=self._block(call))

    async def forget(self, scratch: str) -> None:
        """Nothing lives for a step run."""

    async def close(self) -> None:
        """Nothing outlives a call."""

    @abstractmethod
    async def _run(self, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        """The call itself."""

    def _failure(self, call: ToolCall[Any], fault: Exception) -> Outcome | None:
        """What a fault of the kind's own world means; None where it is not of that world."""
        del call, fault
        return None

    def _block(self, call: ToolCall[Any]) -> dict[str, Any] | None:
        del call
        return self.empty


def unforeseen(fault: Exception) -> Outcome:
    """A call never raises: what nobody names is our own mistake, and said to be."""
    return failed("internal", f"unexpected {type(fault).__name__}: {fault}")


class BrokenTool(FramedTool):
    """Stands for a tool that cannot be made: each call fails, so that a policy learns why."""

    def __init__(self, why: str, block: dict[str, Any] | None = None) -> None:
        self._why = why
        self._empty = block

    async def _run(self, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        del call, workplace
        return failed("not_found", self._why, block=self._empty)
