"""`noetl waiting`: what waits for people, and how to answer it (WAIT-7)."""

from typing import Any

import click

from noetl.api.types import PersonAwaited
from noetl.cli.contexts import Target
from noetl.cli.output import JSON, tell
from noetl.cli.running.words import value_words
from noetl.cli.target import Asked, aimed, ask, is_new, pages

EPILOG = """\b
Examples:
  noetl waiting
  noetl waiting --json
  noetl waiting --server http://127.0.0.1:8765
"""


@click.command(epilog=EPILOG)
@JSON
@aimed
def waiting(as_json: bool, target: Target) -> None:
    """List what waits for people: the question, who may answer, and the command that does."""
    found = [] if is_new(target) else ask(target, all_of)
    lines = [line for one in found for line in lines_of(one)] or ["nothing waits for a person"]
    tell({"waiting": found}, *lines, as_json=as_json)


async def all_of(asked: Asked) -> list[PersonAwaited]:
    return [one async for page in pages(asked.waiting) for one in page.waiting]


def lines_of(one: PersonAwaited) -> list[str]:
    wait = one.wait
    who = f", from {', '.join(wait.roles)}" if wait.roles else ""
    until = f", until {wait.until}" if wait.until else ""
    lines = [
        f"{one.execution_id}  {one.path}  {wait.question or wait.step}: {wait.title}",
        f"  since {wait.since}{until}{who}",
    ]
    lines += [f"  {field_words(name, field)}" for name, field in wait.form.items()]
    return lines + [f"  {command}" for command in wait.answers if "signal" not in command.split()]


def field_words(name: str, field: dict[str, Any]) -> str:
    """A field of the form as it is given: what it takes, and what it is if it is left out."""
    taken = field["type"]
    if field.get("choices"):
        taken = f"one of {', '.join(map(value_words, field['choices']))}"
    if "default" in field:
        taken = f"{taken}; {value_words(field['default'])} if left out"
    elif not field.get("required", True):
        taken = f"{taken}; may be left out"
    title = f": {field['title']}" if field.get("title") else ""
    return f"--set {name}=… ({taken}){title}"
