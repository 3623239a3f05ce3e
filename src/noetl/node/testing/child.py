"""
The process that runs the tests of one playbook for a server: two texts in, verdicts out.

It is started by `runs.py`, with an empty environment, an empty folder and bounds. Tasks answer from
the tests, so nothing of the playbook runs here but its templates and `transform`.
"""

import asyncio
import os
import sys
from pathlib import Path

import msgspec

from noetl.errors import NoetlError
from noetl.node.testing.cases import Tested, tested_case
from noetl.node.testing.document import Case, suite_in
from noetl.node.testing.verdict import TestsGiven, TestsTold
from noetl.playbook.load import load_valid
from noetl.playbook.plan import make_plan
from noetl.settings import Settings
from noetl.tools.plugins import KnownKinds

ROOM = 2_000
"""Characters of one value in a verdict."""
NAME = "the tests"
COURTESY = 10
"""Of nice(2): a server that is busy goes first."""


def prepared(given: TestsGiven) -> tuple[list[Case], Tested]:
    """The tests, and the playbook as they need it; raises NoetlError."""
    suite = suite_in(given.tests.encode(), NAME)
    plan = make_plan(load_valid(given.text, KnownKinds()), given.text, KnownKinds())
    settings = Settings(home=Path.cwd())
    return suite.tests, Tested(plan=plan, text=given.text, settings=settings, room=ROOM)


async def verdicts(cases: list[Case], tested: Tested) -> TestsTold:
    """Every test, one after the other."""
    return TestsTold([await tested_case(case, tested) for case in cases])


def main() -> None:
    os.nice(COURTESY)
    given = msgspec.json.decode(sys.stdin.buffer.read(), type=TestsGiven)
    try:
        told = asyncio.run(verdicts(*prepared(given)))
    except NoetlError as refused:
        told = TestsTold(refused=str(refused))
    sys.stdout.buffer.write(msgspec.json.encode(told))


if __name__ == "__main__":
    main()
