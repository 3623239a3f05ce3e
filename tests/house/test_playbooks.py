"""Every playbook that the pages and the examples show is what they say it is."""

from pathlib import Path

import pytest
import yaml
from tests.house.markdown import Block, blocks_of
from tests.house.tree import ROOT, name_of, pages

from noetl.playbook.load import load_document

SHOWN = [block for page in pages() for block in blocks_of(page) if block.language == "yaml"]
WHOLE = [block for block in SHOWN if block.text.startswith("apiVersion:")]
GOOD = [block for block in WHOLE if block.words == ""]
REJECTED = [block for block in WHOLE if block.words == "rejected"]
EXAMPLES = [
    path
    for path in sorted((ROOT / "examples").rglob("*.yaml"))
    if ("\nkind: Playbook\n" in path.read_text("utf-8") or path.name == "trigger.yaml")
    # Its kind comes with a package; conformance/test_tool_plugin.py installs and runs it.
    and "plugin" not in path.parts
]


def place(block: Block) -> str:
    return f"{name_of(block.page)}:{block.line}"


@pytest.mark.parametrize("block", GOOD, ids=place)
def test_a_shown_playbook_is_valid_without_a_warning(block: Block) -> None:
    assert load_document(block.text).findings == ()


@pytest.mark.parametrize("block", REJECTED, ids=place)
def test_a_playbook_shown_as_rejected_is(block: Block) -> None:
    assert any(finding.severity == "error" for finding in load_document(block.text).findings)


@pytest.mark.parametrize("block", [b for b in SHOWN if b not in WHOLE], ids=place)
def test_a_shown_part_is_a_block_or_a_comment(block: Block) -> None:
    assert isinstance(yaml.safe_load(block.text), dict | list | None)


def test_blocks_are_either_shown_or_rejected() -> None:
    assert {block.words for block in SHOWN} == {"", "rejected"}
    assert [place(block) for block in SHOWN if block.words and block not in WHOLE] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_an_example_is_valid_without_a_warning(path: Path) -> None:
    assert load_document(path.read_bytes()).findings == ()
