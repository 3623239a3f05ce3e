"""What is known of a task that failed: its error, what it was given, said and printed."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from noetl.masking import MASK
from noetl.messages import events as e
from noetl.messages.codec import encode
from noetl.messages.envelope import timestamp
from noetl.messages.places import index_in
from noetl.messages.reference import Reference
from noetl.messages.times import called
from noetl.playbook.model import Guard, Playbook, Task

LONGEST_BODY = 2_000
PRINTED = 20
"""Lines that a task printed last, and that are shown beside its error."""
CODE = re.compile(r'  File "<code>", line (\d+)')
HEAD = "Traceback ("
"""How Python begins a traceback: nobody shall think that NoETL itself broke."""
SQL_PLACE = re.compile(r"^LINE \d+: .*(?:\n.*\^+)?", re.MULTILINE)


class FailedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that failed, and the rule that let its pipeline fail."""

    task: str
    kind: str
    task_run_id: str
    attempt: int
    error: dict[str, Any]
    started_at: str | None = None
    """When the tool was called, by the clock of its worker (RFC 3339)."""
    duration_ms: int | None = None
    index: int | None = None
    """The iteration it stands in, counted from 0."""
    rule: int | None = None
    """The rule that decided, counted from 0; None where none matched or there is no policy."""
    policy: bool = False
    when: Guard | None = None
    """The guard of that rule; None for `else`."""
    line: int | None = None
    inputs: dict[str, Any] = {}
    """As the playbook has them, templates unrendered."""
    rendered: dict[str, Any] = {}
    """As the tool got them, cut short and masked."""
    traceback: list[str] = []
    """Of python code: its lines, each with the line of the playbook."""
    http_status: int | None = None
    body: str | None = None
    """Of an answer over HTTP, cut short."""
    place: list[str] = []
    """Of SQL: the line of the statement, and a mark below the fault."""
    printed: list[str] = []
    """The last lines that it printed."""
    do: str = "fail"
    """What followed."""


class PassedError(FailedTask, frozen=True, kw_only=True):
    """An error after which the pipeline went on (TASK-2)."""

    step: str
    again: str = ""
    """What `noetl restart --from` takes to run it again."""


class PlaybookText(msgspec.Struct, frozen=True):
    """A playbook with its text, where the lines of code stand."""

    playbook: Playbook
    text: str
    lines: Sequence[int] = ()
    """By line of the text, from 1: that of the text which it was translated from (DIA)."""

    def line_of(self, code: str, task_line: int) -> int | None:
        """The line of the text at which the code of a task begins."""
        wanted = [line.strip() for line in code.rstrip().split("\n")]
        text = self.text.split("\n")
        for start in range(0 if self.lines else task_line - 1, len(text) - len(wanted) + 1):
            if all(one == text[start + n].strip() for n, one in enumerate(wanted)):
                return start + 1
            if len(wanted) == 1 and wanted[0] and text[start].strip(" '\"}").endswith(wanted[0]):
                return start + 1
        return None

    def author_line(self, line: int) -> int:
        """As the author has it."""
        return self.lines[min(line, len(self.lines)) - 1] if self.lines else line


def link_of(done: e.TaskDone, index: int | None, document: PlaybookText) -> FailedTask:
    return FailedTask(**facts_of(done, index, document))


def passed_of(done: e.TaskDone, again: str, document: PlaybookText) -> PassedError:
    return PassedError(step=done.step, again=again, **facts_of(done, index_of(done), document))


def index_of(done: e.TaskDone) -> int | None:
    """EVT-0: `4.1.2` is a task of iteration `4.1`; an inner one of a nested loop has more."""
    numbers = done.task_run_id.split(".")
    return index_in(numbers[-2]) if len(numbers) > 2 else None


def facts_of(done: e.TaskDone, index: int | None, document: PlaybookText) -> dict[str, Any]:
    outcome = done.outcome
    known: dict[str, Any] = {
        "kind": "",
        "task": done.task,
        "task_run_id": done.task_run_id,
        "attempt": done.attempt,
        "error": done.error or outcome.get("error") or {},
        "index": index,
        "rule": done.rule,
        "do": done.do,
        "rendered": done.inputs,
        **answer_of(outcome),
    }
    playbook = document.playbook
    steps = {step.name: step.tasks for step in playbook.steps}
    task = find_task(steps.get(done.step, ()), done.task)
    if task is not None:
        rules = task.spec.rules
        decided = rules[done.rule] if rules is not None and done.rule is not None else None
        ran = playbook.workbook.get((outcome.get("workbook") or {}).get("task", ""), task)
        known |= {
            "task": task.label,
            "kind": task.kind,
            "inputs": ran.inputs,
            "policy": rules is not None,
            "when": None if decided is None else decided.when,
            "line": (decided or task).place.line,
            "traceback": traceback_of(outcome, ran, document),
        }
    took = called(outcome)
    if took is not None:
        known |= {"started_at": timestamp(took[0]), "duration_ms": took[1] - took[0]}
    return known


def answer_of(outcome: dict[str, Any]) -> dict[str, Any]:
    """What the other side said, where that is more than a message."""
    http, result = outcome.get("http"), outcome.get("result")
    if isinstance(http, dict) and "status" in http:
        body = result.get("data") if isinstance(result, dict) else result
        return {"http_status": http["status"], "body": body_words(body)}
    for name in ("pg", "duckdb"):
        block = outcome.get(name)
        if isinstance(block, dict):
            said = str(block.get("place") or block.get("message") or "")
            found = SQL_PLACE.search(said)
            return {"place": found.group().split("\n") if found else []}
    return {}


def body_words(body: Any) -> str | None:
    if body is None or body == "":
        return None
    body = without_references(body)
    text = body if isinstance(body, str) else encode(body).decode("utf-8", "replace")
    return text if len(text) <= LONGEST_BODY else f"{text[:LONGEST_BODY]}…"


def without_references(value: Any) -> Any:
    """What is not in the log in the place of its value: secrets stay masked (KEY-2)."""
    if isinstance(value, Reference):
        return f"({value.size} bytes, kept outside the log)" if value.sealed is None else MASK
    if isinstance(value, dict):
        return {key: without_references(below) for key, below in value.items()}
    if isinstance(value, list):
        return [without_references(below) for below in value]
    return value


def traceback_of(outcome: dict[str, Any], task: Task, document: PlaybookText) -> list[str]:
    """As Python told it, with the lines of the playbook in the place of those of the code."""
    told = (outcome.get("py") or {}).get("traceback")
    if not isinstance(told, str) or not told:
        return []
    first = document.line_of(str(task.inputs.get("code", "")), task.place.line)

    def placed(found: re.Match[str]) -> str:
        number = int(found.group(1))
        if first is None:
            return f"  line {number} of the code"
        return f"  line {document.author_line(first + number - 1)}"

    lines = CODE.sub(placed, told).split("\n")
    return [line for line in lines if line and not line.startswith(HEAD)]


def find_task(tasks: Iterable[Task], label: str) -> Task | None:
    for task in tasks:
        if task.label == label:
            return task
        found = find_task(task.inner.tasks, label) if task.inner is not None else None
        if found is not None:
            return found
    return None
