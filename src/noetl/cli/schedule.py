"""`noetl schedule`: playbooks that start by the clock (START-3)."""

import contextlib
import re
from typing import Any

import click
import yaml

from noetl.api.questions import planned_times
from noetl.api.types import Backfill, BackfillTime
from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.home import in_home
from noetl.cli.lazy import HelpfulGroup
from noetl.cli.neighbours import neighbours_of
from noetl.cli.output import JSON, examples, print_line, some_playbook, tell, tell_each
from noetl.cli.register import registered_text
from noetl.cli.running.payload import PAYLOAD, SETS, payload_of
from noetl.cli.running.words import count as counted
from noetl.cli.source import PlaybookSource
from noetl.cli.target import aimed, ask, at_server
from noetl.cli.trigger import PATH, add_orders, in_zone, show_all, warn_of
from noetl.cli.validate import tell_findings, tell_warnings
from noetl.errors import PlaybookRejected
from noetl.messages.envelope import timestamp
from noetl.node.local import LocalNode
from noetl.node.trigger_trials import timezone_of
from noetl.playbook.load import load_document
from noetl.playbook.occurrences import BadSchedule, moment
from noetl.server.triggering import find_trigger, now_ms
from noetl.tools.plugins import KnownKinds

EPILOG = """\b
Examples:
  noetl schedule add sales/nightly --playbook sales/load --cron '0 3 * * *' --timezone Europe/Berlin
  noetl schedule add probe --playbook ops/probe --every 5m --overlap skip
  noetl schedule next sales/nightly
  noetl schedule backfill sales/nightly --from 2026-03-01 --to 2026-03-07 --dry-run
"""
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")


@click.group(cls=HelpfulGroup, epilog=EPILOG, invoke_without_command=True)
def schedule() -> None:
    """
    Start playbooks by the clock. A schedule is a trigger: `noetl trigger show` has all of it.
    """


@schedule.command(epilog=examples("schedule add probe --playbook ops/probe --every 5m"))
@PATH
@click.option(
    "--playbook", required=True, metavar="PATH", shell_complete=some_playbook, help="What to start."
)
@click.option("--version", metavar="V", help="Its version; the newest at each start if left out.")
@click.option("--cron", metavar="FIELDS", help="Five fields, or six with seconds first.")
@click.option("--every", metavar="TIME", help="An interval: 90, 90s, 15m, 2h, 1d.")
@click.option("--at", metavar="TIME", help="Once, at a time in RFC 3339.")
@click.option("--timezone", metavar="ZONE", help="IANA name; UTC if left out.")
@click.option(
    "--catch-up", type=click.Choice(["none", "last", "all"]), help="Which missed times are started."
)
@click.option("--limit", type=int, metavar="N", help="How many of them at the most.")
@click.option(
    "--overlap",
    type=click.Choice(["allow", "skip", "queue", "cancel_old"]),
    help="What a time means while the start before it runs.",
)
@click.option("--jitter", type=float, metavar="SECONDS", help="Start later by up to so much.")
@SETS
@PAYLOAD
@click.option("--dry-run", is_flag=True, help="Print the document; register nothing.")
@JSON
@aimed
def add(
    path: str,
    playbook: str,
    version: str | None,
    sets: tuple[str, ...],
    payload: str | None,
    dry_run: bool,
    as_json: bool,
    target: Target,
    **options: Any,
) -> int:
    """
    Add a schedule, or replace it. PATH is its own name in the catalog.

    It is registered as a document of `kind: Trigger`; templates of the payload see `trigger`.
    """
    given = {key: value for key, value in options.items() if value is not None}
    times = [f"--{key}" for key in ("cron", "every", "at") if key in given]
    if len(times) != 1:
        found = f"; got {' and '.join(times)}" if times else ""
        raise click.UsageError(f"say when it starts, by one of --cron, --every and --at{found}")
    if "every" in given:
        given["every"] = seconds_in(given["every"])
    refuse_past(given.get("at"), given.get("timezone", "UTC"))
    spec: dict[str, Any] = {"playbook": playbook}
    if version is not None:
        spec["version"] = int(version) if version.isdecimal() else version
    if payload is not None or sets:
        spec["payload"] = payload_of(payload, sets)
    text = yaml.safe_dump(
        {
            "apiVersion": "noetl.io/v2",
            "kind": "Trigger",
            "metadata": {"name": path.rpartition("/")[2], "path": path},
            "spec": {**spec, "on": {"schedule": given}},
        },
        sort_keys=False,
        allow_unicode=True,
    )
    return added(text, path, dry_run=dry_run, as_json=as_json, target=target)


def refuse_past(at: str | None, timezone: str) -> None:
    """A single time that is over would never start anything; findings tell what is no time."""
    if at is None:
        return
    with contextlib.suppress(BadSchedule):
        when = moment(at, timezone)
        if when <= now_ms():
            shown = in_zone(timestamp(when), timezone)
            raise click.UsageError(f"--at {at} has passed ({shown}): it would never start anything")


