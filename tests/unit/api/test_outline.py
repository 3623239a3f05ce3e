"""What the UI asks for: a playbook to draw, a state of the past, the events of one iteration."""

from pathlib import Path

import pytest
from tests.support.api import api_of

from noetl.node.server import ServerNode
from noetl.settings import Settings

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: fork, path: tests/fork}
workload: {size: 3, region: eu}
workflow:
  - step: start
    tool: [{look: {kind: noop}}]
    next:
      spec: {mode: inclusive}
      arcs:
        - {step: left, when: "{{ workload.size > 9 }}"}
        - {step: right}
  - step: left
    tool: [{a: {kind: noop}}]
  - step: right
    tool: [{b: {kind: noop}}]
"""
TRIGGER = """
apiVersion: noetl.io/v2
kind: Trigger
metadata: {name: nightly, path: tests/nightly}
spec: {playbook: tests/fork, on: {schedule: {cron: "0 3 * * *"}}}
"""


@pytest.mark.rule("SRV-1")
async def test_an_execution_and_its_playbook_have_one_outline(tmp_path: Path) -> None:
    plane = await ServerNode.open(Settings(home=tmp_path), says=lambda _: None)
    try:
        entry, _ = await plane.register(TEXT)
        await plane.register(TRIGGER)
        begun = await plane.execute(playbook_id=entry.playbook_id, payload={})
        async with api_of(plane) as api:
            outline = await api.get(f"/api/executions/{begun.execution_id}/outline")
            assert outline == await api.get("/api/catalog/outline/tests/fork", version="1")
            assert outline["workload"] == {"size": 3, "region": "eu"}
            assert [box["name"] for box in outline["boxes"]] == ["start", "left", "right"]
            links = [(link["source"], link["target"]) for link in outline["links"]]
            assert links == [(0, 1), (0, 2)], "as `next.evaluated` counts the arcs"
            status, told = await api.ask("GET", "/api/catalog/outline/tests/nightly")
            assert (status, told["error"]["code"]) == (404, "playbook_not_found")
            status, _ = await api.ask("GET", "/api/catalog/outline/tests/nothing")
            assert status == 404
    finally:
        await plane.close()


NOTES = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: notes, path: tests/notes}
workflow:
  - step: start
    tool:
      - note: {kind: noop, spec: {policy: {rules: [{else: {then: {do: continue,
          set_ctx: {said: early}}}}]}}}
    next: {arcs: [{step: end}]}
  - step: end
    tool: [{pass: {kind: noop}}]
"""


@pytest.mark.rule("EVT-5")
async def test_a_state_is_what_the_log_came_to_at_any_event(tmp_path: Path) -> None:
    plane = await ServerNode.open(Settings(home=tmp_path), says=lambda _: None)
    try:
        entry, _ = await plane.register(NOTES)
        begun = await plane.execute(playbook_id=entry.playbook_id, payload={})
        assert await plane.ended(begun.execution_id, 30)
        async with api_of(plane) as api:
            at = f"/api/executions/{begun.execution_id}"
            events = (await api.get(f"{at}/events", limit=200))["events"]
            [patch] = [one for one in events if one["name"] == "ctx.patched"]
            now = patch["seq"]
            past = [await api.get(f"{at}/state", seq=seq) for seq in (1, now - 1, now)]
            assert [one["seq"] for one in past] == [1, now - 1, now]
            assert [one["ctx"] for one in past] == [{}, {}, {"said": "early"}]
            last = await api.get(f"{at}/state", seq=len(events))
            assert last == await api.get(f"{at}/state") == await api.get(f"{at}/state", seq=10**6)

            task = patch["entity_id"]
            for about in (task, task.partition(".")[0], task[:-1]):
                found = await api.get(f"{at}/events", about=about, limit=200)
                below = (f"{about}.", f"{about}r")
                assert found["events"] == [
                    one
                    for one in events
                    if one["entity_id"] == about or one["entity_id"].startswith(below)
                ]
            assert "task.done" in {
                one["name"] for one in (await api.get(f"{at}/events", about=task))["events"]
            }
    finally:
        await plane.close()
