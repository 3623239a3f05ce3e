"""Every bench runs: once, at a tenth of its size or less, for what it prints, not for its times."""

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from bench import baseline, size
from bench.__main__ import ALONE, BENCHES

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"(\S.*?) +(\S+) +(\S+) +(\S+) +\S+ (?:yes|NO) .*\d%")
pytestmark = pytest.mark.usefixtures("made_clusters")
SIZE = re.compile(r"(\S.*?) +(-?[\d,]+) (?:MiB|bytes)")


@pytest.mark.parametrize("name", [*BENCHES, *ALONE])
def test_a_bench_prints_its_figures(name: str) -> None:
    printed = run("bench", "--small", name)
    rows = [row for line in printed.splitlines() if (row := ROW.fullmatch(line))]
    known = {kept.figure for kept in baseline.read().values() if kept.bench == name}
    assert {row[1] for row in rows} == known, "what is measured is what the baseline holds"
    for row in rows:
        numbers = [float(number) for number in row.group(2, 3, 4)]
        assert all(math.isfinite(number) and number > 0 for number in numbers), row[0]


def test_the_sizes_are_printed() -> None:
    printed = run("bench.sizing")
    rows = [row for line in printed.splitlines() if (row := SIZE.match(line))]
    found = {str(row[1]): int(row[2].replace(",", "")) for row in rows}
    on_disk = {f"{store}: {what}" for store in ("SQLite", "PostgreSQL") for what in ON_DISK}
    assert set(found) == on_disk | IN_MEMORY
    assert all(found[name] > 0 for name in on_disk)
    over = {name: found[name] for name, most in BOUNDS.items() if found[name] > most}
    assert over == {}, "docs/operate/scale.md promises less"


BOUNDS = {
    "memory of an execution with one part that waits": 20_000,
    "memory of a token that waits for a signal": 20_000,
    "memory of an iteration that waits": 1_000,
    "memory of a schedule": 5_000,
}
"""Bytes: twice to three times what is measured, as pages of the allocator count at a tenth."""
ON_DISK = ("an execution of five steps", "an event of it", "an iteration of a loop")
IN_MEMORY = {
    "a server that has just begun",
    "memory of an execution with one part that waits",
    "memory of an iteration that waits",
    "memory of a token that waits for a signal",
    "memory of a schedule",
}


def run(*arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env={**os.environ, size.VARIABLE: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout
