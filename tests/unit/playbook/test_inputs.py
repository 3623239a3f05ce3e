"""Inputs of tasks against the types of their kinds."""

import json
from typing import Annotated, Any

import msgspec
import pytest

from noetl.kinds.kind import Inputs, Kind
from noetl.kinds.table import KINDS
from noetl.playbook.finding import Finding
from noetl.playbook.load import load

HEAD = {"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "a", "path": "b"}}


def said_about(task: dict[str, Any], kinds: Any = KINDS) -> tuple[Finding, ...]:
    steps = [{"step": "start", "tool": [{"work": task}]}]
    return load(json.dumps({**HEAD, "workload": {"value": 1}, "workflow": steps}), kinds).findings


def messages(task: dict[str, Any]) -> list[str]:
    return [finding.message for finding in said_about(task)]


LEAST: dict[str, dict[str, Any]] = {
    "http": {"url": "https://example.com"},
    "postgres": {"command": "SELECT 1", "auth": "db"},
    "duckdb": {"query": "SELECT 1", "database": "a.duckdb"},
    "snowflake": {"command": "SELECT 1", "auth": "db", "warehouse": "small", "schema": "public"},
    "python": {"code": "result = 1"},
    "script": {"path": "run.sh", "args": ["--fast", 3]},
    "shell": {"command": "ls", "stdin": {"a": 1}},
    "container": {"image": "alpine:3", "command": ["ls"], "mounts": [{"source": "a"}]},
    "playbook": {"path": "a/b", "version": 3},
    "workbook": {"name": "{{ workload.value }}"},
    "iterator": {"in": [1], "iterator": "x", "tool": [{"n": {"kind": "noop"}}]},
    "noop": {},
    "wait": {"signal": "paid", "timeout": 60},
    "transform": {"value": [1, "{{ _prev }}"]},
    "secrets": {"name": "db", "provider": "vault"},
    "gcs": {"operation": "get", "bucket": "b", "key": "k"},
    "s3": {"operation": "list", "bucket": "b", "prefix": "p/", "region": "eu"},
    "nats": {"operation": "publish", "subject": "a.b", "value": {"c": 1}},
    "quantum": {"operation": "submit", "circuit": "OPENQASM 3;", "shots": 10},
}


def test_no_kind_that_runs_is_left_out() -> None:
    assert LEAST.keys() == {name for name, kind in KINDS.items() if kind.fault is None}


@pytest.mark.parametrize("kind", LEAST)
def test_each_kind_takes_what_it_should(kind: str) -> None:
    assert messages({"kind": kind, **LEAST[kind]}) == []


@pytest.mark.parametrize("kind", [kind for kind in LEAST if kind != "iterator"])
def test_a_template_may_stand_for_any_input(kind: str) -> None:
    tables = dict.fromkeys(LEAST[kind], "{{ workload.value }}")
    said = [one.code for one in said_about({"kind": kind, **tables})]
    sql = ["sql-template" for name in LEAST[kind] if name in KINDS[kind].statements]
    code = ["code-template" for name in LEAST[kind] if name in KINDS[kind].programs]
    assert said == [*sql, *code]


@pytest.mark.parametrize("kind", LEAST)
def test_each_kind_refuses_what_it_does_not_know(kind: str) -> None:
    task = {"kind": kind, **LEAST[kind], "colour": "red"}
    (finding,) = said_about(task)
    assert finding.code == "unknown-input"
    assert finding.message == f"the kind '{kind}' has no input 'colour'"


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ({"kind": "http", "url": 5}, "'url' is the number 5, expected text"),
        (
            {"kind": "http", "url": "x", "params": "a"},
            "'params' is 'a', expected a mapping",
        ),
        (
            {"kind": "http", "url": "x", "headers": {"a": [1]}},
            "a value of 'headers' is a list, expected text, a whole number, a number or true",
        ),
        (
            {"kind": "python", "code": "pass", "libs": ["numpy", 3]},
            "a value of 'libs' is the number 3, expected text",
        ),
        ({"kind": "python", "code": "x", "args": [1]}, "'args' is a list, expected a mapping"),
        (
            {"kind": "postgres", "auth": "db", "command": "x", "params": "a"},
            "'params' is 'a', expected a list or a mapping",
        ),
        (
            {"kind": "quantum", "operation": "submit", "circuit": "x", "shots": 0},
            "'shots' is the number 0, expected a whole number of 1 or more",
        ),
        (
            {"kind": "quantum", "operation": "run"},
            "'operation' is 'run', expected one of cancel, fetch, poll or submit",
        ),
        (
            {"kind": "playbook", "path": "x", "wait": "no"},
            "'wait' is 'no', expected true or false",
        ),
        ({"kind": "http", "url": None}, "'url' is null, expected text"),
        ({"kind": "http"}, "a task of kind 'http' lacks the input 'url'"),
        (
            {"kind": "script", "path": "a", "code": "b"},
            "a task of kind 'script' has 'path' and 'code', expected exactly one of "
            "'path' or 'code'",
        ),
        ({"kind": "wait", "seconds": -1}, "'seconds' is the number -1, expected a number of"),
        (
            {"kind": "python", "code": "pass", "libs": {}},
            "an empty mapping in place of an input is",
        ),
    ],
)
def test_what_is_said_about_a_wrong_input(task: dict[str, Any], said: str) -> None:
    (message,) = messages(task)
    assert message.startswith(said)


def test_null_leaves_an_optional_input_out() -> None:
    assert messages({"kind": "http", "url": "x", "auth": None, "body": None}) == []


def test_every_wrong_input_is_told() -> None:
    task = {"kind": "http", "url": 1, "method": 2, "auth": [], "follow_redirects": "yes"}
    assert [finding.path.rsplit(".", 1)[-1] for finding in said_about(task)] == [
        "url",
        "method",
        "auth",
        "follow_redirects",
    ]


class PaintInputs(Inputs, frozen=True, kw_only=True):
    """The inputs of a plugin."""

    colour: Annotated[str, msgspec.Meta(description="Which one.")]
    coats: int = 1


def test_a_kind_from_elsewhere_counts_as_known() -> None:
    kinds = {**KINDS, "paint": Kind(name="paint", inputs=PaintInputs, summary="Paint.")}
    assert said_about({"kind": "paint", "colour": "red", "coats": "{{ 2 }}"}, kinds) == ()
    (finding,) = said_about({"kind": "paint", "colour": "red", "coat": 2}, kinds)
    assert finding.hint == "did you mean 'coats'?"
    (finding,) = said_about({"kind": "pant", "colour": "red"}, kinds)
    assert (finding.code, finding.hint) == ("unknown-kind", "did you mean 'paint'?")


@pytest.mark.parametrize("kind", ["s3", "gcs"])
def test_a_word_that_is_an_input_of_the_kind_is_not_retired(kind: str) -> None:
    given = {"operation": "list", "bucket": "b", "endpoint": "http://localhost:9"}
    assert messages({"kind": kind, **given}) == []
