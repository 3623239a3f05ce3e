"""A file of playbook tests: its shape, and what is said where it has another one."""

from pathlib import Path
from typing import Any

import msgspec

from noetl.errors import UnreadableFile
from noetl.kinds.misfit import misfit_words
from noetl.late import late
from noetl.playbook.suggest import did_you_mean
from noetl.playbook.yaml_checks import UnreadableText
from noetl.playbook.yaml_text import read_yaml

UNKNOWN = late(r"Object contains unknown field `([^`]+)`(?: - at `\$\.?(.*)`)?")

Canned = dict[str, Any]
"""`{ok: value}` or `{error: {kind, message, …}}`, and the kind's block (`http: {status: 503}`)."""


class Expected(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must hold at the end; what is not named is not compared."""

    status: str | None = None
    steps: dict[str, int] = {}
    """Step → how often it ran; 0: never."""
    ctx: dict[str, Any] = {}
    """A part of ctx: mappings may hold more, anything else must be equal."""
    result: Any = msgspec.UNSET
    events: list[str] = []
    """Names of events in their order; others may stand between them."""
    error: dict[str, Any] | None = None
    """A part of the execution's error."""

    @property
    def ends_as(self) -> str:
        """A test that expects no failure expects a success."""
        return self.status or ("completed" if self.error is None else "failed")


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One test."""

    name: str
    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    """The initial `ctx`."""
    outcomes: dict[str, list[Canned] | Canned] = {}
    """`step.task` or `task` → one outcome per call, in order; a mapping serves every call."""
    expect: Expected = Expected()


class Suite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole document."""

    playbook: str
    tests: list[Case]


def suite_in(content: bytes, name: str) -> Suite:
    """The tests of a file of this name; refuses with the place and what was expected there."""
    try:
        tree = read_yaml(content)
    except UnreadableText as refused:
        raise UnreadableFile(f"{name}:{refused.line}: {refused.message}") from None
    value = tree.value(tree.root)
    for fault in tree.faults:
        line = fault.node.start_mark.line + 1
        raise UnreadableFile(f"{name}:{line}: {fault.message}")
    try:
        suite = msgspec.convert(value, Suite)
    except msgspec.ValidationError as wrong:
        raise UnreadableFile(
            f"{name} is not a playbook test file: {what_is_wrong(name, value, wrong)} "
            "(docs/learn/05-testing-playbooks.md)"
        ) from None
    if not suite.tests:
        raise UnreadableFile(f"{name} has no tests; add one below `tests`")
    return suite


def what_is_wrong(name: str, value: Any, wrong: msgspec.ValidationError) -> str:
    """Somebody named the playbook itself, misspelt a key, or wrote a value of another type."""
    if isinstance(value, dict) and "workflow" in value:
        tests = name.removesuffix(".yaml") + ".test.yaml"
        return f"it is a playbook; name the file of its tests, such as {tests}"
    found = UNKNOWN.fullmatch(str(wrong))
    if found is None:
        return misfit_words(wrong)
    key, path = found[1], found[2] or ""
    shape = Expected if path.endswith("expect") else Case if path else Suite
    keys = shape.__struct_fields__
    where = f"'{path}'" if path else "it"
    return f"{where} has no key '{key}'; " + did_you_mean(key, keys, f"keys: {', '.join(keys)}")


def playbook_file(suite: Suite, file: str) -> Path:
    """The playbook's path is relative to the file of its tests."""
    root = Path.cwd() if file == "-" else Path(file).absolute().parent
    return root / suite.playbook
