"""`noetl cancel`, `noetl pause` and `noetl resume`: orders to an execution (NEXT-8)."""

import asyncio
import time
from typing import TYPE_CHECKING, NamedTuple, get_args

import click

from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.home import in_home
from noetl.cli.ordering import note, noting
from noetl.cli.output import ID, JSON, print_json, print_line, tell
from noetl.cli.running.ending import last_words, see_through, tells_more
from noetl.cli.target import aimed, at_server
from noetl.client.client import Client
from noetl.errors import HomeInUse, NoetlError, ServerRefused
from noetl.messages.envelope import timestamp
from noetl.messages.events import End
from noetl.messages.requests import Order
from noetl.node.local import LocalNode
from noetl.ports.event_log import ExecutionRow
from noetl.server.active import ActiveExecution
from noetl.server.afterwards import ended_words

if TYPE_CHECKING:
    from noetl.api.types import Summary
    from noetl.server.views.explanation import Explanation
    from noetl.server.views.standing import Standing

LOOK = 0.05
"""Seconds between two looks at whether the owner has obeyed."""
ENDED = get_args(End)
SETTLED = ("paused", *ENDED)
CANCEL = """\b
Examples:
  noetl cancel 06h3k9v2q8m4x0c7w1
  noetl cancel 06h3k9v2q8m4x0c7w1 --reason 'wrong region'

\b
Exit codes: 0 cancelled, now or before, 1 it had ended otherwise, 3 usage or environment.
"""
PAUSE = """\b
Examples:
  noetl pause 06h3k9v2q8m4x0c7w1
  noetl pause 06h3k9v2q8m4x0c7w1 --server http://127.0.0.1:8765

\b
Exit codes: 0 paused, 1 it had already ended, 3 usage or environment.
"""
RESUME = """\b
Examples:
  noetl resume last
  noetl resume 06h3k9v2q8m4x0c7w1 --json
  noetl resume 06h3k9v2q8m4x0c7w1 --server http://127.0.0.1:8765 --wait

\b
Exit codes: those of `noetl run`; with a server and without --wait, 0 once it has the request.
"""


# ── cancel: nothing new starts, what runs is told to stop ────────────────────────────────────


@click.command(epilog=CANCEL)
@ID
@click.option("--reason", default="", help="Reason to record in the log.")
@JSON
@aimed
def cancel(execution_id: str, reason: str, as_json: bool, target: Target) -> int:
    """
    Cancel an execution, and wait until it has ended.

    If another process runs it, that process is asked to stop; otherwise it is ended here.
    """
    if target.local:
        found = in_home(
            noting("cancel", execution_id, lambda local: ended(local, execution_id, reason))
        )
    else:
        found = at_server(target, lambda client: ended_at(client, execution_id, reason))
    obeyed = found.status == "cancelled"
    said = f"execution {execution_id}: cancelled"
    if found.before or not obeyed:
        said = ended_words(execution_id, found.status, found.finished_at, "cancel")
    tell({"execution_id": execution_id, "status": found.status}, said, as_json=as_json)
    return exits.OK if obeyed else exits.FAILED


class Obeyed(NamedTuple):
    """How an execution stands after an order."""

    status: str
    finished_at: str | None
    before: bool = False
    """It had ended before the order came."""


def obeyed_by(row: ExecutionRow, *, before: bool = False) -> Obeyed:
    at = None if row.finished_at is None else timestamp(row.finished_at)
    return Obeyed(row.status, at, before)


async def ended(local: LocalNode, execution_id: str, reason: str) -> Obeyed:
    """The execution once it has come to its end."""
    row = await local.row(execution_id)
    before = row.finished_at is not None
    told = False
    while row.finished_at is None:
        try:
            await local.cancel_abandoned(execution_id, reason, local.user)
        except HomeInUse:
            if not told:
                given = {"reason": reason, "sender": local.user}
                await local.storage.inbox.leave(execution_id, "cancel", given)
                told = True
            await asyncio.sleep(LOOK)
        row = await local.row(execution_id)
    return obeyed_by(row, before=before)


def ended_at(client: Client, execution_id: str, reason: str) -> Obeyed:
    """The same, at a server."""
    before = not order(client, execution_id, "cancel", reason)
    while client.summary(execution_id, wait=30.0).status not in ENDED:
        pass
    found = client.standing(execution_id)
    return Obeyed(found.status, found.finished_at, before)


def order(client: Client, execution_id: str, kind: Order, reason: str = "") -> bool:
    """Give an order; False where the execution has ended already, and nothing was to be done."""
    try:
        client.order(execution_id, kind, reason=reason)
    except ServerRefused as refused:
        if refused.code != "finished":
            raise
        return False
    return True


# ── pause: what runs goes on to its end, nothing new starts until `noetl resume` ─────────────


