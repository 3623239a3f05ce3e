"""SRV-1: executions are found by what they say, by labels of their playbook, and by their key."""

from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_srv import on_api, register
from tests.support.api import Api
from tests.support.cluster import Cluster
from tests.support.steps import noop, playbook, step


def labelled(path: str, **labels: str) -> str:
    about = {"name": "load", "path": path, "labels": labels}
    return playbook(step("start", noop("first")), metadata=about)


@pytest.mark.rule("SRV-1")
def test_executions_are_found_by_text_label_and_key(tmp_path: Path) -> None:
    async def test(_: Cluster, api: Api) -> None:
        await register(api, labelled("shop/orders", team="shop", tier="1"))
        await register(api, labelled("ops/deploy", team="ops"))
        begun = []
        for number, path in enumerate(("shop/orders", "ops/deploy", "shop/orders")):
            key = {"Idempotency-Key": f"k{number}"}
            told = await api.post("/api/executions", {"path": path}, headers=key)
            begun.append(told["execution_id"])
        first, deploy, last = begun

        async def found(**query: Any) -> list[str]:
            rows = await api.pages("/api/executions", "executions", **query)
            return [row["execution_id"] for row in rows]

        assert await found(text="ORDERS") == [last, first]
        assert await found(text=deploy[2:]) == [deploy]
        assert await found(label="team=shop", limit=1) == [last, first]
        assert await found(label="team=ops", text="deploy", path="ops/*") == [deploy]
        assert await found(label="team=ops", path="shop/orders") == []
        assert await found(key="k1") == [deploy]
        assert await found(key="never") == []
        status, refused = await api.ask("GET", "/api/executions", params={"label": "team"})
        assert (status, refused["error"]["code"]) == (422, "invalid")
        assert "expected NAME=VALUE" in refused["error"]["message"]

    on_api(test, tmp_path)
