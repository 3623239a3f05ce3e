"""`noetl validate`: is this a valid playbook, and if not, where and why?"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import click
from msgspec.structs import replace

from noetl.cli import exits
from noetl.cli.neighbours import at_home, neighbours_of
from noetl.cli.output import print_json, print_line
from noetl.cli.source import FILE, PlaybookSource, read_source, text_of
from noetl.cli.terminal import Paint, columns, wants_colour
from noetl.errors import PlaybookRejected, UnreadableFile
from noetl.late import late
from noetl.playbook.finding import Finding
from noetl.playbook.load import load, load_document
from noetl.tools.plugins import KnownKinds

if TYPE_CHECKING:
    from noetl.playbook.dialects.migrate import Migrated
    from noetl.playbook.model import Playbook

EPILOG = """\b
Examples:
  noetl validate playbook.yaml
  noetl validate --json playbooks/*.yaml
  cat playbook.yaml | noetl validate -
  noetl validate --migrate old.yaml

\b
Exit codes: 0 all valid (warnings allowed, but for --strict), 2 one is invalid, 3 one cannot be
read.
"""

T = TypeVar("T")
Heed = Literal["tell", "quiet", "strict"]
"""What becomes of warnings: told once, left out, or a reason to refuse."""
STRICT: Final = click.option("--strict", is_flag=True, help="Refuse a playbook that has warnings.")

ADVICE = late(r"\s*`noetl migrate FILE`[^.]*\.")
"""Of hints; whoever has just had a text migrated needs it no more."""


@click.command(epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file and line.")
@click.option(
    "--migrate", is_flag=True, help="Translate an older dialect first, then check the result."
)
@STRICT
def validate(files: tuple[str, ...], as_json: bool, migrate: bool, strict: bool) -> int:
    """
    Check playbooks and show every error with its place and how to fix it.

    FILE is a playbook, or - for standard input.
    """
    return max(validate_one(name, as_json, migrated=migrate, strict=strict) for name in files)


def validate_one(name: str, as_json: bool, *, migrated: bool = False, strict: bool = False) -> int:
    """Check one file; an unreadable one does not keep the others from being checked."""
    source = read_or_tell(name, as_json)
    if source is None:
        return exits.UNUSABLE
    findings = findings_of(source, migrated=migrated)
    if any(one.code == "test-file" for one in findings):
        return validate_tests(source, as_json)
    return tell_findings(source, findings, as_json, strict=strict)


def validate_tests(source: PlaybookSource, as_json: bool) -> int:
    """Tests often lie beside their playbook: `*.yaml` names both."""
    from noetl.node.testing.document import suite_in

    try:
        suite_in(source.content, source.name)
    except UnreadableFile as wrong:
        return not_read(wrong, as_json)
    if as_json:
        print_json({"file": source.name, "valid": True, "findings": []})
    else:
        print_line(f"{source.name}: tests of a playbook; run them with: noetl test {source.name}")
    return exits.OK


def not_read(wrong: UnreadableFile, as_json: bool) -> int:
    if as_json:
        print_json({"status": "error", "error": str(wrong)})
    print_line(f"error: {wrong}", err=True)
    return exits.UNUSABLE


def read_or_tell(name: str, as_json: bool) -> PlaybookSource | None:
    """One of several files; None where it cannot be read, which is told and stops no other."""
    try:
        return read_source(name)
    except UnreadableFile as wrong:
        not_read(wrong, as_json)
        return None


def tell_findings(
    source: PlaybookSource,
    findings: tuple[Finding, ...],
    as_json: bool,
    *,
    err: bool = False,
    strict: bool = False,
) -> int:
    """What is wrong with a playbook, and the exit code that goes with it."""
    valid = not findings if strict else all(one.severity != "error" for one in findings)
    if as_json:
        print_json({"file": source.name, "valid": valid, "findings": findings})
    else:
        show(source, findings, err=err, strict=strict)
    return exits.OK if valid else exits.INVALID


def heeding(command: Callable[..., T]) -> Callable[..., T]:
    """Give a command `--quiet` and `--strict`; it gets `heed`, which says what warnings mean."""

    @click.option("--quiet", is_flag=True, help="Do not show warnings.")
    @STRICT
    @wraps(command)
    def heeding_command(*args: Any, quiet: bool, strict: bool, **options: Any) -> T:
        heed: Heed = "strict" if strict else "quiet" if quiet else "tell"
        return command(*args, heed=heed, **options)

    return heeding_command


def tell_warnings(
    source: PlaybookSource,
    findings: tuple[Finding, ...],
    heed: Heed,
    left: tuple[Finding, ...] | None = None,
) -> None:
    """
    Warnings, on standard error, before anything begins; raises PlaybookRejected if they refuse it.

    `left`: what is found with what the request brings; a name that it defines needs no warning.
    """
    still = {one.message for one in (findings if left is None else left)}
    told = tuple(
        one
        for one in findings
        if one.severity == "warning" and (one.code != "unbound-name" or one.message in still)
    )
    if told and heed == "strict":
        raise PlaybookRejected(told)
    if told and heed == "tell":
        show(source, told, err=True)


def loaded_for(
    source: PlaybookSource, heed: Heed, brought: Mapping[str, Any], *, migrate: bool = False
) -> tuple[str, "Playbook"]:
    """The text and the playbook that a request is for; raises PlaybookRejected."""
    made = canonical(source) if migrate else None
    content = source.content if made is None else made.text.encode()
    loaded = load(content, KnownKinds(), brought=brought, neighbours=neighbours_of(source, None))
    if loaded.playbook is None:
        raise PlaybookRejected(loaded.findings)
    told = loaded.findings
    if made is not None:  # with the lines of what the author wrote
        told = (*(one for one in told if one.line == 0), *made.findings)
    tell_warnings(source, told, heed, left=loaded.findings)
    return text_of(content), loaded.playbook


def findings_of(source: PlaybookSource, *, migrated: bool) -> tuple[Finding, ...]:
    """What is wrong with a playbook, or with what it is translated to."""
    if migrated:
        return translated(source).findings
    return load_document(source.content, KnownKinds(), at_home(source)).findings


def translated(source: PlaybookSource) -> "Migrated":
    """What a playbook is translated to, whole or not; no hint asks to translate it once more."""
    from noetl.playbook.dialects.migrate import migrate

    made = migrate(source.content, KnownKinds(), source.beside)
    findings = (replace(one, hint=ADVICE.sub("", one.hint)) for one in made.findings)
    return replace(made, findings=tuple(findings))


def content_of(source: PlaybookSource, *, migrate: bool) -> bytes:
    """The text of a playbook, translated where that is asked for; see `canonical`."""
    return canonical(source).text.encode() if migrate else source.content


def canonical(source: PlaybookSource) -> "Migrated":
    """
    A playbook in the canonical language; raises PlaybookRejected where it has no such form.

    One line on standard error tells of a change, so that nobody runs another text unawares.
    """
    migrated = translated(source)
    if not migrated.complete:
        raise PlaybookRejected(migrated.findings)
    if migrated.changed:
        count = len(migrated.rewrites)
        said = f"{count} rewrite{'s' * (count != 1)}; `noetl migrate` shows them"
        print_line(f"{source.name}: migrated, {said}", err=True)
    return migrated


def show(
    source: PlaybookSource,
    findings: tuple[Finding, ...],
    *,
    err: bool = False,
    strict: bool = False,
) -> None:
    """Print all findings and the verdict, for people."""
    from noetl.cli.findings import render, summary  # not where `run` finds nothing to say

    paint, room = Paint(wants_colour(err=err)), columns(err=err)
    for text in render(source, findings, paint, room):
        print_line(text, err=err)
    print_line(summary(source.name, findings, paint, strict=strict), err=err)
