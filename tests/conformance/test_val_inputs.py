"""VAL-7: what a request, a task or a trigger brings is compared with what the playbook declares."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_srv import at, execute, on_api, register
from tests.support.api import Api
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster, clustered
from tests.support.steps import call, noop, playbook, step, task
from tests.support.triggers import NOW, PATH, Timed, trigger
from tests.system.program import noetl

from noetl.playbook.declared import declared_in, misfits
from noetl.playbook.load import load, load_valid

WORKLOAD: dict[str, Any] = {
    "region": "eu",
    "count": 10,
    "share": 0.5,
    "dry_run": False,
    "ids": [1],
    "limits": {"rows": 5, "deep": {"x": 1}},
    "headers": {},
    "since": None,
    "url": "https://{{ workload.region }}.example",
}
DECLARES = at(
    "demo/declares",
    step("start", noop("a"), call("b", body="{{ workload.extra }} {{ loose | default(1) }}")),
    workload=WORKLOAD,
)
WITHOUT = at("demo/without", step("start", call("a", body="{{ workload.name | default('') }}")))
PASSES_ON = at(
    "demo/passes",
    step("start", call("a", body="{{ workload }}")),
    workload={"region": "eu"},
)


def found(text: str, brought: dict[str, Any]) -> list[tuple[str, str]]:
    from noetl.kinds.table import KINDS

    inputs = declared_in(load_valid(text), KINDS)
    return [(one.code, ".".join(one.keys)) for one in misfits(inputs, brought)]


UNKNOWN, TYPE = "undeclared-key", "other-type"


@pytest.mark.rule("VAL-7")
@pytest.mark.parametrize(
    ("brought", "expected"),
    [
        ({"region": "us", "count": 3.5, "share": 1, "ids": [], "dry_run": True}, []),
        ({"regoin": "us"}, [(UNKNOWN, "regoin")]),
        ({"limits": {"rowz": 1}}, [(UNKNOWN, "limits.rowz")]),
        ({"limits": {"deep": {"y": 1}}}, [(UNKNOWN, "limits.deep.y")]),
        ({"limits": {"rows": "5"}}, [(TYPE, "limits.rows")]),
        ({"limits": 5}, [(TYPE, "limits")]),
        ({"headers": {"X-Any": "1"}}, []),  # an empty mapping names no keys
        ({"since": "2026-01-01"}, []),  # null says nothing of the type
        ({"since": {"any": 1}}, []),
        ({"url": 5}, []),  # what a template gives is not known
        ({"count": "5"}, [(TYPE, "count")]),
        ({"count": True}, [(TYPE, "count")]),  # a boolean is no number
        ({"count": None}, [(TYPE, "count")]),
        ({"region": 5}, [(TYPE, "region")]),
        ({"dry_run": "True"}, [(TYPE, "dry_run")]),
        ({"ids": "1,2"}, [(TYPE, "ids")]),
        ({"extra": 1, "loose": 2}, []),  # templates read them
        ({"region": "{{ 1 }}"}, []),  # data of a request is text, whatever it looks like
    ],
)
def test_keys_and_types_are_those_of_the_defaults(
    brought: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert found(DECLARES, brought) == expected


@pytest.mark.rule("VAL-7")
def test_without_a_workload_a_key_must_be_read_by_a_template() -> None:
    assert found(WITHOUT, {"name": "x"}) == []
    assert found(WITHOUT, {"nmae": "x"}) == [(UNKNOWN, "nmae")]
    inputs_free = at("demo/free", step("start", noop("a")))
    assert found(inputs_free, {"x": 1}) == [(UNKNOWN, "x")]


@pytest.mark.rule("VAL-7")
def test_a_workload_that_is_passed_on_whole_is_suspected_only_of_near_names() -> None:
    assert found(PASSES_ON, {"anything": 1}) == []
    assert found(PASSES_ON, {"regoin": 1}) == [(UNKNOWN, "regoin")]


@pytest.mark.rule("VAL-7")
def test_many_wrong_keys_are_told_in_part() -> None:
    assert len(found(DECLARES, {f"key{number}": 1 for number in range(10_000)})) == 20


@pytest.mark.rule("VAL-7")
def test_run_tells_what_does_not_fit_and_how_to_write_it(tmp_path: Path) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(at("demo/p", step("start", noop("a")), workload={"count": 1, "dry_run": False}))
    ran = noetl(
        "run",
        str(file),
        "--set",
        "coutn=2",
        "--set",
        "dry_run=True",
        NOETL_HOME=str(tmp_path / "home"),
    )
    assert ran.code == 0
    assert "`workload` has no key 'coutn', and no template reads one" in ran.err
    assert "hint: did you mean 'count'?" in ran.err
    assert "'dry_run' is text; its default is true or false" in ran.err
    assert "--set dry_run=true (--set reads a value as JSON, else as text)" in ran.err
    quiet = noetl(
        "run", str(file), "--set", "coutn=2", "--quiet", NOETL_HOME=str(tmp_path / "home")
    )
    assert "coutn" not in quiet.err


@pytest.mark.rule("VAL-7")
def test_strict_refuses_before_anything_is_recorded(tmp_path: Path) -> None:
    file, home = tmp_path / "p.yaml", tmp_path / "home"
    file.write_text(at("demo/p", step("start", noop("a")), workload={"count": 1}))
    ran = noetl("run", str(file), "--set", "coutn=2", "--strict", "--json", NOETL_HOME=str(home))
    assert ran.code == 2
    told = json.loads(ran.out)
    assert told["valid"] is False
    assert [(one["code"], one["line"], one["path"]) for one in told["findings"]] == [
        (UNKNOWN, 0, "payload.coutn")
    ]
    assert not home.exists()


@pytest.mark.rule("VAL-7")
def test_execute_tells_it_too(tmp_path: Path) -> None:
    file, home = tmp_path / "p.yaml", tmp_path / "home"
    file.write_text(at("demo/p", step("start", noop("a")), workload={"count": 1}))
    assert noetl("register", str(file), NOETL_HOME=str(home)).code == 0
    ran = noetl("execute", "demo/p", "--set", 'count="1"', NOETL_HOME=str(home))
    assert (ran.code, "'count' is text; its default is a number" in ran.err) == (0, True)
    refused = noetl("execute", "demo/p", "--set", 'count="1"', "--strict", NOETL_HOME=str(home))
    assert refused.code == 2
    assert noetl("list", NOETL_HOME=str(home)).out.count("demo/p") == 1


@pytest.mark.rule("VAL-7", "SRV-1")
def test_the_answer_of_a_server_has_the_warnings(tmp_path: Path) -> None:
    async def test(_: Cluster, api: Api) -> None:
        await register(api, DECLARES)
        told = await api.post(
            "/api/executions", {"path": "demo/declares", "payload": {"regoin": 1, "count": "x"}}
        )
        assert [(one["code"], one["path"]) for one in told["warnings"]] == [
            (UNKNOWN, "payload.regoin"),
            (TYPE, "payload.count"),
        ]
        assert told["warnings"][0]["hint"] == "did you mean 'region'?"
        fits = await api.post("/api/executions", {"path": "demo/declares", "payload": {"count": 2}})
        assert fits["warnings"] == []

    on_api(test, tmp_path)


@pytest.mark.rule("VAL-7")
def test_a_strict_request_is_refused_and_nothing_is_recorded(tmp_path: Path) -> None:
    async def test(_: Cluster, api: Api) -> None:
        await register(api, DECLARES)
        asked = {"path": "demo/declares", "payload": {"regoin": 1}}
        status, told = await api.ask("POST", "/api/executions?strict=true", json=asked)
        assert (status, told["error"]["code"]) == (422, "inputs_rejected")
        assert [one["path"] for one in told["error"]["findings"]] == ["payload.regoin"]
        status, many = await api.ask(
            "POST", "/api/executions/batch?strict=true", json={"executions": [asked]}
        )
        assert (status, many["executions"][0]["error"]["code"]) == (201, "inputs_rejected")
        assert (await api.get("/api/executions"))["executions"] == []
        await execute(api, "demo/declares", payload={"regoin": 1})

    on_api(test, tmp_path)


CALLER = at(
    "demo/caller",
    step("start", task("c", "playbook", path="demo/declares", args={"regoin": 1, "ids": 5})),
)
TRIGGER = """
apiVersion: noetl.io/v2
kind: Trigger
metadata: { name: t, path: triggers/t }
spec:
  playbook: demo/declares
  payload: { regoin: "{{ trigger.at }}", count: many, region: "{{ trigger.name }}" }
  on: { schedule: { every: 3600 } }
