"""The table of kinds: complete, documented, and made of types that inputs can be read into."""

import msgspec
import pytest

from noetl.kinds.kind import Kind
from noetl.kinds.table import KINDS
from noetl.playbook.input_types import description
from noetl.playbook.inputs import input_fields

NAMED = {
    *("http", "postgres", "duckdb", "python", "script", "secrets", "playbook", "workbook"),
    *("noop", "iterator", "snowflake", "gcs", "container", "quantum"),
    *("s3", "shell", "wait", "nats", "transform"),
}
# OUT-2: where the block of an outcome is not called as its kind.
OTHER_BLOCKS = {"postgres": "pg", "python": "py", "noop": None}


def test_the_table_has_every_kind_of_the_language() -> None:
    assert set(KINDS) == NAMED
    assert [kind.name for kind in KINDS.values()] == list(KINDS)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_kind_and_input_is_described(kind: Kind) -> None:
    assert kind.summary.endswith(".")
    fields = input_fields(kind.inputs)
    silent = [name for name, field in fields.items() if not description(field.type).endswith(".")]
    assert silent == []
    assert {name for group in kind.one_of for name in group} <= set(fields)
    assert set(kind.statements) <= set(fields)
    assert kind.block == OTHER_BLOCKS.get(kind.name, kind.name)


@pytest.mark.parametrize(
    ("kind", "required"),
    [
        ("http", {"url"}),
        ("postgres", set()),
        ("python", {"code"}),
        ("script", set()),
        ("shell", {"command"}),
        ("playbook", {"path"}),
        ("workbook", {"name"}),
        ("iterator", {"in", "iterator", "tool"}),
        ("secrets", {"name"}),
        ("container", {"image"}),
        ("s3", {"operation", "bucket"}),
        ("quantum", {"operation"}),
    ],
)
def test_what_a_task_must_give(kind: str, required: set[str]) -> None:
    fields = input_fields(KINDS[kind].inputs)
    assert {name for name, field in fields.items() if field.required} == required


def test_calls_without_effect() -> None:
    assert {kind.name for kind in KINDS.values() if not kind.effect} == {
        *("noop", "transform", "wait"),
    }


def test_rendered_inputs_are_read_into_their_type() -> None:
    inputs = msgspec.convert({"url": "https://example.com"}, KINDS["http"].inputs)
    assert msgspec.to_builtins(inputs) == {
        "url": "https://example.com",
        "method": "GET",
        "headers": {},
        "params": {},
        "body": None,
        "form": None,
        "files": None,
        "auth": None,
        "follow_redirects": True,
    }
    with pytest.raises(msgspec.ValidationError, match="unknown field `uri`"):
        msgspec.convert({"url": "x", "uri": "y"}, KINDS["http"].inputs)
