"""`noetl test`: playbook tests, run without touching the world."""

import time
from pathlib import Path

import click
import msgspec

from noetl.cli import exits
from noetl.cli.home import print_json
from noetl.cli.run import refuse
from noetl.cli.running.attend import runner
from noetl.cli.running.words import count, seconds
from noetl.cli.source import FILE, read_source
from noetl.cli.terminal import Paint, plain, wants_colour
from noetl.cli.testing.canned import CannedBox, faults_in
from noetl.cli.testing.compare import differences
from noetl.cli.testing.document import Case, playbook_file, suite_in
from noetl.errors import PlaybookRejected
from noetl.messages.codec import decode_events
from noetl.node.local import LocalNode
from noetl.playbook.load import load_valid
from noetl.playbook.plan import Plan, make_plan
from noetl.server.replay import rows_of
from noetl.server.report import report_of
from noetl.settings import read_settings
from noetl.tools.plugins import KnownKinds

EPILOG = """\b
Examples:
  noetl test tests/weather.yaml
  noetl test tests/*.yaml --json

\b
Exit codes: 0 all passed, 1 one failed, 2 a playbook is invalid, 3 a file cannot be read.
"""


class CaseVerdict(msgspec.Struct, frozen=True):
    """How one test went."""

    name: str
    ok: bool
    problems: list[str]
    duration_ms: int


class SuiteVerdict(msgspec.Struct, frozen=True):
    """What `--json` prints for one file."""

    file: str
    passed: int
    failed: int
    tests: list[CaseVerdict]


@click.command("test", epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file and line.")
def test(files: tuple[str, ...], as_json: bool) -> int:
    """
    Run playbook tests: canned outcomes instead of tools, pauses that take no time.

    FILE names a playbook and its tests; docs/learn/05-testing-playbooks.md shows how.
    """
    paint = Paint(wants_colour())
    codes, all_tests = [exits.OK], []
    for file in files:
        tested = tested_file(file, as_json)
        if isinstance(tested, int):
            codes.append(tested)
            continue
        codes.append(exits.FAILED if tested.failed else exits.OK)
        all_tests += tested.tests
        if as_json:
            print_json(tested)
        else:
            tell(tested, paint)
    if not as_json:
        click.echo(last_line(all_tests, paint))
    return max(codes)


def tested_file(file: str, as_json: bool) -> SuiteVerdict | int:
    """The tests of one file, run one after the other; an exit code where that is impossible."""
    source = read_source(file, at_most=-1)
    suite = suite_in(source)
    path = playbook_file(suite, file)
    playbook = read_source(str(path))
    try:
        model = load_valid(playbook.content, KnownKinds())
    except PlaybookRejected as rejected:
        return refuse(playbook, rejected, as_json)
    text = playbook.content.decode("utf-8-sig")
    plan = make_plan(model, text, KnownKinds())
    tests = [runner()(tested_case(case, plan, text, path.parent)) for case in suite.tests]
    passed = sum(one.ok for one in tests)
    return SuiteVerdict(source.name, passed, len(tests) - passed, tests)


async def tested_case(case: Case, plan: Plan, text: str, folder: Path) -> CaseVerdict:
    """One execution in memory, compared with what the test expects."""
    problems = faults_in(case.outcomes, plan)
    began = time.monotonic()
    if not problems:
        problems = await problems_of(case, plan, text, folder)
    took = int((time.monotonic() - began) * 1000)
    return CaseVerdict(case.name, not problems, problems, took)


async def problems_of(case: Case, plan: Plan, text: str, folder: Path) -> list[str]:
    box = CannedBox(case.outcomes)
    local = LocalNode.in_memory(read_settings(), box)
    local.worker.sleep = no_time
    try:
        active = await local.run_text(text, folder=str(folder), payload=case.workload, plan=plan)
        await active.finished
        execution_id = active.execution.execution_id
        names = [
            event.__struct_config__.tag
            async for row in rows_of(local.storage.log, execution_id)
            for event in decode_events(row.events)
        ]
        report = await report_of(active.execution, local.results, 0)
        return [*box.missing, *differences(case.expect, report, [str(name) for name in names])]
    finally:
        await local.close()


async def no_time(seconds: float) -> None:
    """A pause of a pipeline passes at once."""
    del seconds


def tell(tested: SuiteVerdict, paint: Paint) -> None:
    click.echo(plain(tested.file))
    for one in tested.tests:
        word = paint("good", "ok  ") if one.ok else paint("error", "FAIL")
        click.echo(f"  {word}  {plain(one.name)} ({seconds(one.duration_ms)})")
        for problem in one.problems:
            click.echo(f"        {plain(problem)}")


def last_line(tests: list[CaseVerdict], paint: Paint) -> str:
    failed = sum(not one.ok for one in tests)
    took = seconds(sum(one.duration_ms for one in tests))
    counts = f"{count(len(tests) - failed, 'test')} passed"
    if failed:
        counts = f"{counts}, {paint('error', f'{failed} failed')}"
    return f"{counts} in {took}"