"""


@pytest.mark.rule("VAL-7", "TOOL-1")
def test_the_args_of_a_child_are_compared_where_it_is_registered(tmp_path: Path) -> None:
    async def test(_: Cluster, api: Api) -> None:
        before = await register(api, CALLER)
        assert before["findings"] == []
        await register(api, DECLARES)
        told = await api.post("/api/validate", {"text": CALLER})
        assert [(one["code"], one["message"]) for one in told["findings"]] == [
            (
                UNKNOWN,
                "`workload` has no key 'regoin', and no template reads one (in 'demo/declares')",
            ),
            (TYPE, "'ids' is a number; its default is a list (in 'demo/declares')"),
        ]
        near = CALLER.replace("demo/declares", "demo/declaers")
        told = await api.post("/api/validate", {"text": near})
        assert [(one["code"], one["hint"]) for one in told["findings"]] == [
            ("unknown-playbook", "did you mean 'demo/declares'?")
        ]

    on_api(test, tmp_path)


@pytest.mark.rule("VAL-7", "START-1")
def test_the_payload_of_a_trigger_is_compared_when_it_is_registered_and_tried(
    tmp_path: Path,
) -> None:
    async def test(_: Cluster, api: Api) -> None:
        await register(api, DECLARES)
        told = await register(api, TRIGGER)
        assert [(one["code"], one["path"], one["line"]) for one in told["findings"]] == [
            (UNKNOWN, "spec.payload.regoin", 7),
            (TYPE, "spec.payload.count", 7),
        ]
        tried = await api.post("/api/triggers/trial/triggers/t", {})
        assert [one["path"] for one in tried["warnings"]] == ["payload.regoin", "payload.count"]

    on_api(test, tmp_path)


@pytest.mark.rule("VAL-7", "START-1")
def test_a_server_says_once_what_of_a_triggers_payload_does_not_fit(tmp_path: Path) -> None:
    async def test(cluster: Cluster) -> None:
        timed = Timed(cluster)
        server = await timed.server()
        cluster.worker(CannedTools())
        await server.register(playbook(step("one", noop("t")), workload={"region": "eu"}))
        on = {"schedule": {"cron": "0 * * * *"}}
        await server.register(trigger(on, payload={"regoin": "{{ trigger.at }}"}))
        hour = NOW - NOW % 3_600_000
        await timed.planned(server, hour + 3_600_000)
        for number in (1, 2):
            timed.clock.now = hour + number * 3_600_000 + 20
            await server.starts.look()
            await timed.started(number)
        said = [line for line in cluster.said if "regoin" in line]
        assert said == [
            f"trigger {PATH}: `workload` has no key 'regoin', and no template reads one; "
            "did you mean 'region'?"
        ]

    clustered(test, tmp_path)


@pytest.mark.rule("VAL-7", "TOOL-1")
def test_a_child_in_a_file_is_compared_by_validate(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(DECLARES)
    file = tmp_path / "parent.yaml"
    file.write_text(CALLER.replace("demo/declares", "child.yaml"))
    told = noetl("validate", str(file), "--json", NOETL_HOME=str(tmp_path / "home"))
    assert [one["code"] for one in json.loads(told.out)["findings"]] == [UNKNOWN, TYPE]
    assert load(file.read_text()).findings == ()
