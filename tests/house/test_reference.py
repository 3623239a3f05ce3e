"""Pages that come from the code are fresh, and what they describe is described."""

from functools import cache
from pathlib import Path

import pytest
from msgspec import inspect
from tests.conformance.matrix import read_families
from tests.house.events_page import doc_of, meanings_of
from tests.house.reference import FOUND, tool_pages, written
from tests.house.tree import ROOT
from tests.house.typewords import description

from noetl.kinds.kind import Kind
from noetl.kinds.table import KINDS
from noetl.messages.names import CLASSES, EVENTS
from noetl.playbook.blocks import BLOCKS

RULES = {rule.id for family in read_families().values() for rule in family.rules}


@cache
def pages() -> dict[str, str]:
    """As the code has them now; programs are run for it, which no collecting should do."""
    return written()


def test_the_pages_are_fresh() -> None:
    stale = [name for name, text in pages().items() if (ROOT / name).read_text("utf-8") != text]
    assert stale == [], "run `make docs`"


def test_every_kind_that_runs_has_a_page() -> None:
    usable = {name for name, kind in KINDS.items() if kind.fault is None}
    assert usable == {page.stem for page in tool_pages()}


@pytest.mark.parametrize("page", tool_pages(), ids=lambda page: page.stem)
def test_a_page_of_a_kind_shows_its_inputs_and_an_example(page: Path) -> None:
    text = page.read_text("utf-8")
    assert page.stem in KINDS
    assert f"<!-- inputs: {page.stem} -->" in text
    assert "](../../../examples/" in text
    assert "\n**Tested against.** " in text


@pytest.mark.parametrize("name", FOUND)
def test_samples_show_findings(name: str) -> None:
    assert "error[" in pages()[name]
    assert "= hint: " in pages()[name]


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_input_is_described(kind: Kind) -> None:
    described = inspect.type_info(kind.inputs)
    assert isinstance(described, inspect.StructType)
    silent = [field.encode_name for field in described.fields if not description(field.type)]
    assert silent == []
    assert kind.summary.endswith(".")


def test_every_key_is_described_and_has_its_rule() -> None:
    fields = {
        f"{block.name}.{name}": field
        for block in BLOCKS.values()
        for name, field in block.fields.items()
    }
    assert [name for name, field in fields.items() if not field.doc.endswith(".")] == []
    assert [name for name, field in fields.items() if field.rule not in RULES] == []


def test_pages_hold_no_control_characters() -> None:
    """click marks paragraphs with backspaces, and prints those that it did not understand."""
    strange = {
        name: char for name, text in pages().items() for char in text if char < " " and char != "\n"
    }
    assert strange == {}


@pytest.mark.parametrize("name", EVENTS)
def test_every_event_and_its_fields_are_described(name: str) -> None:
    kind = CLASSES[name]
    assert doc_of(kind).endswith(".")
    silent = [field for field, meaning in meanings_of(kind).items() if not meaning.endswith(".")]
    assert silent == []
