"""Does what a request, a task or a trigger brings fit the playbook that gets it? (VAL-7)"""

from collections.abc import Iterator
from typing import Any

from yaml.nodes import MappingNode

from noetl.expression.meant import closest
from noetl.expression.syntax import is_template
from noetl.playbook.check_tasks import tasks_of
from noetl.playbook.model import Playbook
from noetl.playbook.reader import At, Reader


def check_brought(reader: Reader, playbook: Playbook) -> None:
    """What a request brings, where the playbook is loaded for one."""
    brought = reader.brought.get("workload")
    broken = any(finding.severity == "error" for finding in reader.findings)
    if brought and not broken:
        from noetl.playbook.declared import declared_in, warnings_of  # few bring something

        reader.findings += warnings_of(declared_in(playbook, reader.kinds), brought)


def check_calls(reader: Reader, playbook: Playbook) -> None:
    """TOOL-1: the `args` of a task that runs another playbook, where that one is at hand."""
    for task in tasks_of(playbook):
        path = task.inputs.get("path")
        if task.kind != "playbook" or not isinstance(path, str) or is_template(path):
            continue
        at = reader.input_at(task.place.path, "path")
        args = task.inputs.get("args")
        given = (reader.input_at(task.place.path, "args"), args) if args else None
        compare(reader, path, at, given, version=task.inputs.get("version"))


def compare(
    reader: Reader, path: str, at: At, given: tuple[At, Any] | None, *, version: Any
) -> None:
    """What is written for a playbook, with that playbook; of another version nothing is known."""
    found = None if version is not None else reader.neighbours.playbook(path)
    if found is None:
        paths = reader.neighbours.paths()
        near = None if path in paths else closest(path, paths)
        if near is not None:
            said = f"no playbook of the catalog has the path '{path}'"
            reader.report("unknown-playbook", at, said, f"did you mean '{near}'?")
    elif given is not None and isinstance(given[1], dict):
        from noetl.playbook.declared import misfits

        for one in misfits(found, given[1], written=True):
            spot = _at_keys(reader, given[0], one.keys)
            reader.report(one.code, spot, f"{one.message} (in '{path}')", one.hint)


def _at_keys(reader: Reader, at: At, keys: tuple[str, ...]) -> At:
    for key in keys:
        if type(at.node) is MappingNode:
            at = reader.entries(at).get(key, at)
    return At(at.anchor, at.anchor, at.path)


def called(playbook: Playbook) -> Iterator[str]:
    """The paths of the playbooks that a playbook runs, where they are written out."""
    for task in tasks_of(playbook):
        path = task.inputs.get("path")
        if task.kind == "playbook" and isinstance(path, str) and not is_template(path):
            yield path
