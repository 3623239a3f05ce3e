"""Cases of migration: texts of older dialects, and what becomes of each."""

from pathlib import Path

import msgspec

from noetl.playbook.dialects.migrate import Migrated, migrate
from noetl.playbook.load import load

FOLDER = Path(__file__).parent / "playbooks" / "migrations"
HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: case, path: cases/case }
"""
"""Stands above every text that does not begin with `apiVersion`; three lines."""


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An older text, the canonical text that it becomes, and the codes of its rewrites."""

    name: str
    before: str
    after: str
    codes: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


class Refusal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One finding; the line counts from the first of the case's text."""

    line: int
    code: str
    message: str
    hint: str


class RefusedCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A text that cannot be translated, and everything that is said about it."""

    name: str
    text: str
    said: tuple[Refusal, ...]

    def __str__(self) -> str:
        return self.name


def whole(text: str) -> str:
    """A text with the head that it lacks."""
    return text if "apiVersion" in text else HEAD + text


def cases(file: str) -> list[Case]:
    found = msgspec.yaml.decode((FOLDER / f"{file}.yaml").read_bytes(), type=list[Case])
    assert found
    return found


def refused_cases(file: str) -> list[RefusedCase]:
    found = msgspec.yaml.decode((FOLDER / f"{file}.yaml").read_bytes(), type=list[RefusedCase])
    assert found
    return found


def assert_migrates(case: Case) -> None:
    """The expected text, valid, once and for all; each rewrite at a line that has what it says."""
    made = migrate(whole(case.before))
    assert made.text == whole(case.after)
    assert [one for one in made.findings if one.severity == "error"] == []
    assert sorted({one.code for one in made.rewrites}) == sorted(case.codes)
    assert_settled(made)
    old, new = whole(case.before).splitlines(), made.text.splitlines()
    for one in made.rewrites:
        assert 1 <= one.line <= len(old)
        assert 1 <= one.new_line <= len(new)
        assert one.message
        assert one.old


def assert_settled(made: Migrated) -> None:
    """The canonical loader takes the text, and migrating it again leaves it alone."""
    assert load(made.text).playbook is not None
    again = migrate(made.text)
    assert (again.text, again.rewrites, again.changed) == (made.text, (), False)


def assert_refused(case: RefusedCase) -> None:
    made = migrate(whole(case.text))
    head = 0 if "apiVersion" in case.text else HEAD.count("\n")
    said = [
        Refusal(one.line - head, one.code, one.message, one.hint)
        for one in made.findings
        if one.severity == "error"
    ]
    assert said == list(case.said)
