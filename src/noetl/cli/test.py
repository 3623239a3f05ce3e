"""`noetl test`: playbook tests, run without touching the world."""

from collections.abc import Sequence

import click
import msgspec

from noetl.cli import exits
from noetl.cli.output import print_json, print_line
from noetl.cli.running.attend import runner
from noetl.cli.running.words import LONGEST, count, room_for, seconds
from noetl.cli.source import FILE, read_source
from noetl.cli.terminal import Paint, plain, wants_colour
from noetl.cli.validate import content_of, tell_findings
from noetl.errors import PlaybookRejected
from noetl.node.testing.cases import Tested, tested_case
from noetl.node.testing.document import playbook_file, suite_in
from noetl.node.testing.verdict import CaseVerdict
from noetl.playbook.load import load_valid
from noetl.playbook.plan import make_plan
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
    suite = suite_in(source.content, source.name)
    path = playbook_file(suite, file)
    playbook = read_source(str(path))
    try:
        content = content_of(playbook, migrate=migrate)
        model = load_valid(content, KnownKinds())
    except PlaybookRejected as rejected:
        return tell_findings(playbook, rejected.findings, as_json, err=True)
    text = content.decode("utf-8-sig")
    plan = make_plan(model, text, KnownKinds())
    tested = Tested(
        plan=plan,
        text=text,
        folder=str(path.parent),
        settings=read_settings(),
        real=real,
        room=room_for(LONGEST),
    )
    tests = [runner()(tested_case(case, tested)) for case in suite.tests]
    passed = sum(one.ok for one in tests)
    return SuiteVerdict(source.name, passed, len(tests) - passed, tests)


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
