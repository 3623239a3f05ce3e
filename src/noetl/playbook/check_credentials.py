"""Does `auth` name a credential that there is? (KEY-1)"""

from collections.abc import Iterator
from typing import Any

from noetl.expression.meant import closest
from noetl.expression.syntax import is_template
from noetl.playbook.check_tasks import tasks_of
from noetl.playbook.model import Playbook
from noetl.playbook.reader import At, Reader


def check_auth(reader: Reader, playbook: Playbook) -> None:
    """A name that is not in the keychain may be a registered one, unless it is nearly the same."""
    names = [entry.name for entry in playbook.keychain]
    for at, name in _named(reader, playbook):
        near = None if name in names else closest(name, names)
        if near is not None:
            said = f"no entry of `keychain` is called '{name}'"
            reader.report("unknown-credential", at, said, f"did you mean '{near}'?")


def _named(reader: Reader, playbook: Playbook) -> Iterator[tuple[At, str]]:
    for task in tasks_of(playbook):
        if _is_name(task.inputs.get("auth")):
            yield reader.input_at(task.place.path, "auth"), task.inputs["auth"]
    for entry in playbook.keychain:
        if _is_name(entry.fields.get("auth")):
            yield _entry_at(reader, entry.place.path), entry.fields["auth"]


def _entry_at(reader: Reader, path: str) -> At:
    number = int(path.rpartition("[")[2].rstrip("]"))
    root = At(reader.tree.root, reader.tree.root, "")
    element = reader.elements(reader.entries(root)["keychain"])[number]
    return reader.entries(element).get("auth", element)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and not is_template(value)
