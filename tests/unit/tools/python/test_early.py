"""A child that is started while the playbook is read: who takes it, and who ends it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.tools.python.bench import Bench, gone

from noetl.tools.python import early
from noetl.tools.python.libs import folder_of_libs

TEXT = b"workflow:\n  - step: a\n    tool: [{b: {kind: python, code: 'result = 1'}}]\n"
PID = "import os\nresult = os.getpid()"


@pytest.fixture(autouse=True)
def home(tmp_path: Path) -> Iterator[Path]:
    folder_of_libs(tmp_path).mkdir()
    yield tmp_path
    early.end_early()


def begun(text: bytes, home: Path, namespaces: str = "off") -> int | None:
    """The number of the child that waits now."""
    early.start_early(text, home, namespaces=namespaces, private=())
    return early._waiting[0].started.process.pid if early._waiting else None


def test_the_first_call_is_answered_by_the_child_that_waits(home: Path) -> None:
    waiting = begun(TEXT, home)
    bench = Bench(home)
    first, second = bench.result(PID, execution="e1"), bench.result(PID, execution="e2")
    bench.close()
    assert first == waiting != second


def test_one_that_was_started_otherwise_is_not_taken(home: Path) -> None:
    waiting = begun(TEXT, home, namespaces="auto")
    bench = Bench(home)
    assert bench.result(PID) != waiting
    bench.close()


def test_one_that_nobody_takes_ends_with_its_folder(home: Path) -> None:
    waiting = begun(TEXT, home)
    assert waiting is not None
    folder = early._waiting[0].folder
    early.end_early()
    assert gone(waiting)
    assert not os.path.exists(folder)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (TEXT, False),
        (b"description: how to write python\ntool: [{b: {kind: http}}]", True),
        (b"tool: [{b: {kind: pythonic}}]", True),
    ],
)
def test_nothing_is_started_for_other_texts_nor_beside_a_home_to_come(
    home: Path, text: bytes, made: bool
) -> None:
    assert begun(text, home if made else home / "later") is None
