"""`noetl trigger`: what starts executions, how it stands, and what it would do (START)."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

import click
import msgspec

from noetl.api.questions import timezone_in
from noetl.api.rows import view_of
from noetl.api.types import TriggerDetail, TriggerView
from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.home import in_home
from noetl.cli.lazy import HelpfulGroup
from noetl.cli.ordering import noting
from noetl.cli.output import JSON, examples, print_json, print_line, tell, tell_each
from noetl.cli.running.words import count
from noetl.cli.target import Asked, aimed, ask, at_server, is_new, pages
from noetl.client.client import Client
from noetl.node.local import LocalNode
from noetl.playbook.occurrences import BadSchedule, zone
from noetl.ports.storage import Storage
from noetl.ports.triggers import TriggerRow
from noetl.server import triggering

EPILOG = """\b
Examples:
  noetl register trigger.yaml
  noetl trigger list
  noetl trigger show sales/nightly
  noetl trigger test shop/order --data '{"id": 7}'
"""
T = TypeVar("T")
KINDS = ("schedule", "webhook", "subject", "execution")
PATH = click.argument("path", metavar="PATH")


@click.group(cls=HelpfulGroup, epilog=EPILOG, invoke_without_command=True)
def trigger() -> None:
    """
    Look at what starts executions: schedules, webhooks, NATS subjects, ends of others.

    `noetl register FILE` registers a document of `kind: Trigger`. Servers start what it asks for.
    """


@trigger.command("list", epilog=examples("trigger list", "trigger list --kind webhook --json"))
@click.option("--kind", type=click.Choice(KINDS), help="Only those.")
@JSON
@aimed
def listing(kind: str | None, as_json: bool, target: Target) -> None:
    """List triggers: their next time, their last start, why one was skipped."""
    show_all(kind, as_json, target)


@trigger.command(epilog=examples("trigger show sales/nightly"))
@PATH
@JSON
@aimed
def show(path: str, as_json: bool, target: Target) -> None:
    """Show one trigger."""
    found = ask(target, lambda asked: asked.trigger(path))
    tell(found, *lines_of(found), as_json=as_json)


@trigger.command(
    epilog=examples(
        "trigger test sales/nightly --at 2026-03-01T03:00:00Z",
        "trigger test shop/order --data '{}' --header x-shop=berlin",
    )
)
@PATH
@click.option("--at", metavar="TIME", help="The time that it is for, in RFC 3339; else now.")
@click.option("--data", metavar="JSON", help="What `trigger.data` is.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="What `trigger.headers` has; may be repeated.",
)
@JSON
@aimed
def test(
    path: str,
    at: str | None,
    data: str | None,
    headers: tuple[str, ...],
    as_json: bool,
    target: Target,
) -> int:
    """Show what a trigger would start and with which payload; nothing is started."""
    try:
        given = None if data is None else msgspec.json.decode(data)
    except msgspec.DecodeError as wrong:
        raise click.UsageError(f"--data is not JSON: {wrong}") from None
    brought = headers_in(headers)
    found = ask(target, lambda asked: asked.trial(path, at=at, data=given, headers=brought))
    if as_json:
        print_json(found)
    elif found.problem is None:
        print_line(f"would start {found.playbook_id} once, as {found.key}, with the payload:")
        print_json(found.payload)
        for one in found.warnings:
            print_line(f"warning: {one.message}; {one.hint}", err=True)
    else:
        print_line(f"would start nothing: {found.problem}{missing_words(found.problem)}")
    return exits.OK if found.problem is None else exits.FAILED


def headers_in(words: tuple[str, ...]) -> dict[str, str]:
    """Names are in lower case, as those of a call."""
    for word in words:
        if "=" not in word:
            raise click.UsageError(f"--header takes NAME=VALUE, got '{word}'")
    return {name.strip().lower(): text for name, _, text in (word.partition("=") for word in words)}


def missing_words(problem: str) -> str:
    """The option that brings what a template reads of a call, where it was not given."""
    if "is undefined" not in problem:
        return ""
    given = {"trigger.headers": "--header NAME=VALUE", "trigger.data": "--data JSON"}
    return "".join(f"; give it: {option}" for name, option in given.items() if name in problem)


# ── shared with `noetl schedule` ─────────────────────────────────────────────────────────────


def show_all(kind: str | None, as_json: bool, target: Target) -> None:
    async def all_of(asked: Asked) -> list[TriggerView]:
        found = pages(asked.triggers, kind=kind)
        return [one async for page in found for one in page.triggers]

    found = [] if is_new(target) else ask(target, all_of)
    what = {None: "triggers", "schedule": "schedules"}.get(kind, f"triggers of kind {kind}")
    none = f"there are no {what}; see: noetl schedule add --help"
    tell_each(found, line_of, as_json=as_json, none=none)


class TriggerOrder(NamedTuple):
    """An order to a trigger, in the home or at a server, and what is said of it."""

    says: str
    near: Callable[[Storage, str], Awaitable[TriggerRow | None]]
    far: Callable[[Client, str], TriggerView | None]
    done: str


ORDERS = {
    "pause": TriggerOrder(
        "Let a {noun} start nothing until it is resumed.",
        triggering.pause,
        lambda client, path: client.pause_trigger(path),
        "paused; start again with: noetl {noun} resume {path}",
    ),
    "resume": TriggerOrder(
        "Let a paused {noun} start again, from now on.",
        triggering.resume,
        lambda client, path: client.resume_trigger(path),
        "resumed; next: {next}",
    ),
    "remove": TriggerOrder(
        "Remove a {noun}; the catalog keeps its text.",
        triggering.remove,
        lambda client, path: client.remove_trigger(path),
        "removed; `noetl catalog {path}` has its text",
    ),
}


def add_orders(group: click.Group, noun: str) -> None:
    """`pause`, `resume` and `remove` of a group: a schedule is a trigger."""
    for word, order in ORDERS.items():
        group.add_command(order_command(word, order, noun))


def order_command(word: str, order: TriggerOrder, noun: str) -> click.Command:
    example = examples(f"{noun} {word} sales/nightly")

    @click.command(word, help=order.says.format(noun=noun), epilog=example)
    @PATH
    @JSON
    @aimed
    def command(path: str, as_json: bool, target: Target) -> None:
        async def near(local: LocalNode) -> TriggerView | None:
            row = await order.near(local.storage, path)
            if row is None:
                return None
            return view_of(TriggerView, row, timezone=await timezone_in(local.storage, row))

        view = ordered(
            target,
            noting(f"trigger.{word}", path, near),
            lambda client: order.far(client, path),
        )
        planned = None if view is None else in_zone(view.planned_at, view.timezone)
        done = order.done.format(noun=noun, path=path, next=planned or "when it is called")
        told = {"path": path, "removed": True} if view is None else view
        tell(told, f"{path}: {done}", as_json=as_json)

    return command


def ordered(
    target: Target, near: Callable[[LocalNode], Awaitable[T]], far: Callable[[Client], T]
) -> T:
    """Something that is written: in the home, or at a server."""
    return in_home(near, make=True) if target.local else at_server(target, far)


def line_of(one: TriggerView) -> str:
    planned = in_zone(one.planned_at, one.timezone)
    state = "paused" if one.paused else f"next {planned}" if planned else idle(one)
    last = f"last {one.last_at}" if one.last_at else "never started"
    why = f"  skipped: {one.skipped_why}" if one.skipped_why else ""
    return f"{one.path:<32}  {one.kind:<9}  {state:<30}  {last}{why}"


def idle(one: TriggerView) -> str:
    return "nothing planned" if one.kind == "schedule" else "waits"


def in_zone(at: str | None, timezone: str | None) -> str | None:
    """A time in UTC, and beside it as the clocks of a schedule's time zone show it."""
    if at is None or timezone is None or timezone == "UTC":
        return at
    try:
        there = datetime.fromisoformat(at).astimezone(zone(timezone))
    except BadSchedule:  # the server knows a zone that this machine does not
        return at
    return f"{at} ({there:%Y-%m-%d %H:%M:%S} {timezone})"


