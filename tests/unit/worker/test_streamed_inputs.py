"""Stored values reach a tool that streams as references, and every other tool as values."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from noetl.kinds.http import HttpInputs
from noetl.kinds.sql import DuckdbInputs, PostgresInputs, SnowflakeInputs
from noetl.kinds.storage import GcsInputs, S3Inputs
from noetl.messages.reference import Reference
from noetl.worker.calling import loaded


class Shelf:
    """What `loaded` asks of a part's fitting: one value at hand, all others in the store."""

    def __init__(self, at_hand: Reference) -> None:
        self.bodies = {at_hand.key: "at hand"}

    async def resolved(self, values: dict[str, Any]) -> dict[str, Any]:
        return {
            name: self.bodies.get(value.key, "loaded") if isinstance(value, Reference) else value
            for name, value in values.items()
        }


def reference(key: str, hint: str = "list[9]") -> Reference:
    return Reference("files", key, 9, key, schema_hint=hint)


STORED, AT_HAND = reference("stored"), reference("at hand")
HOLDS_OTHERS = reference("others", "list[9] with references")


def inputs_of(kind: type[Any], **given: Any) -> dict[str, Any]:
    part = SimpleNamespace(fitting=Shelf(AT_HAND))
    ask = SimpleNamespace(task=SimpleNamespace(inputs=kind), inputs=given)
    return asyncio.run(loaded(cast(Any, part), cast(Any, ask)))


@pytest.mark.rule("RES-2")
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (PostgresInputs, "rows"),
        (DuckdbInputs, "rows"),
        (SnowflakeInputs, "rows"),
        (S3Inputs, "body"),
        (GcsInputs, "body"),
    ],
)
def test_a_tool_that_streams_gets_the_reference(kind: type[Any], name: str) -> None:
    assert inputs_of(kind, **{name: STORED, "other": STORED}) == {name: STORED, "other": "loaded"}
    assert inputs_of(kind, **{name: [1]}) == {name: [1]}


@pytest.mark.rule("RES-2")
def test_what_may_not_be_stored_yet_comes_as_its_value() -> None:
    assert inputs_of(PostgresInputs, rows=AT_HAND) == {"rows": "at hand"}


@pytest.mark.rule("RES-2")
def test_a_body_that_holds_references_comes_as_its_value() -> None:
    assert inputs_of(PostgresInputs, rows=HOLDS_OTHERS) == {"rows": "loaded"}


@pytest.mark.rule("RES-2")
def test_every_other_tool_gets_the_value() -> None:
    assert inputs_of(HttpInputs, body=STORED) == {"body": "loaded"}
