"""The large values of a start are written down once on their way to the log (decision 0094)."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.cluster import Cluster, clustered
from tests.support.steps import call, playbook, step

from noetl.messages import codec

LARGE = 1_000_000


def counting(write: Callable[[Any], bytes], sizes: list[int]) -> Callable[[Any], bytes]:
    def written(value: Any) -> bytes:
        text = write(value)
        if len(text) > LARGE:
            sizes.append(len(text))
        return text

    return written


@pytest.mark.rule("SRV-2")
def test_a_large_payload_is_written_down_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(cluster: Cluster) -> None:
        node = await cluster.server()
        await node.playbooks.register(playbook(step("first", call("fetch"))))
        sizes: list[int] = []
        ours = [module for name, module in sys.modules.items() if name.startswith("noetl.")]
        for write in (codec.encode, codec.encode_shown):
            for module in ours:
                for name, value in list(vars(module).items()):
                    if value is write:
                        monkeypatch.setattr(module, name, counting(write, sizes))
        payload = {"rows": [0.5] * LARGE}
        row = await node.execute(path="tests/scenario", payload=payload)
        assert row.status == "running"
        assert len(sizes) == 1, sizes

    clustered(test, tmp_path)
