"""`noetl explain`: why an execution waits or failed, in words, and what to do next."""

from collections.abc import Iterator
from typing import Any

import click

from noetl.cli.advice import advice_for
from noetl.cli.contexts import Target
from noetl.cli.output import ID, JSON, examples, tell
from noetl.cli.running.details import again_lines, detail_lines, head_of
from noetl.cli.running.words import count, error_words, seconds, value_words
from noetl.cli.target import aimed, ask
from noetl.messages.places import place_of
from noetl.server.afterwards import again_words
from noetl.server.causes import Cause
from noetl.server.failed_tasks import FailedTask
from noetl.server.report import handled_words
from noetl.server.views.explanation import Explanation
from noetl.server.waiting import WaitReason

EPILOG = examples("explain last", "explain 06h3k9v2q8m4x0c7w1 --json")
SHOWN_CAUSES = 5


FACTS = (
    *("execution_id", "status", "interrupted", "causes", "waits", "unmatched"),
    *("failures_handled", "handled", "errors_passed", "went_on", "tolerated"),
)
"""What `--json` prints beside the words."""


@click.command(epilog=EPILOG)
@ID
@JSON
@aimed
def explain(execution_id: str, as_json: bool, target: Target) -> None:
    """Explain why an execution failed or waits: the chain of causes and what to do next."""
    found = ask(target, lambda asked: asked.explanation(execution_id))
    words = words_of(found)
    facts = {name: getattr(found, name) for name in FACTS}
    tell({**facts, "words": words}, *words, as_json=as_json)


def words_of(found: Explanation) -> list[str]:
    """The whole story, line by line."""
    execution_id, took = found.execution_id, seconds(found.duration_ms)
    stand = stands(found.status, found.interrupted)
    stand = ", ".join([stand, *handled_words(found.errors_passed, found.failures_handled)])
    words = [f"execution {execution_id} of {found.path}: {stand}, {took}"]
    if found.interrupted:
        words.append(
            f"  the process that ran it is gone; continue with: noetl resume {execution_id}"
        )
    words += stop_words(found)
    for cause in found.causes[:SHOWN_CAUSES]:
        words += cause_words(cause, execution_id)
    if found.failures > SHOWN_CAUSES:
        words.append(f"and {found.failures - SHOWN_CAUSES:,} more failures")
    if found.status == "failed" and any(cause.step_run_id for cause in found.causes):
        words.append(again_words(execution_id, found.status))
    for cause in found.handled[:SHOWN_CAUSES]:
        words += cause_words(cause, execution_id)
    if found.failures_handled > SHOWN_CAUSES:
        words.append(f"and {found.failures_handled - SHOWN_CAUSES:,} more failures handled")
    words += passed_words(found)
    for wait in found.waits:
        words += wait_words(wait, found)
    words += unmatched_words(found)
    if len(words) == 1:
        words += dropped_words(found) or ["  nothing failed and nothing waits"]
    return words


def stands(status: str, interrupted: bool) -> str:
    return f"{status}, interrupted" if interrupted else status


BY = {
    "cancel": "it was cancelled on request",
    "fail_fast": "`fail_fast` stopped it at the first failure",
    "timeout": "its own time limit stopped it",
}


def stop_words(found: Explanation) -> list[str]:
    order = found.stopped
    if order is None:
        return []
    why = f": {order.reason}" if order.reason and order.by == "cancel" else ""
    return [f"  {BY.get(order.by, order.by)}{why}"]


def cause_words(cause: Cause, execution_id: str) -> Iterator[str]:
    """From the step inwards: step, iteration, task, attempt, error, rule, inputs, remedy."""
    line = f", line {cause.line}" if cause.line is not None else ""
    where = f"step '{cause.step}'{line}" if cause.step else "the request"
    yield f"{where} failed: {error_words(cause.error)}"
    if cause.index is not None and not cause.chain:
        yield f"  in iteration {cause.step}:{cause.index}"
    for link in cause.chain:
        yield from link_words(link, cause.step)
    innermost = cause.chain[-1].error if cause.chain else cause.error
    yield from wrapped_words(innermost)
    for taking in cause.taken_by:
        place = "" if taking.line is None else f" (line {taking.line})"
        yield f"  the arc to '{taking.step}'{place} took it: '{taking.step}' is {taking.status}"
    if cause.taken_by:
        return
    if cause.step_run_id is not None:
        yield "  no arc took the failure: only an arc with a `when` can (NEXT-3)"
    place = place_of(cause.step, cause.chain[-1].task_run_id if cause.chain else None)
    yield f"  what to do: {advice_for(innermost, place, execution_id)}"


def link_words(link: FailedTask, step: str) -> Iterator[str]:
    place = f"{place_of(step, link.task_run_id)}.{link.task}"
    yield f"  {place} {head_of(link)}: {error_words(link.error)}"
    yield f"    {rule_words(link)}"
    yield from detail_lines(link)
    template = link.error.get("template")
    if template:
        yield f"    the template: {value_words(template, 120)}"


def rule_words(link: FailedTask) -> str:
    """Which rule of the policy decided."""
    place = f" (line {link.line})" if link.line is not None else ""
    if not link.policy:
        return f"it has no policy, so an error fails the step{place}"
    if link.rule is None:
        went_on = "" if link.do == "fail" else ": it went on (TASK-2)"
        return f"no rule of its policy matched{went_on}{place}"
    guard = "else" if link.when is None else f"when {link.when}"
    return f"rule {link.rule + 1} of its policy decided: {guard}{place}"


def passed_words(found: Explanation) -> Iterator[str]:
    """After which errors it went on."""
    for link in found.went_on[:SHOWN_CAUSES]:
        yield f"step '{link.step}' went on after an error:"
        yield from link_words(link, link.step)
        if link.again:  # a server before this one does not say
            yield f"  run it again: noetl restart {found.execution_id} --from {link.again}"
    for loop in found.tolerated[:SHOWN_CAUSES]:
        line = "" if loop.line is None else f", line {loop.line}"
        failed = count(loop.failed, "failed iteration")
        yield f"step '{loop.step}'{line} went on after {failed} of {loop.total:,}"
        for index, error in loop.first:
            yield f"  {loop.step}:{index}: {error_words(error)}"
        if loop.failed > len(loop.first):
            yield f"  … and {loop.failed - len(loop.first):,} more"
        yield from again_lines(loop, found.execution_id)
    more = (
        found.errors_passed
        - min(len(found.went_on), SHOWN_CAUSES)
        - sum(loop.failed for loop in found.tolerated)
    )
    if more > 0:
        yield f"and after {count(more, 'more error')}"


def wrapped_words(error: dict[str, Any]) -> Iterator[str]:
    cause = error.get("cause")
    while isinstance(cause, dict):
        yield f"  caused by {error_words(cause)}"
        cause = cause.get("cause")


def wait_words(wait: WaitReason, found: Explanation) -> Iterator[str]:
    yield f"step '{wait.place or wait.step}': {wait.words}"
    for refused in found.refused:
        if refused.token_id == wait.token_id:
            yield f"  refused by rule {refused.rule + 1} (line {refused.line}): {refused.guard}"


def unmatched_words(found: Explanation) -> Iterator[str]:
    for end in found.unmatched:
        line = "" if end.line is None else f", line {end.line}"
        never = f"; so these never ran: {', '.join(end.never_ran)}" if end.never_ran else ""
        yield f"no arc of step '{end.step}'{line} matched, its branch ended there{never}"


def dropped_words(found: Explanation) -> list[str]:
    return [
        f"  a token at step '{token.step}' was dropped: {token.reason}" for token in found.dropped
    ]