def added(text: str, path: str, *, dry_run: bool, as_json: bool, target: Target) -> int:
    source = PlaybookSource(path, text.encode())
    loaded = load_document(text, KnownKinds(), neighbours_of(source, target))
    if loaded.trigger is None:
        return tell_findings(source, loaded.findings, as_json, err=True)
    tell_warnings(source, loaded.findings, "tell")
    if dry_run:
        print_line(text.rstrip())
        return exits.OK
    try:
        entry, fresh = registered_text(text, None, target)
    except PlaybookRejected as rejected:
        return tell_findings(source, rejected.findings, as_json, err=True)
    found = ask(target, lambda asked: asked.trigger(path))
    word = "registered" if fresh else "unchanged"
    planned = in_zone(found.planned_at, found.timezone) or "never"
    said = f"{path}: {word}, version {entry.version}; next: {planned}"
    tell(found, said, as_json=as_json)
    warn_of(found)
    return exits.OK


@schedule.command("list", epilog=examples("schedule list"))
@JSON
@aimed
def listing(as_json: bool, target: Target) -> None:
    """List schedules: next time, last start, why one was skipped."""
    show_all("schedule", as_json, target)


@schedule.command("next", epilog=examples("schedule next sales/nightly -n 10"))
@PATH
@click.option("-n", "count", type=click.IntRange(1, 100), default=5, help="How many; 5.")
@JSON
@aimed
def upcoming(path: str, count: int, as_json: bool, target: Target) -> None:
    """Print the next planned times."""
    found = ask(target, lambda asked: asked.trigger(path, count=count))
    tell_each(
        found.upcoming,
        lambda at: in_zone(at, found.timezone) or at,
        as_json=as_json,
        none=f"{path}: {found.problem or 'nothing is planned any more'}",
    )


add_orders(schedule, "schedule")


@schedule.command(
    epilog=examples("schedule backfill sales/nightly --from 2026-03-01 --to 2026-03-07 --dry-run")
)
@PATH
@click.option("--from", "begin", required=True, metavar="TIME", help="The first time.")
@click.option(
    "--to", "end", required=True, metavar="TIME", help="The last time; a date means its midnight."
)
@click.option("--dry-run", is_flag=True, help="List the times; start nothing.")
@JSON
@aimed
def backfill(path: str, begin: str, end: str, dry_run: bool, as_json: bool, target: Target) -> int:
    """
    Start the planned times of a range, each once; one that was started already is not again.

    Times without an offset are of the schedule's own time zone. Only a server starts them.
    """
    if target.local and not dry_run:
        raise click.UsageError("a backfill needs a server: --server URL, or --dry-run")
    if target.local:
        found = in_home(lambda local: planned(local, path, begin, end))
    else:
        found = at_server(target, lambda client: client.backfill(path, begin, end, dry_run=dry_run))
    tell_each(found.times, lambda one: time_line(one, found.timezone), as_json=as_json)
    print_line(backfill_words(found, begin, end), err=True)
    return exits.FAILED if any(one.error for one in found.times) else exits.OK


def backfill_words(found: Backfill, begin: str, end: str) -> str:
    """How many, of which range, in whose time, and what became of them."""
    times = f"{counted(len(found.times), 'planned time')} from {begin} to {end}"
    times = f"{times} (time zone {found.timezone})" if found.timezone else times
    if found.dry_run:
        return f"{times}; nothing was started (--dry-run)" if found.times else times
    failed = sum(one.error is not None for one in found.times)
    before = sum(one.before for one in found.times)
    not_started = f", {failed:,} not" if failed else ""
    earlier = f", {before:,} had been started before" if before else ""
    return f"{times}; {len(found.times) - failed - before:,} started{not_started}{earlier}"


async def planned(local: LocalNode, path: str, begin: str, end: str) -> Backfill:
    _, trigger = await find_trigger(local.storage, path)
    times = await planned_times(local.storage, trigger, begin, end)
    return Backfill(times=times, dry_run=True, timezone=timezone_of(trigger))


def time_line(one: BackfillTime, timezone: str | None) -> str:
    at = in_zone(one.at, timezone)
    if one.error is not None:
        return f"{at}  not started: {one.error}"
    if one.execution_id is None:
        return f"{at}  would start"
    return f"{at}  execution {one.execution_id}{', started before' if one.before else ''}"


def seconds_in(text: str) -> float:
    found = DURATION.fullmatch(text.strip())
    if found is None:
        raise click.UsageError(f"--every is '{text}', expected an interval such as 90s, 15m or 2h")
    number = float(found[1]) * UNITS[found[2] or "s"]
    return int(number) if number == int(number) else number
