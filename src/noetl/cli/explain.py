"""`noetl explain`: why an execution waits or failed, in words, and what to do next."""

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from noetl.assembly import Local
from noetl.cli import exits
from noetl.cli.advice import advice_for
from noetl.cli.home import ID, JSON, in_home, is_interrupted, print_json
from noetl.cli.running.words import error_words, seconds, value_words
from noetl.errors import NoetlError
from noetl.playbook.load import load_valid
from noetl.playbook.model import Playbook
from noetl.server.causes import Cause, Link, Trail, causes_of, trail_of
from noetl.server.waiting import Wait, waits_of
from noetl.tools.plugins import KnownKinds

EPILOG = """\b
Examples:
  noetl explain 06h3k9v2q8m4x0c7w1
  noetl explain 06h3k9v2q8m4x0c7w1 --json
"""

SHOWN_CAUSES = 5


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints: the facts, and the same in words."""

    execution_id: str
    status: str
    interrupted: bool
    causes: list[Cause]
    waits: list[Wait]
    words: list[str]


@click.command(epilog=EPILOG)
@ID
@JSON
def explain(execution_id: str, as_json: bool) -> int:
    """Say why an execution waits or failed: the chain of causes, and what to do next."""
    explanation = in_home(lambda local: explained(local, execution_id))
    if as_json:
        print_json(explanation)
    else:
        for line in explanation.words:
            click.echo(line)
    return exits.OK


async def explained(local: Local, execution_id: str) -> Explanation:
    row = await local.row(execution_id)
    execution, plan, _ = await local.load(execution_id)
    kept = await local.home.playbooks.text(row.digest)
    if kept is None:
        raise NoetlError(f"the playbook of '{execution_id}' is not in this home any more")
    playbook = load_valid(kept[0], KnownKinds())
    trail = await trail_of(local.home.log, execution_id)
    interrupted = await is_interrupted(local, row)
    causes = causes_of(execution, trail, playbook)
    waits = waits_of(execution, plan)
    took = seconds((row.finished_at or row.updated_at) - row.started_at)
    words = [f"execution {execution_id} of {row.path}: {stands(row.status, interrupted)}, {took}"]
    if interrupted:
        words.append(f"  the process that ran it is gone; go on with: noetl resume {execution_id}")
    words += cancel_words(trail)
    for cause in causes[:SHOWN_CAUSES]:
        words += cause_words(cause, execution_id)
    if execution.failed > SHOWN_CAUSES:
        words.append(f"and {execution.failed - SHOWN_CAUSES:,} more failures")
    for wait in waits:
        words += wait_words(wait, trail, playbook)
    if len(words) == 1:
        words += dropped_words(trail) or ["  nothing failed and nothing waits"]
    return Explanation(
        execution_id=execution_id,
        status=row.status,
        interrupted=interrupted,
        causes=causes,
        waits=waits,
        words=words,
    )


def stands(status: str, interrupted: bool) -> str:
    return f"{status}, interrupted" if interrupted else status


def cancel_words(trail: Trail) -> list[str]:
    order = trail.cancelled
    if order is None:
        return []
    by = {
        "cancel": "it was cancelled on request",
        "fail_fast": "`fail_fast` stopped it at the first failure",
        "timeout": "its own time limit stopped it",
    }[order.by]
    return [f"  {by}{f': {order.reason}' if order.reason and order.by == 'cancel' else ''}"]


def cause_words(cause: Cause, execution_id: str) -> Iterator[str]:
    """From the step inwards: step, iteration, task, attempt, error, rule, inputs, remedy."""
    line = f", line {cause.line}" if cause.line is not None else ""
    where = f"step '{cause.step}'{line}" if cause.step else "the request"
    yield f"{where} failed: {error_words(cause.error)}"
    if cause.index is not None:
        yield f"  in iteration {cause.index} of its loop"
    for link in cause.chain:
        yield from link_words(link)
    innermost = cause.chain[-1].error if cause.chain else cause.error
    yield from wrapped_words(innermost)
    if cause.step_run_id is not None:
        yield "  no arc took the failure: only an arc with a `when` can (NEXT-3)"
    yield f"  what to do: {advice_for(innermost, cause.step, execution_id)}"


def link_words(link: Link) -> Iterator[str]:
    inside = f"iteration {link.index}, " if link.index is not None else ""
    yield f"  {inside}task '{link.task}' ({link.kind}), attempt {link.attempt}: " + error_words(
        link.error
    )
    yield f"    {rule_words(link)}"
    for name, value in link.inputs.items():
        yield f"    {name}: {value_words(value, 120)}"
    template = link.error.get("template")
    if template:
        yield f"    the template: {value_words(template, 120)}"


def rule_words(link: Link) -> str:
    """Which rule of the policy decided."""
    place = f" (line {link.line})" if link.line is not None else ""
    if not link.policy:
        return f"it has no policy: an error fails the step{place}"
    if link.rule is None:
        return f"no rule of its policy matched{place}"
    guard = "else" if link.when is None else f"when {link.when}"
    return f"rule {link.rule + 1} of its policy decided: {guard}{place}"


def wrapped_words(error: dict[str, Any]) -> Iterator[str]:
    cause = error.get("cause")
    while isinstance(cause, dict):
        yield f"  caused by {error_words(cause)}"
        cause = cause.get("cause")


def wait_words(wait: Wait, trail: Trail, playbook: Playbook) -> Iterator[str]:
    yield f"step '{wait.step}': {wait.words}"
    verdict = trail.verdicts.get(wait.token_id or "")
    if verdict is None or verdict.rule is None:
        return
    for step in playbook.steps:
        if step.name == wait.step and step.admission is not None:
            rule = step.admission.rules[verdict.rule]
            guard = "else" if rule.when is None else f"when {rule.when}"
            yield f"  refused by rule {verdict.rule + 1} (line {rule.place.line}): {guard}"


def dropped_words(trail: Trail) -> list[str]:
    return [
        f"  a token at step '{token.step}' was dropped: {token.reason}" for token in trail.dropped
    ]
