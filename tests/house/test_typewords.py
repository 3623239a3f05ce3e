"""Types in words, as the reference pages show them."""

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta, field
from tests.house.typewords import input_rows, words_for

from noetl.kinds.kind import Inputs
from noetl.playbook.shape import (
    Boolean,
    Choice,
    Either,
    Free,
    FreeList,
    FreeMapping,
    Guard,
    Inside,
    Number,
    Template,
    Text,
    TextList,
    Type,
)

WORDS: list[tuple[Type, str]] = [
    (Text(), "text"),
    (Number(), "number"),
    (Number(minimum=0), "number ≥ 0"),
    (Number(maximum=1), "number ≤ 1"),
    (Number(minimum=0, maximum=1), "number from 0 to 1"),
    (Number(minimum=1, whole=True), "whole number ≥ 1"),
    (Boolean(), "`true` or `false`"),
    (Choice(("a", "b")), "`a`, `b`"),
    (Free(), "anything"),
    (FreeMapping(), "mapping"),
    (FreeList(), "list"),
    (FreeList("admit rule"), "list of [admit rule](#admit-rule)"),
    (FreeList("pipeline entry"), "list of `label:` [task](#task)"),
    (TextList(), "list of texts"),
    (Template(), "template"),
    (Guard(), "boolean or one `{{ … }}`"),
    (Inside("step spec"), "[step spec](#step-spec)"),
    (Either((Number(minimum=0), Template())), "number ≥ 0 or template"),
]


@pytest.mark.parametrize(("kind", "words"), WORDS)
def test_keys(kind: Type, words: str) -> None:
    assert words_for(kind) == words


class Sample(Inputs, frozen=True, kw_only=True):
    """One input of each sort."""

    elements: Annotated[list[Any], Meta(description="All of them.")] = field(name="in")
    mode: Annotated[Literal["a", "b"], Meta(description="Which.")] = "a"
    names: Annotated[list[str] | None, Meta(description="Some.")] = None
    size: Annotated[int, Meta(description="How many.", ge=1)] = 3
    options: Annotated[dict[str, Any], Meta(description="More.")] = field(default_factory=dict)


def test_inputs() -> None:
    assert input_rows(Sample) == [
        ("`in`", "list", "*required*", "All of them."),
        ("`mode`", "`a`, `b`", '`"a"`', "Which."),
        ("`names`", "list of text", "", "Some."),
        ("`size`", "whole number", "`3`", "How many."),
        ("`options`", "mapping", "", "More."),
    ]
