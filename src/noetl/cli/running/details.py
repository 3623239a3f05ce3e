"""What a failed task was given, was told and printed: the same lines in every command."""

from collections.abc import Iterator
from typing import Any

from noetl.cli.running.words import error_words, seconds, short, value_words
from noetl.cli.terminal import plain
from noetl.messages.places import place_of
from noetl.server.causes import Cause, ToleratedLoop
from noetl.server.failed_tasks import FailedTask
from noetl.server.views.explanation import Explanation

INPUT = 300
BODY = 600
REASON = 20
"""Lines of a message that are shown."""
SHOWN_CAUSES = 3
"""Failures that `run` and `status` tell of; `explain` has more."""


def failure_lines(found: Explanation | None) -> Iterator[str]:
    """The first failures of an execution with all that is known, for `run` and `status`."""
    for cause in found.causes[:SHOWN_CAUSES] if found is not None else ():
        yield from brief_lines(cause)


def brief_lines(cause: Cause) -> Iterator[str]:
    if not cause.chain:
        return
    for link in cause.chain:
        line = "" if link.line is None else f", line {link.line}"
        place = f"{place_of(cause.step, link.task_run_id)}.{link.task}"
        yield f"  {place} {head_of(link)}{line}: {error_words(link.error)}"
        yield from detail_lines(link)


def tolerated_lines(found: Explanation | None) -> Iterator[str]:
    """How to run again what failed and was tolerated, which `restart --failed` leaves (RST-1)."""
    if found is not None:
        for loop in found.tolerated[:SHOWN_CAUSES]:
            yield from again_lines(loop, found.execution_id)


def again_lines(loop: ToleratedLoop, execution_id: str) -> Iterator[str]:
    if loop.again:
        yield f"  run the failed iterations again: noetl restart {execution_id} --from {loop.again}"
    if loop.failed > loop.again.count(",") + 1:
        yield f"  which they are: noetl events {execution_id} --name loop.iteration.failed"


def head_of(link: FailedTask) -> str:
    took = "" if link.duration_ms is None else f", {seconds(link.duration_ms)}"
    return f"({link.kind}), attempt {link.attempt}{took}"


def detail_lines(link: FailedTask) -> Iterator[str]:
    """All that helps to see what is wrong, without another command."""
    for line in link.traceback or reason_lines(link):
        yield f"    {plain(line)}"
    if link.http_status is not None:
        body = "no body" if link.body is None else short(link.body, BODY)
        yield f"    the answer: {link.http_status}, {body}"
    for line in link.place:
        yield f"    {plain(line)}"
    yield from input_lines(link)
    if link.printed:
        yield "    it printed:"
        yield from (f"    | {plain(line)}" for line in link.printed)


def reason_lines(link: FailedTask) -> list[str]:
    """The lines of a message that has several, such as what an installer said."""
    first, *more = str(link.error.get("message", "")).split("\n")
    del first
    return [] if link.place else more[:REASON]


def input_lines(link: FailedTask) -> Iterator[str]:
    """Each input as the playbook has it, and beside it what it came to."""
    for name, value in link.inputs.items():
        if name in SHOWN_ELSEWHERE and link.traceback:
            continue
        yield f"    {name}: {value_words(value, INPUT)}"
        came_to = link.rendered.get(name, value)
        if name in link.rendered and differs(value, came_to):
            yield f"      = {value_words(came_to, INPUT)}"


SHOWN_ELSEWHERE = ("code",)
"""Inputs whose lines a traceback shows already."""


def differs(template: Any, came_to: Any) -> bool:
    """Whether rendering made something else of it: nested values are kept as text."""
    return value_words(template, INPUT) != value_words(came_to, INPUT)
