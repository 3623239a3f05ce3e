"""`noetl dev`: check a playbook and run its tests, now and on every save."""

import time
from collections.abc import Sequence
from pathlib import Path

import click

from noetl.cli import exits
from noetl.cli.output import examples, print_line
from noetl.cli.source import FILE, read_source
from noetl.cli.terminal import Paint, wants_colour
from noetl.cli.test import RUN, last_line, refuse_strangers, tell, tested_file
from noetl.cli.validate import findings_of, tell_findings
from noetl.errors import NoetlError, UnreadableFile
from noetl.node.testing.document import playbook_file, suite_in

EPILOG = examples("dev playbook.yaml", "dev playbook.yaml --run python") + (
    "\n\n\b\nTests are the files *.test.yaml next to FILE, and tests/*.yaml, that name it."
)
PAUSE = 0.5
"""Seconds between two looks: quick enough for a person, and it works on every file system."""
Stamps = dict[Path, tuple[int, int]]


@click.command(epilog=EPILOG)
@click.argument("file", metavar="FILE", type=FILE)
@RUN
def dev(file: str, real: tuple[str, ...]) -> int:
    """
    Check a playbook and run its tests, now and on every save, until Ctrl-C.

    Any file in the folder of FILE, or in `tests` below it, counts as a save.
    """
    refuse_strangers(real)
    read_source(file)  # a name that is wrong is refused, not waited for
    seen: Stamps = {}
    try:
        while True:
            now = stamps_of(Path(file))
            if now == seen:
                time.sleep(PAUSE)
                continue
            seen = now
            look(file, real)
            print_line(f"{time.strftime('%H:%M:%S')} waiting for a save; Ctrl-C ends")
    except KeyboardInterrupt:
        return exits.OK


def stamps_of(file: Path) -> Stamps:
    """When each file was last written, and how long it is."""
    stamps: Stamps = {}
    for folder in (file.parent, file.parent / "tests"):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            try:
                about = path.stat()
            except OSError:  # it went away meanwhile, as editors do while they save
                continue
            if path.is_file() and not path.name.startswith("."):
                stamps[path] = about.st_mtime_ns, about.st_size
    return stamps


def look(file: str, real: Sequence[str]) -> None:
    """One round: the findings, and the tests if there are no errors."""
    try:
        source = read_source(file)
        if tell_findings(source, findings_of(source, migrated=False), as_json=False) == exits.OK:
            run_tests(Path(file), real)
    except NoetlError as wrong:
        print_line(f"error: {wrong}", err=True)


def run_tests(file: Path, real: Sequence[str]) -> None:
    paint, verdicts = Paint(wants_colour()), []
    for suite in tests_of(file):
        tested = tested_file(str(suite), real, migrate=False, as_json=False)
        if not isinstance(tested, int):
            tell(tested, paint)
            verdicts += tested.tests
    print_line(last_line(verdicts, paint) if verdicts else "no tests yet; see: noetl test --help")


def tests_of(file: Path) -> list[Path]:
    """The files of tests that name the playbook; a broken one that could is told."""
    near = [*file.parent.glob("*.test.yaml"), *file.parent.glob("tests/*.yaml")]
    return [path for path in sorted(near) if names(path, file)]


def names(tests: Path, file: Path) -> bool:
    if not tests.is_file():
        return False
    try:
        source = read_source(str(tests))
        if b"playbook:" not in source.content or b"tests:" not in source.content:
            return False
        suite = suite_in(source.content, source.name)
    except UnreadableFile as wrong:
        print_line(f"error: {wrong}", err=True)
        return False
    return playbook_file(suite, str(tests)).resolve() == file.resolve()
