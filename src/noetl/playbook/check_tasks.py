"""Do rules, jumps and statements of tasks make sense where they stand? (VAL-2, VAL-3)"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from noetl.expression.syntax import is_template
from noetl.late import late
from noetl.playbook.model import Playbook, Rule, Task
from noetl.playbook.reader import At, Reader
from noetl.playbook.suggest import did_you_mean, some


def pipelines_of(playbook: Playbook) -> Iterator[tuple[Task, ...]]:
    """Every pipeline: of steps, of workbook tasks (one task each), and the inner ones of both."""
    waiting = [step.tasks for step in playbook.steps]
    waiting += [(task,) for task in playbook.workbook.values()]
    while waiting:
        tasks = waiting.pop()
        yield tasks
        waiting += [task.inner.tasks for task in tasks if task.inner is not None]


def tasks_of(playbook: Playbook) -> Iterator[Task]:
    """Every task, wherever it stands."""
    for tasks in pipelines_of(playbook):
        yield from tasks


def check_jumps(reader: Reader, playbook: Playbook) -> None:
    """VAL-2: a jump goes to a task of its own pipeline."""
    for tasks in pipelines_of(playbook):
        labels = {task.label: None for task in tasks}  # in order, and quick to ask
        for task in tasks:
            for rule in task.spec.rules or ():
                to = rule.then.to
                if rule.then.do == "jump" and to is not None and to not in labels:
                    _report_jump(reader, rule, to, labels)


def _report_jump(reader: Reader, rule: Rule, to: str, labels: Iterable[str]) -> None:
    then = "else.then" if rule.when is None else "then"
    reader.report(
        "jump-target",
        reader.places[f"{rule.place.path}.{then}.to"],
        f"the jump goes to '{to}', which is not a task of this pipeline",
        reader.suggest(to, labels, f"labels: {some(labels)}"),
    )


def check_admission(reader: Reader, playbook: Playbook) -> None:
    """VAL-3: admission rules say what holds where none matches."""
    for step in playbook.steps:
        admission = step.admission
        if admission is None or any(rule.when is None for rule in admission.rules):
            continue
        reader.report(
            "admit-without-else",
            reader.places[admission.place.path],
            f"the admission rules of '{step.name}' have no 'else': what matches none is allowed",
            "say it: - else: { then: { allow: false } }",
        )


def check_code(reader: Reader, playbook: Playbook) -> None:
    """VAL-3: values go into code by its arguments or its environment."""
    for task in tasks_of(playbook):
        kind = reader.kinds.get(task.kind)
        for name, instead in kind.programs.items() if kind is not None else ():
            if is_template(task.inputs.get(name)):
                reader.report(
                    "code-template",
                    reader.input_at(task.place.path, name),
                    f"'{name}' builds code by template: a value that holds code is run",
                    instead,
                )


METHODS: Final = (
    *("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "QUERY", "PURGE"),
    *("PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "SEARCH", "REPORT"),
)
"""Those of HTTP, of WebDAV, and what caches take; a server may know others."""


def check_method(reader: Reader, playbook: Playbook) -> None:
    """VAL-3: a server answers a misspelt method with an error, or as if it was another."""
    for task in tasks_of(playbook):
        method = task.inputs.get("method")
        if task.kind != "http" or not isinstance(method, str) or is_template(method):
            continue
        if method.upper() not in METHODS:
            reader.report(
                "unusual-method",
                reader.input_at(task.place.path, "method"),
                f"'{method}' is not a usual request method",
                reader.suggest(method.upper(), METHODS, f"usual ones: {', '.join(METHODS[:6])}"),
            )


_PLACES: Final = late(r"%(?:%|\((?P<name>[^)]*)\)[sbt]|(?P<next>[sbt]))|(?P<lone>%)")
_PERCENT: Final = frozenset({"postgres", "snowflake"})
"""Kinds whose drivers mark bind parameters by a percent sign."""


def check_params(reader: Reader, playbook: Playbook) -> None:
    """VAL-8: placeholders and `params` belong together; a percent sign beside them is doubled."""
    for task in tasks_of(playbook):
        params = task.inputs.get("params")
        name = "command" if "command" in task.inputs else "query"
        text = task.inputs.get(name)
        known = isinstance(text, str) and not is_template(text) and "rows" not in task.inputs
        if task.kind in _PERCENT and known and params and isinstance(params, dict | list):
            _check_places(reader, reader.input_at(task.place.path, name), str(text), params)


def _check_places(reader: Reader, at: At, text: str, params: dict[str, Any] | list[Any]) -> None:
    places = list(_PLACES.finditer(text))
    for place in places:
        name, spot = place["name"], spot_of(text, place.start())
        if place["lone"]:
            said = "a lone '%' beside `params` is read as a placeholder"
            reader.report_inside("sql-params", at, spot, said, "write it twice: %%")
            return
        if _in_quotes(text, place):
            said = f"the placeholder {place.group()} is in quotes, where it is only text"
            reader.report_inside("sql-params", at, spot, said, f"write it alone: {place.group()}")
        if name is not None and isinstance(params, dict) and name not in params:
            said = f"the statement has %({name})s, and `params` has no '{name}'"
            hint = did_you_mean(name, params, f'add it: params: {{ {name}: "{{{{ … }}}}" }}')
            reader.report_inside("sql-params", at, spot, said, hint)
    listed = [place for place in places if place["next"]]
    if isinstance(params, list) and len(listed) != len(params):
        said = f"the statement has {len(listed)} placeholders %s, `params` has {len(params)} values"
        reader.report("sql-params", at, said, "give one value for each %s; a '%' itself is %%")


def _in_quotes(text: str, place: re.Match[str]) -> bool:
    around = text[place.start() - 1 : place.start()], text[place.end() : place.end() + 1]
    return around == ("'", "'") and place.group() != "%%"


def spot_of(text: str, at: int) -> tuple[int, int]:
    """Line and column of a character, from 0."""
    return text.count("\n", 0, at), at - text.rfind("\n", 0, at) - 1


def check_sql(reader: Reader, playbook: Playbook) -> None:
    """VAL-3: values go into SQL by bind parameters."""
    for task in tasks_of(playbook):
        kind = reader.kinds.get(task.kind)
        for name in kind.statements if kind is not None else ():
            if is_template(task.inputs.get(name)):
                reader.report(
                    "sql-template",
                    reader.input_at(task.place.path, name),
                    f"'{name}' builds SQL by template: a value with a quote in it breaks it, "
                    "or worse",
                    'bind values: "… WHERE id = %(id)s" with params: { id: "{{ … }}" } '
                    "(duckdb: $id); templates for names of tables only",
                )
