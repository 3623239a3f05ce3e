"""Does what happened match what a test expects? Every difference is a sentence."""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from noetl.cli.running.words import error_words, value_words
from noetl.cli.testing.document import Expected
from noetl.messages.names import NAMES, canonical
from noetl.server.report import ExecutionReport


def differences(
    expected: Expected, report: ExecutionReport, events: Sequence[str]
) -> Iterator[str]:
    """All of them, in the order of the contract."""
    if report.status != expected.ends_as:
        why = f" ({error_words(report.error)})" if report.error else ""
        yield f"status: expected {expected.ends_as}, got {report.status}{why}"
    runs = {step["step"]: step["runs"] for step in report.steps}
    for step, number in expected.steps.items():
        if runs.get(step, 0) != number:
            yield f"steps.{step}: expected {number} runs, got {runs.get(step, 0)}"
    yield from parts("ctx", expected.ctx, report.ctx)
    if expected.result is not msgspec.UNSET and expected.result != report.result:
        yield f"result: expected {shown(expected.result)}, got {shown(report.result)}"
    yield from missing_event(expected.events, events)
    if expected.error is not None:
        yield from parts("error", expected.error, report.error)


def parts(path: str, expected: Any, found: Any) -> Iterator[str]:
    """Mappings may hold more than is expected; anything else must be equal."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key in found:
                yield from parts(f"{path}.{key}", value, found[key])
            else:
                yield f"{path}.{key}: expected {shown(value)}, got nothing"
    elif expected != found:
        yield f"{path}: expected {shown(expected)}, got {shown(found)}"


def missing_event(expected: Sequence[str], found: Sequence[str]) -> Iterator[str]:
    """The expected names must stand in the log in this order; others may stand between."""
    rest = iter(found)
    for number, name in enumerate(expected):
        if canonical(name) not in NAMES:
            yield f"events[{number}]: '{name}' is no name of an event"
            return
        if canonical(name) not in rest:
            after = f" after {expected[number - 1]}" if number else ""
            yield f"events[{number}]: expected {name}{after}, and none came"
            return


def shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else value_words(value, 120)
