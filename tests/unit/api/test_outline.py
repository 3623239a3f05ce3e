"""A playbook as the UI draws it: boxes, links in the order of arcs, and the workload."""

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