def warn_of(found: TriggerDetail) -> None:
    """It is registered; people learn at once why it would start nothing."""
    if found.problem is not None:
        print_line(f"warning: it would start nothing now: {found.problem}", err=True)


def refused_words(found: TriggerDetail) -> str:
    why = f"; the last one: {found.unproved_why}" if found.unproved_why else ""
    return f"{count(found.unproved, 'call')} that proved nothing{why}"


def compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def words_of(on: Mapping[str, Any]) -> str:
    """The keys of a schedule or another form as one writes them; those without a value are not."""
    return ", ".join(
        f"{key}: {value if isinstance(value, str) else compact(value)}"
        for key, value in on.items()
        if value is not None
    )


def lines_of(found: TriggerDetail) -> list[str]:
    shown = [
        (
            "starts",
            found.playbook + (f"@{found.playbook_version}" if found.playbook_version else ""),
        ),
        ("kind", f"{found.kind}, version {found.version}{', paused' if found.paused else ''}"),
        ("on", words_of(found.on)),
        ("payload", found.payload and compact(found.payload)),
        *(("next", in_zone(at, found.timezone)) for at in found.upcoming),
        ("last", found.last_at and f"{found.last_at}, execution {found.last_execution_id}"),
        ("skipped", found.skipped_at and f"{found.skipped_at}: {found.skipped_why}"),
        ("waits for", found.waits_for and f"execution {found.waits_for} to end"),
        ("problem", found.problem),
        ("called by", found.kind == "webhook" and f"POST /hooks/{found.path}"),
        ("refused", found.unproved and refused_words(found)),
    ]
    return [found.path, *(f"  {name:<10} {text}" for name, text in shown if text)]


add_orders(trigger, "trigger")
