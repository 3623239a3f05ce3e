"""DOC-2, SRV-1: a version may be named by its number, or by what its author calls it."""

from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_srv import on_api, register
from tests.support.api import Api
from tests.support.canned import CannedTools
from tests.support.cluster import Cluster
from tests.support.steps import noop, playbook, step, task

from noetl.tools.playbook import PlaybookTool


def labelled(version: Any, label: str = "first", path: str = "shop/load") -> str:
    about = {"name": "load", "path": path, "version": version}
    return playbook(step("start", noop(label)), metadata=about)


async def shop(api: Api) -> None:
    for version, label in (("2024-08", "a"), ("2024-09-rc1", "b"), (2.0, "c"), ("same", "d")):
        await register(api, labelled(version, label))
    await register(api, labelled("same", "e"))


async def ask(api: Api, **asked: Any) -> tuple[int, Any]:
    status, told = await api.ask("POST", "/api/executions", json=asked)
    return status, told.get("version") or told["error"]["message"]


@pytest.mark.rule("DOC-2", "SRV-1")
def test_execute_takes_a_label(tmp_path: Path) -> None:
    async def test(_: Cluster, api: Api) -> None:
        await shop(api)
        assert await ask(api, path="shop/load", version="2024-09-rc1") == (201, "2")
        assert await ask(api, path="shop/load@2024-08") == (201, "1")
        assert await ask(api, path="shop/load@2.0") == (201, "3")
        assert await ask(api, path="shop/load@4") == (201, "4"), "a number that the catalog gave"
        assert await ask(api, path="shop/load", version="4") == (201, "4")
        assert await ask(api, path="shop/load") == (201, "5")
        found = await api.get("/api/catalog/entries/shop/load", version="2024-08")
        assert (found["version"], found["version_label"]) == (1, "2024-08")

    on_api(test, tmp_path)


@pytest.mark.rule("DOC-2", "SRV-1")
def test_what_a_label_does_not_settle_is_said_with_those_that_there_are(tmp_path: Path) -> None:
    async def test(_: Cluster, api: Api) -> None:
        await shop(api)
        status, says = await ask(api, path="shop/load@2023")
        assert status == 404
        known = "5 (same), 4 (same), 3 (2.0), 2 (2024-09-rc1), 1 (2024-08)"
        assert says == f"no version of 'shop/load' is called '2023'; there are: {known}"
        status, says = await ask(api, path="shop/load", version="same")
        assert status == 404
        assert "several versions of 'shop/load' are called: 5, 4; name one" in says
        await register(api, labelled("2024-08", "a"))
        again = await ask(api, path="shop/load@2024-08")
        assert again == (201, "6"), "the same text again is not another one"
        assert (await ask(api, path="shop/nope@2024-08"))[0] == 404

    on_api(test, tmp_path)


class WithPlaybooks(CannedTools):
    """Canned answers for all but `playbook`, which is the real one."""

    def __getitem__(self, kind: str) -> Any:
        return PlaybookTool() if kind == "playbook" else self


@pytest.mark.rule("DOC-2", "TOOL-1")
@pytest.mark.parametrize(
    "named", [{"path": "shop/load", "version": "2024-09-rc1"}, {"path": "shop/load@2024-09-rc1"}]
)
def test_a_child_is_named_by_its_label(tmp_path: Path, named: dict[str, Any]) -> None:
    async def test(cluster: Cluster, api: Api) -> None:
        cluster.worker(WithPlaybooks())
        await shop(api)
        execution = await cluster.run(playbook(step("start", task("call", "playbook", **named))))
        assert execution.status == "completed"
        found = await api.get("/api/executions", parent=execution.execution_id)
        assert [child["version"] for child in found["executions"]] == ["2"]

    on_api(test, tmp_path)