@click.command(epilog=PAUSE)
@ID
@JSON
@aimed
def pause(execution_id: str, as_json: bool, target: Target) -> int:
    """
    Pause an execution: running steps finish, no new step starts.

    `noetl resume` continues it.
    """
    if target.local:
        found = in_home(noting("pause", execution_id, lambda local: paused(local, execution_id)))
    else:
        found = at_server(target, lambda client: paused_at(client, execution_id))
    obeyed = found.status == "paused"
    said = f"execution {execution_id}: paused; continue with: noetl resume {execution_id}"
    if not obeyed:
        said = ended_words(execution_id, found.status, found.finished_at, "pause")
    tell({"execution_id": execution_id, "status": found.status}, said, as_json=as_json)
    return exits.OK if obeyed else exits.FAILED


async def paused(local: LocalNode, execution_id: str) -> Obeyed:
    """The execution once its owner has obeyed, or it has ended."""
    row = await local.row(execution_id)
    told = False
    while row.status not in SETTLED:
        if await local.storage.owners.holder(execution_id) is None:
            raise NoetlError(
                f"no process runs execution {execution_id}: it was interrupted, and nothing of it "
                f"starts before `noetl resume {execution_id}`"
            )
        if not told:
            await local.storage.inbox.leave(execution_id, "pause", {"sender": local.user})
            told = True
        await asyncio.sleep(LOOK)
        row = await local.row(execution_id)
    return obeyed_by(row)


def paused_at(client: Client, execution_id: str) -> Obeyed:
    """The same, at a server."""
    order(client, execution_id, "pause")
    while True:
        found = client.standing(execution_id)
        if found.status in SETTLED:
            return Obeyed(found.status, found.finished_at)
        time.sleep(LOOK)


# ── resume: go on with what was interrupted or paused ────────────────────────────────────────


@click.command(epilog=RESUME)
@ID
@click.option("--wait", is_flag=True, help="With a server: show progress until it ends.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@aimed
def resume(execution_id: str, wait: bool, as_json: bool, target: Target) -> int:
    """
    Continue an interrupted or paused execution where it stopped.

    Recorded tasks are not run again. Of one that has ended the result is shown; `noetl restart`
    runs it again.
    """
    if not target.local:
        return resume_at(target, execution_id, wait=wait, as_json=as_json)
    row, owner = in_home(lambda local: told_owner(local, execution_id))
    if owner is not None:
        told(execution_id, f"process {owner}, which runs {execution_id},", as_json)
        return exits.OK
    if row.finished_at is not None:
        over = ended_words(execution_id, row.status, timestamp(row.finished_at), "resume")
        print_line(over, err=as_json)

    async def begin(local: LocalNode) -> ActiveExecution:
        active = await local.resume(execution_id)
        await note(local, "resume", execution_id)
        return active

    return see_through(begin, as_json=as_json)


def told(execution_id: str, who: str, as_json: bool, said: str = "") -> None:
    if as_json:
        print_json({"execution_id": execution_id, "status": "running"})
    print_line(said or f"{who} was told to continue", err=as_json)


async def told_owner(local: LocalNode, execution_id: str) -> tuple[ExecutionRow, str | None]:
    """Of a paused execution that another process runs: that process, which now knows."""
    row = await local.row(execution_id)
    owner = await local.storage.owners.holder(execution_id)
    if row.status != "paused" or owner is None:
        return row, None
    await local.storage.inbox.leave(execution_id, "resume", {"sender": local.user})
    await note(local, "resume", execution_id)
    return row, owner


def resume_at(target: Target, execution_id: str, *, wait: bool, as_json: bool) -> int:
    """Servers go on with what was interrupted by themselves: only a pause is ended here."""
    before = at_server(target, lambda client: client.standing(execution_id))
    running = before.status == "running"
    ended = not running and not at_server(target, lambda c: order(c, execution_id, "resume"))
    if ended:
        return result_at(target, execution_id, as_json=as_json)
    if not wait:
        said = f"execution {execution_id} is running already: there is nothing to resume"
        told(execution_id, "the server", as_json, said if running else "")
        return exits.OK
    from noetl.cli.running.following import follow_through

    return follow_through(target, execution_id, before.path, as_json=as_json)


def result_at(target: Target, execution_id: str, *, as_json: bool) -> int:
    """What one that has ended came to, and its exit code."""

    def asked(client: Client) -> "tuple[Standing, Summary, Explanation | None]":
        summary = client.summary(execution_id)
        why = client.explanation(execution_id) if tells_more(summary) else None
        return client.standing(execution_id), summary, why

    found, summary, why = at_server(target, asked)
    over = ended_words(execution_id, found.status, found.finished_at, "resume")
    print_line(over, err=as_json)
    return last_words(summary, why, as_json=as_json)
