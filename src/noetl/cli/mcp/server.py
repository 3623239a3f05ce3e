"""
The tools of `noetl mcp`. Each is a command of the same name, for an agent.

They go where the command was pointed to: to the home, to a database, or to a server. A server
asks for the role that its API asks for; what it refuses is the answer of the tool.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import msgspec
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from noetl import __version__
from noetl.cli.contexts import Target
from noetl.cli.explain import FACTS, words_of
from noetl.cli.home import in_home
from noetl.cli.mcp.local import run_here
from noetl.cli.register import enter, texts_in
from noetl.cli.running.ending import EXITS
from noetl.cli.source import READ_AT_MOST, PlaybookSource, reason_of
from noetl.cli.target import Asked, ask, at_server
from noetl.cli.validate import findings_of, translated
from noetl.client.async_client import AsyncClient
from noetl.errors import NoetlError, PlaybookRejected, UnreadableFile
from noetl.masking import KNOWN
from noetl.tools.paths import open_file
from noetl.tools.refusal import Refusal

P = ParamSpec("P")
Answer = dict[str, Any]
ABOUT = """NoETL runs playbooks: YAML documents of steps that call tools.
Validate a playbook, register it, run it by its path; then status, explain and events tell how it
went. Findings carry line, column and a hint; `explain` says why a run failed and what to do."""
READS = ToolAnnotations(read_only_hint=True)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True)
ACTS = ToolAnnotations(read_only_hint=False, open_world_hint=True)

FILES = (".yaml", ".yml")
PLAYBOOK = re.compile(rb"noetl|\bPlaybook\b|^\s*workflow\s*:", re.MULTILINE)
"""What a text of ours, or of an older dialect, has somewhere."""

Playbook = Annotated[str, Field(description="The file of a playbook here, or its whole text.")]
ExecutionId = Annotated[str, Field(description="The id of an execution, as `run` gives it.")]


def make_server(target: Target) -> "MCPServer[Any]":
    """A server whose tools go to the target."""
    server: MCPServer[Any] = MCPServer(
        "noetl", version=__version__, instructions=ABOUT, log_level="WARNING"
    )
    _texts(server, target)
    _executions(server, target)
    return server


def told(tool: Callable[P, Awaitable[Answer]]) -> Callable[P, Awaitable[Answer]]:
    """What NoETL says no with is for the agent to read, secrets masked."""

    @wraps(tool)
    async def answered(*args: P.args, **kwargs: P.kwargs) -> Answer:
        try:
            return await tool(*args, **kwargs)
        except PlaybookRejected as rejected:
            return {"valid": False, "findings": plain(rejected.findings)}
        except (NoetlError, OSError) as wrong:
            raise ToolError(KNOWN.masked(str(wrong))) from None

    return answered


def plain(value: Any) -> Any:
    """As `--json` prints it."""
    return msgspec.to_builtins(value, str_keys=True)


class AgentSource(PlaybookSource, frozen=True):
    """A playbook of an agent: files that it names are shown no more than if the agent did."""

    def beside(self, name: str) -> str | None:
        """The text of another playbook of the project; that of no script, and of nothing else."""
        if "\n" in name:
            return None
        try:
            return source_of(str((self.folder or Path.cwd()) / name)).text
        except (NoetlError, OSError, ValueError):
            return None


def source_of(playbook: str) -> PlaybookSource:
    """A text has more than one line; anything else names a file."""
    if "\n" in playbook:
        return AgentSource("<text>", playbook.encode())
    source = read_file(file_of(playbook), playbook)
    if PLAYBOOK.search(source.content) is None:
        raise NoetlError(f"'{playbook}' is not a playbook or trigger of NoETL")
    return source


def file_of(name: str) -> Path:
    """
    A file of the project that may be a playbook. Whoever hosts an agent lets it call tools that
    only read without asking: they must not be a way to tokens, keys and whatever else is there.
    """
    root = Path.cwd().resolve()
    try:
        found = (root / name).resolve()
    except (OSError, ValueError, RuntimeError) as wrong:  # a null byte, a loop of links
        raise NoetlError(f"{name!r} names no file: {wrong}") from None
    if not found.is_relative_to(root) or found.suffix not in FILES:
        raise NoetlError(f"'{name}' is not a YAML file below {root}; give the text itself")
    return found


def read_file(file: Path, name: str) -> PlaybookSource:
    """A regular file: a pipe of that name would be waited for, for ever."""
    try:
        with open_file(file) as opened:
            return AgentSource(name, opened.read(READ_AT_MOST), file.parent)
    except Refusal as refused:
        raise NoetlError(str(refused)) from None
    except OSError as wrong:
        raise UnreadableFile(f"cannot read '{name}': {reason_of(wrong)}") from None


# ── texts ────────────────────────────────────────────────────────────────────────────────────


def _texts(server: "MCPServer[Any]", target: Target) -> None:
    @server.tool(annotations=READS)
    @told
    async def validate(playbook: Playbook) -> Answer:
        """Check a playbook: every fault with its line, its column and how to fix it."""
        found = await asyncio.to_thread(findings_of, source_of(playbook), migrated=False)
        valid = all(one.severity != "error" for one in found)
        return {"valid": valid, "findings": plain(found)}

    @server.tool(annotations=READS)
    @told
    async def migrate(playbook: Playbook) -> Answer:
        """Translate a playbook of an older dialect; the answer has the text, nothing is written."""
        made = await asyncio.to_thread(translated, source_of(playbook))
        facts = {"complete": made.complete, "changed": made.changed}
        return {**facts, "text": made.text, **plain({"findings": made.findings})}

    @server.tool(annotations=ADDS)
    @told
    async def register(
        playbook: Playbook,
        migrate: Annotated[bool, Field(description="Translate an older dialect.")] = False,
    ) -> Answer:
        """Put a playbook into the catalog, to run it by its path; a new text is a new version."""
        source = source_of(playbook)
        entry, fresh = await asyncio.to_thread(registered_at, target, source, migrate)
        return {"fresh": fresh, "entry": plain(entry)}


def registered_at(target: Target, source: PlaybookSource, migrate: bool) -> tuple[Any, bool]:
    text, original = texts_in(source, "quiet", target, migrate=migrate)
    if target.local:
        return in_home(lambda local: enter(local, text, original), make=True)
    sent = original or text
    answer = at_server(target, lambda client: client.register(sent, migrate=migrate))
    return answer.entry, answer.fresh


# ── executions ───────────────────────────────────────────────────────────────────────────────


def _executions(server: "MCPServer[Any]", target: Target) -> None:
    @server.tool(annotations=ACTS)
    @told
    async def run(
        playbook: Annotated[str, Field(description="Path in the catalog; on a home a file, too.")],
        workload: Annotated[Answer | None, Field(description="Keys of the workload.")] = None,
        version: Annotated[str | None, Field(description="A version of the path.")] = None,
        wait: Annotated[float, Field(description="At a server: seconds to wait.", ge=0)] = 30.0,
    ) -> Answer:
        """Run a playbook and report its end: status, ctx, result, error, and the steps that ran."""
        if "\n" in playbook:
            raise NoetlError("`run` takes a path or a file: register the text first")
        if target.local:
            return await run_here(playbook, version, workload or {})
        return await run_there(target, playbook, version, workload or {}, wait)

    @server.tool(annotations=READS)
    @told
    async def status(execution_id: ExecutionId) -> Answer:
        """How an execution is doing: its status, what runs, and what waits for what."""
        return await asked(target, lambda answering: answering.standing(execution_id))

    @server.tool(annotations=READS)
    @told
    async def explain(execution_id: ExecutionId) -> Answer:
        """Why an execution waits or failed: the chain of causes, and what to do next."""
        found = await asyncio.to_thread(ask, target, lambda one: one.explanation(execution_id))
        return {**{name: plain(getattr(found, name)) for name in FACTS}, "words": words_of(found)}

    @server.tool(annotations=READS)
    @told
    async def events(
        execution_id: ExecutionId,
        after: Annotated[int, Field(description="Only events after this `seq`.", ge=0)] = 0,
        name: Annotated[str | None, Field(description="Only these, such as `task.*`.")] = None,
        limit: Annotated[int, Field(description="At most so many.", ge=1, le=1000)] = 100,
    ) -> Answer:
        """A page of the log of an execution; `after` of the answer asks for the next one."""
        return await asked(
            target,
            lambda one: one.events(execution_id, after=after, name=name, limit=limit),
        )


async def asked(target: Target, question: Callable[[Asked], Awaitable[Any]]) -> Answer:
    """The answer of the home, the database or the server; in a thread, for each opens its own."""
    answer: Answer = plain(await asyncio.to_thread(ask, target, question))
    return answer


async def run_there(
    target: Target, path: str, version: str | None, workload: Answer, wait: float
) -> Answer:
    """Begun at the server; what it came to, or how it is doing when the wait is over."""
    if Path(path).is_file():
        raise NoetlError(f"'{path}' is a file: register it first, then run it by its path")
    assert target.url is not None, "a target that is not local has an address"
    async with AsyncClient(target.url, target.token) as client:
        begun = await client.execute(path, version=version, payload=workload)
        deadline = time.monotonic() + wait
        while True:  # one question waits no longer than the server lets it
            left = max(0.0, deadline - time.monotonic())
            summary = await client.summary(begun.execution_id, wait=left)
            if summary.status in EXITS or not left:
                return dict(plain(summary))
