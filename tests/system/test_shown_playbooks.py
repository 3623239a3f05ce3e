"""What the README and the course show runs as it is shown, on a machine without a network."""

import os
import subprocess
from pathlib import Path

import pytest
from tests.house.markdown import Block, blocks_of
from tests.house.test_playbooks import GOOD, place
from tests.house.tree import name_of
from tests.system.program import NOETL, ROOT, noetl

README = ROOT / "README.md"
FAILS = {"docs/learn/10-errors-and-cleanup.md"}
"""Its playbook shows a failure."""
ALONE = [
    block
    for block in GOOD
    # The recipes have tests of their own, and a trigger runs nothing by itself.
    if "kind: http" not in block.text and "recipes" not in block.page.parts
    if "\nkind: Trigger" not in block.text
]


@pytest.mark.parametrize("block", ALONE, ids=place)
def test_a_shown_playbook_runs(block: Block, tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    answer = noetl("run", "-", "--json", stdin=block.text.encode(), NOETL_HOME=home)
    [told] = answer.objects()
    expected = "failed" if name_of(block.page) in FAILS else "completed"
    assert told["status"] == expected, answer.err


def test_the_course_and_the_readme_show_some() -> None:
    assert README in {block.page for block in ALONE}
    assert len(ALONE) > 8


def test_the_first_lines_of_the_readme_run_as_they_are(tmp_path: Path) -> None:
    """But for the installation, which has tests of its own."""
    script = next(block.text for block in blocks_of(README) if block.language == "sh")
    install, _, rest = script.partition("\n")
    assert install.startswith("pip install")
    assert len(script.splitlines()) <= 13
    path = f"{Path(NOETL).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-eu", "-c", rest],
        cwd=tmp_path,
        env={"PATH": path, "NOETL_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "start: 3 of 3 done" in done.stdout
