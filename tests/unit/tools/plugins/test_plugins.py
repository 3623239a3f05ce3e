"""Kinds of other packages: found late, loaded one by one, and never in each other's way."""

import asyncio
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.support.workplace import BenchPlace, call_of

from noetl.kinds.kind import Inputs, Kind
from noetl.kinds.table import KINDS
from noetl.messages.outcome import Outcome, ok
from noetl.playbook.load import load
from noetl.playbook.plan import make_plan
from noetl.playbook.schema import json_schema
from noetl.tools.noop import NoopTool
from noetl.tools.plugins import KnownKinds, Plugin, Plugins
from noetl.tools.table import Toolbox
from noetl.tools.tool import ToolCall, Workplace

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: p, path: p }}
workflow:
  - step: start
    tool:
      - t: {{ kind: {kind}, colour: {colour} }}
"""


class PaintInputs(Inputs, frozen=True, kw_only=True):
    """What paint needs."""

    colour: str


class PaintTool(NoopTool):
    """Answers with its colour."""

    async def call(self, call: ToolCall[Any], workplace: Workplace) -> Outcome:
        del workplace
        return ok(call.inputs.colour)


def kind_of(name: str = "paint", **more: Any) -> Kind:
    return Kind(**{"name": name, "inputs": PaintInputs, "summary": "Paint.", **more})


PAINT = Plugin(kind=kind_of(), tool=PaintTool)


def made() -> Plugin:
    return PAINT


def leaves() -> Plugin:
    raise SystemExit("not for you")


def unmakeable() -> Any:
    raise OSError("no brush")


GIVEN: dict[str, Any] = {
    "plugin": PAINT,
    "made": made,
    "leaves": leaves,
    "text": "paint",
    "other": Plugin(kind=kind_of("draw"), tool=PaintTool),
    "no_kind": Plugin(kind="paint", tool=PaintTool),  # type: ignore[arg-type]
    "no_inputs": Plugin(kind=kind_of(inputs=dict), tool=PaintTool),
    "no_tool": Plugin(kind=kind_of(), tool=None),  # type: ignore[arg-type]
    "unmakeable": Plugin(kind=kind_of(), tool=unmakeable),
}


@pytest.fixture(autouse=True)
def module(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that entry points can name."""
    paint = ModuleType("paint_plugin")
    for name, value in GIVEN.items():
        setattr(paint, name, value)
    monkeypatch.setitem(__import__("sys").modules, "paint_plugin", paint)


def installed(*points: str, name: str = "paint") -> Plugins:
    found = [EntryPoint(name, f"paint_plugin:{point}", "noetl.tools") for point in points]
    return Plugins(lambda: found)


def never() -> list[EntryPoint]:
    raise AssertionError("nobody asked for a plugin")


@pytest.mark.parametrize("point", ["plugin", "made"])
def test_a_plugin_is_an_object_or_what_a_call_gives(point: str) -> None:
    assert installed(point).find("paint") is PAINT


@pytest.mark.parametrize(
    ("points", "why"),
    [
        (["missing"], "cannot be loaded: AttributeError: module 'paint_plugin' has no attribute"),
        (["leaves"], "cannot be loaded: SystemExit: not for you"),
        (["text"], "gives a str for 'paint', expected noetl.tools.plugins.Plugin"),
        (["other"], "has the entry point 'paint' for the kind 'draw'; both must have one name"),
        (["no_kind"], "has the entry point 'paint' for the kind 'paint'; both"),
        (
            ["no_inputs"],
            "has inputs for 'paint' that are not a subclass of noetl.kinds.kind.Inputs",
        ),
        (["no_tool"], "has a tool for 'paint' that cannot be called"),
        (["plugin", "made"], "both offer the kind 'paint'; uninstall one of them"),
    ],
)
def test_a_plugin_that_cannot_be_used_says_why(points: list[str], why: str) -> None:
    found = installed(*points).find("paint")
    assert found is not None
    assert why in str(found.kind.fault)
    assert str(found.kind.fault).startswith("the plugin 'paint_plugin:")


