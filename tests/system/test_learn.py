"""The whole playbooks that the course shows do run, and end as the text around them says."""

import asyncio
from pathlib import Path

import pytest
from tests.house.markdown import Block, blocks_of
from tests.house.tree import ROOT
from tests.support.one_run import run_file

FAILS = {"tidy"}
"""Shown to fail."""
ASKS_THE_WORLD = "kind: http"
SHOWN = [
    block
    for page in sorted((ROOT / "docs" / "learn").glob("*.md"))
    for block in blocks_of(page)
    if block.text.startswith("apiVersion:") and block.words == ""
    # A trigger runs nothing by itself.
    if "\nkind: Trigger" not in block.text
]
ALONE = [block for block in SHOWN if ASKS_THE_WORLD not in block.text]


def name_of_playbook(block: Block) -> str:
    return block.text.partition("name: ")[2].split()[0].rstrip(",")


@pytest.mark.parametrize("block", ALONE, ids=name_of_playbook)
def test_a_shown_playbook_runs(block: Block, tmp_path: Path) -> None:
    file = tmp_path / "playbook.yaml"
    file.write_text(block.text)
    run, _ = asyncio.run(run_file(file, tmp_path))
    expected = "failed" if name_of_playbook(block) in FAILS else "completed"
    assert (run.status, run.error is None) == (expected, expected == "completed")


def test_most_of_the_course_is_run() -> None:
    assert len(ALONE) >= 8
    assert {name_of_playbook(block) for block in ALONE} >= FAILS
