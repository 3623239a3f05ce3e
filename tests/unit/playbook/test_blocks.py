"""The tables of the language: complete, documented, and each rule one that exists."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from noetl.playbook.blocks import BLOCKS
from noetl.playbook.codes import CODES
from noetl.playbook.finding import Place
from noetl.playbook.fitting import misfit
from noetl.playbook.model import Executor, Limits, Loop, Router, TaskSpec, Then
from noetl.playbook.retired import RETIRED, RETIRED_VALUES
from noetl.playbook.shape import Block, Either, FreeList, FreeMapping, Inside, Type

RULES = tomllib.loads((Path(__file__).parents[2] / "conformance/rules.toml").read_text())
RULE_IDS = {rule["id"] for family in RULES.values() for rule in family["rules"]}
# Read by the parser itself, not through a table.
BY_HAND = {"pipeline entry"}


def blocks_in(type_: Type) -> Iterator[str]:
    match type_:
        case Inside(block=name) | FreeList(of=name) | FreeMapping(of=name) if name:
            yield name
        case Either(types=types):
            for one in types:
                yield from blocks_in(one)


@pytest.mark.parametrize("block", BLOCKS.values(), ids=lambda block: block.name)
def test_a_block_is_documented_and_whole(block: Block) -> None:
    assert block.doc.endswith(".")
    assert [name for name, field in block.fields.items() if not field.doc.endswith(".")] == []
    assert {field.rule for field in block.fields.values()} <= RULE_IDS
    named = {name for field in block.fields.values() for name in blocks_in(field.type)}
    assert named - BY_HAND <= set(BLOCKS)
    assert set(block.requires_any) <= set(block.fields)
    assert {name for form in block.forms for name in form} <= set(block.fields)


@pytest.mark.parametrize("block", BLOCKS.values(), ids=lambda block: block.name)
def test_a_default_fits_its_own_type(block: Block) -> None:
    defaults = {k: f for k, f in block.fields.items() if f.default is not None}
    assert [k for k, f in defaults.items() if misfit(f.type, f.default) is not None] == []
    assert [k for k, f in defaults.items() if f.required] == []


PLACE = Place("", 1, 1)


@pytest.mark.parametrize(
    ("block", "part"),
    [
        ("limits", Limits()),
        ("executor", Executor()),
        ("results", Executor()),
        ("task spec", TaskSpec()),
        ("then", Then()),
        ("loop spec", Loop(place=PLACE, items=[], iterator="x")),
        ("loop policy", Loop(place=PLACE, items=[], iterator="x")),
        ("next spec", Router(place=PLACE)),
        ("next policy", Router(place=PLACE)),
    ],
)
def test_the_defaults_shown_are_those_of_the_model(block: str, part: object) -> None:
    fields = BLOCKS[block].fields
    shown = {name: field.default for name, field in fields.items() if field.default is not None}
    assert {name: getattr(part, name) for name in shown} == shown


def test_older_words_are_no_words_of_the_language() -> None:
    for block, words in RETIRED.items():
        assert set(words) & set(BLOCKS[block].fields) == set()
    for block, key in RETIRED_VALUES:
        assert key in BLOCKS[block].fields


def test_codes_are_documented() -> None:
    for name, code in CODES.items():
        assert name == name.lower().replace("_", "-")
        assert code.meaning.endswith(".")
        assert code.rule in RULE_IDS