def test_a_module_that_is_not_there() -> None:
    point = EntryPoint("paint", "no_such_module:PLUGIN", "noetl.tools")
    found = Plugins(lambda: [point]).find("paint")
    assert found is not None
    assert "ModuleNotFoundError: No module named 'no_such_module'" in str(found.kind.fault)


def test_nothing_is_looked_for_while_kinds_are_built_in() -> None:
    known = KnownKinds(Plugins(never))
    assert known["http"] is KINDS["http"]
    assert "python" in known


def test_an_unknown_kind_is_unknown() -> None:
    known = KnownKinds(installed("plugin"))
    assert known.get("spray") is None
    assert set(known) == {*KINDS, "paint"}
    assert len(known) == len(KINDS) + 1


def test_no_plugin_replaces_what_is_built_in() -> None:
    known = installed("plugin", name="http")
    assert known.names() == []
    assert KnownKinds(known)["http"] is KINDS["http"]


def test_a_playbook_uses_a_plugin_and_its_inputs_are_checked() -> None:
    known = KnownKinds(installed("plugin"))
    good = load(TEXT.format(kind="paint", colour="red"), known)
    assert good.findings == ()
    assert good.playbook is not None
    plan = make_plan(good.playbook, "", known)
    assert plan.steps["start"].pipeline.tasks[0].inputs is PaintInputs
    (wrong,) = load(TEXT.format(kind="paint", colour="[1]"), known).findings
    assert wrong.path.endswith("colour")


def test_a_broken_plugin_is_a_finding_that_names_it() -> None:
    (finding,) = load(
        TEXT.format(kind="paint", colour="red"), KnownKinds(installed("leaves"))
    ).findings
    assert finding.code == "unknown-kind"
    assert finding.message == (
        "the tool kind 'paint' cannot be used: the plugin 'paint_plugin:leaves'"
        " cannot be loaded: SystemExit: not for you"
    )


def test_a_misspelt_kind_of_a_plugin_is_suggested() -> None:
    known = KnownKinds(installed("plugin"))
    (finding,) = load(TEXT.format(kind="piant", colour="red"), known).findings
    assert "'paint'" in (finding.hint or "")


def test_the_schema_has_the_kinds_of_plugins() -> None:
    schema = json_schema(KnownKinds(installed("plugin")))
    assert '"colour"' in str(schema).replace("'", '"')


def called(tools: Toolbox, kind: str) -> Outcome:
    call = call_of(PaintInputs(colour="red"))
    return asyncio.run(tools[kind].call(call, BenchPlace()))


def test_the_toolbox_makes_the_tool_of_a_plugin_once(tmp_path: Path) -> None:
    tools = Toolbox(tmp_path, others=installed("plugin"))
    assert called(tools, "paint").result == "red"
    assert tools["paint"] is tools["paint"]
    assert tools.built == [tools["paint"]]


@pytest.mark.parametrize(
    ("point", "why"),
    [
        ("unmakeable", "its tool cannot be made: OSError: no brush"),
        ("leaves", "the plugin 'paint_plugin:leaves' cannot be loaded: SystemExit: not for you"),
    ],
)
def test_a_tool_that_cannot_be_made_fails_its_calls_only(
    tmp_path: Path, point: str, why: str
) -> None:
    tools = Toolbox(tmp_path, others=installed(point))
    outcome = called(tools, "paint")
    assert outcome.error == {
        "kind": "not_found",
        "message": f"the tool kind 'paint' cannot be used: {why}",
        "retryable": False,
    }
    assert called(tools, "noop").status == "ok"
    closing: list[Callable[[], Any]] = [tools["paint"].close, lambda: tools["paint"].forget("s")]
    for close in closing:
        asyncio.run(close())


def test_a_kind_that_nobody_brings(tmp_path: Path) -> None:
    assert Toolbox(tmp_path, others=Plugins(list)).get("paint") is None
