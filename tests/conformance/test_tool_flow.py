"""TOOL-1 and TOOL-2: what a playbook borrows from its workbook and from other playbooks."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.one_run import OneRun, run_file
from tests.support.scenario import Scenario, error, ok, scenario
from tests.support.steps import noop, otherwise, playbook, sets, step, task

from noetl.errors import UnreadableFile
from noetl.node.children import DEEPEST, depth_of
from noetl.server.library import child_file
from noetl.tools.bounds import Bounds

RETRIED = {
    "rules": [{"when": "{{ outcome.status == 'error' }}", "then": {"do": "retry", "attempts": 3}}]
}


def lending(spec: dict[str, Any], caller: dict[str, Any]) -> Scenario:
    """A step whose one task borrows `fetch` from the workbook."""
    lent = {"kind": "http", "url": "http://localhost/", "body": "{{ args.body }}", "spec": spec}
    borrower = task("borrowed", "workbook", name="fetch", args={"body": "{{ 1 + 1 }}"}, spec=caller)
    return scenario(step("start", borrower), workbook={"tasks": {"fetch": lent}})


@pytest.mark.rule("TOOL-2")
def test_the_lent_task_runs_with_its_args_bound() -> None:
    ran = lending({}, {}).answers("fetch", ok({"n": 1}, http={"status": 200})).run()
    assert ran.result == {"n": 1}
    assert ran.inputs("fetch") == [2]


@pytest.mark.rule("TOOL-2")
def test_a_caller_without_a_policy_is_ruled_by_the_lent_one() -> None:
    made = lending({"policy": RETRIED}, {}).answers("fetch", error("http"), error("http"), ok(7))
    ran = made.run()
    assert (ran.status, ran.result, ran.labels()) == ("completed", 7, ["fetch"] * 3)


@pytest.mark.rule("TOOL-2")
def test_a_caller_with_a_policy_rules_itself() -> None:
    own = {"rules": [{"else": {"then": {"do": "continue"}}}]}
    made = lending({"policy": RETRIED}, {"policy": own}).answers("fetch", error("http"))
    ran = made.run()
    assert (ran.status, ran.result, ran.labels()) == ("completed", None, ["fetch"])


@pytest.mark.rule("TOOL-2", "TASK-7", "TASK-11")
def test_knobs_of_the_caller_win() -> None:
    lent = {"timeout": 9, "client_retries": 2, "resources": {"cpu": 1, "memory": "1Gi"}}
    caller = {"timeout": {"total": 4}, "resources": {"cpu": 2}}
    (call,) = lending(lent, caller).answers("fetch", ok()).run().calls
    assert (call.timeout.total, call.client_retries) == (4, 2)
    assert call.resources == {"cpu": 2, "memory": "1Gi"}


@pytest.mark.rule("TOOL-2", "OUT-2")
def test_an_outcome_names_the_lent_task_beside_its_block() -> None:
    told = {"else": {"then": {"set_ctx": {"told": "{{ [outcome.workbook, outcome.http] }}"}}}}
    made = lending({}, {"policy": {"rules": [told]}})
    ran = made.answers("fetch", ok(1, http={"status": 200})).run()
    assert ran.ctx == {"told": [{"task": "fetch", "kind": "http"}, {"status": 200}]}


# ── TOOL-1 ───────────────────────────────────────────────────────────────────────────────────

CHILD = {
    "good": step(
        "start", sets("keep", seen="{{ workload.n }}"), noop("end", otherwise(set_prev=7))
    ),
    "bad": step("start", noop("end", otherwise("fail", message="no luck"))),
}


def parent(folder: Path, child: str, **inputs: Any) -> tuple[OneRun, list[OneRun]]:
    """What becomes of a playbook that runs a file beside it, and of its children."""
    (folder / "below").mkdir()
    (folder / "below" / "child.yaml").write_text(playbook(CHILD[child], workload={"n": 1}))
    keep = otherwise(set_ctx={"told": "{{ outcome.result }}", "error": "{{ outcome.error }}"})
    ask = task("ask", "playbook", keep, path="below/child.yaml", args={"n": 2}, **inputs)
    file = folder / "parent.yaml"
    file.write_text(playbook(step("start", ask)))
    return asyncio.run(run_file(file, folder / "home"))


@pytest.mark.rule("TOOL-1")
def test_the_result_of_a_child_says_what_became_of_it(tmp_path: Path) -> None:
    ran, [child] = parent(tmp_path, "good")
    told = ran.ctx["told"]
    assert told.pop("execution_id")
    assert told == {"status": "completed", "ctx": {"seen": 2}, "result": 7}
    assert (child.status, ran.ctx["error"]) == ("completed", None)


@pytest.mark.rule("TOOL-1", "OUT-4")
def test_a_failed_child_is_an_error_of_kind_playbook(tmp_path: Path) -> None:
    ran, [child] = parent(tmp_path, "bad")
    error = ran.ctx["error"]
    assert (error["kind"], error["cause"]["message"]) == ("playbook", "no luck")
    assert (ran.status, child.status) == ("completed", "failed")


@pytest.mark.rule("TOOL-1")
def test_who_does_not_wait_goes_on(tmp_path: Path) -> None:
    """Also where the child has failed already."""
    ran, [child] = parent(tmp_path, "bad", wait=False)
    assert (ran.status, ran.ctx["error"]) == ("completed", None)
    assert ran.ctx["told"].keys() == {"execution_id", "status", "ctx", "result"}
    assert child.status == "failed"


@pytest.mark.rule("TOOL-1")
def test_a_playbook_that_calls_itself_comes_to_an_end(tmp_path: Path) -> None:
    file = tmp_path / "itself.yaml"
    file.write_text(playbook(step("start", task("ask", "playbook", path="itself.yaml"))))
    ran, children = asyncio.run(run_file(file, tmp_path / "home"))
    assert (ran.status, len(children)) == ("failed", DEEPEST)
    assert {child.status for child in children} == {"failed"}
    assert "does it call itself without an end?" in str(ran.error)


@pytest.mark.rule("TOOL-1")
def test_only_parents_count_as_depth() -> None:
    """Whoever starts an execution may choose an id with hyphens."""
    ids = ["e1", "my-1-1", "nightly-2026-11-18", "e1-4.1-1", "e1-4.1-1-3-2"]
    assert [depth_of(one) for one in ids] == [0, 1, 1, 1, 2]


@pytest.mark.rule("TOOL-1")
def test_a_child_s_file_lies_below_its_parent_s_folder(tmp_path: Path) -> None:
    (tmp_path / "outside.yaml").write_text("planted")
    with pytest.raises(UnreadableFile, match="leaves the playbook's folder") as refused:
        child_file("../outside", str(tmp_path / "books"), Bounds())
    assert "planted" not in str(refused.value)
