"""Do rules, jumps and statements of tasks make sense where they stand? (VAL-2, VAL-3)"""

from collections.abc import Iterable, Iterator

from noetl.expression.syntax import is_template
from noetl.playbook.model import Playbook, Rule, Task
from noetl.playbook.reader import Reader
from noetl.playbook.suggest import some


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
