"""`noetl run`: run a playbook in this process, from its start to its end."""

from contextlib import suppress
from pathlib import Path

import click

from noetl.cli.running.ending import see_through
from noetl.cli.running.payload import CTX, PAYLOAD, SETS, ctx_of, payload_of
from noetl.cli.source import FILE, PlaybookSource, read_source
from noetl.cli.validate import Heed, heeding, loaded_for, tell_findings
from noetl.errors import NoetlError, PlaybookRejected, UnreadableFile
from noetl.node.local import LocalNode
from noetl.playbook.plan import Plan, make_plan
from noetl.server.active import ActiveExecution
from noetl.settings import read_settings
from noetl.tools.plugins import KnownKinds

EPILOG = """\b
Examples:
  noetl run playbook.yaml
  noetl run playbook.yaml --set region=eu --set limits.rows=100
  noetl run playbook.yaml --payload order.json --json > result.json
  noetl run old.yaml --migrate

\b
Exit codes: 0 completed, 1 failed or cancelled, 2 invalid playbook or refused by --strict, 3 usage
or environment, 130 interrupted (the last line says how to continue).
"""


@click.command(epilog=EPILOG)
@click.argument("file", metavar="FILE", type=FILE)
@SETS
@PAYLOAD
@CTX
@click.option("--migrate", is_flag=True, help="Accept a playbook of an older dialect.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@heeding
def run(
    file: str,
    sets: tuple[str, ...],
    payload: str | None,
    ctx: tuple[str, ...],
    migrate: bool,
    as_json: bool,
    heed: Heed,
) -> int:
    """
    Run a playbook in this process; its log is kept in the home folder (NOETL_HOME).

    FILE is a playbook, or - for standard input.
    """
    if file == payload == "-":
        raise click.UsageError("FILE and --payload cannot both be standard input")
    source = playbook_in(file)
    begin_child(source.content)
    given, first = payload_of(payload, sets), ctx_of(ctx)
    try:
        brought = {"workload": given, "ctx": first}
        text, playbook = loaded_for(source, heed, brought, migrate=migrate)
    except PlaybookRejected as rejected:
        strict = heed == "strict"
        return tell_findings(source, rejected.findings, as_json, err=True, strict=strict)
    own = source.text
    former = None if own == text else own
    plan = make_plan(playbook, text, KnownKinds())
    folder = str(Path.cwd() if file == "-" else Path(file).absolute().parent)

    async def begin(local: LocalNode) -> ActiveExecution:
        return await local.run_text(
            text, folder=folder, payload=given, ctx=first, plan=plan, former=former
        )

    return see_through(begin, as_json=as_json, brief=is_brief(plan))


def is_brief(plan: Plan) -> bool:
    """Whether it is over soon: one without loops has few tasks."""
    return all(step.loop is None for step in plan.steps.values())


def begin_child(text: bytes) -> None:
    """A `python` task needs a process, which can start while the playbook is read and checked."""
    if b"python" not in text:
        return
    from noetl.tools.python.early import start_early

    with suppress(NoetlError):  # said where it matters
        settings = read_settings()
        bounds = settings.bounds
        start_early(text, settings.home, namespaces=bounds.namespaces, private=bounds.private)


def playbook_in(file: str) -> PlaybookSource:
    """The text of a file; a name that is none may be a path of the catalog."""
    try:
        return read_source(file)
    except UnreadableFile as wrong:
        if Path(file).exists() or Path(file).suffix:
            raise
        raise UnreadableFile(
            f"{wrong}; for a playbook of the catalog: noetl execute {file}"
        ) from None
