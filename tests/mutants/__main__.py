"""
`python -m tests.mutants [--only WORDS]`: each fault of the table alone, in a copy of the source.
Its tests must fail; what survives is printed.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.mutants.mutant import Mutant
from tests.mutants.table import FOR_THE_SIMULATION, MUTANTS

ROOT = Path(__file__).parents[2]
PATIENCE = 900
"""Seconds of CPU after which a test that hangs counts as failed; a fault may make one hang."""


def planted(mutant: Mutant, folder: Path) -> None:
    shutil.copytree(ROOT / "src", folder / "src")
    path = folder / "src" / "noetl" / mutant.file
    text = path.read_text()
    assert text.count(mutant.before) == 1, f"{mutant.file}: {mutant.before!r} is not there once"
    path.write_text(text.replace(mutant.before, mutant.after))


def caught(mutant: Mutant, seconds: int) -> bool:
    """Whether its tests fail. A child process runs them, so that nothing of one fault is left."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as name:
        folder = Path(name)
        planted(mutant, folder)
        child = os.fork()
        if child == 0:
            os._exit(run_tests(mutant, folder, seconds))
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status) != 0


def run_tests(mutant: Mutant, folder: Path, seconds: int) -> int:
    import resource
    import signal

    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    signal.alarm(PATIENCE)
    sys.path.insert(0, str(folder / "src"))
    os.environ["PYTHONPATH"] = str(folder / "src")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    import pytest

    return int(pytest.main(["-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *mutant.tests]))


def main() -> int:
    asked = argparse.ArgumentParser(prog="python -m tests.mutants")
    asked.add_argument("--only", default="", help="those whose file or reason has these words")
    asked.add_argument("--seconds", type=int, default=180, help="CPU time that one may take")
    given = asked.parse_args()
    chosen = [one for one in MUTANTS if given.only in f"{one.file} {one.why}"]
    survivors = []
    for number, mutant in enumerate(chosen, 1):
        began = time.monotonic()
        found = caught(mutant, given.seconds)
        word = "caught" if found else "SURVIVES"
        took = time.monotonic() - began
        print(
            f"{number}/{len(chosen)} {word} ({took:.0f} s) {mutant.file}: {mutant.why}", flush=True
        )
        if not found and mutant.before not in FOR_THE_SIMULATION:
            survivors.append(mutant)
    print(f"{len(chosen) - len(survivors)} of {len(chosen)} caught")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
