"""
Playbooks run inside a program: `import noetl; noetl.run("playbook.yaml")`.

It is `noetl run` without a terminal: the same home, the same log, the same rules. Nothing of the
program is touched: no signal handlers, no logging, no environment.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from noetl.api.questions import PlaneQuestions
from noetl.api.types import EventView
from noetl.cli.running.attend import attended, runner, watched
from noetl.cli.source import PlaybookSource, read_source
from noetl.cli.validate import tell_warnings
from noetl.errors import ExecutionFailed, PlaybookRejected
from noetl.messages.outcome import make_error
from noetl.node.local import LocalNode
from noetl.playbook.finding import Finding
from noetl.playbook.load import load
from noetl.playbook.plan import Plan, make_plan
from noetl.server.active import ActiveExecution
from noetl.server.report import ExecutionReport
from noetl.settings import read_settings
from noetl.tools.environment import SECRET, VARIABLES, mask
from noetl.tools.plugins import KnownKinds

if TYPE_CHECKING:
    from noetl.cli.running.show import Show

IN_A_LOOP = "noetl.run() waits for the end, and an event loop runs here: await noetl.run_async()"


class RunFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why an execution did not complete."""

    kind: str
    """As policies see it: `http`, `timeout`, `python`, … (OUT-4)."""
    message: str
    step: str | None = None
    details: dict[str, Any] = {}
    """The whole error, as the log has it."""


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """What an execution came to."""

    execution_id: str
    status: Literal["completed", "failed", "cancelled"]
    result: Any
    ctx: dict[str, Any]
    failure: RunFailure | None
    """None where it completed."""
    events: tuple[EventView, ...]
    """The whole log, in its order; empty where `events=False` was given."""
    warnings: tuple[Finding, ...]
    """What validation had to say of a playbook that it accepts."""
    duration_ms: int


def run(
    playbook: str | os.PathLike[str],
    *,
    workload: Mapping[str, Any] | None = None,
    ctx: Mapping[str, Any] | None = None,
    home: str | os.PathLike[str] | None = None,
    quiet: bool = True,
    check: bool = True,
    events: bool = True,
) -> RunResult:
    """
    Run a playbook to its end, and return what it came to. See `run_async`.

    Ctrl-C is a KeyboardInterrupt, after which `noetl resume` goes on with the execution.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        raise RuntimeError(IN_A_LOOP)
    running = run_async(
        playbook, workload=workload, ctx=ctx, home=home, quiet=quiet, check=check, events=events
    )
    return runner()(running)


async def run_async(
    playbook: str | os.PathLike[str],
    *,
    workload: Mapping[str, Any] | None = None,
    ctx: Mapping[str, Any] | None = None,
    home: str | os.PathLike[str] | None = None,
    quiet: bool = True,
    check: bool = True,
    events: bool = True,
) -> RunResult:
    """
    Run a playbook to its end, and return what it came to; what is awaited may be cancelled.

    `playbook` is the path of a file. `workload` and `ctx` are laid over those of the playbook.
    `home` is the folder of the log [NOETL_HOME, else ~/.noetl]. With `quiet=False` progress and
    warnings go to standard error, as those of `noetl run`. With `events=False` the log is left
    where it is.

    Raises ExecutionFailed where it did not complete, unless `check=False`; PlaybookRejected with
    all findings where it is no valid playbook; UnreadableFile; SettingRefused for a setting that
    cannot be used; LogUnavailable where the log cannot be written.
    """
    for secret in SECRET:
        mask(VARIABLES.get(secret))  # KEY-2
    settings = read_settings(flags={"home": None if home is None else os.fspath(home)})
    source = read_source(os.fspath(playbook))
    given, first = dict(workload or {}), dict(ctx or {})
    plan, text, warnings = _planned(source, {"workload": given, "ctx": first}, quiet=quiet)
    local = await LocalNode.open(settings)
    show = None if quiet else _shown(local)
    try:
        active = await local.run_text(
            text, folder=str(source.folder), payload=given, ctx=first, plan=plan
        )
        report = await _ended(local, active)
        told = await _events(local, active.execution_id) if events else ()
    finally:
        if show is not None:
            show.end()
        await local.close()
    result = _result(report, told, warnings)
    if check and result.failure is not None:
        raise ExecutionFailed(_words(result), result=result)
    return result


def _planned(
    source: PlaybookSource, brought: Mapping[str, Any], *, quiet: bool
) -> tuple[Plan, str, tuple[Finding, ...]]:
    loaded = load(source.content, KnownKinds(), brought=brought)
    if loaded.playbook is None:
        raise PlaybookRejected(loaded.findings)
    tell_warnings(source, loaded.findings, "quiet" if quiet else "tell")
    text = source.content.decode("utf-8-sig")
    return make_plan(loaded.playbook, text, KnownKinds()), text, loaded.findings


def _shown(local: LocalNode) -> "Show":
    from noetl.cli.running.plain import PlainShow
    from noetl.cli.running.show import SteadyShow

    show = SteadyShow(PlainShow(err=True))
    watched(local, show)
    return show


async def _ended(local: LocalNode, active: ActiveExecution) -> ExecutionReport:
    # Children that nobody waits for are among them (TOOL-1).
    while going := [one.finished for one in local.server.owned if not one.finished.done()]:
        await asyncio.wait(going, return_when=asyncio.FIRST_COMPLETED)
    report = (await attended(local, active)).report
    assert report is not None, "it has ended"
    await local.clean_up(active)
    return report


async def _events(local: LocalNode, execution_id: str) -> tuple[EventView, ...]:
    asked, found, after, more = PlaneQuestions(local), list[EventView](), 0, True
    while more:
        page = await asked.events(execution_id, after=after)
        found += page.events
        after, more = page.after, page.more
    return tuple(found)


def _result(
    report: ExecutionReport, events: Sequence[EventView], warnings: tuple[Finding, ...]
) -> RunResult:
    status = msgspec.convert(report.status, Literal["completed", "failed", "cancelled"])
    error = report.error or make_error(status, f"the execution was {status}")
    failure = RunFailure(
        kind=error["kind"], message=error["message"], step=error.get("step"), details=error
    )
    return RunResult(
        execution_id=report.execution_id,
        status=status,
        result=report.result,
        ctx=report.ctx,
        failure=None if status == "completed" else failure,
        events=tuple(events),
        warnings=warnings,
        duration_ms=report.duration_ms,
    )


def _words(result: RunResult) -> str:
    assert result.failure is not None
    step = f"step '{result.failure.step}': " if result.failure.step else ""
    return f"execution {result.execution_id} {result.status}: {step}{result.failure.message}"
