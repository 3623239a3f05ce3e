"""Tables that say the same thing in two places agree."""

import asyncio
import re
import tomllib
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.house.tree import ROOT
from tests.support.one_run import run_file
from tests.support.steps import playbook, step

from noetl.api.routes import Route, all_routes
from noetl.client import asks
from noetl.control.decide import TAKE
from noetl.exports.export import FORMS
from noetl.extras import EXTRAS
from noetl.kinds.table import KINDS
from noetl.messages.names import EVENTS
from noetl.messages.requests import ORDERS, PLAIN_ORDERS, Input, Order
from noetl.tools.table import TOOLS

SPECIFICATION = (ROOT / "docs" / "reference" / "specification.md").read_text("utf-8")
WITHOUT_TOOL = {"workbook", "iterator", "wait"}
"""Kinds that the pipeline itself carries out."""
UNASKED = {
    *("POST /api/validate", "GET /api/schema", "GET /openapi.json", "GET /metrics", "GET /healthz"),
    *("GET /api/executions/{execution_id:str}/stream", "POST /hooks/{path:path}"),
    *("POST /api/sign-in", "POST /api/sign-out", "GET /api/me"),
    *("GET /api/executions/{execution_id:str}/outline", "GET /api/catalog/outline/{path:path}"),
    *(f"POST /api/editing/{what}" for what in ("check", "complete", "about", "translate", "test")),
    *(f"POST /api/executions/{{execution_id:str}}/{what}" for what in ("render", "restart/plan")),
    "GET /api/executions/{execution_id:str}/bodies/{checksum:str}",
    "GET /api/executions/{execution_id:str}/bodies/{checksum:str}/download",
}
"""Routes without a question of clients: the pages or programs of others ask, or it is a stream."""
FORM_WORDS = {
    "jsonl": "JSON lines",
    "parquet": "Parquet files",
    "otlp": "OpenTelemetry traces",
    "clickhouse": "ClickHouse",
}


def rule(name: str) -> str:
    """The text of a rule."""
    return re.split(r"^#", SPECIFICATION.partition(f"### {name}\n")[2], maxsplit=1, flags=re.M)[0]


@pytest.mark.rule("EVT-2")
def test_the_specification_lists_every_event() -> None:
    rows = [line for line in rule("EVT-2").splitlines() if line.startswith("|")]
    assert sorted(re.findall(r"`([a-z_.]+)`", "\n".join(rows))) == sorted(EVENTS)


@pytest.mark.rule("EVT-2")
def test_the_glossary_names_every_event_once() -> None:
    log = (ROOT / "GLOSSARY.md").read_text("utf-8").partition("## In the log")[2]
    rows = [line for line in log.partition("\n## ")[0].splitlines() if line.startswith("| `")]
    named = re.findall(r"`([a-z_.]+)`", " ".join(row.split("|")[1] for row in rows))
    assert sorted(named) == sorted(EVENTS)


@pytest.mark.rule("EVT-6")
def test_the_specification_lists_every_form_of_export() -> None:
    assert FORMS.keys() == FORM_WORDS.keys()
    listed = re.findall("|".join(FORM_WORDS.values()), rule("EVT-6"))
    assert sorted(listed) == sorted(FORM_WORDS.values())
    assert rule("EVT-6").count(",") == len(FORMS) - 1


def test_the_specification_lists_every_kind() -> None:
    listed = SPECIFICATION.partition("## TOOL: kinds")[2].split("where", 1)[0]
    named = " ".join(re.findall(r"`([a-z0-9 ]+)`", listed.replace("\n", " "))).split()
    assert sorted(named) == sorted(KINDS)


def test_every_kind_that_validates_can_be_run() -> None:
    usable = {name for name, kind in KINDS.items() if kind.fault is None}
    assert TOOLS.keys() == usable - WITHOUT_TOOL
    assert usable == KINDS.keys()


CARRIED_OUT: dict[str, dict[str, Any]] = {
    "workbook": {"name": "lent"},
    "iterator": {"in": [1], "iterator": "n", "tool": [{"rest": {"kind": "noop"}}]},
    "wait": {"seconds": 0},
}


@pytest.mark.parametrize("kind", sorted(WITHOUT_TOOL))
def test_a_kind_without_a_tool_runs_too(kind: str, tmp_path: Path) -> None:
    one = {"kind": kind, **CARRIED_OUT[kind]}
    file = tmp_path / "playbook.yaml"
    lent = {"tasks": {"lent": {"kind": "noop"}}}
    file.write_text(playbook(step("start", {"one": one}), workbook=lent))
    run, _ = asyncio.run(run_file(file, tmp_path))
    assert (run.status, run.steps) == ("completed", {"start": 1})


def test_every_extra_is_one_that_can_be_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].keys()
    assert {kind.extra for kind in KINDS.values() if kind.extra} - extras == set()
    assert EXTRAS.keys() == extras


def test_every_order_has_its_route() -> None:
    assert set(get_args(Order)) == PLAIN_ORDERS.keys()
    routes = {route.path.rpartition("/")[2] for route in all_routes() if route.method == "POST"}
    assert ORDERS.keys() - routes == set()


def asked(make: Any) -> asks.Ask[Any]:
    """A question, with something for each of its arguments."""
    needed = [one for one in signature(make).parameters.values() if one.default is Parameter.empty]
    given: dict[str, Any] = {"kind": "cancel", "role": "viewer", "fields": {}, "requests": []}
    return make(**{one.name: given.get(one.name, "x") for one in needed})  # type: ignore[no-any-return]


def pattern(route: Route) -> re.Pattern[str]:
    path = re.sub(r"\{\w+:str\}", "[^/]+", route.path)
    return re.compile(f"{route.method} " + re.sub(r"\{\w+:path\}", ".+", path))


def test_clients_ask_every_route_that_is_theirs() -> None:
    makes = [getattr(asks, name) for name in vars(asks.ClientQuestions) if name[0] != "_"]
    questions = [asked(make) for make in makes]
    questions += [asks.order("x", kind) for kind in get_args(Order)]
    places = {f"{one.method} {one.path}" for one in questions}
    unasked = {
        f"{route.method} {route.path}"
        for route in all_routes()
        if route.access != "worker" and not any(pattern(route).fullmatch(one) for one in places)
    }
    assert unasked == UNASKED


def test_every_input_of_the_control_plane_is_taken() -> None:
    assert set(get_args(Input)) == TAKE.keys()
