"""`noetl test`: playbook tests, run without touching the world."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from noetl.cli import exits
from noetl.cli.output import print_json, print_line
from noetl.cli.running.attend import runner
from noetl.cli.running.words import count, error_words, seconds, value_words
from noetl.cli.source import FILE, read_source
from noetl.cli.terminal import Paint, plain, wants_colour
from noetl.cli.testing.canned import CannedBox, faults_in, stranger
from noetl.cli.testing.document import Case, Expected, playbook_file, suite_in
from noetl.cli.validate import content_of, tell_findings
from noetl.errors import PlaybookRejected
from noetl.messages.codec import decode_events
from noetl.messages.names import NAMES
from noetl.messages.names import canonical as canonical_event
from noetl.node.local import LocalNode
from noetl.playbook.load import load_valid
from noetl.playbook.plan import Plan, make_plan
from noetl.server.replay import rows_of
from noetl.server.report import ExecutionReport, report_of
from noetl.settings import read_settings
from noetl.tools.plugins import KnownKinds

EPILOG = """\b
Examples:
  noetl test tests/weather.yaml
  noetl test tests/*.yaml --json
  noetl test tests/weather.yaml --run python --run duckdb
  noetl test tests/old.yaml --migrate

\b
Exit codes: 0 all passed, 1 one failed, 2 a playbook is invalid, 3 a file cannot be read.
"""


RUN = click.option(
    "--run",
    "real",
    multiple=True,
    metavar="KIND",
    help="Run tasks of this kind for real where the test has no outcome for them; may repeat.",
)


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
@RUN
@click.option("--migrate", is_flag=True, help="Accept playbooks of an older dialect.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per file and line.")
def test(files: tuple[str, ...], real: tuple[str, ...], migrate: bool, as_json: bool) -> int:
    """
    Run the tests of playbooks: prepared outcomes replace tools, and pauses take no time.

    FILE is a file of tests, which names its playbook; docs/learn/05-testing-playbooks.md shows how.
    """
    refuse_strangers(real)
    paint = Paint(wants_colour())
    codes, all_tests = [exits.OK], []
    for file in files:
        tested = tested_file(file, real, migrate=migrate, as_json=as_json)
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
        print_line(last_line(all_tests, paint))
    return max(codes)


def refuse_strangers(real: Sequence[str]) -> None:
    for kind in real:
        if kind not in KnownKinds():
            raise click.UsageError(f"--run {kind}: no such kind; see docs/reference/kinds.md")


def tested_file(
    file: str, real: Sequence[str], *, migrate: bool, as_json: bool
) -> SuiteVerdict | int:
    """The tests of one file, run one after the other; an exit code where that is impossible."""
    source = read_source(file, at_most=-1)
    suite = suite_in(source)
    path = playbook_file(suite, file)
    playbook = read_source(str(path))
    try:
        content = content_of(playbook, migrate=migrate)
        model = load_valid(content, KnownKinds())
    except PlaybookRejected as rejected:
        return tell_findings(playbook, rejected.findings, as_json, err=True)
    text = content.decode("utf-8-sig")
    plan = make_plan(model, text, KnownKinds())
    tests = [runner()(tested_case(case, plan, text, path.parent, real)) for case in suite.tests]
    passed = sum(one.ok for one in tests)
    return SuiteVerdict(source.name, passed, len(tests) - passed, tests)


async def tested_case(
    case: Case, plan: Plan, text: str, folder: Path, real: Sequence[str]
) -> CaseVerdict:
    """One execution in memory, compared with what the test expects."""
    problems = faults_in(case.outcomes, plan)
    problems += [
        f"expect.steps names {stranger(name, plan.steps, 'step')}"
        for name in case.expect.steps
        if name not in plan.steps
    ]
    began = time.monotonic()
    if not problems:
        problems = await problems_of(case, plan, text, folder, real)
    took = int((time.monotonic() - began) * 1000)
    return CaseVerdict(case.name, not problems, problems, took)


async def problems_of(
    case: Case, plan: Plan, text: str, folder: Path, real: Sequence[str]
) -> list[str]:
    settings = read_settings()
    box = CannedBox(case.outcomes, real, settings.home, settings.bounds)
    local = LocalNode.in_memory(settings, box)
    local.worker.sleep = no_time
    local.worker.cans_waits = True
    try:
        active = await local.run_text(
            text, folder=str(folder), payload=case.workload, ctx=case.ctx, plan=plan
        )
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
    print_line(plain(tested.file))
    for one in tested.tests:
        word = paint("good", "ok  ") if one.ok else paint("error", "FAIL")
        print_line(f"  {word}  {plain(one.name)} ({seconds(one.duration_ms)})")
        for problem in one.problems:
            print_line(f"        {plain(problem)}")


def last_line(tests: list[CaseVerdict], paint: Paint) -> str:
    failed = sum(not one.ok for one in tests)
    took = seconds(sum(one.duration_ms for one in tests))
    counts = f"{count(len(tests) - failed, 'test')} passed"
    if failed:
        counts = f"{counts}, {paint('error', f'{failed} failed')}"
    return f"{counts} in {took}"


def differences(
    expected: Expected, report: ExecutionReport, events: Sequence[str]
) -> Iterator[str]:
    """All of them, in the order of the contract."""
    if report.status != expected.ends_as:
        why = f" ({error_words(report.error)})" if report.error else ""
        yield f"status: expected {expected.ends_as}, got {report.status}{why}"
    runs = {step["step"]: step["runs"] for step in report.steps}
    for step, number in expected.steps.items():
        if runs.get(step, 0) != number:
            yield f"steps.{step}: expected {number} runs, got {runs.get(step, 0)}"
    yield from parts("ctx", expected.ctx, report.ctx)
    if expected.result is not msgspec.UNSET and expected.result != report.result:
        yield f"result: expected {shown(expected.result)}, got {shown(report.result)}"
    yield from missing_event(expected.events, events)
    if expected.error is not None:
        yield from parts("error", expected.error, report.error)


def parts(path: str, expected: Any, found: Any) -> Iterator[str]:
    """Mappings may hold more than is expected; anything else must be equal."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key in found:
                yield from parts(f"{path}.{key}", value, found[key])
            else:
                yield f"{path}.{key}: expected {shown(value)}, got nothing"
    elif expected != found:
        yield f"{path}: expected {shown(expected)}, got {shown(found)}"


def missing_event(expected: Sequence[str], found: Sequence[str]) -> Iterator[str]:
    """The expected names must stand in the log in this order; others may stand between."""
    rest = iter(found)
    for number, name in enumerate(expected):
        if canonical_event(name) not in NAMES:
            yield f"events[{number}]: '{name}' is not an event name"
            return
        if canonical_event(name) not in rest:
            after = f" after {expected[number - 1]}" if number else ""
            yield f"events[{number}]: expected {name}{after}, and none came"
            return


def shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else value_words(value, 120)
