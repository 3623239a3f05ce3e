"""What TOOL-0, OUT and TASK ask of `nats`, on a real server."""

import asyncio
from pathlib import Path

import pytest
from tests.support.nats import NatsServer
from tests.support.one_run import run_file
from tests.unit.tools.nats.bench import Bench

from noetl.playbook.model import Timeout

TEXT = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {{ name: n, path: n }}
workload: {{ url: "{url}" }}
workflow:
  - step: start
    tool:
      - keep:
          kind: nats
          url: "{{{{ workload.url }}}}"
          operation: kv_put
          bucket: conformance
          key: k
          value: {{ n: 1 }}
          create: true
      - look:
          kind: nats
          url: "{{{{ workload.url }}}}"
          operation: kv_get
          bucket: conformance
          key: k
"""


@pytest.mark.rule("TOOL-0")
def test_a_playbook_keeps_and_reads_a_key(nats_server: NatsServer, tmp_path: Path) -> None:
    file = tmp_path / "playbook.yaml"
    file.write_text(TEXT.format(url=nats_server.url))
    ran, _ = asyncio.run(run_file(file, tmp_path))
    assert ran.status == "completed"
    assert (ran.result["key"], ran.result["data"]) == ("k", {"n": 1})


@pytest.mark.rule("OUT-4")
def test_what_nobody_answers_is_not_found(nats_server: NatsServer) -> None:
    error = Bench(nats_server).error("request", subject="nobody.at.all")
    assert (error["kind"], error["retryable"]) == ("not_found", True)


@pytest.mark.rule("OUT-2")
def test_the_block_holds_the_code_of_the_server(nats_server: NatsServer) -> None:
    bench = Bench(nats_server)
    outcome = bench.one("kv_get", bucket="never-made", key="k")
    assert set(outcome.block or {}) == {"code", "description"}


@pytest.mark.rule("TASK-7")
def test_a_server_that_is_silent_times_out(nats_server: NatsServer) -> None:
    bench = Bench(nats_server)

    async def silent(message: object) -> None:
        del message

    call = bench.call("request", subject="quiet", timeout=Timeout(total=0.2))
    (outcome,) = bench.with_peer("quiet", silent, call)
    assert (outcome.error or {})["kind"] == "timeout"


@pytest.mark.rule("KEY-1")
def test_a_credential_says_where_the_server_is(nats_server: NatsServer) -> None:
    bench = Bench(nats_server, bus={"kind": "generic", "url": nats_server.url})
    assert bench.result("publish", subject="a", value="xyz", auth="bus", url=None)["size"] == 3
