"""`noetl signal`, `noetl approve` and `noetl reject`: what executions wait for (WAIT)."""

from collections.abc import Iterable, Sequence
from typing import Any

import click
import msgspec

from noetl.cli import exits
from noetl.cli.contexts import Target
from noetl.cli.home import in_home
from noetl.cli.ordering import noting
from noetl.cli.output import ID, JSON, tell
from noetl.cli.target import aimed, ask, at_server
from noetl.messages.requests import SendSignal
from noetl.node.local import LocalNode, os_user
from noetl.playbook.suggest import did_you_mean
from noetl.server.ids import new_execution_id
from noetl.server.views.standing import Standing
from noetl.server.waiting import WaitReason

SHOWN = 5
"""Other signals that are named where nothing waits for the one that was sent."""

SIGNAL = """\b
Examples:
  noetl signal 06h3k9v2q8m4x0c7w1 paid
  noetl signal 06h3k9v2q8m4x0c7w1 paid --data '{"amount": 12}' --id payment-7

\b
Exit codes: 0 it was taken or is kept, 3 it was refused, usage or environment.
"""
ANSWER = """\b
Examples:
  noetl approve 06h3k9v2q8m4x0c7w1
  noetl approve 06h3k9v2q8m4x0c7w1 ask_finance:3 --reason 'budget is there' --set limit=500
  noetl reject 06h3k9v2q8m4x0c7w1 ask_finance --reason 'too much'

\b
Exit codes: 0 the answer was recorded, 3 it was refused, usage or environment.
"""


@click.command(epilog=SIGNAL)
@ID
@click.argument("name")
@click.option("--data", metavar="JSON", default="null", help="What the signal carries.")
@click.option("--id", "signal_id", metavar="ID", help="The same id twice is one signal.")
@JSON
@aimed
def signal(
    execution_id: str,
    name: str,
    data: str,
    signal_id: str | None,
    as_json: bool,
    target: Target,
) -> int:
    """
    Send a signal to an execution.

    The oldest wait that wants it takes it; else it is kept for the next one.
    """
    value = json_of(data)
    before = ask(target, lambda asked: asked.standing(execution_id))
    if target.local:
        given = SendSignal(
            signal=name,
            data=value,
            sender=os_user(),
            signal_id=signal_id or new_execution_id(),
        )
        about = f"{execution_id} {name}"
        in_home(noting("signal", about, lambda local: local.signal(execution_id, given)))
    else:
        at_server(target, lambda client: client.signal(execution_id, name, value, id=signal_id))
    said = f"execution {execution_id}: signal '{name}' was sent; {taker_words(before, name)}"
    tell({"execution_id": execution_id, "signal": name}, said + later(before), as_json=as_json)
    return exits.OK


def taker_words(standing: Standing, name: str) -> str:
    """Which wait wants it, as it stood; else it is kept, perhaps since its name is misspelt."""
    waiting: dict[str, list[str]] = {}
    for wait in standing.waits:
        for one in wait.signals:
            waiting.setdefault(one, []).append(wait.place or wait.step)
    places = waiting.get(name, [])
    if len(places) == 1:
        return f"'{places[0]}' waits for it"
    if places:
        return f"{listed(places)} wait for it, and the first of them whose `when` lets it takes it"
    kept = "nothing waits for it now, so it is kept for the next wait of that name"
    if not waiting:
        return kept
    others = ", ".join(f"'{one}' ({waiting[one][0]})" for one in list(waiting)[:SHOWN])
    return f"{kept}; awaited now: {others}" + did_you_mean_after(name, waiting)


def listed(places: Sequence[str]) -> str:
    """`'load:0', 'load:1' and 7 more`."""
    more = f" and {len(places) - SHOWN:,} more" if len(places) > SHOWN else ""
    return ", ".join(f"'{one}'" for one in places[:SHOWN]) + more


def did_you_mean_after(name: str, known: Iterable[str]) -> str:
    hint = did_you_mean(name, known, "")
    return f"; {hint}" if hint else ""


def later(standing: Standing) -> str:
    """Where nobody decides for it, nothing comes of an order before somebody does."""
    if not standing.interrupted:
        return ""
    return f"; no process runs it: noetl resume {standing.execution_id} goes on with it"


def json_of(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as fault:
        raise click.BadParameter(f"--data is not JSON: {fault}") from None


def answering(name: str, *, approved: bool, says: str) -> click.Command:
    """`approve` and `reject` differ in one word."""

    @click.command(name, help=says, epilog=ANSWER)
    @ID
    @click.argument("step", metavar="[STEP[:I][.LABEL]]", required=False)
    @click.option("--reason", default="", help="Kept in the log beside the answer.")
    @click.option(
        "--set", "fields", multiple=True, metavar="FIELD=VALUE", help="A field of the form."
    )
    @JSON
    @aimed
    def command(
        execution_id: str,
        step: str | None,
        reason: str,
        fields: tuple[str, ...],
        as_json: bool,
        target: Target,
    ) -> int:
        for text in fields:
            field_of(text, frozenset())  # what cannot be read is told before anybody is asked
        before = ask(target, lambda asked: asked.standing(execution_id))
        texts = text_fields(before.waits)
        given: dict[str, Any] = dict(field_of(text, texts) for text in fields)
        if target.local:

            async def answered(local: LocalNode) -> None:
                await local.answer(
                    execution_id,
                    step,
                    approved=approved,
                    sender=local.user,
                    reason=reason,
                    fields=given,
                )

            in_home(noting("answer", " ".join(filter(None, (execution_id, step, name))), answered))
        else:
            at_server(
                target,
                lambda client: client.answer(
                    execution_id, step, approved=approved, reason=reason, fields=given
                ),
            )
        word = "approved" if approved else "rejected"
        told = {"execution_id": execution_id, "approved": approved}
        what = f" {step}" if step else ""
        tell(told, f"execution {execution_id}:{what} {word}{later(before)}", as_json=as_json)
        return exits.OK

    return command


def text_fields(waits: Iterable[WaitReason]) -> frozenset[str]:
    """The fields that are text in every form that has them."""
    asked = [(name, field["type"]) for wait in waits for name, field in wait.form.items()]
    others = {name for name, kind in asked if kind != "string"}
    return frozenset(name for name, _ in asked) - others


def field_of(text: str, texts: frozenset[str]) -> tuple[str, Any]:
    """`amount=12` is a number, `note=yes it is` a text; `note=12` is one where the form says so."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"--set takes FIELD=VALUE, got {text!r}")
    try:
        found = msgspec.json.decode(value)
    except msgspec.DecodeError:
        return name, value
    return name, value if name in texts and not isinstance(found, str) else found


approve = answering(
    "approve",
    approved=True,
    says="Approve what an execution waits for. STEP may be left out if only one waits; "
    "LABEL is for `any` with several questions.",
)
reject = answering(
    "reject",
    approved=False,
    says="Reject what an execution waits for. STEP may be left out if only one waits; "
    "LABEL is for `any` with several questions.",
)
